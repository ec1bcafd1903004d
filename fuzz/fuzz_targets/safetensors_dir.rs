//! Hostile bytes as a Safetensors folder: `config.json`, `tokenizer.json`, `tokenizer_config.json` and the weights, one
//! after the other, with a zero byte before each but the first.
#![no_main]

use std::sync::OnceLock;

use factum_model::weights::check_model;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const FILES: [&str; 4] = [
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "model.safetensors",
];

static FOLDER: OnceLock<TempDir> = OnceLock::new();

/// What a sentence model has beside these, so that hostile bytes may say that they are one.
const BESIDE: [(&str, &str); 3] = [
    (
        "modules.json",
        r#"[{"type": "x.Transformer"}, {"type": "x.Pooling"}]"#,
    ),
    (
        "1_Pooling/config.json",
        r#"{"pooling_mode_mean_tokens": true}"#,
    ),
    ("sentence_bert_config.json", r#"{"max_seq_length": 16}"#),
];

fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder can be made");
    std::fs::create_dir(folder.path().join("1_Pooling")).expect("a folder can be made");
    for (name, text) in BESIDE {
        std::fs::write(folder.path().join(name), text).expect("a file can be written");
    }
    folder
}

fuzz_target!(|bytes: &[u8]| {
    let folder = FOLDER.get_or_init(folder);
    let mut parts = bytes.splitn(FILES.len(), |&byte| byte == 0);
    for name in FILES {
        let part = parts.next().unwrap_or_default();
        std::fs::write(folder.path().join(name), part).expect("a file can be written");
    }
    let report = check_model(folder.path(), &CancellationToken::new()).expect("it can be read");
    for finding in &report.findings {
        assert!(!finding.to_string().is_empty());
    }
});
