//! Outputs kept by all that could change them, so that a run that was stopped goes on where it was.
//!
//! A key covers what the provider is given, the provider's whole identity, the scorers' version and the repeat. A file
//! that can't be read again is a miss, never an error.

use std::io::Write as _;
use std::path::PathBuf;

use factum_base::{BodyDigest, canonical_json};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::fixture::Fixture;
use crate::provider::{Provider, source_json};
use crate::score_name::SCORER_VERSION;
use crate::source::Source;
use crate::summary::Summary;

/// A folder of outputs.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
    /// Look nothing up; keep all.
    refresh: bool,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    format: String,
    key: String,
    summary: Summary,
    seconds: f64,
}

const FORMAT: &str = "factum/eval-output/1";

impl Cache {
    /// A cache in a folder, which is made when the first output is kept. With `refresh`, nothing is looked up.
    pub const fn new(folder: PathBuf, refresh: bool) -> Self {
        Self { folder, refresh }
    }

    /// The key of a fixture's output.
    ///
    /// # Errors
    /// The provider's identity can't be written as canonical JSON.
    pub fn key(
        fixture: &Fixture,
        provider: &dyn Provider,
        repeat: u32,
    ) -> Result<String, serde_json::Error> {
        // Times are floats, which canonical JSON need not hold; one writer writes them alike each time.
        let source = BodyDigest::of(source_json(fixture).to_string().as_bytes()).to_hex();
        // The product is also given what no longer counts, since it must leave that out.
        let history = match &fixture.source {
            Source::Lines(_) => None,
            Source::Documents(documents) => {
                Some(BodyDigest::of(format!("{:?}", documents.all()).as_bytes()).to_hex())
            }
        };
        let text = canonical_json(&json!({
            "format": FORMAT,
            "history": history,
            "provider": provider.identity(),
            "repeat": repeat,
            "scorers": SCORER_VERSION,
            "source": source,
        }))?;
        Ok(BodyDigest::of(text.as_bytes()).to_hex())
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder
            .join(key.get(..2).unwrap_or("00"))
            .join(format!("{key}.json"))
    }

    /// A kept output with the seconds that it took.
    pub fn get(&self, key: &str) -> Option<(Summary, f64)> {
        if self.refresh {
            return None;
        }
        let bytes = std::fs::read(self.path(key)).ok()?;
        let kept: Kept = serde_json::from_slice(&bytes).ok()?;
        (kept.format == FORMAT && kept.key == key).then_some((kept.summary, kept.seconds))
    }

    /// Keeps an output: whole or not at all.
    ///
    /// # Errors
    /// The folder can't be written.
    pub fn put(&self, key: &str, summary: &Summary, seconds: f64) -> std::io::Result<()> {
        let path = self.path(key);
        let folder = path.parent().unwrap_or(&self.folder);
        std::fs::create_dir_all(folder)?;
        let kept = Kept {
            format: FORMAT.to_owned(),
            key: key.to_owned(),
            summary: summary.clone(),
            seconds,
        };
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&serde_json::to_vec(&kept)?)?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(())
    }
}
