//! A converted model holds the source's numbers bit for bit, under the names and in the order llama.cpp reads.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use factum_model::pins::{DigestedFile, digest_file};
use factum_model::weights::gguf::{Array, Header, TensorKind, Value, read_header};
use factum_model::weights::{
    ConvertError, ConvertedModel, Finding, Normalizer, check_model, convert, source_files,
};
use tokio_util::sync::CancellationToken;

use crate::tiny_model::{HEAD_LENGTH, Kind, TEMPLATE, TinyModel};

pub(crate) fn sources(dir: &Path) -> Vec<DigestedFile> {
    let names = source_files(dir).unwrap();
    let digested = names.into_iter().map(|name| {
        let path = dir.join(&name);
        let (sha256, stamp) = digest_file(&path, &CancellationToken::new()).unwrap();
        DigestedFile {
            name,
            path,
            sha256,
            size: stamp.size,
        }
    });
    digested.collect()
}

pub(crate) fn convert_dir(dir: &Path) -> Result<ConvertedModel, ConvertError> {
    let out = dir.join("converted");
    convert(dir, &sources(dir), &out, &CancellationToken::new())
}

pub(crate) fn header(path: &Path) -> Header {
    read_header(BufReader::new(File::open(path).unwrap())).unwrap()
}

/// llama.cpp's name of a tensor.
fn target_name(source: &str) -> String {
    let names = [
        ("model.embed_tokens.", "token_embd."),
        ("model.norm.", "output_norm."),
        ("lm_head.", "output."),
        ("model.layers.", "blk."),
        ("self_attn.q_proj.", "attn_q."),
        ("self_attn.k_proj.", "attn_k."),
        ("self_attn.v_proj.", "attn_v."),
        ("self_attn.o_proj.", "attn_output."),
        ("post_attention_layernorm.", "ffn_norm."),
        ("input_layernorm.", "attn_norm."),
        ("mlp.gate_proj.", "ffn_gate."),
        ("mlp.up_proj.", "ffn_up."),
        ("mlp.down_proj.", "ffn_down."),
    ];
    let mut name = source.to_owned();
    for (from, to) in names {
        name = name.replace(from, to);
    }
    name
}

/// The rows of each head as reshape(2, half) and a swap of these axes leave them.
fn swapped(data: &[u8], row: usize) -> Vec<u8> {
    let half = HEAD_LENGTH / 2;
    let mut out = Vec::new();
    for head in data.chunks(HEAD_LENGTH * row) {
        for place in 0..half {
            for part in 0..2 {
                let from = (part * half + place) * row;
                out.extend(&head[from..from + row]);
            }
        }
    }
    out
}

#[test]
fn every_tensor_is_read_back_bit_for_bit() {
    for kind in [Kind::Qwen2, Kind::Llama] {
        for tied in [true, false] {
            let model = TinyModel::new(kind, tied);
            let dir = model.write();
            let converted = convert_dir(dir.path()).unwrap();
            let bytes = fs::read(&converted.path).unwrap();
            let header = header(&converted.path);
            assert_eq!(header.tensors.len(), model.tensors.len());
            for (name, source) in &model.tensors {
                let name = target_name(name);
                let tensor = header.tensors.iter().find(|t| t.name == name).unwrap();
                let start = usize::try_from(header.data_start + tensor.offset).unwrap();
                let data = &bytes[start..start + usize::try_from(tensor.size).unwrap()];
                let reversed: Vec<u64> = source.shape.iter().rev().map(|&n| n as u64).collect();
                assert_eq!(tensor.dimensions, reversed, "{name}");
                if source.shape.len() == 1 {
                    assert_eq!(tensor.kind, TensorKind::F32, "{name}");
                    for (narrow, wide) in source.data.chunks(2).zip(data.chunks(4)) {
                        assert_eq!([0, 0, narrow[0], narrow[1]], wide, "{name}");
                    }
                    continue;
                }
                assert_eq!(tensor.kind, TensorKind::BF16, "{name}");
                let moves = name.contains("attn_q") || name.contains("attn_k");
                if kind == Kind::Llama && moves {
                    assert_eq!(data, swapped(&source.data, source.shape[1] * 2), "{name}");
                    assert_ne!(data, source.data, "{name}");
                } else {
                    assert_eq!(data, source.data, "{name}");
                }
            }
        }
    }
}

#[test]
fn a_converted_file_passes_the_strict_check_and_describes_its_tokenizer() {
    let model = TinyModel::new(Kind::Qwen2, true);
    let dir = model.write();
    let converted = convert_dir(dir.path()).unwrap();
    assert_eq!(converted.normalizer, Normalizer::Nfc);
    let report = check_model(&converted.path, &CancellationToken::new()).unwrap();
    assert_eq!(report.findings, []);
    assert!(report.facts.tied);
    let header = header(&converted.path);
    assert_eq!(header.text("tokenizer.ggml.model"), Some("gpt2"));
    assert_eq!(header.text("tokenizer.ggml.pre"), Some("qwen2"));
    assert_eq!(header.text("tokenizer.chat_template"), Some(TEMPLATE));
    assert_eq!(header.text("factum.normalizer"), Some("nfc"));
    let tokens = header.entries["tokenizer.ggml.tokens"]
        .as_strings()
        .unwrap();
    assert_eq!(tokens.len(), model.vocabulary());
    let id = header.number("tokenizer.ggml.eos_token_id").unwrap();
    assert_eq!(tokens[usize::try_from(id).unwrap()], "<|im_end|>");
    assert_eq!(header.number("tokenizer.ggml.eot_token_id"), Some(id));
    let Value::Array(Array::I32(types)) = &header.entries["tokenizer.ggml.token_type"] else {
        panic!("token types are signed 32-bit integers");
    };
    let type_of = |token: &str| types[tokens.iter().position(|one| one == token).unwrap()];
    assert_eq!(type_of("<|im_end|>"), 3);
    assert_eq!(type_of("<tool_call>"), 4);
    assert_eq!(type_of("a"), 1);
    assert_eq!(*types.last().unwrap(), 5);
}

#[test]
fn parts_convert_to_the_same_numbers_as_one_file() {
    let model = TinyModel::new(Kind::Llama, false);
    let (one, two) = (model.write(), model.write_in_two());
    let (one, two) = (
        convert_dir(one.path())
            .map(|c| fs::read(c.path).unwrap())
            .unwrap(),
        convert_dir(two.path())
            .map(|c| fs::read(c.path).unwrap())
            .unwrap(),
    );
    // The digest of the sources differs, and stands in the header.
    assert_ne!(one, two);
    let differing = one.iter().zip(&two).filter(|(a, b)| a != b).count();
    assert!(one.len() == two.len() && differing <= 64, "{differing}");
}

#[test]
fn a_conversion_is_made_once_and_again_when_it_was_touched() {
    let dir = TinyModel::new(Kind::SmolLm, true).write();
    let first = convert_dir(dir.path()).unwrap();
    let (on_disk, _) = digest_file(&first.path, &CancellationToken::new()).unwrap();
    assert_eq!(first.sha256, on_disk);
    let second = convert_dir(dir.path()).unwrap();
    assert!(!first.reused && second.reused);
    assert_eq!(first.sha256, second.sha256);
    fs::write(&first.path, b"GGUF").unwrap();
    let third = convert_dir(dir.path()).unwrap();
    assert!(!third.reused);
    assert_eq!(first.sha256, third.sha256);
}

#[test]
fn nothing_is_written_for_a_model_that_is_refused() {
    let mut model = TinyModel::new(Kind::Qwen2, true);
    model.tensors.remove("model.norm.weight");
    let dir = model.write();
    let Err(ConvertError::Refused { findings }) = convert_dir(dir.path()) else {
        panic!("it has to be refused");
    };
    let name = "model.norm.weight".to_owned();
    assert_eq!(findings, [Finding::MissingTensor { name }]);
    assert!(!dir.path().join("converted").exists());
}

#[test]
fn a_cancelled_conversion_leaves_nothing_behind() {
    let dir = TinyModel::new(Kind::Qwen2, true).write();
    let out = dir.path().join("converted");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let sources = sources(dir.path());
    assert!(convert(dir.path(), &sources, &out, &cancel).is_err());
    let left = fs::read_dir(&out).map_or(0, Iterator::count);
    assert_eq!(left, 0);
}
