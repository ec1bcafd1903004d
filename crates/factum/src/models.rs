//! Generators by name: `extractive`, `local:MODEL`, `openai:URL,MODEL`, `replay:FILE`, `canned:FILE`.
//!
//! A [`Shelf`] says what a name stands for without loading anything, which is all that showing a summary
//! needs; [`Shelf::load`] loads it for a build.

mod embedders;
mod identities;
#[cfg(all(feature = "local", unix))]
pub(crate) mod patience;
mod settings;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use factum_engine::transformation::{Generator, ModelShelf};
use factum_model::ModelIdentity;
use factum_model::canned::CannedGenerator;
use factum_model::local_identity::{LocalOptions, ModelFiles, local_identity};
use factum_model::openai::{OpenAiGenerator, OpenAiOptions};
use factum_model::pins::{
    ConvertedFrom, FileDigest, Format, PinError, PrepareError, PreparedModel, Registry,
    models_folder,
};
use factum_model::replay::ReplayGenerator;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::failure::BadInput;
pub(crate) use embedders::NamedEmbedder;
use identities::Identities;
use settings::Settings;
pub(crate) use settings::suggestion;

/// The model that `local` stands for.
pub(crate) const DEFAULT_MODEL: &str = "smollm2-135m-instruct";

/// What a generator's name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named {
    /// No model.
    Extractive,
    /// A model in this process, by name or path.
    Local(String),
    /// A model behind a server.
    OpenAi { url: String, model: String },
    /// Recorded generations.
    Replay(PathBuf),
    /// Outputs from a file.
    Canned(PathBuf),
}

impl Named {
    /// Reads a name. Paths are made absolute, so that the name means the same from every folder.
    pub(crate) fn parse(name: &str) -> Result<Self, BadInput> {
        let wrong = |message: String| {
            let hint = "leave out --generator to work without a model".to_owned();
            BadInput(message, Some(hint))
        };
        let (kind, rest) = name.split_once(':').unwrap_or((name, ""));
        let path =
            || std::path::absolute(rest).map_err(|error| wrong(format!("{name:?}: {error}")));
        match (kind, rest) {
            ("extractive", "") => Ok(Self::Extractive),
            ("local", "") => Ok(Self::Local(DEFAULT_MODEL.to_owned())),
            ("local", model) if looks_like_path(model) => {
                Ok(Self::Local(path()?.display().to_string()))
            }
            ("local", model) => Ok(Self::Local(model.to_owned())),
            ("openai", rest) => match rest.rsplit_once(',') {
                Some((url, model)) if !url.is_empty() && !model.is_empty() => Ok(Self::OpenAi {
                    url: url.trim_end_matches('/').to_owned(),
                    model: model.to_owned(),
                }),
                _ => Err(wrong(format!(
                    "{name:?} is not openai:URL,MODEL, such as openai:http://127.0.0.1:8080/v1,my-model"
                ))),
            },
            ("replay" | "canned", "") => Err(wrong(format!("{kind:?} needs a file: {kind}:FILE"))),
            ("replay", _) => Ok(Self::Replay(path()?)),
            ("canned", _) => Ok(Self::Canned(path()?)),
            _ => Err(wrong(format!(
                "there is no generator {name:?}; there are extractive, local[:MODEL], openai:URL,MODEL, replay:FILE and canned:FILE"
            ))),
        }
    }

    /// The name, written in the one way that heads and runs keep it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Extractive => Generator::EXTRACTIVE.to_owned(),
            Self::Local(model) => format!("local:{model}"),
            Self::OpenAi { url, model } => format!("openai:{url},{model}"),
            Self::Replay(path) => format!("replay:{}", path.display()),
            Self::Canned(path) => format!("canned:{}", path.display()),
        }
    }
}

/// A model's name has no slash; a file or folder is given with one, or ends in `.gguf`.
fn looks_like_path(model: &str) -> bool {
    model.contains(['/', '\\'])
        || Path::new(model)
            .extension()
            .is_some_and(|end| end.eq_ignore_ascii_case("gguf"))
}

/// Where models and their settings are found.
pub(crate) struct Shelf {
    folder: PathBuf,
    identities: Identities,
}

impl Shelf {
    /// The shelf of the user's data folder.
    pub(crate) fn open() -> Result<Self, BadInput> {
        let folder = models_folder(|name| std::env::var_os(name)).map_err(BadInput::of)?;
        let identities = Identities::of(&folder);
        Ok(Self { folder, identities })
    }

    pub(crate) fn registry(&self) -> Result<Registry, BadInput> {
        Registry::load(&self.folder).map_err(BadInput::of)
    }

    fn settings(&self) -> Result<Settings, BadInput> {
        Settings::load(&self.folder)
    }

    /// Loads what a name stands for. It may take seconds, and blocks.
    pub(crate) fn load(&self, named: &Named) -> Result<Generator, BadInput> {
        let engine: Arc<dyn factum_model::Generator> = match named {
            Named::Extractive => return Ok(Generator::Extractive),
            // Before anything is fetched for nothing.
            Named::Local(_) if !cfg!(feature = "local") => return Err(no_local_models()),
            Named::Local(model) => load_local(self.local_options(model)?)?,
            Named::OpenAi { url, model } => {
                let options = self.openai_options(url, model, true)?;
                Arc::new(OpenAiGenerator::new(&options).map_err(BadInput::of)?)
            }
            Named::Replay(path) => {
                let wanted = "`factum export run RUN > FILE` writes one that can be replayed";
                Arc::new(ReplayGenerator::open(path).map_err(|error| file_of(&error, wanted))?)
            }
            Named::Canned(path) => {
                let wanted = r#"it should hold {"outputs": [{"contains": "...", "text": "..."}]}"#;
                Arc::new(CannedGenerator::open(path).map_err(|error| file_of(&error, wanted))?)
            }
        };
        Ok(Generator::model(&named.name(), engine))
    }

    /// A server as it is configured. The key is read only where something is to be asked.
    pub(crate) fn openai_options(
        &self,
        url: &str,
        model: &str,
        with_key: bool,
    ) -> Result<OpenAiOptions, BadInput> {
        let url = url.parse().map_err(BadInput::of)?;
        let options = OpenAiOptions::new(url, model);
        self.settings()?.apply(options, with_key)
    }

    /// A local model's files, converted where they have to be.
    fn prepared(&self, model: &str) -> Result<PreparedModel, BadInput> {
        let prepared = self.registry()?.prepare(model, &CancellationToken::new());
        prepared.map_err(|error| match error {
            PrepareError::Pin(error) => BadInput::pin(&error),
            other => BadInput::of(other),
        })
    }

    /// A local model whose files are there.
    fn local_options(&self, model: &str) -> Result<LocalOptions, BadInput> {
        let prepared = self.prepared(model)?;
        let mut options = LocalOptions::new(&prepared.gguf, "");
        options.files = model_files(prepared.sha256, prepared.converted);
        Ok(self.settings()?.local(options))
    }

    /// The identity of a local model, for which no model is opened or converted. Where its files can't be used, their
    /// pin says what they should be.
    fn local_identity(&self, model: &str) -> Result<ModelIdentity, BadInput> {
        let registry = self.registry()?;
        let known = registry.known(model, &CancellationToken::new());
        let mut options = LocalOptions::new("", "");
        options.files = match known {
            Ok(known) => model_files(known.sha256, known.converted),
            Err(error) => {
                let pinned = pinned_digest(&registry, model);
                model_files(pinned.ok_or_else(|| BadInput::of(error))?, None)
            }
        };
        Ok(local_identity(&self.settings()?.local(options)))
    }

    /// The files that decide a model's identity.
    fn decisive_files(&self, named: &Named) -> Vec<PathBuf> {
        let settings = self.folder.join(settings::FILE);
        match named {
            Named::Extractive => Vec::new(),
            Named::OpenAi { .. } => vec![settings],
            Named::Replay(path) | Named::Canned(path) => vec![path.clone()],
            Named::Local(model) => {
                let registry = self.registry();
                let files = registry.map(|registry| registry.decisive_files(model));
                let mut files = files.unwrap_or_default();
                files.push(settings);
                files
            }
        }
    }

    fn identity_of(&self, named: &Named) -> Result<ModelIdentity, BadInput> {
        match named {
            Named::Extractive => Err(BadInput("extraction has no model".to_owned(), None)),
            Named::Local(model) => self.local_identity(model),
            Named::OpenAi { url, model } => self
                .openai_options(url, model, false)?
                .identity()
                .map_err(BadInput::of),
            Named::Replay(path) => ReplayGenerator::open(path)
                .map(|replay| factum_model::Generator::identity(&replay).clone())
                .map_err(BadInput::of),
            Named::Canned(path) => CannedGenerator::open(path)
                .map(|canned| factum_model::Generator::identity(&canned).clone())
                .map_err(BadInput::of),
        }
    }
}

/// The digest of a named model's one GGUF file, where it is pinned: showing a summary needs no more of it.
fn pinned_digest(registry: &Registry, model: &str) -> Option<FileDigest> {
    let pinned = registry.catalogue().get(model)?;
    match (pinned.format, &pinned.files[..]) {
        (Format::Gguf, [file]) => file.sha256,
        _ => None,
    }
}

fn model_files(sha256: FileDigest, converted: Option<ConvertedFrom>) -> ModelFiles {
    let extra = converted
        .map(|from| json!({"converter": from.converter, "source_sha256": from.source.to_hex()}));
    ModelFiles {
        sha256: sha256.to_hex(),
        extra,
    }
}

impl ModelShelf for Shelf {
    fn identity(&self, name: &str) -> Result<ModelIdentity, String> {
        let named = Named::parse(name).map_err(|error| error.0)?;
        let decisive = || self.decisive_files(&named);
        let read = || self.identity_of(&named).map_err(|error| error.0);
        self.identities
            .get(&named.name(), SystemTime::now(), decisive, read)
    }
}

#[cfg(feature = "local")]
fn load_local(options: LocalOptions) -> Result<Arc<dyn factum_model::Generator>, BadInput> {
    let loaded = factum_model::local::LocalGenerator::load(options).map_err(BadInput::of)?;
    Ok(Arc::new(loaded))
}

#[cfg(not(feature = "local"))]
fn load_local(_: LocalOptions) -> Result<Arc<dyn factum_model::Generator>, BadInput> {
    Err(no_local_models())
}

fn no_local_models() -> BadInput {
    let hint = "install cmake, clang and libclang, then build with `cargo build --release -p factum --features local`";
    BadInput(
        "this factum was built without local models".to_owned(),
        Some(hint.to_owned()),
    )
}

fn file_of(error: &dyn std::fmt::Display, wanted: &str) -> BadInput {
    BadInput(error.to_string(), Some(wanted.to_owned()))
}

/// A failure of a model's files, settings or server, with the hint that fits.
pub(crate) fn pin_hint(error: &PinError) -> Option<String> {
    Some(match error {
        PinError::Absent(name) => format!("`factum model pull {name}` fetches them"),
        PinError::Unknown { .. } => "`factum model list` lists the models".to_owned(),
        PinError::WrongDigest { .. } | PinError::WrongSize { .. } | PinError::Damaged { .. } => {
            "remove the file and pull the model again; if it happens again, do not trust the source"
                .to_owned()
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written_in_one_way() {
        for (given, kept) in [
            ("extractive", "extractive"),
            ("local", "local:smollm2-135m-instruct"),
            ("local:qwen2.5-1.5b-instruct", "local:qwen2.5-1.5b-instruct"),
            ("local:/models/a.gguf", "local:/models/a.gguf"),
            (
                "openai:http://127.0.0.1:8080/v1/,m",
                "openai:http://127.0.0.1:8080/v1,m",
            ),
            ("replay:/tmp/run.json", "replay:/tmp/run.json"),
        ] {
            let named = Named::parse(given).unwrap();
            assert_eq!(named.name(), kept);
            assert_eq!(Named::parse(kept).unwrap(), named);
        }
        for wrong in [
            "",
            "gpt",
            "openai:",
            "openai:http://a",
            "openai:,m",
            "replay:",
            "canned",
            "extractive:x",
        ] {
            assert!(Named::parse(wrong).is_err(), "{wrong}");
        }
    }
}
