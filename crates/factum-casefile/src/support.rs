//! Whether a claim is supported by the quotes it cites: kept apart from whether the citations are valid.
//!
//! Two checks so far. `fact-line`: a rule of the profile, applied to a cited quote alone, states
//! exactly the claim's fields. `verbatim`: the claim's sentence field is exactly a cited quote.
//! Neither vouches that the document is right.

use serde::{Deserialize, Serialize};

use crate::claim::Fields;
use crate::profile::Profile;

/// Version of the checks in this module. It is part of every key.
pub const SUPPORT_VERSION: u32 = 1;

/// The outcome of a support check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A check found the claim in its quotes.
    Supported,
    /// Every check that applies failed.
    Unsupported,
    /// No check applies to this claim.
    Unchecked,
}

/// How a check decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// A profile rule states the exact fields.
    FactLine,
    /// The claim is its quote.
    Verbatim,
    /// No check ran.
    None,
}

/// A verdict with how it was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Support {
    /// The outcome.
    pub verdict: Verdict,
    /// The check that decided.
    pub method: Method,
    /// [`SUPPORT_VERSION`] at the time.
    pub version: u32,
    /// What the check saw, in words.
    pub detail: String,
}

/// Runs the profile's checks on a claim's fields and the quotes it cites.
pub fn check_support(profile: &Profile, fields: &Fields, quotes: &[&str]) -> Support {
    let support = |verdict, method, detail: &str| Support {
        verdict,
        method,
        version: SUPPORT_VERSION,
        detail: detail.to_owned(),
    };
    for rule in &profile.rules {
        for quote in quotes {
            if rule
                .matches(quote)
                .any(|found| found.bytes == (0..quote.len()) && found.fields == *fields)
            {
                return support(Verdict::Supported, Method::FactLine, &rule.id);
            }
        }
    }
    if let Some(sentence) = profile.sentence_field().and_then(|name| fields.get(name))
        && quotes.iter().any(|quote| quote == sentence)
    {
        return support(Verdict::Supported, Method::Verbatim, "");
    }
    if profile.rules.is_empty() && profile.sentence_field().is_none() {
        return support(
            Verdict::Unchecked,
            Method::None,
            "the profile has no check for such claims",
        );
    }
    support(
        Verdict::Unsupported,
        Method::None,
        "no cited quote states this",
    )
}
