//! Vectors of the passages that a search may rank: kept ones, and which are still to be made.
//!
//! A vector is found by the passage's own text and by what made it, so what is kept in memory can't be out of date.
//! Nothing here decides what may be seen: it is given texts that may.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use factum_base::TextDigest;
use factum_casefile::passages::passages;
use factum_store::{EmbedderDigest, Findable, FindableText, PassageDigest, Tx};

use crate::error::EngineError;
use crate::text_cache::TextCache;

/// Passages whose vectors are made together and kept together: what an interruption loses at most.
pub(crate) const BATCH: usize = 32;
/// Texts that are looked at together.
const WINDOW_TEXTS: usize = 64;
/// Passages that are looked at together, but for one text that has more.
const WINDOW_PASSAGES: u64 = 2048;
/// Vectors kept in memory when a search begins; beyond this, what is kept begins anew.
const MOST_KEPT: usize = 400_000;

type Key = (i64, EmbedderDigest, PassageDigest);

/// Vectors that were read or made lately, and the passages of texts.
#[derive(Default)]
pub(crate) struct VectorCache {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    vectors: HashMap<Key, Arc<[f32]>>,
    passages: HashMap<TextDigest, Arc<[PassageDigest]>>,
}

/// Whose vectors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whose {
    pub(crate) case_no: i64,
    pub(crate) embedder: EmbedderDigest,
    pub(crate) dimensions: usize,
}

/// The vectors of all that may be found, or what is missing of them.
pub(crate) enum Gathered {
    /// Each text with its passages' vectors.
    All(Vec<(FindableText, Vec<Arc<[f32]>>)>),
    /// Some are still to be made: the first of them, with their texts.
    Missing {
        passages: Vec<(PassageDigest, String)>,
        /// Passages before them, whose vectors are there.
        before: u64,
    },
}

impl VectorCache {
    /// Lets everything go where it has become too much. Never within a search, which needs all of it.
    pub(crate) fn trim(&self) {
        let mut kept = self.lock();
        if kept.vectors.len() > MOST_KEPT {
            *kept = Kept::default();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The vectors of what may be found, from memory and from the store.
    pub(crate) async fn gather(
        &self,
        tx: &mut Tx,
        texts: &TextCache,
        whose: &Whose,
        findable: &Findable,
    ) -> Result<Gathered, EngineError> {
        let all: Vec<FindableText> = findable.texts().collect();
        let mut out = Vec::with_capacity(all.len());
        let mut before = 0;
        for window in windows(&all) {
            self.fetch(tx, texts, whose, window).await?;
            for text in window {
                match self.of_text(whose, text) {
                    Ok(vectors) => {
                        before += text.passages;
                        out.push((*text, vectors));
                    }
                    Err(there) => {
                        let passages = self.missing(tx, texts, whose, text).await?;
                        let before = before + there;
                        return Ok(Gathered::Missing { passages, before });
                    }
                }
            }
        }
        Ok(Gathered::All(out))
    }

    /// The vectors of a text's passages, or how many of them are there.
    fn of_text(&self, whose: &Whose, text: &FindableText) -> Result<Vec<Arc<[f32]>>, u64> {
        let kept = self.lock();
        let digests = kept.passages.get(&text.text_sha256).ok_or(0u64)?;
        let vector = |digest: &PassageDigest| {
            kept.vectors
                .get(&(whose.case_no, whose.embedder, *digest))
                .map(Arc::clone)
        };
        let found: Vec<Option<Arc<[f32]>>> = digests.iter().map(vector).collect();
        let there = found.iter().flatten().count() as u64;
        found.into_iter().collect::<Option<Vec<_>>>().ok_or(there)
    }

    /// Brings what the store has of these texts into memory.
    async fn fetch(
        &self,
        tx: &mut Tx,
        texts: &TextCache,
        whose: &Whose,
        window: &[FindableText],
    ) -> Result<(), EngineError> {
        let unread: Vec<TextDigest> = {
            let kept = self.lock();
            let digests = window.iter().map(|text| text.text_sha256);
            digests
                .filter(|digest| !kept.passages.contains_key(digest))
                .collect()
        };
        if !unread.is_empty() {
            let read = texts.texts(tx, unread.into_iter()).await?;
            let mut kept = self.lock();
            for (digest, text) in read {
                let cut = passages(&text.text).into_iter();
                let digests = cut.map(|at| PassageDigest::of(text.text[at].as_bytes()));
                kept.passages.insert(digest, digests.collect());
            }
        }
        let unknown: BTreeSet<PassageDigest> = {
            let kept = self.lock();
            let of_texts = window
                .iter()
                .filter_map(|text| kept.passages.get(&text.text_sha256));
            of_texts
                .flat_map(|digests| digests.iter().copied())
                .filter(|digest| {
                    let key = (whose.case_no, whose.embedder, *digest);
                    !kept.vectors.contains_key(&key)
                })
                .collect()
        };
        if unknown.is_empty() {
            return Ok(());
        }
        let unknown: Vec<PassageDigest> = unknown.into_iter().collect();
        let found = tx
            .vectors(whose.case_no, &whose.embedder, whose.dimensions, &unknown)
            .await?;
        let mut kept = self.lock();
        for (digest, vector) in found {
            let key = (whose.case_no, whose.embedder, digest);
            kept.vectors.insert(key, vector.into());
        }
        Ok(())
    }

    /// The first passages of a text that have no vector, each text of a passage once.
    async fn missing(
        &self,
        tx: &mut Tx,
        texts: &TextCache,
        whose: &Whose,
        text: &FindableText,
    ) -> Result<Vec<(PassageDigest, String)>, EngineError> {
        let digest = text.text_sha256;
        let read = texts.texts(tx, std::iter::once(digest)).await?;
        let text = &read[&digest].text;
        let kept = self.lock();
        let mut seen = BTreeSet::new();
        let mut out = Vec::new();
        for at in passages(text) {
            let passage = PassageDigest::of(text[at.clone()].as_bytes());
            let key = (whose.case_no, whose.embedder, passage);
            if !kept.vectors.contains_key(&key) && seen.insert(passage) {
                out.push((passage, text[at].to_owned()));
            }
            if out.len() == BATCH {
                break;
            }
        }
        Ok(out)
    }
}

/// Stretches of texts that are looked at together.
fn windows(texts: &[FindableText]) -> impl Iterator<Item = &[FindableText]> {
    let mut rest = texts;
    std::iter::from_fn(move || {
        let mut passages = 0;
        let fits = rest.iter().take(WINDOW_TEXTS).take_while(|text| {
            passages += text.passages;
            passages <= WINDOW_PASSAGES
        });
        let length = fits.count().max(1);
        if rest.is_empty() {
            return None;
        }
        let (window, others) = rest.split_at(length);
        rest = others;
        Some(window)
    })
}

/// Numbers that are multiplied side by side. The order of all additions is fixed, so that a machine with wider
/// registers gives no other last bit.
const LANES: usize = 16;

/// The cosine of two vectors of unit length.
pub(crate) fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0f32; LANES];
    let (a_parts, b_parts) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let (a_rest, b_rest) = (a_parts.remainder(), b_parts.remainder());
    for (x, y) in a_parts.zip(b_parts) {
        for lane in 0..LANES {
            sums[lane] += x[lane] * y[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f32>() + rest
}

/// The passages nearest to a question, best first; of equal ones that of the earlier document.
pub(crate) fn nearest(
    question: &[f32],
    vectors: &[(FindableText, Vec<Arc<[f32]>>)],
    limit: usize,
) -> Vec<(u64, f32)> {
    // Document and passage: one document has one text, so passages of one stand in its order.
    let mut all: Vec<((i64, u64), f32)> = Vec::new();
    for (text, passages) in vectors {
        let scored = (text.first..).zip(passages);
        all.extend(
            scored.map(|(number, vector)| ((text.doc_no, number), cosine(question, vector))),
        );
    }
    let order =
        |a: &((i64, u64), f32), b: &((i64, u64), f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    if all.len() > limit && limit > 0 {
        all.select_nth_unstable_by(limit - 1, order);
    }
    all.truncate(limit);
    all.sort_by(order);
    let numbers = all.into_iter();
    numbers
        .map(|((_, number), score)| (number, score))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cosine_is_the_sum_of_products_whatever_the_length() {
        for length in [0u8, 1, 15, 16, 17, 40] {
            let a: Vec<f32> = (0..length).map(f32::from).collect();
            let b: Vec<f32> = (0..length).map(|n| f32::from(n + 1)).collect();
            let expected: f32 = a.iter().zip(&b).map(|(x, y)| x * y).sum();
            assert!((cosine(&a, &b) - expected).abs() < 1e-3);
        }
    }

    #[test]
    fn of_equally_near_passages_that_of_the_earlier_document_comes_first() {
        let text = |doc_no, first| FindableText {
            text_sha256: TextDigest::of(b"x"),
            doc_no,
            first,
            passages: 2,
        };
        let vector = |x: f32| -> Arc<[f32]> { Arc::from([x, 0.0]) };
        let vectors = [
            (text(1, 10), vec![vector(0.5), vector(0.9)]),
            (text(2, 3), vec![vector(0.5), vector(0.1)]),
        ];
        let found = nearest(&[1.0, 0.0], &vectors, 3);
        let numbers: Vec<u64> = found.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [11, 10, 3]);
    }

    #[test]
    fn windows_hold_every_text_once_also_one_that_is_too_large() {
        let text = |passages| FindableText {
            text_sha256: TextDigest::of(b"x"),
            doc_no: 1,
            first: 0,
            passages,
        };
        let texts: Vec<FindableText> = [1, 5000, 2, 3, 2047].map(text).to_vec();
        let lengths: Vec<usize> = windows(&texts).map(<[_]>::len).collect();
        assert_eq!(lengths.iter().sum::<usize>(), texts.len());
        assert_eq!(lengths, [1, 1, 2, 1]);
    }
}
