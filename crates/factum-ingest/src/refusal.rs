//! Why a file got no text layer.
//!
//! A refusal is about the file alone; which exit code or page it becomes is for the callers.

use thiserror::Error;

/// A file that was not read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// No bytes, only white space, or no visible text.
    #[error("the file holds no text")]
    Empty,
    /// The bytes are no text in any encoding, and no known format either.
    #[error("the file is binary data ({controls} control bytes among {bytes})")]
    Binary {
        /// NUL and other control bytes found.
        controls: u64,
        /// Size of the file.
        bytes: u64,
    },
    /// A known format that this version does not read.
    #[error("{format} files cannot be read yet")]
    Unsupported {
        /// The format's name, as people say it.
        format: String,
    },
    /// The file ends before its format says it may.
    #[error("the {format} file is cut off after {bytes} bytes")]
    Truncated {
        /// The format's name.
        format: String,
        /// Size of what is there.
        bytes: u64,
    },
    /// Reading would take more than the caller allows.
    #[error("more than {limit} {what}")]
    LimitExceeded {
        /// What there is too much of, in the plural.
        what: String,
        /// The most that is allowed.
        limit: u64,
    },
    /// The file names its encoding, but too much of it does not fit.
    #[error("the file says it is {encoding}, but {invalid} of its {units} units are not")]
    Undecodable {
        /// The encoding the file claims by its byte order mark.
        encoding: String,
        /// Units that are no character.
        invalid: u64,
        /// All units.
        units: u64,
    },
}

impl Refusal {
    /// The variant's name, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Binary { .. } => "Binary",
            Self::Unsupported { .. } => "Unsupported",
            Self::Truncated { .. } => "Truncated",
            Self::LimitExceeded { .. } => "LimitExceeded",
            Self::Undecodable { .. } => "Undecodable",
        }
    }

    /// What the reader of the message can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Empty => "check that the right file was chosen; there is nothing in it to cite",
            Self::Binary { .. } => "export it as text, Markdown, HTML, CSV, JSON, WebVTT or SRT",
            Self::Unsupported { .. } => {
                "save it as plain text, Markdown, HTML, CSV, JSON, WebVTT or SRT and add that file"
            }
            Self::Truncated { .. } => "get the whole file again from where it came from",
            Self::LimitExceeded { .. } => "split the file, or raise the limit",
            Self::Undecodable { .. } => "save it again as UTF-8",
        }
    }
}
