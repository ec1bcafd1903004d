//! The tensors that a model of a configuration has: names in Safetensors and GGUF, and shapes.

use safetensors::Dtype;

use super::config::{Family, ModelConfig};

/// How a tensor goes from Safetensors to GGUF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// A matrix, copied.
    Copied,
    /// A query or key matrix of so many heads whose rows change places.
    Rows {
        /// Heads.
        heads: u64,
    },
    /// A vector, widened from BF16 to F32.
    Widened,
    /// Numbers that are F32 already, copied.
    Floats,
}

impl Transfer {
    /// The type that the numbers have in Safetensors.
    pub(crate) const fn source_type(self) -> Dtype {
        match self {
            Self::Floats => Dtype::F32,
            Self::Copied | Self::Rows { .. } | Self::Widened => Dtype::BF16,
        }
    }
}

/// A tensor that a model has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    /// Its name in Safetensors.
    pub(crate) source: String,
    /// Its name in GGUF.
    pub(crate) target: String,
    /// Its shape, rows first, as Safetensors has it.
    pub(crate) shape: Vec<u64>,
    /// How it is transferred.
    pub(crate) transfer: Transfer,
}

impl Expected {
    pub(super) fn new(source: &str, target: &str, shape: &[u64], transfer: Transfer) -> Self {
        Self {
            source: source.to_owned(),
            target: target.to_owned(),
            shape: shape.to_vec(),
            transfer,
        }
    }

    /// Its dimensions, the row length first, as GGUF has them.
    pub(crate) fn dimensions(&self) -> Vec<u64> {
        self.shape.iter().rev().copied().collect()
    }
}

/// The embedding's name in Safetensors.
pub(crate) const EMBEDDING: &str = "model.embed_tokens.weight";
/// The output head's name in Safetensors.
pub(crate) const HEAD: &str = "lm_head.weight";
/// The output head's name in GGUF.
pub(crate) const GGUF_HEAD: &str = "output.weight";

/// All tensors that a model has, in the order in which they are written. A tied head is not among them.
pub(crate) fn expected_tensors(config: &ModelConfig) -> impl Iterator<Item = Expected> {
    let outer = [
        Expected::new(
            EMBEDDING,
            "token_embd.weight",
            &[config.vocabulary, config.hidden],
            Transfer::Copied,
        ),
        Expected::new(
            "model.norm.weight",
            "output_norm.weight",
            &[config.hidden],
            Transfer::Widened,
        ),
    ];
    let head = (!config.tied).then(|| {
        Expected::new(
            HEAD,
            GGUF_HEAD,
            &[config.vocabulary, config.hidden],
            Transfer::Copied,
        )
    });
    let layers = (0..config.layers).flat_map(move |layer| layer_tensors(config, layer));
    outer.into_iter().chain(head).chain(layers)
}

fn layer_tensors(config: &ModelConfig, layer: u64) -> Vec<Expected> {
    let queries = config.heads * config.head_length;
    let keys = config.kv_heads * config.head_length;
    let (hidden, wide) = (config.hidden, config.feed_forward);
    let permuted = |heads| match config.family {
        Family::Llama => Transfer::Rows { heads },
        Family::Qwen2 => Transfer::Copied,
    };
    let mut out = Vec::new();
    let mut add = |source: &str, target: &str, shape: &[u64], transfer: Transfer| {
        let source = format!("model.layers.{layer}.{source}");
        let target = format!("blk.{layer}.{target}");
        out.push(Expected::new(&source, &target, shape, transfer));
    };
    let vector = Transfer::Widened;
    let matrix = Transfer::Copied;
    add(
        "input_layernorm.weight",
        "attn_norm.weight",
        &[hidden],
        vector,
    );
    let (q, k) = (permuted(config.heads), permuted(config.kv_heads));
    add(
        "self_attn.q_proj.weight",
        "attn_q.weight",
        &[queries, hidden],
        q,
    );
    add(
        "self_attn.k_proj.weight",
        "attn_k.weight",
        &[keys, hidden],
        k,
    );
    add(
        "self_attn.v_proj.weight",
        "attn_v.weight",
        &[keys, hidden],
        matrix,
    );
    if config.family.has_attention_bias() {
        add("self_attn.q_proj.bias", "attn_q.bias", &[queries], vector);
        add("self_attn.k_proj.bias", "attn_k.bias", &[keys], vector);
        add("self_attn.v_proj.bias", "attn_v.bias", &[keys], vector);
    }
    add(
        "self_attn.o_proj.weight",
        "attn_output.weight",
        &[hidden, queries],
        matrix,
    );
    add(
        "post_attention_layernorm.weight",
        "ffn_norm.weight",
        &[hidden],
        vector,
    );
    add(
        "mlp.gate_proj.weight",
        "ffn_gate.weight",
        &[wide, hidden],
        matrix,
    );
    add(
        "mlp.up_proj.weight",
        "ffn_up.weight",
        &[wide, hidden],
        matrix,
    );
    add(
        "mlp.down_proj.weight",
        "ffn_down.weight",
        &[hidden, wide],
        matrix,
    );
    out
}
