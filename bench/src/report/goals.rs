//! The goals for weir, and whether this run reaches them.

use crate::catalogue::{self, BetterDirection, Goal, Measure};

use super::model::{Cell, Report, TestReport, is_peer};
use super::stats::Ratio;
use super::story;
use super::text;

/// Whether a goal was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoalResult {
    /// The whole noise interval reaches the goal.
    Reached,
    /// The median reaches the goal; a part of the noise interval does not.
    ReachedByMedian,
    /// The median misses the goal; a part of the noise interval reaches it.
    MissedByMedian,
    /// The whole noise interval misses the goal.
    Missed,
    /// Timed figures have a single round, so the noise is unknown.
    Untold,
}

impl GoalResult {
    fn words(self) -> &'static str {
        match self {
            Self::Reached => "reached",
            Self::ReachedByMedian => "reached by the median, but not beyond noise",
            Self::MissedByMedian => "not reached by the median, but not beyond noise",
            Self::Missed => "not reached",
            Self::Untold => "one round cannot show it",
        }
    }
}

/// The goals of a test and their outcomes, as sentences. Goals without a figure in this run are left out.
pub fn told(report: &Report, test: &TestReport) -> Vec<String> {
    outcomes(report, test).into_iter().map(|(_, told)| told).collect()
}

/// The outcomes and sentences of a test's goals.
pub fn outcomes(report: &Report, test: &TestReport) -> Vec<(GoalResult, String)> {
    test.test.goals.iter().filter_map(|goal| goal_told(report, test, goal)).collect()
}

fn goal_told(report: &Report, test: &TestReport, goal: &Goal) -> Option<(GoalResult, String)> {
    let figure = test.figures.iter().find(|figure| figure.figure == goal.figure)?;
    let cell = |at: f64| figure.cells.iter().find(|cell| cell.at == at);
    let own = |at: f64| Some(cell(at)?.values[report.weir?]?.median);
    let place = |name: &str| report.run.products.iter().position(|product| product.name == name);
    let limit = text::ratio(goal.bound);
    let limit_in_units = || text::with_unit(goal.bound, goal.figure);
    let axis = test.test.axis;
    let (limit, (outcome, told)) = match goal.measure {
        Measure::Value => {
            let value = own(goal.at)?;
            (limit_in_units(), by_value(goal, value, text::with_unit(value, goal.figure))?)
        }
        Measure::ExcessOver(name) => {
            let value = own(goal.at)? - cell(goal.at)?.values[place(name)?]?.median;
            let limit = format!("{} more than {}", limit_in_units(), report.called(name));
            (limit, by_value(goal, value, format!("{value:.2}"))?)
        }
        Measure::RatioToSetting(at) => {
            let value = own(goal.at)? / own(at)?;
            let limit = format!("{limit} of that with {}", text::setting(axis, at));
            (limit, by_value(goal, value, format!("{value:.3}"))?)
        }
        Measure::RatioToOther(name, at) => {
            let value = own(goal.at)? / cell(at)?.values[place(name)?]?.median;
            let limit =
                format!("{limit} of {}'s with {}", report.called(name), text::setting(axis, at));
            (limit, by_value(goal, value, format!("{value:.3} by the medians"))?)
        }
        Measure::RatioTo(name) => {
            let ratio = cell(goal.at)?.ratios[place(name)?]?;
            let is_repeatable = goal.figure.is_repeatable(axis, goal.at);
            let outcome = match is_repeatable {
                true => by_value(goal, ratio.median, format!("{:.3}", ratio.median))?,
                false => by_ratio(goal, &ratio, None),
            };
            (format!("{limit} of {}", report.called(name)), outcome)
        }
        Measure::RatioToBest(names) => {
            let (peer, ratio) = best(report, cell(goal.at)?, goal, names)?;
            (format!("{limit} of {}", best_told(names)), by_ratio(goal, &ratio, Some(peer)))
        }
    };
    let place = figure.cells.iter().position(|cell| cell.at == goal.at)?;
    let is_forfeit = goal.figure.is_latency() && test.has_failed(place, report.weir?);
    let (outcome, told) = if is_forfeit {
        let why = "not reached, because weir failed requests or fell behind the offered rate";
        (GoalResult::Missed, why.to_owned())
    } else {
        (outcome, told)
    };
    let setting = text::setting(axis, goal.at);
    let setting = if setting.is_empty() { setting } else { format!(", {setting}") };
    let bound = if is_higher_better(goal) { "at least" } else { "at most" };
    Some((outcome, format!("{}{setting}, {bound} {limit}: {told}", goal.figure.title())))
}

fn is_higher_better(goal: &Goal) -> bool {
    goal.figure.better() == BetterDirection::Higher
}

/// Whether a value reaches the bound.
fn is_good(goal: &Goal, value: f64) -> bool {
    if is_higher_better(goal) { value >= goal.bound } else { value <= goal.bound }
}

/// The product in `names` against which weir is worst, and the ratio to it.
fn best<'a>(
    report: &'a Report,
    cell: &Cell,
    goal: &Goal,
    names: &[&str],
) -> Option<(&'a str, Ratio)> {
    let is_meant = |name: &str| {
        // If a product has two rows, either may be the better one.
        if names.is_empty() { is_peer(name) } else { names.contains(&catalogue::maker(name)) }
    };
    (0..report.run.products.len())
        .filter(|&index| is_meant(report.product(index)))
        .filter_map(|index| Some((report.label(index), cell.ratios[index]?)))
        .max_by(|a, b| {
            let by_ratio = a.1.median.total_cmp(&b.1.median);
            if is_higher_better(goal) { by_ratio.reverse() } else { by_ratio }
        })
}

/// Example: `the better of nginx and HAProxy`.
fn best_told(names: &[&str]) -> String {
    let listed: Vec<String> = names.iter().map(|name| text::maker(name).to_owned()).collect();
    match listed.len() {
        0 => "the best peer".to_owned(),
        1 => text::list(&listed),
        2 => format!("the better of {}", text::list(&listed)),
        _ => format!("the best of {}", text::list(&listed)),
    }
}

/// The outcome of a repeatable count: only the value decides.
fn by_value(goal: &Goal, value: f64, told: String) -> Option<(GoalResult, String)> {
    let outcome = if is_good(goal, value) { GoalResult::Reached } else { GoalResult::Missed };
    value.is_finite().then(|| (outcome, format!("{} ({told})", outcome.words())))
}

/// The outcome of a timed figure: certain only if the whole noise interval agrees.
fn by_ratio(goal: &Goal, ratio: &Ratio, peer: Option<&str>) -> (GoalResult, String) {
    let outcome = match ratio.interval {
        None => GoalResult::Untold,
        Some((low, high)) if is_good(goal, low) && is_good(goal, high) => GoalResult::Reached,
        Some((low, high)) if !is_good(goal, low) && !is_good(goal, high) => GoalResult::Missed,
        Some(_) if is_good(goal, ratio.median) => GoalResult::ReachedByMedian,
        Some(_) => GoalResult::MissedByMedian,
    };
    let of = peer.map(|peer| format!(" of {peer}")).unwrap_or_default();
    let rounds = text::counted(ratio.rounds, "round");
    (outcome, format!("{} ({}{of} in {rounds})", outcome.words(), story::ratio(ratio)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Figure;
    use crate::report::testing;

    #[test]
    fn goals_are_told() {
        let report = Report::new(testing::run());
        let of = |name: &str| {
            let test = report.tests.iter().find(|test| test.test.name == name).expect("a test");
            told(&report, test)
        };
        let check = |test: &str, parts: &[&str]| {
            let told = of(test);
            assert_eq!(told.len(), parts.len(), "{told:?}");
            for (told, part) in told.iter().zip(parts) {
                assert!(told.contains(part), "{told:?} has no {part:?}");
            }
        };
        let of_requests = [
            "at most 0.80 of the better of nginx and HAProxy: not reached",
            "at most 0.40 of Envoy: reached (0.2",
            "at most 1.20 of relay: ",
        ];
        check("l7-requests", &of_requests);
        check("requests-per-cpu-second", &of_requests);
        check("l7-throughput", &["at most 0.90 of the better of nginx and HAProxy: "]);
        check(
            "p99-near-limit",
            &[
                "P99 latency, 1 B, at most 0.70 of the best peer: ",
                "P99 latency, 30 KB, at most 0.70 of the best peer: ",
            ],
        );
        check("l7-connections", &[]);
        check("p99-stressed", &[]);
        check(
            "instructions",
            &["at most 0.40 of nginx: reached", "at most 0.30 of HAProxy: reached"],
        );
        check("system-calls", &["1 connection, at most 0.200 more than relay: "]);
        check("idle-memory", &["at most 1,024 B: reached", "at most 256 KiB: reached"]);
        let of_growth = "1,000 virtual servers, at most 1.05 of that with 24 virtual servers: ";
        let of_members = ["2 members, round robin: ", "2 members, least connections: "];
        check(
            "growth",
            &[of_growth, of_members[0], of_members[1], "at most 1.20 of that with 10 rules: "],
        );
    }

    #[test]
    fn a_latency_of_who_fell_behind_reaches_nothing() {
        let mut run = testing::run();
        run.tests.retain(|test| test.name == "p99-near-limit");
        for point in run.tests[0].points.iter_mut().filter(|point| point.product == "weir") {
            point.load.latency_us.p99 = 1;
            if point.at == 1.0 {
                testing::keep_share(point, 0.5);
            }
        }
        let report = Report::new(run);
        let told = told(&report, &report.tests[0]);
        assert!(told[0].ends_with(
            "not reached, because weir failed requests or fell behind the offered rate"
        ));
        assert!(told[1].contains("best peer: reached"), "{told:?}");
    }

    #[test]
    fn a_goal_of_a_rate_is_a_lower_bound() {
        let goal = Goal {
            figure: Figure::HandshakesPerCpuSecond,
            at: 0.0,
            measure: Measure::RatioTo("nginx"),
            bound: 1.3,
        };
        let check = |interval: (f64, f64), median: f64, expected: &str| {
            let ratio = Ratio { median, interval: Some(interval), rounds: 5 };
            assert!(by_ratio(&goal, &ratio, None).1.starts_with(expected), "{ratio:?}");
        };
        check((1.31, 1.5), 1.4, "reached (");
        check((1.2, 1.5), 1.4, "reached by the median, but not beyond noise");
        check((1.2, 1.5), 1.25, "not reached by the median, but not beyond noise");
        check((1.0, 1.2), 1.1, "not reached (");
    }

    #[test]
    fn the_noise_must_be_on_the_right_side_of_a_goal() {
        let goal = Goal {
            figure: Figure::CpuPerRequest,
            at: 0.0,
            measure: Measure::RatioTo("nginx"),
            bound: 0.8,
        };
        let check = |interval: Option<(f64, f64)>, median: f64, expected: &str| {
            let ratio = Ratio { median, interval, rounds: 5 };
            assert!(by_ratio(&goal, &ratio, None).1.starts_with(expected), "{ratio:?}");
        };
        check(None, 0.5, "one round cannot show it (0.50 in 5 rounds)");
        check(Some((0.6, 0.8)), 0.7, "reached (0.70 (0.60–0.80) in 5 rounds)");
        check(Some((0.7, 0.9)), 0.75, "reached by the median, but not beyond noise");
        check(Some((0.7, 0.9)), 0.85, "not reached by the median, but not beyond noise");
        check(Some((0.81, 0.9)), 0.85, "not reached (");
    }
}
