//! BM25 (S. Robertson and H. Zaragoza, *The Probabilistic Relevance Framework*, 2009) over what is visible.
//!
//! Every number in it (how many passages there are, how long they are, how many hold a term) is counted over what
//! the principal may see.

use super::block::{Postings, Weight};
use super::visible::Visible;

const K1: f32 = 1.2;
const B: f32 = 0.75;

pub(super) struct Ranking {
    /// A bit for each passage that may be found.
    seen: Vec<u64>,
    scores: Vec<f32>,
    passages: f32,
    /// What a weight's byte stands for, but for the term's rarity.
    factors: Vec<f32>,
}

// Counts of passages are far below where an f32 loses whole numbers in a way that a ranking could show.
#[expect(
    clippy::cast_precision_loss,
    reason = "a ranking needs no more precision"
)]
fn float(value: u64) -> f32 {
    value as f32
}

impl Ranking {
    pub(super) fn over(visible: &Visible) -> Self {
        let end = usize::try_from(visible.end).unwrap_or(usize::MAX);
        let mut seen = vec![0u64; end / 64 + 1];
        for (first, last) in visible.stretches() {
            for passage in first..last {
                if let Some(word) =
                    seen.get_mut(usize::try_from(passage / 64).unwrap_or(usize::MAX))
                {
                    *word |= 1 << (passage % 64);
                }
            }
        }
        let average = float(visible.terms) / float(visible.passages.max(1));
        let factor = |byte: u8| {
            let weight = Weight(byte);
            let count = f32::from(weight.count());
            let length = float(u64::from(weight.length().max(1)));
            count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length / average.max(1.0)))
        };
        Self {
            seen,
            scores: vec![0.0; end],
            passages: float(visible.passages),
            factors: (0..=255).map(factor).collect(),
        }
    }

    fn is_seen(&self, passage: u64) -> bool {
        let word = usize::try_from(passage / 64)
            .ok()
            .and_then(|at| self.seen.get(at));
        word.is_some_and(|word| (word >> (passage % 64)) & 1 == 1)
    }

    /// Adds what a term is worth. `None` where the postings are damaged.
    pub(super) fn add(&mut self, postings: &[Postings]) -> Option<()> {
        let mut found: Vec<(u64, Weight)> = Vec::new();
        for list in postings {
            list.each(|passage, weight| {
                if self.is_seen(passage) {
                    found.push((passage, weight));
                }
            })?;
        }
        let holding = float(found.len() as u64);
        let rarity = ((self.passages - holding + 0.5) / (holding + 0.5) + 1.0).ln();
        for (passage, weight) in found {
            let score = self.scores.get_mut(usize::try_from(passage).ok()?)?;
            *score += rarity * self.factors[usize::from(weight.0)];
        }
        Some(())
    }

    /// The best passages, best first; of equal ones that of the earlier document. Their own numbers would not do: a text
    /// that a hidden document had first has lower ones.
    pub(super) fn best(self, visible: &Visible, limit: usize) -> Vec<(u64, f32)> {
        let mut found: Vec<(u64, f32)> = (0u64..)
            .zip(self.scores)
            .filter(|(_, score)| *score > 0.0)
            .collect();
        let place = |passage: u64| visible.locate(passage);
        let order = |a: &(u64, f32), b: &(u64, f32)| {
            let by_score = b.1.total_cmp(&a.1);
            by_score.then_with(|| place(a.0).cmp(&place(b.0)))
        };
        if found.len() > limit && limit > 0 {
            found.select_nth_unstable_by(limit - 1, order);
        }
        found.truncate(limit);
        found.sort_by(order);
        found
    }
}
