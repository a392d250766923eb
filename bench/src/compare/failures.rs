//! Results of weir that the earlier run has and the later run lacks. They have no ratio, and are the worst change.

use serde::Serialize;

use crate::catalogue::Axis;
use crate::record::Point;
use crate::report::model::{FigureReport, Report, TestReport, WEIR, is_peer};
use crate::report::text;

/// Increase of the share of failed requests that counts as a failure.
pub const ERROR_SHARE_CHANGE_MIN: f64 = 0.001;

/// A result that weir lacks in the later run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failure {
    /// The test.
    pub test: String,
    /// The setting in words; empty if the test varies nothing.
    pub setting: String,
    /// Description of the failure.
    pub what: String,
}

/// Results of weir in a test of run A that run B lacks, although run B measured a peer.
pub(super) fn failures(
    (a, test_a): (&Report, &TestReport),
    (b, test_b): (&Report, &TestReport),
) -> Vec<Failure> {
    let (Some(weir_a), Some(weir_b)) = (a.weir, b.weir) else { return Vec::new() };
    let axis = test_a.test.axis;
    let failure = |at: Option<f64>, what: String| Failure {
        test: test_a.test.name.to_owned(),
        setting: at.map(|at| text::setting(axis, at)).unwrap_or_default(),
        what,
    };
    if axis == Axis::OfferedRate {
        let knee = |test: &TestReport, product: usize| test.knees.as_ref()?.of[product];
        let kept = knee(test_a, weir_a).filter(|_| knee(test_b, weir_b).is_none());
        let has_peer = b.peers().any(|peer| knee(test_b, peer).is_some());
        let what =
            |at: f64| format!("no step of the ramp was kept; {}/s were in A", text::number(at));
        return kept
            .filter(|_| has_peer)
            .map(|knee| failure(None, what(knee.at)))
            .into_iter()
            .collect();
    }
    let mut failures = Vec::new();
    for &at in &test_a.settings {
        let lacking: Vec<String> = test_a
            .figures
            .iter()
            .filter(|figure| figure.is_judged && has_value(figure, weir_a, at))
            .filter(|figure| is_lacking(b, test_b, figure, weir_b, at))
            .map(|figure| figure.figure.title().to_owned())
            .collect();
        if !lacking.is_empty() {
            let what = format!("no {} in B, where peers have it", text::list(&lacking));
            failures.push(failure(Some(at), what));
        }
        let (Some(before), Some(now)) = (error_share(a, test_a, at), error_share(b, test_b, at))
        else {
            continue;
        };
        if now > before + ERROR_SHARE_CHANGE_MIN {
            let [before, now] = [before, now].map(|share| text::number(share * 100.0));
            let what = format!("{now}% of the requests failed in B, {before}% in A");
            failures.push(failure(Some(at), what));
        }
    }
    failures
}

fn has_value(figure: &FigureReport, product: usize, at: f64) -> bool {
    figure.cells.iter().any(|cell| cell.at == at && cell.values[product].is_some())
}

/// Whether a run lacks weir's value of a figure, but has a peer's value.
fn is_lacking(
    run: &Report,
    test: &TestReport,
    wanted: &FigureReport,
    weir: usize,
    at: f64,
) -> bool {
    let figure = test.figures.iter().find(|figure| figure.figure == wanted.figure);
    let is_peers = |product: usize| is_peer(run.product(product));
    figure.is_some_and(|figure| {
        !has_value(figure, weir, at)
            && (0..run.run.products.len()).any(|p| is_peers(p) && has_value(figure, p, at))
    })
}

/// Weir's share of failed requests at a setting; `None` without requests.
fn error_share(run: &Report, test: &TestReport, at: f64) -> Option<f64> {
    let own = || run.record(test).points.iter().filter(|p| p.product == WEIR && p.at == at);
    let sum = |count: fn(&Point) -> u64| own().map(count).fold(0, u64::saturating_add) as f64;
    let (good, failed) = (sum(|point| point.load.requests), sum(|point| point.load.errors));
    (good + failed > 0.0).then(|| failed / (good + failed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Omission, Run, TestRecord};
    use crate::report::testing;

    fn failures_of(test: &str, change: impl Fn(&mut TestRecord)) -> Vec<(String, String)> {
        let only = |change: &dyn Fn(&mut TestRecord)| {
            let mut run: Run = testing::run();
            run.tests.retain(|record| record.name == test);
            change(&mut run.tests[0]);
            Report::new(run)
        };
        let (a, b) = (only(&|_| ()), only(&change));
        let found = failures((&a, &a.tests[0]), (&b, &b.tests[0]));
        found.into_iter().map(|failure| (failure.setting, failure.what)).collect()
    }

    #[test]
    fn what_weir_does_not_do_again_is_found() {
        let check = |test: &str, change: fn(&mut TestRecord), expected: &[(&str, &str)]| {
            let found = failures_of(test, change);
            let found: Vec<_> =
                found.iter().map(|(at, what)| (at.as_str(), what.as_str())).collect();
            assert_eq!(found, expected, "{test}");
        };
        check("l7-requests", |_| (), &[]);
        let without_rate =
            "no requests per second and CPU per request, core busy in B, where peers have it";
        let dead = |record: &mut TestRecord| record.points.retain(|point| point.product != WEIR);
        check("l7-requests", dead, &[("", without_rate)]);
        let dead_at_96k = |record: &mut TestRecord| {
            record.points.retain(|point| point.product != WEIR || point.at != 96e3);
            let reason = "it ended".to_owned();
            record.omissions.push(Omission { product: WEIR.to_owned(), at: Some(96e3), reason });
        };
        let without_latency =
            "no P99 latency and CPU per request, core busy in B, where peers have it";
        check("basic-l7", dead_at_96k, &[("96,000 connections", without_latency)]);
        // A setting without any result was not measured; it is no evidence about weir.
        check("basic-l7", |record| record.points.retain(|point| point.at != 96e3), &[]);
        let past_it = |record: &mut TestRecord| {
            record.points.iter_mut().for_each(|point| {
                if point.product == WEIR {
                    point.load.latency_us.p99 = 1_000_000;
                }
            });
        };
        check("ramp", past_it, &[("", "no step of the ramp was kept; 50,000/s were in A")]);
    }

    #[test]
    fn more_failed_requests_are_a_failure() {
        let of = |share: f64| {
            failures_of("l7-requests", |record| {
                for point in record.points.iter_mut().filter(|point| point.product == WEIR) {
                    point.load.errors = (point.load.requests as f64 * share) as u64;
                }
            })
        };
        assert_eq!(of(0.0005), []);
        let found = of(0.25);
        assert_eq!(found[0].1, "20.0% of the requests failed in B, 0% in A");
    }
}
