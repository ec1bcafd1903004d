//! What happened: events and runs, as far as the reader may know of them.

use factum_base::{CaseId, PrincipalId};
use factum_casefile::Event;
use serde::Serialize;

use crate::build::{BuildReport, Counts};
use crate::error::EngineError;
use crate::permission::{all_events, is_owner, permitted};
use crate::serve::event_reasons;
use crate::workspace::Workspace;

/// The history of a case file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct History {
    /// Events, oldest first.
    pub events: Vec<EventLine>,
    /// The caller's runs, oldest first.
    pub runs: Vec<RunLine>,
}

/// An event in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EventLine {
    /// Its number.
    pub number: u64,
    /// When, in Unix milliseconds.
    pub at: i64,
    /// The same in words.
    pub message: String,
    /// The whole event; for the owner only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<Event>,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunLine {
    /// Its id.
    pub run_id: String,
    /// When it began, in Unix milliseconds.
    pub at: i64,
    /// The snapshot's event.
    pub event: u64,
    /// The generator.
    pub generator: String,
    /// It reused nothing.
    pub full: bool,
    /// `finished`, or `unfinished` where it goes on or was interrupted.
    pub state: String,
    /// What it made; absent where unfinished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
}

impl Workspace {
    /// The history of a case file.
    ///
    /// # Errors
    /// It is unknown or hidden, or the store can't be read.
    pub async fn history(
        &self,
        case_id: &CaseId,
        caller: &PrincipalId,
    ) -> Result<History, EngineError> {
        let mut tx = self.repository.read().await?;
        let permitted = permitted(&mut tx, case_id, caller).await?;
        let case_no = permitted.case.case_no;
        let all = all_events(&mut tx, case_no).await?;
        let events = if is_owner(caller) {
            all.into_iter()
                .map(|event| EventLine {
                    number: event.number,
                    at: event.at,
                    message: in_words(&event),
                    event: Some(event),
                })
                .collect()
        } else {
            let when = |number: u64| {
                usize::try_from(number)
                    .ok()
                    .and_then(|n| all.get(n.checked_sub(1)?))
                    .map_or(0, |e| e.at)
            };
            event_reasons(&mut tx, &permitted, caller, all.iter())
                .await?
                .into_iter()
                .map(|reason| EventLine {
                    number: reason.event.unwrap_or(0),
                    at: when(reason.event.unwrap_or(0)),
                    message: without_number(&reason.message),
                    event: None,
                })
                .collect()
        };
        let mut runs = Vec::new();
        for run in tx.runs(case_no, caller).await? {
            let report: Option<BuildReport> = run
                .summary
                .as_deref()
                .and_then(|text| serde_json::from_str(text).ok());
            runs.push(RunLine {
                run_id: run.run_id,
                at: run.new.started_at,
                event: run.new.event,
                generator: run.new.generator,
                full: run.new.full,
                state: if run.finished_at.is_some() {
                    "finished"
                } else {
                    "unfinished"
                }
                .to_owned(),
                counts: report.map(|report| report.counts),
            });
        }
        Ok(History { events, runs })
    }
}

/// A list of events has their numbers in a column of their own.
fn without_number(message: &str) -> String {
    message
        .rsplit_once(" (event ")
        .map_or(message, |(words, _)| words)
        .to_owned()
}

fn in_words(event: &Event) -> String {
    use factum_casefile::EventKind as Kind;
    let whole = |doc: &Option<factum_base::DocumentId>| {
        doc.as_ref()
            .map_or_else(|| "the whole case file".to_owned(), ToString::to_string)
    };
    match (&event.kind, event.kind.doc_id()) {
        (
            Kind::Withdrawn {
                doc_id,
                file_gone: true,
            },
            _,
        ) => format!("{doc_id} was withdrawn, since its file was gone"),
        (Kind::Granted { doc_id, to }, _) => format!("{to} may see {}", whole(doc_id)),
        (Kind::Revoked { doc_id, from }, _) => {
            format!("{from} may no longer see {}", whole(doc_id))
        }
        (kind, Some(doc_id)) => crate::serve::in_words(kind, doc_id).1,
        (kind, None) => kind.word().to_owned(),
    }
}
