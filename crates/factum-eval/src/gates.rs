//! Gates, and the one verdict from which both the printed word and the exit code come.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::measured::Measured;
use crate::outcome::{Aggregate, Outcome};
use crate::score_name::ScoreName;

/// A bound on a score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// The score.
    pub score: ScoreName,
    /// What is held against the bound.
    pub on: GateOn,
    /// Which side fails.
    pub side: Side,
    /// The bound; a score that equals it holds.
    pub bound: f64,
}

/// What a gate looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateOn {
    /// The mean over fixtures.
    Mean,
    /// Each fixture.
    Any,
}

/// Which side of a bound fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Below it.
    Under,
    /// Above it.
    Over,
}

impl Gate {
    /// The option that asks for it, with its bound.
    pub fn words(&self) -> String {
        let any = if self.on == GateOn::Any { "any-" } else { "" };
        let side = if self.side == Side::Under {
            "under"
        } else {
            "over"
        };
        format!("fail-{any}{side}-{} {}", self.score.option(), self.bound)
    }

    // Sums of thirds are not exactly what they are on paper.
    fn holds(&self, value: f64) -> bool {
        const SLACK: f64 = 1e-9;
        match self.side {
            Side::Under => value >= self.bound - SLACK,
            Side::Over => value <= self.bound + SLACK,
        }
    }
}

/// What came of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateState {
    /// It holds.
    Held,
    /// It does not.
    Failed,
    /// Nothing was measured, so that it says nothing.
    Unmeasured,
}

/// A gate with what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateResult {
    /// The gate in words; `regression SCORE` for one against a baseline.
    pub gate: String,
    /// The score; none where nothing at all could be compared with a baseline.
    pub score: Option<ScoreName>,
    /// What came of it.
    pub state: GateState,
    /// The mean, or the worst fixture.
    pub found: Option<f64>,
    /// The fixtures that failed it, of a gate on each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixtures: Vec<String>,
}

/// Holds outcomes against gates.
pub fn judge(
    gates: &[Gate],
    outcomes: &[Outcome],
    aggregates: &BTreeMap<ScoreName, Aggregate>,
) -> Vec<GateResult> {
    gates
        .iter()
        .map(|gate| match gate.on {
            GateOn::Mean => on_mean(gate, aggregates.get(&gate.score)),
            GateOn::Any => on_each(gate, outcomes),
        })
        .collect()
}

fn on_mean(gate: &Gate, aggregate: Option<&Aggregate>) -> GateResult {
    let found = aggregate.and_then(|aggregate| aggregate.mean);
    let state = match found {
        None => GateState::Unmeasured,
        Some(mean) if gate.holds(mean) => GateState::Held,
        Some(_) => GateState::Failed,
    };
    GateResult {
        gate: gate.words(),
        score: Some(gate.score),
        state,
        found,
        fixtures: Vec::new(),
    }
}

fn on_each(gate: &Gate, outcomes: &[Outcome]) -> GateResult {
    let (mut failed, mut found, mut measured) = (Vec::new(), None::<f64>, false);
    for outcome in outcomes {
        let holds = match outcome.card.measures.get(&gate.score) {
            Some(Measured::Score { value, .. }) => {
                found = Some(found.map_or(*value, |worst| match gate.side {
                    Side::Under => worst.min(*value),
                    Side::Over => worst.max(*value),
                }));
                gate.holds(*value)
            }
            Some(Measured::Error(_)) => false,
            Some(Measured::None(_)) | None => continue,
        };
        measured = true;
        if !holds && failed.last() != Some(&outcome.name) {
            failed.push(outcome.name.clone());
        }
    }
    let state = match (measured, failed.is_empty()) {
        (false, _) => GateState::Unmeasured,
        (true, true) => GateState::Held,
        (true, false) => GateState::Failed,
    };
    GateResult {
        gate: gate.words(),
        score: Some(gate.score),
        state,
        found,
        fixtures: failed,
    }
}

/// What a run comes to. The word that is printed and the exit code are both read from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Everything held.
    Passed,
    /// A gate failed, a score is not the expected one, or one fell against the baseline.
    Failed,
    /// A gate had nothing to measure, or there was no fixture at all.
    Unmeasured,
    /// A fixture gave no output.
    RunError,
    /// A file is no fixture.
    BadFixture,
}

/// All that a verdict rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// Files that are no fixtures.
    pub bad_fixtures: usize,
    /// Fixtures that gave no output.
    pub run_errors: usize,
    /// Gates that failed, regressions among them.
    pub failed_gates: usize,
    /// Fixtures that did not get their expected scores.
    pub mismatched: usize,
    /// Gates that had nothing to measure.
    pub unmeasured_gates: usize,
    /// Fixtures that ran.
    pub fixtures: usize,
    /// Nothing measured is no failure.
    pub allow_unmeasured: bool,
}

impl Verdict {
    /// The verdict on these facts. What has to be mended first comes first: a fixture, then the run, then what was
    /// evaluated.
    pub const fn of(facts: &Facts) -> Self {
        if facts.bad_fixtures > 0 {
            Self::BadFixture
        } else if facts.run_errors > 0 {
            Self::RunError
        } else if facts.failed_gates > 0 || facts.mismatched > 0 {
            Self::Failed
        } else if (facts.unmeasured_gates > 0 || facts.fixtures == 0) && !facts.allow_unmeasured {
            Self::Unmeasured
        } else {
            Self::Passed
        }
    }

    /// The word that is printed.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Unmeasured => "unmeasured",
            Self::RunError => "run-error",
            Self::BadFixture => "bad-fixture",
        }
    }

    /// The exit code.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::RunError => 1,
            Self::BadFixture => 3,
            Self::Failed | Self::Unmeasured => 6,
        }
    }
}
