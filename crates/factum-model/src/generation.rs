//! A generation: one whole answer of a model, with what it cost.

use serde::{Deserialize, Serialize};

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StopReason {
    /// It said that it was done, or the constraint was complete.
    End,
    /// It ran into the limit of new tokens: the answer is not to be used, even if a prefix of it reads well.
    Length,
}

/// One whole answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generation {
    /// The text, without special tokens; may be empty.
    pub text: String,
    /// The tokens of the answer, end token included where there was one; none over HTTP.
    #[serde(default)]
    pub token_ids: Option<Vec<u32>>,
    /// Why it stopped.
    pub stop: StopReason,
    /// Tokens of the prompt, template included.
    pub prompt_tokens: u32,
    /// Tokens of the answer.
    pub new_tokens: u32,
    /// A server reported no usage, so that the counts of tokens are upper bounds: a token for each byte.
    #[serde(default)]
    pub tokens_bounded: bool,
    /// Wall time, in seconds, from the first attempt's start; a batch's time is shared out over its members.
    pub seconds: f64,
    /// What it ran on, as far as is known: `cpu`, `cuda`, ...; none over HTTP.
    #[serde(default)]
    pub device: Option<String>,
    /// Bytes of model and state resident on the device; none over HTTP.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// What a server says of its build. Recorded, not keyed.
    #[serde(default)]
    pub system_fingerprint: Option<String>,
    /// Attempts that gave no whole answer before this one did.
    #[serde(default)]
    pub retries: u32,
}
