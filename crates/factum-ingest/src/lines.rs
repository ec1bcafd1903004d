//! Lines of a text: where they start, which one a code point is on.
//!
//! A line ends at LF, CR LF or a lone CR, as editors count them. Other separators (form feed,
//! U+2028) do not end a line, since hardly any editor numbers them.

use serde::{Deserialize, Serialize};

use factum_base::Span;

/// The code point at which each line starts; the first is always 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LineStarts(Vec<u32>);

impl LineStarts {
    pub(crate) fn new(text: &str) -> Self {
        let mut starts = vec![0];
        let mut at = 0u32;
        let mut after_cr = false;
        for c in text.chars() {
            if after_cr && c != '\n' {
                starts.push(at);
            }
            at += 1;
            after_cr = c == '\r';
            if c == '\n' {
                starts.push(at);
            }
        }
        if after_cr {
            starts.push(at);
        }
        Self(starts)
    }

    /// The line that holds a code point, counted from one.
    pub(crate) fn line_of(&self, code_point: u32) -> u32 {
        let line = self.0.partition_point(|&start| start <= code_point).max(1);
        u32::try_from(line).unwrap_or(u32::MAX)
    }

    /// First and last line of a span.
    pub(crate) fn lines_of(&self, span: Span) -> (u32, u32) {
        let first = self.line_of(span.start);
        let last = if span.is_empty() {
            first
        } else {
            self.line_of(span.end - 1)
        };
        (first, last)
    }
}

/// Byte ranges of a text's lines, without their ends.
pub(crate) fn split_lines(text: &str) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= bytes.len() {
            return None;
        }
        let start = at;
        let end = bytes[start..]
            .iter()
            .position(|&byte| matches!(byte, b'\n' | b'\r'))
            .map_or(bytes.len(), |found| start + found);
        at = match bytes.get(end..) {
            Some([b'\r', b'\n', ..]) => end + 2,
            Some([_, ..]) => end + 1,
            _ => end,
        };
        Some(start..end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn crlf_is_one_line_end_and_a_lone_cr_is_another() {
        let starts = LineStarts::new("a\r\nb\rc\nd");
        assert_eq!(starts.0, [0, 3, 5, 7]);
        assert_eq!(starts.line_of(2), 1);
        assert_eq!(starts.lines_of(Span::new(3, 8)), (2, 4));
        assert_eq!(starts.line_of(99), 4);
    }

    proptest! {
        #[test]
        fn both_ways_of_finding_lines_agree(text in "[a\r\né]{0,40}") {
            let starts = LineStarts::new(&text);
            for line in split_lines(&text) {
                let at = u32::try_from(text[..line.start].chars().count()).unwrap();
                prop_assert!(starts.0.contains(&at));
            }
        }
    }
}
