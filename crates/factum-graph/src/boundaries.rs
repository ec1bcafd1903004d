//! Where a level of the tree is cut into groups.
//!
//! An item starts a group when its anchor is the strict minimum of all anchors within `min - 1` places
//! on either side: the local-extremum rule of content-defined chunking (Bjørner, Blass and Gurevich,
//! "Content-dependent chunking for differential compression, the local maximum approach", 2010).
//! Anchors are hashes of document identity, so an edit moves no boundary. The rule looks no further
//! than `min - 1` places, so an insertion moves only boundaries near it, and two boundaries are never
//! nearer than `min`. A stretch longer than `max` between two of them is cut again at its smallest
//! anchor that leaves `min` on both sides, which depends on that stretch alone.

/// Fewest and most children of a group; `max` is at least twice `min`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FanOut {
    /// Fewest, except where a whole level has fewer.
    pub min: usize,
    /// Most.
    pub max: usize,
}

/// The start indices of the groups of a stretch of items, the first always 0. The stretch is a whole
/// level, or lies between two starts found by [`is_local_minimum`].
pub fn group_starts(anchors: &[u64], fan_out: FanOut) -> Vec<usize> {
    if anchors.is_empty() {
        return Vec::new();
    }
    let mut starts = vec![0];
    let last = anchors.len().saturating_sub(fan_out.min);
    let mut from = 0;
    for at in fan_out.min..=last {
        if is_local_minimum(anchors, at, fan_out.min) {
            split(anchors, from, at, fan_out, &mut starts);
            starts.push(at);
            from = at;
        }
    }
    split(anchors, from, anchors.len(), fan_out, &mut starts);
    starts.sort_unstable();
    starts
}

/// `anchors[at]` is the strict minimum within `min - 1` places on either side, as far as the slice goes.
pub fn is_local_minimum(anchors: &[u64], at: usize, min: usize) -> bool {
    let window = min.saturating_sub(1);
    let from = at.saturating_sub(window);
    let to = (at + window + 1).min(anchors.len());
    (from..to).all(|other| other == at || anchors[other] > anchors[at])
}

fn split(anchors: &[u64], from: usize, to: usize, fan_out: FanOut, starts: &mut Vec<usize>) {
    let mut stretches = vec![(from, to)];
    while let Some((from, to)) = stretches.pop() {
        if to - from <= fan_out.max {
            continue;
        }
        // The index breaks ties, so that equal anchors can't make the choice depend on anything else.
        let cut = (from + fan_out.min..=to - fan_out.min).min_by_key(|&at| (anchors[at], at));
        let Some(cut) = cut else { continue };
        starts.push(cut);
        stretches.push((from, cut));
        stretches.push((cut, to));
    }
}

/// The anchor of an item at a level: mixed anew for each level, else a document that starts a group
/// would be the minimum at every level above as well. (The finaliser of SplitMix64, Steele et al. 2014.)
pub const fn anchor_at_level(anchor: u64, level: u32) -> u64 {
    let mut z = anchor.wrapping_add((level as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const FAN_OUT: FanOut = FanOut { min: 4, max: 12 };

    fn sizes(anchors: &[u64], fan_out: FanOut) -> Vec<usize> {
        let starts = group_starts(anchors, fan_out);
        let ends = starts.iter().skip(1).copied().chain([anchors.len()]);
        starts
            .iter()
            .zip(ends)
            .map(|(start, end)| end - start)
            .collect()
    }

    proptest! {
        #[test]
        fn groups_keep_to_minimum_and_maximum(anchors in proptest::collection::vec(0u64..50, 13..200), min in 2usize..6, extra in 0usize..9) {
            let fan_out = FanOut { min, max: 2 * min + extra };
            for size in sizes(&anchors, fan_out) {
                prop_assert!(size >= min && size <= fan_out.max, "{size}");
            }
        }

        #[test]
        fn an_insertion_moves_only_near_boundaries(anchors in proptest::collection::vec(any::<u64>(), 40..300), new in any::<u64>(), at in any::<prop::sample::Index>()) {
            let at = at.index(anchors.len());
            let before: BTreeSet<u64> = group_starts(&anchors, FAN_OUT).into_iter().map(|i| anchors[i]).collect();
            let mut longer = anchors.clone();
            longer.insert(at, new);
            let after: BTreeSet<u64> = group_starts(&longer, FAN_OUT).into_iter().map(|i| longer[i]).collect();
            let moved = before.symmetric_difference(&after).count();
            prop_assert!(moved <= 14, "{moved} boundaries moved");
        }
    }

    #[test]
    fn even_a_run_without_minima_is_cut() {
        let rising: Vec<u64> = (0..1000).collect();
        assert!(
            sizes(&rising, FAN_OUT)
                .iter()
                .all(|&size| (4..=12).contains(&size))
        );
        let equal = vec![7u64; 1000];
        assert!(
            sizes(&equal, FAN_OUT)
                .iter()
                .all(|&size| (4..=12).contains(&size))
        );
    }
}
