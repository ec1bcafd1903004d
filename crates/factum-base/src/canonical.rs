//! RFC 8785 canonical JSON: the one text form that digests are taken over.
//!
//! [`canonical_json`] is the general way, by a library. [`write_json_string`] is for code that writes
//! a canonical document by hand because it makes millions of them; tests hold the two against each
//! other.

use serde::Serialize;

/// The RFC 8785 form of a value.
///
/// # Errors
/// A value that JSON cannot express: a map with keys that are not strings, or a number that is not
/// finite.
pub fn canonical_json<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    serde_json_canonicalizer::to_string(value)
}

/// Appends `text` as a canonical JSON string, quotes included.
///
/// RFC 8785 section 3.2.2.2: the two-character escapes where JSON has one, lower-case `\u00xx` for
/// the other control characters, everything else as it is.
pub fn write_json_string(out: &mut String, text: &str) {
    out.push('"');
    let mut plain_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape: Option<&str> = match byte {
            b'"' => Some("\\\""),
            b'\\' => Some("\\\\"),
            0x08 => Some("\\b"),
            0x09 => Some("\\t"),
            0x0a => Some("\\n"),
            0x0c => Some("\\f"),
            0x0d => Some("\\r"),
            0x00..=0x1f => None,
            _ => continue,
        };
        out.push_str(&text[plain_from..at]);
        plain_from = at + 1;
        if let Some(escape) = escape {
            out.push_str(escape);
        } else {
            out.push_str("\\u00");
            out.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
            out.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
        }
    }
    out.push_str(&text[plain_from..]);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn hand_written_strings_equal_the_library(text in any::<String>()) {
            let mut ours = String::new();
            write_json_string(&mut ours, &text);
            prop_assert_eq!(ours, canonical_json(&text).unwrap());
        }
    }

    #[test]
    fn every_control_character_is_escaped_as_rfc_8785_says() {
        let all: String = (0u8..=0x7f).map(char::from).collect();
        let mut ours = String::new();
        write_json_string(&mut ours, &all);
        assert_eq!(ours, canonical_json(&all).unwrap());
    }

    #[test]
    fn keys_are_sorted_by_utf16_code_units() {
        let value: serde_json::Value = serde_json::from_str(
            "{\"\u{20ac}\":1,\"\\r\":2,\"\u{1f600}\":3,\"1\":4,\"\u{fb33}\":5}",
        )
        .unwrap();
        assert_eq!(
            canonical_json(&value).unwrap(),
            "{\"\\r\":2,\"1\":4,\"\u{20ac}\":1,\"\u{1f600}\":3,\"\u{fb33}\":5}"
        );
    }
}
