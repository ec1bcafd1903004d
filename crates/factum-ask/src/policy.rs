//! The citation policy: an answer that could rest on evidence has to say on what.
//!
//! Pure. It looks at what a model just said and at the ledger, and says what is to be done. What it has done
//! itself it reads from the history, where its notices are typed, so that a notice that never got there is
//! asked again and a text that reads like one changes nothing.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::ledger::{Ending, Ledger, Status};
use crate::message::{History, Response};

/// What a model is told when its answer declares nothing. The same for all: it repeats no one's words.
pub const NOTICE: &str = "Before this answer can be used, say what it rests on: call `cite` with the ids of the passages that support it, \
or with an empty list if none does. Then give the answer again.";

/// The policy of one conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Policy {
    /// Questions that ended in violation; none where the host keeps no state for it.
    violations: Option<BTreeSet<u64>>,
}

/// Why there is no policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// Each would ask for itself.
    #[error("a conversation has one citation policy, not {0}")]
    Several(usize),
}

/// What is to be done after a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It is no ending: carry out its calls.
    Continue,
    /// Nothing stands against it; the end check has the last word.
    Pass,
    /// Queue one notice about this question.
    Ask(u64),
    /// It can't be declared any more: a violation, recorded.
    Violation,
}

/// What the policy looks at.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// All messages, the response included.
    pub history: &'a History,
    /// The ledgers.
    pub ledger: &'a Ledger,
    /// The model can call `cite` once more.
    pub can_cite: bool,
}

/// Tools whose call gives the final answer, and the one that declares.
#[derive(Debug, Clone, Copy)]
pub struct ToolNames<'a> {
    /// Calls of these end a question.
    pub output: &'a [&'a str],
    /// Declares.
    pub cite: &'a str,
}

/// Whether a response ends its question: it calls nothing, or calls a tool that gives the answer.
pub fn is_ending(response: &Response, tools: &ToolNames<'_>) -> bool {
    let output = |name: &str| tools.output.contains(&name);
    response.calls.is_empty() || response.calls.iter().any(|call| output(&call.tool))
}

impl Policy {
    /// A policy whose violations are kept.
    pub fn registered() -> Self {
        Self {
            violations: Some(BTreeSet::new()),
        }
    }

    /// A policy whose host keeps nothing for it: it asks all the same, and records nothing.
    pub const fn unregistered() -> Self {
        Self { violations: None }
    }

    /// The one policy of a conversation.
    ///
    /// # Errors
    /// There are several.
    pub fn only(mut policies: Vec<Self>) -> Result<Self, PolicyError> {
        match policies.len() {
            0 => Ok(Self::unregistered()),
            1 => Ok(policies.remove(0)),
            several => Err(PolicyError::Several(several)),
        }
    }

    /// Questions that ended in violation. Nothing, not even an empty list, where none are kept.
    pub fn published(&self) -> Option<Vec<u64>> {
        Some(self.violations.as_ref()?.iter().copied().collect())
    }

    /// The question ended in violation.
    pub fn is_violated(&self, question: u64) -> bool {
        self.violations
            .as_ref()
            .is_some_and(|all| all.contains(&question))
    }

    fn record(&mut self, question: u64) {
        if let Some(all) = &mut self.violations {
            all.insert(question);
        }
    }

    /// What is to be done about a response.
    pub fn after_response(
        &mut self,
        response: &Response,
        view: &View<'_>,
        tools: &ToolNames<'_>,
    ) -> Step {
        let Some(question) = view.ledger.question() else {
            return Step::Pass;
        };
        if !is_ending(response, tools) {
            return Step::Continue;
        }
        // Carried out, this call will declare.
        let pending = response.calls.iter().any(|call| call.tool == tools.cite);
        if pending || !has_to_declare(view, question) || view.ledger.status() != Status::Missing {
            return Step::Pass;
        }
        if view.history.was_asked(question) {
            return Step::Pass;
        }
        if view.can_cite {
            return Step::Ask(question);
        }
        self.record(question);
        Step::Violation
    }

    /// The last word, at the end of a run. A pause is no end. True for a violation.
    pub fn at_end(&mut self, view: &View<'_>, ending: Ending) -> bool {
        let Some(question) = view.ledger.question() else {
            return false;
        };
        let violated = ending == Ending::Answered
            && has_to_declare(view, question)
            && view.ledger.status() == Status::Missing;
        if violated {
            self.record(question);
        }
        violated
    }
}

/// Evidence came in this question, or something was cited before: then the answer may rest on it.
fn has_to_declare(view: &View<'_>, question: u64) -> bool {
    view.history.has_outcome_since(question) || view.ledger.has_citations()
}
