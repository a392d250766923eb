//! Comparisons of synthetic runs.

use super::*;
use crate::catalogue::RELAY;
use crate::report::testing;

fn compared(a: Run, b: Run) -> Comparison {
    let (a, b) = (Report::new(a), Report::new(b));
    Comparison::new((Path::new("runs/a"), &a), (Path::new("runs/b"), &b))
}

/// Multiplies one product's CPU cost in a test by `factor`.
fn slow_down(run: &mut Run, test: &str, product: &str, factor: f64) {
    let record = run.tests.iter_mut().find(|record| record.name == test).expect("a test");
    for point in record.points.iter_mut().filter(|point| point.product == product) {
        point.cost.busy_s *= factor;
    }
}

#[test]
fn nothing_moved_is_said_plainly() {
    let comparison = compared(testing::run(), testing::run());
    assert!(comparison.changes.len() > 100);
    assert!(!comparison.worsened());
    let text = comparison.to_string();
    assert!(text.contains("Nothing moved: all"), "{text}");
    assert!(text.contains("weir did not become worse"), "{text}");
}

#[test]
fn what_moved_is_said_first() {
    let mut worse = testing::run();
    slow_down(&mut worse, "l7-requests", WEIR, 1.5);
    let comparison = compared(testing::run(), worse.clone());
    assert!(comparison.worsened());
    let first = comparison.moved().find(|change| change.is_judged).expect("a change");
    assert_eq!((first.test.as_str(), first.moved), ("l7-requests", RatioChange::Worse));
    let text = comparison.to_string();
    assert!(text.contains("l7-requests, CPU per request, core busy vs nginx: 0.8"), "{text}");
    assert!(text.contains("(+50.0%, noise ±") && text.contains("): worse\n"), "{text}");
    assert!(text.contains("weir became worse"), "{text}");

    let comparison = compared(worse, testing::run());
    assert!(!comparison.worsened());
    assert!(comparison.moved().any(|change| change.moved == RatioChange::Better));
}

/// Two runs of the same products on the same machine differ only by chance.
#[test]
fn chance_alone_moves_little_and_raises_no_alarm() {
    let runs: Vec<Report> =
        (1..=12).map(|seed| Report::new(testing::run_of_noise(seed * 0x9e37_79b9))).collect();
    let folder = Path::new("runs/x");
    let (mut alarms, mut moved, mut all) = (0, 0, 0);
    for pair in runs.windows(2) {
        let comparison = Comparison::new((folder, &pair[0]), (folder, &pair[1]));
        alarms += usize::from(comparison.worsened());
        moved += comparison.moved().count();
        all += comparison.changes.len();
    }
    assert!(moved * 20 <= all, "{moved} of {all} moved");
    assert!(alarms <= 1, "{alarms} alarms in {} comparisons", runs.len() - 1);
}

#[test]
fn one_peer_alone_raises_no_alarm() {
    let mut run = testing::run();
    slow_down(&mut run, "l7-requests", "nginx", 0.5);
    let comparison = compared(testing::run(), run);
    let moved: Vec<_> = comparison.moved().map(|change| change.peer.as_str()).collect();
    assert!(!moved.is_empty() && moved.iter().all(|peer| *peer == "nginx"), "{moved:?}");
    assert!(!comparison.worsened());
}

#[test]
fn where_one_peer_alone_has_a_setting_chance_is_named() {
    let only = |peer: &'static str| {
        let mut run = testing::run();
        for test in &mut run.tests {
            test.points.retain(|point| [WEIR, RELAY, peer].contains(&point.product.as_str()));
        }
        run
    };
    let warnings = compared(testing::run(), testing::run()).warnings;
    assert_eq!(warnings, Vec::<String>::new());
    let warnings = compared(only("nginx"), only("nginx")).warnings;
    assert!(warnings[0].contains("have one peer alone"), "{warnings:?}");
    assert_eq!(warnings.len(), 1);
    let mut run = testing::run();
    let of_basic = run.tests.iter_mut().find(|test| test.name == "basic-l7").expect("a test");
    of_basic.points.retain(|point| point.at < 90e3 || [WEIR, "nginx"].contains(&&*point.product));
    let warnings = compared(run.clone(), run).warnings;
    assert!(warnings[0].contains("of the judged ratios have one peer alone"), "{warnings:?}");
}

#[test]
fn moving_against_the_relay_alone_raises_no_alarm() {
    let mut run = testing::run();
    slow_down(&mut run, "l7-requests", RELAY, 0.5);
    let comparison = compared(testing::run(), run);
    assert!(comparison.moved().count() > 0);
    assert!(!comparison.worsened());
}

#[test]
fn small_changes_and_single_rounds_are_no_moves() {
    let ratio = |median: f64, rounds: usize| {
        Ratio::paired(std::iter::repeat_n((median, 1.0), rounds)).expect("a ratio")
    };
    let check = |before: f64, after: f64, rounds, better, expected| {
        let place = || ["test", "figure", "", "peer"].map(str::to_owned);
        let (a, b) = (ratio(before, rounds), ratio(after, rounds));
        let change = Change::new(place(), true, better, a, b);
        assert_eq!(change.moved, expected, "{before} to {after}, {better:?}");
    };
    check(1.0, 1.005, 3, BetterDirection::Lower, RatioChange::Not);
    check(1.0, 1.05, 3, BetterDirection::Lower, RatioChange::Worse);
    check(1.0, 1.05, 3, BetterDirection::Higher, RatioChange::Better);
    check(1.0, 0.95, 3, BetterDirection::Lower, RatioChange::Better);
    check(1.0, 0.95, 3, BetterDirection::Higher, RatioChange::Worse);
    check(1.0, 0.95, 3, BetterDirection::Neither, RatioChange::Otherwise);
    check(1.0, 0.5, 1, BetterDirection::Lower, RatioChange::Untold);
}

#[test]
fn differences_between_the_runs_are_noted() {
    let mut other = testing::run();
    other.machine.kernel = "Linux 7.0".to_owned();
    other.machine.cpu = "another".to_owned();
    other.tests.retain(|test| test.name != "ramp");
    other.products.retain(|product| product.name != "envoy");
    for test in &mut other.tests {
        test.points.retain(|point| point.product != "envoy");
    }
    other.products[1].version = "nginx/1.31.0".to_owned();
    other.products[1].tls = Some("OpenSSL 3.5.1".to_owned());
    other.products[2].tls = Some("OpenSSL 3.5.1".to_owned());
    other.products[0].commit = Some("0123abc".to_owned());
    let mut run = testing::run();
    run.products[1].tls = Some("OpenSSL 3.0.22".to_owned());
    let text = compared(run, other).to_string();
    assert!(!text.contains("TLS library of haproxy"), "A does not tell it: {text}");
    for part in [
        "note: different kernel: Linux 6.18.5 x86_64 in A, Linux 7.0 in B",
        "note: different processor",
        "note: different version of nginx: nginx/1.22.1 in A, nginx/1.31.0 in B",
        "note: different TLS library of nginx: OpenSSL 3.0.22 in A, OpenSSL 3.5.1 in B",
        "weir 0.1.0 at commit 0123abc",
        "note: envoy is in A only",
        "note: test ramp is in A only",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[test]
fn rates_that_are_apart_are_noted() {
    let check = |test: &str, factor: f64, expected: Option<&str>| {
        let mut other = testing::run();
        let record = other.tests.iter_mut().find(|record| record.name == test).expect("a test");
        for point in &mut record.points {
            point.load.offered_per_second = point.load.offered_per_second.map(|r| r * factor);
        }
        let notes = compared(testing::run(), other).notes;
        let noted = notes.iter().find(|note| note.contains("other rates were offered"));
        let told = noted.and_then(|note| note.split("the same test: ").nth(1));
        assert_eq!(told, expected, "{test} {factor}");
    };
    let in_both = "7,000/s in A and 7,420/s in B";
    check("requests-per-cpu-second", 1.06, Some(in_both));
    check("requests-per-cpu-second", 1.04, None);
    let at_sizes = "8,000/s in A and 4,000/s in B";
    check("p99-stressed", 0.5, Some(at_sizes));
    check("l7-requests", 2.0, None);
    check("cpu-65", 2.0, None);
    check("ramp", 2.0, None);
}

#[test]
fn a_failure_makes_a_run_worse() {
    let mut dead = testing::run();
    dead.tests.retain(|test| test.name == "l7-requests");
    dead.tests[0].points.retain(|point| point.product != WEIR);
    let comparison = compared(testing::run(), dead).told(Path::new("a"), Path::new("b"));
    let comparison = comparison.expect("nothing in common, and yet worse");
    assert!(comparison.worsened() && comparison.changes.is_empty());
    let text = comparison.to_string();
    assert!(text.contains("\nweir failed: l7-requests: no requests per second and "), "{text}");
    assert!(text.contains("\nweir became worse"), "{text}");
}

#[test]
fn nothing_to_compare_is_an_error() {
    let check = |change: fn(&mut Run), expected: &str| {
        let mut other = testing::run();
        change(&mut other);
        let told = compared(testing::run(), other).told(Path::new("runs/a"), Path::new("b"));
        let message = told.expect_err("an error").to_string();
        assert!(
            message.starts_with("runs/a and b have ") && message.contains(expected),
            "{message}"
        );
    };
    check(|run| run.tests.clear(), "no test, setting and peer in common");
    check(
        |run| {
            run.products.retain(|product| product.name == WEIR);
            run.tests.iter_mut().for_each(|test| {
                test.points.retain(|point| point.product == WEIR);
            });
        },
        "no test, setting and peer in common",
    );
    let one_timed_round = |run: &mut Run| {
        run.tests.retain(|test| test.name == "l7-requests");
        run.tests[0].points.retain(|point| point.round == 0);
    };
    check(one_timed_round, "only single rounds in common");
    let same = compared(testing::run(), testing::run());
    assert!(same.told(Path::new("a"), Path::new("b")).is_ok());
}

#[test]
fn a_comparison_of_little_warns() {
    let mut other = testing::run();
    other.tests.retain(|test| test.name == "l7-requests");
    let comparison = compared(testing::run(), other);
    assert_eq!(comparison.warnings.len(), 1);
    let text = comparison.to_string();
    assert_eq!(text.matches("WARNING: ").count(), 1, "{text}");
    assert!(text.contains("\nWARNING: only ") && text.contains("ratios in A are in the other run"));
    assert_eq!(compared(testing::run(), testing::run()).warnings, [""; 0]);
}

#[test]
fn ramps_of_other_steps_are_compared_by_their_knees() {
    let mut other = testing::run();
    other.tests.retain(|test| test.name == "ramp");
    let mut one = other.clone();
    for point in &mut one.tests[0].points {
        point.at *= 1.01;
        point.load.requests_per_second *= 1.01;
    }
    let comparison = compared(one, other);
    assert!(!comparison.changes.is_empty());
    assert!(comparison.changes.iter().all(|change| change.figure == "knee"));
    assert!(comparison.warnings.is_empty());
    assert!(comparison.to_string().contains("only the knees are compared"));
}

#[test]
fn the_json_has_every_change() {
    let comparison = compared(testing::run(), testing::run());
    let json = serde_json::to_value(&comparison).expect("JSON");
    assert_eq!(json["changes"].as_array().map(Vec::len), Some(comparison.changes.len()));
    assert_eq!(json["worsened"], false);
    assert!(json["changes"][0]["a"]["median"].is_f64());
}
