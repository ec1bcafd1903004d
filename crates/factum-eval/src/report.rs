//! The report of a run, `factum/eval/1`, and the forms it is written in.

pub mod history;
pub mod html;
pub mod junit;
pub mod markdown;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::gates::{GateResult, GateState, Verdict};
use crate::outcome::{Aggregate, Outcome};
use crate::score_name::ScoreName;

/// The name of the format.
pub const FORMAT: &str = "factum/eval/1";

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Where the summaries came from.
    pub provider: String,
    /// All of it that can change a summary.
    pub identity: Value,
    /// The profile.
    pub profile: Option<String>,
    /// The scorers' version.
    pub scorer_version: u32,
    /// The revision of what was evaluated.
    pub commit: Option<String>,
    /// When the run began, in Unix milliseconds.
    pub at: i64,
    /// How often each fixture was summarised.
    pub repeats: u32,
    /// The seed of intervals.
    pub seed: u64,
    /// How long the run took.
    pub seconds: f64,
    /// What came of each fixture; last, the files that are no fixtures.
    pub fixtures: Vec<Outcome>,
    /// What all fixtures come to.
    pub aggregates: BTreeMap<ScoreName, Aggregate>,
    /// How the cache was used; none where it was not.
    pub cache: Option<CacheUse>,
    /// Nothing measured is no failure.
    pub allow_unmeasured: bool,
    /// What came of the gates.
    pub gates: Vec<GateResult>,
    /// The verdict.
    pub verdict: Verdict,
    /// Its exit code.
    pub exit_code: u8,
}

/// How a cache was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheUse {
    /// Outputs taken from it.
    pub hits: u64,
    /// Outputs made anew.
    pub misses: u64,
}

impl Report {
    /// Reads a report.
    ///
    /// # Errors
    /// It is none; the message says why.
    pub fn from_json(bytes: &[u8]) -> Result<Self, String> {
        let value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        match value.get("format").and_then(Value::as_str) {
            Some(FORMAT) => serde_json::from_value(value).map_err(|error| error.to_string()),
            Some(other) => Err(format!("its format is {other:?}, not {FORMAT:?}")),
            None => Err("it has no format".to_owned()),
        }
    }

    /// The report as a document with its format's name.
    ///
    /// # Errors
    /// Never; a report is plain data.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let mut value = serde_json::to_value(self)?;
        value["format"] = Value::String(FORMAT.to_owned());
        Ok(serde_json::to_string_pretty(&value)? + "\n")
    }

    /// The scores that any fixture measures or should have measured, in order.
    pub fn columns(&self) -> Vec<ScoreName> {
        let measures = |score: &ScoreName| {
            self.aggregates
                .get(score)
                .is_some_and(|found| found.of > 0 || found.errored > 0)
        };
        ScoreName::ALL.into_iter().filter(measures).collect()
    }
}

/// A score as people read it: `n/a` for none, `error` for an error.
pub fn shown(outcome: &Outcome, score: ScoreName) -> String {
    match outcome.scores.get(&score).copied().flatten() {
        Some(value) => score.shown(value),
        None if outcome
            .card
            .measures
            .get(&score)
            .is_some_and(crate::measured::Measured::is_error) =>
        {
            "error".to_owned()
        }
        None => "n/a".to_owned(),
    }
}

/// What came of a gate, in a line.
pub fn gate_line(gate: &GateResult) -> String {
    let state = match gate.state {
        GateState::Held => "held",
        GateState::Failed => "FAILED",
        GateState::Unmeasured => "UNMEASURED: there was nothing to measure",
    };
    let regression = gate.gate.starts_with("fail-on-regression");
    let found = match (gate.found, gate.score) {
        (Some(found), Some(_)) if regression => format!(" ({found:+.3})"),
        (Some(found), Some(score)) => format!(" (found {})", score.shown(found)),
        _ => String::new(),
    };
    let fixtures = if gate.fixtures.is_empty() {
        String::new()
    } else {
        format!(": {}", gate.fixtures.join(", "))
    };
    format!("{} {state}{found}{fixtures}", gate.gate)
}

/// What is wrong with a fixture's outcome, one line each: expected scores that were not met.
pub fn mismatch_lines(outcome: &Outcome) -> Vec<String> {
    let value = |score: ScoreName, value: Option<f64>| {
        value.map_or_else(|| "n/a".to_owned(), |value| score.shown(value))
    };
    outcome
        .mismatches
        .iter()
        .map(|one| {
            let score = one.score;
            let (expected, found) = (value(score, one.expected), value(score, one.found));
            format!("{score} is {found}, expected {expected}")
        })
        .collect()
}
