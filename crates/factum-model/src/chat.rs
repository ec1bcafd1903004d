//! Conversations with tools: messages with calls in, one response out. Apart from [`crate::Generator`], which makes
//! one answer for one prompt and is keyed and recorded: what is said in a conversation is not.

use std::fmt::Debug;

use serde_json::Value;

use crate::error::ModelError;
use crate::generator::{BoxFuture, Control};
use crate::identity::ModelIdentity;

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatMessage {
    /// The instructions.
    System(String),
    /// To the model.
    User(String),
    /// From the model.
    Assistant {
        /// Its words; may be none.
        text: String,
        /// Its calls.
        calls: Vec<ChatCall>,
    },
    /// What a tool answered.
    Tool {
        /// The call that it answers.
        call_id: String,
        /// The answer.
        text: String,
    },
}

impl ChatMessage {
    /// All its words, for a bound on its length.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::System(text) | Self::User(text) | Self::Tool { text, .. } => text.clone(),
            Self::Assistant { text, calls } => {
                let calls = calls
                    .iter()
                    .map(|call| format!("{}{}", call.name, call.arguments));
                std::iter::once(text.clone()).chain(calls).collect()
            }
        }
    }
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChatCall {
    /// Names the call within the conversation; whoever keeps the conversation may give it another name.
    pub id: String,
    /// The tool, as the model wrote it.
    pub name: String,
    /// Its arguments, as the model wrote them: JSON, if it kept to the form.
    pub arguments: String,
}

/// A tool that may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSpec {
    /// Its name.
    pub name: &'static str,
    /// What it does, in words for the model.
    pub description: &'static str,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// What a response is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wanted {
    /// An answer, or a call of any tool.
    #[default]
    Anything,
    /// A call of this tool: the last message asks for it. A model in this process is held to it.
    Call(&'static str),
}

/// One request of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatRequest {
    /// All of it, made anew for each request.
    pub messages: Vec<ChatMessage>,
    /// Tools that may be called; with none, an answer is all that is left.
    pub tools: Vec<ToolSpec>,
    /// What is asked for.
    pub wanted: Wanted,
    /// Ids that may be cited: a model in this process is held to them.
    pub citable: Vec<String>,
    /// Most tokens of the request, as far as they can be counted. A longer one is refused, never cut.
    pub input_budget: u32,
    /// Most tokens of the response.
    pub max_new_tokens: u32,
}

/// One response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatReply {
    /// Its words; may be none.
    pub text: String,
    /// Its calls.
    pub calls: Vec<ChatCall>,
    /// The limit of new tokens ended it.
    pub length: bool,
    /// Tokens of the request.
    pub prompt_tokens: u32,
    /// Tokens of the response.
    pub new_tokens: u32,
    /// The counts are upper bounds.
    pub tokens_bounded: bool,
    /// Attempts that gave no whole response before this one did.
    pub retries: u32,
}

/// Where the words of a response go while it is made, for people who watch. They are no answer until it is whole.
pub trait ChatSink: Send + Sync {
    /// More words.
    fn text(&self, piece: &str);

    /// The words so far were lost; the response begins again.
    fn restart(&self) {}
}

/// Nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unheard;

impl ChatSink for Unheard {
    fn text(&self, _: &str) {}
}

/// A model that holds conversations.
pub trait ChatModel: Send + Sync + Debug {
    /// What model it is.
    fn identity(&self) -> &ModelIdentity;

    /// Makes one response.
    ///
    /// # Errors
    /// There is no whole response.
    fn respond<'a>(
        &'a self,
        request: &'a ChatRequest,
        control: &'a Control,
        sink: &'a dyn ChatSink,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>>;
}
