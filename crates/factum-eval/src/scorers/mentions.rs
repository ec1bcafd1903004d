//! Coverage, precision, absence and attribution: what the summary's text mentions, and where.

use std::collections::{BTreeSet, HashMap};

use crate::fixture::{Fixture, Mentions};
use crate::folded::{Folded, Hit};
use crate::measured::Measured;
use crate::score_name::ScoreName;
use crate::scorers::sentences::Sentences;
use crate::scorers::{Mark, MarkKind, Scorecard};
use crate::summary::Summary;

/// The first mention of each event that has one.
pub(super) type Covered = Vec<(usize, Hit)>;

/// Whether a text mentions it: every group has an alternative in it.
pub(super) fn matches(mentions: &Mentions, text: &Folded) -> bool {
    mentions.0.iter().all(|group| {
        group
            .iter()
            .any(|phrase| text.first(&phrase.folded).is_some())
    })
}

/// All hits by group, where every group has one.
fn hits(mentions: &Mentions, text: &Folded) -> Option<Vec<Vec<Hit>>> {
    mentions
        .0
        .iter()
        .map(|group| {
            let mut hits: Vec<Hit> = group
                .iter()
                .flat_map(|phrase| text.hits(&phrase.folded))
                .collect();
            hits.sort();
            (!hits.is_empty()).then_some(hits)
        })
        .collect()
}

/// The first mention: in the first sentence that has all groups, else anywhere.
fn first_mention(groups: &[Vec<Hit>], sentences: &Sentences) -> Option<Hit> {
    let mut seen: HashMap<usize, (usize, Hit)> = HashMap::new();
    for (number, group) in groups.iter().enumerate() {
        let places: BTreeSet<(usize, &Hit)> = group
            .iter()
            .filter_map(|hit| Some((sentences.at(hit.start)?, hit)))
            .collect();
        let mut last = None;
        for (place, hit) in places {
            if last.replace(place) == Some(place) {
                continue;
            }
            let entry = seen.entry(place).or_insert_with(|| (0, hit.clone()));
            // A sentence stays in the race while each group so far had a hit in it.
            if entry.0 == number {
                entry.0 += 1;
                entry.1 = entry.1.clone().min(hit.clone());
            }
        }
    }
    let together = seen
        .into_values()
        .filter(|(groups_seen, _)| *groups_seen == groups.len())
        .map(|(_, hit)| hit)
        .min();
    together.or_else(|| groups.iter().flatten().min().cloned())
}

fn mark(card: &mut Scorecard, groups: &[Vec<Hit>], kind: MarkKind, id: &str) {
    for hit in groups.iter().flatten() {
        card.marks.push(Mark {
            start: hit.start,
            end: hit.end,
            kind,
            id: id.to_owned(),
        });
    }
}

pub(super) fn events(
    fixture: &Fixture,
    text: &Folded,
    sentences: &Sentences,
    card: &mut Scorecard,
) -> Covered {
    let mut covered = Covered::new();
    for (place, event) in fixture.events.iter().enumerate() {
        let groups = hits(&event.mentions, text);
        let first = groups
            .as_ref()
            .and_then(|groups| first_mention(groups, sentences));
        match (groups, first) {
            (Some(groups), Some(first)) => {
                mark(card, &groups, MarkKind::Event, &event.id);
                card.first_mentions.insert(event.id.clone(), first.point);
                covered.push((place, first));
            }
            _ => card.missed.push(event.id.clone()),
        }
    }
    let share = Measured::share(covered.len(), fixture.events.len(), "no events");
    card.measures.insert(ScoreName::Coverage, share);
    covered
}

pub(super) fn forbidden(fixture: &Fixture, text: &Folded, card: &mut Scorecard) {
    for claim in &fixture.forbidden {
        if let Some(groups) = hits(&claim.mentions, text) {
            mark(card, &groups, MarkKind::Forbidden, &claim.id);
            card.fired.push(claim.id.clone());
        }
    }
    let all = fixture.forbidden.len();
    let share = Measured::share(all - card.fired.len(), all, "no forbidden claims");
    card.measures.insert(ScoreName::Precision, share);
}

pub(super) fn absent(fixture: &Fixture, text: &Folded, card: &mut Scorecard) {
    for phrase in &fixture.absent {
        let found: Vec<Hit> = text.hits(&phrase.folded).collect();
        if !found.is_empty() {
            mark(card, &[found], MarkKind::Absent, &phrase.text);
            card.present.push(phrase.text.clone());
        }
    }
    let all = fixture.absent.len();
    let share = Measured::share(all - card.present.len(), all, "no absent phrases");
    card.measures.insert(ScoreName::Absence, share);
}

pub(super) fn attribution(
    fixture: &Fixture,
    summary: &Summary,
    covered: &Covered,
    sentences: &Sentences,
    card: &mut Scorecard,
) {
    let (mut named, mut of) = (0, 0);
    for (place, first) in covered {
        let event = &fixture.events[*place];
        let Some(actor) = &event.actor else { continue };
        of += 1;
        let sentence = sentences
            .at(first.start)
            .and_then(|place| summary.text.get(sentences.all()[place].clone()))
            .unwrap_or_default();
        let sentence = Folded::new(sentence);
        if actor
            .names
            .iter()
            .any(|name| sentence.first(&name.folded).is_some())
        {
            named += 1;
        } else {
            card.unattributed.push(event.id.clone());
        }
    }
    let share = Measured::share(named, of, "no covered event has an actor");
    card.measures.insert(ScoreName::Attribution, share);
}
