//! JSON and YAML as a tree that knows its lines, so that every fault of a fixture can name one.
//!
//! The readers are strict: no duplicate keys, no lone surrogates, no numbers that are none, no aliases, a
//! bounded depth. They know nothing of fixtures.

mod json;
mod yaml;

use std::path::Path;

use thiserror::Error;

pub use json::read_json;
pub use yaml::read_yaml;

/// Deeper nesting than this is refused.
const MOST_DEPTH: usize = 64;
/// An object with more keys than this is refused.
const MOST_KEYS: usize = 1_000;

/// A value with the line it begins on, from 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The line.
    pub line: u32,
    /// The value.
    pub value: Value,
}

/// What a node holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A finite number.
    Number(f64),
    /// Text.
    Text(String),
    /// Values in order.
    List(Vec<Node>),
    /// Fields in order, each key once.
    Map(Vec<Field>),
}

impl Value {
    /// The kind of value, for messages.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a truth value",
            Self::Number(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "an object",
        }
    }
}

/// A field of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its key.
    pub key: String,
    /// The line of the key.
    pub line: u32,
    /// Its value.
    pub value: Node,
}

/// Text that is no JSON or YAML, or breaks a rule of strictness.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {message}")]
pub struct SyntaxError {
    /// The line, from 1.
    pub line: u32,
    /// What is wrong.
    pub message: String,
}

impl SyntaxError {
    fn new(line: u32, message: impl Into<String>) -> Self {
        Self {
            line,
            message: message.into(),
        }
    }
}

/// Reads YAML where the file's name ends so, else JSON.
///
/// # Errors
/// The text is neither UTF-8 nor well formed.
pub fn read_file(path: &Path, bytes: &[u8]) -> Result<Node, SyntaxError> {
    let text = text_of(bytes)?;
    if is_yaml(path) {
        read_yaml(text)
    } else {
        read_json(text)
    }
}

/// A name that ends like a YAML file's.
pub fn is_yaml(path: &Path) -> bool {
    path.extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("yaml") || end.eq_ignore_ascii_case("yml"))
}

/// UTF-8 text without a byte order mark.
///
/// # Errors
/// The bytes are no UTF-8; the line of the first wrong one is named.
pub fn text_of(bytes: &[u8]) -> Result<&str, SyntaxError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = before.split(|&byte| byte == b'\n').count();
        SyntaxError::new(u32::try_from(line).unwrap_or(u32::MAX), "not UTF-8")
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Adds a field, unless its key is there already.
fn push_field(fields: &mut Vec<Field>, field: Field) -> Result<(), SyntaxError> {
    // What is long stands in lists, so a search from the front is short.
    if fields.len() >= MOST_KEYS {
        let message = format!("more than {MOST_KEYS} keys in one object");
        return Err(SyntaxError::new(field.line, message));
    }
    if let Some(first) = fields.iter().find(|known| known.key == field.key) {
        return Err(SyntaxError::new(
            field.line,
            format!(
                "{:?} is given twice, first in line {}",
                field.key, first.line
            ),
        ));
    }
    fields.push(field);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(json: &str, yaml: &str) -> (Node, Node) {
        (read_json(json).unwrap(), read_yaml(yaml).unwrap())
    }

    #[test]
    fn json_and_yaml_read_alike_but_for_lines() {
        fn bare(node: &Node) -> String {
            match &node.value {
                Value::List(items) => format!("{:?}", items.iter().map(bare).collect::<Vec<_>>()),
                Value::Map(fields) => fields
                    .iter()
                    .map(|f| format!("{}={};", f.key, bare(&f.value)))
                    .collect(),
                other => format!("{other:?}"),
            }
        }
        let (json, yaml) = both(
            r#"{"a": [1, -2.5, true, null, "x\u00e9\ud83d\ude00\n"], "b": {}, "no": "no"}"#,
            "a: [1, -2.5, true, ~, \"x\\u00e9\u{1f600}\\n\"]\nb: {}\nno: no\n",
        );
        assert_eq!(bare(&json), bare(&yaml));
    }

    #[test]
    fn lines_are_those_of_the_file() {
        let (json, yaml) = both("{\n\"a\":\n [1,\n 2]}", "a:\n  - 1\n  - 2\n");
        for (node, expected) in [(json, [3, 4]), (yaml, [2, 3])] {
            let Value::Map(fields) = &node.value else {
                panic!("no map")
            };
            let Value::List(items) = &fields[0].value.value else {
                panic!("no list")
            };
            assert_eq!([items[0].line, items[1].line], expected);
        }
    }

    #[test]
    fn what_is_not_strict_names_its_line() {
        for (text, line, part) in [
            ("", 1, "empty"),
            (" \n ", 2, "empty"),
            ("{\"a\":1,\n\"a\":2}", 2, "twice"),
            ("[1,\n]", 2, "expected a value"),
            ("{\n\"a\" 1}", 2, "expected ':'"),
            ("[NaN]", 1, "expected a value"),
            ("[1e999]", 1, "not a finite number"),
            ("[01]", 1, "expected ',' or ']'"),
            ("[\"\\ud800x\"]", 1, "lone surrogate"),
            ("[\"\\udc00\"]", 1, "lone surrogate"),
            ("[\"a\nb\"]", 1, "control character"),
            ("[\"abc", 1, "ends"),
            ("{} {}", 1, "after the value"),
            ("[\"\\q\"]", 1, "escape"),
        ] {
            let error = read_json(text).unwrap_err();
            assert_eq!(error.line, line, "{text:?}: {error}");
            assert!(error.message.contains(part), "{text:?}: {error}");
        }
        for (text, line, part) in [
            ("", 1, "empty"),
            ("a: 1\na: 2\n", 2, "twice"),
            ("a: .nan\n", 1, "not a finite number"),
            ("a: &x 1\nb: *x\n", 2, "alias"),
            ("a: 1\n---\nb: 2\n", 3, "one document"),
            ("a: [1\n", 2, ""),
            ("? [a]\n: 1\n", 1, "key"),
            ("a: !!binary aGk=\n", 1, "tag"),
        ] {
            let error = read_yaml(text).unwrap_err();
            assert!(error.line.abs_diff(line) <= 1, "{text:?}: {error}");
            assert!(error.message.contains(part), "{text:?}: {error}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_rather_than_followed() {
        for open in ["[", "{\"a\":"] {
            let error = read_json(&open.repeat(100_000)).unwrap_err();
            assert!(error.message.contains("deep"), "{error}");
        }
        let error = read_yaml(&"[".repeat(10_000)).unwrap_err();
        assert!(!error.message.is_empty());
        let error = read_yaml(&format!("a: {}1{}", "[".repeat(80), "]".repeat(80))).unwrap_err();
        assert!(error.message.contains("deep"), "{error}");
    }

    proptest::proptest! {
        #[test]
        fn any_json_text_gives_a_tree_or_an_error(text in "[\\[\\]{}:,\"\\\\a0-9.eE+u \\n-]{0,40}") {
            let ours = read_json(&text).is_ok();
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            // Ours refuses more (keys given twice), never less.
            if ours {
                proptest::prop_assert!(theirs.is_ok(), "{}", text);
            }
            let _ = read_yaml(&text);
        }
    }
}
