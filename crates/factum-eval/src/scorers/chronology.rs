//! Chronology: whether events are told in the order in which they happened.

use std::cmp::Ordering;

use crate::fixture::Fixture;
use crate::measured::Measured;
use crate::score_name::ScoreName;
use crate::scorers::Scorecard;
use crate::scorers::mentions::Covered;

/// What Kendall's tau-b came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tau {
    /// The coefficient, -1 to 1.
    pub coefficient: f64,
    /// Concordant less discordant pairs.
    pub balance: i64,
    /// Pairs.
    pub pairs: u64,
}

/// Kendall's tau-b of two orders; none under two items, or where all are tied in either.
pub fn tau_b(items: &[(f64, f64)]) -> Option<Tau> {
    let (mut balance, mut first_tied, mut second_tied, mut pairs) = (0_i64, 0_u64, 0_u64, 0_u64);
    for (place, one) in items.iter().enumerate() {
        for two in &items[place + 1..] {
            pairs += 1;
            let first = one.0.total_cmp(&two.0);
            let second = one.1.total_cmp(&two.1);
            first_tied += u64::from(first == Ordering::Equal);
            second_tied += u64::from(second == Ordering::Equal);
            if first != Ordering::Equal && second != Ordering::Equal {
                balance += if first == second { 1 } else { -1 };
            }
        }
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "pairs of events are far below 2^52"
    )]
    let (norm, difference) = (
        ((pairs - first_tied) as f64 * (pairs - second_tied) as f64).sqrt(),
        balance as f64,
    );
    (norm > 0.0).then(|| Tau {
        coefficient: (difference / norm).clamp(-1.0, 1.0),
        balance,
        pairs,
    })
}

pub(super) fn chronology(fixture: &Fixture, covered: &Covered, card: &mut Scorecard) {
    let orders: Vec<(f64, f64)> = covered
        .iter()
        .map(|(place, first)| (fixture.events[*place].order, f64::from(first.point)))
        .collect();
    let found = tau_b(&orders);
    let measured = |value: fn(f64) -> f64| match found {
        Some(found) => Measured::Score {
            value: value(found.coefficient),
            hits: found.balance,
            of: found.pairs,
        },
        None if covered.len() < 2 => Measured::None("fewer than two covered events".to_owned()),
        None => Measured::None("all covered events are at one time or one place".to_owned()),
    };
    let (tau, unit) = (measured(|tau| tau), measured(|tau| f64::midpoint(tau, 1.0)));
    card.measures.insert(ScoreName::ChronologyTau, tau);
    card.measures.insert(ScoreName::Chronology01, unit);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tau(items: &[(f64, f64)]) -> Option<f64> {
        tau_b(items).map(|found| found.coefficient)
    }

    #[test]
    fn tau_b_is_that_of_the_books() {
        assert_eq!(tau(&[]), None);
        assert_eq!(tau(&[(1.0, 1.0)]), None);
        assert_eq!(tau(&[(1.0, 5.0), (2.0, 5.0)]), None);
        assert_eq!(tau(&[(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]), Some(1.0));
        assert_eq!(tau(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]), Some(-1.0));
        // One of six pairs turned round.
        let one = tau(&[(1.0, 1.0), (2.0, 3.0), (3.0, 2.0), (4.0, 4.0)]).unwrap();
        assert!((one - 4.0 / 6.0).abs() < 1e-12);
        // scipy.stats.kendalltau([12, 2, 1, 12, 2], [1, 4, 7, 1, 0])
        let tied = tau(&[(12.0, 1.0), (2.0, 4.0), (1.0, 7.0), (12.0, 1.0), (2.0, 0.0)]).unwrap();
        assert!((tied + 0.471_404_520_791_031_6).abs() < 1e-9, "{tied}");
    }

    proptest! {
        #[test]
        fn tau_is_between_and_turns_with_the_order(items in proptest::collection::vec((0_i32..6, 0_i32..6), 0..12)) {
            let of = |sign: f64| -> Vec<(f64, f64)> {
                items.iter().map(|(a, b)| (f64::from(*a), sign * f64::from(*b))).collect()
            };
            if let (Some(one), Some(other)) = (tau(&of(1.0)), tau(&of(-1.0))) {
                prop_assert!((-1.0..=1.0).contains(&one));
                prop_assert!((one + other).abs() < 1e-12);
            }
        }
    }
}
