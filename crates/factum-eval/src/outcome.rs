//! What came of one fixture, once; and what all of them come to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bootstrap::{Interval, mean, mean_interval};
use crate::fixture::{BadFixture, Fixture};
use crate::measured::Measured;
use crate::score_name::ScoreName;
use crate::scorers::{self, Scorecard};
use crate::summary::Summary;

/// Scores agree where they agree to three decimals.
pub const TOLERANCE: f64 = 0.0005;

/// What came of one fixture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The fixture's name.
    pub name: String,
    /// Its file.
    pub file: String,
    /// Its tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Which repeat, from 1.
    pub repeat: u32,
    /// Every score; null where there was nothing to measure or an error.
    pub scores: BTreeMap<ScoreName, Option<f64>>,
    /// The file is no fixture.
    #[serde(default)]
    pub bad: bool,
    /// What went wrong.
    pub errors: Vec<String>,
    /// Expected scores that were not met.
    pub mismatches: Vec<Mismatch>,
    /// The scores with their denominators, and what they rest on.
    #[serde(flatten)]
    pub card: Scorecard,
    /// The output came from the cache.
    pub cached: bool,
    /// Seconds until there was an output.
    pub seconds: f64,
    /// The output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
}

/// An expected score that was not met.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mismatch {
    /// The score.
    pub score: ScoreName,
    /// What was expected.
    pub expected: Option<f64>,
    /// What it was.
    pub found: Option<f64>,
}

/// An output with where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// The summary, or why there is none.
    pub summary: Result<Summary, String>,
    /// It came from the cache.
    pub cached: bool,
    /// Seconds until it was there.
    pub seconds: f64,
}

impl Outcome {
    /// Scores an output.
    pub fn of(fixture: &Fixture, repeat: u32, output: Output, check_expected: bool) -> Self {
        let (card, errors, summary) = match output.summary {
            Ok(summary) => (scorers::score(fixture, &summary), Vec::new(), Some(summary)),
            Err(why) => (scorers::failed(fixture, &why), vec![why], None),
        };
        let scores = values(&card);
        let mismatches = if check_expected && errors.is_empty() {
            mismatches(fixture, &scores)
        } else {
            Vec::new()
        };
        Self {
            name: fixture.name.clone(),
            file: fixture.file.display().to_string(),
            tags: fixture.tags.clone(),
            repeat,
            scores,
            bad: false,
            errors,
            mismatches,
            card,
            cached: output.cached,
            seconds: output.seconds,
            summary,
        }
    }

    /// A file that is no fixture.
    pub fn bad(bad: &BadFixture) -> Self {
        let stem = bad.file.file_stem().map(|stem| stem.to_string_lossy());
        Self {
            name: stem.unwrap_or_default().into_owned(),
            file: bad.file.display().to_string(),
            tags: Vec::new(),
            repeat: 1,
            scores: ScoreName::ALL.map(|score| (score, None)).into(),
            bad: true,
            errors: bad.messages(),
            mismatches: Vec::new(),
            card: Scorecard::default(),
            cached: false,
            seconds: 0.0,
            summary: None,
        }
    }

    /// The fixture ran and something went wrong.
    pub fn has_run_error(&self) -> bool {
        !self.bad && !self.errors.is_empty()
    }
}

fn values(card: &Scorecard) -> BTreeMap<ScoreName, Option<f64>> {
    card.measures
        .iter()
        .map(|(score, measured)| (*score, measured.value()))
        .collect()
}

fn mismatches(fixture: &Fixture, scores: &BTreeMap<ScoreName, Option<f64>>) -> Vec<Mismatch> {
    let differs = |expected: &Option<f64>, found: &Option<f64>| match (expected, found) {
        (Some(expected), Some(found)) => (expected - found).abs() > TOLERANCE,
        (None, None) => false,
        _ => true,
    };
    fixture
        .expected
        .iter()
        .map(|(score, expected)| (score, expected, scores.get(score).copied().flatten()))
        .filter(|(_, expected, found)| differs(expected, found))
        .map(|(score, expected, found)| Mismatch {
            score: *score,
            expected: *expected,
            found,
        })
        .collect()
}

/// What all fixtures come to for one score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Aggregate {
    /// The mean over fixtures. One that could not be measured counts as the worst value there is.
    pub mean: Option<f64>,
    /// Where the mean may well lie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Fixtures in the mean.
    pub of: usize,
    /// Among them, fixtures with an error.
    pub errored: usize,
    /// Fixtures with nothing to measure.
    pub none: usize,
}

/// A fixture's value for a score over its repeats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FixtureValue {
    Value {
        mean: f64,
        errored: bool,
    },
    /// An error of a score without a worst value.
    Lost,
    None,
}

impl FixtureValue {
    pub(crate) fn of<'m>(score: ScoreName, repeats: impl Iterator<Item = &'m Measured>) -> Self {
        let (mut found, mut errored) = (Vec::new(), false);
        for measured in repeats {
            match measured {
                Measured::Score { value, .. } => found.push(*value),
                Measured::Error(_) => {
                    errored = true;
                    found.extend(score.worst());
                }
                Measured::None(_) => {}
            }
        }
        match mean(&found) {
            Some(mean) => Self::Value { mean, errored },
            None if errored => Self::Lost,
            None => Self::None,
        }
    }
}

/// Measurements by fixture, repeats together, in the order of fixtures. Files that are no fixtures are left out.
pub(crate) fn by_fixture(outcomes: &[Outcome]) -> Vec<(&str, Vec<&Scorecard>)> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut all: Vec<(&str, Vec<&Scorecard>)> = Vec::new();
    for outcome in outcomes.iter().filter(|outcome| !outcome.bad) {
        let place = *places.entry(&outcome.name).or_insert(all.len());
        if place == all.len() {
            all.push((&outcome.name, Vec::new()));
        }
        all[place].1.push(&outcome.card);
    }
    all
}

/// The aggregates of all scores.
pub fn aggregates(outcomes: &[Outcome], seed: u64) -> BTreeMap<ScoreName, Aggregate> {
    let fixtures = by_fixture(outcomes);
    ScoreName::ALL
        .into_iter()
        .map(|score| {
            let (mut values, mut errored, mut none) = (Vec::new(), 0, 0);
            for (_, cards) in &fixtures {
                let repeats = cards.iter().filter_map(|card| card.measures.get(&score));
                match FixtureValue::of(score, repeats) {
                    FixtureValue::Value {
                        mean,
                        errored: lost,
                    } => {
                        values.push(mean);
                        errored += usize::from(lost);
                    }
                    FixtureValue::Lost => errored += 1,
                    FixtureValue::None => none += 1,
                }
            }
            let aggregate = Aggregate {
                mean: mean(&values),
                interval: mean_interval(&values, seed),
                of: values.len(),
                errored,
                none,
            };
            (score, aggregate)
        })
        .collect()
}
