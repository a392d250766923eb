//! Figures for people, computed from counters.

use weir_exchange::shared::counters::{HistogramTotals, LATENCY_BOUNDS_US};

/// The displayed value of a gauge. Workers store gauges as increments and decrements. A sum that is read while they change
/// can be briefly below zero, and is then displayed as 0.
pub fn shown_gauge(total: u64) -> u64 {
    if i64::try_from(total).is_ok() { total } else { 0 }
}

/// A quantile in milliseconds, interpolated within its bucket as Prometheus' `histogram_quantile` does. In the last bucket,
/// which has no upper bound, it is the lower bound.
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

/// Converts microseconds to milliseconds with three decimals.
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
