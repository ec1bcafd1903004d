//! Sentence models: a folder is refused with exactly the reason that it is wrong for, and a converted file holds its
//! numbers bit for bit.

use std::fs;
use std::path::Path;

use factum_model::weights::gguf::{TensorKind, Value};
use factum_model::weights::{Finding, Normalizer, TokenizerError, check_model, source_files};
use safetensors::Dtype;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::convert::{convert_dir, header};
use crate::tiny_sentence::{HIDDEN, MAX_TOKENS, TinySentence};

fn findings(path: &Path) -> Vec<Finding> {
    check_model(path, &CancellationToken::new())
        .unwrap()
        .findings
}

fn changed(change: impl Fn(&mut TinySentence)) -> Vec<Finding> {
    let mut model = TinySentence::new();
    change(&mut model);
    findings(model.write().path())
}

#[test]
fn a_whole_sentence_model_is_sound_as_a_folder_and_converted() {
    let dir = TinySentence::new().write();
    assert_eq!(findings(dir.path()), []);
    let converted = convert_dir(dir.path()).unwrap();
    assert_eq!(findings(&converted.path), []);
    assert_eq!(converted.normalizer, Normalizer::Unaccented);
    let report = check_model(dir.path(), &CancellationToken::new()).unwrap();
    assert_eq!(report.facts.architecture.as_deref(), Some("bert"));
    assert_eq!(report.facts.context_length, MAX_TOKENS as u64);
    assert!(report.facts.tokenizer.is_some() && report.facts.template.is_none());
}

#[test]
fn every_small_file_that_can_change_a_vector_is_a_source() {
    let dir = TinySentence::new().write();
    let names = source_files(dir.path()).unwrap();
    assert_eq!(
        names,
        [
            "1_Pooling/config.json",
            "config.json",
            "model.safetensors",
            "modules.json",
            "sentence_bert_config.json",
            "tokenizer.json",
        ]
    );
    let before = convert_dir(dir.path()).unwrap();
    fs::write(
        dir.path().join("sentence_bert_config.json"),
        r#"{"max_seq_length": 17}"#,
    )
    .unwrap();
    let after = convert_dir(dir.path()).unwrap();
    assert_ne!(before.sha256, after.sha256);
    assert_ne!(before.path, after.path);
}

#[test]
fn every_tensor_of_a_sentence_model_is_read_back_bit_for_bit() {
    let model = TinySentence::new();
    let dir = model.write();
    let converted = convert_dir(dir.path()).unwrap();
    let bytes = fs::read(&converted.path).unwrap();
    let header = header(&converted.path);
    // All but the places and the pooler, which nothing here computes with.
    assert_eq!(header.tensors.len(), model.tensors.len() - 3);
    let start = usize::try_from(header.data_start).unwrap();
    for (source, target) in [
        ("embeddings.word_embeddings.weight", "token_embd.weight"),
        (
            "embeddings.position_embeddings.weight",
            "position_embd.weight",
        ),
        (
            "embeddings.token_type_embeddings.weight",
            "token_types.weight",
        ),
        ("embeddings.LayerNorm.bias", "token_embd_norm.bias"),
        (
            "encoder.layer.0.attention.self.key.weight",
            "blk.0.attn_k.weight",
        ),
        (
            "encoder.layer.1.attention.self.query.bias",
            "blk.1.attn_q.bias",
        ),
        (
            "encoder.layer.1.attention.output.LayerNorm.weight",
            "blk.1.attn_output_norm.weight",
        ),
        (
            "encoder.layer.0.intermediate.dense.weight",
            "blk.0.ffn_up.weight",
        ),
        (
            "encoder.layer.0.output.dense.weight",
            "blk.0.ffn_down.weight",
        ),
        (
            "encoder.layer.1.output.LayerNorm.bias",
            "blk.1.layer_output_norm.bias",
        ),
    ] {
        let found = header.tensors.iter().find(|t| t.name == target).unwrap();
        assert_eq!(found.kind, TensorKind::F32, "{target}");
        let from = start + usize::try_from(found.offset).unwrap();
        let size = usize::try_from(found.size).unwrap();
        assert_eq!(
            &bytes[from..from + size],
            &model.tensors[source].data,
            "{source}"
        );
    }
}

#[test]
fn the_same_sentence_model_is_the_same_file_wherever_it_is_converted() {
    let model = TinySentence::new();
    let (one, other) = (model.write(), model.write());
    let (one, other) = (
        convert_dir(one.path()).unwrap(),
        convert_dir(other.path()).unwrap(),
    );
    assert_eq!((one.sha256, one.source), (other.sha256, other.source));
}

#[test]
fn words_begin_with_a_mark_where_the_original_marks_that_they_go_on() {
    let model = TinySentence::new();
    let dir = model.write();
    let header = header(&convert_dir(dir.path()).unwrap().path);
    let tokens = header.entries["tokenizer.ggml.tokens"]
        .as_strings()
        .unwrap();
    let vocab = model.tokenizer["model"]["vocab"].as_object().unwrap();
    let at =
        |token: &str| tokens[usize::try_from(vocab[token].as_u64().unwrap()).unwrap()].as_str();
    assert_eq!(at("hose"), "\u{2581}hose");
    assert_eq!(at("##ing"), "ing");
    assert_eq!(at("#"), "\u{2581}#");
    assert_eq!(at("[CLS]"), "[CLS]");
    assert_eq!(header.entries["bert.attention.causal"], Value::Bool(false));
    assert_eq!(header.number("bert.pooling_type"), Some(1));
}

#[test]
fn a_sentence_models_tensors_are_held_to_names_shapes_and_types() {
    let name = "encoder.layer.1.output.dense.weight";
    let missing = changed(|model| {
        model.tensors.remove(name);
    });
    let named = || name.to_owned();
    assert_eq!(missing, [Finding::MissingTensor { name: named() }]);
    let extra = changed(|model| {
        let tensor = model.tensors[name].clone();
        model.tensors.insert("lm_head.weight".to_owned(), tensor);
    });
    assert!(matches!(&extra[..], [Finding::ExtraTensor { name }] if name == "lm_head.weight"));
    let shape = changed(|model| {
        model.tensors.get_mut(name).unwrap().shape.reverse();
    });
    assert!(matches!(&shape[..], [Finding::WrongShape { .. }]));
    let kind = changed(|model| {
        let tensor = model.tensors.get_mut("pooler.dense.bias").unwrap();
        tensor.dtype = Dtype::F16;
        tensor.data.truncate(HIDDEN * 2);
    });
    assert!(matches!(&kind[..], [Finding::WrongType { .. }]), "{kind:?}");
}

#[test]
fn what_would_compute_something_else_is_refused() {
    let unsupported = |change: &dyn Fn(&mut TinySentence), field: &str| {
        let found = changed(change);
        assert!(
            matches!(&found[..], [Finding::Unsupported { field: f, .. }] if f == field),
            "{field}: {found:?}"
        );
    };
    unsupported(
        &|m| m.config["hidden_act"] = json!("gelu_new"),
        "hidden_act",
    );
    unsupported(
        &|m| m.config["position_embedding_type"] = json!("relative_key"),
        "position_embedding_type",
    );
    unsupported(
        &|m| m.config["torch_dtype"] = json!("float16"),
        "torch_dtype",
    );
    unsupported(&|m| m.config["is_decoder"] = json!(true), "is_decoder");
    unsupported(
        &|m| m.config["num_attention_heads"] = json!(5),
        "num_attention_heads",
    );
    unsupported(
        &|m| m.config["num_hidden_layers"] = json!(0),
        "num_hidden_layers",
    );
    unsupported(
        &|m| m.pooling["pooling_mode_cls_token"] = json!(true),
        "pooling_mode_cls_token",
    );
    unsupported(
        &|m| m.pooling["pooling_mode_mean_tokens"] = json!(false),
        "pooling_mode_mean_tokens",
    );
    unsupported(
        &|m| m.pooling["word_embedding_dimension"] = json!(5),
        "word_embedding_dimension",
    );
    unsupported(
        &|m| m.length["max_seq_length"] = json!(513),
        "max_seq_length",
    );
    unsupported(
        &|m| m.length["do_lower_case"] = json!(true),
        "do_lower_case",
    );
    unsupported(
        &|m| m.modules[2]["type"] = json!("sentence_transformers.models.Dense"),
        "modules.json",
    );
}

#[test]
fn a_folder_that_does_not_say_how_tokens_become_one_vector_is_refused() {
    for file in [
        "1_Pooling/config.json",
        "modules.json",
        "sentence_bert_config.json",
    ] {
        let dir = TinySentence::new().write();
        fs::remove_file(dir.path().join(file)).unwrap();
        let found = findings(dir.path());
        assert!(
            matches!(&found[..], [Finding::MissingFile { file: f }] if f == file),
            "{found:?}"
        );
    }
}

#[test]
fn a_tokenizer_that_llama_cpp_would_read_otherwise_is_refused() {
    let refused = |change: &dyn Fn(&mut TinySentence)| {
        let found = changed(change);
        assert!(matches!(&found[..], [Finding::Tokenizer(_)]), "{found:?}");
        match found.into_iter().next() {
            Some(Finding::Tokenizer(error)) => error,
            _ => unreachable!(),
        }
    };
    refused(&|m| m.tokenizer["model"]["type"] = json!("BPE"));
    refused(&|m| m.tokenizer["model"]["continuing_subword_prefix"] = json!("@@"));
    refused(&|m| m.tokenizer["model"]["max_input_chars_per_word"] = json!(20));
    refused(&|m| m.tokenizer["normalizer"]["clean_text"] = json!(false));
    refused(&|m| m.tokenizer["normalizer"] = json!({"type": "NFC"}));
    refused(&|m| m.tokenizer["pre_tokenizer"] = json!({"type": "Whitespace"}));
    refused(&|m| m.tokenizer["post_processor"]["single"] = json!([]));
    refused(&|m| m.tokenizer["added_tokens"][0]["content"] = json!("<tool>"));
    // A row without a token, and two tokens that would be one in GGUF.
    refused(&|m| {
        m.tokenizer["model"]["vocab"]
            .as_object_mut()
            .unwrap()
            .remove("hose");
    });
    let twice = refused(&|m| {
        let vocab = m.tokenizer["model"]["vocab"].as_object_mut().unwrap();
        let id = vocab.remove("hose").unwrap();
        vocab.insert("##\u{2581}claim".to_owned(), id);
    });
    assert!(matches!(twice, TokenizerError::Id { .. }), "{twice}");
}

#[test]
fn a_converted_sentence_model_that_was_tampered_with_is_found() {
    let dir = TinySentence::new().write();
    let converted = convert_dir(dir.path()).unwrap();
    let sound = fs::read(&converted.path).unwrap();
    let path = dir.path().join("other.gguf");
    let with = |from: &[u8], to: &[u8]| {
        let at = sound.windows(from.len()).position(|w| w == from).unwrap();
        let mut bytes = sound.clone();
        bytes[at..at + to.len()].copy_from_slice(to);
        fs::write(&path, bytes).unwrap();
        findings(&path)
    };
    for (from, to) in [
        ("blk.1.attn_q.bias", "blk.9.attn_q.bias"),
        (
            "tokenizer.ggml.seperator_token_id",
            "tokenizer.ggml.separator_token_id",
        ),
        ("bert.pooling_type", "bert.pooling_tipe"),
        ("bert.attention.causal", "bert.attention.casual"),
    ] {
        let found = with(from.as_bytes(), to.as_bytes());
        assert!(!found.is_empty(), "{to}");
    }
    fs::write(&path, &sound[..sound.len() - 64]).unwrap();
    assert!(matches!(
        &findings(&path)[..],
        [Finding::TruncatedFile { .. }]
    ));
}
