//! Models behind an OpenAI-compatible server: vLLM, llama.cpp, Ollama, hosted ones.
//!
//! What is asked, and how a server is held to a constraint, is fixed by [`OpenAiOptions`] and known
//! without asking anyone; [`check`](check::check) finds out once what a server can do. A server is not
//! trusted: its replies are bounded in size and time, and half an answer is none. A whole answer is never
//! asked for again, an empty one included. Nothing here knows what a prompt is about.

pub mod check;
pub mod count;
pub mod endpoint;
pub mod key;
pub mod stream;

mod body;
mod retry;
mod session;
mod transport;

use std::path::PathBuf;
use std::time::Duration;

use factum_base::Digest;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;

pub use check::{CheckReport, check};
pub use count::TokenCounting;
pub use endpoint::{BaseUrl, UrlError};
pub use key::{ApiKey, KeyError};

use self::retry::Terms;
use self::session::Session;
use crate::chat::{ChatMessage, ChatModel, ChatReply, ChatRequest, ChatSink};
use crate::error::ModelError;
use crate::generation::Generation;
use crate::generator::{
    BoxFuture, Capabilities, ConstraintKind, Control, GenerationSink, Generator, TokenCount,
};
use crate::identity::ModelIdentity;
use crate::request::{GenerationRequest, Message, Role};

/// How a server is told what an answer is held to. Part of the identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConstraintMode {
    /// `response_format: json_schema`, with the schema.
    JsonSchema,
    /// `response_format: json_object`: some JSON object.
    JsonObject,
    /// Not at all; the prompt has to say it.
    Plain,
}

impl ConstraintMode {
    /// Its name in configuration and identity.
    pub const fn word(self) -> &'static str {
        match self {
            Self::JsonSchema => "json_schema",
            Self::JsonObject => "json_object",
            Self::Plain => "plain",
        }
    }
}

/// What the most new tokens are called. Part of the identity where it is not the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitField {
    /// `max_tokens`: understood by nearly all servers.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`: newer hosted models refuse the other.
    MaxCompletionTokens,
}

impl LimitField {
    /// Its name in requests, configuration and identity.
    pub const fn word(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// A server, a model on it, and how it is asked.
#[derive(Debug, Clone)]
pub struct OpenAiOptions {
    /// Where the server is.
    pub url: BaseUrl,
    /// The model's name there.
    pub model: String,
    /// Sent as the query `api-version`, where a server wants one.
    pub api_version: Option<String>,
    /// How constraints are sent.
    pub mode: ConstraintMode,
    /// How the most new tokens are sent.
    pub limit: LimitField,
    /// How prompts are counted.
    pub tokens: TokenCounting,
    /// Sent as a bearer token. Not part of the identity.
    pub key: Option<ApiKey>,
    /// Sends the key alone in a header of this name instead, such as `api-key`. Not part of the identity.
    pub key_header: Option<String>,
    /// Requests under way at the same time, those that wait to be tried again included.
    pub concurrency: usize,
    /// Longest time for one request, all its attempts and waits included, where the caller names none.
    pub deadline: Duration,
    /// Attempts after the first.
    pub retries: u32,
    /// Wait before the second attempt; doubled before each further one, up to half a minute.
    pub first_wait: Duration,
    /// Longest time for a connection.
    pub connect: Duration,
    /// Longest time in which nothing comes. A server that does not stream is silent until it is done.
    pub silence: Duration,
}

impl OpenAiOptions {
    /// A model on a server that knows JSON Schema, with limits that fit a busy server.
    pub fn new(url: BaseUrl, model: impl Into<String>) -> Self {
        Self {
            url,
            model: model.into(),
            api_version: None,
            mode: ConstraintMode::JsonSchema,
            limit: LimitField::default(),
            tokens: TokenCounting::Bound,
            key: None,
            key_header: None,
            concurrency: 8,
            deadline: Duration::from_mins(10),
            retries: 4,
            first_wait: Duration::from_millis(500),
            connect: Duration::from_secs(10),
            silence: Duration::from_mins(5),
        }
    }

    /// The identity of the generator that these options make. Asks no server; reads the tokenizer's file,
    /// where there is one.
    ///
    /// # Errors
    /// Options that can't be used.
    pub fn identity(&self) -> Result<ModelIdentity, OpenAiError> {
        self.read()?.identity(self)
    }

    fn read(&self) -> Result<Checked, OpenAiError> {
        if self.model.is_empty() || self.model.chars().any(char::is_control) {
            return Err(OpenAiError::Model);
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        if let Some(version) = &self.api_version
            && (version.is_empty() || !version.chars().all(plain))
        {
            return Err(OpenAiError::ApiVersion);
        }
        let TokenCounting::TokenizerFile { path, .. } = &self.tokens else {
            return Ok(Checked { tokenizer: None });
        };
        let bytes = std::fs::read(path).map_err(|error| OpenAiError::Tokenizer {
            path: path.clone(),
            message: error.to_string(),
        })?;
        Ok(Checked {
            tokenizer: Some(bytes),
        })
    }
}

/// Options that were looked through, with the file that they name.
struct Checked {
    tokenizer: Option<Vec<u8>>,
}

impl Checked {
    fn identity(&self, options: &OpenAiOptions) -> Result<ModelIdentity, OpenAiError> {
        let mut settings = json!({"temperature": 0, "seed": 0, "n": 1, "stream": true});
        if options.limit != LimitField::default() {
            settings["limit_field"] = options.limit.word().into();
        }
        let identity = ModelIdentity::new(json!({
            "kind": "openai",
            "url": options.url.as_str(),
            "model": options.model,
            "api_version": options.api_version,
            "constraint_mode": options.mode.word(),
            "protocol": body::PROTOCOL,
            "settings": settings,
            "token_counting": self.counting(&options.tokens),
        }));
        match identity.canonical() {
            Ok(_) => Ok(identity),
            Err(_) => Err(OpenAiError::Model),
        }
    }

    fn counting(&self, counting: &TokenCounting) -> Value {
        match counting {
            TokenCounting::Bound => json!({
                "method": "bound",
                "per_message": count::BOUND_PER_MESSAGE,
                "per_prompt": count::BOUND_PER_PROMPT,
            }),
            TokenCounting::LlamaCpp => json!({"method": "llama_cpp"}),
            TokenCounting::Vllm => json!({"method": "vllm"}),
            TokenCounting::TokenizerFile {
                per_message,
                per_prompt,
                ..
            } => {
                let bytes = self.tokenizer.as_deref().unwrap_or_default();
                json!({
                    "method": "tokenizer_file",
                    "sha256": Digest::<TokenizerFile>::of(bytes).to_hex(),
                    "per_message": per_message,
                    "per_prompt": per_prompt,
                })
            }
        }
    }
}

// What the digest of a tokenizer's file is a digest of.
enum TokenizerFile {}

/// Why there is no generator.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OpenAiError {
    /// The URL can't be used.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The key can't be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The model's name is empty or has control characters.
    #[error("the model's name is empty or has control characters")]
    Model,
    /// The API version has characters other than letters, digits, `-`, `.` and `_`.
    #[error("an API version has only letters, digits, '-', '.' and '_'")]
    ApiVersion,
    /// The key can't be sent in a header of this name.
    #[error("the key can't be sent in a header {0:?}")]
    KeyHeader(String),
    /// The system's certificates can't be read.
    #[error("the system's certificates can't be read: {0}")]
    Roots(String),
    /// The tokenizer's file can't be used.
    #[error("the tokenizer {path} can't be used: {message}")]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// Built without the feature `tokenizer-file`.
    #[error(
        "this build can't read a tokenizer file: build with --features tokenizer-file, or count by bound"
    )]
    NoTokenizers,
}

/// A model behind a server.
#[derive(Debug)]
pub struct OpenAiGenerator {
    identity: ModelIdentity,
    mode: ConstraintMode,
    concurrency: usize,
    deadline: Duration,
    session: Session,
}

impl OpenAiGenerator {
    /// A generator; it asks nothing yet.
    ///
    /// # Errors
    /// Options that can't be used.
    pub fn new(options: &OpenAiOptions) -> Result<Self, OpenAiError> {
        let checked = options.read()?;
        Ok(Self {
            identity: checked.identity(options)?,
            mode: options.mode,
            concurrency: options.concurrency.max(1),
            deadline: options.deadline,
            session: Session::new(options, checked.tokenizer.as_deref())?,
        })
    }

    async fn answer(
        &self,
        request: &GenerationRequest,
        terms: &Terms<'_>,
        sink: &dyn GenerationSink,
    ) -> Result<Generation, ModelError> {
        let counted = self.session.count(&request.messages, terms).await?;
        if counted.tokens > request.input_budget {
            return Err(ModelError::OverBudget {
                tokens: counted.tokens,
                budget: request.input_budget,
            });
        }
        self.session
            .chat(self.mode, request, counted, terms, sink)
            .await
    }
}

impl Generator for OpenAiGenerator {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    /// A grounded constraint goes as the JSON Schema of it, so ids are held, and substrings are not:
    /// [`ConstraintKind::Grounded`] is not among the kinds.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            constraints: match self.mode {
                ConstraintMode::JsonSchema => vec![ConstraintKind::JsonSchema],
                ConstraintMode::JsonObject | ConstraintMode::Plain => Vec::new(),
            },
            parallel: self.concurrency,
        }
    }

    fn count_tokens<'a>(
        &'a self,
        messages: &'a [Message],
    ) -> BoxFuture<'a, Result<TokenCount, ModelError>> {
        Box::pin(async move {
            let terms = Terms::starting_now(self.deadline);
            self.session.count(messages, &terms).await
        })
    }

    fn generate<'a>(
        &'a self,
        requests: &'a [GenerationRequest],
        control: &'a Control,
        sink: &'a dyn GenerationSink,
    ) -> BoxFuture<'a, ()> {
        let limit = control.deadline.unwrap_or(self.deadline);
        Box::pin(
            futures_util::stream::iter(requests.iter().enumerate()).for_each_concurrent(
                self.concurrency,
                move |(place, request)| async move {
                    let terms = Terms::of(limit, control, place);
                    let answer = self.answer(request, &terms, sink);
                    let outcome = control.cancel.run_until_cancelled(answer).await;
                    sink.finished(place, outcome.unwrap_or(Err(ModelError::Cancelled)));
                },
            ),
        )
    }
}

impl ChatModel for OpenAiGenerator {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn respond<'a>(
        &'a self,
        request: &'a ChatRequest,
        control: &'a Control,
        sink: &'a dyn ChatSink,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        let limit = control.deadline.unwrap_or(self.deadline);
        Box::pin(async move {
            let response = async {
                let terms = Terms::of(limit, control, 0);
                let counted = self.session.count(&flattened(request), &terms).await?;
                if counted.tokens > request.input_budget {
                    return Err(ModelError::OverBudget {
                        tokens: counted.tokens,
                        budget: request.input_budget,
                    });
                }
                self.session.respond(request, counted, &terms, sink).await
            };
            let outcome = control.cancel.run_until_cancelled(response).await;
            outcome.unwrap_or(Err(ModelError::Cancelled))
        })
    }
}

// What a tokenizer's route can count: plain messages, with the tools told of in the first.
fn flattened(request: &ChatRequest) -> Vec<Message> {
    let tools: String = request
        .tools
        .iter()
        .map(|tool| format!("{}{}{}", tool.name, tool.description, tool.parameters))
        .collect();
    let mut messages: Vec<Message> = request
        .messages
        .iter()
        .map(|message| {
            let role = match message {
                ChatMessage::System(_) => Role::System,
                ChatMessage::Assistant { .. } => Role::Assistant,
                ChatMessage::User(_) | ChatMessage::Tool { .. } => Role::User,
            };
            Message::new(role, message.words())
        })
        .collect();
    if let Some(first) = messages.first_mut() {
        first.content.push_str(&tools);
    }
    messages
}
