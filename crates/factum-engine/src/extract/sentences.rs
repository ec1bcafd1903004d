//! Sentences of a text in any language and any format read as text, as exact byte ranges.
//!
//! Two steps. First the *lines* are sorted into kinds (heading, list item, table or CSV row,
//! `Label: value`, prose) and joined into *blocks*; then each block of prose is cut at the
//! sentence boundaries of Unicode Standard Annex #29. The annex knows no abbreviations and breaks
//! at every line end, so line ends inside a block are shown to it as spaces, and its cuts after
//! `Dr.`, `Nr.`, initials and ordinals are taken back. A missed cut costs a reader half a line; a
//! wrong one makes a claim that says something else, so in doubt pieces stay together.
//!
//! Whether a line end inside a paragraph is a wrap or was meant (an address, a signature) is
//! decided as a typesetter would: had the next word fitted on the line, the break was meant.

use std::collections::BTreeMap;
use std::ops::Range;

mod breaks;
mod lines;

pub(super) use breaks::is_unspaced;
use breaks::{LEAST_WEIGHT, pieces, weight};
use lines::{
    Kind, Line, WIDE, columns, heading_text, label, lines_of, repeated_labels, trimmed, trimmed_of,
};

/// The longest sentence handed on, in characters; longer ones are cut at a clause boundary.
const LONGEST: usize = 600;
/// A clause shorter than this is no sentence worth cutting off.
const SHORTEST_CLAUSE: usize = 40;
/// Below this width a paragraph is a set of lines (address, verse), not wrapped prose.
const NARROW: usize = 30;

/// A sentence, table row or `Label: value` line of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// Where it stands, in bytes of the text; without white space and markers at either end.
    pub bytes: Range<usize>,
    /// The nearest heading line above it in the same text, without its marks.
    pub heading: Option<Range<usize>>,
}

/// Where the sentences of a plain paragraph stand: all of it, without gaps. Cuts after abbreviations, initials and
/// ordinals are taken back, as in [`sentences`]; nothing is left out.
pub fn sentence_bounds(text: &str) -> Vec<Range<usize>> {
    pieces(text)
}

/// The sentences of `text` in order, without overlaps.
///
/// Left out: headings, rules, fence lines, greetings, lists of links, pure punctuation and
/// fragments of fewer than three words (six characters in scripts without spaces) that are no
/// `Label: value` lines.
pub fn sentences(text: &str) -> Vec<Sentence> {
    let lines = lines_of(text);
    let speakers = repeated_labels(text, &lines);
    let mut out = Vec::new();
    let mut heading = None;
    let mut first = 0;
    while let Some(line) = lines.get(first) {
        let mut end = first + 1;
        match line.kind {
            Kind::Blank | Kind::Skip => {}
            Kind::Heading => heading = Some(heading_text(text, &line.at)),
            _ => {
                end = block_end(text, &lines, first);
                let block = Block {
                    text,
                    lines: &lines[first..end],
                    heading: heading.as_ref(),
                };
                block.emit(&speakers, &mut out);
            }
        }
        first = end;
    }
    out
}

fn block_end(text: &str, lines: &[Line], first: usize) -> usize {
    let mut end = first + 1;
    while let Some(next) = lines.get(end) {
        let last = &lines[end - 1];
        let joins = match (lines[first].kind, next.kind) {
            (Kind::Text, Kind::Definition) => end == first + 1,
            (Kind::Text | Kind::Item | Kind::Definition, Kind::Text) => !is_meant(text, last, next),
            (Kind::Label, Kind::Text) => last.width >= WIDE && !is_meant(text, last, next),
            _ => false,
        };
        if !joins || last.quoted != next.quoted {
            break;
        }
        end += 1;
    }
    end
}

/// Whether the line end between two lines of prose was meant, rather than a wrap.
fn is_meant(text: &str, last: &Line, next: &Line) -> bool {
    let following = &text[next.at.clone()];
    if following.starts_with(char::is_lowercase) {
        return false;
    }
    let word = match following.chars().next() {
        Some(c) if is_unspaced(c) => 2,
        _ => 1 + columns(following.split_whitespace().next().unwrap_or("")),
    };
    last.measure < NARROW || last.width + word <= last.measure
}

struct Block<'a> {
    text: &'a str,
    lines: &'a [Line],
    heading: Option<&'a Range<usize>>,
}

impl Block<'_> {
    fn emit(&self, speakers: &BTreeMap<&str, usize>, out: &mut Vec<Sentence>) {
        let [first, ..] = self.lines else { return };
        let last = self.lines.last().unwrap_or(first);
        let whole = first.at.start..last.at.end;
        if first.kind == Kind::Row {
            let bar = |c: char| c.is_whitespace() || c == '|';
            let row = trimmed_of(self.text, whole, bar);
            return self.push_cut(row, false, out);
        }
        let content = &self.text[whole.clone()];
        if is_greeting(content) || (first.kind == Kind::Item && is_link(content)) {
            return;
        }
        let definition = self
            .lines
            .get(1)
            .is_some_and(|line| line.kind == Kind::Definition);
        let keep = definition
            || first.kind == Kind::Label
                && label(content).is_some_and(|end| {
                    let (name, value) = content.split_at(end);
                    !speakers.contains_key(name)
                        || value.contains(|c: char| c.is_ascii_digit())
                        || weight(value) >= LEAST_WEIGHT
                });
        // A speaker's `Yes.` stays out, though its label makes up the weight.
        if first.kind == Kind::Label && !keep {
            return;
        }
        let shown = self.as_one_line(&whole);
        for (number, piece) in pieces(&shown).into_iter().enumerate() {
            let piece = whole.start + piece.start..whole.start + piece.end;
            self.push_cut(trimmed(self.text, piece), keep && number == 0, out);
        }
    }

    /// The block with what stands between its lines (line ends, indents, `>`) shown as spaces, so
    /// that offsets stay and UAX #29 sees no paragraph separator.
    fn as_one_line(&self, whole: &Range<usize>) -> String {
        let mut shown = String::with_capacity(whole.len());
        let mut end = whole.start;
        for line in self.lines {
            shown.extend(std::iter::repeat_n(' ', line.at.start - end));
            shown.push_str(&self.text[line.at.clone()]);
            end = line.at.end;
        }
        shown
    }

    fn push_cut(&self, at: Range<usize>, keep: bool, out: &mut Vec<Sentence>) {
        let mut rest = at;
        while let Some(over) = self.text[rest.clone()].char_indices().nth(LONGEST) {
            let Some(cut) = clause_end(&self.text[rest.start..rest.start + over.0]) else {
                return;
            };
            self.push(trimmed(self.text, rest.start..rest.start + cut), keep, out);
            let mark = self.text[rest.start + cut..]
                .chars()
                .next()
                .map_or(1, char::len_utf8);
            rest = trimmed(self.text, rest.start + cut + mark..rest.end);
        }
        self.push(rest, keep, out);
    }

    fn push(&self, bytes: Range<usize>, keep: bool, out: &mut Vec<Sentence>) {
        if !bytes.is_empty() && (keep || weight(&self.text[bytes.clone()]) >= LEAST_WEIGHT) {
            out.push(Sentence {
                bytes,
                heading: self.heading.cloned(),
            });
        }
    }
}

/// Where the last clause ends that fits: at a semicolon if there is one, else at a comma.
fn clause_end(window: &str) -> Option<usize> {
    let ends = |marks: [char; 3], wide: [char; 3]| {
        window.char_indices().rev().find(|(at, c)| {
            let after = &window[at + c.len_utf8()..];
            let apart = wide.contains(c) || after.starts_with(char::is_whitespace);
            (marks.contains(c) || wide.contains(c)) && apart && *at >= SHORTEST_CLAUSE
        })
    };
    let semicolon = ends([';', ';', '؛'], ['；', '；', '；']);
    let comma = || ends([',', '،', '|'], ['，', '、', '，']);
    semicolon.or_else(comma).map(|(at, _)| at)
}

/// A short line that ends in a comma opens or closes a letter, in every language that does so.
fn is_greeting(content: &str) -> bool {
    content.ends_with([',', '，'])
        && content.split_whitespace().nth(6).is_none()
        && content.len() < 80
}

/// A list item that is only a Markdown link, as in a table of contents.
fn is_link(content: &str) -> bool {
    content.starts_with('[')
        && content.ends_with(')')
        && content.matches("](").count() == 1
        && content.find(')') == Some(content.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<&str> {
        sentences(text)
            .into_iter()
            .map(|sentence| &text[sentence.bytes])
            .collect()
    }

    #[test]
    fn wrapped_lines_are_one_sentence_with_their_line_ends() {
        let text = "The expert visited the flat on\r\nMonday and found the hose.\r\nIt had failed there.\r\n";
        let read = read(text);
        assert_eq!(
            read[0],
            "The expert visited the flat on\r\nMonday and found the hose."
        );
        assert_eq!(read[1], "It had failed there.");
    }

    #[test]
    fn abbreviations_initials_and_ordinals_do_not_end_a_sentence() {
        for text in [
            "We met Dr. Huber at No. 14 Mill Lane.",
            "The report by J. R. Smith came late.",
            "Am 3. März kam z. B. Herr Dr. Huber gem. Abs. 2 Nr. 3 BGB.",
            "Das Urteil des 2. Senats vom 26. Oktober 1994 (ABl. EG Nr. L 280) gilt.",
            "See Art. IV of the policy, i.e. the one sent by Acme Ltd. in 2025.",
            "\"Are you sure?\" she asked.",
        ] {
            assert_eq!(read(text), [text]);
        }
    }

    #[test]
    fn years_and_numbers_do_end_a_sentence() {
        let text = "That was in 2026. Nothing came after it. The bill was EUR 500. He paid it.";
        assert_eq!(read(text).len(), 4);
    }

    #[test]
    fn headings_are_left_out_and_named_below() {
        let text = "# Cause ##\nThe hose failed here.\n\nExtent\n------\nThe floor is wet.\n\nREPAIR COSTS\n\nThey are not known.";
        let found: Vec<_> = sentences(text)
            .into_iter()
            .map(|s| (&text[s.bytes], &text[s.heading.unwrap_or(0..0)]))
            .collect();
        assert_eq!(found[0], ("The hose failed here.", "Cause"));
        assert_eq!(found[1], ("The floor is wet.", "Extent"));
        assert_eq!(found[2], ("They are not known.", "REPAIR COSTS"));
    }

    #[test]
    fn label_lines_and_list_items_stand_alone_without_their_marks() {
        let text = "Date of loss: 3 March 2026\nSum: EUR 5\n- The floor is wet\n  under the sink\n2. The wall is dry\n> > (3) The lamp is off\nThe door is shut.";
        assert_eq!(
            read(text),
            [
                "Date of loss: 3 March 2026",
                "Sum: EUR 5",
                "The floor is wet\n  under the sink",
                "The wall is dry",
                "The lamp is off",
                "The door is shut.",
            ]
        );
    }

    #[test]
    fn rows_are_sentences_and_rules_fences_and_table_heads_are_not() {
        let text = "| Item | Cost here now |\n|---|--:|\n| New floor. Oak | EUR 3.00 |\n\nhose,2 pieces,45.00\n\n```\nlet it be so\n```\n{\"a\": \"two words. And\"}";
        assert_eq!(
            read(text),
            [
                "New floor. Oak | EUR 3.00",
                "hose,2 pieces,45.00",
                "let it be so",
                "{\"a\": \"two words. And\"}",
            ]
        );
    }

    #[test]
    fn greetings_signatures_links_and_fragments_are_left_out() {
        let text = "Dear Ms Hartmann,\nWe write to you about the flood of your kitchen floor in March.\n\nKind regards,\nPaula Berg\nClaims\n\n- [Go to the table of costs](#costs)\n\n...\n";
        let kept = ["We write to you about the flood of your kitchen floor in March."];
        assert_eq!(read(text), kept);
    }

    #[test]
    fn short_answers_of_speakers_are_left_out_unless_they_hold_a_number() {
        let text = "Mary: Yes.\nMary: On the 3rd.\nMary: I saw the water first.\n";
        assert_eq!(
            read(text),
            ["Mary: On the 3rd.", "Mary: I saw the water first."]
        );
    }

    #[test]
    fn chinese_sentences_end_at_their_own_stops() {
        let text = "损失日期：2026年3月3日\n厨房水槽下面的软管破裂了。保险公司支付维修费用。好的。";
        assert_eq!(
            read(text),
            [
                "损失日期：2026年3月3日",
                "厨房水槽下面的软管破裂了。",
                "保险公司支付维修费用。"
            ]
        );
    }

    #[test]
    fn front_matter_and_comments_say_nothing() {
        let text = "---\ntitle: The policy of the house\n---\n<!-- a note to\nthe editors of it -->\nThe house is insured.";
        assert_eq!(read(text), ["The house is insured."]);
    }

    #[test]
    fn a_very_long_sentence_is_cut_at_a_clause_or_left_out() {
        let clause = "the floor was wet and ".repeat(12);
        let text = format!("So {clause}cold; {clause}cold, {clause}cold.");
        let cut = read(&text);
        assert!(cut.len() >= 2 && cut.iter().all(|s| s.chars().count() <= LONGEST));
        assert!(
            cut.iter()
                .all(|s| s.trim_end_matches('.').ends_with("cold")),
            "{cut:?}"
        );
        assert!(read(&"water ".repeat(200)).is_empty());
        assert!(read(&"x".repeat(2_000)).is_empty());
    }

    proptest! {
        #[test]
        fn ranges_are_ordered_trimmed_and_inside_the_text(
            text in "(\\PC|[-#>|:.,;`\"(){}\r\n\t ]|[aB1§]|Dr\\. |word |Label: |。|水|\u{feff}){0,200}"
        ) {
            let mut end = 0;
            for Sentence { bytes, heading } in sentences(&text) {
                prop_assert!(bytes.start >= end && bytes.start < bytes.end);
                let sentence = text.get(bytes.clone());
                prop_assert!(sentence.is_some_and(|s| s.trim() == s && s.chars().count() <= LONGEST));
                let above = heading.clone().is_none_or(|h| h.end <= bytes.start && text.get(h).is_some());
                prop_assert!(above);
                end = bytes.end;
            }
        }
    }
}
