//! Two rankings made into one: reciprocal rank fusion (G. Cormack, C. Clarke and S. Büttcher, *Reciprocal Rank Fusion
//! outperforms Condorcet and individual Rank Learning Methods*, SIGIR 2009).
//!
//! Pure. It looks at ranks alone, so scores of different kinds need no common scale.

use std::collections::BTreeMap;

/// The paper's constant: how little the very first ranks stand out.
const K: f64 = 60.0;

/// Everything that a ranking names, best first: by the sum of 1 / (60 + rank) over the rankings that name it; of equal
/// ones the lesser key. Each ranking names a key once.
pub(crate) fn fuse<T: Ord + Copy>(rankings: &[Vec<T>]) -> Vec<(T, f64)> {
    let mut sums: BTreeMap<T, f64> = BTreeMap::new();
    for ranking in rankings {
        let mut rank = 0.0;
        for key in ranking {
            rank += 1.0;
            *sums.entry(*key).or_default() += 1.0 / (K + rank);
        }
    }
    let mut fused: Vec<(T, f64)> = sums.into_iter().collect();
    // Stable, so equal ones stay in the order of their keys.
    fused.sort_by(|a, b| b.1.total_cmp(&a.1));
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_rankings_name_comes_before_what_one_puts_first() {
        let fused = fuse(&[vec!['a', 'b', 'c'], vec!['d', 'b', 'e']]);
        let keys: Vec<char> = fused.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, ['b', 'a', 'd', 'c', 'e']);
        assert!((fused[0].1 - 2.0 / 62.0).abs() < 1e-12);
        assert!((fused[1].1 - 1.0 / 61.0).abs() < 1e-12);
    }

    #[test]
    fn equal_ones_stand_in_the_order_of_their_keys_whichever_ranking_names_them() {
        let (one, other) = (vec![7, 3], vec![3, 7]);
        assert_eq!(fuse(&[one.clone(), other.clone()]), fuse(&[other, one]));
        let keys: Vec<i32> = fuse(&[vec![9], vec![2]]).iter().map(|(k, _)| *k).collect();
        assert_eq!(keys, [2, 9]);
    }

    #[test]
    fn one_ranking_alone_stays_as_it_is() {
        let keys: Vec<i32> = fuse(&[vec![5, 1, 3], vec![]])
            .iter()
            .map(|(key, _)| *key)
            .collect();
        assert_eq!(keys, [5, 1, 3]);
    }
}
