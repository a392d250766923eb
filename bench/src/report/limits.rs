//! The core that limited the rates of a closed-loop test.

use crate::catalogue::{Axis, Figure, SIGNATURES};
use crate::record::Point;

use super::model::{Report, TestReport};
use super::points::value_of;
use super::source::key;
use super::stats::Spread;
use super::text;

/// A product with a smaller busy share of its core was not at its limit.
const PRODUCT_BUSY_PERCENT_MIN: f64 = 90.0;

/// From this busy share of its cores on, the load was saturated.
const LOAD_BUSY_PERCENT_MIN: f64 = 95.0;

/// The core that limits a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    /// The product's core: the rate is the product's capacity.
    Product,
    /// The load's cores: the product's capacity may be higher.
    Load,
    /// Neither was saturated, so one side waited for the other.
    Neither,
}

/// Busy percent of the product's core and of the load's cores, at one setting or all of them. The load is generator and
/// origin, or in runs without figures of the origin only the generator.
pub fn core_shares(
    report: &Report,
    test: &TestReport,
    product: &str,
    at: Option<f64>,
) -> Option<(f64, f64)> {
    let load_cores = report.run.bed.load_cores.len().max(1) as f64;
    let is_meant =
        |point: &&Point| point.product == product && at.is_none_or(|at| key(at) == key(point.at));
    let own = || report.record(test).points.iter().filter(is_meant);
    let load_percent = |point: &Point| {
        let spent_s = point.load.cpu_seconds + point.cost.origin_s.unwrap_or(0.0);
        let elapsed_s = point.load.completed().elapsed_s;
        (elapsed_s > 0.0).then(|| 100.0 * spent_s / elapsed_s / load_cores)
    };
    let busy = Spread::of(own().filter_map(|point| value_of(Figure::CoreBusy, point)))?;
    let load = Spread::of(own().filter_map(load_percent))?;
    Some((busy.median, load.median))
}

/// Whether a test is a closed loop, so that a core limits its rate.
pub fn is_closed_loop(report: &Report, test: &TestReport) -> bool {
    let points = &report.record(test).points;
    let is_closed = |point: &Point| point.load.offered_per_second.is_none();
    test.test.figures.contains(&Figure::CoreBusy)
        && !points.is_empty()
        && points.iter().all(is_closed)
}

fn limit(report: &Report, test: &TestReport, product: usize, at: f64) -> Option<Limit> {
    let (busy, load) = core_shares(report, test, report.product(product), Some(at))?;
    Some(match (busy, load) {
        _ if busy >= PRODUCT_BUSY_PERCENT_MIN => Limit::Product,
        _ if load >= LOAD_BUSY_PERCENT_MIN => Limit::Load,
        _ => Limit::Neither,
    })
}

/// Whether the load limits a product's rate at a setting, so that the rate cannot be judged.
pub fn is_load_the_limit(report: &Report, test: &TestReport, product: usize, at: f64) -> bool {
    is_closed_loop(report, test) && limit(report, test, product, at) == Some(Limit::Load)
}

/// The products that were not driven to their limit, with reasons, as sentences.
pub fn told(report: &Report, test: &TestReport) -> Vec<String> {
    if !is_closed_loop(report, test) {
        return Vec::new();
    }
    let mut said = Vec::new();
    if let Some(whom) = products_with(report, test, Limit::Load) {
        said.push(format!(
            "The load generator's core was the limit for {whom}: these rates are lower bounds and are not judged."
        ));
    }
    if let Some(whom) = products_with(report, test, Limit::Neither) {
        said.push(format!("Neither core was full for {whom}: a part of the time both waited."));
    }
    said
}

/// Example: `weir and nginx (5 KB, 16 KB)`. Settings are listed if they are not all settings of the test.
fn products_with(report: &Report, test: &TestReport, wanted: Limit) -> Option<String> {
    let told = |&product: &usize| {
        let limits: Vec<(f64, Limit)> = test
            .settings
            .iter()
            .filter_map(|&at| Some((at, limit(report, test, product, at)?)))
            .collect();
        let settings: Vec<String> = limits
            .iter()
            .filter(|(_, limit)| *limit == wanted)
            .map(|(at, _)| text::setting_short(test.test.axis, *at))
            .collect();
        let name = report.label(product);
        match settings.len() {
            0 => None,
            all if all == limits.len() || test.test.axis == Axis::Single => Some(name.to_owned()),
            _ => Some(format!("{name} ({})", settings.join(", "))),
        }
    };
    // Bare signatures need no load.
    let takers = test.takers.iter().filter(|&&product| report.product(product) != SIGNATURES);
    let told: Vec<String> = takers.filter_map(told).collect();
    (!told.is_empty()).then(|| text::list(&told))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Run;
    use crate::report::testing;
    use crate::report::verdict::{Subject, Verdicts};

    /// A run in which the product's core and the load's cores have these busy shares.
    fn busy(test: &str, shares: impl Fn(&Point) -> (f64, f64)) -> Run {
        let mut run = testing::run();
        run.tests.retain(|record| record.name == test);
        for point in &mut run.tests[0].points {
            let (product, load) = shares(point);
            point.cost.busy_s = product * point.cost.elapsed_s;
            point.load.cpu_seconds = load * point.load.elapsed_s;
            point.cost.origin_s = None;
        }
        run
    }

    #[test]
    fn who_was_the_limit_is_told() {
        let check = |weir: (f64, f64), haproxy: (f64, f64), expected: &[&str]| {
            let report = Report::new(busy("l7-requests", |point| match point.product.as_str() {
                "weir" => weir,
                "haproxy" => haproxy,
                _ => (0.97, 0.8),
            }));
            assert_eq!(told(&report, &report.tests[0]), expected, "{weir:?} {haproxy:?}");
        };
        const LOAD: &str = "these rates are lower bounds and are not judged.";
        check((0.97, 0.99), (0.97, 0.8), &[]);
        check(
            (0.8, 0.96),
            (0.97, 0.8),
            &[&format!("The load generator's core was the limit for weir: {LOAD}")],
        );
        check(
            (0.87, 0.83),
            (0.97, 0.8),
            &["Neither core was full for weir: a part of the time both waited."],
        );
        check(
            (0.8, 0.96),
            (0.5, 0.97),
            &[&format!("The load generator's core was the limit for weir and HAProxy: {LOAD}")],
        );
        let open = Report::new(busy("p99-idle", |_| (0.5, 0.5)));
        assert_eq!(told(&open, &open.tests[0]), [""; 0]);
        let of_sizes = Report::new(busy("envelope", |point| {
            (if point.product == "weir" && point.at == 5120.0 { 0.5 } else { 0.97 }, 0.5)
        }));
        let expected = ["Neither core was full for weir (5 KB): a part of the time both waited."];
        assert_eq!(told(&of_sizes, &of_sizes.tests[0]), expected);
    }

    #[test]
    fn no_rate_is_judged_where_the_load_was_the_limit() {
        let check = |limited: &[&str], against: Option<usize>| {
            let report = Report::new(busy("l7-requests", |point| {
                if limited.contains(&point.product.as_str()) { (0.8, 0.96) } else { (0.97, 0.8) }
            }));
            let verdicts = Verdicts::new(&report);
            let of = |figure| {
                let subject = Subject::Figure(figure);
                let found = verdicts.judgements.iter().find(|found| found.subject == subject);
                found.map(|found| found.against)
            };
            assert_eq!(of(Figure::Rate), against, "{limited:?}");
            assert_eq!(of(Figure::CpuPerRequest), Some(3), "CPU is judged all the same");
        };
        check(&[], Some(3));
        check(&["nginx"], Some(2));
        check(&["weir"], None);
    }
}
