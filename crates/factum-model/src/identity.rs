//! The identity of a model, as keys and generation digests hold it.

use factum_base::canonical_json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All that can change a model's answer: files or endpoint, tokenizer, template, engine and its
/// settings. A JSON object without floats, with ASCII keys and a `kind`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ModelIdentity(Value);

impl ModelIdentity {
    /// An identity of these parts.
    pub const fn new(parts: Value) -> Self {
        Self(parts)
    }

    /// The parts.
    pub const fn parts(&self) -> &Value {
        &self.0
    }

    /// `local`, `openai`, `canned`, ...
    pub fn kind(&self) -> &str {
        self.0.get("kind").and_then(Value::as_str).unwrap_or("")
    }

    /// RFC 8785 text.
    ///
    /// # Errors
    /// The parts can't be written as canonical JSON.
    pub fn canonical(&self) -> Result<String, serde_json::Error> {
        canonical_json(&self.0)
    }
}
