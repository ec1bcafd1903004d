//! Whether a claim is supported by the quotes it cites: kept apart from whether the citations are valid.
//!
//! Three checks so far, the first that holds decides. `fact-line`: a rule of the profile, applied to a cited
//! quote alone, states exactly the claim's fields. `verbatim`: the claim's sentence field is exactly a cited
//! quote. `quoted`: numbers, names and negation of a claim in other words agree with its quotes,
//! and its words stand together as they do there; `docs/support.md` says what it can't see, and how good it is.
//! None vouches that the document is right.

mod quoted;

use serde::{Deserialize, Serialize};

use crate::claim::Fields;
use crate::profile::{Profile, Salient};
use quoted::Quoted;

/// Version of the checks in this module. It is part of every key.
pub const SUPPORT_VERSION: u32 = 4;

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
    /// Numbers, names, negation and enough words agree with the quotes.
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

/// How close a claim in prose is to the quotes it cites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Closeness {
    /// The share of its words of content that the quotes have, and the share of neighbours among them that follow each
    /// other in a quote; both in percent, added up.
    pub shared: u32,
    /// Of a claim that copies a sentence, the share of such neighbours in percent; of any other, 100.
    pub copied_pairs: u32,
}

impl Closeness {
    /// Of a claim that is all its quotes'.
    pub const WHOLE: Self = Self {
        shared: 200,
        copied_pairs: 100,
    };

    /// The farther of two, each measure by itself.
    #[must_use]
    pub fn or_farther(self, other: Self) -> Self {
        Self {
            shared: self.shared.min(other.shared),
            copied_pairs: self.copied_pairs.min(other.copied_pairs),
        }
    }

    /// Whether it is close enough.
    pub fn is_within(self, bounds: Bounds) -> bool {
        self.shared >= bounds.shared && self.copied_pairs >= bounds.copied_pairs
    }
}

/// What [`Closeness`] is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bounds {
    /// The least [`Closeness::shared`].
    pub shared: u32,
    /// The least [`Closeness::copied_pairs`].
    pub copied_pairs: u32,
}

impl Bounds {
    /// Those of the check. Tuned on one half of three public collections and scored on the other: `docs/support.md`.
    pub const IN_USE: Self = Self {
        shared: 70,
        copied_pairs: 85,
    };
}

/// How close a claim is to its quotes, which [`Bounds`] decide on; none where the `quoted` check refuses it for
/// anything else.
pub fn closeness(profile: &Profile, fields: &Fields, quotes: &[&str]) -> Option<Closeness> {
    quoted::measure(profile, fields, quotes)
        .ok()
        .map(|found| found.0)
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
    // Where rules alone make claims, what no rule states is not supported.
    if profile.extraction.salient == Salient::Never && !profile.rules.is_empty() {
        return support(
            Verdict::Unsupported,
            Method::FactLine,
            "no cited quote states this",
        );
    }
    match quoted::check(profile, fields, quotes, Bounds::IN_USE) {
        Quoted::Holds => support(Verdict::Supported, Method::Quoted, ""),
        Quoted::Fails(why) => support(Verdict::Unsupported, Method::Quoted, &why),
    }
}
