//! How an experiment's records lie in their folder.
//!
//! - `experiment.json`: what was run ([`Experiment`]).
//! - `profile.json`: all that the profile says.
//! - `corpus/`: a copy of the inputs.
//! - `records/CASE.json`: a case file's steps ([`CaseRecord`]); `records/CASE/STEP.KIND.json`: the runs
//!   (`factum/run/1`).
//! - `records/sample.json`: the claims that a reader reviews; `reviews/`: what readers found.
//! - `metrics.json`: what the records come to, without gold.
//! - `records.json`: the digest of every file above but the texts, whose digests are in `corpus/corpus.json`.
//! - `work/`: the workspaces of the builds. They are scaffolding: nothing is read from them once it is recorded.
//!
//! Every file is written whole or not at all, and its digest is in the list before it counts.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use factum_base::{BodyDigest, canonical_json};
use factum_graph::compare::Comparison;
use factum_graph::run_file::{RunFile, RunFileError, parse_run_file};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::corpus::Group;
use super::protocol::{Kind, Step};

/// The value of `experiment.json`'s `format`.
pub const EXPERIMENT_FORMAT: &str = "factum/controlled/1";
/// The value of a case record's `format`.
pub const CASE_FORMAT: &str = "factum/controlled-case/1";
/// The value of `records.json`'s `format`.
pub const LIST_FORMAT: &str = "factum/controlled-records/1";
const LIST: &str = "records.json";

/// What was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// [`EXPERIMENT_FORMAT`].
    pub format: String,
    /// The digest of `corpus.json`.
    pub corpus_sha256: BodyDigest,
    /// The generator's name.
    pub generator: String,
    /// All of it that can change an answer.
    pub identity: Value,
    /// The profile's name.
    pub profile: String,
    /// The digest of all that the profile says.
    pub profile_sha256: BodyDigest,
    /// Answers to the same input are used again, in incremental builds.
    pub reuses_generations: bool,
    /// The builder's version.
    pub factum: String,
}

/// A case file's steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseRecord {
    /// [`CASE_FORMAT`].
    pub format: String,
    /// The case file.
    pub case_id: String,
    /// What it is for.
    pub group: Group,
    /// Its steps so far, in order.
    pub steps: Vec<StepRecord>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepRecord {
    /// Which.
    pub step: Step,
    /// Its builds.
    pub builds: Vec<BuildRecord>,
    /// The incremental build against the full one, where there are both.
    pub comparison: Option<Comparison>,
}

/// One build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildRecord {
    /// How it was made.
    pub kind: Kind,
    /// Where its run lies, under the folder.
    pub file: String,
    /// Runs begun for it; more than one where some were interrupted.
    pub attempts: u64,
    /// What asking for the summary gave before the build: `STALE`, `ABSENT`, `INVALID` or `CURRENT`.
    pub served_before: String,
    /// And after.
    pub served_after: String,
    /// The case file's events at that time, each with its chained digest.
    pub events: Vec<Value>,
}

/// What is wrong with an experiment's folder.
#[derive(Debug, Error)]
pub enum FolderError {
    /// A file can't be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// There is no experiment here.
    #[error("{0} holds no experiment")]
    NoExperiment(PathBuf),
    /// The folder holds other files.
    #[error("{0} is not empty and holds no experiment")]
    Foreign(PathBuf),
    /// A record is not what the list says.
    #[error("{0} is damaged: its digest is not the one in records.json")]
    Damaged(PathBuf),
    /// A record is malformed.
    #[error("{path}: {message}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// The folder holds an experiment with another setting.
    #[error("the folder holds an experiment with another {what}: {there} there, {here} here")]
    Other {
        /// Which setting.
        what: &'static str,
        /// Its value there.
        there: String,
        /// Its value here.
        here: String,
    },
    /// A reader's findings are of a claim that is not in the sample, or of one twice.
    #[error("claim {0} is not in the sample, or is given twice")]
    Findings(u64),
    /// Something can't be written as JSON.
    #[error("not JSON: {0}")]
    Json(#[from] serde_json::Error),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    format: String,
    files: BTreeMap<String, BodyDigest>,
}

/// An experiment's folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    list: Mutex<List>,
}

impl Folder {
    /// Opens an experiment's folder.
    ///
    /// # Errors
    /// There is none, or its list is malformed.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let file = path.join(LIST);
        if !file.exists() {
            return Err(FolderError::NoExperiment(path.to_owned()));
        }
        let list: List = read_json(&file)?;
        if list.format != LIST_FORMAT {
            let message = format!("its format is {:?}, not {LIST_FORMAT:?}", list.format);
            return Err(FolderError::Malformed {
                path: file,
                message,
            });
        }
        Ok(Self {
            path: path.to_owned(),
            list: Mutex::new(list),
        })
    }

    /// Opens the folder, or makes it where nothing is there yet.
    ///
    /// # Errors
    /// It holds something else, or can't be written.
    pub fn open_or_make(path: &Path) -> Result<Self, FolderError> {
        if path.join(LIST).exists() {
            return Self::open(path);
        }
        std::fs::create_dir_all(path).map_err(|error| io(path, error))?;
        let mut inside = std::fs::read_dir(path).map_err(|error| io(path, error))?;
        if inside.any(|entry| {
            entry.is_ok_and(|entry| {
                entry.file_name() != "corpus" && entry.file_name() != "experiment.json"
            })
        }) {
            return Err(FolderError::Foreign(path.to_owned()));
        }
        let list = List {
            format: LIST_FORMAT.to_owned(),
            files: BTreeMap::new(),
        };
        Ok(Self {
            path: path.to_owned(),
            list: Mutex::new(list),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the copy of the inputs lies.
    pub fn corpus(&self) -> PathBuf {
        self.path.join("corpus")
    }

    /// Where a kind of build has its workspace.
    pub fn workspace(&self, kind: Kind) -> PathBuf {
        self.path.join("work").join(kind.word())
    }

    /// Whether a record is there.
    pub fn has(&self, name: &str) -> bool {
        self.files().contains_key(name)
    }

    /// The records with their digests.
    pub fn files(&self) -> BTreeMap<String, BodyDigest> {
        self.locked().files.clone()
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, List> {
        self.list
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Writes records and enters them in the list, all of them or none. Canonical JSON: a record has one form.
    ///
    /// # Errors
    /// A file can't be written.
    pub fn put(&self, records: &[(String, String)]) -> Result<(), FolderError> {
        for (name, text) in records {
            write_whole(&self.path.join(name), text.as_bytes())?;
        }
        let mut list = self.locked();
        let mut longer = list.clone();
        for (name, text) in records {
            longer
                .files
                .insert(name.clone(), BodyDigest::of(text.as_bytes()));
        }
        write_whole(&self.path.join(LIST), canonical_json(&longer)?.as_bytes())?;
        *list = longer;
        Ok(())
    }

    /// The digest of the list, and with it of all records. Kept elsewhere, it binds them.
    ///
    /// # Errors
    /// The list can't be written as JSON, which does not happen.
    pub fn digest(&self) -> Result<BodyDigest, FolderError> {
        Ok(BodyDigest::of(canonical_json(&*self.locked())?.as_bytes()))
    }

    /// The bytes of a record, checked against the list. `None` where there is no such record.
    ///
    /// # Errors
    /// It can't be read, or was changed.
    pub fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>, FolderError> {
        let Some(listed) = self.locked().files.get(name).copied() else {
            return Ok(None);
        };
        let path = self.path.join(name);
        let bytes = std::fs::read(&path).map_err(|error| io(&path, error))?;
        if BodyDigest::of(&bytes) != listed {
            return Err(FolderError::Damaged(path));
        }
        Ok(Some(bytes))
    }

    /// A record.
    ///
    /// # Errors
    /// It can't be read, was changed, or is malformed.
    pub fn record<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, FolderError> {
        let Some(bytes) = self.bytes(name)? else {
            return Ok(None);
        };
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| FolderError::Malformed {
                path: self.path.join(name),
                message: error.to_string(),
            })
    }

    /// What was run.
    ///
    /// # Errors
    /// The record can't be read.
    pub fn experiment(&self) -> Result<Experiment, FolderError> {
        self.record("experiment.json")?
            .ok_or_else(|| FolderError::NoExperiment(self.path.clone()))
    }

    /// The case files that have records, in order.
    ///
    /// # Errors
    /// A record can't be read.
    pub fn cases(&self) -> Result<Vec<CaseRecord>, FolderError> {
        let names: Vec<String> = self
            .files()
            .into_keys()
            .filter(|name| {
                name.strip_prefix("records/")
                    .and_then(|rest| rest.strip_suffix(".json"))
                    .is_some_and(|rest| !rest.contains('/') && rest != "sample")
            })
            .collect();
        let mut cases = Vec::with_capacity(names.len());
        for name in names {
            cases.extend(self.record::<CaseRecord>(&name)?);
        }
        Ok(cases)
    }

    /// A build's run.
    ///
    /// # Errors
    /// It can't be read, was changed, or is no run file.
    pub fn run(&self, build: &BuildRecord) -> Result<RunFile, FolderError> {
        let path = || self.path.join(&build.file);
        let bytes = self
            .bytes(&build.file)?
            .ok_or_else(|| FolderError::Malformed {
                path: path(),
                message: "the run is not in the list of records".to_owned(),
            })?;
        parse_run_file(&bytes).map_err(|error: RunFileError| FolderError::Malformed {
            path: path(),
            message: error.to_string(),
        })
    }
}

/// The name of a case file's record.
pub(crate) fn case_name(case_id: &str) -> String {
    format!("records/{case_id}.json")
}

/// The name of a build's run.
pub(crate) fn run_name(case_id: &str, step: Step, kind: Kind) -> String {
    format!("records/{case_id}/{}.{}.json", step.word(), kind.word())
}

pub(crate) fn io(path: &Path, source: std::io::Error) -> FolderError {
    FolderError::Io {
        path: path.to_owned(),
        source,
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, FolderError> {
    let text = std::fs::read_to_string(path).map_err(|error| io(path, error))?;
    serde_json::from_str(&text).map_err(|error| FolderError::Malformed {
        path: path.to_owned(),
        message: error.to_string(),
    })
}

/// Writes a file so that it is there whole or not at all.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), FolderError> {
    let parent = path.parent().unwrap_or(path);
    std::fs::create_dir_all(parent).map_err(|error| io(parent, error))?;
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    let beside = PathBuf::from(beside);
    let written = std::fs::File::create(&beside)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|error| io(path, error))
}
