//! Embedders by name: `local`, or `local:MODEL` for a sentence model in this process.

use std::sync::Arc;

use factum_model::Embedder;
use factum_model::local_identity::EmbedderOptions;

use super::{Named, Shelf, model_files, no_local_models};
use crate::failure::BadInput;

/// The model that `local` stands for.
const DEFAULT_EMBEDDER: &str = "all-minilm-l6-v2";

/// An embedder with its name on screen.
pub(crate) struct NamedEmbedder {
    pub(crate) name: String,
    pub(crate) embedder: Arc<dyn Embedder>,
}

/// The model that an embedder's name stands for.
fn model_of(name: &str) -> Result<String, BadInput> {
    if name == "local" {
        return Ok(DEFAULT_EMBEDDER.to_owned());
    }
    match Named::parse(name) {
        Ok(Named::Local(model)) => Ok(model),
        _ => Err(BadInput(
            format!("there is no embedder {name:?}; there is local[:MODEL]"),
            Some("leave out --embeddings to search by words alone".to_owned()),
        )),
    }
}

impl Shelf {
    /// Loads an embedder. It may take seconds, and blocks.
    pub(crate) fn load_embedder(&self, name: &str) -> Result<NamedEmbedder, BadInput> {
        let model = model_of(name)?;
        if cfg!(not(feature = "local")) {
            return Err(no_local_models());
        }
        let prepared = self.prepared(&model)?;
        let mut options = EmbedderOptions::new(&prepared.gguf, "");
        options.files = model_files(prepared.sha256, prepared.converted);
        Ok(NamedEmbedder {
            name: format!("local:{model}"),
            embedder: load(&self.settings()?.embedder(options))?,
        })
    }
}

#[cfg(feature = "local")]
fn load(options: &EmbedderOptions) -> Result<Arc<dyn Embedder>, BadInput> {
    let loaded = factum_model::local::LocalEmbedder::load(options).map_err(BadInput::of)?;
    Ok(Arc::new(loaded))
}

#[cfg(not(feature = "local"))]
fn load(_: &EmbedderOptions) -> Result<Arc<dyn Embedder>, BadInput> {
    Err(no_local_models())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_embedder_is_a_local_model_and_nothing_else() {
        assert_eq!(model_of("local").unwrap(), DEFAULT_EMBEDDER);
        assert_eq!(model_of("local:mine").unwrap(), "mine");
        for wrong in ["", "extractive", "all-minilm-l6-v2", "openai:http://a,m"] {
            let error = model_of(wrong).unwrap_err();
            assert!(error.1.unwrap().contains("--embeddings"), "{wrong}");
        }
    }
}
