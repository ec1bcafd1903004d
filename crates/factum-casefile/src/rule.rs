//! Extraction rules: regular expressions whose named groups are claim fields.

use std::collections::BTreeMap;
use std::ops::Range;

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::claim::Fields;
use crate::profile_error::ProfileError;

/// A regular expression whose named groups are claim fields.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Names the rule in support verdicts.
    pub id: String,
    /// The pattern (Rust `regex` syntax). The whole match is the evidence.
    pub pattern: String,
    /// Fields with a fixed value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: Fields,
    #[serde(skip)]
    compiled: Option<Regex>,
}

/// One place where a rule matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleMatch {
    /// The matched bytes, without outer white space.
    pub bytes: Range<usize>,
    /// The claim's fields.
    pub fields: Fields,
}

impl Rule {
    /// Compiles the pattern, for the profile `profile`.
    ///
    /// # Errors
    /// It does not compile.
    pub(crate) fn compile(&mut self, profile: &str) -> Result<(), ProfileError> {
        let compiled = Regex::new(&self.pattern).map_err(|error| ProfileError::Pattern {
            name: profile.to_owned(),
            rule: self.id.clone(),
            message: error
                .to_string()
                .lines()
                .last()
                .unwrap_or("")
                .trim()
                .to_owned(),
        })?;
        self.compiled = Some(compiled);
        Ok(())
    }

    /// The claim fields it gives.
    pub(crate) fn field_names(&self) -> impl Iterator<Item = &str> {
        let groups = self
            .compiled
            .iter()
            .flat_map(|regex| regex.capture_names().flatten());
        groups.chain(self.set.keys().map(String::as_str))
    }

    /// Every place in `text` where the rule matches, in order, without overlaps.
    pub fn matches<'t>(&'t self, text: &'t str) -> impl Iterator<Item = RuleMatch> + 't {
        self.compiled.iter().flat_map(move |regex| {
            regex.captures_iter(text).filter_map(move |found| {
                let whole = found.get(0)?;
                let trimmed = whole.as_str().trim();
                if trimmed.is_empty() {
                    return None;
                }
                let start =
                    whole.start() + (whole.as_str().len() - whole.as_str().trim_start().len());
                let mut fields = self.set.clone();
                for name in regex.capture_names().flatten() {
                    if let Some(group) = found.name(name) {
                        fields.insert(name.to_owned(), group.as_str().to_owned());
                    }
                }
                Some(RuleMatch {
                    bytes: start..start + trimmed.len(),
                    fields,
                })
            })
        })
    }
}
