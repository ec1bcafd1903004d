//! What verification found, and how much it looked at.

use serde::Serialize;

use super::gold::GoldGroup;

/// What kind of thing differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// A file is missing, unlisted, or not the one that its digest names.
    File,
    /// The list of records itself.
    List,
    /// A record is not the canonical JSON of its own content.
    Canonical,
    /// A field is missing, unknown or of the wrong type.
    Format,
    /// The corpus: its list, its texts, or what the protocol needs of it.
    Corpus,
    /// What the experiment says it is, against what its runs say.
    Experiment,
    /// The order of steps and builds, or a count that the protocol fixes.
    Protocol,
    /// Events that are not those of the protocol at that step, or whose chain does not hold.
    Events,
    /// A text that must not be seen stands in a prompt, or in what a node holds.
    Access,
    /// A citation that is not word for word in the version it names.
    Citation,
    /// A key that is not the same in two builds of one step.
    Key,
    /// Nodes or generations used again that must not be, or not as they were recorded.
    Reuse,
    /// What serving gave or must have given.
    Serving,
    /// A node's result is not what its input and its answer make it.
    Result,
    /// A recorded call of a model: its input, its digest, its budgets.
    Generation,
    /// A verdict of support that the experiment's grammar does not give.
    Support,
    /// The recorded comparison of two builds.
    Comparison,
    /// A count of calls, nodes or tokens.
    Cost,
    /// A figure of the metrics.
    Metrics,
    /// The reader's sample or a review.
    Review,
    /// Gold that can't be used.
    Gold,
    /// What the verifier of single runs found; its own class is in the message.
    Run,
}

impl Class {
    /// The word used in output.
    pub const fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::List => "list",
            Self::Canonical => "canonical",
            Self::Format => "format",
            Self::Corpus => "corpus",
            Self::Experiment => "experiment",
            Self::Protocol => "protocol",
            Self::Events => "events",
            Self::Access => "access",
            Self::Citation => "citation",
            Self::Key => "key",
            Self::Reuse => "reuse",
            Self::Serving => "serving",
            Self::Result => "result",
            Self::Generation => "generation",
            Self::Support => "support",
            Self::Comparison => "comparison",
            Self::Cost => "cost",
            Self::Metrics => "metrics",
            Self::Review => "review",
            Self::Gold => "gold",
            Self::Run => "run",
        }
    }
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What kind of thing.
    pub class: Class,
    /// The file, and where in it.
    pub place: String,
    /// What differs.
    pub message: String,
}

/// What was looked at, and every difference.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ExperimentVerification {
    /// The records of the runs that were verified.
    pub runs: Vec<String>,
    /// Nodes whose keys and results were worked out again.
    pub nodes: u64,
    /// Citations held against their texts.
    pub evidence: u64,
    /// Events, each build's counted.
    pub events: u64,
    /// Texts whose digests were computed.
    pub texts: u64,
    /// Records whose digests were computed.
    pub files: u64,
    /// Case files.
    pub cases: u64,
    /// Steps.
    pub steps: u64,
    /// Claims.
    pub claims: u64,
    /// Calls of a model whose prompts and answers were worked out again, each run's counted.
    pub generations: u64,
    /// Comparisons of an incremental build with a full one.
    pub comparisons: u64,
    /// Figures of the metrics.
    pub figures: u64,
    /// Every difference.
    pub findings: Vec<Finding>,
    /// What gold says, by group; where it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<GoldGroup>>,
}

/// Collects.
#[derive(Default)]
pub(super) struct Report {
    pub(super) total: ExperimentVerification,
}

impl Report {
    pub(super) fn add(
        &mut self,
        class: Class,
        place: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.total.findings.push(Finding {
            class,
            place: place.into(),
            message: message.into(),
        });
    }

    pub(super) fn require(&mut self, holds: bool, class: Class, place: &str, message: &str) {
        if !holds {
            self.add(class, place, message);
        }
    }

    pub(super) fn close(mut self, groups: Option<Vec<GoldGroup>>) -> ExperimentVerification {
        self.total.groups = groups;
        self.total
    }
}
