//! Where spans of a text layer came from.
//!
//! A layout never holds text of the document beyond names (column headers, speakers), so it can be
//! kept apart from the text; [`Layout::locate`] is given the text again where it needs it. It
//! answers for any text and span, also for ones that do not belong to it, with some location.

use serde::{Deserialize, Serialize};

use factum_base::Span;

use crate::csv::{self, Table};
use crate::cues::{Cue, CueTime};
use crate::json::{self, Tree};
use crate::lines::LineStarts;
use crate::location::Location;
use crate::media::Media;
use crate::source::Unit;

/// Where the spans of one text layer came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout(Shape);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Shape {
    Lines(LineStarts),
    Table(Table),
    Json(Tree),
    Page(Vec<Piece>),
    Cues(Vec<Cue>),
}

/// A stretch of a page's text that came from one stretch of the file. Text that lies in no piece was
/// put in by the reader, like the line end between two paragraphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Piece {
    /// First code point in the text layer.
    pub(crate) start: u32,
    /// Code points covered.
    pub(crate) length: u32,
    /// The start again, in bytes of the text layer.
    pub(crate) start_byte: u32,
    /// First byte in the file.
    pub(crate) source: u32,
    /// Bytes covered in the file.
    pub(crate) source_length: u32,
    pub(crate) unit: Unit,
}

impl Piece {
    /// Source offset of a code point of this piece; the ends are allowed.
    fn source_of(&self, text: &str, code_point: u32, is_end: bool) -> u64 {
        let start = u64::from(self.source);
        let end = start + u64::from(self.source_length);
        let within = code_point.saturating_sub(self.start);
        if within >= self.length || (self.unit == Unit::Whole && is_end) {
            return end;
        }
        let own = text.get(self.start_byte as usize..).unwrap_or("");
        let bytes = own
            .char_indices()
            .nth(within as usize)
            .map_or(own.len(), |(at, _)| at);
        (start + self.unit.width(&own[..bytes]) as u64).min(end)
    }

    const fn end(&self) -> u32 {
        self.start.saturating_add(self.length)
    }
}

impl Layout {
    /// The layout of a text layer, where the text alone decides it. For such formats (plain text,
    /// Markdown, CSV, JSON) this equals the layout that came with the text, so it need not be kept.
    pub fn derive(media: Media, text: &str) -> Option<Self> {
        match media {
            Media::PlainText | Media::Markdown => Some(Self::of_lines(text)),
            Media::Csv => Some(Self::of_table(csv::read(text).0)),
            Media::Json => Some(Self::of_json(json::read(text).tree)),
            Media::Html | Media::Vtt | Media::Srt => None,
        }
    }

    pub(crate) fn of_lines(text: &str) -> Self {
        Self(Shape::Lines(LineStarts::new(text)))
    }

    pub(crate) const fn of_table(table: Table) -> Self {
        Self(Shape::Table(table))
    }

    pub(crate) const fn of_json(tree: Tree) -> Self {
        Self(Shape::Json(tree))
    }

    pub(crate) const fn of_page(pieces: Vec<Piece>) -> Self {
        Self(Shape::Page(pieces))
    }

    pub(crate) const fn of_cues(cues: Vec<Cue>) -> Self {
        Self(Shape::Cues(cues))
    }

    /// The cues of a recording, in the order of the text; none for other formats.
    pub fn cues(&self) -> &[Cue] {
        match &self.0 {
            Shape::Cues(cues) => cues,
            _ => &[],
        }
    }

    /// Where a span of `text` came from. `text` is the text layer that this layout belongs to.
    pub fn locate(&self, text: &str, span: Span) -> Location {
        let span = Span::new(span.start, span.end.max(span.start));
        match &self.0 {
            Shape::Lines(lines) => {
                let (first, last) = lines.lines_of(span);
                Location::Lines { first, last }
            }
            Shape::Table(table) => table.locate(span),
            Shape::Json(tree) => tree.locate(text, span),
            Shape::Page(pieces) => locate_in_page(pieces, text, span),
            Shape::Cues(cues) => locate_in_cues(cues, span),
        }
    }
}

/// The parts that a span touches, of parts sorted by start. A span that touches none, such as the
/// line end between two, gets the part before it, else the first.
fn touched<T>(parts: &[T], span: Span, extent: impl Fn(&T) -> (u32, u32)) -> &[T] {
    let last = span.end.max(span.start.saturating_add(1));
    let from = parts.partition_point(|part| extent(part).1 <= span.start);
    let to = parts.partition_point(|part| extent(part).0 < last);
    if from < to {
        &parts[from..to]
    } else {
        let at = from.saturating_sub(1);
        &parts[at.min(parts.len())..parts.len().min(at + 1)]
    }
}

fn locate_in_page(pieces: &[Piece], text: &str, span: Span) -> Location {
    let touched = touched(pieces, span, |piece| (piece.start, piece.end()));
    let (Some(first), Some(last)) = (touched.first(), touched.last()) else {
        return Location::Unplaced;
    };
    let start = first.source_of(text, span.start, false);
    let end = if span.is_empty() {
        start
    } else {
        last.source_of(text, span.end, true)
    };
    Location::Bytes {
        start,
        end: end.max(start),
    }
}

fn locate_in_cues(cues: &[Cue], span: Span) -> Location {
    let touched = touched(cues, span, |cue| (cue.span.start, cue.span.end));
    let (Some(first), Some(last)) = (touched.first(), touched.last()) else {
        return Location::Unplaced;
    };
    let time = first.time.zip(last.time).map(|(first, last)| CueTime {
        start_ms: first.start_ms,
        end_ms: last.end_ms,
    });
    let one_voice = touched.iter().all(|cue| cue.speaker == first.speaker);
    Location::Cues {
        first: first.number,
        last: last.number,
        time,
        speaker: first.speaker.clone().filter(|_| one_voice),
        start_byte: first.start_byte.into(),
        end_byte: last.end_byte.into(),
    }
}
