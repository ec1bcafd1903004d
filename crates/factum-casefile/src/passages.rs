//! A text cut into passages for searching: runs of lines, or of sentences where lines are long.
//!
//! Unlike claims, nothing is left out: every character that is not white space lies in exactly one passage, so
//! that whatever a text says can be found. Short lines stand together (a turn of talk with its neighbours,
//! a heading with what follows), long paragraphs are cut where Unicode Standard Annex #29 ends a sentence.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation as _;

/// Version of the cut. An index made under another one has to be made anew.
pub const PASSAGE_VERSION: u32 = 1;

/// A passage is not made longer than this, in bytes, where it can end.
const TARGET: usize = 400;
/// A passage shorter than this takes in what follows.
const LEAST: usize = 120;
/// A single sentence longer than this is cut at a space.
const LONGEST: usize = 900;

/// The passages of a text in order, in bytes, without overlaps and without white space at either end.
pub fn passages(text: &str) -> Vec<Range<usize>> {
    let mut cutter = Cutter {
        text,
        out: Vec::new(),
        open: None,
    };
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        cutter.line(at..end);
        at = end;
    }
    cutter.close();
    cutter.out
}

struct Cutter<'t> {
    text: &'t str,
    out: Vec<Range<usize>>,
    open: Option<Range<usize>>,
}

impl Cutter<'_> {
    fn line(&mut self, line: Range<usize>) {
        let content = &self.text[line.clone()];
        if content.trim().is_empty() {
            if self.open_length() >= LEAST {
                self.close();
            }
        } else if content.len() <= TARGET {
            self.add(line);
        } else if content.is_ascii() {
            // What the annex says of ASCII, near enough to cut by, at twenty times its speed.
            for sentence in ascii_sentences(content) {
                self.sentence(line.start + sentence.start..line.start + sentence.end);
            }
        } else {
            for (start, sentence) in content.split_sentence_bound_indices() {
                let from = line.start + start;
                self.sentence(from..from + sentence.len());
            }
        }
    }

    fn sentence(&mut self, mut rest: Range<usize>) {
        while rest.len() > LONGEST {
            let cut = self.space_before(rest.start, rest.start + TARGET);
            self.add(rest.start..cut);
            self.close();
            rest.start = cut;
        }
        self.add(rest);
    }

    /// The last place to cut within a stretch: behind a space, else between two characters.
    fn space_before(&self, start: usize, mut end: usize) -> usize {
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let stretch = &self.text[start..end];
        stretch
            .rfind(char::is_whitespace)
            .filter(|at| *at > 0)
            .map_or(end, |at| start + at)
    }

    fn add(&mut self, piece: Range<usize>) {
        let length = self.open_length();
        if length >= LEAST && length + piece.len() > TARGET {
            self.close();
        }
        let start = self.open.as_ref().map_or(piece.start, |open| open.start);
        self.open = Some(start..piece.end);
    }

    fn open_length(&self) -> usize {
        self.open.as_ref().map_or(0, ExactSizeIterator::len)
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let content = &self.text[open.clone()];
        let start = open.start + content.len() - content.trim_start().len();
        let end = start + content.trim().len();
        if start < end {
            self.out.push(start..end);
        }
    }
}

/// Sentences of ASCII: they end behind a full stop, question or exclamation mark and white space, unless a lower-case
/// letter follows.
fn ascii_sentences(content: &str) -> Vec<Range<usize>> {
    let bytes = content.as_bytes();
    let mut out = Vec::new();
    let mut start = 0;
    for at in 1..bytes.len() {
        let ends = matches!(bytes[at - 1], b'.' | b'?' | b'!') && bytes[at].is_ascii_whitespace();
        let goes_on = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        if ends && !goes_on {
            out.push(start..at + 1);
            start = at + 1;
        }
    }
    if start < bytes.len() {
        out.push(start..bytes.len());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<&str> {
        passages(text).into_iter().map(|at| &text[at]).collect()
    }

    #[test]
    fn short_lines_stand_together_and_long_paragraphs_are_cut_at_sentences() {
        assert_eq!(
            read("# Report\n\nThe hose burst.\n"),
            ["# Report\n\nThe hose burst."]
        );
        let long = "The wall of this room was found to be wet all over on that day. ".repeat(12);
        for passage in read(&long) {
            assert!(
                passage.starts_with("The wall") && passage.ends_with("day."),
                "{passage}"
            );
            assert!(passage.len() <= TARGET, "{}", passage.len());
        }
        assert_eq!(read(" \n\n\t"), [""; 0]);
    }

    #[test]
    fn a_text_without_spaces_is_cut_all_the_same() {
        let long = "水".repeat(1_000);
        let cut = read(&long);
        assert!(cut.len() > 1 && cut.iter().all(|one| one.len() <= LONGEST));
        assert_eq!(cut.concat(), long);
    }

    proptest! {
        #[test]
        fn every_character_lies_in_exactly_one_passage(text in "([a-z .é日。👍]{0,300}[\r\n]{0,3}){0,8}|\\PC{0,2000}") {
            let mut covered = String::new();
            let mut end = 0;
            for at in passages(&text) {
                prop_assert!(at.start >= end && at.start < at.end);
                end = at.end;
                covered.push_str(&text[at]);
            }
            let solid = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(solid(&covered), solid(&text));
        }
    }
}
