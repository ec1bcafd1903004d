//! Where results and messages go: results to stdout, all else to stderr; with `--json`, one JSON
//! document on stdout and nothing else there.

use std::io::Write as _;

use serde::Serialize;
use serde_json::{Map, Value};

/// The output of one command.
pub(crate) struct Output {
    json: bool,
}

impl Output {
    pub(crate) const fn new(json: bool) -> Self {
        Self { json }
    }

    /// JSON was asked for.
    pub(crate) const fn is_json(&self) -> bool {
        self.json
    }

    /// Prints the result: as JSON under `format`, or as text.
    pub(crate) fn result<T: Serialize>(
        &self,
        format: &str,
        value: &T,
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        if self.json {
            self.document(format, serde_json::to_value(value)?);
        } else {
            write_out(&text());
        }
        Ok(())
    }

    /// Prints a JSON document whatever was asked for.
    #[expect(
        clippy::unused_self,
        reason = "an output is what commands are given to print on"
    )]
    pub(crate) fn document(&self, format: &str, value: Value) {
        let mut document = Map::new();
        document.insert("format".to_owned(), Value::String(format.to_owned()));
        match value {
            Value::Object(fields) => document.extend(fields),
            other => {
                document.insert("value".to_owned(), other);
            }
        }
        let text = serde_json::to_string_pretty(&Value::Object(document)).unwrap_or_default();
        write_out(&(text + "\n"));
    }

    /// Prints text that is the result itself, whatever was asked for.
    #[expect(
        clippy::unused_self,
        reason = "an output is what commands are given to print on"
    )]
    pub(crate) fn raw(&self, text: &str) {
        write_out(text);
    }

    /// Prints a JSON document where JSON was asked for.
    pub(crate) fn json_only(&self, format: &str, value: Value) {
        if self.json {
            self.document(format, value);
        }
    }

    /// A line for the person watching.
    pub(crate) fn note(&self, line: &str) {
        if self.json {
            warn(line);
        } else {
            write_out(&format!("{line}\n"));
        }
    }
}

/// Set once stdout could not be written: the command has then not done what was asked.
static BROKEN: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

// A reader that went away (`factum history | head`) is not our failure; a full disk is.
fn write_out(text: &str) {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Err(error) = written
        && error.kind() != std::io::ErrorKind::BrokenPipe
        && !BROKEN.swap(true, std::sync::atomic::Ordering::Relaxed)
    {
        warn(&format!("factum: the output can't be written: {error}"));
    }
}

/// The exit code, unless the output was lost.
pub(crate) fn exit_code(code: u8) -> u8 {
    if code == 0 && BROKEN.load(std::sync::atomic::Ordering::Relaxed) {
        1
    } else {
        code
    }
}

/// A line for the person watching, on stderr. Where that can't be written, there is no one to tell.
pub(crate) fn warn(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
