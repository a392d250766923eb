//! The engine beside a plain interpreter of the same rules: random rule files and requests have to come to the same.
//!
//! `WEIR_WAF_ORACLE_CASES` says how many; `WEIR_WAF_ORACLE_SEED` shows one case.

mod compare;
mod generator;
mod interpreter;
mod shrink;

use std::time::{Duration, Instant};

use compare::{Comparison, compare};
use generator::Case;

/// Cases that each run of the tests makes, and how long they may take.
const CASES: u64 = 20_000;
const TIME_MAX: Duration = Duration::from_secs(20);
/// Cases of the long run.
const CASES_LONG: u64 = 1_000_000;

fn asked(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

/// What is told of a case that differs.
fn told(seed: u64, case: Case, what: String) -> String {
    let (small, what) = shrink::shrunk(case, what);
    let sent = &small.sent;
    format!(
        "seed {seed}: {what}\nsettings {:?}\n{}\n{} {}\n{:?}\n{:?}\nanswer {:?} {:?}",
        small.settings,
        small.rules(),
        sent.method,
        sent.target(),
        sent.all_headers(),
        sent.content.bytes(),
        sent.answer_headers,
        sent.answer,
    )
}

/// Compares so many cases, as long as there is time.
fn run(cases: u64, time_max: Option<Duration>) {
    let start = Instant::now();
    let (mut held, mut with_matches, mut count, mut refused) = (0, 0, 0, 0);
    for seed in 0..cases {
        if time_max.is_some_and(|max| start.elapsed() > max) {
            break;
        }
        count += 1;
        let case = Case::of(seed);
        match compare(&case) {
            Comparison::Same(rules) => {
                held += rules;
                with_matches += u64::from(rules > 0);
            }
            Comparison::Refused(reason) => {
                refused += 1;
                assert!(refused * 20 < count + 200, "seed {seed}: {reason}\n{}", case.rules());
            }
            Comparison::Different(what) => panic!("{}", told(seed, case, what)),
        }
    }
    println!(
        "{count} cases in {:?}: rules held in {with_matches}, {held} times; {refused} refused",
        start.elapsed()
    );
    // Cases in which nothing is found say little.
    assert!(with_matches * 2 > count, "{with_matches} of {count} cases have matches");
}

#[test]
fn engine_and_interpreter_agree() {
    if let Some(seed) = asked("WEIR_WAF_ORACLE_SEED") {
        let case = Case::of(seed);
        match compare(&case) {
            Comparison::Same(count) => println!("{}\nthe same, {count} held", case.rules()),
            Comparison::Refused(reason) => println!("{}\nrefused: {reason}", case.rules()),
            Comparison::Different(what) => panic!("{}", told(seed, case, what)),
        }
        return;
    }
    match asked("WEIR_WAF_ORACLE_CASES") {
        Some(cases) => run(cases, None),
        None => run(CASES, Some(TIME_MAX)),
    }
}

#[test]
#[ignore = "it takes minutes; run it in release"]
fn engine_and_interpreter_agree_on_a_million_cases() {
    run(CASES_LONG, None);
}
