//! Two runs compared fixture by fixture: for `diff`, and for gates against a baseline.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::bootstrap::{Interval, mean, mean_interval};
use crate::gates::{GateResult, GateState};
use crate::outcome::{FixtureValue, Outcome, TOLERANCE, by_fixture};
use crate::score_name::ScoreName;

/// The scores of a run, as far as another is held against them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Scores {
    /// By fixture, repeats together.
    pub fixtures: BTreeMap<String, FixtureScores>,
}

/// One fixture's scores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct FixtureScores {
    /// Means over repeats; an error counts as the worst value.
    pub scores: BTreeMap<ScoreName, f64>,
    /// Scores in which an error is counted.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub errored: BTreeSet<ScoreName>,
    /// Forbidden claims that were made.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub fired: BTreeSet<String>,
}

impl Scores {
    /// The scores of outcomes.
    pub fn of(outcomes: &[Outcome]) -> Self {
        let fixtures = by_fixture(outcomes)
            .into_iter()
            .map(|(name, cards)| {
                let mut found = FixtureScores::default();
                for score in ScoreName::ALL {
                    let repeats = cards.iter().filter_map(|card| card.measures.get(&score));
                    match FixtureValue::of(score, repeats) {
                        FixtureValue::Value { mean, errored } => {
                            found.scores.insert(score, mean);
                            if errored {
                                found.errored.insert(score);
                            }
                        }
                        FixtureValue::Lost => {
                            found.errored.insert(score);
                        }
                        FixtureValue::None => {}
                    }
                }
                found.fired = cards
                    .iter()
                    .flat_map(|card| card.fired.iter().cloned())
                    .collect();
                (name.to_owned(), found)
            })
            .collect();
        Self { fixtures }
    }
}

/// How one score moved between two runs, over the fixtures that measure it in both.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Fixtures compared.
    pub pairs: usize,
    /// The mean before.
    pub before: f64,
    /// The mean now.
    pub after: f64,
    /// `after - before`.
    pub difference: f64,
    /// Where the difference may well lie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Fixtures that are better now.
    pub better: usize,
    /// Fixtures that are worse now.
    pub worse: usize,
}

/// A fixture whose scores moved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FixtureChange {
    /// Its name.
    pub name: String,
    /// Scores that moved: before and now; null where there was nothing to measure.
    pub scores: BTreeMap<ScoreName, (Option<f64>, Option<f64>)>,
    /// Forbidden claims made now and not before.
    pub newly_fired: BTreeSet<String>,
    /// Forbidden claims made before and not now.
    pub no_longer_fired: BTreeSet<String>,
}

/// Two runs compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diff {
    /// By score.
    pub scores: BTreeMap<ScoreName, Change>,
    /// Fixtures whose scores moved.
    pub fixtures: Vec<FixtureChange>,
    /// Fixtures of both runs.
    pub both: usize,
    /// Fixtures of the first run alone.
    pub only_before: Vec<String>,
    /// Fixtures of the second run alone.
    pub only_after: Vec<String>,
}

/// Compares two runs.
pub fn diff(before: &Scores, after: &Scores, seed: u64) -> Diff {
    let names = |one: &Scores, other: &Scores| -> Vec<String> {
        one.fixtures
            .keys()
            .filter(|name| !other.fixtures.contains_key(*name))
            .cloned()
            .collect()
    };
    let both: Vec<(&String, &FixtureScores, &FixtureScores)> = before
        .fixtures
        .iter()
        .filter_map(|(name, one)| Some((name, one, after.fixtures.get(name)?)))
        .collect();
    Diff {
        scores: ScoreName::ALL
            .into_iter()
            .filter_map(|score| Some((score, change(score, &both, seed)?)))
            .collect(),
        fixtures: both
            .iter()
            .filter_map(|(name, one, two)| moved(name, one, two))
            .collect(),
        both: both.len(),
        only_before: names(before, after),
        only_after: names(after, before),
    }
}

type Pair<'a> = (&'a String, &'a FixtureScores, &'a FixtureScores);

fn change(score: ScoreName, both: &[Pair<'_>], seed: u64) -> Option<Change> {
    let pairs: Vec<(f64, f64)> = both
        .iter()
        .filter_map(|(_, one, two)| Some((*one.scores.get(&score)?, *two.scores.get(&score)?)))
        .collect();
    let differences: Vec<f64> = pairs.iter().map(|(one, two)| two - one).collect();
    let column = |pick: fn(&(f64, f64)) -> f64| -> Vec<f64> { pairs.iter().map(pick).collect() };
    let count = |better: bool| {
        let gains = pairs.iter().filter_map(|(one, two)| score.gain(*one, *two));
        gains
            .filter(|gain| {
                if better {
                    *gain > TOLERANCE
                } else {
                    *gain < -TOLERANCE
                }
            })
            .count()
    };
    Some(Change {
        pairs: pairs.len(),
        before: mean(&column(|pair| pair.0))?,
        after: mean(&column(|pair| pair.1))?,
        difference: mean(&differences)?,
        interval: mean_interval(&differences, seed),
        better: count(true),
        worse: count(false),
    })
}

fn moved(name: &str, one: &FixtureScores, two: &FixtureScores) -> Option<FixtureChange> {
    let scores: BTreeMap<_, _> = ScoreName::ALL
        .into_iter()
        .filter_map(|score| {
            let pair = (
                one.scores.get(&score).copied(),
                two.scores.get(&score).copied(),
            );
            let differs = match pair {
                (Some(one), Some(two)) => (one - two).abs() > TOLERANCE,
                (None, None) => false,
                _ => true,
            };
            differs.then_some((score, pair))
        })
        .collect();
    let change = FixtureChange {
        name: name.to_owned(),
        scores,
        newly_fired: two.fired.difference(&one.fired).cloned().collect(),
        no_longer_fired: one.fired.difference(&two.fired).cloned().collect(),
    };
    let same = change.scores.is_empty() && change.newly_fired == change.no_longer_fired;
    (!same).then_some(change)
}

/// Holds a run against a baseline: one result for each score that both measure, or one that says that nothing
/// could be compared. A score that a fixture had and has no longer is one that fell.
pub fn regressions(before: &Scores, now: &Scores, tolerance: f64) -> Vec<GateResult> {
    let mut results = Vec::new();
    for score in ScoreName::ALL {
        if score.worst().is_none() {
            continue;
        }
        let (mut gains, mut fell) = (Vec::new(), Vec::new());
        for (name, one) in &before.fixtures {
            let (Some(was), Some(two)) = (one.scores.get(&score), now.fixtures.get(name)) else {
                continue;
            };
            // Nothing measured where something was: the score may not vanish to look better.
            let is = two.scores.get(&score).copied().or(score.worst());
            if let Some(gain) = is.and_then(|is| score.gain(*was, is)) {
                gains.push(gain);
                if gain < -tolerance - 1e-9 {
                    fell.push(name.clone());
                }
            }
        }
        let Some(gain) = mean(&gains) else { continue };
        let failed = gain < -tolerance - 1e-9;
        results.push(GateResult {
            gate: format!("fail-on-regression {score}"),
            score: Some(score),
            state: if failed {
                GateState::Failed
            } else {
                GateState::Held
            },
            found: Some(gain),
            fixtures: if failed { fell } else { Vec::new() },
        });
    }
    if results.is_empty() {
        results.push(GateResult {
            gate: "fail-on-regression".to_owned(),
            score: None,
            state: GateState::Unmeasured,
            found: None,
            fixtures: Vec::new(),
        });
    }
    results
}
