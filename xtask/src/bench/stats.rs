//! Medians and percentiles.

use std::time::Duration;

/// The median; the lower of the two middle values. Zero if empty.
pub(super) fn median(values: &[f64]) -> f64 {
    percentile(values, 50)
}

/// The smallest value that at least `percent` of the values don't exceed. Zero if empty.
pub(super) fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0.0)
}

/// Converts to milliseconds, the unit of all times.
pub(super) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Operations per second.
pub(super) fn rate(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_one_of_the_values_whatever_their_order() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.0);
        assert_eq!(median(&[7.0]), 7.0);
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn a_percentile_leaves_as_many_above_it_as_it_says() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(percentile(&values, 50), 100.0);
        assert_eq!(percentile(&values, 99), 198.0);
        assert_eq!(percentile(&values, 100), 200.0);
        assert_eq!(percentile(&values, 0), 1.0);
        assert_eq!(percentile(&values[..10], 99), 10.0);
    }

    #[test]
    fn rates_are_per_second() {
        assert_eq!(rate(50, Duration::from_millis(500)), 100.0);
        assert_eq!(millis(Duration::from_micros(1500)), 1.5);
    }
}
