//! A GGUF file is refused with the reason that it is wrong for, and no bytes make the reader fail otherwise.

use std::fs;
use std::path::Path;

use factum_model::weights::gguf::{GgufError, read_header};
use factum_model::weights::{Finding, check_model};
use proptest::prelude::*;
use tokio_util::sync::CancellationToken;

use crate::convert::convert_dir;
use crate::tiny_model::{Kind, TinyModel};

fn whole(kind: Kind) -> Vec<u8> {
    let dir = TinyModel::new(kind, true).write();
    fs::read(convert_dir(dir.path()).unwrap().path).unwrap()
}

fn findings(bytes: &[u8]) -> Vec<Finding> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.gguf");
    fs::write(&path, bytes).unwrap();
    check_model(&path, &CancellationToken::new())
        .unwrap()
        .findings
}

/// Replaces bytes by as many others, so that no offset moves.
fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let place = bytes.windows(from.len()).position(|window| window == from);
    let place = place.expect("it is there");
    let mut out = bytes.to_vec();
    out[place..place + to.len()].copy_from_slice(to);
    out
}

#[test]
fn a_truncated_file_is_named_wherever_it_ends() {
    let bytes = whole(Kind::Qwen2);
    let start = usize::try_from(read_header(&bytes[..]).unwrap().data_start).unwrap();
    for end in [3, 20, 500, start - 40, start + 1, bytes.len() - 64] {
        let found = findings(&bytes[..end]);
        let truncated = matches!(&found[..], [Finding::TruncatedFile { found, .. }]
            if *found == end as u64);
        assert!(truncated, "{end}: {found:?}");
    }
    let longer = [&bytes[..], &[0; 64]].concat();
    assert!(matches!(
        &findings(&longer)[..],
        [Finding::TrailingBytes { .. }]
    ));
}

#[test]
fn a_tensor_of_another_name_is_missing_and_extra() {
    let bytes = replaced(
        &whole(Kind::Qwen2),
        b"blk.1.ffn_up.weight",
        b"blk.1.ffn_xx.weight",
    );
    let names = |name: &str| name.to_owned();
    let expected = [
        Finding::MissingTensor {
            name: names("blk.1.ffn_up.weight"),
        },
        Finding::ExtraTensor {
            name: names("blk.1.ffn_xx.weight"),
        },
    ];
    assert_eq!(findings(&bytes), expected);
}

#[test]
fn a_missing_template_or_tokenizer_is_told() {
    let bytes = replaced(
        &whole(Kind::Qwen2),
        b"tokenizer.chat_template",
        b"tokenizer.chat_xemplate",
    );
    assert_eq!(findings(&bytes), [Finding::MissingTemplate]);
    let bytes = replaced(
        &whole(Kind::Llama),
        b"tokenizer.ggml.pre",
        b"tokenizer.ggml.xre",
    );
    assert!(
        matches!(&findings(&bytes)[..], [Finding::ConfigMismatch { field, .. }]
        if field == "tokenizer.ggml.pre")
    );
}

#[test]
fn an_architecture_that_is_not_known_is_refused() {
    let bytes = whole(Kind::Llama);
    let bytes = replaced(
        &bytes,
        b"\x05\0\0\0\0\0\0\0llama",
        b"\x05\0\0\0\0\0\0\0gemma",
    );
    assert!(
        matches!(&findings(&bytes)[..], [Finding::Unsupported { field, .. }]
        if field == "general.architecture")
    );
}

#[test]
fn the_tokenizers_digest_moves_with_its_tokens_and_not_with_the_weights() {
    let bytes = whole(Kind::Qwen2);
    let digest = |bytes: &[u8]| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model.gguf");
        fs::write(&path, bytes).unwrap();
        let report = check_model(Path::new(&path), &CancellationToken::new()).unwrap();
        report.facts.tokenizer.unwrap()
    };
    let mut other_weights = bytes.clone();
    let last = bytes.len() - 40;
    other_weights[last] ^= 1;
    assert_eq!(digest(&bytes), digest(&other_weights));
    let other_tokens = replaced(&bytes, "Ġdamage".as_bytes(), "Ġdamagx".as_bytes());
    assert_ne!(digest(&bytes), digest(&other_tokens));
}

#[test]
fn numbers_that_a_header_makes_up_cost_nothing() {
    let mut header = b"GGUF".to_vec();
    header.extend(3_u32.to_le_bytes());
    header.extend(0_u64.to_le_bytes());
    header.extend(1_u64.to_le_bytes());
    header.extend(1_u64.to_le_bytes());
    header.push(b'k');
    let with = |rest: &[&[u8]]| read_header(&[&header[..], &rest.concat()].concat()[..]);
    let huge = 1_u64 << 62;
    let string = with(&[&8_u32.to_le_bytes(), &huge.to_le_bytes()]);
    assert!(matches!(string, Err(GgufError::TooLong)));
    let strings = with(&[
        &9_u32.to_le_bytes(),
        &8_u32.to_le_bytes(),
        &huge.to_le_bytes(),
    ]);
    assert!(matches!(strings, Err(GgufError::Ends)));
    let numbers = with(&[
        &9_u32.to_le_bytes(),
        &10_u32.to_le_bytes(),
        &huge.to_le_bytes(),
    ]);
    assert!(matches!(numbers, Err(GgufError::TooLong)));
    let nested = with(&[
        &9_u32.to_le_bytes(),
        &9_u32.to_le_bytes(),
        &huge.to_le_bytes(),
    ]);
    assert!(matches!(nested, Err(GgufError::Type { code: 9, .. })));
}

proptest! {
    #[test]
    fn a_header_with_any_byte_changed_ends_in_a_report(place in 0_usize..4000, byte in any::<u8>()) {
        static WHOLE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        let mut bytes = WHOLE.get_or_init(|| whole(Kind::Qwen2)).clone();
        bytes[place] = byte;
        findings(&bytes);
    }
}
