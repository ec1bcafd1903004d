//! The sentences of a summary, all of it: what a splitter leaves out counts by lines.

use std::ops::Range;

use factum_engine::extract::sentences;

/// Sentences in order, without overlaps, in bytes.
#[derive(Debug)]
pub(super) struct Sentences(Vec<Range<usize>>);

impl Sentences {
    pub(super) fn of(text: &str) -> Self {
        let mut all = Vec::new();
        let mut from = 0;
        for sentence in sentences(text) {
            add_lines(text, from..sentence.bytes.start, &mut all);
            from = sentence.bytes.end;
            all.push(sentence.bytes);
        }
        add_lines(text, from..text.len(), &mut all);
        Self(all)
    }

    pub(super) fn all(&self) -> &[Range<usize>] {
        &self.0
    }

    /// The place of the sentence that holds this byte.
    pub(super) fn at(&self, byte: usize) -> Option<usize> {
        let place = self.0.partition_point(|range| range.end <= byte);
        self.0.get(place).filter(|range| range.start <= byte)?;
        Some(place)
    }
}

fn add_lines(text: &str, gap: Range<usize>, all: &mut Vec<Range<usize>>) {
    let Some(between) = text.get(gap.clone()) else {
        return;
    };
    let mut at = gap.start;
    for line in between.split_inclusive('\n') {
        let from = at + (line.len() - line.trim_start().len());
        let shown = line.trim();
        if shown.chars().any(char::is_alphanumeric) {
            all.push(from..from + shown.len());
        }
        at += line.len();
    }
}
