//! A conversation as it is kept: state and history in one record, written together or not at all.
//!
//! It is written after every step, so that a process that dies at any moment leaves a conversation that can be
//! resumed. What can be derived (status, capsule) or belongs to one run (budgets) is never kept.

use factum_base::{CaseId, DocumentId, PrincipalId};
use factum_engine::Workspace;
use factum_store::ConversationRow;
use serde::{Deserialize, Serialize};

use crate::answer::{Counts, EmbeddingsUsed, Searched};
use crate::compaction::Form;
use crate::error::AskError;
use crate::ledger::Ledger;
use crate::message::{History, Message, Part, Ref};
use crate::policy::Policy;

const FORMAT: &str = "factum/conversation-state/1";

/// What is kept beside the messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    format: String,
    pub(crate) cases: Vec<CaseId>,
    pub(crate) compact: bool,
    pub(crate) ledger: Ledger,
    pub(crate) policy: Policy,
    pub(crate) answers: Vec<Answered>,
    /// What was asked last: a question that was not finished is finished by it.
    #[serde(default)]
    asked_of: Option<String>,
    /// The state before the question under way.
    before: Option<Box<Before>>,
    /// What the question under way came to before this step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) so_far: Option<SoFar>,
}

/// What a question has come to, for an answer that is finished by another process than it was begun by.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct SoFar {
    pub(crate) searches: Vec<Searched>,
    pub(crate) counts: Counts,
    /// Vectors that were made.
    #[serde(default)]
    pub(crate) vectors: u64,
    pub(crate) seconds: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Before {
    ledger: Ledger,
    policy: Policy,
    messages: u64,
}

/// What is kept of an answer that was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answered {
    pub(crate) question: u64,
    pub(crate) at: i64,
    pub(crate) generator: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) embeddings: Option<EmbeddingsUsed>,
    /// The message that holds it; none where the model said nothing.
    pub(crate) message: Option<u64>,
    /// What was declared; none where nothing was.
    pub(crate) declared: Option<Vec<Ref>>,
    pub(crate) searches: Vec<Searched>,
    pub(crate) counts: Counts,
    pub(crate) seconds: f64,
}

/// How a conversation begins.
#[derive(Debug, Clone)]
pub struct Beginning {
    /// The case files; at least one.
    pub cases: Vec<CaseId>,
    /// Only these documents are searched; all where there are none.
    pub documents: Vec<DocumentId>,
    /// Earlier evidence becomes receipts and a capsule in later requests.
    pub compact: bool,
    /// What it is called.
    pub title: String,
}

/// A conversation over case files.
#[derive(Debug)]
pub struct Conversation {
    pub(crate) workspace: Workspace,
    pub(crate) principal: PrincipalId,
    pub(crate) kept: Kept,
    pub(crate) history: History,
    row: ConversationRow,
    /// Messages that the record has.
    saved: u64,
}

impl Conversation {
    /// Begins a conversation.
    ///
    /// # Errors
    /// A case file is unknown or hidden, or the store can't be written.
    pub async fn begin(
        workspace: &Workspace,
        principal: &PrincipalId,
        beginning: Beginning,
    ) -> Result<Self, AskError> {
        let mut cases = beginning.cases;
        cases.sort();
        cases.dedup();
        let mut ledger = Ledger::new(cases.iter().map(ToString::to_string));
        for case in &cases {
            let documents = beginning
                .documents
                .iter()
                .map(ToString::to_string)
                .collect();
            ledger.set_filter(case.as_str(), documents)?;
        }
        let kept = Kept {
            format: FORMAT.to_owned(),
            cases,
            compact: beginning.compact,
            ledger,
            policy: Policy::registered(),
            answers: Vec::new(),
            asked_of: None,
            before: None,
            so_far: None,
        };
        let title: String = beginning.title.chars().take(120).collect();
        let state = serde_json::to_vec(&kept)?;
        let row = workspace
            .new_conversation(principal, &kept.cases, &title, &state)
            .await?;
        Ok(Self {
            workspace: workspace.clone(),
            principal: principal.clone(),
            kept,
            history: History::default(),
            row,
            saved: 0,
        })
    }

    /// Opens a principal's own conversation.
    ///
    /// # Errors
    /// It has none of that id, or the record is damaged.
    pub async fn open(
        workspace: &Workspace,
        principal: &PrincipalId,
        id: &str,
    ) -> Result<Self, AskError> {
        let stored = workspace.conversation(principal, id).await?;
        let messages: Result<Vec<Message>, _> = stored
            .messages
            .iter()
            .map(|body| serde_json::from_slice(body))
            .collect();
        Ok(Self {
            workspace: workspace.clone(),
            principal: principal.clone(),
            kept: serde_json::from_slice(&stored.state)?,
            history: History::restored(messages?),
            saved: stored.row.messages,
            row: stored.row,
        })
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.row.conversation_id
    }

    /// What it is called: its first question.
    pub fn title(&self) -> &str {
        &self.row.title
    }

    /// Its case files.
    pub fn cases(&self) -> &[CaseId] {
        &self.kept.cases
    }

    /// When it began and when it was last written, in Unix milliseconds.
    pub const fn times(&self) -> (i64, i64) {
        (self.row.created_at, self.row.changed_at)
    }

    /// All messages.
    pub const fn history(&self) -> &History {
        &self.history
    }

    /// The ledgers.
    pub const fn ledger(&self) -> &Ledger {
        &self.kept.ledger
    }

    /// Questions that ended in violation.
    pub fn violations(&self) -> Vec<u64> {
        self.kept.policy.published().unwrap_or_default()
    }

    /// The question that is not finished, in its words.
    pub fn pending(&self) -> Option<&str> {
        let question = self
            .kept
            .ledger
            .in_progress()
            .then(|| self.kept.ledger.question())??;
        Some(self.question_text(question))
    }

    pub(crate) fn form(&self) -> Form {
        Form {
            compact: self.kept.compact,
            several: self.kept.cases.len() > 1,
        }
    }

    pub(crate) fn question_text(&self, question: u64) -> &str {
        let first = self.history.since(question).first();
        let text = first.and_then(|message| match message {
            Message::Request(parts) => parts.iter().find_map(|part| match part {
                Part::Question { text } => Some(text.as_str()),
                _ => None,
            }),
            Message::Response(_) => None,
        });
        text.unwrap_or_default()
    }

    /// The name of what answered the last question, or was answering it.
    pub fn asked_of(&self) -> Option<&str> {
        let earlier = || self.kept.answers.last().map(|one| one.generator.as_str());
        self.kept.asked_of.as_deref().or_else(earlier)
    }

    /// The documents that searches are limited to; none where they are not.
    pub fn documents(&self) -> Vec<&str> {
        let filters = self
            .kept
            .ledger
            .capabilities()
            .map(|(_, state)| &state.filter);
        let all: std::collections::BTreeSet<&str> = filters.flatten().map(String::as_str).collect();
        all.into_iter().collect()
    }

    /// Starts a question and writes that down.
    pub(crate) async fn start(&mut self, text: &str, asked_of: &str) -> Result<u64, AskError> {
        let before = Before {
            ledger: self.kept.ledger.clone(),
            policy: self.kept.policy.clone(),
            messages: self.history.clock(),
        };
        let begun = self.kept.ledger.begin(&self.history)?;
        self.kept.before = Some(Box::new(before));
        self.kept.so_far = None;
        self.kept.asked_of = Some(asked_of.to_owned());
        self.history.push(Message::Request(vec![Part::Question {
            text: text.to_owned(),
        }]));
        self.save().await?;
        Ok(begun.question())
    }

    /// Writes what is new, with the state, in one transaction.
    pub(crate) async fn save(&mut self) -> Result<(), AskError> {
        self.save_from(self.saved).await
    }

    async fn save_from(&mut self, from: u64) -> Result<(), AskError> {
        let new: Result<Vec<Vec<u8>>, _> = self
            .history
            .since(from)
            .iter()
            .map(serde_json::to_vec)
            .collect();
        let state = serde_json::to_vec(&self.kept)?;
        self.workspace
            .save_conversation(&mut self.row, &state, from, &new?)
            .await?;
        self.saved = self.history.clock();
        Ok(())
    }

    /// The question has its answer.
    pub(crate) async fn settle(&mut self, answered: Answered) -> Result<(), AskError> {
        self.kept.answers.push(answered);
        self.kept.before = None;
        self.kept.so_far = None;
        self.save().await
    }

    /// Goes back to the state before the question under way: the next prompt is a new question.
    pub(crate) async fn roll_back(&mut self) -> Result<(), AskError> {
        let Some(before) = self.kept.before.take() else {
            return Ok(());
        };
        let keep = usize::try_from(before.messages).unwrap_or(usize::MAX);
        self.history =
            History::restored(self.history.messages().iter().take(keep).cloned().collect());
        self.kept.ledger = before.ledger;
        self.kept.policy = before.policy;
        self.kept.so_far = None;
        self.save_from(before.messages).await
    }
}
