//! A Safetensors folder is refused with exactly the reason that it is wrong for.

use std::fs;
use std::path::Path;

use factum_model::weights::{Finding, TokenizerError, check_model};
use safetensors::Dtype;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::tiny_model::{HIDDEN, Kind, TinyModel};

fn findings(dir: &Path) -> Vec<Finding> {
    check_model(dir, &CancellationToken::new())
        .unwrap()
        .findings
}

fn changed(kind: Kind, tied: bool, change: impl Fn(&mut TinyModel)) -> Vec<Finding> {
    let mut model = TinyModel::new(kind, tied);
    change(&mut model);
    findings(model.write().path())
}

#[test]
fn whole_models_load_strictly() {
    for kind in [Kind::Qwen2, Kind::Llama, Kind::SmolLm] {
        for tied in [true, false] {
            let model = TinyModel::new(kind, tied);
            assert_eq!(findings(model.write().path()), [], "{kind:?} {tied}");
            assert_eq!(findings(model.write_in_two().path()), [], "{kind:?} {tied}");
        }
    }
}

#[test]
fn the_report_says_what_was_seen() {
    let model = TinyModel::new(Kind::Qwen2, true);
    let dir = model.write();
    let report = check_model(dir.path(), &CancellationToken::new()).unwrap();
    let facts = report.facts;
    assert_eq!(facts.architecture.as_deref(), Some("qwen2"));
    assert_eq!(facts.tensors, 26);
    assert_eq!(facts.kinds, [("BF16".to_owned(), 26)]);
    assert_eq!(facts.vocabulary, model.vocabulary() as u64);
    assert_eq!(facts.pre_tokenizer.as_deref(), Some("qwen2"));
    assert!(facts.tied && facts.tokenizer.is_some() && facts.template.is_some());
}

#[test]
fn a_missing_tensor_is_named() {
    let name = "model.layers.1.mlp.up_proj.weight";
    let found = changed(Kind::Qwen2, true, |model| {
        model.tensors.remove(name);
    });
    let name = name.to_owned();
    assert_eq!(found, [Finding::MissingTensor { name }]);
}

#[test]
fn an_untied_model_without_a_head_misses_it() {
    let found = changed(Kind::Llama, false, |model| {
        model.tensors.remove("lm_head.weight");
    });
    let name = "lm_head.weight".to_owned();
    assert_eq!(found, [Finding::MissingTensor { name }]);
}

#[test]
fn an_extra_tensor_is_named() {
    let name = "model.layers.2.mlp.up_proj.weight";
    let found = changed(Kind::Llama, true, |model| {
        let tensor = model.tensors["model.layers.1.mlp.up_proj.weight"].clone();
        model.tensors.insert(name.to_owned(), tensor);
    });
    let name = name.to_owned();
    assert_eq!(found, [Finding::ExtraTensor { name }]);
}

#[test]
fn a_bias_is_extra_for_llama_and_missing_for_qwen2() {
    let name = "model.layers.0.self_attn.q_proj.bias";
    let with = TinyModel::new(Kind::Qwen2, true).tensors[name].clone();
    let found = changed(Kind::Llama, true, |model| {
        model.tensors.insert(name.to_owned(), with.clone());
    });
    let extra = Finding::ExtraTensor {
        name: name.to_owned(),
    };
    assert_eq!(found, [extra]);
    let found = changed(Kind::Qwen2, true, |model| {
        model.tensors.remove(name);
    });
    let name = name.to_owned();
    assert_eq!(found, [Finding::MissingTensor { name }]);
}

#[test]
fn a_head_that_is_said_to_be_tied_has_to_be_the_embedding_bit_for_bit() {
    let with_head = |change: bool| {
        changed(Kind::Qwen2, true, |model| {
            let mut head = model.tensors["model.embed_tokens.weight"].clone();
            if change {
                let last = head.data.len() - 2;
                head.data[last] ^= 1;
            }
            model.tensors.insert("lm_head.weight".to_owned(), head);
        })
    };
    assert_eq!(with_head(false), []);
    assert_eq!(with_head(true), [Finding::UntiedHead]);
}

#[test]
fn a_wrong_shape_is_named_with_both() {
    let name = "model.layers.0.self_attn.k_proj.weight";
    let found = changed(Kind::Qwen2, true, |model| {
        model.tensors.get_mut(name).unwrap().shape = vec![HIDDEN, 32];
    });
    let expected = Finding::WrongShape {
        name: name.to_owned(),
        expected: vec![32, HIDDEN as u64],
        found: vec![HIDDEN as u64, 32],
    };
    assert_eq!(found, [expected]);
}

#[test]
fn a_wrong_type_is_named_with_both() {
    let name = "model.norm.weight";
    let found = changed(Kind::Qwen2, true, |model| {
        model.tensors.get_mut(name).unwrap().dtype = Dtype::F16;
    });
    let expected = Finding::WrongType {
        name: name.to_owned(),
        expected: "BF16".to_owned(),
        found: "F16".to_owned(),
    };
    assert_eq!(found, [expected]);
}

#[test]
fn a_truncated_file_is_named_wherever_it_ends() {
    let dir = TinyModel::new(Kind::Qwen2, true).write();
    let path = dir.path().join("model.safetensors");
    let whole = fs::read(&path).unwrap();
    let ends = [0, 7, 8, 100, whole.len() / 2, whole.len() - 1];
    for end in ends {
        fs::write(&path, &whole[..end]).unwrap();
        let found = findings(dir.path());
        let truncated = matches!(&found[..], [Finding::TruncatedFile { file, found, .. }]
            if file == "model.safetensors" && *found == end as u64);
        assert!(truncated, "{end}: {found:?}");
    }
    let mut longer = whole.clone();
    longer.push(0);
    fs::write(&path, &longer).unwrap();
    assert!(matches!(
        &findings(dir.path())[..],
        [Finding::TrailingBytes { .. }]
    ));
}

#[test]
fn a_hostile_header_is_a_finding() {
    let dir = TinyModel::new(Kind::Qwen2, true).write();
    let path = dir.path().join("model.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    bytes[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    assert!(matches!(
        &findings(dir.path())[..],
        [Finding::BadHeader { .. }]
    ));
    let header = br#"{"a":{"dtype":"BF16","shape":[18446744073709551615,9],"data_offsets":[0,2]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.extend([0, 0]);
    fs::write(&path, &bytes).unwrap();
    assert!(matches!(
        &findings(dir.path())[..],
        [Finding::BadHeader { .. }]
    ));
}

#[test]
fn an_index_that_says_otherwise_than_its_parts_is_refused() {
    let dir = TinyModel::new(Kind::Qwen2, true).write_in_two();
    let path = dir.path().join("model.safetensors.index.json");
    let text = fs::read_to_string(&path).unwrap();
    let moved = text.replacen("model-00001", "model-00002", 1);
    fs::write(&path, moved).unwrap();
    assert!(matches!(
        &findings(dir.path())[..],
        [Finding::BadIndex { .. }]
    ));
    fs::write(&path, text.replace("model-00001", "../model-00001")).unwrap();
    assert!(matches!(
        &findings(dir.path())[..],
        [Finding::BadIndex { .. }]
    ));
    fs::write(&path, text).unwrap();
    fs::remove_file(dir.path().join("model-00002-of-00002.safetensors")).unwrap();
    let found = findings(dir.path());
    let file = "model-00002-of-00002.safetensors".to_owned();
    assert_eq!(found[0], Finding::MissingFile { file });
}

#[test]
fn a_configuration_that_asks_for_something_else_is_refused() {
    let changes = [
        ("architectures", json!(["MistralForCausalLM"])),
        ("hidden_act", json!("gelu")),
        ("rope_scaling", json!({"type": "yarn", "factor": 4.0})),
        ("rope_parameters", json!({"rope_type": "llama3"})),
        ("torch_dtype", json!("float16")),
        ("use_sliding_window", json!(true)),
        ("rope_interleaved", json!(true)),
        ("num_key_value_heads", json!(3)),
        ("head_dim", json!(32)),
        ("num_hidden_layers", json!(1_000_000)),
        ("hidden_size", json!(0)),
        ("rms_norm_eps", json!(0.0)),
        ("quantization_config", json!({"bits": 4})),
    ];
    for (field, value) in changes {
        let found = changed(Kind::Qwen2, true, |model| {
            model.config[field] = value.clone();
        });
        let named = matches!(&found[..], [Finding::Unsupported { field: f, .. }] if f == field);
        assert!(named, "{field}: {found:?}");
    }
    let found = changed(Kind::Llama, true, |model| {
        model.config["attention_bias"] = json!(true);
    });
    assert!(matches!(&found[..], [Finding::Unsupported { .. }]));
}

fn tokenizer_error(kind: Kind, change: impl Fn(&mut TinyModel)) -> TokenizerError {
    match &changed(kind, true, change)[..] {
        [Finding::Tokenizer(error)] => error.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_tokenizer_that_llama_cpp_can_not_follow_is_refused() {
    let unknown = tokenizer_error(Kind::Qwen2, |model| {
        let pattern = &mut model.tokenizer["pre_tokenizer"]["pretokenizers"][0]["pattern"];
        pattern["Regex"] = json!(r"\p{N}{1,2}|\s+");
    });
    assert!(matches!(unknown, TokenizerError::PreTokenizer(_)));
    let merges = tokenizer_error(Kind::Llama, |model| {
        model.tokenizer["model"]["ignore_merges"] = json!(false);
    });
    assert!(matches!(
        merges,
        TokenizerError::Unsupported {
            part: "ignore_merges",
            ..
        }
    ));
    let normalizer = tokenizer_error(Kind::SmolLm, |model| {
        model.tokenizer["normalizer"] = json!({"type": "Lowercase"});
    });
    assert!(matches!(normalizer, TokenizerError::Unsupported { .. }));
    let kind = tokenizer_error(Kind::SmolLm, |model| {
        model.tokenizer["model"]["type"] = json!("WordPiece");
    });
    assert!(matches!(kind, TokenizerError::Unsupported { .. }));
    let merge = tokenizer_error(Kind::SmolLm, |model| {
        model.tokenizer["model"]["merges"][3] = json!("no such");
    });
    assert!(matches!(merge, TokenizerError::Merge(_)));
    let strip = tokenizer_error(Kind::SmolLm, |model| {
        model.tokenizer["added_tokens"][0]["lstrip"] = json!(true);
    });
    assert!(matches!(strip, TokenizerError::Unsupported { .. }));
    let eos = tokenizer_error(Kind::SmolLm, |model| {
        model.tokenizer_config["eos_token"] = json!("<|nowhere|>");
    });
    assert!(matches!(eos, TokenizerError::Special { role: "eos", .. }));
    let bos = tokenizer_error(Kind::Llama, |model| {
        model.tokenizer_config["add_bos_token"] = json!(false);
    });
    assert_eq!(bos, TokenizerError::Contradiction("add_bos_token"));
    let id = tokenizer_error(Kind::SmolLm, |model| {
        model.tokenizer["added_tokens"][0]["id"] = json!(100_000);
    });
    assert!(matches!(id, TokenizerError::Id { id: 100_000, .. }));
}

#[test]
fn a_model_without_a_template_is_told() {
    let found = changed(Kind::Qwen2, true, |model| {
        model.tokenizer_config["chat_template"] = json!(null);
    });
    assert_eq!(found, [Finding::MissingTemplate]);
    let found = changed(Kind::Qwen2, true, |model| {
        model.tokenizer_config["chat_template"] =
            json!([{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]);
    });
    assert_eq!(found, []);
}

#[test]
fn a_check_that_is_cancelled_stops() {
    let mut model = TinyModel::new(Kind::Qwen2, true);
    let head = model.tensors["model.embed_tokens.weight"].clone();
    model.tensors.insert("lm_head.weight".to_owned(), head);
    let dir = model.write();
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert!(check_model(dir.path(), &cancel).is_err());
}
