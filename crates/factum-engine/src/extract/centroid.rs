//! Which of many short texts say most of what all of them say: the centroid method.
//!
//! D. R. Radev, H. Jing, M. Styś and D. Tam, *Centroid-based summarization of multiple documents*,
//! Information Processing & Management 40 (2004), 919-938: the score of a text is the cosine of its
//! tf-idf vector and the centroid of the others (a text does not vote for itself, else one that has
//! nothing in common with the rest would win by its rare words). It is linear in the words, where LexRank is quadratic
//! in the texts; a reduction compares the best claims of hundreds of documents, on every level.

use super::salience::{parts_per_million, postings};

/// Centrality of each text in parts per million of the most central one; the same on every platform.
pub fn centrality(texts: &[&str]) -> Vec<u32> {
    let (postings, _) = postings(texts);
    let mut shared = vec![0.0; texts.len()];
    let mut squares = vec![0.0; texts.len()];
    for posting in &postings {
        let weight: f64 = posting.iter().map(|(_, weight)| weight).sum();
        for &(at, own) in posting {
            shared[at] += own * (weight - own);
            squares[at] += own * own;
        }
    }
    let scores: Vec<f64> = shared
        .iter()
        .zip(&squares)
        .map(|(shared, square)| {
            if *square > 0.0 {
                shared / libm::sqrt(*square)
            } else {
                0.0
            }
        })
        .collect();
    let best = scores.iter().copied().fold(0.0, f64::max);
    scores
        .into_iter()
        .map(|score| parts_per_million(score, best))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_say_is_more_central_than_what_one_says() {
        let texts = [
            "The hose burst and flooded the kitchen.",
            "Water from the burst hose flooded the kitchen floor.",
            "Please find my telephone number below.",
            "The kitchen was flooded after a hose burst.",
        ];
        let scores = centrality(&texts);
        assert!(
            scores[2] < scores[0] && scores[2] < scores[1] && scores[2] < scores[3],
            "{scores:?}"
        );
    }

    #[test]
    fn nothing_and_equal_texts_are_no_trouble() {
        assert!(centrality(&[]).is_empty());
        assert_eq!(centrality(&["water", "water"]), [0, 0]);
    }
}
