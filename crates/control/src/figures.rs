//! Figures as people read them, made of counters.

use weir_exchange::shared::counters::{HistogramTotals, LATENCY_BOUNDS_US};

/// A gauge for display. Workers keep gauges as increments and decrements; a sum read while both change can be below
/// zero for a moment.
pub fn shown_gauge(total: u64) -> u64 {
    if i64::try_from(total).is_ok() { total } else { 0 }
}

/// The quantile, interpolated within its bucket as Prometheus' `histogram_quantile` does. In the last bucket, which has
/// no upper bound, the lower bound.
pub fn quantile(totals: &HistogramTotals, count: u64, percent: u64) -> Option<f64> {
    let rank = (count as f64 * percent as f64 / 100.0).max(f64::MIN_POSITIVE);
    let mut below = 0;
    for (index, &in_bucket) in totals.buckets.iter().enumerate() {
        if in_bucket > 0 && (below + in_bucket) as f64 >= rank {
            let start = index.checked_sub(1).map_or(0, |before| LATENCY_BOUNDS_US[before]) as f64;
            let end = LATENCY_BOUNDS_US.get(index).map_or(start, |&end| end as f64);
            return Some(round(start + (end - start) * (rank - below as f64) / in_bucket as f64));
        }
        below += in_bucket;
    }
    None
}

/// Microseconds as milliseconds with three digits.
pub fn round(microseconds: f64) -> f64 {
    microseconds.round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        let histogram = |samples: &[(usize, u64)]| {
            let mut totals = HistogramTotals::default();
            samples.iter().for_each(|&(bucket, count)| totals.buckets[bucket] = count);
            totals
        };
        let check = |samples: &[(usize, u64)], percent, expected| {
            let totals = histogram(samples);
            assert_eq!(
                quantile(&totals, totals.count(), percent),
                expected,
                "{samples:?} {percent}"
            );
        };
        check(&[], 99, None);
        check(&[(0, 100)], 50, Some(0.05));
        check(&[(0, 50), (3, 50)], 50, Some(0.1));
        check(&[(0, 50), (3, 50)], 99, Some(0.99));
        check(&[(LATENCY_BOUNDS_US.len(), 1)], 50, Some(30_000.0));
    }
}
