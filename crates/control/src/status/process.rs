//! The process as a whole.

use std::sync::atomic::Ordering::Relaxed;

use weir_api::process::{
    AdminCounts, Configuration, LogCounts, Panic, Process, ProcessHealth, UdpSockets, Waiting,
    WaitingPool,
};
use weir_exchange::shared::counters::WorkerTotals;
use weir_exchange::shared::live::LiveTable;

use crate::health::Judge;
use crate::monitors::UnknownMembers;
use crate::observed_state::{self, ObservedState, WorkerPanic};
use crate::problems::{problems, serving};
use crate::time::{monotonic_ms, rfc3339, unix_ms};

/// The current state of the process.
pub(crate) fn process(observed: &ObservedState) -> Process {
    judged(observed, &observed.judge())
}

/// The state of the process, with health as this judge has it.
pub(super) fn judged(observed: &ObservedState, judge: &Judge) -> Process {
    let table = judge.table();
    let workers = observed.workers.totals();
    let panic = |panic: WorkerPanic| Panic {
        time: rfc3339(panic.unix_ms),
        worker: panic.worker,
        message: panic.message,
    };
    Process {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        started: rfc3339(observed.started_unix_ms),
        uptime_seconds: unix_ms().saturating_sub(observed.started_unix_ms) / 1_000,
        health: ProcessHealth::from(serving(observed, judge)),
        problems: problems(observed, judge),
        starting: observed.starting.load(Relaxed),
        draining: observed.draining.load(Relaxed),
        workers: table.workers(),
        sandbox: observed.sandbox(),
        configuration: configuration(observed, table),
        upgrade: observed.upgrades.last(),
        draining_process: observed.upgrades.draining(),
        log: log(observed, &workers),
        socket_failures: workers.socket_failures,
        udp_sockets: (workers.udp_sockets_max > 0).then_some(UdpSockets {
            open: workers.udp_sockets,
            max: workers.udp_sockets_max,
            sessions_refused: workers.udp_share_exceeded,
        }),
        admin: AdminCounts {
            admin_connections_turned_away: observed.admin.turned_away.load(Relaxed),
            admin_connections_displaced: observed.admin.displaced.load(Relaxed),
            admin_logins_failed: observed.admin.logins_failed.load(Relaxed),
        },
        worker_panics: workers.panics,
        last_worker_panic: observed.last_panic().map(panic),
        workers_ended: observed.workers_ended.load(Relaxed),
    }
}

fn configuration(observed: &ObservedState, table: &LiveTable) -> Configuration {
    let reloads = &observed.reloads;
    let history = observed.changes.history();
    Configuration {
        generation: table.generation,
        version: history.version(),
        version_in_force: observed.changes.in_force(),
        unconfirmed_version: history.unconfirmed().map(|it| it.version),
        in_force_since: rfc3339(reloads.last_success_unix_ms.load(Relaxed)),
        last_reload_successful: reloads.last_succeeded.load(Relaxed),
        reloads: reloads.succeeded.load(Relaxed),
        reloads_failed: reloads.failed.load(Relaxed),
        last_reload_failure: reloads.last_failure(),
        waiting: observed.waiting().map(|it| waiting(&it, observed)),
    }
}

fn waiting(waiting: &observed_state::WaitingConfiguration, observed: &ObservedState) -> Waiting {
    let pools = observed.monitors.awaited(&waiting.snapshot).into_iter();
    let pool = |found: UnknownMembers| WaitingPool {
        name: found.pool.to_string(),
        members: found.members.iter().map(|member| member.to_string()).collect(),
    };
    Waiting {
        left_ms: waiting.until_ms.saturating_sub(monotonic_ms()),
        pools: pools.map(pool).collect(),
    }
}

fn log(observed: &ObservedState, workers: &WorkerTotals) -> LogCounts {
    let logs = &observed.logs;
    LogCounts {
        lines: logs.access.lines_written.load(Relaxed),
        lines_dropped: workers.log_lines_dropped,
        lines_not_written: logs.access.lines_lost.load(Relaxed),
        waf_lines: logs.waf.lines_written.load(Relaxed),
        waf_lines_dropped: workers.waf_log_lines_dropped,
        waf_lines_not_written: logs.waf.lines_lost.load(Relaxed),
        audit_lines: logs.audit.lines_written.load(Relaxed),
        audit_lines_dropped: observed.admin.audit.dropped(),
        audit_lines_not_written: logs.audit.lines_lost.load(Relaxed),
    }
}
