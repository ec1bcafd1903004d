//! Beats: whether their evidence holds, and what is covered where only those that hold count.

use crate::fixture::Fixture;
use crate::folded::Folded;
use crate::measured::Measured;
use crate::score_name::ScoreName;
use crate::scorers::mentions::matches;
use crate::scorers::words::content;
use crate::scorers::{BeatFinding, BeatState, Scorecard};
use crate::source::{Passage, Source};
use crate::summary::{Beat, Summary};

pub(super) fn beats(fixture: &Fixture, summary: &Summary, card: &mut Scorecard) {
    let all = summary.beats.as_deref().unwrap_or_default();
    card.beats = all
        .iter()
        .map(|beat| finding(&fixture.source, beat))
        .collect();
    let count = |state| card.beats.iter().filter(|beat| beat.state == state).count();
    let (valid, dropped) = (count(BeatState::Valid), count(BeatState::Dropped));
    let validity = Measured::share(valid, all.len() - dropped, "no beats are left");
    let share_dropped = Measured::share(dropped, all.len(), "no beats");
    let covered = coverage(fixture, summary, all, card);
    card.measures.insert(ScoreName::BeatValidity, validity);
    card.measures.insert(ScoreName::DroppedBeats, share_dropped);
    card.measures.insert(ScoreName::CoverageInBeats, covered);
}

fn coverage(fixture: &Fixture, summary: &Summary, all: &[Beat], card: &Scorecard) -> Measured {
    if summary.beats.is_none() {
        return Measured::None("the summary is not made of beats".to_owned());
    }
    let texts: Vec<&str> = all
        .iter()
        .zip(&card.beats)
        .filter(|(_, found)| found.state == BeatState::Valid)
        .map(|(beat, _)| beat.text.as_str())
        .collect();
    let text = Folded::new(&texts.join("\n\n"));
    let events = &fixture.events;
    let covered = events
        .iter()
        .filter(|event| matches(&event.mentions, &text));
    Measured::share(covered.count(), events.len(), "no events")
}

fn finding(source: &Source, beat: &Beat) -> BeatFinding {
    let (state, why) = judge(source, beat);
    BeatFinding {
        state,
        why,
        unsupported: None,
    }
}

fn judge(source: &Source, beat: &Beat) -> (BeatState, Option<String>) {
    let found: Vec<Result<Passage<'_>, _>> =
        beat.evidence.iter().map(|id| source.resolve(id)).collect();
    let passages: Vec<&Passage<'_>> = found.iter().flatten().collect();
    let time = beat.t_start.unwrap_or(0.0)..beat.t_end.unwrap_or(f64::MAX);
    if !passages.is_empty() && !passages.iter().any(|passage| passage.lies_in(&time)) {
        let why = "its evidence lies outside its own time".to_owned();
        return (BeatState::Dropped, Some(why));
    }
    let invalid = |why: String| (BeatState::Invalid, Some(why));
    if beat.evidence.is_empty() {
        return invalid("it cites nothing".to_owned());
    }
    if let Some(error) = found.iter().find_map(|one| one.as_ref().err()) {
        return invalid(error.to_string());
    }
    if let Some(speaker) = &beat.speaker {
        let named = Folded::phrase(speaker);
        let spoken = |passage: &&&Passage<'_>| {
            passage
                .speaker
                .is_none_or(|by| Folded::phrase(by).as_str() != named.as_str())
        };
        if let Some(other) = passages.iter().find(spoken) {
            let by = other.speaker.unwrap_or("no one");
            return invalid(format!("spoken by {by}, not by {speaker}"));
        }
    }
    let said = content(&beat.text);
    let shares = passages
        .iter()
        .any(|passage| content(passage.text).iter().any(|word| said.contains(word)));
    if !shares {
        return invalid("its evidence shares no word of content with it".to_owned());
    }
    (BeatState::Valid, None)
}
