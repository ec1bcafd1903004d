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
//! The result is the same on every platform: only IEEE 754 basic operations and `libm`, in an
//! order given by the text alone.

use std::collections::HashMap;

use unicode_segmentation::UnicodeSegmentation;

use super::sentences::{Sentence, is_unspaced};

/// Salience of the most salient sentence.
const WHOLE: f64 = 1_000_000.0;
const DAMPING: f64 = 0.85;
/// The walk is damped, so the error falls below 0.85^40 (0.2 %) of its start at worst; in trials
/// it was below a millionth after 15 rounds.
const ROUNDS: usize = 40;
const TOLERANCE: f64 = 1e-7;
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
    let scores = adjusted(&shown, &Similarity::of(&shown));
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

fn parts_per_million(score: f64, best: f64) -> u32 {
    if best <= 0.0 {
        return 0;
    }
    // The quotient lies in 0..=1, so the product fits and is not negative.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let parts = libm::round(score / best * WHOLE) as u32;
    parts
}

/// Cosines of all pairs, row by row above the diagonal.
struct Similarity {
    count: usize,
    cosine: Vec<f64>,
}

impl Similarity {
    fn of(sentences: &[&str]) -> Self {
        let count = sentences.len();
        let mut cosine = vec![0.0; count * count.saturating_sub(1) / 2];
        let postings = postings(sentences);
        let mut norms = vec![0.0; count];
        for posting in &postings {
            for (at, weight) in posting {
                norms[*at] += weight * weight;
            }
        }
        for posting in &postings {
            for (nth, (row, left)) in posting.iter().enumerate() {
                let base = Self::row(count, *row);
                for (column, right) in &posting[nth + 1..] {
                    cosine[base + column - row - 1] += left * right;
                }
            }
        }
        let norms: Vec<f64> = norms.into_iter().map(libm::sqrt).collect();
        let mut all = cosine.iter_mut();
        for row in 0..count {
            for (column, value) in (row + 1..count).zip(&mut all) {
                let scale = norms[row] * norms[column];
                *value = if scale > 0.0 { *value / scale } else { 0.0 };
            }
        }
        Self { count, cosine }
    }

    /// Where the entries of a row begin.
    fn row(count: usize, row: usize) -> usize {
        row * (2 * count - row - 1) / 2
    }

    /// Every pair once, in order.
    fn each(&self, mut visit: impl FnMut(usize, usize, f64)) {
        let mut all = self.cosine.iter();
        for row in 0..self.count {
            for (column, value) in (row + 1..self.count).zip(&mut all) {
                visit(row, column, *value);
            }
        }
    }
}

/// For each term, in order of first use: the sentences it stands in and its tf-idf there.
fn postings(sentences: &[&str]) -> Vec<Vec<(usize, f64)>> {
    let mut postings: Vec<Vec<(usize, f64)>> = Vec::new();
    // Only looked up, never walked: its order cannot show.
    let mut known: HashMap<String, usize> = HashMap::new();
    for (at, sentence) in sentences.iter().enumerate() {
        each_term(sentence, |term| {
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
        posting.iter_mut().for_each(|(_, weight)| *weight *= idf);
    }
    postings
}

/// Calls `visit` with each word in lower case, and with character pairs of unspaced scripts.
fn each_term(sentence: &str, mut visit: impl FnMut(&str)) {
    let mut term = String::new();
    let mut run: Option<(usize, char)> = None;
    for (start, word) in sentence.unicode_word_indices() {
        if !word.starts_with(is_unspaced) {
            run = None;
            lower_into(word, &mut term);
            visit(&term);
            continue;
        }
        for (offset, c) in word.char_indices() {
            if let Some((end, before)) = run
                && end == start + offset
            {
                term.clear();
                term.extend([before, c]);
                visit(&term);
            }
            run = Some((start + offset + c.len_utf8(), c));
        }
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
    similarity.each(|row, column, value| {
        degree[row] += value;
        degree[column] += value;
    });
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
        similarity.each(|row, column, value| {
            next[row] += DAMPING * value * shares[column];
            next[column] += DAMPING * value * shares[row];
        });
        let change: f64 = scores.iter().zip(&next).map(|(a, b)| (a - b).abs()).sum();
        scores = next;
        if change < TOLERANCE {
            break;
        }
    }
    scores
}

/// The walk's scores, halved for repetitions and for lead-ins (`This enables them to:`), which
/// are central but say nothing without the list below them.
fn adjusted(sentences: &[&str], similarity: &Similarity) -> Vec<f64> {
    let mut scores = walk(similarity);
    let mut repeats = vec![false; scores.len()];
    similarity.each(|_, column, value| repeats[column] |= value >= REPEATS);
    for ((score, sentence), repeats) in scores.iter_mut().zip(sentences).zip(repeats) {
        if repeats || sentence.ends_with([':', '：']) {
            *score /= 2.0;
        }
    }
    scores
}

fn to_f64(count: usize) -> f64 {
    // Counts of sentences: at most `MOST`.
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}
