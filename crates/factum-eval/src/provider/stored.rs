//! Outputs made earlier: a report of an earlier run, or a folder with a file for each fixture.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thiserror::Error;

use crate::fixture::{Fixture, MOST_BYTES};
use crate::provider::{Provider, ProviderError};
use crate::report::Report;
use crate::summary::Summary;

/// Stored outputs.
#[derive(Debug)]
pub struct Stored {
    name: String,
    from: From,
}

#[derive(Debug)]
enum From {
    Report(HashMap<(String, u32), Result<Summary, String>>),
    Folder(PathBuf),
}

/// Why stored outputs can't be used.
#[derive(Debug, Error)]
pub enum StoredError {
    /// They can't be read.
    #[error("{path} can't be read: {error}")]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The file is no report.
    #[error(
        "{path} is neither a folder of outputs nor a report of `factum eval run --json`: {message}"
    )]
    NoReport {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
}

impl Stored {
    /// Opens outputs.
    ///
    /// # Errors
    /// There is nothing to read there.
    pub fn open(path: &Path) -> Result<Self, StoredError> {
        let name = format!("stored:{}", path.display());
        let unreadable = |error| StoredError::Unreadable {
            path: path.to_owned(),
            error,
        };
        if std::fs::metadata(path).map_err(unreadable)?.is_dir() {
            let from = From::Folder(path.to_owned());
            return Ok(Self { name, from });
        }
        let bytes = std::fs::read(path).map_err(unreadable)?;
        let report = Report::from_json(&bytes).map_err(|message| StoredError::NoReport {
            path: path.to_owned(),
            message,
        })?;
        let outputs = report.fixtures.into_iter().map(|outcome| {
            let lost = || {
                let why = outcome.errors.first().cloned();
                why.unwrap_or_else(|| "the report holds no output of it".to_owned())
            };
            let output = outcome.summary.clone().ok_or_else(lost);
            ((outcome.name.clone(), outcome.repeat), output)
        });
        Ok(Self {
            name,
            from: From::Report(outputs.collect()),
        })
    }
}

impl Provider for Stored {
    fn name(&self) -> &str {
        &self.name
    }

    fn identity(&self) -> Value {
        json!({"kind": "stored"})
    }

    fn is_costly(&self) -> bool {
        false
    }

    fn summarise(&self, fixture: &Fixture, repeat: u32) -> Result<Summary, ProviderError> {
        match &self.from {
            From::Report(outputs) => {
                let found = outputs
                    .get(&(fixture.name.clone(), repeat))
                    .or_else(|| outputs.get(&(fixture.name.clone(), 1)));
                let missing = || Err("the report does not know the fixture".to_owned());
                found
                    .cloned()
                    .unwrap_or_else(missing)
                    .map_err(ProviderError::NotStored)
            }
            From::Folder(folder) => from_folder(folder, &fixture.name),
        }
    }
}

fn from_folder(folder: &Path, name: &str) -> Result<Summary, ProviderError> {
    // A name is a file's name here and must not lead elsewhere.
    if name.contains(['/', '\\']) || name == ".." {
        let why = format!("{name:?} is no file name");
        return Err(ProviderError::NotStored(why));
    }
    for ending in ["json", "md", "txt"] {
        let path = folder.join(format!("{name}.{ending}"));
        let size = match std::fs::metadata(&path) {
            Ok(found) => found.len(),
            Err(_) => continue,
        };
        if size > MOST_BYTES {
            return Err(ProviderError::TooLong { limit: MOST_BYTES });
        }
        let unreadable = |error| ProviderError::NotStored(format!("{}: {error}", path.display()));
        let bytes = std::fs::read(&path).map_err(unreadable)?;
        if ending == "json" {
            return Summary::from_json(&bytes).map_err(ProviderError::NoSummary);
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| ProviderError::NotStored(format!("{}: not UTF-8", path.display())))?;
        return Ok(Summary { text, beats: None });
    }
    let why = format!("{} has no {name}.json, .md or .txt", folder.display());
    Err(ProviderError::NotStored(why))
}
