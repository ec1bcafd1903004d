//! From a name or path to the GGUF file that an engine loads, converting Safetensors where that is needed.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::catalogue::Format;
use super::digests::FileDigest;
use super::error::PinError;
use super::record::RECORD_FILE;
use super::registry::{OWN_CATALOGUE, Registry, ResolvedModel};
use crate::weights::gguf::{GgufError, read_header};
use crate::weights::{
    CONVERTER_VERSION, ConvertError, Normalizer, convert, converted, source_files,
};

/// Where a named model's converted file is, in its folder.
const CONVERTED: &str = "converted";
/// Where the converted files of other models are, in the data folder.
const CONVERTED_ELSEWHERE: &str = ".converted";

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

/// The files of a model that an engine could load as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownModel {
    /// The digest of the GGUF file.
    pub sha256: FileDigest,
    /// What it was converted from, if it was.
    pub converted: Option<ConvertedFrom>,
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
    /// It was not converted yet, and is not to be now.
    #[error("{0} was not converted for this program yet: a build with it does that")]
    NotConverted(PathBuf),
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
            let out = self.converted_folder(&resolved);
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
        Ok(PreparedModel {
            gguf: resolved.path.clone(),
            sha256: gguf_digest(&resolved)?,
            converted: None,
            normalizer: stated_normalizer(&resolved.path)?,
            resolved,
        })
    }
}

impl Registry {
    /// What [`Self::prepare`] would find, where nothing has to be made: it converts nothing and opens no model.
    ///
    /// # Errors
    /// The model is not there, not what it was, or not converted yet.
    pub fn known(
        &self,
        name_or_path: &str,
        cancel: &CancellationToken,
    ) -> Result<KnownModel, PrepareError> {
        let resolved = self.resolve(name_or_path, cancel)?;
        if resolved.format == Format::Gguf {
            return Ok(KnownModel {
                sha256: gguf_digest(&resolved)?,
                converted: None,
            });
        }
        match converted(&resolved.files, &self.converted_folder(&resolved)) {
            Some((sha256, source)) => Ok(KnownModel {
                sha256,
                converted: Some(ConvertedFrom {
                    source,
                    converter: CONVERTER_VERSION,
                }),
            }),
            None => Err(PrepareError::NotConverted(resolved.path)),
        }
    }

    fn converted_folder(&self, resolved: &ResolvedModel) -> PathBuf {
        match resolved.name {
            Some(_) => resolved.path.join(CONVERTED),
            None => self.folder().join(CONVERTED_ELSEWHERE),
        }
    }

    /// The files and folders that decide what [`Self::known`] says of a model: while they look the same, it says the
    /// same. Some need not be there.
    pub fn decisive_files(&self, name_or_path: &str) -> Vec<PathBuf> {
        let mut files = vec![self.folder().join(OWN_CATALOGUE)];
        if let Some(model) = self.catalogue().get(name_or_path) {
            let home = self.home(model);
            files.extend(model.files.iter().map(|file| home.join(&file.name)));
            files.extend([home.join(RECORD_FILE), home.join(CONVERTED)]);
            return files;
        }
        let path = Path::new(name_or_path);
        files.push(path.to_owned());
        if path.is_dir() {
            let names = source_files(path).unwrap_or_default();
            files.extend(names.iter().map(|name| path.join(name)));
            files.push(self.folder().join(CONVERTED_ELSEWHERE));
        }
        files
    }
}

fn gguf_digest(resolved: &ResolvedModel) -> Result<FileDigest, PinError> {
    let file = resolved
        .files
        .iter()
        .find(|file| file.path == resolved.path);
    file.map(|file| file.sha256)
        .ok_or_else(|| PinError::NoModel(resolved.path.clone()))
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
