//! Long documents are cut into segments at paragraph starts chosen by content.
//!
//! A paragraph starts a segment when the hash of its text is the strict minimum among all paragraphs
//! that start within `min_chars` of it: the same local rule as [`crate::boundaries`], so an edit moves
//! only cuts near it and the segments elsewhere keep their text. A stretch longer than `max_chars` is
//! cut again at its smallest hash, then at line starts, and at last between any two characters.

use factum_base::{Span, sha256};
use factum_casefile::profile::Segments;

/// One segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Segment {
    /// Its code points.
    pub span: Span,
    /// Hash of its text's start, by which segments are grouped.
    pub anchor: u64,
}

/// Version of this method. It is part of every leaf's key.
pub const SEGMENTATION: &str = "local-minimum/1";

struct Block {
    start: u32,
    hash: u64,
}

/// Cuts `text`, which must have at most `u32::MAX` code points, into segments without gaps. A text
/// within `max_chars` is one segment.
pub fn cut_segments(text: &str, rule: &Segments) -> Vec<Segment> {
    let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    if rule.whole || length <= rule.max_chars {
        return vec![Segment {
            span: Span::new(0, length),
            anchor: 0,
        }];
    }
    let paragraphs = blocks(text, true);
    let mut starts = vec![0];
    let mut cuts = local_minima(&paragraphs, length, rule.min_chars);
    cuts.push(length);
    let mut lines = None;
    let mut from = 0;
    for to in cuts {
        split(
            from,
            to,
            rule,
            &paragraphs,
            &mut || lines_of(text, &mut lines),
            &mut starts,
        );
        if to < length {
            starts.push(to);
        }
        from = to;
    }
    starts.sort_unstable();
    let ends = starts.iter().skip(1).copied().chain([length]);
    let spans: Vec<Span> = starts
        .iter()
        .zip(ends)
        .map(|(&start, end)| Span::new(start, end))
        .collect();
    with_anchors(text, &spans)
}

fn lines_of(text: &str, cache: &mut Option<std::rc::Rc<Vec<Block>>>) -> std::rc::Rc<Vec<Block>> {
    cache
        .get_or_insert_with(|| std::rc::Rc::new(blocks(text, false)))
        .clone()
}

/// Paragraphs (lines behind a blank line), or all lines.
fn blocks(text: &str, paragraphs: bool) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut position = 0u32;
    let mut after_blank = true;
    let mut body_from = 0;
    let mut byte = 0;
    for line in text.split_inclusive('\n') {
        let blank = line.trim().is_empty();
        if !blank && (after_blank || !paragraphs) {
            close(&mut found, &text[body_from..byte]);
            found.push(Block {
                start: position,
                hash: 0,
            });
            body_from = byte;
        }
        after_blank = blank;
        position += u32::try_from(line.chars().count()).unwrap_or(0);
        byte += line.len();
    }
    close(&mut found, &text[body_from..]);
    found
}

// White space around a paragraph must not decide where segments start.
fn close(found: &mut [Block], body: &str) {
    if let Some(last) = found.last_mut() {
        last.hash = short_hash(body.trim());
    }
}

fn short_hash(text: &str) -> u64 {
    let digest = sha256(text.as_bytes());
    digest[..8]
        .iter()
        .fold(0, |value, &byte| (value << 8) | u64::from(byte))
}

fn local_minima(blocks: &[Block], length: u32, window: u32) -> Vec<u32> {
    let mut minima = Vec::new();
    for (n, block) in blocks.iter().enumerate() {
        if block.start < window || length - block.start < window {
            continue;
        }
        let before = blocks[..n]
            .iter()
            .rev()
            .take_while(|b| block.start - b.start < window);
        let after = blocks[n + 1..]
            .iter()
            .take_while(|b| b.start - block.start < window);
        if before.chain(after).all(|other| other.hash > block.hash) {
            minima.push(block.start);
        }
    }
    minima
}

fn split(
    from: u32,
    to: u32,
    rule: &Segments,
    paragraphs: &[Block],
    lines: &mut dyn FnMut() -> std::rc::Rc<Vec<Block>>,
    starts: &mut Vec<u32>,
) {
    let mut stretches = vec![(from, to)];
    while let Some((from, to)) = stretches.pop() {
        if to - from <= rule.max_chars {
            continue;
        }
        let (low, high) = (from + rule.min_chars, to - rule.min_chars);
        let cut = smallest(paragraphs, low, high)
            .or_else(|| smallest(&lines(), low, high))
            .unwrap_or(from + rule.max_chars - rule.min_chars);
        starts.push(cut);
        stretches.push((from, cut));
        stretches.push((cut, to));
    }
}

fn smallest(blocks: &[Block], low: u32, high: u32) -> Option<u32> {
    let from = blocks.partition_point(|b| b.start < low);
    let to = blocks.partition_point(|b| b.start <= high);
    blocks
        .get(from..to)?
        .iter()
        .min_by_key(|b| (b.hash, b.start))
        .map(|b| b.start)
}

fn with_anchors(text: &str, spans: &[Span]) -> Vec<Segment> {
    let mut chars = text.char_indices();
    let mut segments = Vec::with_capacity(spans.len());
    for &span in spans {
        let start = chars.clone().next().map_or(text.len(), |(byte, _)| byte);
        if !span.is_empty() {
            chars.nth(span.len() as usize - 1);
        }
        let end = chars.clone().next().map_or(text.len(), |(byte, _)| byte);
        // The first characters are enough to tell segments apart, and an edit further on leaves the
        // grouping alone.
        let head_end = text[start..end]
            .char_indices()
            .nth(200)
            .map_or(end, |(byte, _)| start + byte);
        segments.push(Segment {
            span,
            anchor: short_hash(&text[start..head_end]),
        });
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULE: Segments = Segments {
        whole: false,
        min_chars: 64,
        max_chars: 300,
    };

    fn texts(text: &str) -> Vec<String> {
        cut_segments(text, &RULE)
            .iter()
            .map(|s| {
                text.chars()
                    .skip(s.span.start as usize)
                    .take(s.span.len() as usize)
                    .collect()
            })
            .collect()
    }

    fn document(words: &[u16]) -> String {
        words
            .iter()
            .map(|w| {
                format!(
                    "Paragraph {w} says {}.\n\n",
                    "水 ".repeat(usize::from(w % 40))
                )
            })
            .collect()
    }

    proptest! {
        #[test]
        fn segments_cover_the_text_without_gaps(text in "([a-z日\u{301}👍 ]{0,90}(\n|\r\n|\n\n)?){0,30}") {
            prop_assert_eq!(texts(&text).concat(), text.clone());
            for segment in cut_segments(&text, &RULE) {
                prop_assert!(segment.span.len() <= RULE.max_chars);
            }
        }

        #[test]
        fn an_edit_leaves_far_segments_alone(words in proptest::collection::vec(any::<u16>(), 40..90), at in any::<prop::sample::Index>()) {
            let before = texts(&document(&words));
            let mut edited = words.clone();
            let n = at.index(words.len());
            edited[n] = edited[n].wrapping_add(1);
            let after = texts(&document(&edited));
            let kept = after.iter().filter(|s| before.contains(s)).count();
            prop_assert!(after.len() - kept <= 7, "{} of {} changed", after.len() - kept, after.len());
        }
    }

    #[test]
    fn one_endless_line_is_cut_too() {
        let text = "x".repeat(5_000);
        assert!(
            cut_segments(&text, &RULE)
                .iter()
                .all(|s| s.span.len() <= 300 && s.span.len() >= 64)
        );
    }
}
