//! A generation as it is recorded and exported: the whole input beside the answer, so that anyone can
//! compute the input's digest again.

use serde::{Deserialize, Serialize};

use crate::constraint::{CONSTRAINT_VERSION, Constraint};
use crate::generation::{Generation, StopReason};
use crate::identity::ModelIdentity;
use crate::request::{GenerationDigest, GenerationRequest, INPUT_FORMAT, Message};

/// One recorded generation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedGeneration {
    /// The form of the input that its digest is taken over.
    pub format: String,
    /// The model's identity.
    pub model: ModelIdentity,
    /// The prompt.
    pub messages: Vec<Message>,
    /// What decoding was held to.
    pub constraint: Constraint,
    /// The version of grammars and schemas made from constraints.
    pub constraint_version: String,
    /// Most tokens of the prompt.
    pub input_budget: u32,
    /// Most tokens of the answer.
    pub max_new_tokens: u32,
    /// The answer.
    pub text: String,
    /// Its tokens; none over HTTP.
    pub token_ids: Option<Vec<u32>>,
    /// Why it stopped.
    pub stop: StopReason,
    /// Tokens of the prompt, template included.
    pub prompt_tokens: u32,
    /// Tokens of the answer.
    pub new_tokens: u32,
    /// The counts of tokens are upper bounds, since nobody counted.
    #[serde(default)]
    pub tokens_bounded: bool,
    /// Wall time, in seconds.
    pub seconds: f64,
    /// What it ran on, as far as is known.
    pub device: Option<String>,
    /// Bytes resident on the device, as far as is known.
    pub memory_bytes: Option<u64>,
    /// What a server says of its build.
    #[serde(default)]
    pub system_fingerprint: Option<String>,
    /// Attempts that gave no whole answer before this one did.
    #[serde(default)]
    pub retries: u32,
    /// It was recorded before the run that it is exported with. Only in exports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused: Option<bool>,
}

impl RecordedGeneration {
    /// Records an answer with its input.
    pub fn new(model: &ModelIdentity, request: GenerationRequest, answer: Generation) -> Self {
        Self {
            format: INPUT_FORMAT.to_owned(),
            model: model.clone(),
            messages: request.messages,
            constraint: request.constraint,
            constraint_version: CONSTRAINT_VERSION.to_owned(),
            input_budget: request.input_budget,
            max_new_tokens: request.max_new_tokens,
            text: answer.text,
            token_ids: answer.token_ids,
            stop: answer.stop,
            prompt_tokens: answer.prompt_tokens,
            new_tokens: answer.new_tokens,
            tokens_bounded: answer.tokens_bounded,
            seconds: answer.seconds,
            device: answer.device,
            memory_bytes: answer.memory_bytes,
            system_fingerprint: answer.system_fingerprint,
            retries: answer.retries,
            reused: None,
        }
    }

    /// The answer alone.
    pub fn generation(&self) -> Generation {
        Generation {
            text: self.text.clone(),
            token_ids: self.token_ids.clone(),
            stop: self.stop,
            prompt_tokens: self.prompt_tokens,
            new_tokens: self.new_tokens,
            tokens_bounded: self.tokens_bounded,
            seconds: self.seconds,
            device: self.device.clone(),
            memory_bytes: self.memory_bytes,
            system_fingerprint: self.system_fingerprint.clone(),
            retries: self.retries,
        }
    }

    /// The digest of the recorded input. `None` where it was recorded in a form that this version does not
    /// write, so that its digest can't be computed here.
    ///
    /// # Errors
    /// The input can't be written as canonical JSON.
    pub fn input_digest(&self) -> Result<Option<GenerationDigest>, serde_json::Error> {
        if self.format != INPUT_FORMAT || self.constraint_version != CONSTRAINT_VERSION {
            return Ok(None);
        }
        let request = GenerationRequest {
            messages: self.messages.clone(),
            constraint: self.constraint.clone(),
            input_budget: self.input_budget,
            max_new_tokens: self.max_new_tokens,
        };
        request.digest(&self.model).map(Some)
    }
}
