//! Bytes to text.
//!
//! The order of belief: a byte order mark; then well-formed UTF-8; then what the file says of
//! itself, if its bytes fit; then detection, line by line where a file mixes encodings. Knows no
//! format but where HTML may state its encoding.

use std::ops::Range;

use crate::detect;
use crate::legacy;
use crate::media::Media;
use crate::read::Encoding;
use crate::refusal::Refusal;
use crate::warning::Warning;

/// How a run of bytes was decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// Well-formed UTF-8.
    Utf8,
    /// UTF-8 with each ill-formed part replaced.
    Utf8Lossy,
    /// UTF-16; little endian if set.
    Utf16(bool),
    /// UTF-32; little endian if set.
    Utf32(bool),
    /// Through a code page.
    Legacy(&'static encoding_rs::Encoding),
}

/// Bytes decoded in one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    /// Where its text is in the decoded text.
    pub(crate) decoded: Range<usize>,
    /// Where its bytes are in the file.
    pub(crate) source: Range<usize>,
    pub(crate) how: How,
}

/// A decoded file. The runs cover the source from the byte order mark to its end, in order, and
/// decoding them one after the other gives the text.
#[derive(Debug, Clone)]
pub(crate) struct Decoded {
    pub(crate) text: String,
    pub(crate) encoding: Encoding,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) runs: Vec<Run>,
}

/// Decodes a whole file.
pub(crate) fn decode(bytes: &[u8], media: Option<Media>) -> Result<Decoded, Refusal> {
    if let Some((how, length)) = detect::byte_order_mark(bytes) {
        return match how {
            How::Utf16(_) | How::Utf32(_) => decode_wide(bytes, length, how, true),
            _ => decode_bytes(bytes, length, None),
        };
    }
    if let Some(little) = detect::utf16_without_mark(bytes) {
        return decode_wide(bytes, 0, How::Utf16(little), false);
    }
    let declared = match media {
        Some(Media::Html) => detect::declared_charset(bytes),
        None if detect::starts_like_markup(bytes) => detect::declared_charset(bytes),
        _ => None,
    };
    decode_bytes(bytes, 0, declared)
}

/// Encodings whose units are bytes.
fn decode_bytes(
    bytes: &[u8],
    skip: usize,
    declared: Option<detect::Declared>,
) -> Result<Decoded, Refusal> {
    detect::refuse_binary(&bytes[skip..])?;
    let all = skip..bytes.len();
    let bom = skip > 0;
    let body = &bytes[skip..];
    if !bom && let Some(encoding) = detect::escaped_japanese(body) {
        return Ok(in_code_page(body, all, encoding, declared.as_ref()));
    }
    if let Ok(text) = std::str::from_utf8(body) {
        let mut warnings = Vec::new();
        if let Some(declared) = declared
            && !declared.fits_utf8()
            && !text.is_ascii()
        {
            warnings.push(declared.misleading("UTF-8"));
        }
        return Ok(Decoded {
            text: text.to_owned(),
            encoding: Encoding {
                name: "UTF-8".to_owned(),
                bom,
                detected: false,
            },
            warnings,
            runs: vec![Run {
                decoded: 0..text.len(),
                source: all,
                how: How::Utf8,
            }],
        });
    }
    if let Some(found) = declared.as_ref().and_then(|declared| declared.encoding)
        && found != encoding_rs::UTF_8
        && found
            .decode_without_bom_handling_and_without_replacement(body)
            .is_some()
    {
        return Ok(in_code_page(body, all, found, declared.as_ref()));
    }
    let mut decoded = legacy::decode(bytes, skip)?;
    if let Some(declared) = declared
        && declared
            .encoding
            .is_none_or(|encoding| encoding.name() != decoded.encoding.name)
    {
        decoded
            .warnings
            .insert(0, declared.misleading(&decoded.encoding.name));
    }
    decoded.encoding.bom = bom;
    Ok(decoded)
}

/// The whole body through one code page, stated by the file or recognised by its escapes.
fn in_code_page(
    body: &[u8],
    source: Range<usize>,
    encoding: &'static encoding_rs::Encoding,
    declared: Option<&detect::Declared>,
) -> Decoded {
    let (text, _) = encoding.decode_without_bom_handling(body);
    let stated = declared.is_some_and(|declared| declared.encoding == Some(encoding));
    let name = encoding.name().to_owned();
    let warnings = if stated {
        Vec::new()
    } else {
        vec![Warning::DetectedEncoding {
            encoding: name.clone(),
        }]
    };
    Decoded {
        runs: vec![Run {
            decoded: 0..text.len(),
            source,
            how: How::Legacy(encoding),
        }],
        text: text.into_owned(),
        encoding: Encoding {
            name,
            bom: false,
            detected: !stated,
        },
        warnings,
    }
}

/// UTF-16 and UTF-32, with each unit that is no character replaced.
fn decode_wide(bytes: &[u8], skip: usize, how: How, bom: bool) -> Result<Decoded, Refusal> {
    let body = &bytes[skip..];
    let (text, invalid, units) = match how {
        How::Utf32(little) => utf32(body, little),
        How::Utf16(little) => utf16(body, little),
        _ => {
            return Err(Refusal::Binary {
                controls: 0,
                bytes: bytes.len() as u64,
            });
        }
    };
    let name = wide_name(how);
    // A stray unit is damage; one in five means the mark lies.
    if u64::from(invalid) * 5 > units {
        return Err(Refusal::Undecodable {
            encoding: name.to_owned(),
            invalid: invalid.into(),
            units,
        });
    }
    let mut warnings = Vec::new();
    if !bom {
        warnings.push(Warning::DetectedEncoding {
            encoding: name.to_owned(),
        });
    }
    if invalid > 0 {
        warnings.push(Warning::ReplacedBytes { count: invalid });
    }
    Ok(Decoded {
        runs: vec![Run {
            decoded: 0..text.len(),
            source: skip..bytes.len(),
            how,
        }],
        text,
        encoding: Encoding {
            name: name.to_owned(),
            bom,
            detected: !bom,
        },
        warnings,
    })
}

const fn wide_name(how: How) -> &'static str {
    match how {
        How::Utf16(true) => "UTF-16LE",
        How::Utf16(false) => "UTF-16BE",
        How::Utf32(true) => "UTF-32LE",
        How::Utf32(false) => "UTF-32BE",
        How::Utf8 | How::Utf8Lossy | How::Legacy(_) => "UTF-8",
    }
}

fn utf16(body: &[u8], little: bool) -> (String, u32, u64) {
    let (pairs, rest) = body.as_chunks::<2>();
    let units = pairs.iter().map(|&pair| {
        if little {
            u16::from_le_bytes(pair)
        } else {
            u16::from_be_bytes(pair)
        }
    });
    let mut invalid = 0;
    let mut text = String::with_capacity(body.len());
    for unit in char::decode_utf16(units) {
        text.push(unit.unwrap_or_else(|_| {
            invalid += 1;
            char::REPLACEMENT_CHARACTER
        }));
    }
    finish_wide(text, invalid, rest, pairs.len())
}

fn utf32(body: &[u8], little: bool) -> (String, u32, u64) {
    let (quads, rest) = body.as_chunks::<4>();
    let mut invalid = 0;
    let mut text = String::with_capacity(body.len());
    for &quad in quads {
        let unit = if little {
            u32::from_le_bytes(quad)
        } else {
            u32::from_be_bytes(quad)
        };
        text.push(char::from_u32(unit).unwrap_or_else(|| {
            invalid += 1;
            char::REPLACEMENT_CHARACTER
        }));
    }
    finish_wide(text, invalid, rest, quads.len())
}

/// A unit cut off at the end of the file shows as one replaced character.
fn finish_wide(
    mut text: String,
    mut invalid: u32,
    rest: &[u8],
    units: usize,
) -> (String, u32, u64) {
    if !rest.is_empty() {
        invalid += 1;
        text.push(char::REPLACEMENT_CHARACTER);
    }
    (
        text,
        invalid,
        (units + usize::from(!rest.is_empty())) as u64,
    )
}
