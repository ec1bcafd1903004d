//! The words that a text is found by, in the same form for texts and for questions.
//!
//! Letters are lower case and lose their accents; possessive and plural endings of English go; numbers are compared
//! by value as far as they are written in digits. Scripts without spaces (Chinese, Japanese, Korean hanja, Thai,
//! Lao, Burmese, Khmer) are found by single characters and by pairs of neighbours. All other scripts are found by
//! words between spaces or punctuation; no language but English is stemmed.

use std::borrow::Cow;

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

/// Version of the form. An index made under another one has to be made anew.
pub const TERM_VERSION: u32 = 1;

/// Longer words are cut: nobody looks for the end of such a word.
const LONGEST: usize = 60;

/// Calls `each` with each term of `text`, in order, repetitions included.
pub fn each_term(text: &str, mut each: impl FnMut(&str)) {
    let folded = fold(text);
    let mut word = String::new();
    let mut pair: Option<char> = None;
    let mut chars = folded.chars().peekable();
    while let Some(c) = chars.next() {
        if is_unspaced(c) {
            flush(&mut word, &mut each);
            let mut term = String::from(c);
            each(&term);
            if let Some(before) = pair {
                term.insert(0, before);
                each(&term);
            }
            pair = Some(c);
            continue;
        }
        pair = None;
        if c.is_alphanumeric() || is_mark(c) {
            if word.len() < LONGEST {
                word.push(c);
            }
        } else if joins(c, &word, chars.peek().copied()) {
            word.push(c);
        } else {
            flush(&mut word, &mut each);
        }
    }
    flush(&mut word, &mut each);
}

/// The terms of a question: each once, without the words that say nothing where others are left.
pub fn question_terms(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    each_term(text, |term| {
        if !all.iter().any(|known| known == term) {
            all.push(term.to_owned());
        }
    });
    let telling: Vec<String> = all
        .iter()
        .filter(|term| !STOP_WORDS.contains(&term.as_str()))
        .filter(|term| !(is_one_unspaced(term) && all.iter().any(|other| has_pair(other, term))))
        .cloned()
        .collect();
    if telling.is_empty() { all } else { telling }
}

// A pair of characters says more than each of the two.
fn is_one_unspaced(term: &str) -> bool {
    let mut chars = term.chars();
    chars.next().is_some_and(is_unspaced) && chars.next().is_none()
}

fn has_pair(pair: &str, one: &str) -> bool {
    pair.len() > one.len() && pair.chars().all(is_unspaced) && pair.contains(one)
}

fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let decomposed = DecomposingNormalizerBorrowed::new_nfkd()
        .normalize(&text.to_lowercase())
        .into_owned();
    let bare: String = decomposed
        .chars()
        .filter(|c| !matches!(c, '\u{300}'..='\u{36f}'))
        .collect();
    ComposingNormalizerBorrowed::new_nfc()
        .normalize(&bare)
        .into_owned()
}

// Vowel signs of Indic scripts and the like: part of their word.
fn is_mark(c: char) -> bool {
    !c.is_ascii()
        && !c.is_whitespace()
        && matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{487}'
        | '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}' | '\u{670}'
        | '\u{900}'..='\u{903}' | '\u{93a}'..='\u{94f}' | '\u{981}'..='\u{983}' | '\u{9bc}'..='\u{9cd}'
        | '\u{a01}'..='\u{a4d}' | '\u{a81}'..='\u{acd}' | '\u{b01}'..='\u{b4d}' | '\u{b82}'..='\u{bcd}'
        | '\u{c00}'..='\u{c4d}' | '\u{c81}'..='\u{ccd}' | '\u{d00}'..='\u{d4d}' | '\u{200c}' | '\u{200d}')
}

/// Whether a character between two parts of a word belongs to it: `okafor's`, `4,200.50`.
fn joins(c: char, word: &str, next: Option<char>) -> bool {
    let Some(next) = next else { return false };
    match c {
        '\'' | '\u{2019}' => !word.is_empty() && next.is_alphabetic(),
        ',' | '.' => word.ends_with(|c: char| c.is_ascii_digit()) && next.is_ascii_digit(),
        _ => false,
    }
}

fn flush(word: &mut String, each: &mut impl FnMut(&str)) {
    if word.is_empty() {
        return;
    }
    if word.as_bytes()[0].is_ascii_digit() {
        each(&number(word));
    } else {
        let base = word.split(['\'', '\u{2019}']).next().unwrap_or(word);
        let base = if base.len() >= 2 { base } else { word.as_str() };
        each(&stem(base));
    }
    word.clear();
}

/// `4,200` and `4.200` are 4200, `3.50` is 3.5, `03` is 3.
fn number(word: &str) -> String {
    let parts: Vec<&str> = word.split([',', '.']).collect();
    let thousands = parts[1..].iter().all(|part| part.len() == 3);
    let text = if parts.len() == 1 || thousands {
        parts.concat()
    } else {
        let (last, before) = parts.split_last().unwrap_or((&"", &[]));
        let fraction = last.trim_end_matches('0');
        if fraction.is_empty() {
            before.concat()
        } else {
            format!("{}.{fraction}", before.concat())
        }
    };
    let bare = text.trim_start_matches('0');
    if bare.is_empty() || bare.starts_with('.') {
        format!("0{bare}")
    } else {
        bare.to_owned()
    }
}

// Step 1 of M. F. Porter's algorithm in its gentlest form: endings of plural, past and -ing, so that
// `repairs`, `repaired` and `repairing` meet. Words of other languages lose an ending at most, and lose the same
// one in text and question.
fn stem(word: &str) -> Cow<'_, str> {
    if !word.is_ascii() || word.len() < 4 {
        return Cow::Borrowed(word);
    }
    let vowel = |part: &str| part.contains(['a', 'e', 'i', 'o', 'u', 'y']);
    let mut base = word;
    if base.ends_with("sses") {
        return Cow::Borrowed(&base[..base.len() - 2]);
    } else if let Some(rest) = base.strip_suffix("ies") {
        return Cow::Owned(format!("{rest}y"));
    } else if !base.ends_with("ss") && !base.ends_with("us") && !base.ends_with("is") {
        base = base.strip_suffix('s').unwrap_or(base);
    }
    for ending in ["ing", "ed"] {
        let Some(rest) = base
            .strip_suffix(ending)
            .filter(|rest| rest.len() > 2 && vowel(rest))
        else {
            continue;
        };
        let doubled = rest.as_bytes()[rest.len() - 1] == rest.as_bytes()[rest.len() - 2];
        let rest = if doubled && !rest.ends_with(['l', 's', 'z']) {
            &rest[..rest.len() - 1]
        } else {
            rest
        };
        return Cow::Borrowed(rest.strip_suffix('e').unwrap_or(rest));
    }
    let without_e = base.strip_suffix('e').filter(|rest| rest.len() > 2);
    Cow::Borrowed(without_e.unwrap_or(base))
}

/// Scripts written without spaces.
pub fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{30fe}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Words of questions that are in every text, as [`stem`] leaves them: English and German.
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "are", "at", "be", "been", "but", "by", "can", "could", "did", "do", "does",
    "for", "from", "had", "ha", "has", "hav", "he", "her", "his", "how", "i", "if", "in", "into",
    "is", "it", "its", "may", "me", "my", "not", "of", "on", "or", "our", "out", "she", "should",
    "so", "that", "the", "their", "them", "then", "there", "thes", "they", "thi", "this", "thos",
    "to", "up", "wa", "was", "we", "wer", "what", "when", "wher", "which", "who", "whom", "why",
    "will", "with", "would", "you", "your", "us", "about", "doe", "whos", "am", "als", "auf", "au",
    "aus", "bei", "da", "das", "dem", "den", "der", "de", "des", "die", "ein", "ein", "einem",
    "einen", "einer", "er", "es", "fur", "hat", "haben", "ich", "im", "ist", "mit", "nach",
    "nicht", "ob", "sich", "sie", "sind", "um", "und", "uber", "von", "vom", "war", "was", "wann",
    "warum", "wa", "wer", "werden", "wi", "wie", "wir", "wird", "wo", "wurd", "zu", "zum", "zur",
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn terms(text: &str) -> Vec<String> {
        let mut out = Vec::new();
        each_term(text, |term| out.push(term.to_owned()));
        out
    }

    #[test]
    fn forms_of_a_word_meet() {
        for (a, b) in [
            ("repairs", "Repaired"),
            ("repairing", "repair"),
            ("policies", "policy"),
            ("stopped", "stop"),
            ("Okafor's", "OKAFOR"),
            ("Überweisung", "uberweisung"),
            ("caf\u{e9}", "cafe\u{301}"),
            ("4,200", "4200.00"),
            ("03", "3"),
            ("ＡＢＣ", "abc"),
        ] {
            assert_eq!(terms(a), terms(b), "{a} {b}");
        }
        assert_ne!(terms("3.5"), terms("35"));
        assert_ne!(terms("this"), terms("thing"));
        assert_eq!(
            terms("WD-2291 on 2026-03-05"),
            ["wd", "2291", "on", "2026", "3", "5"]
        );
    }

    #[test]
    fn scripts_without_spaces_are_found_by_characters_and_pairs() {
        assert_eq!(terms("水道管 x"), ["水", "道", "水道", "管", "道管", "x"]);
        assert_eq!(question_terms("水道管が"), ["水道", "道管", "管が"]);
        assert_eq!(question_terms("水"), ["水"]);
        assert_eq!(terms("が"), terms("か\u{3099}"));
        assert_eq!(terms("हिन्दी भाषा").len(), 2);
    }

    #[test]
    fn a_question_keeps_what_tells_something() {
        assert_eq!(question_terms("What did the hose cost?"), ["hos", "cost"]);
        // Where nothing else is left, what there is has to do.
        assert_eq!(question_terms("What is it?"), ["what", "is", "it"]);
    }

    proptest! {
        #[test]
        fn any_text_has_terms_that_are_not_empty(text in "\\PC{0,400}") {
            each_term(&text, |term| assert!(!term.is_empty() && term.len() <= 2 * LONGEST));
        }
    }
}
