//! JSON as the records hold it: a strict reader of its own, and short ways to look into values.
//!
//! The common reader of JSON rounds some long fractions wrongly by one unit, and then a record would not be the
//! canonical form of what was read from it. This one reads every number exactly, and refuses a key given twice.

use factum_base::{canonical_json, sha256};
use serde_json::{Map, Number, Value};

use super::report::{Class, Report};

/// Deepest nesting that is read.
const DEEPEST: usize = 64;

/// Reads one JSON document.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let mut reader = Reader { text, at: 0 };
    reader.space();
    let value = reader.value(0)?;
    reader.space();
    if reader.at == text.len() {
        Ok(value)
    } else {
        Err(reader.fault("something behind the end"))
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn fault(&self, what: &str) -> String {
        format!("{what} at byte {}", self.at)
    }

    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == byte;
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, String> {
        let rest = self.text.get(self.at..).unwrap_or("");
        if rest.starts_with(word) {
            self.at += word.len();
            return Ok(value);
        }
        Err(self.fault("no JSON value"))
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > DEEPEST {
            return Err(self.fault("nested too deep"));
        }
        match self.peek() {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string().map(Value::String),
            b't' => self.word("true", Value::Bool(true)),
            b'f' => self.word("false", Value::Bool(false)),
            b'n' => self.word("null", Value::Null),
            _ => self.number().map(Value::Number),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, String> {
        let mut map = Map::new();
        self.at += 1;
        self.space();
        if self.take(b'}') {
            return Ok(Value::Object(map));
        }
        loop {
            self.space();
            let key = self.string()?;
            self.space();
            if !self.take(b':') {
                return Err(self.fault("no colon"));
            }
            self.space();
            let value = self.value(depth + 1)?;
            if map.insert(key, value).is_some() {
                return Err(self.fault("a key given twice"));
            }
            self.space();
            if self.take(b'}') {
                return Ok(Value::Object(map));
            }
            if !self.take(b',') {
                return Err(self.fault("no comma"));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, String> {
        let mut items = Vec::new();
        self.at += 1;
        self.space();
        if self.take(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            self.space();
            items.push(self.value(depth + 1)?);
            self.space();
            if self.take(b']') {
                return Ok(Value::Array(items));
            }
            if !self.take(b',') {
                return Err(self.fault("no comma"));
            }
        }
    }

    fn string(&mut self) -> Result<String, String> {
        let from = self.at;
        if !self.take(b'"') {
            return Err(self.fault("no text"));
        }
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                None => return Err(self.fault("a text without its end")),
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        // Escapes are left to the library; it reads texts exactly.
        let token = self.text.get(from..self.at).unwrap_or("");
        serde_json::from_str(token).map_err(|_| self.fault("a malformed text"))
    }

    fn number(&mut self) -> Result<Number, String> {
        let from = self.at;
        let digits = |reader: &mut Self| {
            let start = reader.at;
            while reader.peek().is_ascii_digit() {
                reader.at += 1;
            }
            reader.at - start
        };
        self.take(b'-');
        let leading = self.peek();
        let whole = digits(self);
        let mut sound = whole == 1 || (whole > 1 && leading != b'0');
        let mut exact = true;
        if self.take(b'.') {
            sound &= digits(self) > 0;
            exact = false;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            sound &= digits(self) > 0;
            exact = false;
        }
        let token = self.text.get(from..self.at).unwrap_or("");
        if !sound {
            return Err(self.fault("no JSON value"));
        }
        let integer = || {
            let unsigned = token.parse::<u64>().map(Number::from);
            unsigned.or_else(|_| token.parse::<i64>().map(Number::from))
        };
        if exact && let Ok(number) = integer() {
            return Ok(number);
        }
        let float = token.parse::<f64>().ok().and_then(Number::from_f64);
        float.ok_or_else(|| self.fault("a number out of range"))
    }
}

/// The canonical text of a value.
pub(super) fn canonical(value: &Value) -> String {
    // Values without numbers that are not finite always have one.
    canonical_json(value).unwrap_or_default()
}

/// SHA-256 in lower-case hex.
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    let digits = sha256(bytes).into_iter().flat_map(|b| [b >> 4, b & 15]);
    digits
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// SHA-256 of a value's canonical text.
pub(super) fn digest(value: &Value) -> String {
    sha256_hex(canonical(value).as_bytes())
}

pub(super) fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// A field's text; empty where there is none.
pub(super) fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or("")
}

/// A field's whole number; 0 where there is none.
pub(super) fn number(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or(0)
}

/// A field's list; empty where there is none.
pub(super) fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice)
}

/// The texts of a field's list.
pub(super) fn texts<'v>(value: &'v Value, name: &str) -> Vec<&'v str> {
    list(value, name).iter().filter_map(Value::as_str).collect()
}

/// A field, or null.
pub(super) fn field<'v>(value: &'v Value, name: &str) -> &'v Value {
    value.get(name).unwrap_or(&Value::Null)
}

/// What a field must hold.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    Digest,
    Count,
    Time,
    Flag,
    List,
    Object,
    Any,
}

impl Kind {
    fn holds(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Digest => value.as_str().is_some_and(is_digest),
            Self::Count => value.as_u64().is_some(),
            Self::Time => value.as_i64().is_some(),
            Self::Flag => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
            Self::Any => true,
        }
    }
}

/// Requires an object with exactly these fields.
pub(super) fn closed(value: &Value, fields: &[(&str, Kind)], place: &str, report: &mut Report) {
    let Some(map) = value.as_object() else {
        return report.add(Class::Format, place, "is not an object");
    };
    for name in map.keys() {
        if !fields.iter().any(|(known, _)| known == name) {
            report.add(
                Class::Format,
                place,
                format!("has the unknown field {}", short(name)),
            );
        }
    }
    for (name, kind) in fields {
        if !map.get(*name).is_some_and(|value| kind.holds(value)) {
            report.add(
                Class::Format,
                place,
                format!("has no field {name:?} of the right type"),
            );
        }
    }
}

/// At most 80 characters, quoted, for messages.
pub(super) fn short(text: &str) -> String {
    let cut: String = text.chars().take(80).collect();
    format!("{cut:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_strict_json_is_refused() {
        for wrong in [
            "",
            "{",
            "[1,]",
            "{\"a\":1,\"a\":2}",
            "01",
            "-",
            "1.",
            "NaN",
            "1e999",
            "\"\\x\"",
            "\"a",
            "\"\\",
            "tru",
            "1 2",
            "{\"a\" 1}",
            "{1:2}",
            "\u{0}",
        ] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(parse("[".repeat(5_000).as_bytes()).is_err());
        assert!(parse(b"\xff").is_err());
    }

    #[test]
    fn numbers_are_read_exactly() {
        for text in [
            "0.1",
            "18.603748291000002",
            "5e-324",
            "9007199254740991",
            "-3",
            "0.30000000000000004",
        ] {
            assert_eq!(canonical(&parse(text.as_bytes()).unwrap()), text);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_value_or_a_fault(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn a_canonical_text_is_read_back_as_it_was(number in any::<f64>(), text in any::<String>()) {
            prop_assume!(number.is_finite());
            let value = serde_json::json!({"n": number, "t": [text, null, true]});
            let written = canonical(&value);
            prop_assert_eq!(canonical(&parse(written.as_bytes()).unwrap()), written);
        }
    }
}
