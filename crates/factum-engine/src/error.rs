//! Errors of the use cases, each of a kind that decides exit codes and status codes, with a hint.

use std::path::PathBuf;

use factum_base::{CaseId, DocumentId, IdError, PrincipalId};
use factum_casefile::ProfileError;
use factum_ingest::Refusal;
use factum_store::StoreError;
use thiserror::Error;

/// What an error means to whoever called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Something failed here; trying again may help.
    Failed,
    /// What came in can't be used.
    BadInput,
    /// The caller may not do this.
    NotPermitted,
    /// Stopped on request; what was finished is kept.
    Interrupted,
}

/// An error of a use case.
#[derive(Debug, Error)]
pub enum EngineError {
    /// There is no workspace at or above this folder.
    #[error("there is no Factum workspace in {0} or above it")]
    NoWorkspace(PathBuf),
    /// There is a workspace already.
    #[error("there is a Factum workspace in {0} already")]
    WorkspaceExists(PathBuf),
    /// No such case file. Only the owner is told this.
    #[error("there is no case file {0:?}")]
    UnknownCase(CaseId),
    /// A case file of that id exists.
    #[error("there is a case file {0:?} already")]
    CaseExists(CaseId),
    /// No such document.
    #[error("case file {case:?} has no document {doc:?}")]
    UnknownDocument {
        /// The case file.
        case: CaseId,
        /// The document.
        doc: DocumentId,
    },
    /// No such finished run. Only the owner is told this.
    #[error("there is no finished run {0:?}")]
    UnknownRun(String),
    /// No such run, or not the caller's: both look alike.
    #[error("there is no run {0:?} that you may see")]
    ForbiddenRun(String),
    /// There are no two summaries to compare.
    #[error("there are no two finished runs whose summaries differ")]
    NothingToCompare,
    /// The case file does not exist, or the principal has no right to it: both look alike.
    #[error("{principal:?} may not see a case file {case:?}, or there is none")]
    Forbidden {
        /// Who asked.
        principal: PrincipalId,
        /// For what.
        case: CaseId,
    },
    /// Only the owner may change a workspace.
    #[error("{0:?} may not change this workspace; only its owner may")]
    OwnerOnly(PrincipalId),
    /// A source of a run or an earlier summary is hidden from the caller now.
    #[error("{0} rests on documents that you may no longer see")]
    SourcesHidden(String),
    /// No such conversation, or not the caller's: both look alike.
    #[error("you have no conversation {0:?}")]
    UnknownConversation(String),
    /// Another process answers a question of the conversation.
    #[error("another process is answering in {0}")]
    ConversationBusy(String),
    /// A malformed id.
    #[error(transparent)]
    Id(#[from] IdError),
    /// A profile that can't be used.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A file that can't be read as a document.
    #[error("{path}: {refusal}")]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why.
        refusal: Refusal,
    },
    /// A folder or file that does not exist, or can't be read.
    #[error("{path}: {source}")]
    Io {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A link that leads out of the folder being read.
    #[error("{path} leads out of the folder, to {target}")]
    OutsideFolder {
        /// The link.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// A link that leads back to a folder above it.
    #[error("{0} leads back to a folder above it")]
    LinkLoop(PathBuf),
    /// A file name that is not Unicode, so that it can't be a document id.
    #[error("the name of {0:?} is not valid Unicode")]
    FileName(PathBuf),
    /// Two files for one document id.
    #[error("{0:?} is given twice")]
    GivenTwice(DocumentId),
    /// A `factum.toml` in a folder that can't be used.
    #[error("{path}: {message}")]
    FolderList {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// An event number or date that can't be used.
    #[error("{0}")]
    BadMoment(String),
    /// A generator that is not known here.
    #[error("there is no generator {name:?} here: {message}")]
    UnknownGenerator {
        /// Its name.
        name: String,
        /// Why not.
        message: String,
    },
    /// The profile says nothing about models.
    #[error("profile {0:?} has no [model] table, so it works by extraction only")]
    NoModelSettings(String),
    /// A model is needed, and only its identity is at hand.
    #[error("the model of {0:?} is not loaded")]
    ModelNotLoaded(String),
    /// A model could not be asked at all.
    #[error("{0}")]
    Model(#[from] factum_model::ModelError),
    /// Some nodes got no whole answer, so that they and those above them are not made. The rest is kept.
    #[error(
        "{run_id} is incomplete: {lost} of {nodes} nodes got no whole answer (the first: {first}), and what rests on them is not made"
    )]
    Incomplete {
        /// The run.
        run_id: String,
        /// Nodes without an answer.
        lost: u64,
        /// Nodes that were to be made.
        nodes: u64,
        /// Why the first of them has none.
        first: factum_model::ModelError,
    },
    /// Stopped on request.
    #[error("interrupted; what was finished is kept")]
    Interrupted,
    /// The documents changed again and again while the build ran.
    #[error(
        "documents were hidden from this principal while its summary was built, {0} times in a row"
    )]
    Overtaken(u32),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A value that could not be made JSON.
    #[error("internal: {0}")]
    Json(#[from] serde_json::Error),
    /// A worker stopped.
    #[error("internal: a worker stopped: {0}")]
    Worker(String),
}

impl EngineError {
    /// Its kind.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Forbidden { .. }
            | Self::ForbiddenRun(_)
            | Self::OwnerOnly(_)
            | Self::SourcesHidden(_) => ErrorKind::NotPermitted,
            Self::Interrupted => ErrorKind::Interrupted,
            Self::Store(
                StoreError::NotFound(_) | StoreError::Exists(_) | StoreError::NewerSchema { .. },
            ) => ErrorKind::BadInput,
            Self::Overtaken(_)
            | Self::ConversationBusy(_)
            | Self::Store(_)
            | Self::Json(_)
            | Self::Worker(_)
            | Self::Model(_)
            | Self::ModelNotLoaded(_)
            | Self::Incomplete { .. } => ErrorKind::Failed,
            Self::Io { source, .. }
                if !matches!(
                    source.kind(),
                    std::io::ErrorKind::NotFound
                        | std::io::ErrorKind::IsADirectory
                        | std::io::ErrorKind::NotADirectory
                ) =>
            {
                ErrorKind::Failed
            }
            _ => ErrorKind::BadInput,
        }
    }

    /// What the caller can do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoWorkspace(_) => {
                "run `factum init` in the folder that should hold it".to_owned()
            }
            Self::WorkspaceExists(_) => "use it as it is, or choose another folder".to_owned(),
            Self::UnknownCase(_) => {
                "`factum status` lists the case files; `factum case new` makes one".to_owned()
            }
            Self::CaseExists(_) => "choose another id".to_owned(),
            Self::UnknownDocument { case, .. } => {
                format!("`factum status {case}` lists its documents")
            }
            Self::NothingToCompare => "build, change something, and build again".to_owned(),
            Self::UnknownRun(_) | Self::ForbiddenRun(_) => {
                "`factum history CASE` lists the runs".to_owned()
            }
            Self::UnknownConversation(_) => {
                "`factum conversation list` lists your conversations".to_owned()
            }
            Self::ConversationBusy(_) => {
                "wait until it is done; `factum conversation show ID` tells".to_owned()
            }
            Self::Store(StoreError::Overtaken(_)) => {
                "read it again: `factum conversation show ID`".to_owned()
            }
            Self::Forbidden { .. } => "ask the owner for a grant".to_owned(),
            Self::OwnerOnly(_) => "leave out --as, or ask the owner".to_owned(),
            Self::SourcesHidden(_) => {
                "build again to get a summary of what you may see now".to_owned()
            }
            Self::Refused { refusal, .. } => refusal.hint().to_owned(),
            Self::OutsideFolder { .. } | Self::LinkLoop(_) => {
                "remove the link, or copy what it leads to into the folder; nothing was changed"
                    .to_owned()
            }
            Self::FileName(_) => "rename the file; nothing was changed".to_owned(),
            Self::Profile(ProfileError::Unknown { .. }) => {
                "profiles of your own are TOML files in .factum/profiles".to_owned()
            }
            Self::Store(StoreError::NewerSchema { .. }) => {
                "use the newer Factum that wrote it".to_owned()
            }
            Self::Store(StoreError::Damaged(_)) => {
                "`factum verify CASE` lists all damage; restore the database from a backup"
                    .to_owned()
            }
            Self::Store(StoreError::Disk(_)) => {
                "check the disk; nothing of this step was written".to_owned()
            }
            Self::Store(StoreError::Full) => "make room and run the same command again".to_owned(),
            Self::Store(StoreError::ReadOnly | StoreError::CantOpen(_)) => {
                "check the rights of the .factum folder and of the file in it".to_owned()
            }
            Self::Store(StoreError::Busy) => {
                "wait for the other command, then run this one again".to_owned()
            }
            Self::Io { source, .. } if source.kind() == std::io::ErrorKind::NotADirectory => {
                "give a folder; `factum add` takes files".to_owned()
            }
            Self::Interrupted | Self::Overtaken(_) => {
                "run the same command again to go on".to_owned()
            }
            Self::Incomplete { .. } => {
                "see to the model, then run the same command again: it goes on from what is kept"
                    .to_owned()
            }
            Self::NoModelSettings(_) => {
                "give the profile a [model] table, or let it extend one that has it".to_owned()
            }
            _ => return None,
        })
    }

    /// Wraps a system error with its path.
    pub(crate) fn io(path: &std::path::Path, source: std::io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}
