//! What can keep a generation from being whole.

use thiserror::Error;

/// Why there is no generation.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ModelError {
    /// The prompt is longer than its budget. It was not sent, and not cut.
    #[error("the input has {tokens} tokens; {budget} are allowed")]
    OverBudget {
        /// Its length, template included.
        tokens: u32,
        /// What is allowed.
        budget: u32,
    },
    /// The call was cancelled.
    #[error("stopped before the answer was whole")]
    Cancelled,
    /// No whole answer in time.
    #[error("no whole answer within {seconds} s ({attempts} attempts)")]
    Timeout {
        /// The limit.
        seconds: u64,
        /// How often it was tried.
        attempts: u32,
    },
    /// The server can't be reached.
    #[error("the server can't be reached ({attempts} attempts): {message}")]
    Unreachable {
        /// Why, as the network says.
        message: String,
        /// How often it was tried.
        attempts: u32,
    },
    /// The server's certificate is not to be trusted. Not tried again.
    #[error("the server's certificate is not accepted: {0}")]
    Certificate(String),
    /// The server refused: a status other than success.
    #[error("the server answered with status {status} ({attempts} attempts): {message}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// The beginning of what it said.
        message: String,
        /// How often it was tried.
        attempts: u32,
    },
    /// The answer came, but is no answer: broken JSON, half a stream, a finish reason that is not known.
    #[error("the server's answer is not usable ({attempts} attempts): {message}")]
    BadReply {
        /// What is wrong with it.
        message: String,
        /// How often it was tried.
        attempts: u32,
    },
    /// The answer is longer than anything that could have been asked for.
    #[error("the server's answer is longer than {limit} bytes; the rest was not read")]
    TooLarge {
        /// Bytes read at most.
        limit: u64,
    },
    /// The generator can't hold an answer to this kind of constraint.
    #[error("this generator can't hold an answer to a {0} constraint")]
    Constraint(&'static str),
    /// The constraint itself can't be used.
    #[error("the constraint can't be used: {0}")]
    BadConstraint(String),
    /// The model's chat template refuses these messages.
    #[error("the model's chat template refuses the messages: {0}")]
    Template(String),
    /// Nothing was recorded for this input.
    #[error("no recorded generation for input {digest}")]
    NotRecorded {
        /// The input's digest.
        digest: String,
    },
    /// A canned file has no output for this input.
    #[error("the canned outputs have none that fits this input")]
    NotCanned,
    /// The engine failed in itself.
    #[error("the engine failed: {0}")]
    Engine(String),
}
