//! Where the sentences of a block end: UAX #29, with its needless cuts taken back.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// Least weight of a sentence: a word counts two, a character of an unspaced script one.
pub(super) const LEAST_WEIGHT: usize = 6;

/// UAX #29's pieces, with its cuts after abbreviations, initials and ordinals taken back.
pub(super) fn pieces(shown: &str) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for (start, piece) in shown.split_sentence_bound_indices() {
        let end = start + piece.len();
        match out.last_mut() {
            Some(last) if belongs_together(&shown[last.clone()], piece) => last.end = end,
            _ => out.push(start..end),
        }
    }
    out
}

fn belongs_together(before: &str, after: &str) -> bool {
    if before.ends_with(['\u{85}', '\u{2028}', '\u{2029}', '\n', '\r']) {
        return false;
    }
    let after = after.trim_start();
    let Some(first) = after.chars().next() else {
        return true;
    };
    if first.is_lowercase() {
        return true;
    }
    let Some(stem) = before.trim_end().strip_suffix('.') else {
        return false;
    };
    // Looking back a bounded way keeps a long run of joins linear.
    let near = stem
        .char_indices()
        .rev()
        .nth(40)
        .map_or(stem, |(at, _)| &stem[at..]);
    let mut words = near.rsplit(|c: char| c.is_whitespace() || "([{\"'„“”‘»«/".contains(c));
    let token = words.next().unwrap_or("").trim_end_matches('\\');
    let next = after.split_whitespace().next().unwrap_or("");
    if !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit()) {
        let lead = words
            .find(|word| !word.is_empty())
            .unwrap_or("")
            .to_lowercase();
        // `1.` alone numbers what follows; `3. März`, `am 3. Werktag` are ordinals.
        return token.len() <= 3 && token.len() == stem.trim_start().len()
            || token.len() <= 2 && (is_month(next) || ORDINAL_LEADS.contains(&lead.as_str()));
    }
    let mut letters = token.chars();
    let single = letters.next().filter(|_| letters.next().is_none());
    if single.is_some_and(|c| c.is_alphabetic() && !is_unspaced(c) && c != 'I') {
        return true;
    }
    let token = token.to_lowercase();
    if ABBREVIATIONS.contains(&token.as_str()) {
        return true;
    }
    let numbered = next.contains(|c: char| c.is_ascii_digit())
        || next
            .trim_end_matches(['.', ',', ')'])
            .chars()
            .all(|c| "IVXLC".contains(c));
    let short = token.chars().count() <= 4 && token.chars().all(char::is_alphabetic);
    // `(ABl. EG Nr. L 39)`: few sentences end inside a parenthesis, many abbreviations do.
    if short && near.rfind('(') > near.rfind(')') {
        return true;
    }
    numbered && NUMBERED.contains(&token.as_str()) || short && first.is_ascii_digit()
}

/// Abbreviations that never end a sentence, whatever follows.
const ABBREVIATIONS: &[&str] = &[
    "dr", "mr", "mrs", "ms", "messrs", "prof", "rev", "hon", "capt", "sgt", "lt", "col", "gen",
    "st", "mme", "mlle", "sra", "dra", "hr", "fr", "hrn", "dipl", "ing", "med", "jur", "vgl",
    "bzw", "ggf", "evtl", "ca", "inkl", "zzgl", "sog", "gem", "i.v.m", "z.b", "d.h", "u.a", "o.ä",
    "i.s.d", "i.d.r", "e.g", "i.e", "cf", "vs", "approx", "einschl", "insb", "bes", "mag", "mons",
];
/// Abbreviations that stand before a number.
const NUMBERED: &[&str] = &[
    "no", "nos", "nr", "nrn", "abs", "art", "ziff", "rn", "rdnr", "rz", "pp", "para", "paras",
    "sec", "fig", "figs", "vol", "ch", "cl", "tel", "bd", "lit", "buchst", "abb", "anl", "kap",
    "ref", "az", "ext", "núm", "num", "cap", "n°", "tit", "par", "sect", "bekl", "fn", "jan",
    "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "okt", "nov", "dec", "dez",
];
/// Words before a German ordinal.
const ORDINAL_LEADS: &[&str] = &[
    "am", "vom", "zum", "im", "der", "den", "dem", "des", "das", "die", "bis", "seit", "ab",
    "beim", "jeder", "jeden",
];
/// Beginnings of month names in languages that write ordinal dates (German, Nordic, Czech,
/// Polish, Slovene, Finnish, Hungarian write most of these capitalised or joined by case alone).
const MONTHS: &[&str] = &[
    "jan", "jän", "feb", "mär", "mar", "apr", "mai", "maj", "jun", "jul", "aug", "sep", "okt",
    "oct", "nov", "dez", "dec",
];

pub(super) fn is_month(word: &str) -> bool {
    let name: String = word
        .chars()
        .take_while(|c| c.is_alphabetic())
        .take(10)
        .collect();
    let name = name.to_lowercase();
    (3..=9).contains(&name.chars().count()) && MONTHS.iter().any(|month| name.starts_with(month))
}

/// Scripts written without spaces, where a character rather than a word is the unit.
pub(in super::super) fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}')
}

/// Words count two, characters of unspaced scripts one; counting stops once it is enough.
pub(super) fn weight(sentence: &str) -> usize {
    let mut sum = 0;
    for word in sentence.unicode_words() {
        let wide = word
            .chars()
            .take(LEAST_WEIGHT)
            .filter(|c| is_unspaced(*c))
            .count();
        sum += if wide > 0 { wide } else { 2 };
        if sum >= LEAST_WEIGHT {
            break;
        }
    }
    sum
}
