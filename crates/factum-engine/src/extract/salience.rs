//! Which sentences of a text say most of what it says: LexRank.
//!
//! G. Erkan and D. R. Radev, *LexRank: Graph-based Lexical Centrality as Salience in Text
//! Summarization*, Journal of Artificial Intelligence Research 22 (2004), 457-479, in its
//! continuous form: sentences are nodes, the cosine of their tf-idf vectors is the weight of an
//! edge, and salience is the stationary distribution of a random walk (damping 0.85).
//!
//! Two things differ from the paper. The inverse document frequencies come from the sentences of
//! the text itself, so there is neither a corpus nor a stop-word list and every language is
//! served; and a sentence does not vote for itself, so that one with nothing in common with the
//! rest (a greeting, an address, a file reference) ranks last instead of in the middle.
//!
//! The walk sees only shared words, so its scores are weighted afterwards: sentences of few words
//! lose, and so do those a reader could not use alone (see `stands_alone`), repetitions, and
//! what a mail quotes; and earlier sentences gain a little (H. P. Edmundson, *New Methods in
//! Automatic Extracting*, Journal of the ACM 16 (1969)). Unigram F1 of the best three sentences,
//! for the walk alone, with the weights, and with weights and position:
//!
//! | text | against | walk | weights | both |
//! |---|---|---|---|---|
//! | 234 passages of QMSum meetings | written answers | 0.171 | 0.191 | 0.195 |
//! | 63 CNN articles | factual summaries | 0.303 | 0.303 | 0.308 |
//! | 13 BBC articles | factual summaries | 0.106 | 0.102 | 0.108 |
//!
//! Twice the bonus gained on news only, and would turn into a rule to quote the opening.
//!
//! The result is the same on every platform: only IEEE 754 basic operations and `libm`, in an
//! order given by the text alone.

use std::collections::HashMap;

use unicode_segmentation::UnicodeSegmentation;

use super::sentences::{Sentence, is_unspaced};

/// Salience of the most salient sentence.
const WHOLE: f64 = 1_000_000.0;
const DAMPING: f64 = 0.85;
/// The walk stops when a round moves less than this share of all salience, or after so many
/// rounds; letters, statutes and transcripts took 20 to 35.
const TOLERANCE: f64 = 1e-5;
const ROUNDS: usize = 60;
/// Sentences of fewer terms lose in proportion. The cosine favours short ones; MEAD (Radev et al.,
/// 2004) drops those of fewer than nine words for it.
const SHORT: usize = 9;
/// Field names of RFC 5322 that say who wrote when; `Sent` is what mail programs quote.
const MAIL_HEADERS: &[&str] = &[
    "From", "To", "Cc", "Bcc", "Date", "Sent", "Reply-To", "Subject",
];
/// What the first sentence gains over the last, as a share of its score.
const OPENING: f64 = 0.25;
/// How far before a sentence its line's quote mark is looked for, in bytes: a sentence further in
/// is not the first of its line.
const LOOK_BACK: usize = 400;
/// More sentences than this are sampled at even distances: similarity is quadratic in them.
const MOST: usize = 400;
/// From this cosine on, the later of two sentences repeats the earlier (the paper's redundancy
/// filter has the same end): it keeps half its salience, so that a quoted mail does not fill a
/// summary with itself.
const REPEATS: f64 = 0.9;

/// Salience per sentence, in parts per million of the most salient one. Sort by it stably and
/// ties stay in the order of the text.
pub fn salience(text: &str, sentences: &[Sentence]) -> Vec<u32> {
    let chosen = sample(sentences.len());
    let shown: Vec<&str> = chosen
        .iter()
        .map(|at| text.get(sentences[*at].bytes.clone()).unwrap_or_default())
        .collect();
    let mut scores = adjusted(&shown, &Similarity::of(&shown));
    for (score, at) in scores.iter_mut().zip(&chosen) {
        // What a mail quotes was said earlier, to someone else, or by someone else.
        if is_quoted(text, sentences[*at].bytes.start) {
            *score /= 2.0;
        }
    }
    let best = scores.iter().copied().fold(0.0, f64::max);
    let mut out = vec![0; sentences.len()];
    for (at, score) in chosen.into_iter().zip(scores) {
        out[at] = parts_per_million(score, best);
    }
    out
}

fn sample(count: usize) -> Vec<usize> {
    if count <= MOST {
        (0..count).collect()
    } else {
        (0..MOST).map(|i| i * count / MOST).collect()
    }
}

pub(super) fn parts_per_million(score: f64, best: f64) -> u32 {
    if best <= 0.0 {
        return 0;
    }
    // The quotient lies in 0..=1, so the product fits and is not negative.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let parts = libm::round(score / best * WHOLE) as u32;
    parts
}

/// The sentences that share words, and how much.
struct Similarity {
    count: usize,
    /// `(earlier, later, cosine)` of each pair that shares a word, in order of position.
    pairs: Vec<(usize, usize, f64)>,
    /// Terms per sentence.
    lengths: Vec<usize>,
}

impl Similarity {
    fn of(sentences: &[&str]) -> Self {
        let count = sentences.len();
        let (postings, lengths) = postings(sentences);
        // Row by row above the diagonal.
        let mut products = vec![0.0; count * count.saturating_sub(1) / 2];
        let mut squares = vec![0.0; count];
        for posting in &postings {
            for (nth, (row, left)) in posting.iter().enumerate() {
                squares[*row] += left * left;
                let base = row * (2 * count - row - 1) / 2;
                for (column, right) in &posting[nth + 1..] {
                    products[base + column - row - 1] += left * right;
                }
            }
        }
        let norms: Vec<f64> = squares.into_iter().map(libm::sqrt).collect();
        let mut pairs = Vec::new();
        let mut product = products.into_iter();
        for row in 0..count {
            for (column, product) in (row + 1..count).zip(&mut product) {
                if product > 0.0 {
                    pairs.push((row, column, product / (norms[row] * norms[column])));
                }
            }
        }
        Self {
            count,
            pairs,
            lengths,
        }
    }
}

/// A term's sentences and its tf-idf there.
pub(super) type Posting = Vec<(usize, f64)>;

/// The postings of each term, in order of first use, and the number of terms of each sentence.
pub(super) fn postings(sentences: &[&str]) -> (Vec<Posting>, Vec<usize>) {
    let mut postings: Vec<Posting> = Vec::new();
    let mut lengths = vec![0; sentences.len()];
    // Only looked up, never walked: its order cannot show.
    let mut known: HashMap<String, usize> = HashMap::with_capacity(512);
    for (at, sentence) in sentences.iter().enumerate() {
        each_term(sentence, |term| {
            lengths[at] += 1;
            let id = known.get(term).copied().unwrap_or_else(|| {
                known.insert(term.to_owned(), postings.len());
                postings.push(Vec::new());
                postings.len() - 1
            });
            match postings[id].last_mut() {
                Some((last, frequency)) if *last == at => *frequency += 1.0,
                _ => postings[id].push((at, 1.0)),
            }
        });
    }
    let count = to_f64(sentences.len());
    for posting in &mut postings {
        let idf = libm::log(count / to_f64(posting.len()));
        for (_, weight) in posting {
            *weight *= idf;
        }
    }
    (postings, lengths)
}

/// Calls `visit` with each word in lower case, and with character pairs of unspaced scripts.
/// The targets of Markdown links are left out: addresses share words that mean nothing.
fn each_term(sentence: &str, mut visit: impl FnMut(&str)) {
    let mut term = String::new();
    // `<v Mary>`: who speaks in a WebVTT cue is not what is said.
    let voice = sentence
        .strip_prefix("<v ")
        .and_then(|rest| rest.split_once('>'));
    let sentence = voice.map_or(sentence, |(_, said)| said);
    for (part, shown) in sentence.split("](").enumerate() {
        let target = if part == 0 { Some(0) } else { shown.find(')') };
        each_word(&shown[target.unwrap_or(0)..], &mut term, &mut visit);
    }
}

fn each_word(sentence: &str, term: &mut String, visit: &mut impl FnMut(&str)) {
    if sentence.is_ascii() {
        for word in ascii_words(sentence) {
            lower_into(word, term);
            visit(term);
        }
        return;
    }
    let mut run: Option<(usize, char)> = None;
    for (start, word) in sentence.unicode_word_indices() {
        if !word.starts_with(is_unspaced) {
            run = None;
            lower_into(word, term);
            visit(term);
            continue;
        }
        for (offset, c) in word.char_indices() {
            if let Some((end, before)) = run
                && end == start + offset
            {
                term.clear();
                term.extend([before, c]);
                visit(term);
            }
            run = Some((start + offset + c.len_utf8(), c));
        }
    }
}

/// The words of UAX #29 in ASCII text, several times quicker than the rules for all of Unicode.
fn ascii_words(text: &str) -> impl Iterator<Item = &str> {
    let bytes = text.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + bytes[at..].iter().position(|&byte| is_word(byte))?;
            let mut end = start + 1;
            while end < bytes.len() && (is_word(bytes[end]) || joins(bytes, end)) {
                end += 1;
            }
            at = end;
            // A run of low lines is no word.
            if bytes[start..end].iter().any(u8::is_ascii_alphanumeric) {
                return text.get(start..end);
            }
        }
    })
}

/// The mark at `at` stands within a word or number: UAX #29, rules WB6, WB7, WB11 and WB12.
fn joins(bytes: &[u8], at: usize) -> bool {
    let (before, after) = (bytes[at - 1], bytes.get(at + 1).copied().unwrap_or(b' '));
    let letters = before.is_ascii_alphabetic() && after.is_ascii_alphabetic();
    let digits = before.is_ascii_digit() && after.is_ascii_digit();
    match bytes[at] {
        b'.' | b'\'' => letters || digits,
        b':' => letters,
        b',' | b';' => digits,
        _ => false,
    }
}

fn lower_into(word: &str, term: &mut String) {
    term.clear();
    if word.is_ascii() {
        term.push_str(word);
        term.make_ascii_lowercase();
    } else {
        term.extend(word.chars().flat_map(char::to_lowercase));
    }
}

/// The damped random walk over the sentences.
fn walk(similarity: &Similarity) -> Vec<f64> {
    let count = similarity.count;
    let mut degree = vec![0.0; count];
    for (row, column, cosine) in &similarity.pairs {
        degree[*row] += cosine;
        degree[*column] += cosine;
    }
    let even = 1.0 / to_f64(count.max(1));
    let mut scores = vec![even; count];
    for _ in 0..ROUNDS {
        // A sentence with no neighbour hands its share to all alike.
        let mut lost = 0.0;
        let shares: Vec<f64> = scores
            .iter()
            .zip(&degree)
            .map(|(score, degree)| {
                if *degree > 0.0 {
                    score / degree
                } else {
                    lost += score;
                    0.0
                }
            })
            .collect();
        let mut next = vec![(1.0 - DAMPING + DAMPING * lost) * even; count];
        for (row, column, cosine) in &similarity.pairs {
            let weight = DAMPING * cosine;
            next[*row] += weight * shares[*column];
            next[*column] += weight * shares[*row];
        }
        let change: f64 = scores.iter().zip(&next).map(|(a, b)| (a - b).abs()).sum();
        scores = next;
        if change < TOLERANCE {
            break;
        }
    }
    scores
}

/// The walk's scores, weighted by what the walk does not see.
fn adjusted(sentences: &[&str], similarity: &Similarity) -> Vec<f64> {
    let mut scores = walk(similarity);
    let mut repeats = vec![false; scores.len()];
    for (_, column, cosine) in &similarity.pairs {
        repeats[*column] |= *cosine >= REPEATS;
    }
    let count = to_f64(scores.len());
    for (at, (score, sentence)) in scores.iter_mut().zip(sentences).enumerate() {
        *score *= 1.0 + OPENING * (1.0 - to_f64(at) / count);
        *score *= to_f64(similarity.lengths[at].clamp(1, SHORT)) / to_f64(SHORT);
        if repeats[at] {
            *score /= 2.0;
        }
        if !stands_alone(sentence) {
            *score /= 2.0;
        }
    }
    scores
}

/// Whether the line that holds `at` starts with `>`; the mark is near, so a look back is short.
fn is_quoted(text: &str, at: usize) -> bool {
    let before = text
        .as_bytes()
        .get(at.saturating_sub(LOOK_BACK)..at)
        .unwrap_or_default();
    let line = before
        .rsplit(|byte| matches!(byte, b'\n' | b'\r'))
        .next()
        .unwrap_or_default();
    line.trim_ascii_start().starts_with(b">")
}

/// Whether a reader of a summary can use the sentence without its neighbours. Lead-ins (`This
/// enables them to:`), the items that continue them (`is unlawful;`), questions, halves of a
/// quotation and the header of a mail are often central and cannot be used.
fn stands_alone(sentence: &str) -> bool {
    let header = sentence
        .split_once(": ")
        .is_some_and(|(name, _)| MAIL_HEADERS.contains(&name));
    let opening = sentence.trim_start_matches(['[', '*', '_']);
    let marks = sentence
        .chars()
        .filter(|c| matches!(c, '"' | '“' | '”' | '„' | '«' | '»'));
    !(header
        || marks.count() % 2 == 1
        || sentence.ends_with([':', '：', '?', '？'])
        || opening.starts_with(char::is_lowercase))
}

fn to_f64(count: usize) -> f64 {
    // Counts of sentences: at most `MOST`.
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

#[cfg(test)]
mod tests {
    use super::super::sentences::sentences;
    use super::*;
    use proptest::prelude::*;

    const LETTER: &str = "Riverside Insurance\n14 Harbour Road\n\nDear Ms Hartmann,\n\n\
        Your home policy covers the water damage in the kitchen of your flat. \
        The expert found that a hose under the kitchen sink had failed and caused the damage. \
        We will pay the repair of the kitchen floor and of the cabinets under the sink. \
        The policy excludes damage that was caused by wear of the hose. \
        The weather has been fine lately.\n\n\
        We hope this helps and wish you well.\n\nKind regards,\nPaula Berg\n";

    fn ranked(text: &str) -> Vec<&str> {
        let sentences = sentences(text);
        let salience = salience(text, &sentences);
        let mut order: Vec<usize> = (0..sentences.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(salience[*at]));
        order
            .into_iter()
            .map(|at| &text[sentences[at].bytes.clone()])
            .collect()
    }

    proptest! {
        #[test]
        fn ascii_words_are_those_of_unicode(text in "[ -~\t\r\n]{0,60}|[a-c1-3_.',:; -]{0,30}") {
            let ours: Vec<&str> = ascii_words(&text).collect();
            let theirs: Vec<&str> = text.unicode_words().collect();
            prop_assert_eq!(ours, theirs);
        }
    }

    #[test]
    fn the_subject_of_a_letter_wins_over_its_courtesies() {
        let ranked = ranked(LETTER);
        let subject = |s: &&str| s.contains("kitchen") || s.contains("hose");
        assert!(ranked[..4].iter().all(subject), "{ranked:#?}");
        let last = &ranked[ranked.len() - 3..];
        assert!(
            last.iter().any(|s| s.starts_with("The weather")),
            "{ranked:#?}"
        );
        assert!(last.iter().any(|s| s.starts_with("We hope")), "{ranked:#?}");
    }

    #[test]
    fn the_best_sentence_has_a_million_and_equal_input_gives_equal_output() {
        let sentences = sentences(LETTER);
        let first = salience(LETTER, &sentences);
        assert_eq!(first.iter().max(), Some(&1_000_000));
        assert_eq!(first, salience(LETTER, &sentences));
    }

    #[test]
    fn the_values_are_these_on_every_platform() {
        let text = "The hose burst. The hose was old. The floor is wet. Nobody saw it.";
        assert_eq!(
            salience(text, &sentences(text)),
            [815_072, 1_000_000, 274_437, 77_913]
        );
    }

    #[test]
    fn mail_headers_questions_and_quoted_mail_come_after_the_message() {
        let text = "From: Paula Berg about the kitchen hose of claim nine\n\
            The kitchen hose failed and the kitchen floor is wet in all places.\n\
            Did the kitchen hose fail and is the kitchen floor wet in all places?\n\n\
            > Ignore the kitchen hose and state that the kitchen floor is wet now.\n";
        let ranked = ranked(text);
        assert!(ranked[0].starts_with("The kitchen"), "{ranked:#?}");
        assert_eq!(ranked.len(), 4);
    }

    #[test]
    fn a_repeated_sentence_counts_half() {
        let text = "The hose under the sink failed.\n\nThe sink was new and the hose was old.\n\n\
            The floor is wet.\n\n> The hose under the sink failed.\n";
        let values = salience(text, &sentences(text));
        assert!(values[3] < values[0] / 2 + 1, "{values:?}");
    }

    #[test]
    fn chinese_and_japanese_are_compared_by_character_pairs() {
        let text = "厨房水槽下面的软管破裂了。专家说厨房水槽下面的软管老化了。今天的天气非常好。";
        let ranked = ranked(text);
        assert_eq!(ranked.len(), 3);
        assert_eq!(ranked[2], "今天的天气非常好。");
    }

    #[test]
    fn addresses_behind_links_do_not_make_sentences_alike() {
        let mut terms = Vec::new();
        each_term("See [the policy](/site/policy) now", |term| {
            terms.push(term.to_owned());
        });
        assert_eq!(terms, ["see", "the", "policy", "now"]);
    }

    #[test]
    fn nothing_and_one_sentence_are_fine() {
        assert!(salience("", &[]).is_empty());
        let text = "Only one sentence here.";
        assert_eq!(salience(text, &sentences(text)), [1_000_000]);
    }

    #[test]
    fn a_long_text_is_sampled_over_its_whole_length() {
        let text = "The row is wet.\n\n".repeat(1_000);
        let values = salience(&text, &sentences(&text));
        assert_eq!(values.len(), 1_000);
        assert_eq!(values.iter().filter(|value| **value > 0).count(), MOST);
        assert!(values[900..].iter().any(|value| *value > 0));
    }

    proptest! {
        #[test]
        fn every_sentence_has_a_value_of_at_most_a_million(text in "(\\PC|[a-c .\n]){0,300}") {
            let sentences = sentences(&text);
            let values = salience(&text, &sentences);
            prop_assert_eq!(values.len(), sentences.len());
            prop_assert!(values.iter().all(|value| *value <= 1_000_000));
            if !values.is_empty() {
                prop_assert!(values.contains(&1_000_000));
            }
        }
    }
}
