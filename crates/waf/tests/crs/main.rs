//! OWASP CRS 4 and its regression tests, in one process without sockets and other programs.
//!
//! CRS runs its tests in `DetectionOnly` at paranoia level 4.

mod run;
#[path = "../support/mod.rs"]
mod support;
#[path = "../invariants/turns.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod turns;

use std::collections::BTreeMap;
use std::sync::Arc;

use support::{SETTINGS, data, ftw};
use weir_waf::plan::{Settings, View};

/// Tests whose result differs from the one that CRS expects, and the reasons. All other tests must pass.
const KNOWN: [(&str, &str); 4] = [
    ("920181-1", "Apache removes Content-Length beside Transfer-Encoding before rules see it"),
    ("920620-1", "Apache makes one header of two Content-Type headers"),
    ("920640-5", "the rule is right; Apache does not read this body, as it has no length"),
    ("921140-1", "Apache answers 400 before rules see a header with a bare CR"),
];

fn settings(pairs: &[(&str, &str)]) -> Settings {
    let owned = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Settings { variables: owned.collect() }
}

#[test]
fn the_regression_tests_of_crs_come_out_as_expected() {
    let Some(rules) = data::rules() else { return };
    let Some(tests) = data::tests() else { return };
    let view = Arc::new(View::new(Arc::clone(&rules), &settings(&SETTINGS)).expect("a view"));
    let stages = ftw::read(&tests);
    let count = stages.len();
    assert!(count > 5_000, "{count} tests");
    let mut failed = BTreeMap::new();
    for test in &stages {
        if let Err(reason) = run::run(&view, test) {
            failed.insert(test.name.clone(), reason);
        }
    }
    let known: BTreeMap<&str, &str> = KNOWN.into_iter().collect();
    let news: Vec<String> = failed
        .iter()
        .filter(|(name, _)| !known.contains_key(name.as_str()))
        .map(|(name, reason)| format!("{name}: {reason}"))
        .collect();
    println!("{} of {count} tests of CRS come out as expected", count - failed.len());
    assert!(news.is_empty(), "{} others:\n{}", news.len(), news.join("\n"));
    let mended: Vec<_> = known.keys().filter(|name| !failed.contains_key(**name)).collect();
    assert!(mended.is_empty(), "these come out as expected, and are listed as known: {mended:?}");
}

#[test]
fn paranoia_is_decided_before_any_request() {
    let Some(rules) = data::rules() else { return };
    let count = |level: &str| {
        let settings =
            settings(&[("blocking_paranoia_level", level), ("detection_paranoia_level", level)]);
        View::new(Arc::clone(&rules), &settings).expect("a view").rules_count()
    };
    let plain = View::plain(Arc::clone(&rules), &Settings::default()).rules_count();
    let counts = ["1", "2", "3", "4"].map(count);
    println!("{plain} rules, {counts:?} by paranoia level");
    assert!(counts.is_sorted() && counts[0] < plain / 2 + 60, "{plain} {counts:?}");
}

#[test]
fn the_rules_of_debian_load() {
    let Some(rules) = data::debian_rules() else { return };
    let view = View::new(rules, &Settings::default()).unwrap_or_else(|it| panic!("{it:?}"));
    assert!(view.rules_count() > 150, "{}", view.rules_count());
}
