//! What can keep a question from being answered.

use factum_engine::EngineError;
use factum_model::ModelError;
use thiserror::Error;

use crate::compaction::CompactionError;
use crate::ledger::LedgerError;

/// Why there is no answer. Unless it says otherwise, the conversation is as it was before the question.
#[derive(Debug, Error)]
pub enum AskError {
    /// The workspace refuses, or its store fails.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The model gave no whole response.
    #[error("no answer: {0}")]
    Model(ModelError),
    /// The model's response was cut off by its limit of tokens; half an answer is none.
    #[error("no answer: the model's response is longer than {0} tokens")]
    Cut(u32),
    /// Stopped on request. What was done so far is kept, and the question can be resumed.
    #[error("interrupted; the question is kept and can be resumed")]
    Interrupted,
    /// A document that was before the model, or that the answer rests on, was withdrawn or hidden from the principal meanwhile.
    #[error(
        "no answer: a document that it was made from was withdrawn, or hidden from you, while it was made"
    )]
    Hidden,
    /// A question of this conversation was not finished.
    #[error("a question of {0} is not finished")]
    Pending(String),
    /// There is nothing to resume.
    #[error("no question of {0} is unfinished")]
    Settled(String),
    /// Nothing was asked.
    #[error("the question is empty")]
    Empty,
    /// The ledger refuses.
    #[error("the conversation's ledger is not in order: {0}")]
    Ledger(#[from] LedgerError),
    /// History and ledger do not belong together.
    #[error("the conversation is not in order: {0}")]
    Compaction(#[from] CompactionError),
    /// The record of the conversation can't be read or written.
    #[error("the record of the conversation can't be read: {0}")]
    Record(#[from] serde_json::Error),
}

impl From<ModelError> for AskError {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Cancelled => Self::Interrupted,
            other => Self::Model(other),
        }
    }
}

impl AskError {
    /// What the caller can do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Engine(error) => return error.hint(),
            Self::Model(ModelError::OverBudget { .. }) => {
                "shorten the question, begin a new conversation, or ask about fewer documents with --doc".to_owned()
            }
            Self::Model(ModelError::Status { status: 401 | 403, .. }) => {
                "the key comes from FACTUM_API_KEY, or as settings.toml in the models' folder says".to_owned()
            }
            Self::Model(_) => {
                "see to the model, then ask again; `factum model check` shows what a server can do"
                    .to_owned()
            }
            Self::Pending(id) => format!("`factum conversation resume {id}` finishes it"),
            Self::Settled(id) => format!("`factum conversation resume {id} \"QUESTION\"` asks on"),
            Self::Interrupted => "`factum conversation list` names it".to_owned(),
            Self::Hidden => "ask again: what may be seen now is answered from".to_owned(),
            Self::Empty => "give the question in quotation marks".to_owned(),
            Self::Cut(_) => "ask for less at a time, or choose a model that keeps to the point".to_owned(),
            Self::Ledger(_) | Self::Compaction(_) | Self::Record(_) => return None,
        })
    }
}
