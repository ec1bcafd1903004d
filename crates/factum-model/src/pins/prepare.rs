//! From a name or path to the GGUF file that an engine loads, converting Safetensors where that is needed.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::catalogue::Format;
use super::digests::FileDigest;
use super::error::PinError;
use super::registry::{Registry, ResolvedModel};
use crate::weights::gguf::{GgufError, read_header};
use crate::weights::{CONVERTER_VERSION, ConvertError, Normalizer, convert};

/// A model that an engine can load, and all that its identity has to say of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedModel {
    /// What the name or path stood for.
    pub resolved: ResolvedModel,
    /// The GGUF file.
    pub gguf: PathBuf,
    /// Its digest.
    pub sha256: FileDigest,
    /// What it was converted from, if it was.
    pub converted: Option<ConvertedFrom>,
    /// What has to be done to a text before the engine tokenizes it.
    pub normalizer: Normalizer,
}

/// What a GGUF file was converted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvertedFrom {
    /// The digest over the sources' names and digests.
    pub source: FileDigest,
    /// The converter.
    pub converter: &'static str,
}

/// Why there is nothing to load.
#[derive(Debug, Error)]
pub enum PrepareError {
    /// The model is not there, or not what it was.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// It can't be converted.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// The GGUF file has no readable header.
    #[error("{file} {reason}")]
    Header {
        /// Which.
        file: PathBuf,
        /// Why.
        reason: GgufError,
    },
}

impl Registry {
    /// What an engine loads for a name or path. Safetensors are checked and converted, once: a named model's file
    /// lies beside its sources, another's in the data folder, since its own may not be ours to write.
    ///
    /// # Errors
    /// The model is not there, not what it was, or can't be converted.
    pub fn prepare(
        &self,
        name_or_path: &str,
        cancel: &CancellationToken,
    ) -> Result<PreparedModel, PrepareError> {
        let resolved = self.resolve(name_or_path, cancel)?;
        if resolved.format == Format::Safetensors {
            let out = match resolved.name {
                Some(_) => resolved.path.join("converted"),
                None => self.folder().join(".converted"),
            };
            let made = convert(&resolved.path, &resolved.files, &out, cancel)?;
            return Ok(PreparedModel {
                gguf: made.path,
                sha256: made.sha256,
                converted: Some(ConvertedFrom {
                    source: made.source,
                    converter: CONVERTER_VERSION,
                }),
                normalizer: made.normalizer,
                resolved,
            });
        }
        let file = resolved
            .files
            .iter()
            .find(|file| file.path == resolved.path);
        let sha256 = match file {
            Some(file) => file.sha256,
            None => return Err(PinError::NoModel(resolved.path).into()),
        };
        Ok(PreparedModel {
            gguf: resolved.path.clone(),
            sha256,
            converted: None,
            normalizer: stated_normalizer(&resolved.path)?,
            resolved,
        })
    }
}

/// What a GGUF file of our making says of its tokenizer; others say nothing of it.
fn stated_normalizer(path: &Path) -> Result<Normalizer, PrepareError> {
    let file = File::open(path).map_err(PinError::file(path))?;
    let header = read_header(BufReader::new(file)).map_err(|reason| PrepareError::Header {
        file: path.to_owned(),
        reason,
    })?;
    Ok(Normalizer::stated(&header))
}
