//! Latency by percentile, from the curves of the rounds.

use crate::record::{Point, TestRecord};

use super::chart::SeriesPoint;
use super::source::key;
use super::stats::Spread;

/// The percentiles of the chart.
const PERCENTILES: [f64; 11] = [50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.8, 99.9, 99.95, 99.99];

/// Minimum number of slower transactions for a percentile. With fewer, single transactions would determine the curve.
pub const SLOWER_COUNT_MIN: f64 = 5.0;

/// A product's curve at a setting: milliseconds, with the spread of the rounds.
pub fn over_rounds(record: &TestRecord, product: &str, at: f64) -> Vec<SeriesPoint> {
    let rounds: Vec<&Point> = record
        .points
        .iter()
        .filter(|point| point.product == product && key(point.at) == key(at))
        .collect();
    PERCENTILES
        .into_iter()
        .filter_map(|percentile| {
            let values = rounds.iter().filter_map(|point| at_percentile(point, percentile));
            Some(SeriesPoint { x: percentile, y: Spread::of(values)? })
        })
        .filter(|point| point.y.min > 0.0)
        .collect()
}

/// Whether `count` transactions are enough for this percentile: at least [`SLOWER_COUNT_MIN`] are slower.
pub fn is_told(count: u64, percentile: f64) -> bool {
    // The margin allows for the rounding of the subtraction: 5 of 500 transactions are slower than P99.
    count as f64 * (1.0 - percentile / 100.0) >= SLOWER_COUNT_MIN - 1e-6
}

/// The latency of a round at this percentile, in milliseconds.
fn at_percentile(point: &Point, percentile: f64) -> Option<f64> {
    let latency = &point.load.latency_us;
    if !is_told(latency.count, percentile) {
        return None;
    }
    let curve = &latency.curve;
    let next = curve.iter().position(|(at, _)| *at >= percentile)?;
    let (above, high) = curve[next];
    let (below, low) = next.checked_sub(1).map_or((above, high), |index| curve[index]);
    let width = above - below;
    let share = if width > 0.0 { (percentile - below) / width } else { 1.0 };
    let microseconds = low as f64 + share * (high as f64 - low as f64);
    microseconds.is_finite().then_some(microseconds / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing;

    #[test]
    fn curves_are_read_between_their_places() {
        let run = testing::run();
        let mut point = run.tests[0].points[0].clone();
        point.load.latency_us.count = 500;
        point.load.latency_us.curve = vec![(0.0, 100), (50.0, 200), (98.0, 1000), (100.0, 3000)];
        for (percentile, expected) in [
            (50.0, Some(0.2)),
            (74.0, Some(0.6)),
            (98.0, Some(1.0)),
            (99.0, Some(2.0)),
            (99.9, None),
        ] {
            let found = at_percentile(&point, percentile);
            let is_close = match (found, expected) {
                (Some(found), Some(expected)) => f64::abs(found - expected) < 1e-9,
                (found, expected) => found == expected,
            };
            assert!(is_close, "P{percentile}: {found:?}");
        }
        for curve in [vec![], vec![(10.0, 5)]] {
            point.load.latency_us.curve = curve;
            assert_eq!(at_percentile(&point, 50.0), None);
        }
    }
}
