//! Which builds the experiment makes, in which order.

use serde::{Deserialize, Serialize};

use super::corpus::{CaseFile, Group};

/// Who the summaries are made for: a reader with a right to the whole case file, so that it can lose one.
pub const READER: &str = "reader";
/// The document that gets a second version in the first event.
pub const CORRECTED: usize = 0;
/// The document that is withdrawn in the second.
pub const WITHDRAWN: usize = 4;
/// The document that is hidden from the reader in the third.
pub const REVOKED: usize = 8;
/// The case file of the exercise.
pub const EXERCISE_CASE: &str = "S-037";
/// The document of the exercise that gets a second version.
pub const EXERCISE_DOCUMENT: usize = 11;
/// The case file whose root claims a reader reviews, chosen before anything was run.
pub const REVIEW_CASE: &str = "S-010";

/// A point of the protocol at which a case file is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// All documents at version 1.
    Initial,
    /// Document 0 has version 2.
    #[serde(rename = "event-1")]
    Corrected,
    /// Document 4 is withdrawn.
    #[serde(rename = "event-2")]
    Withdrawn,
    /// Document 8 is hidden from the reader.
    #[serde(rename = "event-3")]
    Revoked,
    /// Exercise: document 11 has version 2.
    #[serde(rename = "exercise-1")]
    ExerciseDate,
    /// Exercise: only the instructions of reductions change.
    #[serde(rename = "exercise-2")]
    ExercisePrompt,
}

impl Step {
    /// The word used in records.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Corrected => "event-1",
            Self::Withdrawn => "event-2",
            Self::Revoked => "event-3",
            Self::ExerciseDate => "exercise-1",
            Self::ExercisePrompt => "exercise-2",
        }
    }

    /// The part of the experiment it belongs to.
    pub const fn part(self) -> Part {
        match self {
            Self::Initial => Part::Initial,
            Self::Corrected | Self::Withdrawn | Self::Revoked => Part::Events,
            Self::ExerciseDate | Self::ExercisePrompt => Part::Exercise,
        }
    }

    /// Nodes that are made anew here by an incremental build, and by a full one if there is one: a measure of
    /// the work ahead.
    pub const fn nodes(self) -> u64 {
        match self {
            Self::Initial => 16,
            Self::Corrected | Self::Withdrawn | Self::Revoked | Self::ExerciseDate => 3 + 16,
            Self::ExercisePrompt => 4 + 16,
        }
    }
}

/// A part of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// The first build of every case file.
    Initial,
    /// Three events in every case file for testing.
    Events,
    /// The exercise.
    Exercise,
}

/// How a build is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// On what earlier builds made.
    Incremental,
    /// In a workspace of its own that reuses nothing.
    Full,
    /// The baseline: every line that states a fact, by rules, incrementally.
    Extraction,
}

impl Kind {
    /// The word used in records.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Incremental => "incremental",
            Self::Full => "full",
            Self::Extraction => "extraction",
        }
    }
}

/// What of the experiment is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Only this part; what it rests on is built too.
    pub only: Option<Part>,
    /// Only these case files; all if empty.
    pub cases: Vec<String>,
    /// At most so many events of a case file.
    pub events: usize,
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            only: None,
            cases: Vec::new(),
            events: EVENTS.len(),
        }
    }
}

const EVENTS: [Step; 3] = [Step::Corrected, Step::Withdrawn, Step::Revoked];

impl Selection {
    /// The steps of a case file that are wanted, in order.
    pub fn steps(&self, case: &CaseFile) -> Vec<Step> {
        if !self.cases.is_empty() && !self.cases.contains(&case.case_id) {
            return Vec::new();
        }
        let wanted = |part| self.only.is_none_or(|only| only == part);
        let mut steps = Vec::new();
        if case.group == Group::Test && wanted(Part::Events) {
            steps.extend(EVENTS.iter().take(self.events));
        }
        if case.case_id == EXERCISE_CASE && wanted(Part::Exercise) {
            steps.extend([Step::ExerciseDate, Step::ExercisePrompt]);
        }
        if wanted(Part::Initial) || !steps.is_empty() {
            steps.insert(0, Step::Initial);
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::super::generate::{DEFAULT_SEED, generate};
    use super::*;

    #[test]
    fn the_whole_protocol_has_thirty_initial_builds_sixty_events_and_one_exercise() {
        let corpus = generate(DEFAULT_SEED).corpus;
        let all = Selection::default();
        let steps: Vec<Step> = corpus
            .cases
            .iter()
            .flat_map(|case| all.steps(case))
            .collect();
        let count = |part| steps.iter().filter(|step| step.part() == part).count();
        assert_eq!(
            (
                count(Part::Initial),
                count(Part::Events),
                count(Part::Exercise)
            ),
            (30, 60, 2)
        );
    }

    #[test]
    fn a_part_brings_what_it_rests_on() {
        let corpus = generate(DEFAULT_SEED).corpus;
        let exercise = Selection {
            only: Some(Part::Exercise),
            ..Selection::default()
        };
        let steps: Vec<_> = corpus
            .cases
            .iter()
            .map(|case| exercise.steps(case))
            .filter(|s| !s.is_empty())
            .collect();
        assert_eq!(
            steps,
            [[Step::Initial, Step::ExerciseDate, Step::ExercisePrompt]]
        );
        let one = Selection {
            only: Some(Part::Events),
            cases: vec!["S-010".to_owned()],
            ..Selection::default()
        };
        let steps: usize = corpus.cases.iter().map(|case| one.steps(case).len()).sum();
        assert_eq!(steps, 4);
    }
}
