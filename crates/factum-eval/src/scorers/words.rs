//! The words of a text that carry content, for the question whether two texts speak of the same.

use std::collections::HashSet;

use unicode_segmentation::UnicodeSegmentation as _;

use crate::folded::is_unspaced;

/// Words that any two texts may share.
const EMPTY: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did", "do",
    "does", "for", "from", "had", "has", "have", "he", "her", "him", "his", "i", "if", "in",
    "into", "is", "it", "its", "me", "my", "no", "not", "of", "on", "or", "our", "out", "she",
    "so", "some", "that", "the", "their", "them", "then", "there", "they", "this", "to", "up",
    "us", "was", "we", "were", "what", "when", "which", "who", "will", "with", "would", "you",
    "your", "der", "die", "das", "den", "dem", "des", "ein", "eine", "einen", "einer", "und",
    "oder", "ist", "sind", "war", "wird", "im", "in", "zu", "zum", "zur", "von", "vom", "mit",
    "auf", "für", "nicht", "sich", "es", "er", "sie", "ich", "wir", "le", "la", "les", "un", "une",
    "de", "du", "et", "ou", "est", "que", "qui", "il", "elle", "el", "los", "las", "una", "y",
    "en", "por", "con", "se",
];

/// The content words of a text, lower case; of scripts without spaces, each two letters that stand together.
pub(crate) fn content(text: &str) -> HashSet<String> {
    let mut out = HashSet::new();
    let mut run: Vec<char> = Vec::new();
    for piece in text.split_word_bounds() {
        if piece.chars().next().is_some_and(is_unspaced) {
            run.extend(piece.chars().filter(|&c| is_unspaced(c)));
            continue;
        }
        flush(&mut run, &mut out);
        if !piece.chars().any(char::is_alphanumeric) {
            continue;
        }
        let word = piece.to_lowercase();
        let word = word.trim_end_matches("'s").trim_end_matches("’s");
        if !EMPTY.contains(&word) {
            out.insert(word.to_owned());
        }
    }
    flush(&mut run, &mut out);
    out
}

fn flush(run: &mut Vec<char>, out: &mut HashSet<String>) {
    if let [one] = run[..] {
        out.insert(one.to_string());
    }
    out.extend(run.windows(2).map(|pair| pair.iter().collect::<String>()));
    run.clear();
}
