//! From offsets in decoded text back to bytes of the original file.
//!
//! Works in one pass over the decoded runs, so that many ascending questions cost one walk.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::decode::{Decoded, How, Run};

/// How wide characters are in the original file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Unit {
    /// As in UTF-8.
    Utf8,
    /// As in UTF-16.
    Utf16,
    /// Every character takes this many bytes.
    Fixed(u8),
    /// The characters came from the bytes as a whole, like `&amp;`.
    Whole,
}

impl Unit {
    /// Bytes of the original that `text` takes up.
    pub(crate) fn width(self, text: &str) -> usize {
        match self {
            Self::Utf8 => text.len(),
            Self::Utf16 => text.chars().map(|c| c.len_utf16() * 2).sum(),
            Self::Fixed(bytes) => text.chars().count() * usize::from(bytes),
            Self::Whole => 0,
        }
    }
}

/// Decoded text and source bytes that belong together, character for character if the unit says so.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Segment {
    decoded: Range<usize>,
    source: Range<usize>,
    unit: Unit,
}

/// Answers ascending questions about a decoded file.
pub(crate) struct SourceCursor<'a> {
    segments: Segments<'a>,
    text: &'a str,
    current: Segment,
    /// A position within `current` whose source offset is known.
    known: (usize, usize),
    end: usize,
}

impl<'a> SourceCursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], decoded: &'a Decoded) -> Self {
        let start = decoded.runs.first().map_or(0, |run| run.source.start);
        let empty = Segment {
            decoded: 0..0,
            source: start..start,
            unit: Unit::Whole,
        };
        Self {
            segments: Segments::new(bytes, &decoded.runs),
            text: &decoded.text,
            current: empty,
            known: (0, start),
            end: bytes.len(),
        }
    }

    /// Source offset of the character that starts at `at`. Questions must not go backwards.
    pub(crate) fn start_of(&mut self, at: usize) -> usize {
        while at >= self.current.decoded.end {
            match self.segments.next() {
                Some(next) => {
                    self.known = (next.decoded.start, next.source.start);
                    self.current = next;
                }
                None => return self.end,
            }
        }
        self.within(at)
    }

    /// Source offset just behind the character that ends at `at`. Text inserted later is not
    /// counted, so this stays in the segment of that character.
    pub(crate) fn end_of(&mut self, at: usize) -> usize {
        while at > self.current.decoded.end {
            match self.segments.next() {
                Some(next) => {
                    self.known = (next.decoded.start, next.source.start);
                    self.current = next;
                }
                None => return self.end,
            }
        }
        if at == self.current.decoded.end || self.current.unit == Unit::Whole {
            return self.current.source.end;
        }
        self.within(at)
    }

    fn within(&mut self, at: usize) -> usize {
        let (from, source) = self.known;
        if self.current.unit == Unit::Whole || at < from {
            return self.current.source.start;
        }
        let passed = self.text.get(from..at).unwrap_or("");
        let found = (source + self.current.unit.width(passed)).min(self.current.source.end);
        self.known = (at, found);
        found
    }

    /// Cuts a stretch of decoded text into parts of one unit each, with their source bytes.
    pub(crate) fn parts(
        &mut self,
        stretch: Range<usize>,
        mut part: impl FnMut(Range<usize>, Range<usize>, Unit),
    ) {
        let mut at = stretch.start;
        while at < stretch.end {
            let start = self.start_of(at);
            let end = self.current.decoded.end.min(stretch.end);
            if end <= at {
                return;
            }
            let unit = self.current.unit;
            let source_end = self.end_of(end);
            part(at..end, start..source_end, unit);
            at = end;
        }
    }
}

/// The segments of a decoded file, made as they are asked for.
struct Segments<'a> {
    bytes: &'a [u8],
    runs: std::slice::Iter<'a, Run>,
    walk: Option<Walk<'a>>,
}

/// A run that is cut into segments.
enum Walk<'a> {
    Lossy(Lossy<'a>),
    Pages(Box<Pages<'a>>),
}

impl<'a> Segments<'a> {
    fn new(bytes: &'a [u8], runs: &'a [Run]) -> Self {
        Self {
            bytes,
            runs: runs.iter(),
            walk: None,
        }
    }
}

impl Iterator for Segments<'_> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        loop {
            let from_walk = match &mut self.walk {
                Some(Walk::Lossy(lossy)) => lossy.next(),
                Some(Walk::Pages(pages)) => pages.next(),
                None => None,
            };
            if from_walk.is_some() {
                return from_walk;
            }
            self.walk = None;
            let run = self.runs.next()?;
            let bytes = self.bytes.get(run.source.clone()).unwrap_or(&[]);
            let unit = match run.how {
                How::Utf8 => Unit::Utf8,
                How::Utf16(_) => Unit::Utf16,
                How::Utf32(_) => Unit::Fixed(4),
                How::Legacy(page) if page.is_single_byte() => Unit::Fixed(1),
                How::Utf8Lossy => {
                    self.walk = Some(Walk::Lossy(Lossy::new(bytes, run)));
                    continue;
                }
                How::Legacy(page) => {
                    self.walk = Some(Walk::Pages(Box::new(Pages::new(bytes, run, page))));
                    continue;
                }
            };
            return Some(Segment {
                decoded: run.decoded.clone(),
                source: run.source.clone(),
                unit,
            });
        }
    }
}

/// UTF-8 with ill-formed parts, each of which became one U+FFFD.
struct Lossy<'a> {
    chunks: std::str::Utf8Chunks<'a>,
    decoded: usize,
    source: usize,
    /// Length of the ill-formed part to report next.
    broken: usize,
}

impl<'a> Lossy<'a> {
    fn new(bytes: &'a [u8], run: &Run) -> Self {
        let chunks = bytes.utf8_chunks();
        Self {
            chunks,
            decoded: run.decoded.start,
            source: run.source.start,
            broken: 0,
        }
    }

    fn segment(&mut self, decoded: usize, source: usize, unit: Unit) -> Segment {
        let segment = Segment {
            decoded: self.decoded..self.decoded + decoded,
            source: self.source..self.source + source,
            unit,
        };
        self.decoded += decoded;
        self.source += source;
        segment
    }
}

impl Iterator for Lossy<'_> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        if self.broken == 0 {
            let chunk = self.chunks.next()?;
            self.broken = chunk.invalid().len();
            // Only the last chunk lacks an ill-formed part, and only the first can lack a valid one.
            if !chunk.valid().is_empty() || self.broken == 0 {
                let length = chunk.valid().len();
                return Some(self.segment(length, length, Unit::Utf8));
            }
        }
        let broken = std::mem::take(&mut self.broken);
        Some(self.segment(char::REPLACEMENT_CHARACTER.len_utf8(), broken, Unit::Whole))
    }
}

/// A code page whose characters differ in width. No table of widths is kept anywhere, so the bytes
/// are decoded once more, one at a time, to see which of them complete a character.
struct Pages<'a> {
    bytes: &'a [u8],
    page: &'static encoding_rs::Encoding,
    decoder: encoding_rs::Decoder,
    /// Next byte to feed.
    at: usize,
    finished: bool,
    /// Bytes fed that completed no character yet.
    open: usize,
    decoded: usize,
    source: usize,
    /// A segment that may still grow.
    held: Option<Segment>,
}

impl<'a> Pages<'a> {
    fn new(bytes: &'a [u8], run: &Run, page: &'static encoding_rs::Encoding) -> Self {
        Self {
            bytes,
            page,
            decoder: page.new_decoder_without_bom_handling(),
            at: 0,
            finished: false,
            open: 0,
            decoded: run.decoded.start,
            source: run.source.start,
            held: None,
        }
    }

    /// The next characters: their decoded length, how many they are, their source length.
    fn step(&mut self) -> Option<(usize, usize, usize)> {
        // Where no character is open, ASCII stands for itself, and most of a page is ASCII.
        if self.open == 0 && self.page.is_ascii_compatible() {
            let rest = self.bytes.get(self.at..)?;
            let ascii = rest.iter().take_while(|byte| byte.is_ascii()).count();
            if ascii > 0 {
                self.at += ascii;
                return Some((ascii, ascii, ascii));
            }
        }
        let mut out = [0u8; 32];
        loop {
            let (input, last) = match self.bytes.get(self.at..=self.at) {
                Some(byte) => (byte, false),
                None if self.finished => return None,
                None => (&[][..], true),
            };
            let (_, read, written, _) = self.decoder.decode_to_utf8(input, &mut out, last);
            self.at += read;
            self.open += read;
            self.finished = last;
            if written > 0 {
                let characters = out[..written]
                    .iter()
                    .filter(|&&byte| byte & 0xc0 != 0x80)
                    .count();
                return Some((written, characters, std::mem::take(&mut self.open)));
            }
        }
    }
}

impl Iterator for Pages<'_> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        while let Some((decoded, characters, source)) = self.step() {
            let unit = match source.checked_div(characters).map(u8::try_from) {
                Some(Ok(width)) if usize::from(width) * characters == source && width > 0 => {
                    Unit::Fixed(width)
                }
                _ => Unit::Whole,
            };
            let piece = Segment {
                decoded: self.decoded..self.decoded + decoded,
                source: self.source..self.source + source,
                unit,
            };
            self.decoded = piece.decoded.end;
            self.source = piece.source.end;
            match &mut self.held {
                Some(held) if held.unit == unit && unit != Unit::Whole => {
                    held.decoded.end = piece.decoded.end;
                    held.source.end = piece.source.end;
                }
                held => {
                    if let Some(done) = held.replace(piece) {
                        return Some(done);
                    }
                }
            }
        }
        self.held.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::decode;
    use crate::media::Media;

    /// Every character's source bytes decode to that character alone.
    fn check(bytes: &[u8], page: &'static encoding_rs::Encoding) {
        let decoded = decode(bytes, Some(Media::PlainText)).unwrap();
        let mut cursor = SourceCursor::new(bytes, &decoded);
        for (at, c) in decoded.text.char_indices() {
            let start = cursor.start_of(at);
            let end = cursor.end_of(at + c.len_utf8());
            let (back, _) = page.decode_without_bom_handling(&bytes[start..end]);
            assert_eq!(back, c.to_string(), "at {at} of {:?}", decoded.text);
        }
        assert_eq!(cursor.start_of(decoded.text.len()), bytes.len());
    }

    #[test]
    fn every_character_maps_to_its_own_bytes() {
        let japanese = "証人は契約書にabc署名したと述べた。\r\nカタカナ x";
        let russian = "Свидетель показал, что договор";
        check("Grüße, 日本 😀\r\n".as_bytes(), encoding_rs::UTF_8);
        check(b"\xef\xbb\xbfBOM \xc3\xa9", encoding_rs::UTF_8);
        check(b"\xff\xfea\0=\xd8\0\xdeb\0", encoding_rs::UTF_16LE);
        check(
            &encoding_rs::SHIFT_JIS.encode(japanese).0,
            encoding_rs::SHIFT_JIS,
        );
        check(
            &encoding_rs::WINDOWS_1251.encode(russian).0,
            encoding_rs::WINDOWS_1251,
        );
    }

    #[test]
    fn replaced_bytes_and_mixed_lines_keep_their_places() {
        let bytes = b"caf\xc3\xa9 \xe2\x80\x9cquoted\xe2\x80\x9d \xc3\xa9\xc3\xa9 \xff!\ncaf\xe9 \x93x\x94\nend";
        let decoded = decode(bytes, Some(Media::PlainText)).unwrap();
        let mut cursor = SourceCursor::new(bytes, &decoded);
        let at = decoded.text.find('\u{fffd}').unwrap();
        let start = cursor.start_of(at);
        let end = cursor.end_of(at + 3);
        assert_eq!(&bytes[start..end], b"\xff");
        let end_word = decoded.text.find("end").unwrap();
        let start = cursor.start_of(end_word);
        assert_eq!(&bytes[start..], b"end");
    }
}
