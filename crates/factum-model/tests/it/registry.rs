//! Names and paths: what they stand for, without hashing what did not change.

use std::fs;

use factum_model::pins::{FileDigest, Format, PinError, PrepareError, Registry, State};
use factum_model::weights::Normalizer;
use tokio_util::sync::CancellationToken;

use crate::tiny_model::{Kind, TinyModel};

#[test]
fn the_models_of_the_build_are_known_and_absent_from_a_new_folder() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::load(&folder.path().join("new")).unwrap();
    let listed = registry.list();
    let names: Vec<&str> = listed.iter().map(|model| model.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "all-minilm-l6-v2",
            "qwen2.5-1.5b-instruct",
            "smollm2-135m-instruct"
        ]
    );
    assert!(listed.iter().all(|model| model.state == State::Absent));
    let cancel = CancellationToken::new();
    let absent = registry.resolve("smollm2-135m-instruct", &cancel);
    assert!(matches!(absent, Err(PinError::Absent(_))));
    let unknown = registry.resolve("gpt-7", &cancel).unwrap_err().to_string();
    assert!(unknown.contains("smollm2-135m-instruct"), "{unknown}");
    assert!(!folder.path().join("new").exists());
}

#[test]
fn a_file_by_path_is_hashed_once_and_again_when_it_changed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let path = folder.path().join("mine.gguf");
    fs::write(&path, b"one").unwrap();
    let registry = Registry::load(&data).unwrap();
    let cancel = CancellationToken::new();
    let name = path.to_str().unwrap();
    let resolved = registry.resolve(name, &cancel).unwrap();
    assert_eq!(resolved.format, Format::Gguf);
    assert_eq!(resolved.files[0].sha256, FileDigest::of(b"one"));
    // What is remembered is used: a false memory of the same stamp shows it.
    let memory = data.join("digests.json");
    let text = fs::read_to_string(&memory).unwrap();
    let (one, other) = (FileDigest::of(b"one"), FileDigest::of(b"other"));
    fs::write(&memory, text.replace(&one.to_hex(), &other.to_hex())).unwrap();
    assert_eq!(
        registry.resolve(name, &cancel).unwrap().files[0].sha256,
        other
    );
    fs::write(&path, b"two!").unwrap();
    let resolved = registry.resolve(name, &cancel).unwrap();
    assert_eq!(resolved.files[0].sha256, FileDigest::of(b"two!"));
    fs::write(&memory, b"broken").unwrap();
    let resolved = registry.resolve(name, &cancel).unwrap();
    assert_eq!(resolved.files[0].sha256, FileDigest::of(b"two!"));
}

#[test]
fn a_folder_by_path_is_all_files_that_matter() {
    let data = tempfile::tempdir().unwrap();
    let dir = TinyModel::new(Kind::Qwen2, true).write_in_two();
    fs::write(dir.path().join("README.md"), b"not one of them").unwrap();
    let registry = Registry::load(data.path()).unwrap();
    let cancel = CancellationToken::new();
    let resolved = registry
        .resolve(dir.path().to_str().unwrap(), &cancel)
        .unwrap();
    assert_eq!(resolved.format, Format::Safetensors);
    let names: Vec<&str> = resolved
        .files
        .iter()
        .map(|file| file.name.as_str())
        .collect();
    let expected = [
        "config.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ];
    assert_eq!(names, expected);
    let report = registry
        .check(dir.path().to_str().unwrap(), &cancel)
        .unwrap();
    assert!(report.is_clean());
}

#[test]
fn what_is_no_model_is_not_taken_for_one() {
    let data = tempfile::tempdir().unwrap();
    let registry = Registry::load(data.path()).unwrap();
    let cancel = CancellationToken::new();
    let text = data.path().join("notes.txt");
    fs::write(&text, b"x").unwrap();
    for path in [text.as_path(), data.path()] {
        let found = registry.resolve(path.to_str().unwrap(), &cancel);
        assert!(matches!(found, Err(PinError::NoModel(_))), "{found:?}");
    }
}

#[test]
fn a_broken_list_is_named() {
    let data = tempfile::tempdir().unwrap();
    fs::write(data.path().join("models.toml"), "[[model]]\nname = 3").unwrap();
    let error = Registry::load(data.path()).unwrap_err();
    assert!(matches!(error, PinError::Catalogue { .. }));
    assert!(error.to_string().contains("models.toml"));
}

#[test]
fn what_is_known_of_safetensors_is_what_was_prepared_and_nothing_is_converted_to_know_it() {
    let data = tempfile::tempdir().unwrap();
    let dir = TinyModel::new(Kind::Llama, true).write();
    let path = dir.path().to_str().unwrap();
    let registry = Registry::load(data.path()).unwrap();
    let cancel = CancellationToken::new();
    let unknown = registry.known(path, &cancel);
    assert!(matches!(unknown, Err(PrepareError::NotConverted(_))));
    assert!(!data.path().join(".converted").exists());
    let prepared = registry.prepare(path, &cancel).unwrap();
    let known = registry.known(path, &cancel).unwrap();
    assert_eq!(
        (known.sha256, known.converted),
        (prepared.sha256, prepared.converted)
    );
    let decisive = registry.decisive_files(path);
    assert!(decisive.contains(&dir.path().join("model.safetensors")));
    assert!(decisive.contains(&data.path().join(".converted")));
    // A file that was touched since is no longer known to be the one that was made.
    fs::write(&prepared.gguf, b"something else").unwrap();
    assert!(registry.known(path, &cancel).is_err());
}

#[test]
fn safetensors_are_prepared_once_and_both_digests_are_told() {
    let data = tempfile::tempdir().unwrap();
    let dir = TinyModel::new(Kind::Qwen2, true).write();
    let registry = Registry::load(data.path()).unwrap();
    let cancel = CancellationToken::new();
    let prepared = registry
        .prepare(dir.path().to_str().unwrap(), &cancel)
        .unwrap();
    let bytes = fs::read(&prepared.gguf).unwrap();
    assert_eq!(prepared.sha256, FileDigest::of(&bytes));
    assert_eq!(prepared.normalizer, Normalizer::Nfc);
    assert!(prepared.gguf.starts_with(data.path()));
    let again = registry
        .prepare(dir.path().to_str().unwrap(), &cancel)
        .unwrap();
    assert_eq!(again, prepared);
    // Another configuration is another model, under another name.
    let config = dir.path().join("config.json");
    let text = fs::read_to_string(&config)
        .unwrap()
        .replace("10000.0", "20000.0");
    fs::write(&config, text).unwrap();
    let other = registry
        .prepare(dir.path().to_str().unwrap(), &cancel)
        .unwrap();
    assert_ne!(other.converted, prepared.converted);
    assert_ne!(other.gguf, prepared.gguf);
    // The converted file says what was not ours to keep in mind.
    let by_path = registry
        .prepare(prepared.gguf.to_str().unwrap(), &cancel)
        .unwrap();
    assert_eq!(by_path.normalizer, Normalizer::Nfc);
    assert_eq!((by_path.sha256, by_path.converted), (prepared.sha256, None));
}
