//! The machine of a grounded schema: what it accepts, and that it never ends in a dead end.

use factum_model::grounded::{CLOSE_LIST, CLOSE_VALUE, GroundedMachine, GroundedState};
use factum_model::{FieldShape, FieldValue, GroundedSchema, ModelError, Source};
use proptest::prelude::*;
use serde_json::Value;

fn field(name: &str, optional: bool, max_chars: u32, value: FieldValue) -> FieldShape {
    FieldShape {
        name: name.to_owned(),
        optional,
        max_chars,
        value,
    }
}

fn schema(fields: Vec<FieldShape>, texts: &[&str]) -> GroundedSchema {
    GroundedSchema {
        items_key: "claims".to_owned(),
        max_items: 3,
        fields,
        citations_key: "evidence".to_owned(),
        max_citations: 2,
        sources: texts
            .iter()
            .enumerate()
            .map(|(at, text)| Source {
                id: format!("e{}", at + 1),
                text: (*text).to_owned(),
            })
            .collect(),
    }
}

fn substring(max_chars: u32) -> FieldShape {
    field("value", false, max_chars, FieldValue::Substring)
}

const HOSE: &str = "The hose burst on 2024-05-01 and cost £1,200.50 (5%).";

/// Whether a value alone is accepted, as the one field of an item that cites the first text.
fn takes(fields: FieldShape, texts: &[&str], value: &str) -> bool {
    let name = fields.name.clone();
    let machine = GroundedMachine::new(&schema(vec![fields], texts)).unwrap();
    let value = Value::from(value);
    machine.accepts(format!(r#"{{"claims":[{{"evidence":["e1"],"{name}":{value}}}]}}"#).as_bytes())
}

#[test]
fn a_substring_is_whole_words_of_the_first_citation() {
    for value in [
        "The hose burst",
        "hose",
        "2024-05-01",
        "£1,200.50",
        "£1,200.50 (5%)",
        "(5%).",
        HOSE,
    ] {
        assert!(takes(substring(80), &[HOSE, "A pump."], value), "{value}");
    }
    for value in [
        "", " hose", "hose ", "hos", "ose", "A pump", "The pump", "1,200.50", "200", "05", "5",
        "2024", "£1", "the hose",
    ] {
        assert!(!takes(substring(80), &[HOSE, "A pump."], value), "{value}");
    }
}

#[test]
fn a_substring_is_no_longer_than_its_field() {
    assert!(takes(substring(8), &[HOSE], "The hose"));
    assert!(!takes(substring(8), &[HOSE], "The hose burst"));
    assert!(!takes(substring(3), &[HOSE], "hose"));
}

#[test]
fn quotes_backslashes_and_line_ends_of_a_text_are_escaped_whole() {
    let text = "He said \"no\\yes\" twice.\nThen\u{1}he left — Ünïcode 東京.";
    for value in [
        "\"no\\yes\"",
        "said \"no\\yes\" twice.\nThen",
        "Then\u{1}he",
        "Ünïcode 東京",
        "京",
    ] {
        assert!(takes(substring(80), &[text], value), "{value:?}");
    }
    assert!(!takes(substring(80), &[text], "\nThen"));
}

#[test]
fn a_free_text_has_no_outer_space_and_no_control_characters() {
    let free = || field("statement", false, 12, FieldValue::Free);
    for value in [
        "a",
        "The pump",
        "a \"b\" \\ c",
        "東京 Ünï 🚰",
        "123456789012",
    ] {
        assert!(takes(free(), &[HOSE], value), "{value}");
    }
    for value in [
        "",
        " a",
        "a ",
        "\u{3000}a",
        "a\u{a0}",
        "a\nb",
        "a\u{85}b",
        "a\u{7f}",
        "1234567890123",
    ] {
        assert!(!takes(free(), &[HOSE], value), "{value:?}");
    }
}

#[test]
fn citations_are_known_distinct_and_bounded() {
    let mut schema = schema(vec![], &["one", "two", "three", "four"]);
    schema.max_citations = 3;
    let machine = GroundedMachine::new(&schema).unwrap();
    let cites =
        |ids: &str| machine.accepts(format!(r#"{{"claims":[{{"evidence":[{ids}]}}]}}"#).as_bytes());
    for ids in [
        r#""e1""#,
        r#""e3","e1""#,
        r#""e3","e1","e2""#,
        r#""e1","e2","e4""#,
    ] {
        assert!(cites(ids), "{ids}");
    }
    for ids in [
        "",
        r#""e5""#,
        r#""e""#,
        r#""e1","e1""#,
        r#""e3","e2","e1""#,
        r#""e1","e2","e2""#,
        r#""e1","e2","e3","e4""#,
        r#""e1", "e2""#,
    ] {
        assert!(!cites(ids), "{ids}");
    }
}

#[test]
fn only_fields_that_may_be_absent_are_absent_and_all_come_in_order() {
    let fields = vec![
        field(
            "topic",
            true,
            20,
            FieldValue::OneOf(vec!["a".to_owned(), "a b".to_owned(), "\"".to_owned()]),
        ),
        field("statement", false, 20, FieldValue::Free),
        field("topics", true, 20, FieldValue::Free),
    ];
    let machine = GroundedMachine::new(&schema(fields, &[HOSE])).unwrap();
    let takes = |rest: &str| {
        machine.accepts(format!(r#"{{"claims":[{{"evidence":["e1"]{rest}}}]}}"#).as_bytes())
    };
    for rest in [
        r#","statement":"x""#,
        r#","topic":"a","statement":"x""#,
        r#","topic":"a b","statement":"x","topics":"y""#,
        r#","topic":"\"","statement":"x""#,
    ] {
        assert!(takes(rest), "{rest}");
    }
    for rest in [
        "",
        r#","topic":"a""#,
        r#","statement":"x","topic":"a""#,
        r#","topics":"y","statement":"x""#,
        r#","topic":"c","statement":"x""#,
        r#","statement":"x","statement":"x""#,
    ] {
        assert!(!takes(rest), "{rest}");
    }
}

#[test]
fn without_a_text_to_cite_the_list_is_empty() {
    for texts in [&[][..], &["   "][..], &["Donaudampfschifffahrt"][..]] {
        let machine = GroundedMachine::new(&schema(vec![substring(10)], texts)).unwrap();
        assert!(machine.accepts(&machine.shortest()));
        assert!(!machine.accepts(br#"{"claims":[{"evidence":["e1"],"value":"D"}]}"#));
        let mut state = machine.start();
        for byte in br#"{"claims":["# {
            state = machine.step(state, *byte).unwrap();
        }
        assert_eq!(machine.step(state, b'{'), None);
    }
}

#[test]
fn a_schema_that_makes_no_sense_is_refused() {
    let good = schema(vec![substring(10)], &["a", "b"]);
    let changes: [fn(&mut GroundedSchema); 6] = [
        |s| s.sources[1].id = "e1".to_owned(),
        |s| s.sources[1].id = "e\"".to_owned(),
        |s| s.max_citations = 0,
        |s| s.fields[0].max_chars = 0,
        |s| s.fields[0].name = "evidence".to_owned(),
        |s| s.fields[0].value = FieldValue::OneOf(vec![]),
    ];
    for change in changes {
        let mut schema = good.clone();
        change(&mut schema);
        let refusal = GroundedMachine::new(&schema);
        assert!(
            matches!(refusal, Err(ModelError::BadConstraint(_))),
            "{schema:?}"
        );
    }
}

fn next_bytes(machine: &GroundedMachine, state: GroundedState) -> Vec<(u8, GroundedState)> {
    (0..=u8::MAX)
        .filter_map(|byte| machine.step(state, byte).map(|next| (byte, next)))
        .collect()
}

/// What the schema asks, checked again on the parsed text.
fn check(schema: &GroundedSchema, text: &[u8]) {
    let reply: Value = serde_json::from_slice(text).unwrap();
    let items = reply[&schema.items_key].as_array().unwrap();
    assert!(items.len() <= schema.max_items as usize);
    for item in items {
        let cited: Vec<usize> = item[&schema.citations_key]
            .as_array()
            .unwrap()
            .iter()
            .map(|id| {
                schema
                    .sources
                    .iter()
                    .position(|source| id == &source.id)
                    .unwrap()
            })
            .collect();
        assert!((1..=schema.max_citations as usize).contains(&cited.len()));
        let distinct: std::collections::HashSet<_> = cited.iter().collect();
        assert_eq!(distinct.len(), cited.len());
        for field in &schema.fields {
            let Some(value) = item.get(&field.name) else {
                assert!(field.optional);
                continue;
            };
            let value = value.as_str().unwrap();
            match &field.value {
                FieldValue::OneOf(values) => assert!(values.iter().any(|one| one == value)),
                FieldValue::Free => {
                    assert!(!value.chars().any(char::is_control));
                    assert_eq!(value.trim(), value);
                }
                FieldValue::Substring => {
                    assert!(schema.sources[cited[0]].text.contains(value));
                    assert_eq!(value.trim(), value);
                }
            }
            if !matches!(field.value, FieldValue::OneOf(_)) {
                assert!((1..=field.max_chars as usize).contains(&value.chars().count()));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_walk_comes_to_an_end_that_keeps_the_rules(
        texts in prop::collection::vec("[a-c\"\\\\ \n\u{1}é東.,0-9]{0,30}", 0..4),
        max_chars in 1u32..12,
        choices in prop::collection::vec(any::<u16>(), 4000),
    ) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let schema = schema(
            vec![
                field("topic", true, 20, FieldValue::OneOf(vec!["a".to_owned(), "ab".to_owned()])),
                substring(max_chars),
                field("more", true, max_chars, FieldValue::Free),
            ],
            &texts,
        );
        let machine = GroundedMachine::new(&schema).unwrap();
        let mut state = machine.start();
        let mut text = Vec::new();
        let mut closed = None;
        for choice in choices {
            if state.is_done() {
                break;
            }
            if state.is_item_end() {
                closed = Some([&text, CLOSE_LIST].concat());
            } else if machine.can_close_value(state) {
                closed = Some([&text, CLOSE_VALUE].concat());
            }
            let next = next_bytes(&machine, state);
            prop_assert!(!next.is_empty(), "a dead end after {:?}", String::from_utf8_lossy(&text));
            let (byte, after) = next[choice as usize % next.len()];
            text.push(byte);
            state = after;
        }
        prop_assert!(state.is_done());
        prop_assert!(machine.accepts(&text));
        check(&schema, &text);
        if let Some(closed) = closed {
            prop_assert!(machine.accepts(&closed), "{}", String::from_utf8_lossy(&closed));
            check(&schema, &closed);
        }
    }
}
