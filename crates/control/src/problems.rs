//! Problems as sentences: of the process as a whole, and of what does not serve.

use std::borrow::Borrow;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use weir_api::reload::ReloadFailure;
use weir_api::upgrade::UpgradeState;

use crate::health::{Condition, Health, Judge, ServingState};
use crate::observed_state::{ObservedState, WaitingConfiguration, WorkerPanic};
use crate::span_export::counters::ExportFailure;
use crate::status::certificates::expired_for_clients;
use crate::status::files::expired;
use crate::time::{monotonic_ms, rfc3339, unix_ms};
use crate::wording::{CountText, NamesText, Pools, Seconds};

/// All current problems, most important first.
pub(crate) fn problems(observed: &ObservedState, judge: &Judge) -> Vec<String> {
    let mut problems = Vec::new();
    if observed.draining.load(Relaxed) {
        problems
            .push("drains: takes no new connections, and exits after the last client".to_owned());
    }
    let (servers, pools) = (judge.servers(), judge.pools());
    not_serving("virtual server", (servers, servers.len()), &mut problems);
    not_serving("pool", (&pools, judge.pools_count()), &mut problems);
    of_process(observed, &mut problems);
    problems
}

/// The state of the process as a whole, for the first line of every view.
pub(crate) fn serving(observed: &ObservedState, judge: &Judge) -> ServingState {
    let (servers, pools) = (judge.servers(), judge.pools());
    let states = servers.iter().map(|(_, health)| health.state);
    let is_up = |state: Condition| state == Condition::Up;
    if observed.draining.load(Relaxed) {
        ServingState::Draining
    } else if observed.starting.load(Relaxed) {
        ServingState::Starting
    } else if !servers.is_empty() && !states.clone().any(Condition::serves) {
        ServingState::Down
    } else if states.chain(pools.iter().map(|(_, health)| health.state)).all(is_up)
        && problems_of_process(observed).is_empty()
    {
        ServingState::Fully
    } else {
        ServingState::Degraded
    }
}

/// Adds those of a kind that do not serve, by their state. `of`: their number, and that of others of the kind.
fn not_serving<H: Borrow<Health>>(
    kind: &str,
    (judged, of): (&[(Arc<str>, H)], usize),
    problems: &mut Vec<String>,
) {
    for state in [Condition::Down, Condition::Failing] {
        let found = judged.iter().filter(|(_, health)| health.borrow().state == state);
        let found: Vec<_> = found.collect();
        let word = state.as_str();
        match found.as_slice() {
            [] => {}
            [(name, health)] => {
                let why = health.borrow().why.as_deref().unwrap_or_default();
                problems.push(format!("{kind} {name} is {word}: {why}"));
            }
            several => {
                let names: Vec<Arc<str>> =
                    several.iter().map(|(name, _)| Arc::clone(name)).collect();
                let count = several.len();
                problems.push(format!("{count} of {of} {kind}s are {word}: {}", NamesText(&names)));
            }
        }
    }
}

/// The problems of the process as a whole.
fn problems_of_process(observed: &ObservedState) -> Vec<String> {
    let mut problems = Vec::new();
    of_process(observed, &mut problems);
    problems
}

fn of_process(observed: &ObservedState, problems: &mut Vec<String>) {
    let totals = observed.workers.totals();
    if let Some(waiting) = observed.waiting() {
        problems.push(waits(&waiting, observed));
    }
    let last_panic = observed.last_panic();
    let is_told = |last: &WorkerPanic| unix_ms().saturating_sub(last.unix_ms) < PANIC_TOLD_MS;
    if totals.panics > 0 && last_panic.as_ref().is_none_or(is_told) {
        problems.push(panics(totals.panics, last_panic));
    }
    let tried = observed.monitors.tried(&observed.table().snapshot);
    if !tried.is_empty() {
        let tried = Pools(tried);
        problems.push(format!("takes requests before the first probe has a result: {tried}"));
    }
    packets(observed, problems);
    let ended = observed.workers_ended.load(Relaxed);
    if ended > 0 {
        problems.push(format!("{} ended for good: restart weir", CountText(ended, "worker")));
    }
    if !observed.reloads.last_succeeded.load(Relaxed) {
        problems.push(refused(observed));
    }
    problems.extend(observed.changes.left_out.told());
    problems.extend(certificates(observed));
    let table = observed.table();
    problems.extend(expired(&table.snapshot));
    problems.extend(expired_for_clients(&table.snapshot, &observed.obtained.acme));
    problems.extend(observed.obtained.token_keys.problems(monotonic_ms()));
    if let Some(failed) = observed.upgrades.last().filter(|it| it.state == UpgradeState::Failed) {
        let reason = failed.reason.unwrap_or_default();
        let time = failed.time;
        problems.push(format!("the upgrade of {time} failed: {reason}; this process serves on"));
    }
    problems.extend(udp_sockets(observed));
    problems.extend(observed.losing().iter().map(ToString::to_string));
    if let Some(ExportFailure { url, reason }) = observed.logs.spans.failing() {
        problems.push(format!("traces cannot be sent to {url}: {reason}"));
    }
}

/// A panic of a worker is a problem for this long: its connections are gone, and it serves again. The metrics keep the
/// number.
const PANIC_TOLD_MS: u64 = 24 * 60 * 60 * 1_000;

/// Maximum number of certificates that are listed one by one.
const CERTIFICATES_MAX: usize = 3;

/// Problems with certificates by ACME whose last order failed.
fn certificates(observed: &ObservedState) -> Vec<String> {
    let failing = observed.obtained.acme.failing();
    let told = failing.iter().take(CERTIFICATES_MAX).map(|(names, reason)| {
        let name = names.first().map_or("", String::as_str);
        format!("the certificate for {name} cannot be had: {reason}")
    });
    let mut told: Vec<String> = told.collect();
    if let Some(more) = failing.len().checked_sub(CERTIFICATES_MAX).filter(|more| *more > 0) {
        told.push(format!("{} cannot be had either", CountText(more as u64, "certificate")));
    }
    told
}

/// The problem that UDP sessions of some workers use all their descriptors.
fn udp_sockets(observed: &ObservedState) -> Option<String> {
    let is_full = |worker: &usize| {
        let counters = observed.workers.of(*worker);
        let max = counters.udp_sockets_max.get();
        max > 0 && counters.udp_sockets.get() >= max
    };
    let full = (0..observed.workers.workers()).filter(is_full).count();
    (full > 0).then(|| {
        let workers = CountText(full as u64, "worker");
        format!(
            "UDP sessions use all descriptors that they may use in {workers}: further sessions are refused; \
             raise LimitNOFILE or `data_plane.udp_descriptors_max`, or limit sessions"
        )
    })
}

/// The problem that the last reload was refused.
fn refused(observed: &ObservedState) -> String {
    match observed.reloads.last_failure() {
        Some(ReloadFailure { time, reason }) => {
            format!(
                "the reload of {time} was refused: {reason}; the previous configuration is in effect"
            )
        }
        None => "the last reload was refused".to_owned(),
    }
}

fn waits(waiting: &WaitingConfiguration, observed: &ObservedState) -> String {
    let left = Seconds(Duration::from_millis(waiting.until_ms.saturating_sub(monotonic_ms())));
    let unknown = Pools(observed.monitors.awaited(&waiting.snapshot));
    if observed.starting.load(Relaxed) {
        return format!("starts: clients wait for the first probes of {unknown}, {left} at most");
    }
    format!(
        "a configuration waits for the first probes of {unknown}, {left} at most; the previous one is in effect"
    )
}

/// Adds problems of the packet path.
fn packets(observed: &ObservedState, problems: &mut Vec<String>) {
    let table = observed.table();
    let Some(packets) = &table.snapshot.packets else { return };
    let report = observed.packets.report();
    if report.is_none() && packets.path.guards() {
        problems.push(
            "`deny` and `syn_cookies` of packet_path do not hold: there are no packets".into(),
        );
    }
    if let Some(failure) = report.and_then(|report| report.failure.clone()) {
        problems.push(format!("packet path: {failure}"));
    }
}

fn panics(count: u64, last: Option<WorkerPanic>) -> String {
    let last = last.map_or_else(String::new, |WorkerPanic { worker, unix_ms, message }| {
        format!("; last at {} in worker {worker}: {message}", rfc3339(unix_ms))
    });
    let what = "each one closed the connections of one worker; please report this defect of weir";
    format!("{} of workers: {what}{last}", CountText(count, "panic"))
}

#[cfg(test)]
mod tests {
    use weir_config::snapshot::Address;

    use super::*;
    use crate::testing::observed_with;

    fn problems_of(observed: &ObservedState) -> Vec<String> {
        problems(observed, &observed.judge())
    }

    #[test]
    fn each_is_a_sentence() {
        let address = Address::Socket("127.0.0.1:9001".parse().unwrap());
        let observed = observed_with(&[address], 2);
        assert!(problems_of(&observed).is_empty());
        observed.draining.store(true, Relaxed);
        observed.reloads.fail("bad", &[]);
        observed.logs.access.lines_lost.fetch_add(2, Relaxed);
        observed.workers.of(1).panics.add(1);
        let failure = observed.reloads.last_failure().expect("it was refused");
        let refused = format!(
            "the reload of {} was refused: bad; the previous configuration is in effect",
            failure.time
        );
        let told = problems_of(&observed);
        assert_eq!(
            told[..3],
            [
                "drains: takes no new connections, and exits after the last client",
                "1 panic of workers: each one closed the connections of one worker; please report this defect of weir",
                &refused,
            ]
        );
        assert!(told[3].starts_with("2 access log lines lost since "), "{told:?}");
        assert_eq!(told.len(), 4);
        observed.workers.of(0).panics.add(1);
        observed.workers_ended.fetch_add(1, Relaxed);
        let message = "as told (worker.rs:1:2)".to_owned();
        let panicked = WorkerPanic { worker: 1, unix_ms: unix_ms(), message };
        observed.set_last_panic(panicked.clone());
        let told = problems_of(&observed);
        let at = rfc3339(panicked.unix_ms);
        let last = format!("; last at {at} in worker 1: as told (worker.rs:1:2)");
        assert!(
            told[1].starts_with("2 panics of workers: ") && told[1].ends_with(&last),
            "{told:?}"
        );
        assert_eq!(told[2], "1 worker ended for good: restart weir");
        let unix_ms = panicked.unix_ms - PANIC_TOLD_MS;
        observed.set_last_panic(WorkerPanic { unix_ms, ..panicked });
        assert_eq!(problems_of(&observed)[1], "1 worker ended for good: restart weir");
    }

    #[test]
    fn sessions_without_descriptors_are_a_problem_while_they_last() {
        let address = Address::Socket("127.0.0.1:9001".parse().unwrap());
        let observed = observed_with(&[address], 2);
        let counters = observed.workers.of(1);
        counters.udp_sockets_max.add(3);
        counters.udp_sockets.add(2);
        assert!(problems_of(&observed).is_empty());
        counters.udp_sockets.add(1);
        let told = problems_of(&observed);
        assert!(
            told[0].starts_with("UDP sessions use all descriptors that they may use in 1 worker: "),
            "{told:?}"
        );
        counters.udp_sockets.subtract(1);
        assert!(problems_of(&observed).is_empty());
    }

    #[test]
    fn what_waits_is_told_for_a_start_and_for_a_reload() {
        let address = Address::Socket("127.0.0.1:9001".parse().unwrap());
        let observed = observed_with(&[address], 1);
        let snapshot = Arc::clone(&observed.table().snapshot);
        observed.set_waiting(Some(WaitingConfiguration { snapshot, until_ms: 0 }));
        let told = problems_of(&observed);
        assert!(told[0].ends_with(", 0.0 s at most; the previous one is in effect"), "{told:?}");
        observed.starting.store(true, Relaxed);
        assert!(problems_of(&observed)[0].starts_with("starts: clients wait for "));
    }
}
