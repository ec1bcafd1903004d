use factum_graph::run_file::{MAX_DEPTH, RunFileError, parse_run_file, parse_strict_json};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixture::fixture;

#[test]
fn a_run_file_reads_back_as_it_was_written() {
    let run = fixture().run.clone();
    let bytes = serde_json::to_vec(&run).unwrap();
    assert_eq!(parse_run_file(&bytes).unwrap(), run);
}

#[test]
fn the_top_level_fields_are_those_of_the_design() {
    let run = fixture().json();
    let keys = |value: &Value| {
        let fields = value.as_object().unwrap().keys().cloned();
        let sorted: std::collections::BTreeSet<String> = fields.collect();
        sorted.into_iter().collect::<Vec<_>>().join(" ")
    };
    insta::assert_snapshot!(keys(&run), @"case_id counts event format full generations invalidation nodes principal profile root run_id seconds snapshot snapshot_sha256");
    insta::assert_snapshot!(keys(&run["nodes"][0]), @"children key kind name result reused spec");
    insta::assert_snapshot!(keys(&run["counts"]), @"generations_reused model_calls new_tokens nodes recomputed reused");
    insta::assert_snapshot!(keys(&run["invalidation"]), @"current_root_key nodes previous_root_key previous_status serve_refusal");
    insta::assert_snapshot!(keys(&run["snapshot"]["slots"][0]), @"access_revision active doc_id eligible slot text_sha256 version");
}

/// Byte offsets behind every `{` that opens an object with fields.
fn objects(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let (mut in_string, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string && text.as_bytes()[at + 1] == b'"' => found.push(at + 1),
            _ => {}
        }
    }
    found
}

#[test]
fn a_key_given_twice_is_refused_in_every_object() {
    let text = serde_json::to_string(&fixture().run).unwrap();
    for at in objects(&text) {
        let key = &text[at..at + 2 + text[at + 1..].find('"').unwrap()];
        let doubled = format!("{}{key}:0,{}", &text[..at], &text[at..]);
        let error = parse_run_file(doubled.as_bytes()).unwrap_err();
        assert!(
            matches!(error, RunFileError::DuplicateKey(_)),
            "{key} at {at}: {error}"
        );
    }
    let escaped = br#"{"a":1,"\u0061":2}"#;
    assert!(matches!(
        parse_strict_json(escaped),
        Err(RunFileError::DuplicateKey(_))
    ));
}

#[test]
fn a_field_nobody_knows_is_refused_wherever_the_format_is_fixed() {
    let run = fixture().json();
    let places = [
        "",
        "/snapshot",
        "/snapshot/slots/0",
        "/nodes/0",
        "/nodes/0/result",
        "/counts",
        "/invalidation",
        "/nodes/0/result/claims/0",
        "/nodes/0/result/claims/0/support",
    ];
    for place in places {
        let mut changed = run.clone();
        changed.pointer_mut(place).unwrap()["extra"] = Value::Null;
        let error = parse_run_file(&serde_json::to_vec(&changed).unwrap()).unwrap_err();
        assert!(
            matches!(
                error,
                RunFileError::UnknownField(_) | RunFileError::Shape(_)
            ),
            "{place}: {error}"
        );
    }
}

#[test]
fn each_other_fault_has_its_own_error() {
    let error = |text: &str| parse_run_file(text.as_bytes()).unwrap_err();
    for text in [
        "",
        "{",
        "{} x",
        "[NaN]",
        "[1e999]",
        "\"\\ud800\"",
        "\u{feff}{}",
        "{\"a\":01}",
    ] {
        assert!(matches!(error(text), RunFileError::Json(_)), "{text}");
    }
    assert!(matches!(
        parse_run_file(b"\"\xff\""),
        Err(RunFileError::Json(_))
    ));
    assert!(matches!(
        error("{\"format\":\"factum/run/2\"}"),
        RunFileError::Format(_)
    ));
    assert!(matches!(
        error("{\"format\":\"factum/run/1\"}"),
        RunFileError::Shape(_)
    ));
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse_strict_json(nested(MAX_DEPTH).as_bytes()).is_ok());
    assert!(matches!(
        error(&nested(MAX_DEPTH + 1)),
        RunFileError::TooDeep
    ));
    assert!(matches!(
        error(&"[".repeat(1_000_000)),
        RunFileError::TooDeep
    ));
}

#[test]
fn empty_optional_fields_may_be_given() {
    let mut run = fixture().json();
    run["nodes"][0]["result"]["repairs"] = json!([]);
    run["nodes"][0]["result"]["generation"] = Value::Null;
    assert!(parse_run_file(&serde_json::to_vec(&run).unwrap()).is_ok());
}

proptest! {
    #[test]
    fn strict_reading_agrees_with_the_library_where_it_accepts(text in "[\\[\\]{}\",:0-9a-e.tru\\\\ n-]{0,40}") {
        if let Ok(value) = parse_strict_json(text.as_bytes()) {
            prop_assert_eq!(value, serde_json::from_str::<Value>(&text).unwrap());
        }
    }

    #[test]
    fn no_bytes_make_reading_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_run_file(&bytes);
    }
}
