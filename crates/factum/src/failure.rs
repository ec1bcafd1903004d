//! Errors to exit codes and hints: the one place that maps them.

use std::io::ErrorKind as ErrorKindOfIo;

use factum_ask::AskError;
use factum_base::IdError;
use factum_engine::{EngineError, ErrorKind};
use serde_json::json;

use crate::output::{Output, warn};

/// An error of the command line itself.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Usage {}

/// Something outside the workspace that can't be used: a model, its settings, a server. With a hint, where
/// there is one.
#[derive(Debug)]
pub(crate) struct BadInput(pub(crate) String, pub(crate) Option<String>);

impl BadInput {
    pub(crate) fn of(error: impl std::fmt::Display) -> Self {
        Self(error.to_string(), None)
    }

    pub(crate) fn pin(error: &factum_model::pins::PinError) -> Self {
        let hint = crate::models::pin_hint(error);
        Self(error.to_string(), hint)
    }
}

impl std::fmt::Display for BadInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for BadInput {}

/// Something that failed half way, with what can be done.
#[derive(Debug)]
pub(crate) struct Failed(pub(crate) String, pub(crate) String);

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Failed {}

/// Prints an error and gives its exit code.
pub(crate) fn report(error: &anyhow::Error, output: &Output) -> u8 {
    let (code, kind, hint) = classify(error);
    let message = message(error);
    tell(&message, hint.as_deref());
    let body = json!({"error": {"kind": kind, "message": message, "hint": hint}});
    output.json_only("factum/error/1", body);
    code
}

/// Tells the person watching what is wrong and what can be done.
pub(crate) fn tell(message: &str, hint: Option<&str>) {
    warn(&format!("factum: {}", message.trim_end()));
    if let Some(hint) = hint {
        warn(&format!("hint: {hint}"));
    }
}

/// The error with its causes, each said once.
fn message(error: &anyhow::Error) -> String {
    let mut message = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !message.contains(&cause) {
            message.push_str(": ");
            message.push_str(&cause);
        }
    }
    message
}

fn classify(error: &anyhow::Error) -> (u8, &'static str, Option<String>) {
    if let Some(error) = error.downcast_ref::<EngineError>() {
        let (code, kind) = match error.kind() {
            ErrorKind::Failed => (1, "failed"),
            ErrorKind::BadInput => (3, "bad-input"),
            ErrorKind::NotPermitted => (7, "not-permitted"),
            ErrorKind::Interrupted => (130, "interrupted"),
        };
        return (
            code,
            kind,
            error.hint().or_else(|| hint_here(error).map(str::to_owned)),
        );
    }
    if let Some(error) = error.downcast_ref::<AskError>() {
        let (code, kind) = match error {
            AskError::Interrupted => (130, "interrupted"),
            AskError::Hidden => (4, "refused"),
            AskError::Pending(_) | AskError::Settled(_) | AskError::Empty => (3, "bad-input"),
            _ => (1, "failed"),
        };
        return (code, kind, error.hint());
    }
    if let Some(error) = error.downcast_ref::<BadInput>() {
        return (3, "bad-input", error.1.clone());
    }
    if let Some(error) = error.downcast_ref::<Failed>() {
        return (1, "failed", Some(error.1.clone()));
    }
    if error.downcast_ref::<Usage>().is_some() {
        return (
            2,
            "usage",
            Some("`factum help` lists the commands".to_owned()),
        );
    }
    if error.downcast_ref::<IdError>().is_some() {
        return (3, "bad-input", Some(IDS.to_owned()));
    }
    (1, "failed", None)
}

const IDS: &str =
    "an id is one line of at most 400 bytes; a document's id is a plain relative path";

/// Hints that speak of files and options, which only the command line has.
fn hint_here(error: &EngineError) -> Option<&'static str> {
    Some(match error {
        EngineError::Id(_) => IDS,
        EngineError::Io { source, .. } => match source.kind() {
            ErrorKindOfIo::NotFound => "check the path; nothing was changed",
            ErrorKindOfIo::PermissionDenied => "check the rights of the file and of its folder",
            ErrorKindOfIo::IsADirectory => {
                "`factum sync CASE FOLDER` takes a folder, `factum add` its files"
            }
            ErrorKindOfIo::StorageFull => "make room and run the same command again",
            _ => return None,
        },
        EngineError::Profile(_) => {
            "correct the profile's file in .factum/profiles; nothing was changed"
        }
        EngineError::FolderList { .. } => "correct the factum.toml; nothing was changed",
        EngineError::GivenTwice(_) => "give each document once; --as-doc gives a file another id",
        EngineError::BadMoment(_) => "`factum history CASE` lists the events with their times",
        EngineError::UnknownGenerator { .. } => "leave out --generator, or see `factum model list`",
        _ => return None,
    })
}

/// Prints a usage error where JSON was asked for.
pub(crate) fn usage(message: &str) {
    let body = json!({"error": {"kind": "usage", "message": message.trim_end(), "hint": null}});
    Output::new(true).document("factum/error/1", body);
}
