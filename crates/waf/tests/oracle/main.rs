//! Compares the engine with a simple interpreter: both must have the same outcome for random rule files and requests.
//!
//! `WEIR_WAF_ORACLE_CASES` sets the number of cases. `WEIR_WAF_ORACLE_SEED` selects and shows one case.

mod compare;
mod crs;
mod generator;
mod interpreter;
mod shrink;
#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "what only the tests of CRS want is there as well")]
mod support;
#[path = "../invariants/turns.rs"]
mod turns;

use std::time::{Duration, Instant};

use compare::{Comparison, compare};
use generator::Case;

/// Number of cases in a usual test run, and its time limit.
const CASES: u64 = 20_000;
const TIME_MAX: Duration = Duration::from_secs(20);
/// Number of cases in the long run.
const CASES_LONG: u64 = 1_000_000;

fn asked(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

/// A report on a case with different outcomes.
fn told(seed: u64, case: Case, what: String) -> String {
    let (small, what) = shrink::shrunk(case, what);
    let mut text = format!("seed {seed}: {what}\nsettings {:?}\n{}", small.settings, small.rules());
    for sent in &small.sent {
        let (headers, body) = (sent.all_headers(), sent.content.bytes());
        text += &format!("\n{} {}\n{headers:?}\n{body:?}", sent.method, sent.target());
        text += &format!("\nanswer {:?} {:?}\n", sent.answer_headers, sent.answer);
    }
    text
}

/// Statistics of the cases.
#[derive(Debug, Default)]
struct Seen {
    requests: u64,
    /// The number of requests in which rules matched.
    with_matches: u64,
    /// The number of matches.
    held: usize,
    rule_files: u64,
    refused: u64,
}

impl Seen {
    fn case(&mut self, seed: u64) {
        let case = Case::of(seed);
        self.rule_files += 1;
        match compare(&case) {
            Comparison::Same(counts) => {
                self.requests += counts.len() as u64;
                self.with_matches += counts.iter().filter(|count| **count > 0).count() as u64;
                self.held += counts.iter().sum::<usize>();
            }
            Comparison::Refused(reason) => {
                self.refused += 1;
                let is_rare = self.refused * 20 < self.rule_files + 200;
                assert!(is_rare, "seed {seed}: {reason}\n{}", case.rules());
            }
            Comparison::Different(what) => panic!("{}", told(seed, case, what)),
        }
    }
}

/// Compares this number of cases within the time limit, on all processors.
fn run(cases: u64, time_max: Option<Duration>) {
    let start = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, |it| it.get() as u64);
    let seen = std::thread::scope(|scope| {
        let part = |first: u64| {
            let mut seen = Seen::default();
            for seed in (first..).step_by(threads as usize) {
                let is_late = time_max.is_some_and(|max| start.elapsed() > max);
                if is_late || seen.requests >= cases / threads {
                    break;
                }
                seen.case(seed);
            }
            seen
        };
        let running: Vec<_> = (0..threads).map(|first| scope.spawn(move || part(first))).collect();
        running.into_iter().map(|it| it.join().expect("no difference")).collect::<Vec<_>>()
    });
    let mut requests = 0;
    for it in seen {
        println!("{:?}: {it:?}", start.elapsed());
        // Cases in which rules rarely match would prove little.
        assert!(it.with_matches * 5 > it.requests * 2, "{it:?}");
        requests += it.requests;
    }
    println!("{requests} cases");
}

#[test]
fn engine_and_interpreter_agree() {
    if let Some(seed) = asked("WEIR_WAF_ORACLE_SEED") {
        let case = Case::of(seed);
        println!("{}", case.rules());
        return Seen::default().case(seed);
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
