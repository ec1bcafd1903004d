//! How text is split before merges are applied: a pinned list of what llama.cpp does exactly as the
//! tokenizer's file says.
//!
//! llama.cpp knows splitting rules by name only. A tokenizer whose rules are not on the list is refused: a
//! near guess gives other tokens now and then, and no one would notice.

use serde_json::{Value, json};

/// A way to split that both sides know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PreTokenizer {
    /// llama.cpp's name of it, for `tokenizer.ggml.pre`.
    pub(crate) name: &'static str,
    /// Whether llama.cpp takes a whole word that is in the vocabulary without applying merges. The file has
    /// to say the same.
    pub(crate) ignore_merges: bool,
}

const QWEN2: PreTokenizer = PreTokenizer {
    name: "qwen2",
    ignore_merges: false,
};
const LLAMA_BPE: PreTokenizer = PreTokenizer {
    name: "llama-bpe",
    ignore_merges: true,
};
const SMOLLM: PreTokenizer = PreTokenizer {
    name: "smollm",
    ignore_merges: false,
};

const QWEN2_PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const LLAMA_BPE_PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The way to split that `pre_tokenizer` of a `tokenizer.json` describes, if it is on the list.
pub(crate) fn recognise(description: &Value) -> Option<PreTokenizer> {
    let description = without_offsets(description);
    let by_pattern = |pattern: &str| {
        json!({"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false},
            {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
        ]})
    };
    let digits = json!({"type": "Sequence", "pretokenizers": [
        {"type": "Digits", "individual_digits": true},
        {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    ]});
    if description == by_pattern(QWEN2_PATTERN) {
        Some(QWEN2)
    } else if description == by_pattern(LLAMA_BPE_PATTERN) {
        Some(LLAMA_BPE)
    } else if description == digits {
        Some(SMOLLM)
    } else {
        None
    }
}

/// The description without `trim_offsets`, which changes positions and no token.
fn without_offsets(description: &Value) -> Value {
    let mut out = description.clone();
    if let Some(steps) = out.get_mut("pretokenizers").and_then(Value::as_array_mut) {
        for step in steps {
            if let Some(fields) = step.as_object_mut() {
                fields.remove("trim_offsets");
            }
        }
    }
    out
}
