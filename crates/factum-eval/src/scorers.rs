//! The scorers: one summary of one fixture to all its scores.
//!
//! Pure: they know nothing of providers, caches or reports. Each score is linear in the length of source and summary, but
//! chronology, which compares each two events.

mod beats;
mod chronology;
mod citations;
mod mentions;
mod sentences;
mod shape;
mod support;
mod words;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fixture::Fixture;
use crate::folded::Folded;
use crate::measured::Measured;
use crate::score_name::ScoreName;
use crate::summary::Summary;

pub use chronology::tau_b;
pub use support::closeness_if_accepted;
pub(crate) use words::content;

/// All scores of a summary, with what a reader needs to understand them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Scorecard {
    /// The scores.
    pub measures: BTreeMap<ScoreName, Measured>,
    /// Ids of the forbidden claims that were made.
    pub fired: Vec<String>,
    /// Ids of the events that are not mentioned.
    pub missed: Vec<String>,
    /// Phrases that should be absent and are not.
    pub present: Vec<String>,
    /// Ids of the covered events whose actor is not named beside them.
    pub unattributed: Vec<String>,
    /// The first mention of each covered event, in code points of the summary.
    pub first_mentions: BTreeMap<String, u32>,
    /// What was found of each beat.
    pub beats: Vec<BeatFinding>,
    /// Places in the summary's text, in order, in bytes.
    pub marks: Vec<Mark>,
}

/// What was found of a beat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeatFinding {
    /// Whether its evidence holds.
    pub state: BeatState,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Why its quotes do not support it; none where they do, or nothing was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<String>,
}

/// Whether a beat counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BeatState {
    /// Its evidence holds.
    Valid,
    /// Its evidence does not.
    Invalid,
    /// Its evidence lies outside its own time, so it was left out before.
    Dropped,
}

/// A marked place of a summary's text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Mark {
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// Why it is marked.
    pub kind: MarkKind,
    /// The event or forbidden claim, or the phrase.
    pub id: String,
}

/// Why a place is marked. What is worse comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// A forbidden claim.
    Forbidden,
    /// A phrase that should be absent.
    Absent,
    /// An event.
    Event,
}

/// Scores a summary.
pub fn score(fixture: &Fixture, summary: &Summary) -> Scorecard {
    let mut card = Scorecard::default();
    let text = Folded::new(&summary.text);
    let sentences = sentences::Sentences::of(&summary.text);
    let covered = mentions::events(fixture, &text, &sentences, &mut card);
    mentions::forbidden(fixture, &text, &mut card);
    mentions::absent(fixture, &text, &mut card);
    mentions::attribution(fixture, summary, &covered, &sentences, &mut card);
    chronology::chronology(fixture, &covered, &mut card);
    beats::beats(fixture, summary, &mut card);
    citations::citations(fixture, summary, &mut card);
    support::support(fixture, summary, &mut card);
    shape::shape(summary, &sentences, &mut card);
    card.marks.sort();
    card.marks.dedup();
    card
}

/// The card of a fixture that gave no summary: every score that it pins is an error.
pub fn failed(fixture: &Fixture, why: &str) -> Scorecard {
    let measure = |score: ScoreName| {
        if fixture.pins(score) {
            Measured::Error(why.to_owned())
        } else {
            Measured::None("the fixture pins nothing for it".to_owned())
        }
    };
    Scorecard {
        measures: ScoreName::ALL
            .into_iter()
            .map(|score| (score, measure(score)))
            .collect(),
        ..Scorecard::default()
    }
}
