//! The door: decides the format, decodes, hands the text to the format's reader.

use serde::{Deserialize, Serialize};

use crate::decode::{Decoded, decode};
use crate::format::{Choice, choose, sniff_text};
use crate::layout::Layout;
use crate::media::Media;
use crate::refusal::Refusal;
use crate::warning::Warning;
use crate::{csv, cues, html, json};

/// Most that any limit can allow: offsets are 32 bits wide, and one byte can become three.
const HARD_MAX_BYTES: u64 = 1 << 30;

/// What a caller allows reading to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest file, in bytes. Values above 1 GiB count as 1 GiB.
    pub max_bytes: u64,
    /// Nesting of HTML elements or JSON values above which a document gets a warning. Readers never
    /// recurse, so deeper documents are still read whole.
    pub max_depth: u32,
    /// Most separate pieces that a page's layout may have.
    pub max_pieces: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_bytes: 64 << 20,
            max_depth: 512,
            max_pieces: 4_000_000,
        }
    }
}

/// How the bytes became text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encoding {
    /// The encoding's name; `UTF-8` and others as the WHATWG spells them.
    pub name: String,
    /// A byte order mark was there, and is not part of the text.
    pub bom: bool,
    /// Found by looking at the bytes rather than stated by the file.
    pub detected: bool,
}

/// A document as it is kept: its text and where the text came from.
#[derive(Debug, Clone, PartialEq)]
pub struct TextLayer {
    /// What it was read as.
    pub media: Media,
    /// The text. Never normalised.
    pub text: String,
    /// Where spans of the text came from.
    pub layout: Layout,
    /// How the bytes became text.
    pub encoding: Encoding,
    /// What whoever relies on the text should know.
    pub warnings: Vec<Warning>,
}

/// Reads a file's bytes. `name` only matters for its extension.
///
/// # Errors
/// See [`Refusal`]: a file without text, or one that can't be read.
pub fn read_document(name: &str, bytes: &[u8], limits: &Limits) -> Result<TextLayer, Refusal> {
    let max_bytes = limits.max_bytes.min(HARD_MAX_BYTES);
    if bytes.len() as u64 > max_bytes {
        return Err(Refusal::LimitExceeded {
            what: "bytes".to_owned(),
            limit: max_bytes,
        });
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Refusal::Empty);
    }
    let known = match choose(name, bytes) {
        Choice::Refused(format) => {
            return Err(Refusal::Unsupported {
                format: format.to_owned(),
            });
        }
        Choice::Media(media) => Some(media),
        Choice::Unknown => None,
    };
    let decoded = decode(bytes, known)?;
    if is_blank(&decoded.text) {
        return Err(Refusal::Empty);
    }
    let media = known.unwrap_or_else(|| sniff_text(&decoded.text));
    let layer = match media {
        Media::PlainText | Media::Markdown => {
            let layout = Layout::of_lines(&decoded.text);
            kept_as_written(media, decoded, layout, Vec::new())
        }
        Media::Csv => {
            let (table, warnings) = csv::read(&decoded.text);
            kept_as_written(media, decoded, Layout::of_table(table), warnings)
        }
        Media::Json => {
            let report = json::read(&decoded.text);
            let warnings = report.warnings(limits.max_depth);
            kept_as_written(media, decoded, Layout::of_json(report.tree), warnings)
        }
        Media::Html => html::read(bytes, &decoded, limits)?,
        Media::Vtt | Media::Srt => cues::read(media, bytes, decoded),
    };
    if is_blank(&layer.text) {
        Err(Refusal::Empty)
    } else {
        Ok(layer)
    }
}

/// The text layer is the decoded file.
fn kept_as_written(
    media: Media,
    decoded: Decoded,
    layout: Layout,
    warnings: Vec<Warning>,
) -> TextLayer {
    let mut all = decoded.warnings;
    all.extend(warnings);
    TextLayer {
        media,
        text: decoded.text,
        layout,
        encoding: decoded.encoding,
        warnings: all,
    }
}

fn is_blank(text: &str) -> bool {
    // A file of nothing but byte order marks or zero-width spaces has nothing to cite either.
    text.chars()
        .all(|c| c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}'))
}
