//! The trait that every source of generations implements.

use std::fmt::Debug;
use std::pin::Pin;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::error::ModelError;
use crate::gate::Gate;
use crate::generation::Generation;
use crate::identity::ModelIdentity;
use crate::request::{GenerationRequest, Message};

/// A future on the heap, so that the trait can be used as an object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What makes generations.
pub trait Generator: Send + Sync + Debug {
    /// All of it that can change an answer.
    fn identity(&self) -> &ModelIdentity;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// The length of `messages` in tokens with the chat template around them.
    ///
    /// # Errors
    /// The server does not answer, or the template refuses the messages.
    fn count_tokens<'a>(
        &'a self,
        messages: &'a [Message],
    ) -> BoxFuture<'a, Result<TokenCount, ModelError>>;

    /// Makes one generation for each request, in whatever order and company it sees fit, and hands each
    /// to `sink` exactly once as soon as it is whole or lost. Which requests are made together must not
    /// change an answer, unless the identity says that it does.
    ///
    /// A cancelled call ends soon: requests that were not finished are handed over as
    /// [`ModelError::Cancelled`]. So are those that [`Control::admits`] does not admit; it is asked before
    /// anything of a request is read or sent.
    fn generate<'a>(
        &'a self,
        requests: &'a [GenerationRequest],
        control: &'a Control,
        sink: &'a dyn GenerationSink,
    ) -> BoxFuture<'a, ()>;
}

/// Where generations go.
pub trait GenerationSink: Send + Sync {
    /// The request at place `request` has come to an end.
    fn finished(&self, request: usize, outcome: Result<Generation, ModelError>);

    /// So many more tokens were made, by any request; for people who watch.
    fn tokens(&self, new: u64) {
        let _ = new;
    }

    /// More of the text of the request at place `request`, for people who watch: it is no answer until it is whole. A piece may
    /// begin or end within a character.
    fn piece(&self, request: usize, bytes: &[u8]) {
        let _ = (request, bytes);
    }
}

/// Answers requests one after another, by a generator that has its answers at hand.
pub(crate) async fn answer_in_turn(
    requests: &[GenerationRequest],
    control: &Control,
    sink: &dyn GenerationSink,
    answer: impl Fn(&GenerationRequest) -> Result<Generation, ModelError> + Sync,
) {
    for (place, request) in requests.iter().enumerate() {
        let outcome = if control.admits(place).await {
            answer(request)
        } else {
            Err(ModelError::Cancelled)
        };
        sink.finished(place, outcome);
    }
}

/// How a call may be stopped.
#[derive(Debug, Clone, Default)]
pub struct Control {
    /// Ends the call between tokens.
    pub cancel: CancellationToken,
    /// Longest time for one request, all its retries included. None: the generator's own limit.
    pub deadline: Option<Duration>,
    /// Where leave is asked for before a request is begun. None: all may begin.
    pub gate: Option<Gate>,
}

/// A length in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenCount {
    /// How many; the most it can be where it is not exact.
    pub tokens: u32,
    /// Counted by the model's own tokenizer, rather than bounded from above.
    pub exact: bool,
}

/// What a generator can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// The kinds of constraint it holds a generation to while decoding.
    pub constraints: Vec<ConstraintKind>,
    /// Requests worked on at the same time.
    pub parallel: usize,
}

impl Capabilities {
    /// Whether decoding can be held to this kind of constraint.
    pub fn holds(&self, kind: ConstraintKind) -> bool {
        self.constraints.contains(&kind)
    }
}

/// Kinds of constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConstraintKind {
    /// JSON by a JSON Schema.
    JsonSchema,
    /// Items that cite only given sources, with values that are substrings of them.
    Grounded,
}
