//! What bytes say about their own encoding: marks, statements, and the shape of UTF-16.

use encoding_rs::Encoding;

use crate::decode::How;
use crate::refusal::Refusal;
use crate::warning::Warning;

/// How far into a page its encoding may be stated. The standard says 1024 bytes; licence comments
/// push it further in practice.
const DECLARATION_WINDOW: usize = 4096;

/// The byte order mark's meaning and length.
pub(crate) fn byte_order_mark(bytes: &[u8]) -> Option<(How, usize)> {
    match bytes {
        [0xef, 0xbb, 0xbf, ..] => Some((How::Utf8, 3)),
        // The same bytes start a UTF-16 text whose first character is NUL, which nobody writes;
        // but only whole units can be UTF-32.
        [0xff, 0xfe, 0, 0, ..] if bytes.len().is_multiple_of(4) => Some((How::Utf32(true), 4)),
        [0, 0, 0xfe, 0xff, ..] => Some((How::Utf32(false), 4)),
        [0xff, 0xfe, ..] => Some((How::Utf16(true), 2)),
        [0xfe, 0xff, ..] => Some((How::Utf16(false), 2)),
        _ => None,
    }
}

/// UTF-16 that lacks a mark; true for little endian.
///
/// Text below U+0100 (spaces, line ends, most of a European text) leaves its zero bytes on one side
/// of every pair, which text in no other encoding does. The reading is then held to be text:
/// no half surrogates, hardly any control characters, and the rest from scripts in use.
pub(crate) fn utf16_without_mark(bytes: &[u8]) -> Option<bool> {
    let (pairs, _) = bytes.as_chunks::<2>();
    if pairs.len() < 2 {
        return None;
    }
    let even = pairs.iter().filter(|pair| pair[0] == 0).count();
    let odd = pairs.iter().filter(|pair| pair[1] == 0).count();
    let (little, zeros, others) = if odd > even {
        (true, odd, even)
    } else {
        (false, even, odd)
    };
    if zeros == 0 || others * 20 > zeros {
        return None;
    }
    let mut bad = 0usize;
    let mut plain = 0usize;
    let units = pairs.iter().map(|&pair| {
        if little {
            u16::from_le_bytes(pair)
        } else {
            u16::from_be_bytes(pair)
        }
    });
    for c in char::decode_utf16(units) {
        match c {
            Err(_) => return None,
            Ok(c) if is_control(c) || is_unlikely(c) => bad += 1,
            Ok(c) if is_everyday(c) => plain += 1,
            Ok(_) => {}
        }
    }
    // Few zero bytes may also be a stray NUL in an 8-bit text, whose byte pairs then read as rare
    // ideographs; so the fewer the zeros, the more of the text must be of everyday scripts and the
    // less sensible it must be as bytes.
    let many_zeros = zeros * 10 >= pairs.len();
    let controls = bytes
        .iter()
        .filter(|&&byte| byte < 0x20 && !is_text_control(byte))
        .count();
    let sensible = bad * 50 <= pairs.len();
    let everyday = plain * 10 >= pairs.len() * 9;
    (sensible && (many_zeros || (everyday && controls * 50 > bytes.len()))).then_some(little)
}

fn is_control(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}')
}

/// Private use and the noncharacters.
fn is_unlikely(c: char) -> bool {
    let code = u32::from(c);
    (0xe000..=0xf8ff).contains(&code)
        || (0xfdd0..=0xfdef).contains(&code)
        || code & 0xfffe == 0xfffe
}

/// Scripts with most of the world's text.
fn is_everyday(c: char) -> bool {
    matches!(u32::from(c), 0x09..=0x24f | 0x370..=0x6ff | 0x900..=0xdff | 0xe00..=0xeff | 0x2010..=0x2040
        | 0x3000..=0x30ff | 0x4e00..=0x9fff | 0xac00..=0xd7a3 | 0xff00..=0xffef)
}

const fn is_text_control(byte: u8) -> bool {
    // Back space and escape occur in captured terminal output and in ISO-2022-JP.
    matches!(byte, 8..=13 | 0x1b)
}

/// Refuses what is no text in any encoding whose units are bytes.
pub(crate) fn refuse_binary(bytes: &[u8]) -> Result<(), Refusal> {
    let (mut nuls, mut controls) = (0usize, 0usize);
    for &byte in bytes {
        nuls += usize::from(byte == 0);
        controls += usize::from((byte < 0x20 && !is_text_control(byte)) || byte == 0x7f);
    }
    if nuls * 50 > bytes.len() || controls * 10 > bytes.len() {
        return Err(Refusal::Binary {
            controls: controls as u64,
            bytes: bytes.len() as u64,
        });
    }
    Ok(())
}

/// ISO-2022-JP: ASCII bytes only, with escape sequences that nothing else uses.
pub(crate) fn escaped_japanese(bytes: &[u8]) -> Option<&'static Encoding> {
    if !bytes.is_ascii() || !bytes.windows(3).any(|w| matches!(w, b"\x1b$B" | b"\x1b$@")) {
        return None;
    }
    encoding_rs::ISO_2022_JP
        .decode_without_bom_handling_and_without_replacement(bytes)
        .map(|_| encoding_rs::ISO_2022_JP)
}

/// An encoding that a page states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Declared {
    /// The label as written.
    pub(crate) label: String,
    /// What it means, where it means something that could be true.
    pub(crate) encoding: Option<&'static Encoding>,
}

impl Declared {
    /// The statement does not contradict UTF-8.
    pub(crate) fn fits_utf8(&self) -> bool {
        self.encoding == Some(encoding_rs::UTF_8)
    }

    pub(crate) fn misleading(&self, used: &str) -> Warning {
        Warning::MisleadingEncoding {
            declared: self.label.clone(),
            used: used.to_owned(),
        }
    }
}

/// The bytes start with a tag, so they may be a page although their name does not say so.
pub(crate) fn starts_like_markup(bytes: &[u8]) -> bool {
    bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'<')
}

/// What a page says after `charset=`, or `encoding=` in an XML declaration.
pub(crate) fn declared_charset(bytes: &[u8]) -> Option<Declared> {
    let head = bytes[..bytes.len().min(DECLARATION_WINDOW)].to_ascii_lowercase();
    let found = find(&head, b"<meta")
        .and_then(|at| find(&head[at..], b"charset").map(|within| at + within + b"charset".len()))
        .or_else(|| {
            let end = head
                .starts_with(b"<?xml")
                .then(|| find(&head, b"?>"))
                .flatten()?;
            find(&head[..end], b"encoding").map(|at| at + b"encoding".len())
        })?;
    let rest = head[found..]
        .trim_ascii_start()
        .strip_prefix(b"=")?
        .trim_ascii_start();
    let rest = match rest {
        [b'"' | b'\'', rest @ ..] => rest.trim_ascii_start(),
        rest => rest,
    };
    let end = rest
        .iter()
        .position(|byte| !(byte.is_ascii_alphanumeric() || b"-_:.+".contains(byte)))
        .unwrap_or(rest.len())
        .min(40);
    let label = std::str::from_utf8(&rest[..end])
        .ok()
        .filter(|label| !label.is_empty())?;
    let encoding = Encoding::for_label(label.as_bytes())
        // This statement was read as bytes, so UTF-16 can't be true; `replacement` is no encoding.
        .filter(|encoding| encoding.is_ascii_compatible() && *encoding != encoding_rs::REPLACEMENT);
    Some(Declared {
        label: label.to_owned(),
        encoding,
    })
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide(text: &str, little: bool) -> Vec<u8> {
        text.encode_utf16()
            .flat_map(|unit| {
                if little {
                    unit.to_le_bytes()
                } else {
                    unit.to_be_bytes()
                }
            })
            .collect()
    }

    #[test]
    fn utf16_without_a_mark_is_known_in_any_common_script() {
        for text in [
            "Plain English.",
            "Свидетель показал, что да.\r\n",
            "证人说合同已经签署。\n付款金额为五百元。\n证人",
        ] {
            assert_eq!(utf16_without_mark(&wide(text, true)), Some(true), "{text}");
            assert_eq!(
                utf16_without_mark(&wide(text, false)),
                Some(false),
                "{text}"
            );
        }
    }

    #[test]
    fn a_stray_nul_does_not_make_a_text_utf16() {
        assert_eq!(
            utf16_without_mark(b"An honest line of text with one \0 in it, that is all.\n"),
            None
        );
        assert_eq!(utf16_without_mark(b"plain"), None);
        assert_eq!(utf16_without_mark(&[0; 64]), None);
    }

    #[test]
    fn utf32_is_told_from_utf16_by_its_mark() {
        assert_eq!(
            byte_order_mark(b"\xff\xfe\0\0a\0\0\0"),
            Some((How::Utf32(true), 4))
        );
        assert_eq!(
            byte_order_mark(b"\xff\xfe\0\0a\0"),
            Some((How::Utf16(true), 2))
        );
        assert_eq!(byte_order_mark(b"\xff\xfea\0"), Some((How::Utf16(true), 2)));
    }

    #[test]
    fn a_charset_is_read_from_either_form_of_meta() {
        let label = |html: &str| declared_charset(html.as_bytes()).map(|declared| declared.label);
        assert_eq!(
            label("<meta charset='windows-1251'>").as_deref(),
            Some("windows-1251")
        );
        assert_eq!(
            label("<META http-equiv=x content=\"text/html; charset=Shift_JIS\">").as_deref(),
            Some("shift_jis")
        );
        assert_eq!(
            label("<?xml version='1.0' encoding=\"ISO-8859-2\"?>").as_deref(),
            Some("iso-8859-2")
        );
        assert_eq!(label("<p>charset=utf-8</p>"), None);
        assert_eq!(
            declared_charset(b"<meta charset=utf-16>").unwrap().encoding,
            None
        );
    }
}
