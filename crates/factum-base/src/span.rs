//! Spans of a text in Unicode code points, half open.
//!
//! Bytes differ by encoding and grapheme clusters by Unicode version; code points are what every
//! language can count alike, so they are what citations use.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// `start..end` in code points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Span {
    /// First code point.
    pub start: u32,
    /// One past the last code point.
    pub end: u32,
}

/// A span that does not fit its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SpanError {
    /// The end lies before the start.
    #[error("span {0:?} ends before it starts")]
    Reversed(Span),
    /// The end lies behind the text.
    #[error("span {span:?} ends behind the text's {length} code points")]
    OutOfRange {
        /// The span asked for.
        span: Span,
        /// The text's length in code points.
        length: u32,
    },
}

impl Span {
    /// `start..end`; the order is not checked.
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// Code points covered.
    pub const fn len(self) -> u32 {
        self.end.saturating_sub(self.start)
    }

    /// Covers nothing.
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Lies wholly within `outer`.
    pub const fn is_within(self, outer: Self) -> bool {
        self.start >= outer.start && self.end <= outer.end
    }
}

/// `text[start..end]` by code points, walking the text.
///
/// # Errors
/// The span is reversed or ends behind the text.
pub fn slice_code_points(text: &str, span: Span) -> Result<&str, SpanError> {
    if span.end < span.start {
        return Err(SpanError::Reversed(span));
    }
    if text.is_ascii() {
        return text
            .get(span.start as usize..span.end as usize)
            .ok_or(SpanError::OutOfRange {
                span,
                length: u32::try_from(text.len()).unwrap_or(u32::MAX),
            });
    }
    CodePointIndex::new(text).slice(text, span)
}

/// Byte offsets of every 128th code point, so that many spans of one text are cheap.
#[derive(Debug, Clone)]
pub struct CodePointIndex {
    /// Empty for ASCII, where code points are bytes.
    marks: Vec<u32>,
    length: u32,
    bytes: u32,
    ascii: bool,
}

const STRIDE: u32 = 128;

impl CodePointIndex {
    /// Indexes `text`, which must be shorter than 4 GiB.
    pub fn new(text: &str) -> Self {
        let bytes = u32::try_from(text.len()).unwrap_or(u32::MAX);
        if text.is_ascii() {
            return Self {
                marks: Vec::new(),
                length: bytes,
                bytes,
                ascii: true,
            };
        }
        let mut marks = Vec::with_capacity(text.len() / STRIDE as usize + 1);
        let mut length = 0u32;
        for (byte, _) in text.char_indices() {
            if length.is_multiple_of(STRIDE) {
                marks.push(u32::try_from(byte).unwrap_or(u32::MAX));
            }
            length += 1;
        }
        Self {
            marks,
            length,
            bytes,
            ascii: false,
        }
    }

    /// The text's length in code points.
    pub const fn len(&self) -> u32 {
        self.length
    }

    /// The text is empty.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Byte offset of a code point; the length maps to the text's byte length.
    pub fn byte_of(&self, text: &str, code_point: u32) -> Option<usize> {
        if code_point >= self.length {
            return (code_point == self.length).then_some(self.bytes as usize);
        }
        if self.ascii {
            return Some(code_point as usize);
        }
        let mark = self.marks[(code_point / STRIDE) as usize] as usize;
        text[mark..]
            .char_indices()
            .nth((code_point % STRIDE) as usize)
            .map(|(byte, _)| mark + byte)
    }

    /// Code point that starts at or contains byte `byte`.
    pub fn code_point_of(&self, text: &str, byte: usize) -> u32 {
        if byte >= text.len() {
            return self.length;
        }
        if self.ascii {
            return u32::try_from(byte).unwrap_or(u32::MAX);
        }
        let after = self.marks.partition_point(|&mark| mark as usize <= byte);
        let mark_no = after.saturating_sub(1);
        let mark = self.marks.get(mark_no).copied().unwrap_or(0) as usize;
        let within = text[mark..]
            .char_indices()
            .take_while(|(at, _)| mark + at <= byte)
            .count();
        u32::try_from(mark_no).unwrap_or(0) * STRIDE
            + u32::try_from(within).unwrap_or(0).saturating_sub(1)
    }

    /// `text[start..end]` by code points.
    ///
    /// # Errors
    /// The span is reversed or ends behind the text.
    pub fn slice<'t>(&self, text: &'t str, span: Span) -> Result<&'t str, SpanError> {
        if span.end < span.start {
            return Err(SpanError::Reversed(span));
        }
        let out_of_range = SpanError::OutOfRange {
            span,
            length: self.length,
        };
        let start = self.byte_of(text, span.start).ok_or(out_of_range)?;
        let end = self.byte_of(text, span.end).ok_or(out_of_range)?;
        text.get(start..end).ok_or(out_of_range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn slices_equal_a_walk_over_chars(text in "\\PC{0,300}|[a-z\r\n\u{301}\u{1f600}日本]{0,600}", a in 0u32..400, b in 0u32..400) {
            let span = Span::new(a.min(b), a.max(b));
            let naive: String = text.chars().skip(span.start as usize).take(span.len() as usize).collect();
            match slice_code_points(&text, span) {
                Ok(slice) => prop_assert_eq!(slice, naive),
                Err(_) => prop_assert!(span.end as usize > text.chars().count()),
            }
        }

        #[test]
        fn bytes_and_code_points_map_back(text in "[a-z\u{1f600}日本é]{0,600}") {
            let index = CodePointIndex::new(&text);
            for (n, (byte, _)) in text.char_indices().enumerate() {
                prop_assert_eq!(index.code_point_of(&text, byte) as usize, n);
                prop_assert_eq!(index.byte_of(&text, u32::try_from(n).unwrap()), Some(byte));
            }
            prop_assert_eq!(index.code_point_of(&text, text.len()), index.len());
        }
    }

    #[test]
    fn emoji_combining_marks_and_crlf_count_as_code_points() {
        let text = "e\u{301}\r\n👩‍💧日本";
        assert_eq!(
            slice_code_points(text, Span::new(0, 2)).unwrap(),
            "e\u{301}"
        );
        assert_eq!(slice_code_points(text, Span::new(2, 4)).unwrap(), "\r\n");
        assert_eq!(slice_code_points(text, Span::new(7, 9)).unwrap(), "日本");
        assert_eq!(
            slice_code_points(text, Span::new(3, 1)),
            Err(SpanError::Reversed(Span::new(3, 1)))
        );
        assert!(matches!(
            slice_code_points(text, Span::new(0, 99)),
            Err(SpanError::OutOfRange { length: 9, .. })
        ));
    }
}
