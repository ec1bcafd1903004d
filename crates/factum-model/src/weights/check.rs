//! Does a model's folder or file hold exactly what it must? Everything is looked at; nothing is run.

mod gguf;
mod safetensors;

use std::path::Path;

use tokio_util::sync::CancellationToken;

use super::report::{CheckError, CheckReport};

pub use gguf::check_header as check_gguf_header;
pub(crate) use safetensors::{Described, check_dir};

/// Checks a folder of Safetensors, or a GGUF file, strictly.
///
/// Headers and small files are read whole. Weights are read only where an output head has to be held
/// against the embedding that it is said to be.
///
/// # Errors
/// A file can't be read, or the call was cancelled. What is wrong with files that can be read is in the
/// report.
pub fn check_model(path: &Path, cancel: &CancellationToken) -> Result<CheckReport, CheckError> {
    let metadata = std::fs::metadata(path).map_err(CheckError::read(path))?;
    if metadata.is_dir() {
        return Ok(check_dir(path, cancel)?.report);
    }
    gguf::check_file(path, metadata.len())
}
