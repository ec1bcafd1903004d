//! What a `config.json` says of a model, for the families that are understood.
//!
//! Whatever would make a different computation (scaled or partial rotary embedding, sliding windows, biases
//! where the family has none, another activation) is refused: a model that is nearly right gives
//! answers that are nearly right.

use serde::Deserialize;
use serde_json::Value;

use super::report::Finding;

/// The configuration's file.
pub(crate) const CONFIG_FILE: &str = "config.json";

/// A family of models: how its tensors are named and what is computed with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// `Qwen2ForCausalLM`: biases on query, key and value.
    Qwen2,
    /// `LlamaForCausalLM`: no biases; query and key rows change places in GGUF.
    Llama,
}

impl Family {
    /// The name of the architecture in GGUF.
    pub const fn architecture(self) -> &'static str {
        match self {
            Self::Qwen2 => "qwen2",
            Self::Llama => "llama",
        }
    }

    /// The family that GGUF calls so.
    pub fn from_architecture(name: &str) -> Option<Self> {
        [Self::Qwen2, Self::Llama]
            .into_iter()
            .find(|family| family.architecture() == name)
    }

    /// Whether query, key and value have biases.
    pub const fn has_attention_bias(self) -> bool {
        matches!(self, Self::Qwen2)
    }
}

/// The shape of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// Its family.
    pub family: Family,
    /// Longest context that it was made for.
    pub context_length: u64,
    /// Length of an embedding.
    pub hidden: u64,
    /// Number of layers.
    pub layers: u64,
    /// Length of the feed-forward layer.
    pub feed_forward: u64,
    /// Heads of the queries.
    pub heads: u64,
    /// Heads of keys and values.
    pub kv_heads: u64,
    /// Length of a head.
    pub head_length: u64,
    /// Rows of the embedding.
    pub vocabulary: u64,
    /// Base of the rotary embedding.
    pub rope_base: f64,
    /// What is added before the root of the norm.
    pub norm_epsilon: f64,
    /// Whether the output head is the embedding.
    pub tied: bool,
}

#[derive(Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "the file's form, not ours")]
struct Raw {
    architectures: Vec<String>,
    max_position_embeddings: u64,
    hidden_size: u64,
    num_hidden_layers: u64,
    intermediate_size: u64,
    num_attention_heads: u64,
    num_key_value_heads: Option<u64>,
    head_dim: Option<u64>,
    vocab_size: u64,
    rms_norm_eps: f64,
    hidden_act: String,
    rope_theta: Option<f64>,
    rope_scaling: Option<Value>,
    rope_parameters: Option<RopeParameters>,
    partial_rotary_factor: Option<f64>,
    torch_dtype: Option<String>,
    dtype: Option<String>,
    #[serde(default)]
    tie_word_embeddings: bool,
    #[serde(default)]
    attention_bias: bool,
    #[serde(default)]
    mlp_bias: bool,
    #[serde(default)]
    rope_interleaved: bool,
    #[serde(default)]
    use_sliding_window: bool,
    quantization_config: Option<Value>,
}

#[derive(Deserialize)]
struct RopeParameters {
    rope_theta: Option<f64>,
    rope_type: Option<String>,
}

/// Longest rows, most heads and the like: far above any model, far below what multiplies out of bounds.
const MOST: u64 = 1 << 20;
/// So that the list of expected tensors stays short whatever a file says.
const MOST_LAYERS: u64 = 1 << 10;

impl ModelConfig {
    /// Reads a `config.json`.
    ///
    /// # Errors
    /// It can't be read, or asks for something that is not understood.
    pub fn parse(text: &[u8]) -> Result<Self, Finding> {
        let raw: Raw = serde_json::from_slice(text).map_err(|error| Finding::BadConfig {
            message: error.to_string(),
        })?;
        let family = family(&raw.architectures)?;
        refuse_what_differs(&raw, family)?;
        let sizes = [
            ("max_position_embeddings", raw.max_position_embeddings),
            ("hidden_size", raw.hidden_size),
            ("num_hidden_layers", raw.num_hidden_layers),
            ("intermediate_size", raw.intermediate_size),
            ("num_attention_heads", raw.num_attention_heads),
            ("vocab_size", raw.vocab_size),
        ];
        for (field, value) in sizes {
            let most = match field {
                "max_position_embeddings" => 1 << 31,
                "num_hidden_layers" => MOST_LAYERS,
                _ => MOST,
            };
            if value == 0 || value > most {
                return Err(Finding::unsupported(field, value));
            }
        }
        let kv_heads = raw.num_key_value_heads.unwrap_or(raw.num_attention_heads);
        if kv_heads == 0 || !raw.num_attention_heads.is_multiple_of(kv_heads) {
            return Err(Finding::unsupported("num_key_value_heads", kv_heads));
        }
        let head_length = head_length(&raw)?;
        // llama.cpp takes heads of another length only for the Llama family.
        if family == Family::Qwen2 && head_length * raw.num_attention_heads != raw.hidden_size {
            return Err(Finding::unsupported("head_dim", head_length));
        }
        let base = raw
            .rope_parameters
            .as_ref()
            .and_then(|rope| rope.rope_theta);
        Ok(Self {
            family,
            context_length: raw.max_position_embeddings,
            hidden: raw.hidden_size,
            layers: raw.num_hidden_layers,
            feed_forward: raw.intermediate_size,
            heads: raw.num_attention_heads,
            kv_heads,
            head_length,
            vocabulary: raw.vocab_size,
            rope_base: positive("rope_theta", raw.rope_theta.or(base).unwrap_or(10_000.0))?,
            norm_epsilon: positive("rms_norm_eps", raw.rms_norm_eps)?,
            tied: raw.tie_word_embeddings,
        })
    }
}

fn family(architectures: &[String]) -> Result<Family, Finding> {
    match architectures {
        [name] if name == "Qwen2ForCausalLM" => Ok(Family::Qwen2),
        [name] if name == "LlamaForCausalLM" => Ok(Family::Llama),
        other => Err(Finding::unsupported("architectures", other.join(", "))),
    }
}

fn head_length(raw: &Raw) -> Result<u64, Finding> {
    if let Some(length) = raw.head_dim {
        if length == 0 || length > MOST || !length.is_multiple_of(2) {
            return Err(Finding::unsupported("head_dim", length));
        }
        return Ok(length);
    }
    let length = raw.hidden_size / raw.num_attention_heads;
    let whole = raw.hidden_size.is_multiple_of(raw.num_attention_heads);
    if !whole || !length.is_multiple_of(2) {
        return Err(Finding::unsupported(
            "num_attention_heads",
            raw.num_attention_heads,
        ));
    }
    Ok(length)
}

fn positive(field: &'static str, value: f64) -> Result<f64, Finding> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(Finding::unsupported(field, value))
}

fn refuse_what_differs(raw: &Raw, family: Family) -> Result<(), Finding> {
    let dtype = raw.dtype.as_deref().or(raw.torch_dtype.as_deref());
    if dtype != Some("bfloat16") {
        let found = dtype.unwrap_or("nothing");
        return Err(Finding::unsupported("torch_dtype", found));
    }
    if raw.hidden_act != "silu" {
        return Err(Finding::unsupported("hidden_act", &raw.hidden_act));
    }
    if let Some(scaling) = &raw.rope_scaling {
        return Err(Finding::unsupported("rope_scaling", scaling));
    }
    if let Some(rope) = &raw.rope_parameters {
        let kind = rope.rope_type.as_deref().unwrap_or("default");
        if kind != "default" {
            return Err(Finding::unsupported("rope_parameters", kind));
        }
    }
    if let Some(factor) = raw.partial_rotary_factor.filter(|&factor| factor < 1.0) {
        return Err(Finding::unsupported("partial_rotary_factor", factor));
    }
    if raw.rope_interleaved {
        return Err(Finding::unsupported("rope_interleaved", true));
    }
    if raw.use_sliding_window {
        return Err(Finding::unsupported("use_sliding_window", true));
    }
    if raw.attention_bias && family == Family::Llama {
        return Err(Finding::unsupported("attention_bias", true));
    }
    if raw.mlp_bias {
        return Err(Finding::unsupported("mlp_bias", true));
    }
    if raw.quantization_config.is_some() {
        return Err(Finding::unsupported("quantization_config", "given"));
    }
    Ok(())
}
