//! Where summaries come from. A provider blocks; the runner calls several at a time from threads of its own.

pub mod command;
pub mod engine;
pub mod stored;
mod stub;

use serde_json::{Value, json};
use thiserror::Error;

use crate::fixture::Fixture;
use crate::reading::Finding;
use crate::source::Source;
use crate::summary::Summary;

pub use stub::Stub;

/// Where summaries come from.
pub trait Provider: Send + Sync {
    /// Its name, as it is asked for.
    fn name(&self) -> &str;

    /// All of it that can change a summary: it is part of every cache key.
    fn identity(&self) -> Value;

    /// Making a summary again costs something.
    fn is_costly(&self) -> bool;

    /// How many summaries may be made at once.
    fn parallel(&self) -> usize {
        usize::MAX
    }

    /// Summarises a fixture's source.
    ///
    /// # Errors
    /// There is no whole summary.
    fn summarise(&self, fixture: &Fixture, repeat: u32) -> Result<Summary, ProviderError>;
}

/// Why there is no summary.
#[derive(Debug, Error)]
pub enum ProviderError {
    /// The fixture brings none.
    #[error("the fixture has no stub; choose where summaries come from with --provider")]
    NoStub,
    /// None was stored for the fixture.
    #[error("no output is stored for it: {0}")]
    NotStored(String),
    /// The program could not be started.
    #[error("the program can't be started: {0}")]
    Start(std::io::Error),
    /// The program did not end in time. It was ended.
    #[error("no output within {seconds} s; the program was ended")]
    TimedOut {
        /// The limit.
        seconds: u64,
    },
    /// The output was too long. The program was ended.
    #[error("more than {limit} bytes of output; the program was ended")]
    TooLong {
        /// The limit.
        limit: u64,
    },
    /// The program failed.
    #[error("the program ended with {status}{}", said(stderr))]
    Failed {
        /// How it ended.
        status: String,
        /// The end of what it said on stderr.
        stderr: String,
    },
    /// The output is no summary.
    #[error("the output is no summary: {}", first(.0))]
    NoSummary(Vec<Finding>),
    /// The engine made none.
    #[error("{0}")]
    Engine(String),
    /// The run was stopped.
    #[error("stopped")]
    Stopped,
}

fn said(stderr: &str) -> String {
    let last = stderr.trim();
    if last.is_empty() {
        String::new()
    } else {
        format!(": {last}")
    }
}

fn first(findings: &[Finding]) -> String {
    match findings {
        [] => "it can't be read".to_owned(),
        [one] => one.to_string(),
        [one, rest @ ..] => format!("{one} (and {} more)", rest.len()),
    }
}

/// What a provider outside is given: the source as it counts now, and nothing of what the fixture expects.
pub fn source_json(fixture: &Fixture) -> Value {
    let mut out = json!({"format": "factum/eval-source/1", "name": fixture.name});
    match &fixture.source {
        Source::Lines(lines) => {
            out["lines"] = lines
                .all()
                .iter()
                .map(|line| {
                    json!({
                        "id": line.id,
                        "speaker": line.speaker,
                        "start": line.start,
                        "end": line.end,
                        "text": line.text,
                    })
                })
                .collect();
        }
        Source::Documents(documents) => {
            out["documents"] = documents
                .current()
                .map(|one| json!({"id": one.id, "version": one.version, "text": one.text}))
                .collect();
        }
    }
    out
}
