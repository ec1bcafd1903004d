//! A score of one summary: a value with what it was counted over, nothing to measure, or an error.

use serde::{Deserialize, Serialize};

/// A score of one summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measured {
    /// It was measured.
    Score {
        /// The score.
        value: f64,
        /// What was counted; for tau, concordant less discordant pairs.
        hits: i64,
        /// Out of how many.
        of: u64,
    },
    /// There was nothing to measure; why.
    None(String),
    /// It should have been measured and could not be; why.
    Error(String),
}

impl Measured {
    /// A share; over nothing it is `None`, for this reason.
    pub fn share(hits: usize, of: usize, otherwise: &str) -> Self {
        if of == 0 {
            return Self::None(otherwise.to_owned());
        }
        Self::Score {
            value: ratio(hits, of),
            hits: i64::try_from(hits).unwrap_or(i64::MAX),
            of: of as u64,
        }
    }

    /// The value, where there is one.
    pub const fn value(&self) -> Option<f64> {
        match self {
            Self::Score { value, .. } => Some(*value),
            Self::None(_) | Self::Error(_) => None,
        }
    }

    /// Whether it should have been measured and could not be.
    pub const fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }
}

/// A ratio of counts.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of sentences and fixtures are far below 2^52"
)]
pub(crate) fn ratio(hits: usize, of: usize) -> f64 {
    hits as f64 / of as f64
}
