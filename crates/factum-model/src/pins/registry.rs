//! The models of a data folder: which there are, in what state, and what a name or path stands for.

use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use super::catalogue::{Catalogue, Format, PinnedModel, Source};
use super::digests::{DigestedFile, FileDigest, Memory, Stamp, digest_file};
use super::error::{BadCatalogue, PinError};
use super::record::{Record, RecordedFile};
use crate::weights::{CheckError, CheckReport, check_model, read_bounded, source_files};

/// The user's own list in the data folder.
pub(super) const OWN_CATALOGUE: &str = "models.toml";
const MAX_CATALOGUE_BYTES: u64 = 1 << 20;

/// The models of a data folder.
#[derive(Debug, Clone)]
pub struct Registry {
    folder: PathBuf,
    catalogue: Catalogue,
}

/// Whether a model's files are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// They were never fetched.
    Absent,
    /// They are there, with the sizes and pins they were recorded with.
    Present,
    /// Something is missing or not as recorded.
    Damaged,
}

/// A model in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedModel {
    /// Its name.
    pub name: String,
    /// Its licence.
    pub licence: String,
    /// Bytes.
    pub size: u64,
    /// Where its files come from.
    pub source: Source,
    /// What its files are.
    pub format: Format,
    /// Whether they are there.
    pub state: State,
}

/// A model that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedModel {
    /// Its name, where it is known by one.
    pub name: Option<String>,
    /// What its files are.
    pub format: Format,
    /// The GGUF file, or the folder with Safetensors.
    pub path: PathBuf,
    /// All of its files with their digests, by name.
    pub files: Vec<DigestedFile>,
}

impl Registry {
    /// The models that are compiled in, and those of the folder's own list. The folder need not be there.
    ///
    /// # Errors
    /// The folder's list can't be used.
    pub fn load(folder: &Path) -> Result<Self, PinError> {
        let bad = |file: &str, reason| PinError::Catalogue {
            file: file.to_owned(),
            reason,
        };
        let mut catalogue = Catalogue::built_in().map_err(|reason| bad("of this build", reason))?;
        let own = folder.join(OWN_CATALOGUE);
        if own.exists() {
            let bytes = read_bounded(&own, MAX_CATALOGUE_BYTES).map_err(PinError::file(&own))?;
            let text = String::from_utf8(bytes).map_err(|e| BadCatalogue::Form(e.to_string()));
            text.and_then(|text| catalogue.add(&text))
                .map_err(|reason| bad(&own.display().to_string(), reason))?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            catalogue,
        })
    }

    /// The data folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The models that are known by name.
    pub const fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The folder of a model's files.
    pub(super) fn home(&self, model: &PinnedModel) -> PathBuf {
        self.folder.join(&model.name)
    }

    /// A model by its name.
    pub(super) fn model(&self, name: &str) -> Result<&PinnedModel, PinError> {
        self.catalogue.get(name).ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> PinError {
        let known: Vec<&str> = self.catalogue.iter().map(|m| m.name.as_str()).collect();
        PinError::Unknown {
            name: name.to_owned(),
            known: known.join(", "),
        }
    }

    /// All models by name, with a quick look at their files: nothing is hashed.
    pub fn list(&self) -> Vec<ListedModel> {
        let listed = self.catalogue.iter().map(|model| ListedModel {
            name: model.name.clone(),
            licence: model.licence.clone(),
            size: model.size,
            source: model.source.clone(),
            format: model.format,
            state: self.state(model),
        });
        listed.collect()
    }

    fn state(&self, model: &PinnedModel) -> State {
        let home = self.home(model);
        match self.recorded(model) {
            Ok(record) => {
                let same_sizes = record.files.iter().all(|(name, file)| {
                    Stamp::of(&home.join(name)).is_ok_and(|now| now.size == file.stamp.size)
                });
                if same_sizes {
                    State::Present
                } else {
                    State::Damaged
                }
            }
            Err(PinError::Absent(_)) => State::Absent,
            Err(_) => State::Damaged,
        }
    }

    /// The record of a model, held to its pins.
    fn recorded(&self, model: &PinnedModel) -> Result<Record, PinError> {
        let home = self.home(model);
        let Some(record) = Record::read(&home)? else {
            return Err(PinError::Absent(model.name.clone()));
        };
        let damaged = |name: &str, message: &str| PinError::Damaged {
            file: home.join(name),
            message: message.to_owned(),
        };
        if record.source != model.source || record.name != model.name {
            return Err(damaged(
                "",
                "it was fetched from elsewhere than is pinned now",
            ));
        }
        for pinned in &model.files {
            let Some(file) = record.files.get(&pinned.name) else {
                return Err(damaged(&pinned.name, "it was not fetched"));
            };
            if let Some(expected) = pinned.sha256
                && expected != file.sha256
            {
                return Err(PinError::WrongDigest {
                    file: home.join(&pinned.name).display().to_string(),
                    expected,
                    found: file.sha256,
                });
            }
        }
        // The record is a file like any other: what it adds to the pins could lead out of the folder.
        let known = |name: &String| model.files.iter().any(|file| file.name == *name);
        if let Some(name) = record.files.keys().find(|name| !known(name)) {
            return Err(PinError::Record {
                file: home.join(super::record::RECORD_FILE),
                message: format!("{name:?} is no file of this model"),
            });
        }
        Ok(record)
    }

    /// What a name, or the path of a GGUF file or Safetensors folder, stands for. Files that look as they did when
    /// they were last hashed are not hashed again.
    ///
    /// # Errors
    /// There is no such model, its files are not there, or they are not what they were.
    pub fn resolve(
        &self,
        name_or_path: &str,
        cancel: &CancellationToken,
    ) -> Result<ResolvedModel, PinError> {
        if let Some(model) = self.catalogue.get(name_or_path) {
            return self.resolve_named(model, false, cancel);
        }
        let path = Path::new(name_or_path);
        if !path.exists() {
            return Err(self.unknown(name_or_path));
        }
        self.resolve_path(path, cancel)
    }

    /// Hashes all files of a model, whatever they look like.
    ///
    /// # Errors
    /// As for [`Self::resolve`].
    pub fn verify(
        &self,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<ResolvedModel, PinError> {
        self.resolve_named(self.model(name)?, true, cancel)
    }

    pub(super) fn resolve_named(
        &self,
        model: &PinnedModel,
        anew: bool,
        cancel: &CancellationToken,
    ) -> Result<ResolvedModel, PinError> {
        let home = self.home(model);
        let mut record = self.recorded(model)?;
        let mut hashed = false;
        let mut files = Vec::new();
        for (name, file) in &mut record.files {
            let path = home.join(name);
            hashed |= hold_to_record(&path, file, anew, cancel)?;
            files.push(DigestedFile {
                name: name.clone(),
                path,
                sha256: file.sha256,
                size: file.stamp.size,
            });
        }
        // Not being able to note the new stamps only costs time later.
        if hashed {
            let _ = record.write(&home);
        }
        let weights = files.iter().find(|file| is_gguf(&file.path));
        let path = match (model.format, weights) {
            (Format::Gguf, Some(file)) => file.path.clone(),
            _ => home,
        };
        Ok(ResolvedModel {
            name: Some(model.name.clone()),
            format: model.format,
            path,
            files,
        })
    }

    fn resolve_path(
        &self,
        path: &Path,
        cancel: &CancellationToken,
    ) -> Result<ResolvedModel, PinError> {
        let (format, names) = if path.is_dir() {
            let names = source_files(path).map_err(|_| PinError::NoModel(path.to_owned()))?;
            (Format::Safetensors, names)
        } else if is_gguf(path) {
            (Format::Gguf, Vec::new())
        } else {
            return Err(PinError::NoModel(path.to_owned()));
        };
        let places: Vec<(String, PathBuf)> = if format == Format::Gguf {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            vec![(name.into_owned(), path.to_owned())]
        } else {
            let place = |name: String| {
                let path = path.join(&name);
                (name, path)
            };
            names.into_iter().map(place).collect()
        };
        let mut memory = Memory::read(&self.folder);
        let mut any = false;
        let mut files = Vec::new();
        for (name, path) in places {
            let (sha256, stamp, hashed) = memory.digest(&path, cancel)?;
            any |= hashed;
            files.push(DigestedFile {
                name,
                path,
                sha256,
                size: stamp.size,
            });
        }
        if any {
            memory.write(&self.folder);
        }
        Ok(ResolvedModel {
            name: None,
            format,
            path: path.to_owned(),
            files,
        })
    }

    /// Checks a model strictly: its files, held to their digests by hashing them, then what is in them, held to
    /// the pinned digests of tokenizer and chat template.
    ///
    /// # Errors
    /// There is no such model, or its files are not what is pinned, or can't be read.
    pub fn check(
        &self,
        name_or_path: &str,
        cancel: &CancellationToken,
    ) -> Result<CheckReport, PinError> {
        let pinned = self.catalogue.get(name_or_path);
        let resolved = match pinned {
            Some(model) => self.resolve_named(model, true, cancel)?,
            None => self.resolve(name_or_path, cancel)?,
        };
        let mut report = check_model(&resolved.path, cancel).map_err(|error| match error {
            CheckError::Cancelled => PinError::Cancelled,
            CheckError::Read { file, source } => PinError::File {
                file: file.into(),
                source,
            },
        })?;
        if let Some(model) = pinned {
            report.expect(model.tokenizer_sha256, model.template_sha256);
        }
        Ok(report)
    }
}

fn is_gguf(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "gguf")
}

/// Holds a file to its record, hashing it if it looks different, and says whether it was hashed.
fn hold_to_record(
    path: &Path,
    recorded: &mut RecordedFile,
    anew: bool,
    cancel: &CancellationToken,
) -> Result<bool, PinError> {
    let damaged = |message: String| PinError::Damaged {
        file: path.to_owned(),
        message,
    };
    let now = Stamp::of(path).map_err(|error| damaged(error.to_string()))?;
    if now.size != recorded.stamp.size {
        let (found, expected) = (now.size, recorded.stamp.size);
        return Err(damaged(format!("it has {found} bytes, and had {expected}")));
    }
    if now == recorded.stamp && !anew {
        return Ok(false);
    }
    let (found, stamp) = digest_file(path, cancel)?;
    hold_digest(&path.display().to_string(), recorded.sha256, found)?;
    recorded.stamp = stamp;
    Ok(true)
}

/// An expected digest is the one found.
pub(super) fn hold_digest(
    file: &str,
    expected: FileDigest,
    found: FileDigest,
) -> Result<(), PinError> {
    if expected == found {
        return Ok(());
    }
    let file = file.to_owned();
    Err(PinError::WrongDigest {
        file,
        expected,
        found,
    })
}
