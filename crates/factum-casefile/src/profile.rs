//! Profiles: named configurations of claim schema, extraction rules, tree and policy.
//!
//! A profile is TOML. Unknown keys are errors that name the key, since a misspelt one would silently
//! change nothing. A profile may extend another: its tables then override the other's, key by key.
//! The four built in are under `profiles/`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::claim::Fields;
pub use crate::model_settings::{
    Decoding, EvidenceUnit, ModelSettings, Reductions, Reuse, WhenEmpty,
};
pub use crate::profile_error::ProfileError;
pub use crate::rule::{Rule, RuleMatch};

/// A profile ready for use.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// What a claim is.
    pub claim: ClaimSchema,
    /// Extraction rules, in order.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// How extraction works where no rule matches.
    #[serde(default)]
    pub extraction: Extraction,
    /// How a language model is used; a profile without it works by extraction only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelSettings>,
    /// Which fields make a fact for the ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<Ledger>,
    /// How long documents are cut.
    #[serde(default)]
    pub segments: Segments,
    /// How nodes are grouped.
    #[serde(default)]
    pub tree: Tree,
    /// What happens to unsupported claims.
    #[serde(default)]
    pub support: SupportPolicy,
}

/// What a claim is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimSchema {
    /// How a claim reads: the first template whose fields the claim has.
    #[serde(deserialize_with = "one_or_many")]
    pub reads: Vec<String>,
    /// Its fields.
    pub fields: BTreeMap<String, FieldRule>,
    /// Most claims in one model answer.
    #[serde(default = "default_max_claims")]
    pub max_claims: u32,
    /// Most pieces of evidence for one claim.
    #[serde(default = "default_max_evidence")]
    pub max_evidence: u32,
}

/// Limits of a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldRule {
    /// Most code points.
    pub max_chars: u32,
    /// May be absent.
    #[serde(default)]
    pub optional: bool,
    /// If not empty, the only values allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<String>,
    /// A model must take the value word for word from the first quote it cites.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_quote: bool,
}

/// Extraction without a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extraction {
    /// When salient sentences become claims.
    #[serde(default)]
    pub salient: Salient,
    /// The field that takes the sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentence: Option<String>,
    /// The field that takes the nearest heading above, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heading: Option<String>,
    /// Most claims of a leaf; 0 for no limit.
    #[serde(default = "default_leaf_claims")]
    pub leaf_claims: u32,
    /// Most claims of a reduction; 0 for no limit.
    #[serde(default = "default_node_claims")]
    pub node_claims: u32,
}

/// When salient sentences become claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Salient {
    /// Never.
    #[default]
    Never,
    /// In segments where no rule matches.
    Otherwise,
    /// Beside what the rules find.
    Also,
}

/// Which fields make a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// What the fact is about; a claim without it is about the case file.
    pub subject: String,
    /// Which property.
    pub field: String,
    /// Its value; two values from current documents are a contradiction.
    pub value: String,
    /// Fields that may have many values without contradiction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub many_valued: Vec<String>,
}

/// How documents are cut into segments, in code points.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segments {
    /// Never cut.
    #[serde(default)]
    pub whole: bool,
    /// Least distance between cuts chosen by content.
    #[serde(default = "default_segment_min")]
    pub min_chars: u32,
    /// Longest segment.
    #[serde(default = "default_segment_max")]
    pub max_chars: u32,
}

/// How nodes are grouped under reductions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// The rule for boundaries.
    #[serde(default)]
    pub kind: TreeKind,
    /// `fixed`: leaves in a group.
    #[serde(default = "default_group")]
    pub group: u32,
    /// `stable`: fewest children of a group.
    #[serde(default = "default_tree_min")]
    pub min: u32,
    /// `stable`: most children of a group.
    #[serde(default = "default_tree_max")]
    pub max: u32,
    /// The order in which a reduction reads its children.
    #[serde(default)]
    pub children: ChildOrder,
}

/// The rule for group boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeKind {
    /// So many documents in a group, in slot order, then one root.
    Fixed,
    /// Boundaries by a hash of document identity.
    #[default]
    Stable,
}

/// The order in which a reduction reads its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChildOrder {
    /// As the documents stand in the case file.
    #[default]
    DocumentOrder,
    /// By node key.
    KeyOrder,
}

/// What happens to unsupported claims.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SupportPolicy {
    /// The policy.
    #[serde(default)]
    pub policy: Policy,
}

/// What happens to unsupported claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Kept on record, not served, not handed on.
    #[default]
    Withhold,
    /// Served, with the verdict shown.
    Flag,
}

const fn default_max_claims() -> u32 {
    8
}
const fn default_max_evidence() -> u32 {
    4
}
const fn default_leaf_claims() -> u32 {
    4
}
const fn default_node_claims() -> u32 {
    16
}
const fn default_segment_min() -> u32 {
    2_000
}
const fn default_segment_max() -> u32 {
    8_000
}
const fn default_group() -> u32 {
    4
}
const fn default_tree_min() -> u32 {
    4
}
const fn default_tree_max() -> u32 {
    12
}

impl Default for Extraction {
    fn default() -> Self {
        Self {
            salient: Salient::default(),
            sentence: None,
            heading: None,
            leaf_claims: default_leaf_claims(),
            node_claims: default_node_claims(),
        }
    }
}
impl Default for Segments {
    fn default() -> Self {
        Self {
            whole: false,
            min_chars: default_segment_min(),
            max_chars: default_segment_max(),
        }
    }
}
impl Default for Tree {
    fn default() -> Self {
        Self {
            kind: TreeKind::default(),
            group: default_group(),
            min: default_tree_min(),
            max: default_tree_max(),
            children: ChildOrder::default(),
        }
    }
}

fn one_or_many<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(one) => vec![one],
        OneOrMany::Many(many) => many,
    })
}

/// The profiles that come with Factum, by name.
pub const BUILT_IN: [(&str, &str); 4] = [
    ("narrative", include_str!("../profiles/narrative.toml")),
    ("facts", include_str!("../profiles/facts.toml")),
    ("session", include_str!("../profiles/session.toml")),
    ("controlled", include_str!("../profiles/controlled.toml")),
];

impl Profile {
    /// Reads the profile `name`. `find` gives the TOML of a profile by name; profiles that another
    /// extends are asked of it too, and the built-in ones are used where it has none.
    ///
    /// # Errors
    /// See [`ProfileError`].
    pub fn load(name: &str, find: &dyn Fn(&str) -> Option<String>) -> Result<Self, ProfileError> {
        let table = load_table(name, find, 0)?;
        let malformed = |message: String| ProfileError::Malformed {
            name: name.to_owned(),
            message,
        };
        let value = toml::Value::Table(table);
        let profile: Self = Self::deserialize(value).map_err(|e| malformed(e.to_string()))?;
        profile.checked(name)
    }

    /// Reads a built-in profile.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn built_in(name: &str) -> Result<Self, ProfileError> {
        Self::load(name, &|_| None)
    }

    /// Compiles the rules and checks what the types can't say.
    fn checked(mut self, name: &str) -> Result<Self, ProfileError> {
        name.clone_into(&mut self.name);
        self.check_fields()?;
        self.check_ranges()?;
        for rule in &mut self.rules {
            rule.compile(name)?;
        }
        self.check_rule_fields()?;
        Ok(self)
    }

    fn unknown_field(&self, place: &str, field: &str) -> ProfileError {
        ProfileError::UnknownField {
            name: self.name.clone(),
            place: place.to_owned(),
            field: field.to_owned(),
        }
    }

    fn require_field(&self, place: &str, field: &str) -> Result<(), ProfileError> {
        if self.claim.fields.contains_key(field) {
            Ok(())
        } else {
            Err(self.unknown_field(place, field))
        }
    }

    fn check_fields(&self) -> Result<(), ProfileError> {
        for field in self
            .extraction
            .sentence
            .iter()
            .chain(&self.extraction.heading)
        {
            self.require_field("[extraction]", field)?;
        }
        if let Some(ledger) = &self.ledger {
            for field in [&ledger.subject, &ledger.field, &ledger.value] {
                self.require_field("[ledger]", field)?;
            }
        }
        for template in &self.claim.reads {
            for field in crate::claim::placeholders(template) {
                self.require_field("claim.reads", field)?;
            }
        }
        Ok(())
    }

    fn check_rule_fields(&self) -> Result<(), ProfileError> {
        for rule in &self.rules {
            let place = format!("rule {:?}", rule.id);
            for field in rule.field_names() {
                self.require_field(&place, field)?;
            }
        }
        Ok(())
    }

    fn check_ranges(&self) -> Result<(), ProfileError> {
        let wrong = |message: &str| {
            Err(ProfileError::Range {
                name: self.name.clone(),
                message: message.to_owned(),
            })
        };
        if self.claim.reads.is_empty() || self.claim.fields.is_empty() {
            return wrong("claim.reads and claim.fields need at least one entry");
        }
        if self.claim.fields.values().any(|field| field.max_chars == 0) {
            return wrong("a field's max_chars must be at least 1");
        }
        if self.claim.max_evidence == 0 || self.claim.max_claims == 0 {
            return wrong("claim.max_claims and claim.max_evidence must be at least 1");
        }
        if self.segments.min_chars < 64 || self.segments.max_chars < 2 * self.segments.min_chars {
            return wrong(
                "segments.min_chars must be at least 64, and max_chars at least twice that",
            );
        }
        if self.tree.min < 2 || self.tree.max < 2 * self.tree.min || self.tree.max > 1_000 {
            return wrong("tree.min must be at least 2, and tree.max from twice that to 1000");
        }
        if self.tree.group < 2 {
            return wrong("tree.group must be at least 2");
        }
        if let Some(model) = &self.model {
            if model.leaf_prompt.trim().is_empty() || model.reduction_prompt.trim().is_empty() {
                return wrong("model.leaf_prompt and model.reduction_prompt must say something");
            }
            let tokens = [
                model.leaf_input_tokens,
                model.reduction_input_tokens,
                model.new_tokens,
            ];
            if tokens
                .iter()
                .any(|tokens| !(16..=1_000_000).contains(tokens))
            {
                return wrong("the token limits of [model] must be from 16 to 1000000");
            }
        }
        if self.extraction.salient != Salient::Never && self.extraction.sentence.is_none() {
            return wrong(
                "extraction.salient needs extraction.sentence, the field that takes the sentence",
            );
        }
        Ok(())
    }

    /// The field that takes a salient sentence.
    pub fn sentence_field(&self) -> Option<&str> {
        match self.extraction.salient {
            Salient::Never => None,
            Salient::Otherwise | Salient::Also => self.extraction.sentence.as_deref(),
        }
    }

    /// How a claim with these fields reads.
    pub fn read(&self, fields: &Fields) -> String {
        self.claim.read(fields)
    }
}

fn load_table(
    name: &str,
    find: &dyn Fn(&str) -> Option<String>,
    depth: u32,
) -> Result<toml::Table, ProfileError> {
    if depth > 8 {
        return Err(ProfileError::Circle {
            name: name.to_owned(),
        });
    }
    let built_in = BUILT_IN
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| (*text).to_owned());
    // A user's `narrative` that extends `narrative` means the built-in one.
    let own = if depth > 0 && built_in.is_some() {
        None
    } else {
        find(name)
    };
    let text = own.or(built_in).ok_or_else(|| ProfileError::Unknown {
        name: name.to_owned(),
        known: BUILT_IN
            .iter()
            .map(|(known, _)| (*known).to_owned())
            .collect(),
    })?;
    let malformed = |error: &toml::de::Error| ProfileError::Malformed {
        name: name.to_owned(),
        message: error.to_string(),
    };
    let mut table: toml::Table = toml::from_str(&text).map_err(|error| malformed(&error))?;
    let Some(base) = table.remove("extends") else {
        toml::from_str::<Profile>(&text).map_err(|error| malformed(&error))?;
        return Ok(table);
    };
    let Some(base) = base.as_str() else {
        return Err(ProfileError::Malformed {
            name: name.to_owned(),
            message: "extends must be the name of a profile".to_owned(),
        });
    };
    let mut merged = load_table(base, find, depth + 1)?;
    merge(&mut merged, table);
    Ok(merged)
}

fn merge(base: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => merge(below, above),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Result<Profile, ProfileError> {
        Profile::load("mine", &|name| (name == "mine").then(|| text.to_owned()))
    }

    #[test]
    fn every_built_in_profile_loads() {
        for (name, _) in BUILT_IN {
            let profile = Profile::built_in(name).unwrap();
            assert_eq!(profile.name, name);
        }
    }

    #[test]
    fn an_unknown_key_is_named() {
        let error = user("extends = \"narrative\"\n[tree]\nmaxx = 9\n")
            .unwrap_err()
            .to_string();
        assert!(error.contains("maxx"), "{error}");
        let alone = include_str!("../profiles/narrative.toml").replace("salient =", "saliant =");
        let error = user(&alone).unwrap_err().to_string();
        assert!(
            error.contains("saliant") && error.contains("line"),
            "{error}"
        );
    }

    #[test]
    fn a_pattern_that_does_not_compile_names_its_rule() {
        let error =
            user("extends = \"facts\"\n[[rules]]\nid = \"broken\"\npattern = '(?<value>'\n")
                .unwrap_err();
        assert!(
            matches!(&error, ProfileError::Pattern { rule, .. } if rule == "broken"),
            "{error}"
        );
    }

    #[test]
    fn a_group_that_is_no_field_is_refused() {
        let error =
            user("extends = \"facts\"\n[[rules]]\nid = \"r\"\npattern = '(?<colour>red)'\n")
                .unwrap_err();
        assert!(matches!(error, ProfileError::UnknownField { field, .. } if field == "colour"));
    }

    #[test]
    fn extending_overrides_key_by_key_and_circles_end() {
        let profile = user("extends = \"narrative\"\n[extraction]\nleaf_claims = 2\n").unwrap();
        assert_eq!(profile.extraction.leaf_claims, 2);
        assert_eq!(profile.extraction.sentence.as_deref(), Some("statement"));
        assert!(matches!(
            user("extends = \"mine\"").unwrap_err(),
            ProfileError::Circle { .. }
        ));
        assert!(matches!(
            user("extends = \"nope\"").unwrap_err(),
            ProfileError::Unknown { .. }
        ));
    }

    #[test]
    fn label_lines_become_facts_and_quoted_ones_do_not() {
        let facts = Profile::built_in("facts").unwrap();
        let text = "Dear all,\r\nDate of loss: 3 March 2026\r\n- **Cause**: hose\r\n> Status: approved\r\n\"Status: approved\"\r\n";
        let found: Vec<_> = facts.rules[0]
            .matches(text)
            .map(|m| (m.fields["field"].clone(), m.fields["value"].clone()))
            .collect();
        assert_eq!(
            found,
            [
                ("Date of loss".into(), "3 March 2026".into()),
                ("Cause".into(), "hose".into())
            ]
        );
        let claim: Fields = [("value".to_owned(), "A sentence.".to_owned())].into();
        assert_eq!(facts.read(&claim), "A sentence.");
    }
}
