//! The scores by name: what they are called, which way is better, and what an error counts as.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Version of the scorers. It is part of every cache key and report; raise it where a score may change.
pub const SCORER_VERSION: u32 = 1;

/// A score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScoreName {
    /// Share of events that the summary mentions.
    Coverage,
    /// Share of covered events with an actor whose actor is named beside them.
    Attribution,
    /// Kendall's tau-b between the order of mention and the true order.
    ChronologyTau,
    /// The same on 0..1.
    #[serde(rename = "chronology_01")]
    Chronology01,
    /// Share of kept beats whose evidence holds.
    BeatValidity,
    /// Share of beats dropped before that.
    DroppedBeats,
    /// Share of forbidden claims not made.
    Precision,
    /// Coverage over the text of valid beats alone.
    CoverageInBeats,
    /// Share of phrases that must be absent and are.
    Absence,
    /// Share of citations that point at gold evidence.
    CitationPrecision,
    /// Share of gold evidence that is cited.
    CitationRecall,
    /// Share of beats with citable evidence that the product's support check accepts.
    Support,
    /// Whether there is an answer.
    AnswerRate,
    /// Length in code points.
    Length,
    /// Share of sentences that repeat an earlier one.
    Duplication,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More.
    Higher,
    /// Less.
    Lower,
    /// Neither: it describes.
    Neither,
}

impl ScoreName {
    /// All, in the order of reports.
    pub const ALL: [Self; 15] = [
        Self::Coverage,
        Self::Attribution,
        Self::ChronologyTau,
        Self::Chronology01,
        Self::BeatValidity,
        Self::DroppedBeats,
        Self::CoverageInBeats,
        Self::Precision,
        Self::Absence,
        Self::CitationPrecision,
        Self::CitationRecall,
        Self::Support,
        Self::AnswerRate,
        Self::Length,
        Self::Duplication,
    ];

    /// The name in files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Coverage => "coverage",
            Self::Attribution => "attribution",
            Self::ChronologyTau => "chronology_tau",
            Self::Chronology01 => "chronology_01",
            Self::BeatValidity => "beat_validity",
            Self::DroppedBeats => "dropped_beats",
            Self::Precision => "precision",
            Self::CoverageInBeats => "coverage_in_beats",
            Self::Absence => "absence",
            Self::CitationPrecision => "citation_precision",
            Self::CitationRecall => "citation_recall",
            Self::Support => "support",
            Self::AnswerRate => "answer_rate",
            Self::Length => "length",
            Self::Duplication => "duplication",
        }
    }

    /// The name in options.
    pub fn option(self) -> String {
        self.word().replace('_', "-")
    }

    /// A column's heading.
    pub const fn short(self) -> &'static str {
        match self {
            Self::Coverage => "cover",
            Self::Attribution => "attrib",
            Self::ChronologyTau => "tau",
            Self::Chronology01 => "chron",
            Self::BeatValidity => "valid",
            Self::DroppedBeats => "dropped",
            Self::Precision => "prec",
            Self::CoverageInBeats => "c.beats",
            Self::Absence => "absent",
            Self::CitationPrecision => "cite.p",
            Self::CitationRecall => "cite.r",
            Self::Support => "support",
            Self::AnswerRate => "answer",
            Self::Length => "length",
            Self::Duplication => "dupl",
        }
    }

    /// Which way is better.
    pub const fn better(self) -> Better {
        match self {
            Self::DroppedBeats | Self::Duplication => Better::Lower,
            Self::Length => Better::Neither,
            _ => Better::Higher,
        }
    }

    /// The values it can have.
    pub const fn range(self) -> (f64, f64) {
        match self {
            Self::ChronologyTau => (-1.0, 1.0),
            Self::Length => (0.0, f64::MAX),
            _ => (0.0, 1.0),
        }
    }

    /// What an error counts as in a mean; none where nothing is worst.
    pub const fn worst(self) -> Option<f64> {
        match self.better() {
            Better::Higher => Some(self.range().0),
            Better::Lower => Some(self.range().1),
            Better::Neither => None,
        }
    }

    /// How much better `now` is than `before`; negative where it is worse.
    pub const fn gain(self, before: f64, now: f64) -> Option<f64> {
        match self.better() {
            Better::Higher => Some(now - before),
            Better::Lower => Some(before - now),
            Better::Neither => None,
        }
    }

    /// The value as people read it.
    pub fn shown(self, value: f64) -> String {
        if self == Self::Length {
            format!("{value:.0}")
        } else {
            format!("{value:.3}")
        }
    }
}

impl fmt::Display for ScoreName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for ScoreName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL
            .into_iter()
            .find(|score| score.word() == text)
            .ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_use_the_same_words() {
        for score in ScoreName::ALL {
            let json = serde_json::to_string(&score).unwrap();
            assert_eq!(json, format!("\"{}\"", score.word()));
            assert_eq!(score.word().parse(), Ok(score));
        }
    }
}
