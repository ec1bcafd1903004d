//! What can go wrong in the store, in kinds a user can act on.

use std::path::PathBuf;

use thiserror::Error;

/// A store error.
#[derive(Debug, Error)]
pub enum StoreError {
    /// There is no database there.
    #[error("there is no Factum database at {0}")]
    NotFound(PathBuf),
    /// There is one already.
    #[error("there is a Factum database at {0} already")]
    Exists(PathBuf),
    /// Written by a newer Factum.
    #[error("the database has schema {found}, but this Factum knows only {known}")]
    NewerSchema {
        /// In the database.
        found: i64,
        /// [`crate::SCHEMA_VERSION`].
        known: i64,
    },
    /// A record's bytes do not match its digest, or can't be read.
    #[error("the database is damaged: {0}")]
    Damaged(String),
    /// No space left, or a size limit reached.
    #[error("the disk is full, or a size limit is reached; nothing of this step was written")]
    Full,
    /// The file or folder can't be written.
    #[error("the database can't be written: the file or its folder is read-only")]
    ReadOnly,
    /// The file or folder can't be opened.
    #[error("the database can't be opened: {0}")]
    CantOpen(String),
    /// The disk did not do what was asked of it.
    #[error("the disk failed: {0}")]
    Disk(String),
    /// Someone else changed a record since it was read.
    #[error("another process changed {0} meanwhile; nothing of this step was written")]
    Overtaken(String),
    /// Another process held the database for longer than the waiting time.
    #[error("another process keeps the database locked")]
    Busy,
    /// Anything else the database said.
    #[error("database: {0}")]
    Database(#[source] sqlx::Error),
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let code = match &error {
            sqlx::Error::Database(inner) => inner.code().and_then(|code| code.parse::<u32>().ok()),
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => {
                return Self::Damaged(format!("a column can't be read: {error}"));
            }
            _ => None,
        };
        // Writing, syncing and truncating fail where there is no room; these are SQLite's extended
        // codes for that: IOERR_WRITE, IOERR_FSYNC, IOERR_TRUNCATE, IOERR_SHMOPEN,
        // IOERR_SHMSIZE, IOERR_SHMMAP.
        if matches!(code, Some(778 | 1034 | 1546 | 4618 | 4874 | 5386)) {
            return Self::Full;
        }
        // SQLite's primary result code is the low byte of the extended one.
        match code.map(|code| code & 0xff) {
            Some(5 | 6) => Self::Busy,
            Some(8) => Self::ReadOnly,
            Some(10) => Self::Disk(error.to_string()),
            Some(13) => Self::Full,
            Some(11) => Self::Damaged(format!("SQLite reports {error}")),
            Some(26) => Self::Damaged("the file is not a database".to_owned()),
            Some(14) => Self::CantOpen(error.to_string()),
            _ => Self::Database(error),
        }
    }
}

/// Marks a record that can't be read back.
pub(crate) fn damaged(what: impl std::fmt::Display) -> StoreError {
    StoreError::Damaged(what.to_string())
}
