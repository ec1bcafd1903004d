//! The product's support check held against public data: what it accepts that is true, and refuses that is not.
//!
//! Figures are balanced accuracies, each origin apart: pooled ones mostly measure which origin a text is from. Halves
//! are by digest of the source, so that nothing that was tuned on one half is scored on the same text.

mod frank;
mod qmsum;
mod sentences;

use std::path::{Path, PathBuf};

use factum_base::sha256;
use factum_casefile::support::{Bounds, Closeness};
use serde::Serialize;
use thiserror::Error;

use crate::bootstrap::{Interval, count, interval};

/// One judgement that a check is asked for, with the right answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The statements; all must be supported.
    pub statements: Vec<Statement>,
    /// Whether people say that they are.
    pub supported: bool,
    /// What it is resampled with: an answer with its right and its wrong passage stay together.
    pub unit: usize,
    /// In the half that thresholds are tuned on.
    pub tuning: bool,
}

/// A statement with the passages it is to rest on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// What is said.
    pub text: String,
    /// What it rests on.
    pub quotes: Vec<String>,
}

/// Judgements of one origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Set {
    /// Which.
    pub name: String,
    /// What a statement is held against.
    pub quotes: String,
    /// The judgements.
    pub items: Vec<Item>,
    /// Balanced accuracies of simple methods on the same data, as published beside it: names, numbers and overlap; bigrams.
    pub floors: [f64; 2],
}

/// Why there is nothing to measure.
#[derive(Debug, Error)]
pub enum StudyError {
    /// A file can't be read.
    #[error("{path} can't be read: {message}")]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// A record is not what it should be.
    #[error("{path}, record {record}: {message}")]
    Record {
        /// The file.
        path: PathBuf,
        /// Which record, from 1.
        record: usize,
        /// What is wrong.
        message: String,
    },
}

/// The sets that a folder of data holds: `frank/valid.jsonl` and `qmsum/val`.
///
/// # Errors
/// They can't be read.
pub fn sets(data: &Path) -> Result<Vec<Set>, StudyError> {
    let mut all = frank::sets(&data.join("frank").join("valid.jsonl"))?;
    all.push(qmsum::set(&data.join("qmsum").join("val"))?);
    Ok(all)
}

fn is_tuning(source: &str) -> bool {
    sha256(source.as_bytes())[0].is_multiple_of(2)
}

/// A figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// The origin.
    pub set: String,
    /// What statements were held against.
    pub quotes: String,
    /// `all`, `tuning` or `scoring`.
    pub half: &'static str,
    /// Mean of the two shares below, in percent.
    pub balanced_accuracy: f64,
    /// Its bootstrap interval.
    pub interval: Option<Interval>,
    /// Share of the supported that was accepted.
    pub accepted: f64,
    /// Of how many.
    pub supported: usize,
    /// Share of the unsupported that was refused.
    pub refused: f64,
    /// Of how many.
    pub unsupported: usize,
    /// Published beside the data: names, numbers and overlap; bigrams.
    pub floors: [f64; 2],
}

/// Which judgements a figure is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// All.
    All,
    /// Those that thresholds are tuned on.
    Tuning,
    /// The others.
    Scoring,
}

impl Half {
    /// The word in figures.
    pub const fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Tuning => "tuning",
            Self::Scoring => "scoring",
        }
    }

    const fn holds(self, item: &Item) -> bool {
        match self {
            Self::All => true,
            Self::Tuning => item.tuning,
            Self::Scoring => !item.tuning,
        }
    }
}

/// Of each judgement, the farthest of its statements from what they rest on; none where `check` refuses one.
pub fn closest(
    set: &Set,
    check: &dyn Fn(&str, &[&str]) -> Option<Closeness>,
) -> Vec<Option<Closeness>> {
    let close = |statement: &Statement| {
        let quotes: Vec<&str> = statement.quotes.iter().map(String::as_str).collect();
        check(&statement.text, &quotes)
    };
    set.items
        .iter()
        .map(|item| {
            let mut all = item.statements.iter().map(close);
            all.try_fold(Closeness::WHOLE, |least, one| Some(least.or_farther(one?)))
        })
        .collect()
}

/// The verdicts within bounds.
pub fn verdicts(found: &[Option<Closeness>], bounds: Bounds) -> Vec<bool> {
    found
        .iter()
        .map(|one| one.is_some_and(|one| one.is_within(bounds)))
        .collect()
}

/// The figure of a check's verdicts over a half; none where a half lacks either kind.
pub fn figure(set: &Set, verdicts: &[bool], half: Half, seed: u64) -> Option<Figure> {
    let mut units: Vec<Vec<(bool, bool)>> = Vec::new();
    let mut last = None;
    for (item, accepted) in set.items.iter().zip(verdicts) {
        if half.holds(item) {
            if last.replace(item.unit) != Some(item.unit) {
                units.push(Vec::new());
            }
            if let Some(unit) = units.last_mut() {
                unit.push((item.supported, *accepted));
            }
        }
    }
    let all: Vec<usize> = (0..units.len()).collect();
    let table = Table::of(&units, &all);
    let found = |table: &Table| table.balanced_accuracy();
    Some(Figure {
        set: set.name.clone(),
        quotes: set.quotes.clone(),
        half: half.word(),
        balanced_accuracy: found(&table)?,
        interval: interval(units.len(), seed, |draws| found(&Table::of(&units, draws))),
        accepted: count(table.accepted) / count(table.supported),
        supported: table.supported,
        refused: count(table.refused) / count(table.unsupported),
        unsupported: table.unsupported,
        floors: set.floors,
    })
}

#[derive(Default)]
struct Table {
    accepted: usize,
    supported: usize,
    refused: usize,
    unsupported: usize,
}

impl Table {
    fn of(units: &[Vec<(bool, bool)>], draws: &[usize]) -> Self {
        let mut table = Self::default();
        for (supported, accepted) in draws.iter().flat_map(|&place| &units[place]) {
            if *supported {
                table.supported += 1;
                table.accepted += usize::from(*accepted);
            } else {
                table.unsupported += 1;
                table.refused += usize::from(!accepted);
            }
        }
        table
    }

    fn balanced_accuracy(&self) -> Option<f64> {
        if self.supported == 0 || self.unsupported == 0 {
            return None;
        }
        let accepted = count(self.accepted) / count(self.supported);
        let refused = count(self.refused) / count(self.unsupported);
        Some(50.0 * (accepted + refused))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(items: &[(bool, bool)]) -> (Set, Vec<bool>) {
        let item = |(unit, (supported, _)): (usize, &(bool, bool))| Item {
            statements: Vec::new(),
            supported: *supported,
            unit,
            tuning: unit % 2 == 0,
        };
        let set = Set {
            name: "made up".to_owned(),
            quotes: "none".to_owned(),
            items: items.iter().enumerate().map(item).collect(),
            floors: [50.0, 50.0],
        };
        (set, items.iter().map(|one| one.1).collect())
    }

    #[test]
    fn balanced_accuracy_is_the_mean_over_both_kinds() {
        // Of the supported 2 of 4 are accepted; of the unsupported 1 of 1 is refused.
        let (set, found) = set(&[
            (true, true),
            (true, true),
            (true, false),
            (true, false),
            (false, false),
        ]);
        let figure = figure(&set, &found, Half::All, 1).unwrap();
        assert!((figure.balanced_accuracy - 75.0).abs() < 1e-9);
        assert!((figure.accepted - 0.5).abs() < 1e-9 && (figure.refused - 1.0).abs() < 1e-9);
        assert_eq!((figure.supported, figure.unsupported), (4, 1));
        let interval = figure.interval.unwrap();
        assert!(interval.low < 75.0 && interval.high > 75.0);
        assert!(
            super::figure(&set, &found, Half::Scoring, 1).is_none(),
            "one kind alone"
        );
    }

    #[test]
    fn all_statements_of_an_item_must_be_supported() {
        let statement = |text: &str| Statement {
            text: text.to_owned(),
            quotes: vec!["q".to_owned()],
        };
        let (mut set, _) = set(&[(true, true)]);
        set.items[0].statements = vec![statement("yes"), statement("no")];
        let close = |shared, copied_pairs| Closeness {
            shared,
            copied_pairs,
        };
        let found = |text: &str, quotes: &[&str]| {
            assert_eq!(quotes, ["q"]);
            Some(if text == "yes" {
                close(190, 60)
            } else {
                close(40, 100)
            })
        };
        let least = closest(&set, &found);
        assert_eq!(least, [Some(close(40, 60))]);
        for (shared, copied_pairs, within) in [(40, 60, true), (41, 60, false), (40, 61, false)] {
            let bounds = Bounds {
                shared,
                copied_pairs,
            };
            assert_eq!(verdicts(&least, bounds), [within], "{bounds:?}");
        }
        let refused = closest(&set, &|text, _| (text == "yes").then(|| close(190, 100)));
        let bounds = Bounds {
            shared: 0,
            copied_pairs: 0,
        };
        assert_eq!(verdicts(&refused, bounds), [false]);
    }
}
