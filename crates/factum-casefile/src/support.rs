//! Whether a claim is supported by the quotes it cites: kept apart from whether the citations are valid.
//!
//! Three checks so far, the first that holds decides. `fact-line`: a rule of the profile, applied to a cited
//! quote alone, states exactly the claim's fields. `verbatim`: the claim's sentence field is exactly a cited
//! quote. `quoted`: numbers, names and negation of a claim in other words agree with its quotes,
//! and half of its words are theirs; `docs/support.md` says what it can't see, and how good it is.
//! None vouches that the document is right.

mod quoted;

use serde::{Deserialize, Serialize};

use crate::claim::Fields;
use crate::profile::{Profile, Salient};
use quoted::Quoted;

/// Version of the checks in this module. It is part of every key.
pub const SUPPORT_VERSION: u32 = 3;

/// The outcome of a support check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A check found the claim in its quotes.
    Supported,
    /// Every check that applies failed.
    Unsupported,
    /// No check was made.
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
    /// Numbers, names, negation and most words agree with the quotes.
    Quoted,
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

/// The least share of a claim's content words that its quotes must have, in percent.
pub const LEAST_SHARE: u32 = quoted::LEAST_SHARE;

/// Runs the profile's checks on a claim's fields and the quotes it cites.
pub fn check_support(profile: &Profile, fields: &Fields, quotes: &[&str]) -> Support {
    check_support_at(profile, fields, quotes, LEAST_SHARE)
}

/// How many percent of a claim's content words its quotes have: what [`LEAST_SHARE`] is held against.
pub fn content_share(profile: &Profile, fields: &Fields, quotes: &[&str]) -> u32 {
    quoted::share(profile, fields, quotes)
}

/// [`check_support`] with another [`LEAST_SHARE`], to measure what it changes.
pub fn check_support_at(
    profile: &Profile,
    fields: &Fields,
    quotes: &[&str],
    least_share: u32,
) -> Support {
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
    // Where rules alone make claims, what no rule states is not supported.
    if profile.extraction.salient == Salient::Never && !profile.rules.is_empty() {
        return support(
            Verdict::Unsupported,
            Method::FactLine,
            "no cited quote states this",
        );
    }
    match quoted::check(profile, fields, quotes, least_share) {
        Quoted::Holds => support(Verdict::Supported, Method::Quoted, ""),
        Quoted::Fails(why) => support(Verdict::Unsupported, Method::Quoted, &why),
    }
}
