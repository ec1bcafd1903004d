//! Answering without a model: the sentences of what was found that share most with the question, word for word.
//!
//! Pure. It makes nothing up: where nothing fits, it says so.

use std::collections::{BTreeMap, BTreeSet};

use factum_base::Span;
use factum_casefile::terms::{each_term, question_terms};
use factum_casefile::{Evidence, EvidenceId};
use factum_engine::extract::sentences;

/// What is said where nothing was found.
pub const NOTHING: &str = "Nothing in the documents that you may see answers this.";

/// Sentences quoted at most.
const MOST: usize = 3;
/// A sentence is quoted if it is worth at least this share of the best.
const SHARE: f32 = 0.6;
/// The best has to hold at least this share of the question's terms.
const COVERAGE: f32 = 0.34;

/// A sentence to quote: which of the passages it is in, and its own evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Quoted {
    /// Place of the passage in the list that was given.
    pub passage: usize,
    /// Exactly the sentence.
    pub evidence: Evidence,
}

struct Candidate {
    quoted: Quoted,
    terms: BTreeSet<usize>,
    worth: f32,
}

/// Chooses sentences from passages, which come best first.
pub fn choose(question: &str, passages: &[Evidence]) -> Vec<Quoted> {
    let terms = question_terms(question);
    if terms.is_empty() {
        return Vec::new();
    }
    let mut candidates: Vec<Candidate> = Vec::new();
    for (place, passage) in passages.iter().enumerate() {
        for quoted in sentences_of(place, passage) {
            let held = held(&quoted.evidence.quote, &terms);
            if !held.is_empty() {
                candidates.push(Candidate {
                    quoted,
                    terms: held,
                    worth: 0.0,
                });
            }
        }
    }
    weigh(&mut candidates, terms.len());
    // Equal ones stay in the order of the search.
    candidates.sort_by(|a, b| b.worth.total_cmp(&a.worth));
    let Some(best) = candidates.first() else {
        return Vec::new();
    };
    let (worth, covered) = (best.worth, share(best.terms.len(), terms.len()));
    if covered < COVERAGE {
        return Vec::new();
    }
    let mut said = BTreeSet::new();
    candidates
        .into_iter()
        .filter(|one| one.worth >= worth * SHARE)
        .filter(|one| said.insert(one.quoted.evidence.quote.clone()))
        .take(MOST)
        .map(|one| one.quoted)
        .collect()
}

// A term that few of the candidates hold tells more.
fn weigh(candidates: &mut [Candidate], terms: usize) {
    let all = candidates.len();
    let mut holding: BTreeMap<usize, usize> = BTreeMap::new();
    for one in candidates.iter() {
        for term in &one.terms {
            *holding.entry(*term).or_default() += 1;
        }
    }
    let rarity = |term: &usize| 1.0 + (1.0 - share(holding[term], all + 1));
    for one in candidates.iter_mut() {
        let held: f32 = one.terms.iter().map(rarity).sum();
        // Of two with the same terms, the one in the better passage.
        let rank = share(one.quoted.passage, 100);
        one.worth = held - rank.min(0.5) + share(one.terms.len(), terms);
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of words and passages")]
fn share(part: usize, whole: usize) -> f32 {
    part as f32 / whole.max(1) as f32
}

fn held(text: &str, terms: &[String]) -> BTreeSet<usize> {
    let mut held = BTreeSet::new();
    each_term(text, |term| {
        held.extend(terms.iter().position(|one| one == term));
    });
    held
}

/// The sentences of a passage; the passage itself where it has none that stand alone.
fn sentences_of(place: usize, passage: &Evidence) -> Vec<Quoted> {
    let text = &passage.quote;
    let index = factum_base::CodePointIndex::new(text);
    let part = |bytes: std::ops::Range<usize>| {
        let span = Span::new(
            passage.start + index.code_point_of(text, bytes.start),
            passage.start + index.code_point_of(text, bytes.end),
        );
        Quoted {
            passage: place,
            evidence: Evidence::cite(
                &passage.doc_id,
                passage.version,
                passage.text_sha256,
                span,
                &text[bytes],
            ),
        }
    };
    let found: Vec<Quoted> = sentences(text)
        .into_iter()
        .map(|one| part(one.bytes))
        .collect();
    if found.is_empty() {
        vec![part(0..text.len())]
    } else {
        found
    }
}

/// The answer in words: each quote with its id behind it, or that there is none.
pub fn in_words(chosen: &[(EvidenceId, String)]) -> String {
    if chosen.is_empty() {
        return NOTHING.to_owned();
    }
    let lines: Vec<String> = chosen
        .iter()
        .map(|(id, quote)| {
            format!(
                "{} [{id}]",
                quote.split_whitespace().collect::<Vec<_>>().join(" ")
            )
        })
        .collect();
    lines.join("\n")
}
