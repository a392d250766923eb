//! Executes runs, and reports their results.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use weir_event_loop::memory::PANIC_AS_TOLD;
use weir_tagged::world::{Kind, Tally};

use crate::arguments::Arguments;
use crate::datagrams;
use crate::run::{RunResult, run};
use crate::scene::Scene;

/// The interval between progress reports.
const REPORT_EVERY: Duration = Duration::from_secs(10);
/// The number of exchanges after which every kind of event must have occurred. A missing kind is then a finding.
const ALL_KINDS_EXCHANGES: u64 = 200_000;
/// Kinds of events that cannot occur, because there is no TLS.
const IMPOSSIBLE: [Kind; 1] = [Kind::Tls];

#[derive(Default)]
struct Totals {
    runs: u64,
    exchanges: u64,
    /// The number of datagrams that clients received.
    answers: u64,
    lasted_us: u64,
    tally: Tally,
    findings: Vec<String>,
    digests: BTreeMap<u64, u64>,
    log: Vec<u8>,
    story: String,
}

/// Executes the runs that the arguments request. Returns whether there are no findings.
pub fn simulate(arguments: &Arguments) -> bool {
    let began = Instant::now();
    let next = AtomicU64::new(arguments.from);
    let totals = Mutex::new(Totals::default());
    quieten_panics();
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads.max(1) {
            scope.spawn(|| work(arguments, began, &next, &totals));
        }
    });
    let totals = totals.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    conclude(arguments, &totals, began.elapsed())
}

fn work(arguments: &Arguments, began: Instant, next: &AtomicU64, totals: &Mutex<Totals>) {
    let scene = Scene::new();
    let mut told = Instant::now();
    loop {
        let seed = next.fetch_add(1, Relaxed);
        let is_last = arguments.runs.is_some_and(|runs| seed >= arguments.from + runs);
        if is_last || began.elapsed() >= Duration::from_secs(arguments.seconds_max()) {
            return;
        }
        let mut outcome = run(&scene, seed, arguments.exchanges, arguments.story.is_some());
        let (findings, answers) = datagrams::run(seed);
        outcome.findings.extend(findings);
        outcome.answers = answers as u64;
        let mut totals = totals.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        totals.add(arguments, seed, outcome);
        if totals.findings.len() >= arguments.findings {
            return;
        }
        if told.elapsed() >= REPORT_EVERY {
            told = Instant::now();
            eprintln!("{}", totals.pace(began.elapsed()));
        }
    }
}

impl Totals {
    fn add(&mut self, arguments: &Arguments, seed: u64, outcome: RunResult) {
        self.runs += 1;
        self.exchanges += outcome.exchanges;
        self.answers += outcome.answers;
        self.lasted_us += outcome.lasted_us;
        self.tally.add(&outcome.tally);
        if arguments.digests.is_some() {
            self.digests.insert(seed, outcome.digest);
        }
        if arguments.log.is_some() {
            self.log.extend_from_slice(&outcome.log);
        }
        self.story.push_str(&outcome.story);
        if !outcome.findings.is_empty() {
            let text = format!("seed {seed}: {}", outcome.findings.join("\n"));
            println!("{text}");
            self.findings.push(text);
        }
    }

    fn pace(&self, elapsed: Duration) -> String {
        let per_minute = self.exchanges as f64 * 60.0 / elapsed.as_secs_f64().max(1e-3);
        format!(
            "{} exchanges and {} answers by datagrams in {} runs, {:.1} hours of their time, in {:.1} s: {:.2} million a minute",
            self.exchanges,
            self.answers,
            self.runs,
            self.lasted_us as f64 / 3.6e9,
            elapsed.as_secs_f64(),
            per_minute / 1e6
        )
    }
}

/// Prints the results of all runs, and writes the requested files. Returns whether everything was successful.
fn conclude(arguments: &Arguments, totals: &Totals, elapsed: Duration) -> bool {
    println!("{}", totals.tally.told());
    println!("{}", totals.pace(elapsed));
    let mut is_sound = totals.findings.is_empty();
    if totals.exchanges >= ALL_KINDS_EXCHANGES {
        let missing = totals.tally.missing(&IMPOSSIBLE);
        if !missing.is_empty() {
            println!("never happened: {}", missing.join("; "));
            is_sound = false;
        }
    }
    if let Some(path) = &arguments.digests {
        let mut text = String::new();
        for (seed, digest) in &totals.digests {
            let _ = writeln!(text, "{seed} {digest:016x}");
        }
        is_sound &= write(path, text.as_bytes());
    }
    if let Some(path) = &arguments.story {
        is_sound &= write(path, totals.story.as_bytes());
    }
    if let Some(path) = &arguments.log {
        is_sound &= write(path, &totals.log);
    }
    is_sound
}

fn write(path: &std::path::Path, bytes: &[u8]) -> bool {
    match std::fs::write(path, bytes) {
        Ok(()) => true,
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            false
        }
    }
}

/// Hides the output of injected panics, and shortens the output of other panics, which are findings.
fn quieten_panics() {
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str() == Some(PANIC_AS_TOLD) {
            return;
        }
        if std::env::var_os("RUST_BACKTRACE").is_some() {
            others(panic);
        } else {
            eprintln!("{panic}");
        }
    }));
}
