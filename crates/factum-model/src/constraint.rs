//! What an answer is held to: nothing, a JSON Schema, or a list of items that cite only what was given.
//!
//! A [`GroundedSchema`] is the portable form. A local engine makes a grammar of it that also holds values to
//! the cited text; a server gets the JSON Schema of it, which can hold ids but not substrings.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The version of the grammar and schema made from a constraint. It is part of node keys.
pub const CONSTRAINT_VERSION: &str = "1";

/// What an answer is held to while decoding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "schema", rename_all = "snake_case")]
pub enum Constraint {
    /// Nothing.
    None,
    /// A JSON Schema.
    JsonSchema(Value),
    /// A list of items with citations.
    Grounded(GroundedSchema),
}

/// An object with one list of items: `{"claims":[{"evidence":["e1"],"value":"..."}]}`.
///
/// The citations come first in each item, then the fields in the order given here, so that a decoder knows
/// what is cited when it writes a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroundedSchema {
    /// The key of the list.
    pub items_key: String,
    /// Most items; the list may be empty.
    pub max_items: u32,
    /// The fields of an item.
    pub fields: Vec<FieldShape>,
    /// The key of an item's citations.
    pub citations_key: String,
    /// Most citations of an item; it has at least one, and none twice.
    pub max_citations: u32,
    /// What may be cited. With none, the list must be empty.
    pub sources: Vec<Source>,
}

/// A field of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldShape {
    /// Its key.
    pub name: String,
    /// May be absent.
    pub optional: bool,
    /// Most code points; at least one.
    pub max_chars: u32,
    /// What it may hold.
    pub value: FieldValue,
}

/// What a field may hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldValue {
    /// Any text.
    Free,
    /// One of these.
    OneOf(Vec<String>),
    /// A substring of the text of the item's first citation.
    Substring,
}

/// Something that may be cited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its short id: ASCII letters and digits.
    pub id: String,
    /// Its text.
    pub text: String,
}

impl GroundedSchema {
    /// The JSON Schema for servers: closed objects, lengths, the ids as an enum. That ids are distinct
    /// and values are substrings has to be checked afterwards.
    pub fn json_schema(&self) -> Value {
        let mut properties = Map::new();
        let mut required = vec![self.citations_key.clone()];
        let ids: Vec<&str> = self
            .sources
            .iter()
            .map(|source| source.id.as_str())
            .collect();
        properties.insert(
            self.citations_key.clone(),
            json!({
                "type": "array",
                "items": {"type": "string", "enum": ids},
                "minItems": 1,
                "maxItems": self.max_citations,
            }),
        );
        for field in &self.fields {
            let shape = match &field.value {
                FieldValue::OneOf(values) => json!({"type": "string", "enum": values}),
                FieldValue::Free | FieldValue::Substring => {
                    json!({"type": "string", "minLength": 1, "maxLength": field.max_chars})
                }
            };
            properties.insert(field.name.clone(), shape);
            if !field.optional {
                required.push(field.name.clone());
            }
        }
        let most = if self.sources.is_empty() {
            0
        } else {
            self.max_items
        };
        let item = json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        let list = if most == 0 {
            json!({"type": "array", "maxItems": 0})
        } else {
            json!({"type": "array", "items": item, "maxItems": most})
        };
        json!({
            "type": "object",
            "properties": {self.items_key.as_str(): list},
            "required": [self.items_key],
            "additionalProperties": false,
        })
    }
}
