//! The words of claims and quotes, as the `quoted` check compares them.
//!
//! Words end where Unicode Standard Annex #29 says. They are compared case folded; numbers by value.

use unicode_segmentation::UnicodeSegmentation as _;

/// Words without content, in English, German, French and Spanish.
const EMPTY: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did", "do",
    "does", "for", "from", "had", "has", "have", "he", "her", "him", "his", "i", "if", "in",
    "into", "is", "it", "its", "me", "my", "of", "on", "or", "our", "out", "she", "so", "some",
    "that", "the", "their", "them", "then", "there", "they", "this", "to", "up", "us", "was", "we",
    "were", "what", "when", "which", "who", "will", "with", "would", "you", "your", "der", "die",
    "das", "den", "dem", "des", "ein", "eine", "einen", "einem", "einer", "eines", "und", "oder",
    "ist", "sind", "war", "wurde", "wird", "im", "zu", "zum", "zur", "von", "vom", "mit", "auf",
    "für", "sich", "es", "er", "sie", "ich", "wir", "le", "la", "les", "un", "une", "de", "du",
    "et", "ou", "est", "que", "qui", "il", "elle", "el", "los", "las", "una", "y", "en", "por",
    "con", "se", "del",
];

/// Words that turn a sentence round, in the same languages.
pub(super) const NEGATIONS: &[&str] = &[
    "not", "no", "never", "neither", "nor", "none", "without", "cannot", "nicht", "kein", "keine",
    "keinen", "keiner", "keines", "nie", "niemals", "ohne", "ne", "pas", "jamais", "sans", "aucun",
    "aucune", "nunca", "sin", "ningún",
];

/// Letters of a word that count, so that endings make no difference.
const STEM: usize = 5;

/// A word at its place in a text.
#[derive(Debug, Clone)]
pub(super) struct Word {
    /// As it stands there.
    pub(super) text: String,
    /// As it is compared.
    pub(super) folded: String,
    /// As it is compared where endings make no difference.
    pub(super) stem: String,
    /// It opens a sentence, so that its capital says nothing.
    pub(super) first: bool,
    /// Only space or a hyphen parts it from the word before, or the point of an abbreviation.
    pub(super) joined: bool,
}

impl Word {
    fn new(text: &str, first: bool, joined: bool) -> Self {
        let folded = folded(text);
        Self {
            text: text.to_owned(),
            stem: stem(&folded),
            folded,
            first,
            joined,
        }
    }

    /// A number or a name: what must be in a quote.
    pub(super) fn matters(&self) -> bool {
        // Capitals beyond the first letter are a name even where a sentence begins.
        let inner = self.text.chars().skip(1).any(char::is_uppercase);
        self.is_number() || inner || (self.is_capital() && !self.first)
    }

    pub(super) fn is_number(&self) -> bool {
        self.text.chars().any(char::is_numeric)
    }

    pub(super) fn is_name(&self) -> bool {
        self.matters() && !self.is_number()
    }

    pub(super) fn is_capital(&self) -> bool {
        self.text.chars().any(char::is_uppercase)
    }

    /// It says something: not every text has it, and it does not just turn a sentence round.
    pub(super) fn has_content(&self) -> bool {
        !EMPTY.contains(&self.folded.as_str()) && !NEGATIONS.contains(&self.folded.as_str())
    }
}

/// The words of a text in their order.
pub(super) fn words(text: &str) -> Vec<Word> {
    let mut out: Vec<Word> = Vec::new();
    let (mut first, mut joined) = (true, false);
    let mut before = "";
    let mut pieces = text.split_word_bounds().peekable();
    while let Some(piece) = pieces.next() {
        // `No. 5` is a number, not a negation.
        if piece.eq_ignore_ascii_case("no") && pieces.peek() == Some(&".") {
            first = false;
            pieces.next();
        } else if piece == "s" && matches!(before, "'" | "’") {
            // A genitive that is set apart: `Ann 's`.
        } else if piece.chars().any(char::is_alphanumeric) {
            for part in unglued(piece) {
                out.push(Word::new(part, first, joined));
                (first, joined) = (true, false);
            }
            (first, joined) = (false, true);
        } else {
            first |= piece.contains(['.', '!', '?', ':', '。', '！', '？']);
            let short = out.last().is_some_and(|word| word.text.len() <= 3);
            joined &=
                piece.chars().all(|c| c.is_whitespace() || c == '-') || (piece == "." && short);
        }
        before = piece;
    }
    out
}

/// `hose.The` is two words: the space behind a sentence was lost.
fn unglued(piece: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (place, _) in piece.match_indices('.') {
        let ends = piece[..place]
            .chars()
            .next_back()
            .is_some_and(char::is_lowercase);
        let begins = piece[place + 1..]
            .chars()
            .next()
            .is_some_and(char::is_uppercase);
        if ends && begins {
            parts.push(&piece[start..place]);
            start = place + 1;
        }
    }
    parts.push(&piece[start..]);
    parts
}

fn stem(folded: &str) -> String {
    if !folded.chars().all(char::is_alphabetic) {
        return folded.to_owned();
    }
    // `opens` is `open`, and `gas` stays.
    let bare = folded.strip_suffix('s').unwrap_or(folded);
    let whole = if bare.chars().count() > 2 {
        bare
    } else {
        folded
    };
    whole.chars().take(STEM).collect()
}

/// Lower case; of numbers, no thousands separators and no trailing zeros behind the point; `isn't` is `not`, `Ann's` is
/// `Ann`, and letters that are spelled out (`U.S`, `L_C_D_`) are one word.
pub(super) fn folded(word: &str) -> String {
    let lower = word.to_lowercase();
    if lower.ends_with("n't") || lower.ends_with("n’t") {
        return "not".to_owned();
    }
    let bare = lower
        .strip_suffix("'s")
        .or_else(|| lower.strip_suffix("’s"));
    let lower = bare.unwrap_or(&lower).to_owned();
    let is_spelled = |c: char| c.is_alphabetic() || matches!(c, '.' | '_');
    if lower.contains(['.', '_']) && lower.chars().all(is_spelled) {
        return lower.replace(['.', '_'], "");
    }
    if !word.chars().any(|c| c.is_ascii_digit()) {
        return lower;
    }
    let parts: Vec<&str> = word.split([',', '.', '\'', '’']).collect();
    let all_digits = parts
        .iter()
        .all(|part| part.chars().all(|c| c.is_ascii_digit()));
    if parts.len() == 1 || !all_digits {
        return lower;
    }
    let (last, before) = parts.split_last().unwrap_or((&"", &[]));
    if last.len() == 3 {
        return parts.concat();
    }
    let fraction = last.trim_end_matches('0');
    let whole = before.concat();
    if fraction.is_empty() {
        whole
    } else {
        format!("{whole}.{fraction}")
    }
}

/// The number and the letters of `7pm`, `330million` or `25th`.
pub(super) fn number_and_unit(folded: &str) -> Option<(String, &str)> {
    let end = folded.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ','))?;
    let (number, unit) = folded.split_at(end);
    let whole = number.starts_with(|c: char| c.is_ascii_digit())
        && !unit.is_empty()
        && unit.chars().all(char::is_alphabetic);
    whole.then(|| (self::folded(number), unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded_words(text: &str) -> Vec<String> {
        words(text).into_iter().map(|word| word.folded).collect()
    }

    #[test]
    fn numbers_are_compared_by_value() {
        for (a, b) in [
            ("1,250", "1250.00"),
            ("3.50", "3.5"),
            ("1.250.000", "1250000"),
        ] {
            assert_eq!(folded(a), folded(b), "{a} {b}");
        }
        assert_ne!(folded("3.5"), folded("35"));
        assert_ne!(folded("12"), folded("120"));
    }

    #[test]
    fn a_number_is_told_from_its_unit() {
        assert_eq!(number_and_unit("7pm"), Some(("7".to_owned(), "pm")));
        assert_eq!(
            number_and_unit("1,250eur"),
            Some(("1250".to_owned(), "eur"))
        );
        for whole in ["7", "pm", "7pm3", ".pm", "3.5"] {
            assert_eq!(number_and_unit(whole), None, "{whole}");
        }
    }

    #[test]
    fn a_lost_space_behind_a_sentence_is_found_again() {
        assert_eq!(
            folded_words("a new hose.The U.S. market"),
            ["a", "new", "hose", "the", "us", "market"]
        );
        assert!(words("a new hose.The rest")[3].first);
    }

    #[test]
    fn a_genitive_that_is_set_apart_is_no_word() {
        assert_eq!(folded_words("Ann 's hose"), ["ann", "hose"]);
        assert_eq!(folded_words("Ann's hose"), ["ann", "hose"]);
    }

    #[test]
    fn a_comma_parts_words_and_the_point_of_a_title_does_not() {
        let joined = |text| -> Vec<bool> { words(text).iter().map(|word| word.joined).collect() };
        assert_eq!(joined("Ms. Okafor, Brandt"), [false, true, false]);
        assert_eq!(joined("the hose. Brandt"), [false, true, false]);
    }
}
