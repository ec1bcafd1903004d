//! Gold: which claims are true of which version. It lies apart from the inputs, and nothing that builds reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::corpus::{CorpusError, read_error};
use super::facts::Fact;

/// The value of a gold file's `format`.
pub const GOLD_FORMAT: &str = "factum/gold/1";

/// A claim's fields, as gold has them.
pub type GoldFields = BTreeMap<String, String>;

impl Fact {
    /// The same as a claim's fields.
    pub fn fields(&self) -> GoldFields {
        [
            ("subject", &self.subject),
            ("field", &self.field),
            ("value", &self.value),
        ]
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .into()
    }
}

/// What is true, by case file, document and version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gold {
    /// [`GOLD_FORMAT`].
    pub format: String,
    /// The case files.
    pub cases: Vec<GoldCase>,
}

/// What is true in one case file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoldCase {
    /// The case file.
    pub case_id: String,
    /// Its documents.
    pub documents: Vec<GoldDocument>,
}

/// What is true in one document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoldDocument {
    /// The document.
    pub doc_id: String,
    /// Its versions.
    pub versions: Vec<GoldVersion>,
}

/// What is true in one version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoldVersion {
    /// The version.
    pub version: u32,
    /// The claims that a perfect reader would make, by their fields.
    pub facts: Vec<GoldFields>,
}

impl Gold {
    /// Reads a gold file, or `gold.json` in a folder.
    ///
    /// # Errors
    /// It can't be read, or is no gold.
    pub fn read(path: &Path) -> Result<Self, CorpusError> {
        let file = if path.is_dir() {
            path.join("gold.json")
        } else {
            path.to_owned()
        };
        let text = std::fs::read_to_string(&file).map_err(|error| read_error(&file, error))?;
        let malformed = |message: String| CorpusError::Malformed {
            path: file.clone(),
            message,
        };
        let gold: Self =
            serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        if gold.format != GOLD_FORMAT {
            return Err(malformed(format!(
                "its format is {:?}, not {GOLD_FORMAT:?}",
                gold.format
            )));
        }
        Ok(gold)
    }

    /// What is true of a case file whose documents stand at these versions. `None` where gold does not
    /// know the case file or one of them.
    pub fn of<'v>(
        &self,
        case_id: &str,
        versions: impl IntoIterator<Item = (&'v str, u32)>,
    ) -> Option<BTreeSet<&GoldFields>> {
        let case = self.cases.iter().find(|case| case.case_id == case_id)?;
        let mut facts = BTreeSet::new();
        for (doc_id, version) in versions {
            let document = case.documents.iter().find(|known| known.doc_id == doc_id)?;
            let known = document
                .versions
                .iter()
                .find(|known| known.version == version)?;
            facts.extend(&known.facts);
        }
        Some(facts)
    }
}
