//! The figures of the published experiment, for comparison: Qwen2.5-1.5B-Instruct, BF16, one RTX 3090. Corpus and
//! prompts were others, so they are a mark and not a race on equal terms.

use serde::Serialize;

/// A row of the published table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PublishedGroup {
    /// The group's name here.
    pub group: &'static str,
    /// Roots.
    pub snapshots: u64,
    /// VALID, PARTIAL and INVALID roots.
    pub statuses: [u64; 3],
    /// Claims.
    pub claims: u64,
    /// Unsupported among them.
    pub unsupported_rate: f64,
    /// Correct among unique facts.
    pub fact_precision: f64,
    /// Correct among gold.
    pub fact_recall: f64,
}

/// What the published builds cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PublishedCost {
    /// Which builds.
    pub builds: &'static str,
    /// Calls.
    pub calls: u64,
    /// New tokens, where published.
    pub new_tokens: Option<u64>,
    /// Seconds, where published.
    pub seconds: Option<u64>,
}

/// The published table.
pub const GROUPS: [PublishedGroup; 4] = [
    PublishedGroup {
        group: "development-initial/model",
        snapshots: 10,
        statuses: [0, 5, 5],
        claims: 20,
        unsupported_rate: 0.750,
        fact_precision: 0.316,
        fact_recall: 0.0125,
    },
    PublishedGroup {
        group: "test-initial/model",
        snapshots: 20,
        statuses: [0, 14, 6],
        claims: 55,
        unsupported_rate: 0.636,
        fact_precision: 0.370,
        fact_recall: 0.0208,
    },
    PublishedGroup {
        group: "test-events/incremental",
        snapshots: 60,
        statuses: [4, 30, 26],
        claims: 132,
        unsupported_rate: 0.523,
        fact_precision: 0.512,
        fact_recall: 0.0246,
    },
    PublishedGroup {
        group: "test-events/extraction",
        snapshots: 60,
        statuses: [60, 0, 0],
        claims: 2_640,
        unsupported_rate: 0.0,
        fact_precision: 1.0,
        fact_recall: 1.0,
    },
];

/// The published costs.
pub const COSTS: [PublishedCost; 4] = [
    PublishedCost {
        builds: "initial",
        calls: 480,
        new_tokens: None,
        seconds: None,
    },
    PublishedCost {
        builds: "incremental",
        calls: 140,
        new_tokens: Some(29_689),
        seconds: Some(1_118),
    },
    PublishedCost {
        builds: "full",
        calls: 900,
        new_tokens: Some(104_024),
        seconds: Some(4_022),
    },
    PublishedCost {
        builds: "exercise",
        calls: 39,
        new_tokens: None,
        seconds: None,
    },
];
