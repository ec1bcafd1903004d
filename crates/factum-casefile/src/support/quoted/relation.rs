//! Whether the words of a claim stand together in its quotes as they stand in the claim.
//!
//! Single words say what a text is about. Words beside each other say something of it: a number of its noun, a first name of
//! a surname, a verb of its object.

use std::collections::{BTreeMap, BTreeSet};

use super::Quote;
use super::words::Word;

/// Words between a number and its neighbour, at most.
const BY_A_NUMBER: usize = 4;
/// Words between the parts of a name, at most.
const IN_A_NAME: usize = 5;
/// Words of content between two that belong together, at most.
const WINDOW: usize = 6;
/// Words in a row, as in one sentence of a quote, that count as copied.
const RUN: usize = 4;
/// Of a copied claim, so many words stand in such rows, in percent.
const COPIED: usize = 70;

/// Words that stand for something else.
const PRONOUNS: &[&str] = &[
    "i", "we", "you", "he", "she", "it", "they", "who", "which", "that", "this", "these", "those",
    "his", "her", "their", "its", "my", "our", "ich", "wir", "er", "sie", "es", "ihr", "je",
    "nous", "il", "elle", "ils", "elles", "on", "yo", "nosotros", "él", "ella", "ellos",
];

/// Words by which a speaker speaks of himself.
const FIRST_PERSON: &[&str] = &[
    "i", "we", "my", "our", "ich", "wir", "je", "nous", "yo", "nosotros",
];

/// Where each word of a quote stands, counted over all words and over those of content.
pub(super) struct Places {
    all: BTreeMap<String, Vec<usize>>,
    content: BTreeMap<String, Vec<usize>>,
    /// Words of content right behind a pronoun.
    behind_pronoun: BTreeSet<String>,
    /// Words that are a name somewhere, and words that begin with a small letter somewhere.
    names: BTreeSet<String>,
    plain: BTreeSet<String>,
}

impl Places {
    pub(super) fn of(words: &[Word]) -> Self {
        let mut places = Self {
            all: BTreeMap::new(),
            content: BTreeMap::new(),
            behind_pronoun: BTreeSet::new(),
            names: BTreeSet::new(),
            plain: BTreeSet::new(),
        };
        let mut count = 0;
        for (place, word) in words.iter().enumerate() {
            places.all.entry(word.stem.clone()).or_default().push(place);
            let before = place.checked_sub(1).and_then(|place| words.get(place));
            if word.has_content() {
                let found = places.content.entry(word.stem.clone()).or_default();
                found.push(count);
                count += 1;
                if before.is_some_and(|word| PRONOUNS.contains(&word.folded.as_str())) {
                    places.behind_pronoun.insert(word.stem.clone());
                }
            }
            let next = words.get(place + 1);
            let leads = word.is_capital() && next.is_some_and(|next| next.joined && next.is_name());
            if word.is_name() || leads {
                places.names.insert(word.folded.clone());
            } else if !word.is_capital() {
                places.plain.insert(word.folded.clone());
            }
        }
        places
    }
}

/// Why a number or a name does not stand in the quotes with the word that it stands with in the claim.
pub(super) fn apart(claim: &[Word], quotes: &[Quote]) -> Option<String> {
    numbers_apart(claim, quotes).or_else(|| names_apart(claim, quotes))
}

/// A number that none of its known neighbours stands by, or whose neighbour is always another number's.
fn numbers_apart(claim: &[Word], quotes: &[Quote]) -> Option<String> {
    let numbers = claim
        .iter()
        .enumerate()
        .filter(|(_, word)| word.is_number());
    for (place, number) in numbers {
        let before = place.checked_sub(1).filter(|_| number.joined);
        let before = before.and_then(|place| claim.get(place));
        let next = claim.get(place + 1).filter(|next| next.joined);
        let counts = |word: &&Word| {
            word.has_content() && word.stem != number.stem && is_said(quotes, &word.stem)
        };
        let (before, next) = (before.filter(counts), next.filter(counts));
        let mut neighbours = next.into_iter().chain(before);
        let Some(other) = neighbours
            .clone()
            .next()
            .filter(|_| is_said(quotes, &number.stem))
        else {
            continue;
        };
        let by = |word: &Word| {
            let mut all = quotes.iter().map(|quote| &quote.places.all);
            all.any(|all| stand_by(all, &number.stem, &word.stem, BY_A_NUMBER))
        };
        let anothers = next
            .filter(|next| is_anothers(quotes, number, next, true))
            .or_else(|| before.filter(|before| is_anothers(quotes, number, before, false)));
        let wrong = anothers.or_else(|| (!neighbours.any(by)).then_some(other));
        if let Some(other) = wrong {
            return Some(format!(
                "in the cited quotes, {:?} does not stand by {:?}",
                number.text, other.text
            ));
        }
    }
    None
}

/// Whether a word stands right behind a number (or right before one) wherever it is, and never by this one: `days` of
/// `2 rooms took 14 days` is 14's.
fn is_anothers(quotes: &[Quote], number: &Word, word: &Word, behind: bool) -> bool {
    quotes.iter().all(|quote| {
        let at = |place: Option<usize>| place.and_then(|place| quote.words.get(place));
        (0..quote.words.len())
            .filter(|&place| quote.words[place].stem == word.stem)
            .all(|place| {
                let (beside, later) = if behind {
                    (at(place.checked_sub(1)), at(Some(place)))
                } else {
                    (at(Some(place + 1)), at(Some(place + 1)))
                };
                let joined = later.is_some_and(|later| later.joined);
                beside.is_some_and(|one| joined && one.is_number() && one.stem != number.stem)
            })
    })
}

/// Two parts of a name that stand in the quotes, each elsewhere.
fn names_apart(claim: &[Word], quotes: &[Quote]) -> Option<String> {
    let leads = |word: &Word| {
        let places = || quotes.iter().map(|quote| &quote.places);
        word.first
            && word.is_capital()
            && word.has_content()
            && places().any(|places| places.names.contains(&word.folded))
            && !places().any(|places| places.plain.contains(&word.folded))
    };
    let found = claim.windows(2).find(|pair| {
        let [a, b] = pair else { return false };
        let names = b.joined && (a.is_name() || leads(a)) && b.is_name() && a.stem != b.stem;
        let said = names && is_said(quotes, &a.stem) && is_said(quotes, &b.stem);
        let mut all = quotes.iter().map(|quote| &quote.places.all);
        said && !all.any(|all| stand_by(all, &a.stem, &b.stem, IN_A_NAME))
    })?;
    Some(format!(
        "{:?} and {:?} stand apart in the cited quotes",
        found[0].text, found[1].text
    ))
}

/// How a claim goes with its quotes as a whole.
pub(super) struct Found {
    /// Of a hundred words of content, how many the quotes have.
    pub(super) words: u32,
    /// Of a hundred pairs of neighbours among them, how many stand so in a quote.
    pub(super) pairs: u32,
    /// The same of a claim that copies a sentence, where a pronoun may be put in words. 100 where it copies none.
    pub(super) copied_pairs: u32,
    /// The first pair of a copied claim that does not stand so in a quote.
    pub(super) broken: Option<(String, String)>,
}

/// Holds the values of a claim against its quotes.
pub(super) fn compare(values: &[Vec<Word>], quotes: &[Quote]) -> Found {
    let content: Vec<Vec<&Word>> = values
        .iter()
        .map(|words| words.iter().filter(|word| word.has_content()).collect())
        .collect();
    // A number that no quote has in figures is said in words: whatever is in none was refused before.
    let is_spoken = |word: &Word| word.is_number() && !has_content(quotes, &word.stem);
    let own: BTreeMap<&str, bool> = content
        .iter()
        .flatten()
        .map(|word| {
            (
                word.stem.as_str(),
                is_spoken(word) || has_content(quotes, &word.stem),
            )
        })
        .collect();
    let known = own.values().filter(|known| **known).count();
    let words = percent(known, own.len());
    let stands_for_pronoun = |next: &Word| {
        let mut all = quotes.iter().map(|quote| &quote.places);
        all.any(|places| places.behind_pronoun.contains(&next.stem))
    };
    let (mut total, mut good, mut mended, mut broken) = (0, 0, 0, None);
    for [a, b] in content.iter().flat_map(|words| words.array_windows()) {
        if a.stem == b.stem || is_spoken(a) || is_spoken(b) {
            continue;
        }
        total += 1;
        let mut all = quotes.iter().map(|quote| &quote.places.content);
        if all.any(|content| follows(content, &a.stem, &b.stem, WINDOW)) {
            good += 1;
        } else if stands_for_pronoun(b) {
            mended += 1;
        } else if broken.is_none() {
            broken = Some((a.text.clone(), b.text.clone()));
        }
    }
    let copied = broken.is_some() && is_copied(values, quotes);
    Found {
        words,
        // A single word has no neighbour to stand by.
        pairs: if total == 0 {
            words
        } else {
            percent(good, total)
        },
        copied_pairs: if copied {
            percent(good + mended, total)
        } else {
            100
        },
        broken: broken.filter(|_| copied),
    }
}

/// Whether most words of a claim stand in rows as in one sentence of a quote. What someone says of himself can't be told
/// without other words (`I lead the mules`, `she led the mules`), so that it is never copied.
fn is_copied(values: &[Vec<Word>], quotes: &[Quote]) -> bool {
    let all: usize = values.iter().map(Vec::len).sum();
    let rows = |words: &[Word], seen: &BTreeSet<Vec<&str>>| {
        let mut end = 0;
        let mut count = 0;
        for (place, row) in words.windows(RUN).enumerate() {
            if seen.contains(&stems(row)) {
                count += place + RUN - end.max(place);
                end = place + RUN;
            }
        }
        count
    };
    let of_others = |sentence: &&[Word]| {
        let mut all = sentence.iter();
        !all.any(|word| FIRST_PERSON.contains(&word.folded.as_str()))
    };
    let mut sentences = quotes.iter().flat_map(Quote::sentences).filter(of_others);
    sentences.any(|sentence| {
        let seen: BTreeSet<Vec<&str>> = sentence.windows(RUN).map(stems).collect();
        let count: usize = values.iter().map(|words| rows(words, &seen)).sum();
        count * 100 >= all * COPIED
    })
}

fn stems(words: &[Word]) -> Vec<&str> {
    words.iter().map(|word| word.stem.as_str()).collect()
}

fn percent(part: usize, whole: usize) -> u32 {
    if whole == 0 {
        return 100;
    }
    u32::try_from(part * 100 / whole).unwrap_or(100)
}

fn is_said(quotes: &[Quote], stem: &str) -> bool {
    quotes
        .iter()
        .any(|quote| quote.places.all.contains_key(stem))
}

fn has_content(quotes: &[Quote], stem: &str) -> bool {
    let mut all = quotes.iter().map(|quote| &quote.places.content);
    all.any(|content| content.contains_key(stem))
}

/// Whether `b` stands behind `a` somewhere, at most `within` places.
fn follows(places: &BTreeMap<String, Vec<usize>>, a: &str, b: &str, within: usize) -> bool {
    let (Some(first), Some(second)) = (places.get(a), places.get(b)) else {
        return false;
    };
    first.iter().any(|&place| {
        let next = second.partition_point(|&other| other <= place);
        second
            .get(next)
            .is_some_and(|&other| other - place <= within)
    })
}

/// Whether the two stand by each other somewhere, whichever is first.
fn stand_by(places: &BTreeMap<String, Vec<usize>>, a: &str, b: &str, within: usize) -> bool {
    follows(places, a, b, within) || follows(places, b, a, within)
}

#[cfg(test)]
mod tests {
    use super::super::words::words;
    use super::*;

    fn quotes(all: &[&str]) -> Vec<Quote> {
        all.iter().map(|quote| Quote::new(quote)).collect()
    }

    fn compared(claim: &str, quote: &str) -> Found {
        compare(&[words(claim)], &quotes(&[quote]))
    }

    #[test]
    fn a_number_of_another_noun_is_found() {
        let quote = quotes(&["The drying of 2 rooms took 14 days and cost EUR 900."]);
        for (claim, wrong) in [
            ("Drying took 14 days.", false),
            ("EUR 900 were paid for 2 rooms.", false),
            ("Drying took 2 days.", true),
            ("14 rooms were dried.", true),
            // A comma parts them, and an unknown word says nothing.
            ("In all, 14, rooms were dried.", false),
            ("14 nights were needed.", false),
        ] {
            assert_eq!(apart(&words(claim), &quote).is_some(), wrong, "{claim}");
        }
    }

    #[test]
    fn a_name_of_two_people_is_found() {
        let quote = quotes(&[
            "Jonas Meyer, the tenant, reported damp walls.",
            "Dr. Judith Okafor, the surveyor, found a cracked pipe.",
        ]);
        for (claim, wrong) in [
            ("Jonas Meyer reported damp walls.", false),
            ("Dr Okafor found a cracked pipe.", false),
            ("The walls of Meyer, Okafor says, are damp.", false),
            ("Jonas Okafor found a cracked pipe.", true),
            ("The surveyor Judith Meyer found a pipe.", true),
        ] {
            assert_eq!(apart(&words(claim), &quote).is_some(), wrong, "{claim}");
        }
    }

    #[test]
    fn words_in_another_order_share_no_neighbours() {
        let quote = "The plumber replaced the hose and the tenant closed the valve.";
        let same = compared("The tenant closed the valve.", quote);
        assert_eq!((same.words, same.pairs), (100, 100));
        let other = compared("The valve closed the tenant.", quote);
        assert_eq!((other.words, other.pairs), (100, 0));
        let foreign = compared("Approved.", quote);
        assert_eq!((foreign.words, foreign.pairs), (0, 0));
    }

    #[test]
    fn a_copied_sentence_with_a_word_exchanged_is_found() {
        let quote = "On 3 March he noticed water under the sink in the small kitchen and closed the main valve.";
        let copy = |claim| {
            let found = compared(claim, quote);
            (found.copied_pairs, found.broken)
        };
        let same = "The tenant noticed water under the sink in the small kitchen and closed the main valve.";
        assert_eq!(copy(same), (100, None), "a pronoun is put in words");
        let (share, broken) =
            copy("He noticed water under the sink in the small cellar and closed the main valve.");
        assert!(share < 85, "{share}");
        assert_eq!(broken, Some(("small".to_owned(), "cellar".to_owned())));
        // What is told in other words is no copy, nor what someone says of himself.
        assert_eq!(copy("In the cellar, water was noticed.").0, 100);
        let own = "I lead the mules across the ford before dark.";
        let told = compared("Sefa led the mules across the ford before dark.", own);
        assert_eq!(told.copied_pairs, 100);
    }
}
