//! What is said to one server: chat completions, counts of tokens, the list of its models. Puts together
//! bodies, attempts and replies, and keeps the key out of every error.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hyper::{Method, Uri};
use serde_json::Value;

use super::body::{chat_body, tool_body};
#[cfg(feature = "tokenizer-file")]
use super::count::FileCounter;
use super::count::{
    TokenCounting, read_count, read_template, template_body, tokenize_messages_body,
    tokenize_prompt_body, upper_bound,
};
use super::endpoint::Routes;
use super::retry::{Retry, Terms, Tried};
use super::stream::{ChatAnswer, ChatFault, ChatStream, parse_chat_body, parse_tool_body};
use super::transport::{Fault, Patience, Reply, Transport};
use super::{ApiKey, ConstraintMode, LimitField, OpenAiError, OpenAiOptions};
use crate::chat::{ChatReply, ChatRequest, ChatSink};
use crate::error::ModelError;
use crate::generation::{Generation, StopReason};
use crate::generator::{GenerationSink, TokenCount};
use crate::request::{GenerationRequest, Message};

// A streamed token is an event of some hundred bytes; long words and names of servers make it more.
const BYTES_PER_TOKEN: u64 = 1024;
const BYTES_PER_REPLY: u64 = 256 * 1024;
const MOST_BYTES: u64 = 32 * 1024 * 1024;

// Longest waits for what follows a whole answer: its usage, and the end of the connection's reply.
const FOR_USAGE: Duration = Duration::from_secs(2);
const FOR_THE_END: Duration = Duration::from_millis(100);

/// One server, and how it is asked.
#[derive(Debug)]
pub(super) struct Session {
    transport: Transport,
    routes: Routes,
    retry: Retry,
    model: String,
    limit: LimitField,
    key: Option<ApiKey>,
    counter: Counter,
}

#[derive(Debug)]
enum Counter {
    Bound,
    LlamaCpp,
    Vllm,
    #[cfg(feature = "tokenizer-file")]
    File(Box<FileCounter>),
}

impl Counter {
    fn new(counting: &TokenCounting, tokenizer: Option<&[u8]>) -> Result<Self, OpenAiError> {
        match counting {
            TokenCounting::Bound => Ok(Self::Bound),
            TokenCounting::LlamaCpp => Ok(Self::LlamaCpp),
            TokenCounting::Vllm => Ok(Self::Vllm),
            #[cfg(feature = "tokenizer-file")]
            TokenCounting::TokenizerFile {
                path,
                per_message,
                per_prompt,
            } => FileCounter::new(tokenizer.unwrap_or_default(), *per_message, *per_prompt)
                .map(|counter| Self::File(Box::new(counter)))
                .map_err(|message| OpenAiError::Tokenizer {
                    path: path.clone(),
                    message,
                }),
            #[cfg(not(feature = "tokenizer-file"))]
            TokenCounting::TokenizerFile { .. } => {
                let _ = tokenizer;
                Err(OpenAiError::NoTokenizers)
            }
        }
    }
}

impl Session {
    pub(super) fn new(
        options: &OpenAiOptions,
        tokenizer: Option<&[u8]>,
    ) -> Result<Self, OpenAiError> {
        let own = options.key_header.as_deref();
        let key = options.key.as_ref().map(|key| key.header(own));
        let key = key.transpose()?;
        let patience = Patience {
            connect: options.connect,
            silence: options.silence,
        };
        Ok(Self {
            transport: Transport::new(options.url.is_https(), key, patience)
                .map_err(|error| OpenAiError::Roots(error.to_string()))?,
            routes: Routes::new(&options.url, options.api_version.as_deref())?,
            retry: Retry {
                retries: options.retries,
                first_wait: options.first_wait,
            },
            model: options.model.clone(),
            limit: options.limit,
            key: options.key.clone(),
            counter: Counter::new(&options.tokens, tokenizer)?,
        })
    }

    /// The same, with the most new tokens called otherwise.
    pub(super) fn with_limit(self, limit: LimitField) -> Self {
        Self { limit, ..self }
    }

    /// One generation.
    pub(super) async fn chat(
        &self,
        mode: ConstraintMode,
        request: &GenerationRequest,
        counted: TokenCount,
        terms: &Terms<'_>,
        sink: &dyn GenerationSink,
    ) -> Result<Generation, ModelError> {
        let body = chat_body(&self.model, mode, self.limit, request)
            .map_err(|error| ModelError::BadConstraint(error.to_string()))?;
        let body = Bytes::from(body);
        let limit = reply_limit(request.max_new_tokens);
        let tried = self
            .retry
            .run(terms, || self.ask_chat(body.clone(), limit, sink, false))
            .await
            .map_err(|error| self.redact(error))?;
        Ok(self.generation(&tried, counted, terms))
    }

    /// One response of a conversation.
    pub(super) async fn respond(
        &self,
        request: &ChatRequest,
        counted: TokenCount,
        terms: &Terms<'_>,
        sink: &dyn ChatSink,
    ) -> Result<ChatReply, ModelError> {
        let body = tool_body(&self.model, self.limit, request)
            .map_err(|error| ModelError::BadConstraint(error.to_string()))?;
        let body = Bytes::from(body);
        let limit = reply_limit(request.max_new_tokens);
        let watch = Watch::new(sink);
        let tried = self
            .retry
            .run(terms, || {
                watch.begin();
                self.ask_chat(body.clone(), limit, &watch, true)
            })
            .await
            .map_err(|error| self.redact(error))?;
        let generation = self.generation(&tried, counted, terms);
        Ok(ChatReply {
            text: generation.text,
            calls: tried.value.calls,
            length: generation.stop == StopReason::Length,
            prompt_tokens: generation.prompt_tokens,
            new_tokens: generation.new_tokens,
            tokens_bounded: generation.tokens_bounded,
            retries: generation.retries,
        })
    }

    fn generation(
        &self,
        tried: &Tried<ChatAnswer>,
        counted: TokenCount,
        terms: &Terms<'_>,
    ) -> Generation {
        let answer = &tried.value;
        let bytes = u32::try_from(answer.text.len()).unwrap_or(u32::MAX);
        let prompt_is_bounded = answer.prompt_tokens.is_none() && !counted.exact;
        Generation {
            token_ids: None,
            stop: if answer.length {
                StopReason::Length
            } else {
                StopReason::End
            },
            prompt_tokens: answer.prompt_tokens.unwrap_or(counted.tokens),
            new_tokens: answer.new_tokens.unwrap_or(bytes),
            tokens_bounded: answer.new_tokens.is_none() || prompt_is_bounded,
            seconds: terms.elapsed().as_secs_f64(),
            device: None,
            memory_bytes: None,
            system_fingerprint: answer
                .system_fingerprint
                .clone()
                .map(|text| self.hide(text)),
            retries: tried.lost,
            text: answer.text.clone(),
        }
    }

    async fn ask_chat<W: Watching + ?Sized>(
        &self,
        body: Bytes,
        limit: u64,
        sink: &W,
        with_tools: bool,
    ) -> Result<ChatAnswer, Fault> {
        let mut reply = self
            .transport
            .send(Method::POST, &self.routes.chat, body, limit)
            .await?;
        let answer = if reply.content_type.starts_with("text/event-stream") {
            read_events(reply, sink, with_tools).await?
        } else if reply.content_type.is_empty() || reply.content_type.contains("json") {
            read_body(&reply.whole().await?, sink, with_tools)?
        } else {
            let said = super::stream::shown(&reply.content_type);
            return Err(Fault::Broken(format!("the reply is of type {said:?}")));
        };
        match &self.key {
            Some(key)
                if key.is_given_away_by(&answer.text)
                    || answer
                        .calls
                        .iter()
                        .any(|call| key.is_given_away_by(&call.arguments)) =>
            {
                Err(Fault::Unusable("the answer repeats the API key".to_owned()))
            }
            _ => Ok(answer),
        }
    }

    /// The length of messages, in the way that is configured.
    pub(super) async fn count(
        &self,
        messages: &[Message],
        terms: &Terms<'_>,
    ) -> Result<TokenCount, ModelError> {
        let (tokens, exact) = match &self.counter {
            Counter::Bound => (upper_bound(messages), false),
            Counter::LlamaCpp => (self.count_by_llama_cpp(messages, terms).await?, true),
            Counter::Vllm => (self.count_by_vllm(messages, terms).await?, true),
            #[cfg(feature = "tokenizer-file")]
            Counter::File(counter) => {
                let tokens = counter.count(messages).map_err(ModelError::Engine)?;
                (tokens, false)
            }
        };
        Ok(TokenCount { tokens, exact })
    }

    pub(super) async fn count_by_llama_cpp(
        &self,
        messages: &[Message],
        terms: &Terms<'_>,
    ) -> Result<u32, ModelError> {
        let body = template_body(messages);
        let limit = prompt_limit(messages);
        let prompt = self
            .ask(
                &self.routes.apply_template,
                &body,
                limit,
                terms,
                read_template,
            )
            .await
            .map_err(|error| match error {
                ModelError::Status {
                    status: 400,
                    message,
                    ..
                } => ModelError::Template(message),
                other => other,
            })?;
        let body = tokenize_prompt_body(&prompt);
        self.ask(&self.routes.tokenize, &body, limit, terms, read_count)
            .await
    }

    pub(super) async fn count_by_vllm(
        &self,
        messages: &[Message],
        terms: &Terms<'_>,
    ) -> Result<u32, ModelError> {
        let body = tokenize_messages_body(&self.model, messages);
        let limit = prompt_limit(messages);
        self.ask(&self.routes.tokenize, &body, limit, terms, read_count)
            .await
    }

    /// The names of the server's models.
    pub(super) async fn models(&self, terms: &Terms<'_>) -> Result<Vec<String>, ModelError> {
        let attempt = || async {
            let mut reply = self
                .transport
                .send(Method::GET, &self.routes.models, Bytes::new(), MOST_BYTES)
                .await?;
            read_models(&reply.whole().await?)
        };
        let tried = self.retry.run(terms, attempt).await;
        let names = tried.map_err(|error| self.redact(error))?.value;
        Ok(names.into_iter().map(|name| self.hide(name)).collect())
    }

    async fn ask<T>(
        &self,
        uri: &Uri,
        body: &Value,
        limit: u64,
        terms: &Terms<'_>,
        read: fn(&[u8]) -> Result<T, Fault>,
    ) -> Result<T, ModelError> {
        let body = Bytes::from(body.to_string());
        let attempt = || async {
            let mut reply = self
                .transport
                .send(Method::POST, uri, body.clone(), limit)
                .await?;
            read(&reply.whole().await?)
        };
        let tried = self.retry.run(terms, attempt).await;
        tried
            .map(|tried| tried.value)
            .map_err(|error| self.redact(error))
    }

    fn hide(&self, text: String) -> String {
        match &self.key {
            Some(key) => key.redact(text),
            None => text,
        }
    }

    // Whatever a server or the network says may repeat what it was sent.
    fn redact(&self, error: ModelError) -> ModelError {
        match error {
            ModelError::Unreachable { message, attempts } => ModelError::Unreachable {
                message: self.hide(message),
                attempts,
            },
            ModelError::Certificate(message) => ModelError::Certificate(self.hide(message)),
            ModelError::Status {
                status,
                message,
                attempts,
            } => ModelError::Status {
                status,
                message: self.hide(message),
                attempts,
            },
            ModelError::BadReply { message, attempts } => ModelError::BadReply {
                message: self.hide(message),
                attempts,
            },
            other => other,
        }
    }
}

// The longest reply that so many tokens can need.
fn reply_limit(max_new_tokens: u32) -> u64 {
    (BYTES_PER_REPLY + u64::from(max_new_tokens) * BYTES_PER_TOKEN).min(MOST_BYTES)
}

// A template or a list of tokens is not longer than some bytes for each byte of the prompt.
fn prompt_limit(messages: &[Message]) -> u64 {
    (BYTES_PER_REPLY + u64::from(upper_bound(messages)) * 16).min(MOST_BYTES)
}

fn read_models(reply: &[u8]) -> Result<Vec<String>, Fault> {
    let value: Value = serde_json::from_slice(reply)
        .map_err(|error| Fault::Broken(format!("not a list of models: {error}")))?;
    let list = value
        .get("data")
        .and_then(Value::as_array)
        .ok_or_else(|| Fault::Unusable("not a list of models: no data".to_owned()))?;
    let name = |model: &Value| model.get("id")?.as_str().map(str::to_owned);
    Ok(list.iter().filter_map(name).collect())
}

fn chat_fault(fault: &ChatFault) -> Fault {
    if fault.is_final() {
        Fault::Unusable(fault.to_string())
    } else {
        Fault::Broken(fault.to_string())
    }
}

// A server that does not say what it sends says it by the first character.
fn read_body<W: Watching + ?Sized>(
    bytes: &[u8],
    sink: &W,
    with_tools: bool,
) -> Result<ChatAnswer, Fault> {
    let answer = match (bytes.trim_ascii_start().starts_with(b"{"), with_tools) {
        (true, false) => parse_chat_body(bytes),
        (true, true) => parse_tool_body(bytes),
        (false, _) => {
            let mut stream = new_stream(with_tools);
            stream.push(bytes).and_then(|()| stream.finish())
        }
    }
    .map_err(|fault| chat_fault(&fault))?;
    sink.seen(answer.new_tokens.unwrap_or(0).into(), &answer.text);
    Ok(answer)
}

fn new_stream(with_tools: bool) -> ChatStream {
    if with_tools {
        ChatStream::with_tools()
    } else {
        ChatStream::default()
    }
}

/// Who is told while an answer comes.
trait Watching {
    /// So many pieces more; the text so far.
    fn seen(&self, pieces: u64, text: &str);
}

impl Watching for dyn GenerationSink + '_ {
    fn seen(&self, pieces: u64, _: &str) {
        self.tokens(pieces);
    }
}

/// Hands on what is new of a text that grows, and says when it begins again.
struct Watch<'s> {
    sink: &'s dyn ChatSink,
    told: AtomicUsize,
}

impl<'s> Watch<'s> {
    fn new(sink: &'s dyn ChatSink) -> Self {
        Self {
            sink,
            told: AtomicUsize::new(0),
        }
    }

    fn begin(&self) {
        if self.told.swap(0, Ordering::Relaxed) > 0 {
            self.sink.restart();
        }
    }
}

impl Watching for Watch<'_> {
    fn seen(&self, _: u64, text: &str) {
        let told = self.told.swap(text.len(), Ordering::Relaxed);
        if let Some(new) = text.get(told..).filter(|new| !new.is_empty()) {
            self.sink.text(new);
        }
    }
}

async fn read_events<W: Watching + ?Sized>(
    mut reply: Reply,
    sink: &W,
    with_tools: bool,
) -> Result<ChatAnswer, Fault> {
    let mut stream = new_stream(with_tools);
    while !stream.is_done() {
        match reply.piece().await {
            Ok(Some(bytes)) => {
                let before = stream.pieces();
                stream.push(&bytes).map_err(|fault| chat_fault(&fault))?;
                sink.seen(stream.pieces() - before, stream.text());
            }
            Ok(None) => break,
            // The answer is whole; only its usage is lost.
            Err(_) if stream.is_whole() => break,
            Err(fault) => return Err(fault),
        }
        if stream.is_whole() {
            reply.hurry(FOR_USAGE);
        }
    }
    if stream.is_done() {
        // A connection whose reply was read to its end can be used again.
        reply.hurry(FOR_THE_END);
        let _ = reply.piece().await;
    }
    stream.finish().map_err(|fault| chat_fault(&fault))
}
