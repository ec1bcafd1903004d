//! The corpus as it lies in a folder: `corpus.json` lists the case files, documents, versions and digests; every
//! text is checked when it is read.

use std::path::{Path, PathBuf};

use factum_base::{BodyDigest, canonical_json};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The value of `corpus.json`'s `format`.
pub const CORPUS_FORMAT: &str = "factum/controlled-corpus/1";
/// Largest text of a corpus that is read, in bytes.
const MOST_BYTES: u64 = 1_000_000;

/// What lies where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Corpus {
    /// [`CORPUS_FORMAT`].
    pub format: String,
    /// What it was made from.
    pub seed: u64,
    /// The case files.
    pub cases: Vec<CaseFile>,
}

/// What a case file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// Prompts may be tried on it.
    Development,
    /// It is only measured.
    Test,
}

/// A case file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseFile {
    /// Its id.
    pub case_id: String,
    /// What it is for.
    pub group: Group,
    /// Its documents in order.
    pub documents: Vec<Document>,
}

/// A document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Its id.
    pub doc_id: String,
    /// Its versions from 1.
    pub versions: Vec<Version>,
}

/// One version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// Its number.
    pub version: u32,
    /// Where its text lies, under the folder of `corpus.json`.
    pub path: String,
    /// The digest of its bytes.
    pub sha256: BodyDigest,
}

/// What is wrong with a corpus, or with gold.
#[derive(Debug, Error)]
pub enum CorpusError {
    /// A file can't be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A folder to be made is there already.
    #[error("{0} is there already")]
    Exists(PathBuf),
    /// A file is not what it should be.
    #[error("{path}: {message}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// A text is not the one that the corpus lists.
    #[error("{path}: its bytes have the digest {found}, and the corpus lists {listed}")]
    Digest {
        /// The file.
        path: PathBuf,
        /// What is there.
        found: BodyDigest,
        /// What is listed.
        listed: BodyDigest,
    },
    /// Something can't be written as JSON.
    #[error("not JSON: {0}")]
    Json(#[from] serde_json::Error),
}

pub(crate) fn read_error(path: &Path, source: std::io::Error) -> CorpusError {
    CorpusError::Io {
        path: path.to_owned(),
        source,
    }
}

impl Corpus {
    /// Reads the list of a corpus's folder.
    ///
    /// # Errors
    /// There is none, or it is malformed: case files or documents given twice, paths that lead out of the folder.
    pub fn read(folder: &Path) -> Result<Self, CorpusError> {
        let path = folder.join("corpus.json");
        let text = std::fs::read_to_string(&path).map_err(|error| read_error(&path, error))?;
        let malformed = |message: String| CorpusError::Malformed {
            path: path.clone(),
            message,
        };
        let corpus: Self =
            serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        if corpus.format != CORPUS_FORMAT {
            return Err(malformed(format!(
                "its format is {:?}, not {CORPUS_FORMAT:?}",
                corpus.format
            )));
        }
        corpus.check().map_err(malformed)?;
        Ok(corpus)
    }

    fn check(&self) -> Result<(), String> {
        let mut seen = std::collections::BTreeSet::new();
        for case in &self.cases {
            if !seen.insert((case.case_id.as_str(), "")) {
                return Err(format!("case file {:?} is given twice", case.case_id));
            }
            for document in &case.documents {
                let place = format!("{}/{}", case.case_id, document.doc_id);
                if document.doc_id.is_empty() || !seen.insert((&case.case_id, &document.doc_id)) {
                    return Err(format!("document {place:?} has no id or is given twice"));
                }
                let numbers = document.versions.iter().map(|version| version.version);
                if document.versions.is_empty()
                    || !numbers.eq(1..=u32::try_from(document.versions.len()).unwrap_or(0))
                {
                    return Err(format!("the versions of {place:?} are not 1, 2, ..."));
                }
                for version in &document.versions {
                    let plain = Path::new(&version.path)
                        .components()
                        .all(|part| matches!(part, std::path::Component::Normal(_)));
                    if !plain || version.path.is_empty() {
                        return Err(format!(
                            "the path {:?} leads out of the folder",
                            version.path
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// The digest of the list, and with it of every text.
    ///
    /// # Errors
    /// It can't be written as JSON, which does not happen.
    pub fn digest(&self) -> Result<BodyDigest, serde_json::Error> {
        canonical_json(self).map(|text| BodyDigest::of(text.as_bytes()))
    }
}

impl Version {
    /// Reads the text and checks its digest.
    ///
    /// # Errors
    /// It can't be read, or is another.
    pub fn bytes(&self, folder: &Path) -> Result<Vec<u8>, CorpusError> {
        let path = folder.join(&self.path);
        let size = std::fs::metadata(&path)
            .map_err(|error| read_error(&path, error))?
            .len();
        if size > MOST_BYTES {
            let message =
                format!("{size} bytes are more than the {MOST_BYTES} that a text may have");
            return Err(CorpusError::Malformed { path, message });
        }
        let bytes = std::fs::read(&path).map_err(|error| read_error(&path, error))?;
        let found = BodyDigest::of(&bytes);
        if found != self.sha256 {
            return Err(CorpusError::Digest {
                path,
                found,
                listed: self.sha256,
            });
        }
        Ok(bytes)
    }
}
