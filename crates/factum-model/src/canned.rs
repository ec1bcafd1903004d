//! Outputs from a file, for tests and for trying a pipeline without a model.
//!
//! ```json
//! {"outputs": [
//!   {"contains": "Ravensworth", "error": "timeout", "times": 1},
//!   {"contains": "Ravensworth", "text": "{\"claims\":[]}", "stop": "end"},
//!   {"contains": "", "text": "", "stop": "length"}
//! ]}
//! ```
//!
//! An answer without a `stop` ends of itself. The first output whose `contains` is in a request's last message is its answer. An output with an
//! `error` loses the call in that way: always, or only the first `times` times. Tokens are words between
//! white space. Nothing is held to a constraint, and nothing is recorded.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use factum_base::{canonical_json, sha256};
use serde::{Deserialize, Serialize};
use serde_json::json;
use thiserror::Error;

use crate::error::ModelError;
use crate::generation::{Generation, StopReason};
use crate::generator::{
    BoxFuture, Capabilities, Control, GenerationSink, Generator, TokenCount, answer_in_turn,
};
use crate::identity::ModelIdentity;
use crate::request::{GenerationRequest, Message};

/// Why a file of canned outputs can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CannedError {
    /// The file can't be read.
    #[error("{path} can't be read: {message}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// Not JSON of this shape.
    #[error("not a file of canned outputs: {0}")]
    Json(String),
    /// An output with both or neither of `text` and `error`, or with a `stop` or `times` that its kind
    /// does not have.
    #[error("canned output {place} has either text and stop, or error and perhaps times")]
    Output {
        /// Its place, from 0.
        place: usize,
    },
}

/// How a call is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Loss {
    Timeout,
    Unreachable,
    Certificate,
    Status,
    BadReply,
    TooLarge,
    Template,
    Engine,
}

impl Loss {
    fn error(self) -> ModelError {
        let message = "canned".to_owned();
        let attempts = 1;
        match self {
            Self::Timeout => ModelError::Timeout {
                seconds: 1,
                attempts,
            },
            Self::Unreachable => ModelError::Unreachable { message, attempts },
            Self::Certificate => ModelError::Certificate(message),
            Self::Status => ModelError::Status {
                status: 500,
                message,
                attempts,
            },
            Self::BadReply => ModelError::BadReply { message, attempts },
            Self::TooLarge => ModelError::TooLarge { limit: 0 },
            Self::Template => ModelError::Template(message),
            Self::Engine => ModelError::Engine(message),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    outputs: Vec<FileOutput>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileOutput {
    contains: String,
    text: Option<String>,
    stop: Option<StopReason>,
    error: Option<Loss>,
    times: Option<u64>,
}

#[derive(Debug)]
enum Output {
    Answer(CannedAnswer),
    Loss {
        contains: String,
        loss: Loss,
        // None: always.
        times: Option<u64>,
        lost: AtomicU64,
    },
}

#[derive(Debug, Serialize)]
struct CannedAnswer {
    contains: String,
    text: String,
    stop: StopReason,
}

impl Output {
    fn of(output: FileOutput) -> Option<Self> {
        match output {
            FileOutput {
                contains,
                text: Some(text),
                stop,
                error: None,
                times: None,
            } => Some(Self::Answer(CannedAnswer {
                contains,
                text,
                stop: stop.unwrap_or(StopReason::End),
            })),
            FileOutput {
                contains,
                text: None,
                stop: None,
                error: Some(loss),
                times,
            } => Some(Self::Loss {
                contains,
                loss,
                times,
                lost: AtomicU64::new(0),
            }),
            _ => None,
        }
    }

    // None: it does not fit, or has lost all it may.
    fn outcome(&self, text: &str) -> Option<Result<&CannedAnswer, ModelError>> {
        match self {
            Self::Answer(answer) => text.contains(&answer.contains).then_some(Ok(answer)),
            Self::Loss {
                contains,
                loss,
                times,
                lost,
            } => {
                if !text.contains(contains) {
                    return None;
                }
                let before = lost.fetch_add(1, Ordering::Relaxed);
                times
                    .is_none_or(|times| before < times)
                    .then(|| Err(loss.error()))
            }
        }
    }
}

/// Canned outputs.
#[derive(Debug)]
pub struct CannedGenerator {
    identity: ModelIdentity,
    outputs: Vec<Output>,
    calls: AtomicU64,
}

impl CannedGenerator {
    /// Reads a file of outputs.
    ///
    /// # Errors
    /// It can't be read or used.
    pub fn open(path: &Path) -> Result<Self, CannedError> {
        let bytes = std::fs::read(path).map_err(|error| CannedError::Unreadable {
            path: path.to_owned(),
            message: error.to_string(),
        })?;
        Self::from_bytes(&bytes)
    }

    /// Reads outputs.
    ///
    /// The identity holds the SHA-256 of the answers, in order. Losses are not in it: they decide whether
    /// there is an answer, never which, so a pipeline that lost calls can be resumed without them.
    ///
    /// # Errors
    /// They can't be used.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CannedError> {
        let bad = |error: serde_json::Error| CannedError::Json(error.to_string());
        let file: File = serde_json::from_slice(bytes).map_err(bad)?;
        let mut outputs = Vec::with_capacity(file.outputs.len());
        for (place, output) in file.outputs.into_iter().enumerate() {
            outputs.push(Output::of(output).ok_or(CannedError::Output { place })?);
        }
        let answers: Vec<&CannedAnswer> = outputs
            .iter()
            .filter_map(|output| match output {
                Output::Answer(answer) => Some(answer),
                Output::Loss { .. } => None,
            })
            .collect();
        let text = canonical_json(&answers).map_err(bad)?;
        let digest = factum_base::BodyDigest::from_bytes(sha256(text.as_bytes()));
        Ok(Self {
            identity: ModelIdentity::new(json!({"kind": "canned", "sha256": digest.to_hex()})),
            outputs,
            calls: AtomicU64::new(0),
        })
    }

    /// How many requests were made so far, lost ones included, refused ones not.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn answer(&self, request: &GenerationRequest) -> Result<Generation, ModelError> {
        let prompt_tokens = words_of(&request.messages);
        if prompt_tokens > request.input_budget {
            return Err(ModelError::OverBudget {
                tokens: prompt_tokens,
                budget: request.input_budget,
            });
        }
        self.calls.fetch_add(1, Ordering::Relaxed);
        let last = request.messages.last();
        let text = last.map_or("", |message| message.content.as_str());
        let answer = self
            .outputs
            .iter()
            .find_map(|output| output.outcome(text))
            .ok_or(ModelError::NotCanned)??;
        Ok(Generation {
            text: answer.text.clone(),
            token_ids: None,
            stop: answer.stop,
            prompt_tokens,
            new_tokens: words(&answer.text),
            tokens_bounded: false,
            seconds: 0.0,
            device: None,
            memory_bytes: None,
            system_fingerprint: None,
            retries: 0,
        })
    }
}

impl Generator for CannedGenerator {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            constraints: Vec::new(),
            parallel: 1,
        }
    }

    fn count_tokens<'a>(
        &'a self,
        messages: &'a [Message],
    ) -> BoxFuture<'a, Result<TokenCount, ModelError>> {
        let tokens = words_of(messages);
        Box::pin(async move {
            Ok(TokenCount {
                tokens,
                exact: true,
            })
        })
    }

    fn generate<'a>(
        &'a self,
        requests: &'a [GenerationRequest],
        control: &'a Control,
        sink: &'a dyn GenerationSink,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            answer_in_turn(requests, control, sink, |request| self.answer(request)).await;
        })
    }
}

fn words(text: &str) -> u32 {
    u32::try_from(text.split_whitespace().count()).unwrap_or(u32::MAX)
}

fn words_of(messages: &[Message]) -> u32 {
    messages
        .iter()
        .map(|message| words(&message.content))
        .fold(0, u32::saturating_add)
}
