//! What a generator is asked, and the digest that says it was asked exactly that.

use factum_base::{Digest, canonical_json};
use serde::{Deserialize, Serialize};

use crate::constraint::{CONSTRAINT_VERSION, Constraint};
use crate::identity::ModelIdentity;

/// What [`GenerationDigest`] is a digest of.
#[derive(Debug)]
pub enum GenerationInput {}

/// SHA-256 over the model's identity and the whole request: the same digest, the same input.
pub type GenerationDigest = Digest<GenerationInput>;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The instructions.
    System,
    /// The input.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The word that chat templates and servers use.
    pub const fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What.
    pub content: String,
}

impl Message {
    /// A message.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
        }
    }
}

/// One call of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerationRequest {
    /// The prompt. All messages but the last are taken for the prefix that sibling requests share; the
    /// local engine computes it once. It splits there whether or not anything is shared, so that
    /// sharing changes no token.
    pub messages: Vec<Message>,
    /// What the answer is held to while decoding.
    pub constraint: Constraint,
    /// Most tokens of the prompt, template included. A longer one is refused, never cut.
    pub input_budget: u32,
    /// Most tokens of the answer. An answer that needs more stops for length.
    pub max_new_tokens: u32,
}

/// The form of what an input's digest is taken over.
pub const INPUT_FORMAT: &str = "factum/generation-input/1";

#[derive(Serialize)]
struct Digested<'a> {
    constraint: &'a Constraint,
    constraint_version: &'static str,
    format: &'static str,
    input_budget: u32,
    max_new_tokens: u32,
    messages: &'a [Message],
    model: &'a ModelIdentity,
}

impl GenerationRequest {
    /// The digest of this request to a model of that identity. Decoding is always greedy with one beam,
    /// so no sampling settings are in it.
    ///
    /// # Errors
    /// The identity or a schema can't be written as canonical JSON.
    pub fn digest(&self, model: &ModelIdentity) -> Result<GenerationDigest, serde_json::Error> {
        let text = canonical_json(&Digested {
            constraint: &self.constraint,
            constraint_version: CONSTRAINT_VERSION,
            format: INPUT_FORMAT,
            input_budget: self.input_budget,
            max_new_tokens: self.max_new_tokens,
            messages: &self.messages,
            model,
        })?;
        Ok(GenerationDigest::of(text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constraint::{FieldShape, FieldValue, GroundedSchema, Source};
    use serde_json::json;

    fn request() -> GenerationRequest {
        GenerationRequest {
            messages: vec![
                Message::new(Role::System, "Summarise."),
                Message::new(Role::User, "A hose burst."),
            ],
            constraint: Constraint::Grounded(GroundedSchema {
                items_key: "claims".to_owned(),
                max_items: 4,
                fields: vec![FieldShape {
                    name: "value".to_owned(),
                    optional: false,
                    max_chars: 120,
                    value: FieldValue::Substring,
                }],
                citations_key: "evidence".to_owned(),
                max_citations: 2,
                sources: vec![Source {
                    id: "e1".to_owned(),
                    text: "A hose burst.".to_owned(),
                }],
            }),
            input_budget: 2048,
            max_new_tokens: 384,
        }
    }

    // A change here throws away every recorded generation of every user: say why in the commit.
    #[test]
    fn golden_generation_digest() {
        let model = ModelIdentity::new(json!({"kind": "canned", "sha256": "00"}));
        assert_eq!(
            request().digest(&model).unwrap().to_hex(),
            "973fb6e39cf11a4477319524d5644b481e97d873cc7724623f1f6f183e797467"
        );
    }

    #[test]
    fn everything_that_can_change_an_answer_changes_the_digest() {
        let model = ModelIdentity::new(json!({"kind": "canned", "sha256": "00"}));
        let base = request().digest(&model).unwrap();
        let other = ModelIdentity::new(json!({"kind": "canned", "sha256": "01"}));
        assert_ne!(request().digest(&other).unwrap(), base);
        let changes: [fn(&mut GenerationRequest); 6] = [
            |r| r.messages[0].content.push('!'),
            |r| r.messages[1].content.push('!'),
            |r| r.messages[1].role = Role::Assistant,
            |r| r.constraint = Constraint::None,
            |r| r.input_budget += 1,
            |r| r.max_new_tokens += 1,
        ];
        for change in changes {
            let mut other = request();
            change(&mut other);
            assert_ne!(other.digest(&model).unwrap(), base);
        }
    }
}
