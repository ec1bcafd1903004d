//! Errors to exit codes and hints: the one place that maps them.

use factum_base::IdError;
use factum_engine::{EngineError, ErrorKind};
use serde_json::json;

use crate::output::Output;

/// An error of the command line itself.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Usage {}

/// Prints an error and gives its exit code.
pub(crate) fn report(error: &anyhow::Error, output: &Output) -> u8 {
    let (code, kind, hint) = classify(error);
    eprintln!("factum: {error:#}");
    if let Some(hint) = &hint {
        eprintln!("hint: {hint}");
    }
    let body = json!({"error": {"kind": kind, "message": format!("{error:#}"), "hint": hint}});
    output.json_only("factum/error/1", body);
    code
}

fn classify(error: &anyhow::Error) -> (u8, &'static str, Option<String>) {
    if let Some(error) = error.downcast_ref::<EngineError>() {
        let (code, kind) = match error.kind() {
            ErrorKind::Failed => (1, "failed"),
            ErrorKind::BadInput => (3, "bad-input"),
            ErrorKind::NotPermitted => (7, "not-permitted"),
            ErrorKind::Interrupted => (130, "interrupted"),
        };
        return (code, kind, error.hint());
    }
    if error.downcast_ref::<Usage>().is_some() {
        return (2, "usage", Some("`factum help` lists the commands".to_owned()));
    }
    if error.downcast_ref::<IdError>().is_some() {
        return (3, "bad-input", None);
    }
    (1, "failed", None)
}
