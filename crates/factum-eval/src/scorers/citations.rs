//! Citations against gold evidence: of the events that beats tell, whether they cite the passages that state them.

use crate::fixture::Fixture;
use crate::folded::Folded;
use crate::measured::Measured;
use crate::score_name::ScoreName;
use crate::scorers::Scorecard;
use crate::scorers::mentions::matches;
use crate::source::Passage;
use crate::summary::Summary;

/// A beat that mentions an event with gold evidence.
struct Telling {
    /// The citations; none for one that stands for nothing.
    cited: Vec<Option<usize>>,
    events: Vec<usize>,
}

pub(super) fn citations(fixture: &Fixture, summary: &Summary, card: &mut Scorecard) {
    let gold: Vec<Vec<Passage<'_>>> = fixture
        .events
        .iter()
        .map(|event| {
            let resolved = event.evidence.iter().map(|id| fixture.source.resolve(id));
            resolved.flatten().collect()
        })
        .collect();
    let mut passages: Vec<Passage<'_>> = Vec::new();
    let mut tellings = Vec::new();
    for beat in summary.beats.as_deref().unwrap_or_default() {
        let text = Folded::new(&beat.text);
        let events: Vec<usize> = (0..gold.len())
            .filter(|&place| !gold[place].is_empty())
            .filter(|&place| matches(&fixture.events[place].mentions, &text))
            .collect();
        if events.is_empty() {
            continue;
        }
        let cited = beat
            .evidence
            .iter()
            .map(|id| {
                let passage = fixture.source.resolve(id).ok()?;
                passages.push(passage);
                Some(passages.len() - 1)
            })
            .collect();
        tellings.push(Telling { cited, events });
    }
    let (precision, recall) = counted(&gold, &passages, &tellings);
    card.measures
        .insert(ScoreName::CitationPrecision, precision);
    card.measures.insert(ScoreName::CitationRecall, recall);
}

fn counted(
    gold: &[Vec<Passage<'_>>],
    passages: &[Passage<'_>],
    tellings: &[Telling],
) -> (Measured, Measured) {
    if gold.iter().all(Vec::is_empty) {
        let none = || Measured::None("no gold evidence".to_owned());
        return (none(), none());
    }
    let (mut right, mut all) = (0, 0);
    let mut reached: Vec<Vec<bool>> = gold.iter().map(|of| vec![false; of.len()]).collect();
    let mut told = vec![false; gold.len()];
    for telling in tellings {
        for &event in &telling.events {
            told[event] = true;
        }
        for cited in &telling.cited {
            all += 1;
            let Some(cited) = cited.map(|place| &passages[place]) else {
                continue;
            };
            let mut hit = false;
            for &event in &telling.events {
                for (passage, reached) in gold[event].iter().zip(&mut reached[event]) {
                    if cited.overlaps(passage) {
                        hit = true;
                        *reached = true;
                    }
                }
            }
            right += usize::from(hit);
        }
    }
    let of_told = |event: &usize| told[*event];
    let due: usize = (0..gold.len()).filter(of_told).map(|e| gold[e].len()).sum();
    let found: usize = (0..gold.len())
        .filter(of_told)
        .map(|event| reached[event].iter().filter(|hit| **hit).count())
        .sum();
    (
        Measured::share(
            right,
            all,
            "no beat that tells an event with gold evidence cites anything",
        ),
        Measured::share(found, due, "no beat tells an event with gold evidence"),
    )
}
