//! The measurements of a test, and the validity of their figures.

use std::collections::HashMap;

use crate::catalogue::Figure;
use crate::record::{Point, TestRecord};

use super::percentiles;
use super::source::key;
use super::stats::{Ratio, Spread};

/// The measurements of a test by setting, product and round.
pub struct Points<'a> {
    by_setting: HashMap<u64, HashMap<&'a str, Vec<&'a Point>>>,
}

impl<'a> Points<'a> {
    /// The points of a test.
    pub fn new(record: &'a TestRecord) -> Self {
        let mut by_setting: HashMap<u64, HashMap<&str, Vec<&Point>>> = HashMap::new();
        for point in &record.points {
            let products = by_setting.entry(key(point.at)).or_default();
            products.entry(&point.product).or_default().push(point);
        }
        Self { by_setting }
    }

    /// The points of one product at one setting, in different rounds.
    pub fn of(&self, at: f64, product: &str) -> &[&'a Point] {
        let products = self.by_setting.get(&key(at));
        products.and_then(|products| products.get(product)).map_or(&[], Vec::as_slice)
    }

    /// Weir's value divided by a peer's value, paired by round.
    pub fn ratio(
        &self,
        at: f64,
        weir: &str,
        peer: &str,
        value: impl Fn(&Point) -> Option<f64>,
    ) -> Option<Ratio> {
        let peers: HashMap<u32, f64> = self
            .of(at, peer)
            .iter()
            .filter_map(|point| Some((point.round, value(point)?)))
            .collect();
        Ratio::paired(
            self.of(at, weir)
                .iter()
                .filter_map(|point| Some((value(point)?, *peers.get(&point.round)?))),
        )
    }
}

/// Median of the kept shares of the offered rate.
pub fn kept(points: &[&Point]) -> Option<f64> {
    let shares = points.iter().filter_map(|point| point.load.kept_share());
    Spread::of(shares).map(|spread| spread.median)
}

/// The value of a figure if it is valid. Busy time less the resting share may be negative in a disturbed measurement;
/// such a value is invalid.
pub fn value_of(figure: Figure, point: &Point) -> Option<f64> {
    // A CPU time of zero only shows that the clock was too coarse.
    let is_told = match figure {
        Figure::CpuPerRequest
        | Figure::CpuPerGigabyte
        | Figure::CoreBusy
        | Figure::CpuPerPacket
        | Figure::RequestsPerCpuSecond
        | Figure::HandshakesPerCpuSecond => point.cost.busy_s > 0.0,
        Figure::WorkersCpuPerRequest => point.cost.workers_s.is_some_and(|ran_s| ran_s > 0.0),
        Figure::OwnCpuPerRequest => point.cost.process_s > 0.0,
        Figure::AddedCpuPerRequest | Figure::FirewallCpuPerRequest => {
            figure.of(point).is_some_and(|value| value > 0.0)
        }
        _ => true,
    };
    figure.of(point).filter(|value| is_told && value.is_finite() && *value >= 0.0)
}

/// Whether a ratio may use the point's figure. A P99 of few transactions is shown, but not judged.
pub fn is_judgeable(figure: Figure, point: &Point) -> bool {
    figure != Figure::LatencyP99 || percentiles::is_told(point.load.latency_us.count, 99.0)
}
