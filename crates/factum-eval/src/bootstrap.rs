//! Bootstrap intervals over fixtures: the same seed gives the same interval.

use serde::{Deserialize, Serialize};

/// Resamples of an interval.
const RESAMPLES: usize = 2_000;
/// Most draws of one interval: many fixtures need fewer resamples.
const MOST_DRAWS: usize = 2_000_000;

/// A 95% interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// The percentile interval of the mean; none for fewer than two values.
pub fn mean_interval(values: &[f64], seed: u64) -> Option<Interval> {
    interval(values.len(), seed, |draws| {
        let sum: f64 = draws.iter().map(|&place| values[place]).sum();
        Some(sum / count(draws.len()))
    })
}

/// The percentile interval of a statistic of `items` items, given by their places. Resamples for which there
/// is none are left out.
pub fn interval(
    items: usize,
    seed: u64,
    statistic: impl Fn(&[usize]) -> Option<f64>,
) -> Option<Interval> {
    if items < 2 {
        return None;
    }
    let mut rng = fastrand::Rng::with_seed(seed);
    let resamples = (MOST_DRAWS / items).clamp(200, RESAMPLES);
    let mut draws = vec![0; items];
    let mut found: Vec<f64> = Vec::with_capacity(resamples);
    for _ in 0..resamples {
        for draw in &mut draws {
            *draw = rng.usize(0..items);
        }
        found.extend(statistic(&draws));
    }
    found.sort_by(f64::total_cmp);
    let at = |per_mille: usize| found.get((found.len().checked_sub(1)?) * per_mille / 1000);
    Some(Interval {
        low: *at(25)?,
        high: *at(975)?,
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of fixtures are far below 2^52"
)]
pub(crate) fn count(n: usize) -> f64 {
    n as f64
}

/// The mean; none of nothing.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / count(values.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_its_mean_and_comes_from_its_seed() {
        let values: Vec<f64> = (0..50).map(|n| f64::from(n % 5) / 4.0).collect();
        let one = mean_interval(&values, 7).unwrap();
        assert_eq!(mean_interval(&values, 7), Some(one));
        assert!(one.low < 0.5 && 0.5 < one.high, "{one:?}");
        // The standard error is 0.05, so the interval is about 0.2 wide.
        assert!((0.15..0.25).contains(&(one.high - one.low)), "{one:?}");
        assert_eq!(mean_interval(&[1.0], 7), None);
        let same = mean_interval(&[0.4; 9], 7).unwrap();
        assert!((same.low - 0.4).abs() < 1e-12 && (same.high - 0.4).abs() < 1e-12);
    }
}
