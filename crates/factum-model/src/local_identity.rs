//! What a local model is set to, and the identity that follows from it: known without loading a model, and
//! without the engine being built in.
//!
//! Whatever changes logits is in it: files, engine, threads, batch shapes, flash attention, processor features.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::constraint::CONSTRAINT_VERSION;
use crate::identity::ModelIdentity;

/// The engine, as identities name it. A test holds the versions against the lock file.
pub const ENGINE: &str = "llama-cpp-2 0.1.160 (llama-cpp-sys-2 0.1.161)";
/// What holds answers to a JSON Schema.
pub const SCHEMA_ENGINE: &str = "llguidance 1.9.1";
/// What renders chat templates.
pub const TEMPLATE_ENGINE: &str = "minijinja 3.1.0";
/// How a prompt becomes tokens: template parts with special tokens, contents without, split where the last
/// content begins.
pub const PROMPT_VERSION: u32 = 1;
/// How tokens are chosen: greedy, the lowest id of equals; how a grounded reply is brought to its end.
pub const DECODER_VERSION: u32 = 1;

/// How a local model is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalOptions {
    /// The model.
    pub gguf: PathBuf,
    /// What it is.
    pub files: ModelFiles,
    /// Threads that compute.
    pub threads: u32,
    /// Most tokens of one prompt and its answer together. Rounded up to a multiple of 256.
    pub context_tokens: u32,
    /// Sequences decoded in each step: with one, each request has the machine for itself. With more, every
    /// step decodes exactly so many, idle ones included, so that the shape of the work never depends on
    /// how many requests there are.
    pub sequences: u32,
    /// Most tokens of a prompt computed at once.
    pub batch_tokens: u32,
    /// Layers computed by a GPU, where the engine was built for one.
    pub gpu_layers: u32,
}

/// The files of a model, as the caller has checked them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFiles {
    /// SHA-256 of the GGUF file, hex.
    pub sha256: String,
    /// What else the caller wants named: where the file was converted from, and the like. No floats, ASCII keys.
    pub extra: Option<Value>,
}

impl LocalOptions {
    /// Settings that suit a small machine: on two cores, four sequences took half the processor time of the
    /// plain loop, one sequence seven tenths, and eight hardly less than four.
    pub fn new(gguf: impl Into<PathBuf>, sha256: impl Into<String>) -> Self {
        Self {
            gguf: gguf.into(),
            files: ModelFiles {
                sha256: sha256.into(),
                extra: None,
            },
            threads: 2,
            context_tokens: 5120,
            sequences: 4,
            batch_tokens: 512,
            gpu_layers: 0,
        }
    }

    /// Tokens of one sequence's context, as the engine rounds them.
    pub fn sequence_tokens(&self) -> u32 {
        self.context_tokens.max(1).div_ceil(256).saturating_mul(256)
    }
}

/// The identity of a model run with these settings.
pub fn local_identity(options: &LocalOptions) -> ModelIdentity {
    ModelIdentity::new(json!({
        "kind": "local",
        "engine": ENGINE,
        "device": {"backend": backend(), "gpu_layers": options.gpu_layers},
        "files": {"gguf_sha256": options.files.sha256, "extra": options.files.extra},
        "threads": options.threads,
        "flash_attention": true,
        "kv_types": ["f16", "f16"],
        "n_ctx_seq": options.sequence_tokens(),
        "n_batch": options.batch_tokens,
        "n_ubatch": options.batch_tokens,
        "decoding": {
            "mode": if options.sequences == 1 { "one sequence" } else { "fixed batch" },
            "sequences": options.sequences,
            "version": DECODER_VERSION,
        },
        "prompt": {"template_engine": TEMPLATE_ENGINE, "version": PROMPT_VERSION},
        "constraints": {"version": CONSTRAINT_VERSION, "json_schema": SCHEMA_ENGINE},
        "target": {"arch": std::env::consts::ARCH, "features": target_features()},
    }))
}

/// How a text becomes a vector: without accents, tokenized without special tokens, cut at the longest text of the model, alone
/// in its batch, the mean over its tokens brought to unit length.
pub const EMBEDDING_VERSION: u32 = 1;

/// How a local sentence model is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbedderOptions {
    /// The model.
    pub gguf: PathBuf,
    /// What it is.
    pub files: ModelFiles,
    /// Threads that compute.
    pub threads: u32,
    /// Layers computed by a GPU, where the engine was built for one.
    pub gpu_layers: u32,
}

impl EmbedderOptions {
    /// Settings that suit a small machine.
    pub fn new(gguf: impl Into<PathBuf>, sha256: impl Into<String>) -> Self {
        let options = LocalOptions::new(gguf, sha256);
        Self {
            gguf: options.gguf,
            files: options.files,
            threads: options.threads,
            gpu_layers: options.gpu_layers,
        }
    }
}

/// The identity of a sentence model run with these settings. How long a text it reads follows from its file.
pub fn embedder_identity(options: &EmbedderOptions) -> ModelIdentity {
    ModelIdentity::new(json!({
        "kind": "local-embedder",
        "engine": ENGINE,
        "device": {"backend": backend(), "gpu_layers": options.gpu_layers},
        "files": {"gguf_sha256": options.files.sha256, "extra": options.files.extra},
        "threads": options.threads,
        "flash_attention": false,
        "pooling": "mean",
        "version": EMBEDDING_VERSION,
        "target": {"arch": std::env::consts::ARCH, "features": target_features()},
    }))
}

const fn backend() -> &'static str {
    if cfg!(feature = "cuda") {
        "cuda"
    } else if cfg!(feature = "metal") {
        "metal"
    } else {
        "cpu"
    }
}

/// The processor features that this was compiled for; the engine's own code follows the same flags.
fn target_features() -> Vec<&'static str> {
    [
        ("avx", cfg!(target_feature = "avx")),
        ("avx2", cfg!(target_feature = "avx2")),
        ("avx512bf16", cfg!(target_feature = "avx512bf16")),
        ("avx512f", cfg!(target_feature = "avx512f")),
        ("avx512vbmi", cfg!(target_feature = "avx512vbmi")),
        ("avx512vnni", cfg!(target_feature = "avx512vnni")),
        ("avxvnni", cfg!(target_feature = "avxvnni")),
        ("bmi2", cfg!(target_feature = "bmi2")),
        ("f16c", cfg!(target_feature = "f16c")),
        ("fma", cfg!(target_feature = "fma")),
        ("neon", cfg!(target_feature = "neon")),
        ("dotprod", cfg!(target_feature = "dotprod")),
        ("i8mm", cfg!(target_feature = "i8mm")),
        ("sve", cfg!(target_feature = "sve")),
    ]
    .into_iter()
    .filter_map(|(name, on)| on.then_some(name))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_names_the_versions_that_are_locked() {
        let lock = include_str!("../../../Cargo.lock");
        for (package, version) in [
            ("llama-cpp-2", "0.1.160"),
            ("llama-cpp-sys-2", "0.1.161"),
            ("llguidance", "1.9.1"),
            ("minijinja", "3.1.0"),
        ] {
            let entry = format!("name = \"{package}\"\nversion = \"{version}\"\n");
            assert!(
                lock.contains(&entry),
                "{package} is not locked at {version}"
            );
            let named = [ENGINE, SCHEMA_ENGINE, TEMPLATE_ENGINE].join(", ");
            assert!(named.contains(&format!("{package} {version}")));
        }
    }

    #[test]
    fn whatever_changes_logits_changes_the_identity() {
        let base = LocalOptions::new("model.gguf", "00");
        let changes: [fn(&mut LocalOptions); 7] = [
            |o| o.files.sha256 = "01".to_owned(),
            |o| o.files.extra = Some(json!({"from": "safetensors"})),
            |o| o.threads += 1,
            |o| o.context_tokens += 256,
            |o| o.sequences += 1,
            |o| o.batch_tokens += 1,
            |o| o.gpu_layers += 1,
        ];
        for change in changes {
            let mut other = base.clone();
            change(&mut other);
            assert_ne!(local_identity(&other), local_identity(&base));
        }
        let mut moved = base.clone();
        moved.gguf = PathBuf::from("elsewhere.gguf");
        assert_eq!(local_identity(&moved), local_identity(&base));
    }

    #[test]
    fn whatever_changes_a_vector_changes_the_identity() {
        let base = EmbedderOptions::new("model.gguf", "00");
        let changes: [fn(&mut EmbedderOptions); 4] = [
            |o| o.files.sha256 = "01".to_owned(),
            |o| o.files.extra = Some(json!({"converter": "1"})),
            |o| o.threads += 1,
            |o| o.gpu_layers += 1,
        ];
        for change in changes {
            let mut other = base.clone();
            change(&mut other);
            assert_ne!(embedder_identity(&other), embedder_identity(&base));
        }
        let mut moved = base.clone();
        moved.gguf = PathBuf::from("elsewhere.gguf");
        assert_eq!(embedder_identity(&moved), embedder_identity(&base));
    }

    #[test]
    fn an_identity_is_canonical_json() {
        let identity = local_identity(&LocalOptions::new("model.gguf", "00"));
        assert_eq!(identity.kind(), "local");
        assert!(identity.canonical().unwrap().is_ascii());
    }
}
