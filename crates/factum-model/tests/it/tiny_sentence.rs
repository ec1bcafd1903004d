//! Tiny random sentence models, whole with tokenizer and pooling, for tests to break.

use std::collections::BTreeMap;

use safetensors::Dtype;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tiny_model::{Random, Tensor, write_json, write_part};

pub(crate) const HIDDEN: usize = 48;
pub(crate) const LAYERS: usize = 2;
pub(crate) const WIDE: usize = 80;
pub(crate) const HEADS: usize = 4;
pub(crate) const POSITIONS: usize = 512;
pub(crate) const MAX_TOKENS: usize = 300;

/// A model that can be changed before it is written.
#[derive(Debug, Clone)]
pub(crate) struct TinySentence {
    pub(crate) config: Value,
    pub(crate) tokenizer: Value,
    pub(crate) pooling: Value,
    pub(crate) modules: Value,
    pub(crate) length: Value,
    pub(crate) tensors: BTreeMap<String, Tensor>,
}

impl TinySentence {
    pub(crate) fn new() -> Self {
        let tokenizer = tokenizer();
        let vocabulary = tokenizer["model"]["vocab"].as_object().unwrap().len();
        let module = |kind: &str| json!({"idx": 0, "name": "0", "path": "", "type": format!("sentence_transformers.models.{kind}")});
        Self {
            config: json!({
                "architectures": ["BertModel"],
                "hidden_act": "gelu",
                "hidden_size": HIDDEN,
                "intermediate_size": WIDE,
                "layer_norm_eps": 1e-12,
                "max_position_embeddings": POSITIONS,
                "num_attention_heads": HEADS,
                "num_hidden_layers": LAYERS,
                "position_embedding_type": "absolute",
                "type_vocab_size": 2,
                "vocab_size": vocabulary,
            }),
            tokenizer,
            pooling: json!({
                "word_embedding_dimension": HIDDEN,
                "pooling_mode_cls_token": false,
                "pooling_mode_mean_tokens": true,
                "pooling_mode_max_tokens": false,
            }),
            modules: json!([
                module("Transformer"),
                module("Pooling"),
                module("Normalize")
            ]),
            length: json!({"max_seq_length": MAX_TOKENS, "do_lower_case": false}),
            tensors: tensors(vocabulary),
        }
    }

    /// Writes everything into a new folder.
    pub(crate) fn write(&self) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        write_json(dir.path(), "config.json", &self.config);
        write_json(dir.path(), "tokenizer.json", &self.tokenizer);
        write_json(dir.path(), "modules.json", &self.modules);
        write_json(dir.path(), "sentence_bert_config.json", &self.length);
        std::fs::create_dir(dir.path().join("1_Pooling")).unwrap();
        write_json(dir.path(), "1_Pooling/config.json", &self.pooling);
        write_part(dir.path(), "model.safetensors", &self.tensors);
        dir
    }

    /// The numbers of a tensor.
    #[cfg(feature = "local")]
    pub(crate) fn numbers(&self, name: &str) -> Vec<f32> {
        let four = self.tensors[name].data.chunks_exact(4);
        four.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect()
    }
}

fn tensors(vocabulary: usize) -> BTreeMap<String, Tensor> {
    let mut random = Random(0x0123_4567_89ab_cdef);
    let mut out = BTreeMap::new();
    let mut add = |name: String, shape: &[usize], around: f32, spread: f32| {
        let data = (0..shape.iter().product())
            .flat_map(|_| random.number(around, spread).to_le_bytes())
            .collect();
        let (dtype, shape) = (Dtype::F32, shape.to_vec());
        out.insert(name, Tensor { dtype, shape, data });
    };
    let named = |rest: &str| format!("embeddings.{rest}");
    for (name, rows) in [
        ("word_embeddings.weight", vocabulary),
        ("position_embeddings.weight", POSITIONS),
        ("token_type_embeddings.weight", 2),
    ] {
        add(named(name), &[rows, HIDDEN], 0.0, 2.0);
    }
    add(named("LayerNorm.weight"), &[HIDDEN], 1.0, 0.5);
    add(named("LayerNorm.bias"), &[HIDDEN], 0.0, 0.5);
    for layer in 0..LAYERS {
        let matrices: [(&str, usize, usize); 6] = [
            ("attention.self.query", HIDDEN, HIDDEN),
            ("attention.self.key", HIDDEN, HIDDEN),
            ("attention.self.value", HIDDEN, HIDDEN),
            ("attention.output.dense", HIDDEN, HIDDEN),
            ("intermediate.dense", WIDE, HIDDEN),
            ("output.dense", HIDDEN, WIDE),
        ];
        let named = |rest: &str| format!("encoder.layer.{layer}.{rest}");
        for (name, rows, columns) in matrices {
            add(named(&format!("{name}.weight")), &[rows, columns], 0.0, 0.8);
            add(named(&format!("{name}.bias")), &[rows], 0.0, 0.5);
        }
        for name in ["attention.output.LayerNorm", "output.LayerNorm"] {
            add(named(&format!("{name}.weight")), &[HIDDEN], 1.0, 0.5);
            add(named(&format!("{name}.bias")), &[HIDDEN], 0.0, 0.5);
        }
    }
    add(
        "pooler.dense.weight".to_owned(),
        &[HIDDEN, HIDDEN],
        0.0,
        0.5,
    );
    add("pooler.dense.bias".to_owned(), &[HIDDEN], 0.0, 0.5);
    let places = (0..POSITIONS as u64).flat_map(u64::to_le_bytes).collect();
    out.insert(
        "embeddings.position_ids".to_owned(),
        Tensor {
            dtype: Dtype::I64,
            shape: vec![1, POSITIONS],
            data: places,
        },
    );
    out
}

/// Words and parts of words beside single characters.
const PIECES: &str = "the claim that hose burst water damage cafe naive strasse 2024 12 ##ing ##s ##ed ##age ##rst un ##able \
    can ' t ² ½ 水 漏 中 文 か ##か ##き が カ ᄒ ##ᅡ ##ᆫ ᄀ ##ᅮ ##ᆨ 한 ##국 ไ ##ท ##ย i ##̇ ß ##ß ss ##ss # ### ### ## € £ ° … “ ” — 🔥 👩 ▁x ह ##ि ##न ##द ##ी";

fn tokenizer() -> Value {
    let mut vocab: BTreeMap<String, usize> = BTreeMap::new();
    let mut add = |token: &str| {
        let next = vocab.len();
        vocab.entry(token.to_owned()).or_insert(next);
    };
    for special in ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] {
        add(special);
    }
    for character in ('!'..='~').filter(|c| !c.is_ascii_uppercase()) {
        add(&character.to_string());
        if character.is_ascii_alphanumeric() {
            add(&format!("##{character}"));
        }
    }
    for piece in PIECES.split_whitespace().filter(|piece| *piece != "##") {
        add(piece);
    }
    let added: Vec<Value> = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        .iter()
        .enumerate()
        .map(|(id, content)| {
            json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true})
        })
        .collect();
    let special = |name: &str| json!({"SpecialToken": {"id": name, "type_id": 0}});
    let ids = |name: &str, id: usize| json!({"id": name, "ids": [id], "tokens": [name]});
    json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": added,
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing",
            "single": [special("[CLS]"), {"Sequence": {"id": "A", "type_id": 0}}, special("[SEP]")],
            "pair": [special("[CLS]"), {"Sequence": {"id": "A", "type_id": 0}}, special("[SEP]"),
                {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
            "special_tokens": {"[CLS]": ids("[CLS]", 2), "[SEP]": ids("[SEP]", 3)}},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocab},
    })
}
