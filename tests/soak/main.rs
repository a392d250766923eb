//! Soak test: a mixed load with faults, for any duration. A fault must explain every error.
//!
//! `soak [--seconds N]` (600 by default) sends requests, uploads, downloads and WebSockets through the proxy. Meanwhile
//! members are killed and restarted, clients are slow, transfers are aborted and the configuration is reloaded. The soak
//! fails if no fault explains an error, if memory grows after the first third, or if descriptors remain open after the load.

mod faults;
mod work;

use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use weir_tests::proxy::{Proxy, Setup};

use crate::faults::{Faults, Members};
use crate::work::{KINDS, Kind, Outcomes};

/// Allowed growth of memory after the first third: pools reach their maximum size late.
const GROWTH_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Descriptors that may be open above the count before the load: idle member connections of two workers.
const DESCRIPTORS_LEFT_MAX: usize = 40;
const REPORT_EVERY: Duration = Duration::from_secs(10);

fn setup(members: &Members, number: usize) -> Setup {
    let idle = if number.is_multiple_of(2) { "idle_timeout: 20s" } else { "idle_timeout: 30s" };
    Setup::new(&members.addresses())
        .http(idle)
        .http("header_timeout: 2s")
        .http("body_timeout: 5s")
        .top("data_plane: { drain_timeout: 5s }")
        .pool("retries: 2")
        .pool("reuse: { idle_per_worker: 16, idle_timeout: 2s }")
        .pool("monitors: [ { type: http, path: /healthz, interval: 500ms, timeout: 400ms, rise: 1, fall: 2 } ]")
}

fn main() -> ExitCode {
    let seconds = match parse(std::env::args().skip(1)) {
        Ok(seconds) => seconds,
        Err(usage) => {
            eprintln!("{usage}");
            return ExitCode::from(2);
        }
    };
    match soak(Duration::from_secs(seconds)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failures) => {
            eprintln!("soak failed:\n{failures}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<u64, String> {
    match (arguments.next().as_deref(), arguments.next(), arguments.next()) {
        (None, ..) => Ok(600),
        (Some("--seconds"), Some(text), None) => {
            text.parse().map_err(|error| format!("--seconds {text}: {error}"))
        }
        _ => Err("usage: soak [--seconds N]".to_owned()),
    }
}

fn soak(length: Duration) -> Result<(), String> {
    let members = Members::start(3);
    let faults = Arc::new(Faults::default());
    let mut proxy = Proxy::start(&setup(&members, 0));
    for member in members.addresses() {
        proxy.wait_for_member_state(member, "up", Duration::from_secs(10));
    }
    let descriptors_before = proxy.process().descriptors();

    let outcomes: Vec<Arc<Outcomes>> = KINDS.iter().map(|_| Arc::default()).collect();
    let mut workers = Vec::new();
    for (kind, outcomes) in KINDS.iter().zip(&outcomes) {
        for _ in 0..kind.threads {
            let (faults, outcomes, address) =
                (Arc::clone(&faults), Arc::clone(outcomes), proxy.address());
            workers.push(thread::spawn(move || work::repeat(*kind, address, &faults, &outcomes)));
        }
    }
    let (first_third, last) = disturb(length, &mut proxy, members, &faults, &outcomes);
    faults.stop();
    for worker in workers {
        worker.join().map_err(|_| "a worker of the soak panicked".to_owned())?;
    }
    report(&mut proxy, &outcomes);
    judge(&mut proxy, &outcomes, descriptors_before, first_third, last)
}

/// Kills, restarts and reloads until the time is over. Returns the peak memory of the first third and of the rest.
fn disturb(
    length: Duration,
    proxy: &mut Proxy,
    mut members: Members,
    faults: &Faults,
    outcomes: &[Arc<Outcomes>],
) -> (u64, u64) {
    let (started, mut reported) = (Instant::now(), Instant::now());
    let (mut first_third, mut last) = (0, 0);
    for step in 0_usize.. {
        if started.elapsed() >= length || proxy.process().exited().is_some() {
            break;
        }
        match step % 8 {
            1 => members.kill(step / 8, faults),
            5 => members.restart(step / 8),
            _ => {}
        }
        if step.is_multiple_of(3) {
            proxy.reload(&setup(&members, step / 3));
        }
        thread::sleep(Duration::from_millis(300));
        let resident = proxy.process().resident_bytes();
        if started.elapsed() < length / 3 {
            first_third = resident.max(first_third);
        } else {
            last = resident.max(last);
        }
        if reported.elapsed() >= REPORT_EVERY {
            reported = Instant::now();
            report(proxy, outcomes);
        }
    }
    // Members must run until the last requests have ended.
    members.keep();
    (first_third, last)
}

fn report(proxy: &mut Proxy, outcomes: &[Arc<Outcomes>]) {
    let (resident, descriptors) =
        (proxy.process().resident_bytes() / 1024, proxy.process().descriptors());
    let counts: Vec<String> = KINDS
        .iter()
        .zip(outcomes)
        .map(|(kind, outcomes)| format!("{} {}", kind.name, outcomes.summary()))
        .collect();
    println!(
        "{resident} KiB, {descriptors} descriptors; good/explained/unexplained: {}",
        counts.join(", ")
    );
}

fn judge(
    proxy: &mut Proxy,
    outcomes: &[Arc<Outcomes>],
    descriptors_before: usize,
    first_third: u64,
    last: u64,
) -> Result<(), String> {
    let mut failures = Vec::new();
    if let Some(status) = proxy.process().exited() {
        failures.push(format!("the proxy ended with {status}:\n{}", proxy.process().output()));
    }
    for (Kind { name, .. }, outcomes) in KINDS.iter().zip(outcomes) {
        if outcomes.good() == 0 {
            failures.push(format!("{name}: not one succeeded"));
        }
        failures.extend(outcomes.unexplained().iter().map(|text| format!("{name}: {text}")));
    }
    if last > first_third + GROWTH_BYTES_MAX {
        failures.push(format!("memory grew from {first_third} to {last} bytes"));
    }
    let deadline = Instant::now() + Duration::from_secs(15);
    while proxy.process().descriptors() > descriptors_before + DESCRIPTORS_LEFT_MAX {
        if Instant::now() > deadline {
            failures.push(format!(
                "{} descriptors left, {descriptors_before} before",
                proxy.process().descriptors()
            ));
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}
