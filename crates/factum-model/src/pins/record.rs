//! What is written down beside a model's files when they were fetched.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::catalogue::{Format, Source};
use super::digests::{FileDigest, Stamp, write_atomically};
use super::error::PinError;

/// The name of the record in a model's folder.
pub(super) const RECORD_FILE: &str = "model.json";
const MAX_RECORD_BYTES: u64 = 1 << 20;

/// What was fetched, from where, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// `factum/model/1`.
    pub format: String,
    /// The model's name.
    pub name: String,
    /// What its files are.
    pub kind: Format,
    /// Where they came from.
    pub source: Source,
    /// When, as the caller's clock had it.
    pub fetched_at: String,
    /// The files, by name.
    pub files: BTreeMap<String, RecordedFile>,
}

/// A file that was fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedFile {
    /// Its digest.
    pub sha256: FileDigest,
    /// Whether the digest was known before; else the first download was trusted.
    pub pinned: bool,
    /// What it looked like when it was hashed.
    pub stamp: Stamp,
}

/// The only format of records.
pub(super) const RECORD_FORMAT: &str = "factum/model/1";

impl Record {
    /// The record of a model's folder, if it has one.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>, PinError> {
        let path = folder.join(RECORD_FILE);
        if !path.exists() {
            return Ok(None);
        }
        let bad = |message: String| PinError::Record {
            file: path.clone(),
            message,
        };
        let bytes = crate::weights::read_bounded(&path, MAX_RECORD_BYTES)
            .map_err(|error| bad(error.to_string()))?;
        let record: Self =
            serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
        if record.format != RECORD_FORMAT {
            return Err(bad(format!("its format is {:?}", record.format)));
        }
        Ok(Some(record))
    }

    /// Writes the record.
    pub(super) fn write(&self, folder: &Path) -> Result<(), PinError> {
        let path = folder.join(RECORD_FILE);
        let failed = PinError::file(&path);
        let text = serde_json::to_vec_pretty(self).map_err(|e| failed(std::io::Error::other(e)))?;
        write_atomically(&path, &text).map_err(&failed)
    }
}
