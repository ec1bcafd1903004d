//! Claims, node results, and the checks a claim must pass against its profile's schema.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::evidence::{Evidence, EvidenceId};
use crate::profile::ClaimSchema;
use crate::support::Support;

/// A claim's fields by name.
pub type Fields = BTreeMap<String, String>;

/// One claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Field values, by the profile's names.
    pub fields: Fields,
    /// What it cites; at least one, none twice.
    pub evidence: Vec<EvidenceId>,
    /// Whether its quotes support it.
    pub support: Support,
    /// How salient it is: 1,000,000 for the best of its leaf, half of that for the second, a third for the
    /// third. Decides what a node hands on when it must choose.
    pub salience: u32,
}

/// A node's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum NodeStatus {
    /// The output has the right structure. It says nothing about truth.
    Valid,
    /// Its own output is valid, but a child is INVALID or PARTIAL.
    Partial,
    /// The output broke a rule; it is kept with its diagnosis and handed to no one.
    Invalid,
    /// The document is withdrawn or hidden; its text went to no generator.
    Ineligible,
}

impl NodeStatus {
    /// The word used in output.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Valid => "VALID",
            Self::Partial => "PARTIAL",
            Self::Invalid => "INVALID",
            Self::Ineligible => "INELIGIBLE",
        }
    }
}

/// What a node produced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeResult {
    /// Its state.
    pub status: NodeStatus,
    /// Claims handed on.
    pub claims: Vec<Claim>,
    /// Claims kept on record but not served or handed on, since no quote supports them.
    #[serde(default)]
    pub withheld: Vec<Claim>,
    /// What the claims cite.
    pub evidence: BTreeMap<EvidenceId, Evidence>,
    /// Why it is INVALID.
    #[serde(default)]
    pub diagnostic: Option<String>,
    /// Corrections made to the generator's output, by name.
    #[serde(default)]
    pub repairs: Vec<String>,
    /// Digest of the generation it was made from; none for extraction.
    #[serde(default)]
    pub generation: Option<String>,
}

impl NodeResult {
    /// An empty result of a status.
    pub const fn empty(status: NodeStatus) -> Self {
        Self {
            status,
            claims: Vec::new(),
            withheld: Vec::new(),
            evidence: BTreeMap::new(),
            diagnostic: None,
            repairs: Vec::new(),
            generation: None,
        }
    }
}

impl ClaimSchema {
    /// How a claim with these fields reads.
    pub fn read(&self, fields: &Fields) -> String {
        let fits = |t: &&String| placeholders(t).all(|field| fields.contains_key(field));
        let Some(template) = self.reads.iter().find(fits) else {
            return fields.values().cloned().collect::<Vec<_>>().join(" · ");
        };
        let mut out = String::new();
        let mut rest = template.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            let Some((field, behind)) = after.split_once('}') else {
                break;
            };
            out.push_str(before);
            out.push_str(fields.get(field).map_or("", String::as_str));
            rest = behind;
        }
        out.push_str(rest);
        out
    }
}

/// The fields that a template asks for.
pub(crate) fn placeholders(template: &str) -> impl Iterator<Item = &str> {
    template
        .split('{')
        .skip(1)
        .filter_map(|part| part.split_once('}').map(|(field, _)| field))
}

/// What is wrong with a claim's fields.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ClaimFault {
    /// A field the schema does not have.
    #[error("field {0:?} is not in the claim schema")]
    UnknownField(String),
    /// A required field is absent.
    #[error("field {0:?} is missing")]
    MissingField(String),
    /// Too short, too long, in code points.
    #[error("field {field:?} has {length} characters; {min} to {max} are allowed")]
    Length {
        /// The field.
        field: String,
        /// Its length.
        length: usize,
        /// The least allowed.
        min: usize,
        /// The most allowed.
        max: usize,
    },
    /// Not one of the allowed values.
    #[error("field {field:?} is {value:?}, which is not one of its allowed values")]
    NotAllowed {
        /// The field.
        field: String,
        /// Its value.
        value: String,
    },
}

/// All faults of a claim's fields against its schema.
pub fn field_faults(schema: &ClaimSchema, fields: &Fields) -> Vec<ClaimFault> {
    let mut faults: Vec<ClaimFault> = fields
        .keys()
        .filter(|name| !schema.fields.contains_key(*name))
        .map(|name| ClaimFault::UnknownField(name.clone()))
        .collect();
    for (name, rule) in &schema.fields {
        let Some(value) = fields.get(name) else {
            if !rule.optional {
                faults.push(ClaimFault::MissingField(name.clone()));
            }
            continue;
        };
        let length = value.chars().count();
        let (min, max) = (1, usize::try_from(rule.max_chars).unwrap_or(usize::MAX));
        if length < min || length > max {
            faults.push(ClaimFault::Length {
                field: name.clone(),
                length,
                min,
                max,
            });
        }
        if !rule.one_of.is_empty() && !rule.one_of.contains(value) {
            faults.push(ClaimFault::NotAllowed {
                field: name.clone(),
                value: value.clone(),
            });
        }
    }
    faults
}
