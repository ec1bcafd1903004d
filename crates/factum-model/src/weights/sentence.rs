//! Sentence models: BERT whose vector is the mean over its tokens, as sentence-transformers keep them.
//!
//! A folder has to say all of what is computed (`modules.json`, pooling, longest text) and nothing that is not
//! understood. The numbers are F32 and are copied bit for bit.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value as Json;

use super::config::CONFIG_FILE;
use super::expected::{Expected, Transfer};
use super::gguf::{Header, Value};
use super::report::Finding;
use super::safetensors_dir::read_bounded;

/// How the tokens' vectors become one.
pub(crate) const POOLING_FILE: &str = "1_Pooling/config.json";
/// What is computed one after another.
pub(crate) const MODULES_FILE: &str = "modules.json";
/// How long a text is read.
pub(crate) const LENGTH_FILE: &str = "sentence_bert_config.json";
/// The architecture in a `config.json`.
const ARCHITECTURE: &str = "BertModel";
/// The architecture in GGUF.
pub(crate) const GGUF_ARCHITECTURE: &str = "bert";
/// Where a file that was converted here says how many tokens of a text are read.
pub(crate) const MAX_TOKENS_KEY: &str = "factum.max_tokens";

/// The places of tokens, counted from 0, which some files hold too.
pub(crate) const POSITION_IDS: &str = "embeddings.position_ids";

const MAX_BYTES: u64 = 1 << 20;
/// Longest rows: far above any model, far below what multiplies out of bounds.
const MOST: u64 = 1 << 20;
const MOST_LAYERS: u64 = 1 << 10;
/// GGUF's code for the mean over all tokens.
const POOLING_MEAN: u64 = 1;

/// The shape of a sentence model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SentenceConfig {
    /// Places that a token can stand at.
    pub(crate) positions: u64,
    /// Length of a vector.
    pub(crate) hidden: u64,
    /// Number of layers.
    pub(crate) layers: u64,
    /// Length of the feed-forward layer.
    pub(crate) feed_forward: u64,
    /// Heads.
    pub(crate) heads: u64,
    /// Rows of the embedding.
    pub(crate) vocabulary: u64,
    /// Kinds of token; the first is the only one used.
    pub(crate) token_types: u64,
    /// What is added before the root of the norm.
    pub(crate) norm_epsilon: f64,
    /// Tokens of a text that are read.
    pub(crate) max_tokens: u64,
}

#[derive(Deserialize)]
struct Raw {
    hidden_act: String,
    hidden_size: u64,
    intermediate_size: u64,
    layer_norm_eps: f64,
    max_position_embeddings: u64,
    num_attention_heads: u64,
    num_hidden_layers: u64,
    type_vocab_size: u64,
    vocab_size: u64,
    position_embedding_type: Option<String>,
    torch_dtype: Option<String>,
    dtype: Option<String>,
    #[serde(default)]
    is_decoder: bool,
    #[serde(default)]
    add_cross_attention: bool,
    quantization_config: Option<Json>,
}

#[derive(Deserialize)]
struct Length {
    max_seq_length: u64,
    #[serde(default)]
    do_lower_case: bool,
}

#[derive(Deserialize)]
struct Module {
    #[serde(rename = "type")]
    kind: String,
}

/// Whether a folder's configuration names a sentence model.
pub(crate) fn is_sentence_model(dir: &Path) -> bool {
    let read = || -> Option<Json> {
        let bytes = read_bounded(&dir.join(CONFIG_FILE), MAX_BYTES).ok()?;
        serde_json::from_slice(&bytes).ok()
    };
    let config = read().unwrap_or_default();
    let names = config.get("architectures").and_then(Json::as_array);
    names.is_some_and(|names| names.len() == 1 && names[0] == ARCHITECTURE)
}

fn read<T: for<'de> Deserialize<'de>>(dir: &Path, file: &str) -> Result<T, Finding> {
    let path = dir.join(file);
    if !path.is_file() {
        let file = file.to_owned();
        return Err(Finding::MissingFile { file });
    }
    let bad = |error: &dyn std::fmt::Display| Finding::BadConfig {
        message: format!("{file}: {error}"),
    };
    let bytes = read_bounded(&path, MAX_BYTES).map_err(|error| bad(&error))?;
    serde_json::from_slice(&bytes).map_err(|error| bad(&error))
}

impl SentenceConfig {
    /// Reads what a folder says of its model.
    ///
    /// # Errors
    /// It can't be read, or asks for something that is not understood.
    pub(crate) fn read(dir: &Path) -> Result<Self, Finding> {
        let raw: Raw = read(dir, CONFIG_FILE)?;
        refuse_what_differs(&raw)?;
        hold_modules(dir)?;
        hold_pooling(&read(dir, POOLING_FILE)?, raw.hidden_size)?;
        let length: Length = read(dir, LENGTH_FILE)?;
        if length.do_lower_case {
            return Err(Finding::unsupported("do_lower_case", true));
        }
        Self {
            positions: raw.max_position_embeddings,
            hidden: raw.hidden_size,
            layers: raw.num_hidden_layers,
            feed_forward: raw.intermediate_size,
            heads: raw.num_attention_heads,
            vocabulary: raw.vocab_size,
            token_types: raw.type_vocab_size,
            norm_epsilon: raw.layer_norm_eps,
            max_tokens: length.max_seq_length,
        }
        .bounded()
    }

    /// Reads what the header of a GGUF file says of its model.
    ///
    /// # Errors
    /// Something is missing, or is not understood.
    pub(crate) fn of_header(header: &Header, vocabulary: u64) -> Result<Self, Finding> {
        let number = |key: &str| {
            let key = format!("{GGUF_ARCHITECTURE}.{key}");
            let found = header.number(&key);
            found.ok_or_else(|| Finding::unsupported(&key, "nothing"))
        };
        let epsilon = format!("{GGUF_ARCHITECTURE}.attention.layer_norm_epsilon");
        let norm_epsilon = header.entries.get(&epsilon).and_then(Value::as_f64);
        let causal = format!("{GGUF_ARCHITECTURE}.attention.causal");
        if header.entries.get(&causal) != Some(&Value::Bool(false)) {
            return Err(Finding::unsupported(&causal, "not false"));
        }
        let pooling = number("pooling_type")?;
        if pooling != POOLING_MEAN {
            return Err(Finding::unsupported("bert.pooling_type", pooling));
        }
        let positions = number("context_length")?;
        Self {
            positions,
            hidden: number("embedding_length")?,
            layers: number("block_count")?,
            feed_forward: number("feed_forward_length")?,
            heads: number("attention.head_count")?,
            vocabulary,
            token_types: header
                .number("tokenizer.ggml.token_type_count")
                .unwrap_or(0),
            norm_epsilon: norm_epsilon
                .ok_or_else(|| Finding::unsupported(&epsilon, "no positive number"))?,
            max_tokens: header.number(MAX_TOKENS_KEY).unwrap_or(positions),
        }
        .bounded()
    }

    fn bounded(self) -> Result<Self, Finding> {
        let sizes = [
            ("max_position_embeddings", self.positions, MOST),
            ("hidden_size", self.hidden, MOST),
            ("num_hidden_layers", self.layers, MOST_LAYERS),
            ("intermediate_size", self.feed_forward, MOST),
            ("num_attention_heads", self.heads, MOST),
            ("vocab_size", self.vocabulary, MOST),
            ("type_vocab_size", self.token_types, MOST),
        ];
        for (field, value, most) in sizes {
            if value == 0 || value > most {
                return Err(Finding::unsupported(field, value));
            }
        }
        if !self.hidden.is_multiple_of(self.heads) {
            return Err(Finding::unsupported("num_attention_heads", self.heads));
        }
        if !self.norm_epsilon.is_finite() || self.norm_epsilon <= 0.0 {
            return Err(Finding::unsupported("layer_norm_eps", self.norm_epsilon));
        }
        // Three: one word between the two tokens that stand around every text.
        if self.max_tokens < 3 || self.max_tokens > self.positions {
            return Err(Finding::unsupported("max_seq_length", self.max_tokens));
        }
        Ok(self)
    }

    /// The entries that describe it in GGUF.
    pub(crate) fn entries(&self) -> Vec<(String, Value)> {
        // All of these are bounded far below 2^32.
        let number = |value: u64| Value::U32(u32::try_from(value).unwrap_or(u32::MAX));
        #[expect(
            clippy::cast_possible_truncation,
            reason = "GGUF has it as a 32-bit float"
        )]
        let epsilon = Value::F32(self.norm_epsilon as f32);
        let fields = [
            ("vocab_size", number(self.vocabulary)),
            ("context_length", number(self.positions)),
            ("embedding_length", number(self.hidden)),
            ("block_count", number(self.layers)),
            ("feed_forward_length", number(self.feed_forward)),
            ("attention.head_count", number(self.heads)),
            ("attention.layer_norm_epsilon", epsilon),
            ("attention.causal", Value::Bool(false)),
            ("pooling_type", number(POOLING_MEAN)),
        ];
        let mut out: Vec<(String, Value)> = fields
            .into_iter()
            .map(|(field, value)| (format!("{GGUF_ARCHITECTURE}.{field}"), value))
            .collect();
        out.push((MAX_TOKENS_KEY.to_owned(), number(self.max_tokens)));
        out.push((
            "tokenizer.ggml.token_type_count".to_owned(),
            number(self.token_types),
        ));
        out
    }

    /// All tensors that it has, in the order in which they are written.
    pub(crate) fn tensors(&self) -> Vec<Expected> {
        let (hidden, wide) = (self.hidden, self.feed_forward);
        let mut out = Vec::new();
        let mut add = |source: String, target: String, shape: &[u64]| {
            out.push(Expected::new(&source, &target, shape, Transfer::Floats));
        };
        for (source, target, rows) in [
            ("word_embeddings", "token_embd", self.vocabulary),
            ("position_embeddings", "position_embd", self.positions),
            ("token_type_embeddings", "token_types", self.token_types),
        ] {
            add(
                format!("embeddings.{source}.weight"),
                format!("{target}.weight"),
                &[rows, hidden],
            );
        }
        for part in ["weight", "bias"] {
            add(
                format!("embeddings.LayerNorm.{part}"),
                format!("token_embd_norm.{part}"),
                &[hidden],
            );
        }
        let parts: [(&str, &str, &[u64]); 8] = [
            ("attention.self.query", "attn_q", &[hidden, hidden]),
            ("attention.self.key", "attn_k", &[hidden, hidden]),
            ("attention.self.value", "attn_v", &[hidden, hidden]),
            ("attention.output.dense", "attn_output", &[hidden, hidden]),
            ("attention.output.LayerNorm", "attn_output_norm", &[hidden]),
            ("intermediate.dense", "ffn_up", &[wide, hidden]),
            ("output.dense", "ffn_down", &[hidden, wide]),
            ("output.LayerNorm", "layer_output_norm", &[hidden]),
        ];
        for layer in 0..self.layers {
            for (source, target, shape) in parts {
                add(
                    format!("encoder.layer.{layer}.{source}.weight"),
                    format!("blk.{layer}.{target}.weight"),
                    shape,
                );
                add(
                    format!("encoder.layer.{layer}.{source}.bias"),
                    format!("blk.{layer}.{target}.bias"),
                    &shape[..1],
                );
            }
        }
        out
    }

    /// Tensors that may be there and are not used: their names and shapes. The first counts from 0, in 64 bits.
    pub(crate) fn unused(&self) -> [(&'static str, Vec<u64>); 3] {
        [
            (POSITION_IDS, vec![1, self.positions]),
            ("pooler.dense.weight", vec![self.hidden, self.hidden]),
            ("pooler.dense.bias", vec![self.hidden]),
        ]
    }
}

fn refuse_what_differs(raw: &Raw) -> Result<(), Finding> {
    if raw.hidden_act != "gelu" {
        return Err(Finding::unsupported("hidden_act", &raw.hidden_act));
    }
    let positions = raw.position_embedding_type.as_deref();
    if let Some(other) = positions.filter(|kind| *kind != "absolute") {
        return Err(Finding::unsupported("position_embedding_type", other));
    }
    let dtype = raw.dtype.as_deref().or(raw.torch_dtype.as_deref());
    if let Some(other) = dtype.filter(|dtype| *dtype != "float32") {
        return Err(Finding::unsupported("torch_dtype", other));
    }
    if raw.is_decoder {
        return Err(Finding::unsupported("is_decoder", true));
    }
    if raw.add_cross_attention {
        return Err(Finding::unsupported("add_cross_attention", true));
    }
    if raw.quantization_config.is_some() {
        return Err(Finding::unsupported("quantization_config", "given"));
    }
    Ok(())
}

/// The transformer, the mean over its tokens, then perhaps unit length, which every vector is given here.
fn hold_modules(dir: &Path) -> Result<(), Finding> {
    let modules: Vec<Module> = read(dir, MODULES_FILE)?;
    let names: Vec<&str> = modules
        .iter()
        .map(|module| module.kind.rsplit('.').next().unwrap_or_default())
        .collect();
    match names[..] {
        ["Transformer", "Pooling"] | ["Transformer", "Pooling", "Normalize"] => Ok(()),
        _ => Err(Finding::unsupported(MODULES_FILE, names.join(", "))),
    }
}

fn hold_pooling(pooling: &Json, hidden: u64) -> Result<(), Finding> {
    let object = pooling.as_object().cloned().unwrap_or_default();
    for (key, value) in &object {
        let wanted = match key.as_str() {
            "word_embedding_dimension" => Json::from(hidden),
            "pooling_mode_mean_tokens" | "include_prompt" => Json::from(true),
            _ => Json::from(false),
        };
        if *value != wanted {
            return Err(Finding::unsupported(key, value));
        }
    }
    if object.contains_key("pooling_mode_mean_tokens") {
        return Ok(());
    }
    Err(Finding::unsupported("pooling_mode_mean_tokens", "nothing"))
}
