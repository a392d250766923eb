//! Detections and false positives of rule sets, measured with the engine.
//!
//! `cargo test --release -p weir-waf --test detection -- --nocapture` prints the figures. Attack strings are in
//! `WEIR_CORPORA`, CRS and its tests in `WEIR_CRS` and `WEIR_CRS_TESTS`; by default, all are in `../shared`. Debug builds
//! use a sample of the attack strings.

mod blocking;
mod builtin;
mod content;
mod corpus;
mod cost;
#[path = "../support/data.rs"]
#[allow(dead_code, reason = "the regression tests use the rest of it")]
mod data;
mod encoded;
mod figures;
#[path = "../support/ftw.rs"]
#[allow(dead_code, reason = "the regression tests use the rest of it")]
mod ftw;
mod hidden;
mod ordinary;
mod prose;
mod recorded;
mod regression;
mod send;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_waf::plan::RuleSet;

use crate::send::Sent;

fn builtin() -> Arc<RuleSet> {
    match weir_waf::builtin::rules() {
        Ok(rules) => Arc::new(rules),
        Err(problems) => {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            panic!("{} problems:\n{}", problems.len(), problems.join("\n"));
        }
    }
}

/// A rule set and its goals: the minimum share of denied attacks in the collection, and the maximum share of denied ordinary
/// requests, in percent.
struct Candidate {
    name: &'static str,
    rules: Arc<RuleSet>,
    level: &'static str,
    attacks_min: f64,
    ordinary_max: f64,
}

fn candidates() -> Vec<Candidate> {
    let own = builtin();
    let mut all = vec![
        Candidate {
            name: "built-in, level 1",
            rules: Arc::clone(&own),
            level: "1",
            attacks_min: 99.0,
            ordinary_max: 0.5,
        },
        Candidate {
            name: "built-in, level 2",
            rules: own,
            level: "2",
            attacks_min: 99.5,
            ordinary_max: 50.0,
        },
    ];
    if let Some(crs) = data::rules() {
        // 932235 matches GraphQL and texts with code as shell commands, 942290 matches `$filter` of OData as MongoDB.
        all.push(Candidate {
            name: "CRS 4, level 1",
            rules: Arc::clone(&crs),
            level: "1",
            attacks_min: 94.0,
            ordinary_max: 8.0,
        });
        // Less than 97%: no rule of CRS matches single steps of traversal with overlong UTF-8.
        all.push(Candidate {
            name: "CRS 4, level 2",
            rules: crs,
            level: "2",
            attacks_min: 96.5,
            ordinary_max: 55.0,
        });
    }
    all
}

#[test]
fn attacks_are_found() {
    let Some(categories) = corpus::read() else { return };
    // The rate of a sample differs randomly from the rate of all strings.
    let tolerance = if cfg!(debug_assertions) { 1.5 } else { 0.0 };
    for candidate in candidates() {
        let view = send::view(&candidate.rules, &[("blocking_paranoia_level", candidate.level)]);
        let figures = figures::of_strings(&view, &categories);
        println!("\n{}: {} of attacks denied", candidate.name, figures.all);
        for (category, share) in &figures.attacks {
            println!("  {category:<12} {share}");
        }
        println!("  harmless strings denied: {}", figures.harmless);
        for (value, ids) in &figures.wrong {
            println!("    {ids:?} {}", shown(value));
        }
        println!("  missed, for example:");
        for (category, value) in figures.missed.iter().step_by(1 + figures.missed.len() / 12) {
            println!("    {category:<12} {}", shown(value));
        }
        let percent = figures.all.percent();
        assert!(percent >= candidate.attacks_min - tolerance, "{}: {percent}", candidate.name);
        if candidate.name == "built-in, level 1" {
            assert_eq!(figures.harmless.part, 0, "{:?}", figures.wrong);
        }
    }
}

#[test]
fn ordinary_requests_pass() {
    let (kinds, requests): (Vec<&str>, Vec<Sent>) = ordinary::requests().into_iter().unzip();
    assert!(requests.len() >= 2_000, "{}", requests.len());
    for candidate in candidates() {
        let view = send::view(&candidate.rules, &[("blocking_paranoia_level", candidate.level)]);
        let outcomes = figures::run_all(&view, &requests);
        let all = figures::denied(&outcomes);
        println!("\n{}: {all} of ordinary requests denied", candidate.name);
        let mut by_kind: BTreeMap<&str, (usize, usize, BTreeSet<u64>)> = BTreeMap::new();
        for (kind, outcome) in kinds.iter().zip(&outcomes) {
            let (denied, count, ids) = by_kind.entry(kind).or_default();
            *count += 1;
            if outcome.denied.is_some() {
                *denied += 1;
                ids.extend(&outcome.ids);
            }
        }
        for (kind, (denied, count, ids)) in &by_kind {
            println!("  {kind:<32} {denied:>4} of {count:>4} {ids:?}");
        }
        let percent = all.percent();
        assert!(percent <= candidate.ordinary_max, "{}: {percent}", candidate.name);
    }
}

/// The beginning of a value, as one line.
fn shown(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    text.escape_debug().take(100).collect()
}
