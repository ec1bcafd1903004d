//! The parts of a text that a value may be: whole words, up to so many code points, written as in JSON.
//!
//! All allowed beginnings are kept sorted, so that those that begin with what has been written are a range,
//! and one more byte narrows the range by two binary searches. Each beginning is cut where its longest
//! allowed part ends, so that whatever has been written can be brought to an allowed end.

use unicode_segmentation::UnicodeSegmentation;

/// The parts of one text.
#[derive(Debug)]
pub(super) struct Substrings {
    /// The text, escaped.
    text: Vec<u8>,
    /// From where to where in `text`, sorted by what lies between.
    parts: Vec<(u32, u32)>,
    /// Where in `text` a part may end.
    ends: Vec<bool>,
}

/// The parts that begin with what has been written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SubstringState {
    from: u32,
    to: u32,
    /// How many bytes have been written.
    depth: u32,
}

/// A place between two words: in code points, and in bytes of the escaped text.
#[derive(Clone, Copy)]
struct Edge {
    chars: usize,
    at: u32,
}

impl Substrings {
    pub(super) fn new(text: &str, max_chars: u32) -> Self {
        let bounds = word_bounds(text);
        let mut escaped = Vec::with_capacity(text.len());
        let (mut starts, mut ends, mut end_flags) = (Vec::new(), Vec::new(), Vec::new());
        let mut bound = bounds.iter().peekable();
        let mut before = None;
        let mut chars = 0;
        // The end of the text is a place too, hence the last round without a character.
        for (byte, next) in text
            .char_indices()
            .map(|(byte, char)| (byte, Some(char)))
            .chain([(text.len(), None)])
        {
            // A text of more than 4 GiB is none: it would not have been read.
            let Ok(at) = u32::try_from(escaped.len()) else {
                break;
            };
            end_flags.resize(escaped.len() + 1, false);
            if bound.next_if(|bound| **bound == byte).is_some() {
                let edge = Edge { chars, at };
                if next.is_some_and(|char: char| !char.is_whitespace()) {
                    starts.push(edge);
                }
                if before.is_some_and(|char: char| !char.is_whitespace()) {
                    ends.push(edge);
                    end_flags[escaped.len()] = true;
                }
            }
            if let Some(char) = next {
                escape(char, &mut escaped);
                chars += 1;
            }
            before = next;
        }
        let mut parts: Vec<(u32, u32)> = starts
            .iter()
            .filter_map(|start| {
                let fitting = ends.partition_point(|end| {
                    end.chars <= start.chars.saturating_add(max_chars as usize)
                });
                let end = ends[..fitting].last()?;
                (end.at > start.at).then_some((start.at, end.at))
            })
            .collect();
        parts.sort_by(|a, b| slice(&escaped, *a).cmp(slice(&escaped, *b)));
        Self {
            text: escaped,
            parts,
            ends: end_flags,
        }
    }

    /// The text has no part that may be a value.
    pub(super) const fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Nothing written.
    pub(super) fn start(&self) -> SubstringState {
        SubstringState {
            from: 0,
            to: u32::try_from(self.parts.len()).unwrap_or(u32::MAX),
            depth: 0,
        }
    }

    pub(super) fn may_end(&self, state: SubstringState) -> bool {
        state.depth > 0
            && self
                .range(state)
                .iter()
                .any(|(start, _)| self.ends.get((start + state.depth) as usize) == Some(&true))
    }

    pub(super) fn step(&self, state: SubstringState, byte: u8) -> Option<SubstringState> {
        let depth = state.depth as usize;
        let range = self.range(state);
        // A part that is all written sorts before those that go on.
        let before =
            range.partition_point(|part| slice(&self.text, *part).get(depth) < Some(&byte));
        let through =
            range.partition_point(|part| slice(&self.text, *part).get(depth) <= Some(&byte));
        (before < through).then(|| SubstringState {
            from: state.from + u32::try_from(before).unwrap_or(u32::MAX),
            to: state.from + u32::try_from(through).unwrap_or(u32::MAX),
            depth: state.depth + 1,
        })
    }

    fn range(&self, state: SubstringState) -> &[(u32, u32)] {
        self.parts
            .get(state.from as usize..state.to as usize)
            .unwrap_or_default()
    }
}

fn slice(text: &[u8], (from, to): (u32, u32)) -> &[u8] {
    text.get(from as usize..to as usize).unwrap_or_default()
}

/// As `serde_json` writes it.
fn escape(char: char, into: &mut Vec<u8>) {
    match char {
        '"' => into.extend_from_slice(b"\\\""),
        '\\' => into.extend_from_slice(b"\\\\"),
        '\n' => into.extend_from_slice(b"\\n"),
        '\r' => into.extend_from_slice(b"\\r"),
        '\t' => into.extend_from_slice(b"\\t"),
        '\u{8}' => into.extend_from_slice(b"\\b"),
        '\u{c}' => into.extend_from_slice(b"\\f"),
        '\0'..='\u{1f}' => {
            into.extend_from_slice(format!("\\u{:04x}", u32::from(char)).as_bytes());
        }
        _ => into.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// Where words begin or end, by UAX #29, but never inside what people read as one figure or name:
/// `1,200`, `12:30`, `2024-05-01`, `£500`, `5%`, `-3`, `North-East`.
fn word_bounds(text: &str) -> Vec<usize> {
    text.split_word_bound_indices()
        .map(|(at, _)| at)
        .chain([text.len()])
        .filter(|at| !is_joined(text, *at))
        .collect()
}

fn is_joined(text: &str, at: usize) -> bool {
    let mut back = text[..at].chars().rev();
    let mut ahead = text[at..].chars();
    let (Some(before), Some(after)) = (back.next(), ahead.next()) else {
        return false;
    };
    let letter = |char: Option<char>| char.is_some_and(char::is_alphanumeric);
    let link = |char: char| "-\u{2010}\u{2011}\u{2013}/:.,'\u{2019}_@&+".contains(char);
    let sign = |char: char| "-\u{2212}+$\u{a3}\u{20ac}\u{a5}#".contains(char);
    (link(after) && before.is_alphanumeric() && letter(ahead.next()))
        || (link(before) && after.is_alphanumeric() && letter(back.next()))
        || (sign(before) && after.is_numeric())
        || (before.is_numeric() && matches!(after, '%' | '\u{2030}' | '\u{b0}'))
        || (before.is_numeric() && after.is_alphabetic())
}
