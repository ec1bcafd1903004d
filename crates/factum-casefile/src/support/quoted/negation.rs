//! Whether a claim denies what its quotes say, or the other way round.
//!
//! Each sentence of the claim is held against the sentences of the quotes that share most words with it, since a long quote
//! denies many things.

use std::collections::BTreeSet;

use super::Quote;
use super::words::{NEGATIONS, Word};

/// Words that deny what follows them.
const DENIALS: &[&str] = &[
    "deny",
    "denies",
    "denied",
    "denying",
    "refuse",
    "refuses",
    "refused",
    "refusing",
    "reject",
    "rejects",
    "rejected",
    "decline",
    "declines",
    "declined",
    "lack",
    "lacks",
    "lacked",
    "unable",
    "hardly",
    "barely",
    "bestreitet",
    "bestritt",
    "verweigert",
    "verweigerte",
    "weigert",
    "weigerte",
    "abgelehnt",
    "kaum",
    "refusé",
    "nié",
    "niega",
    "negó",
    "rechaza",
    "rechazó",
];
/// Words that deny only before another.
const DENIALS_OF_TWO: &[(&str, &str)] = &[
    ("fail", "to"),
    ("fails", "to"),
    ("failed", "to"),
    ("failing", "to"),
    ("turned", "down"),
    ("turns", "down"),
];
/// Words that report something as past or replaced.
const PAST: &[&str] = &[
    "formerly",
    "previously",
    "superseded",
    "obsolete",
    "withdrawn",
    "revoked",
    "cancelled",
    "canceled",
    "früher",
    "ehemals",
    "überholt",
    "widerrufen",
    "autrefois",
    "anteriormente",
];
/// Words between a negation and what it denies.
const LIGHT: &[&str] = &[
    "yet", "even", "only", "just", "also", "still", "really", "very", "any", "all", "more", "much",
    "too", "ever", "fully", "again", "noch", "mehr", "auch", "ganz", "plus", "encore", "todavía",
    "aún", "más",
];

/// A sentence with so few words of content is denied as a whole.
const SHORT: usize = 8;
/// Words of content on either side of a negation that it may deny.
const REACH: usize = 6;
/// A part of a claim with fewer words of content goes with the next: `Mr.` is no sentence.
const LEAST_PART: usize = 3;

/// Why a claim says the opposite of its quotes, if it does.
pub(super) fn turned_round(claim: &[Word], quotes: &[Quote]) -> Option<String> {
    let sentences: Vec<&[Word]> = quotes.iter().flat_map(Quote::sentences).collect();
    parts(claim)
        .into_iter()
        .find_map(|part| denied(part, &sentences).or_else(|| past(part, &sentences)))
}

fn parts(claim: &[Word]) -> Vec<&[Word]> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (place, word) in claim.iter().enumerate() {
        let part = &claim[start..place];
        if word.first && part.iter().filter(|word| word.has_content()).count() >= LEAST_PART {
            parts.push(part);
            start = place;
        }
    }
    parts.push(&claim[start..]);
    parts
}

fn denied(claim: &[Word], sentences: &[&[Word]]) -> Option<String> {
    let own: Vec<usize> = negations(claim).collect();
    if own.is_empty() {
        let said: BTreeSet<&str> = claim.iter().map(|word| word.stem.as_str()).collect();
        let mut nearest = nearest(claim, sentences).peekable();
        nearest.peek()?;
        return nearest
            .all(|sentence| denies(sentence, &said))
            .then(|| "a cited quote is negated, the claim is not".to_owned());
    }
    let mut in_reach: BTreeSet<&str> = BTreeSet::new();
    let mut any = false;
    for sentence in sentences {
        for place in negations(sentence) {
            any = true;
            in_reach.extend(behind(sentence, place).take(REACH));
            in_reach.extend(before(sentence, place).take(REACH));
        }
    }
    if !any {
        return Some("the claim is negated, no cited quote is".to_owned());
    }
    let is_said = |stem: &str| {
        let mut all = sentences.iter().flat_map(|sentence| sentence.iter());
        all.any(|word| word.stem == stem)
    };
    own.into_iter()
        .filter_map(|place| nearest_content(claim, place))
        .find(|stem| !in_reach.contains(stem) && is_said(stem))
        .map(|stem| {
            let word = claim.iter().find(|word| word.stem == stem);
            let word = word.map_or(stem, |word| word.text.as_str());
            format!("the claim denies {word:?}, no cited quote does")
        })
}

fn past(claim: &[Word], sentences: &[&[Word]]) -> Option<String> {
    let has = |words: &[Word]| {
        let mut all = words.iter();
        all.any(|word| PAST.contains(&word.folded.as_str()))
    };
    if has(claim) {
        return (!sentences.iter().any(|sentence| has(sentence)))
            .then(|| "the claim is reported as past, no cited quote is".to_owned());
    }
    let mut nearest = nearest(claim, sentences).peekable();
    nearest.peek()?;
    nearest
        .all(has)
        .then(|| "a cited quote is reported as past, the claim is not".to_owned())
}

/// The sentences that share most words of content with a claim; none where no sentence shares any.
fn nearest<'a>(claim: &[Word], sentences: &[&'a [Word]]) -> impl Iterator<Item = &'a [Word]> {
    let own: BTreeSet<&str> = claim
        .iter()
        .filter(|word| word.has_content())
        .map(|word| word.folded.as_str())
        .collect();
    let shared = |sentence: &[Word]| {
        let found: BTreeSet<&str> = sentence
            .iter()
            .map(|word| word.folded.as_str())
            .filter(|word| own.contains(word))
            .collect();
        found.len()
    };
    let counts: Vec<usize> = sentences.iter().map(|sentence| shared(sentence)).collect();
    let most = counts.iter().copied().max().unwrap_or(0);
    let found: Vec<&[Word]> = sentences
        .iter()
        .zip(counts)
        .filter(|(_, count)| most > 0 && *count == most)
        .map(|(sentence, _)| *sentence)
        .collect();
    found.into_iter()
}

/// Whether a sentence denies what is said: a short one whatever it denies, a long one where what it denies is among it.
fn denies(sentence: &[Word], said: &BTreeSet<&str>) -> bool {
    let is_short = behind_all(sentence).count() <= SHORT;
    negations(sentence).any(|place| {
        let plain = NEGATIONS.contains(&sentence[place].folded.as_str());
        let is_said = |stem: &str| said.contains(stem);
        (plain && is_short) || nearest_content(sentence, place).is_some_and(is_said)
    })
}

fn negations(words: &[Word]) -> impl Iterator<Item = usize> {
    let at = |place: usize| words.get(place).map_or("", |word| word.folded.as_str());
    (0..words.len()).filter(move |&place| {
        NEGATIONS.contains(&at(place))
            || DENIALS.contains(&at(place))
            || DENIALS_OF_TWO.contains(&(at(place), at(place + 1)))
    })
}

/// What a negation denies: the word of content behind it, or where it stands last, the one before.
fn nearest_content(words: &[Word], place: usize) -> Option<&str> {
    behind(words, place)
        .next()
        .or_else(|| before(words, place).next())
}

fn behind(words: &[Word], place: usize) -> impl Iterator<Item = &str> {
    behind_all(words.get(place + 1..).unwrap_or_default())
}

fn before(words: &[Word], place: usize) -> impl Iterator<Item = &str> {
    let words = words.get(..place).unwrap_or_default();
    words
        .iter()
        .rev()
        .filter(|word| carries(word))
        .map(|word| word.stem.as_str())
}

fn behind_all(words: &[Word]) -> impl Iterator<Item = &str> {
    words
        .iter()
        .filter(|word| carries(word))
        .map(|word| word.stem.as_str())
}

fn carries(word: &Word) -> bool {
    let folded = word.folded.as_str();
    word.has_content() && !LIGHT.contains(&folded) && !DENIALS.contains(&folded)
}

#[cfg(test)]
mod tests {
    use super::super::words::words;
    use super::*;

    fn found(claim: &str, quote: &str) -> Option<String> {
        turned_round(&words(claim), &[Quote::new(quote)])
    }

    #[test]
    fn a_negation_counts_where_it_denies_what_the_claim_says() {
        let quote = "Stewart, who played in a record 133 Tests for England and is director of cricket at Surrey, \
                     has not been approached by the board.";
        assert_eq!(
            found("Stewart is director of cricket at Surrey.", quote),
            None
        );
        assert!(found("Stewart has been approached by the board.", quote).is_some());
    }

    #[test]
    fn a_short_sentence_is_denied_as_a_whole() {
        for (claim, quote) in [
            (
                "Der Teppich ist gedeckt.",
                "Die Police deckt den Teppich nicht ab.",
            ),
            ("The claim was paid.", "The claim has not yet been paid."),
            (
                "The insurer paid the carpet.",
                "In no case will the insurer pay for the carpet.",
            ),
        ] {
            assert!(found(claim, quote).is_some(), "{claim}");
        }
    }

    #[test]
    fn other_words_deny_too() {
        let quote = "The tenant failed to notify the insurer of the leak within fourteen days of the first damage, \
                     so that the insurer refused payment.";
        assert!(
            found(
                "The tenant had to notify the insurer within fourteen days.",
                quote
            )
            .is_some()
        );
        assert!(found("The insurer made payment.", "The insurer refused payment.").is_some());
        assert_eq!(
            found(
                "The insurer did not make payment.",
                "The insurer refused payment."
            ),
            None
        );
        assert_eq!(
            found("The pump stopped.", "The pump failed on 3 March."),
            None
        );
        assert!(
            found(
                "The insurer rejected the claim.",
                "The insurer paid the claim."
            )
            .is_some()
        );
    }

    #[test]
    fn a_claim_may_not_deny_something_else_than_its_quotes() {
        let quote = "The kitchen floor, which was laid in 2019 by a firm from Leeds, is covered up to the sum insured. \
                     Carpets are not covered.";
        assert!(
            found(
                "The kitchen floor was not laid by a firm from Leeds.",
                quote
            )
            .is_some()
        );
        assert_eq!(found("Carpets are not covered.", quote), None);
        assert_eq!(found("There is no cover for carpets.", quote), None);
    }

    #[test]
    fn each_sentence_of_a_claim_is_looked_at() {
        let quote =
            "The hose burst in the kitchen. The carpet is not covered. The floor is covered.";
        assert!(
            found(
                "The hose burst in the kitchen. The carpet is covered.",
                quote
            )
            .is_some()
        );
        assert_eq!(
            found(
                "The hose burst in the kitchen. The floor is covered.",
                quote
            ),
            None
        );
        assert_eq!(
            found("Mr. Brandt did not pay.", "Mr Brandt did not pay."),
            None
        );
    }
}
