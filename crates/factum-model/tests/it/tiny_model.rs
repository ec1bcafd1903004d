//! Tiny random models in Safetensors, whole with tokenizer and template, for tests to break.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const HIDDEN: usize = 64;
pub(crate) const LAYERS: usize = 2;
pub(crate) const WIDE: usize = 96;
pub(crate) const HEADS: usize = 4;
pub(crate) const KV_HEADS: usize = 2;
pub(crate) const HEAD_LENGTH: usize = 16;
pub(crate) const TEMPLATE: &str =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}";

/// Which family, and how it splits text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Qwen2,
    Llama,
    SmolLm,
}

/// A tensor as it is to be written.
#[derive(Debug, Clone)]
pub(crate) struct Tensor {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Vec<u8>,
}

/// A model that can be changed before it is written.
#[derive(Debug, Clone)]
pub(crate) struct TinyModel {
    pub(crate) config: Value,
    pub(crate) tokenizer: Value,
    pub(crate) tokenizer_config: Value,
    pub(crate) tensors: BTreeMap<String, Tensor>,
}

/// Numbers that look random and are always the same.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn bf16(&mut self, around: f32, spread: f32) -> [u8; 2] {
        let bits = self.number(around, spread).to_bits();
        ((bits >> 16) as u16).to_le_bytes()
    }

    pub(crate) fn number(&mut self, around: f32, spread: f32) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let unit = f32::from((self.0 >> 48) as u16) / 65536.0 - 0.5;
        around + unit * spread
    }
}

impl TinyModel {
    pub(crate) fn new(kind: Kind, tied: bool) -> Self {
        let tokenizer = tokenizer(kind);
        let tokens = tokenizer["model"]["vocab"].as_object().unwrap().len()
            + tokenizer["added_tokens"].as_array().unwrap().len();
        // More rows than tokens, as real models have.
        let vocabulary = (tokens + 9).next_multiple_of(32);
        let llama = kind != Kind::Qwen2;
        let architecture = if llama {
            "LlamaForCausalLM"
        } else {
            "Qwen2ForCausalLM"
        };
        let config = json!({
            "architectures": [architecture],
            "hidden_act": "silu",
            "hidden_size": HIDDEN,
            "intermediate_size": WIDE,
            "max_position_embeddings": 512,
            "num_attention_heads": HEADS,
            "num_hidden_layers": LAYERS,
            "num_key_value_heads": KV_HEADS,
            "rms_norm_eps": 1e-6,
            "rope_theta": 10000.0,
            "tie_word_embeddings": tied,
            "torch_dtype": "bfloat16",
            "vocab_size": vocabulary,
        });
        let bos = (kind == Kind::Llama).then_some("<|begin_of_text|>");
        let tokenizer_config = json!({
            "bos_token": bos,
            "eos_token": {"content": "<|im_end|>", "lstrip": false},
            "pad_token": "<|endoftext|>",
            "chat_template": TEMPLATE,
        });
        Self {
            config,
            tokenizer,
            tokenizer_config,
            tensors: tensors(llama, tied, vocabulary),
        }
    }

    pub(crate) fn vocabulary(&self) -> usize {
        usize::try_from(self.config["vocab_size"].as_u64().unwrap()).unwrap()
    }

    /// Writes everything into a new folder.
    pub(crate) fn write(&self) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        self.write_small_files(dir.path());
        write_part(dir.path(), "model.safetensors", &self.tensors);
        dir
    }

    /// The same, in two parts with an index.
    pub(crate) fn write_in_two(&self) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        self.write_small_files(dir.path());
        let (mut first, mut second) = (BTreeMap::new(), BTreeMap::new());
        let mut map = BTreeMap::new();
        for (place, (name, tensor)) in self.tensors.iter().enumerate() {
            let (part, file) = if place % 2 == 0 {
                (&mut first, "model-00001-of-00002.safetensors")
            } else {
                (&mut second, "model-00002-of-00002.safetensors")
            };
            part.insert(name.clone(), tensor.clone());
            map.insert(name.clone(), file);
        }
        write_part(dir.path(), "model-00001-of-00002.safetensors", &first);
        write_part(dir.path(), "model-00002-of-00002.safetensors", &second);
        let index = json!({"metadata": {"total_size": 1}, "weight_map": map});
        write_json(dir.path(), "model.safetensors.index.json", &index);
        dir
    }

    fn write_small_files(&self, dir: &Path) {
        write_json(dir, "config.json", &self.config);
        write_json(dir, "tokenizer.json", &self.tokenizer);
        write_json(dir, "tokenizer_config.json", &self.tokenizer_config);
    }
}

pub(crate) fn write_json(dir: &Path, name: &str, value: &Value) {
    std::fs::write(dir.join(name), serde_json::to_vec(value).unwrap()).unwrap();
}

pub(crate) fn write_part(dir: &Path, file: &str, tensors: &BTreeMap<String, Tensor>) {
    let views: HashMap<String, TensorView<'_>> = tensors
        .iter()
        .map(|(name, tensor)| {
            let view = TensorView::new(tensor.dtype, tensor.shape.clone(), &tensor.data).unwrap();
            (name.clone(), view)
        })
        .collect();
    let bytes = safetensors::serialize(&views, None).unwrap();
    std::fs::write(dir.join(file), bytes).unwrap();
}

fn tensors(llama: bool, tied: bool, vocabulary: usize) -> BTreeMap<String, Tensor> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut out = BTreeMap::new();
    let mut add = |name: String, shape: &[usize], around: f32, spread: f32| {
        let data = (0..shape.iter().product())
            .flat_map(|_| random.bf16(around, spread))
            .collect();
        let (dtype, shape) = (Dtype::BF16, shape.to_vec());
        out.insert(name, Tensor { dtype, shape, data });
    };
    add(
        "model.embed_tokens.weight".to_owned(),
        &[vocabulary, HIDDEN],
        0.0,
        2.0,
    );
    add("model.norm.weight".to_owned(), &[HIDDEN], 1.0, 0.5);
    if !tied {
        add("lm_head.weight".to_owned(), &[vocabulary, HIDDEN], 0.0, 1.0);
    }
    let (queries, keys) = (HEADS * HEAD_LENGTH, KV_HEADS * HEAD_LENGTH);
    for layer in 0..LAYERS {
        let name = |rest: &str| format!("model.layers.{layer}.{rest}");
        add(name("input_layernorm.weight"), &[HIDDEN], 1.0, 0.5);
        add(name("post_attention_layernorm.weight"), &[HIDDEN], 1.0, 0.5);
        let matrices: [(&str, &[usize]); 7] = [
            ("self_attn.q_proj.weight", &[queries, HIDDEN]),
            ("self_attn.k_proj.weight", &[keys, HIDDEN]),
            ("self_attn.v_proj.weight", &[keys, HIDDEN]),
            ("self_attn.o_proj.weight", &[HIDDEN, queries]),
            ("mlp.gate_proj.weight", &[WIDE, HIDDEN]),
            ("mlp.up_proj.weight", &[WIDE, HIDDEN]),
            ("mlp.down_proj.weight", &[HIDDEN, WIDE]),
        ];
        for (rest, shape) in matrices {
            add(name(rest), shape, 0.0, 0.6);
        }
        if !llama {
            add(name("self_attn.q_proj.bias"), &[queries], 0.0, 0.5);
            add(name("self_attn.k_proj.bias"), &[keys], 0.0, 0.5);
            add(name("self_attn.v_proj.bias"), &[keys], 0.0, 0.5);
        }
    }
    out
}

/// The characters that byte-level tokenizers write bytes with.
fn byte_characters() -> Vec<char> {
    let plain = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let mut next = 256;
    (0..=255_u8)
        .map(|byte| {
            if plain(byte) {
                return char::from(byte);
            }
            next += 1;
            char::from_u32(next - 1).unwrap()
        })
        .collect()
}

/// What the merges spell.
const WORDS: &str = " the| claim| that| hose|burst|ing| water| damage| 12|2024|'ll|'re|'s|n't|水漏れ|がい|の| é|é| naïve|👩|🏽|\r\n|\n\n|    | Straße|ß|ing|tion| and| was| on|im_|end| x|==|--";

fn tokenizer(kind: Kind) -> Value {
    let bytes = byte_characters();
    let mut vocab: BTreeMap<String, usize> = BTreeMap::new();
    for (id, character) in bytes.iter().enumerate() {
        vocab.insert(character.to_string(), id);
    }
    let mut merges = Vec::new();
    for word in WORDS.split('|') {
        let spelled: Vec<char> = word.bytes().map(|b| bytes[usize::from(b)]).collect();
        let mut left = spelled[0].to_string();
        for right in &spelled[1..] {
            let merge = json!([left, right.to_string()]);
            let joined = format!("{left}{right}");
            if !vocab.contains_key(&joined) {
                vocab.insert(joined.clone(), vocab.len());
                merges.push(merge);
            }
            left = joined;
        }
    }
    let added = [
        "<|endoftext|>",
        "<|im_start|>",
        "<|im_end|>",
        "<|begin_of_text|>",
        "<tool_call>",
    ];
    let added: Vec<Value> = added
        .iter()
        .enumerate()
        .map(|(place, content)| {
            json!({"id": vocab.len() + place, "content": content, "single_word": false,
                "lstrip": false, "rstrip": false, "normalized": false,
                "special": content.starts_with("<|")})
        })
        .collect();
    let split = |pattern: &str| {
        json!({"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false},
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}]})
    };
    let bos = vocab.len() + 3;
    let (normalizer, pre_tokenizer, post_processor) = match kind {
        Kind::Qwen2 => (
            json!({"type": "NFC"}),
            split(
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            ),
            json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}),
        ),
        Kind::Llama => (
            Value::Null,
            split(
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            ),
            json!({"type": "Sequence", "processors": [
                {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false, "use_regex": true},
                {"type": "TemplateProcessing",
                    "single": [{"SpecialToken": {"id": "<|begin_of_text|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                    "special_tokens": {"<|begin_of_text|>": {"id": "<|begin_of_text|>", "ids": [bos], "tokens": ["<|begin_of_text|>"]}}}]}),
        ),
        Kind::SmolLm => (
            Value::Null,
            json!({"type": "Sequence", "pretokenizers": [
                {"type": "Digits", "individual_digits": true},
                {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}]}),
            Value::Null,
        ),
    };
    json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": added,
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": post_processor,
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
            "end_of_word_suffix": "", "fuse_unk": false, "byte_fallback": false,
            "ignore_merges": kind == Kind::Llama, "vocab": vocab, "merges": merges},
    })
}
