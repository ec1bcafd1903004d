//! The experiment's grammar of facts, and the lines of a text with their places. Written from the definition of the
//! experiment, apart from the profile's rule.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A claim's fields.
pub(super) type Fields = BTreeMap<String, String>;

const FIELDS: [&str; 4] = ["delivery", "status", "quantity", "site"];
const PREFIX: &str = "Product ";

/// The fact that a whole line states, if it states one: `Product P-10-00 delivery: 18 October.`
pub(super) fn stated(line: &str) -> Option<Fields> {
    let said = line.strip_prefix(PREFIX)?.strip_suffix('.')?;
    let mut characters = said.chars();
    let subject: String = characters.by_ref().take(7).collect();
    let shape = subject.chars().zip("P-dd-dd".chars());
    let fits = |(found, wanted): (char, char)| match wanted {
        'd' => found.is_ascii_digit(),
        _ => found == wanted,
    };
    if subject.chars().count() != 7 || !shape.into_iter().all(fits) {
        return None;
    }
    let rest = characters.as_str().strip_prefix(' ')?;
    let field = FIELDS.iter().find(|field| {
        rest.strip_prefix(**field)
            .is_some_and(|rest| rest.starts_with(": "))
    })?;
    let value = rest.get(field.len() + 2..)?;
    let long = value.chars().count();
    if long == 0 || long > 120 || value.contains(['\n', '\r']) {
        return None;
    }
    let parts = [
        ("subject", subject.as_str()),
        ("field", *field),
        ("value", value),
    ];
    Some(parts.map(|(k, v)| (k.to_owned(), v.to_owned())).into())
}

/// A line of a version that is not blank, with its place in code points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) quote: String,
}

/// The lines of a text that are not blank.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut line = String::new();
    // An end of line behind the last one closes it.
    for (at, character) in (0_u64..).zip(text.chars().chain(['\n'])) {
        if character == '\n' || character == '\r' {
            if !line.trim().is_empty() {
                found.push(Line {
                    start: at - line.chars().count() as u64,
                    end: at,
                    quote: std::mem::take(&mut line),
                });
            }
            line.clear();
        } else {
            line.push(character);
        }
    }
    found
}

impl Line {
    /// The identity of the line as evidence.
    pub(super) fn id(&self, doc_id: &str, version: u64) -> String {
        format!("{doc_id}@{version}:{}:{}", self.start, self.end)
    }

    /// The line as a node holds it.
    pub(super) fn evidence(&self, doc_id: &str, version: u64, sha256: &str) -> Value {
        json!({
            "doc_id": doc_id,
            "end": self.end,
            "evidence_id": self.id(doc_id, version),
            "quote": self.quote,
            "start": self.start,
            "text_sha256": sha256,
            "version": version,
        })
    }
}

/// White space made one space, as prompts show passages.
pub(super) fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_affirmative_line_states_a_fact() {
        let fact = stated("Product P-10-00 delivery: 18 October.").unwrap();
        assert_eq!(fact["subject"], "P-10-00");
        assert_eq!(fact["field"], "delivery");
        assert_eq!(fact["value"], "18 October");
        for other in [
            "",
            "Product ",
            "Product P-10-00 delivery: 18 October",
            "\"Product P-10-00 delivery: 18 October.\"",
            "Product P-10-00 colour: red.",
            "Product P-1-000 delivery: 18 October.",
            "Product P-10-00 delivery: .",
            "Product P-10-00 delivery on 2 October is no longer planned.",
            "Product P-1\u{663}-00 delivery: 2 May.",
            " Product P-10-00 delivery: 18 October.",
        ] {
            assert_eq!(stated(other), None, "{other}");
        }
    }

    #[test]
    fn lines_have_their_places_in_code_points() {
        let found = lines("日本\r\n\r\n  🌊\u{301} a\n\t\nlast");
        let places: Vec<_> = found
            .iter()
            .map(|l| (l.start, l.end, l.quote.as_str()))
            .collect();
        assert_eq!(
            places,
            [(0, 2, "日本"), (6, 12, "  🌊\u{301} a"), (15, 19, "last")]
        );
    }
}
