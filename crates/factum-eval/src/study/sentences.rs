//! The sentences of a news text, and those that speak of the same things as a statement.

use std::cmp::Reverse;
use std::collections::HashSet;

use unicode_segmentation::UnicodeSegmentation as _;

use crate::scorers::content;

/// A sentence with its content words.
pub(super) struct Sentence {
    text: String,
    words: HashSet<String>,
}

/// Cuts a text at sentence ends, also where the space behind one was lost.
pub(super) fn sentences(text: &str) -> Vec<Sentence> {
    let mut spaced = String::with_capacity(text.len() + 64);
    let mut before = [' ', ' '];
    for c in text.chars() {
        let ends = |c: char| matches!(c, '.' | '!' | '?');
        let quoted = matches!(before[1], '"' | '\'' | '”' | '’') && ends(before[0]);
        if c.is_uppercase() && (ends(before[1]) && before[0].is_lowercase() || quoted) {
            spaced.push(' ');
        }
        spaced.push(c);
        before = [before[1], c];
    }
    spaced
        .unicode_sentences()
        .map(|sentence| Sentence {
            text: sentence.trim().to_owned(),
            words: content(sentence),
        })
        .collect()
}

/// The `most` sentences that share the most content words with a statement, in the text's order.
pub(super) fn nearest(all: &[Sentence], statement: &str, most: usize) -> Vec<String> {
    let words = content(statement);
    let mut ranked: Vec<(Reverse<usize>, usize)> = all
        .iter()
        .enumerate()
        .map(|(place, one)| (Reverse(one.words.intersection(&words).count()), place))
        .collect();
    ranked.sort_unstable();
    let mut places: Vec<usize> = ranked.iter().take(most).map(|found| found.1).collect();
    places.sort_unstable();
    places
        .into_iter()
        .map(|place| all[place].text.clone())
        .collect()
}
