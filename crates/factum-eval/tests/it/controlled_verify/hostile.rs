//! Whatever stands in the files, verification ends and finds something.

use factum_eval::controlled_verify::ExperimentFiles;
use serde_json::{Value, json};

use super::experiments::{answered, relist, small, verified};

#[test]
fn an_empty_folder_is_not_clean() {
    assert!(!verified(&ExperimentFiles::default()).findings.is_empty());
}

#[test]
fn hostile_json_in_any_record_never_panics_and_is_found() {
    let names: Vec<String> = small()
        .files
        .keys()
        .filter(|name| !name.contains("/v"))
        .cloned()
        .collect();
    let hostile = [
        "null".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        "\"\\ud800\"".to_owned(),
        "[".repeat(100_000),
        "{\"files\":{\"../../x\":\"00\"},\"format\":1}".to_owned(),
        "{\"a\":1,\"a\":2}".to_owned(),
        "-1e-400".to_owned(),
        String::new(),
    ];
    for name in names {
        for text in &hostile {
            let mut files = small().clone();
            files.files.insert(name.clone(), text.clone().into_bytes());
            if name != "records.json" {
                relist(&mut files);
            }
            assert!(!verified(&files).findings.is_empty(), "{name}: {text:.40}");
        }
    }
}

/// Every value of a record, one after another, becomes something else.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(map) => {
            for (name, inside) in map {
                let name = name.replace('~', "~0").replace('/', "~1");
                places(inside, &format!("{at}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (n, inside) in items.iter().enumerate() {
                places(inside, &format!("{at}/{n}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn a_value_of_another_type_anywhere_never_panics_and_is_found() {
    let mut random = fastrand::Rng::with_seed(11);
    let names: Vec<String> = small()
        .files
        .keys()
        .filter(|name| !name.contains("/v"))
        .cloned()
        .collect();
    for name in names {
        let value: Value = serde_json::from_slice(&small().files[&name]).unwrap();
        let mut all = Vec::new();
        places(&value, "", &mut all);
        random.shuffle(&mut all);
        for place in all.into_iter().take(12) {
            let mut files = small().clone();
            let mut value = value.clone();
            let other = match random.u8(0..4) {
                0 => json!(null),
                1 => json!({"claims": [1, null]}),
                2 => json!([[], "x"]),
                _ => json!(18_446_744_073_709_551_615_u64),
            };
            *value.pointer_mut(&place).unwrap() = other;
            let text = factum_base::canonical_json(&value).unwrap();
            files.files.insert(name.clone(), text.into_bytes());
            if name != "records.json" {
                relist(&mut files);
            }
            let found = verified(&files);
            // Some values can't be told: they are bound by their digest alone.
            let unbound = [
                "/device",
                "/memory_bytes",
                "/system_fingerprint",
                "/at",
                "/seed",
            ];
            let bound = !unbound.iter().any(|end| place.ends_with(end));
            assert!(!bound || !found.findings.is_empty(), "{name} {place}");
        }
    }
}

/// Ends of places whose values nothing else in the folder says: they are bound by their digest alone.
const UNBOUND: [&str; 12] = [
    "/at",
    "/device",
    "/detail",
    "/diagnostic",
    "/factum",
    "/generator",
    "/memory_bytes",
    "/message",
    "/profile_sha256",
    "/retries",
    "/system_fingerprint",
    "/tokens_bounded",
];

#[test]
fn a_value_changed_within_its_type_is_found_although_the_list_is_made_right() {
    let mut random = fastrand::Rng::with_seed(12);
    let base = answered();
    let names: Vec<&String> = base
        .files
        .keys()
        .filter(|name| !name.contains("/v"))
        .collect();
    let mut missed = Vec::new();
    let mut tried = 0;
    while tried < 30 {
        let name = names[random.usize(..names.len())];
        if name == "records.json" {
            continue;
        }
        let mut value: Value = serde_json::from_slice(&base.files[name]).unwrap();
        let mut all = Vec::new();
        places(&value, "", &mut all);
        let place = &all[random.usize(..all.len())];
        let one = value.pointer_mut(place).unwrap();
        *one = match one {
            Value::Bool(holds) => json!(!*holds),
            Value::Number(number) => json!(number.as_f64().unwrap() + 1.0),
            Value::String(text) => json!(format!("{text}a")),
            _ => continue,
        };
        if UNBOUND.iter().any(|end| place.ends_with(end)) {
            continue;
        }
        tried += 1;
        let mut files = base.clone();
        let text = factum_base::canonical_json(&value).unwrap();
        files.files.insert(name.clone(), text.into_bytes());
        relist(&mut files);
        if verified(&files).findings.is_empty() {
            missed.push(format!("{name} {place}"));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
