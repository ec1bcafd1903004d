//! What a question may cost: requests, tokens, time. Pure; the caller says how late it is.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Requests that stay possible after the limit, for citing only.
pub const GRACE: u32 = 2;

/// Limits of one question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Model requests.
    pub requests: u32,
    /// Tokens of one request, as far as they can be bounded.
    pub input_tokens: u32,
    /// Tokens of one answer.
    pub new_tokens: u32,
    /// Tokens of all requests and answers together.
    pub total_tokens: u64,
    /// Time for all of it.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests: 8,
            input_tokens: 100_000,
            new_tokens: 1_024,
            total_tokens: 400_000,
            time: Duration::from_mins(10),
        }
    }
}

/// Tools that may be offered in the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// All of them.
    All,
    /// Only `cite`: the limit is reached, and what is said should still be declared.
    CiteOnly,
    /// No further request.
    Nothing,
}

/// What a question has cost so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Spent {
    /// Model requests.
    pub requests: u32,
    /// Tokens, in and out.
    pub tokens: u64,
    /// Requests after the limit.
    pub grace: u32,
}

impl Spent {
    /// What may be offered next, so long after the question came.
    pub fn offer(&self, limits: &Limits, elapsed: Duration) -> Offer {
        let late = elapsed >= limits.time;
        if !late && self.requests < limits.requests && self.tokens < limits.total_tokens {
            Offer::All
        } else if !late && self.grace < GRACE {
            Offer::CiteOnly
        } else {
            Offer::Nothing
        }
    }

    /// A request was made, with this offer.
    pub fn add(&mut self, tokens: u64, offered: Offer) {
        self.requests += 1;
        self.tokens = self.tokens.saturating_add(tokens);
        if offered == Offer::CiteOnly {
            self.grace += 1;
        }
    }
}
