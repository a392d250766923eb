//! The state of the running process for metrics and status, as read-only views.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use weir_acme::Acme;
use weir_api::process::Sandbox;
use weir_config::snapshot::Snapshot;
use weir_dataplane::worker_sessions::WorkerSessions;
use weir_exchange::shared::counters::{PerWorker, WorkerCounters};
use weir_exchange::shared::live::LiveTable;
use weir_sources::Files;

use crate::admin::shared::AdminShared;
use crate::health::Judge;
use crate::health::recent::Samples;
use crate::log_writer::AllLogCounters;
use crate::logs::LogsView;
use crate::losses::{LossText, Losses, Totals};
use crate::monitors::Board;
use crate::ocsp::Ocsp;
use crate::overlay::changes::Changes;
use crate::rates::Rates;
use crate::reloads::Reloads;
use crate::requests::Requests;
use crate::time::unix_ms;
use crate::token_keys::TokenKeys;
use crate::upgrade::reports::Upgrades;

/// The state that the admin listener shows. Reading it does not slow down the data path.
#[derive(Debug)]
pub struct ObservedState {
    table: RwLock<Arc<LiveTable>>,
    files: RwLock<Arc<Files>>,
    /// Counters of the worker threads.
    pub workers: Arc<PerWorker<WorkerCounters>>,
    /// Counters of the log writers.
    pub logs: Arc<AllLogCounters>,
    /// The results of the monitors.
    pub monitors: Board,
    /// The state of the packet path.
    pub packets: crate::packets::Board,
    /// Access to what clients have open.
    open: Open,
    /// Results of requests to other servers.
    pub obtained: FetchResults,
    /// The results of reloads.
    pub reloads: Reloads,
    /// The queue of transactions, and the versions of the overlay.
    pub changes: Arc<Changes>,
    /// The results of upgrades.
    pub upgrades: Upgrades,
    /// Samples of counters from the last seconds, for rates.
    pub rates: Rates,
    /// Samples of counters from the last half minute, for the health.
    pub(crate) recent: Samples,
    /// The start of the process, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Whether no configuration has been active yet, so that clients wait.
    pub starting: AtomicBool,
    /// Whether the process drains.
    pub draining: AtomicBool,
    /// The configuration that becomes active after its first probes.
    waiting: RwLock<Option<WaitingConfiguration>>,
    /// The number of workers that ended unexpectedly.
    pub workers_ended: AtomicU64,
    /// Rarely changed state of the workers.
    of_workers: OfWorkers,
    /// The state of the admin listeners.
    pub admin: AdminShared,
}

/// Access to what clients have open.
#[derive(Debug, Default)]
struct Open {
    /// Flows; `None`: there is no packet path.
    flows: RwLock<Option<crate::packets::Flows>>,
    /// Sessions of the workers.
    sessions: RwLock<WorkerSessions>,
}

/// Results of requests to other servers, which the control plane sends.
#[derive(Debug, Default)]
pub struct FetchResults {
    /// Counters of OCSP requests.
    pub ocsp: Arc<crate::ocsp::Counters>,
    /// Counters of fetches of token keys.
    pub token_keys: Arc<crate::token_keys::Counters>,
    /// The reports on certificates by ACME.
    pub acme: weir_acme::board::Board,
}

impl FetchResults {
    /// The results of these parts of the control plane.
    pub fn of(ocsp: &Ocsp, token_keys: &TokenKeys, acme: &Acme) -> Self {
        Self { ocsp: ocsp.counters(), token_keys: token_keys.counters(), acme: acme.board() }
    }
}

/// Rarely changed state of the workers.
#[derive(Debug, Default)]
struct OfWorkers {
    /// The last panic.
    last_panic: RwLock<Option<WorkerPanic>>,
    /// The sandbox of the workers; `None`: they have not started.
    sandbox: RwLock<Option<Sandbox>>,
    /// What they and the writers of logs are losing.
    losses: Losses,
}

/// A configuration that waits for the first probes of its members.
#[derive(Debug, Clone)]
pub struct WaitingConfiguration {
    /// The snapshot.
    pub snapshot: Arc<Snapshot>,
    /// The time at which it becomes active in any case, by the monotonic clock.
    pub until_ms: u64,
}

/// A panic of a worker.
#[derive(Debug, Clone)]
pub struct WorkerPanic {
    /// The number of the worker.
    pub worker: usize,
    /// The time, in milliseconds since 1970.
    pub unix_ms: u64,
    /// The message, with its place in the source code.
    pub message: String,
}

impl ObservedState {
    /// The state of a process that has just started.
    pub fn new(
        table: Arc<LiveTable>,
        workers: Arc<PerWorker<WorkerCounters>>,
        logs: LogsView,
        monitors: Board,
        obtained: FetchResults,
        packets: crate::packets::Board,
        (files, changes, requests): (Arc<Files>, Arc<Changes>, Arc<Requests>),
    ) -> Self {
        let now = unix_ms();
        let reloads = Reloads::default();
        reloads.last_success_unix_ms.store(now, Relaxed);
        reloads.last_succeeded.store(true, Relaxed);
        Self {
            table: RwLock::new(table),
            files: RwLock::new(files),
            workers,
            logs: logs.counters,
            monitors,
            packets,
            open: Open::default(),
            obtained,
            reloads,
            changes,
            upgrades: Upgrades::default(),
            rates: Rates::default(),
            recent: Samples::default(),
            started_unix_ms: now,
            starting: AtomicBool::new(true),
            draining: AtomicBool::new(false),
            waiting: RwLock::new(None),
            workers_ended: AtomicU64::new(0),
            of_workers: OfWorkers::default(),
            admin: AdminShared::new(logs.audit, logs.findings, requests),
        }
    }

    /// A judge of the health of the table in force.
    pub(crate) fn judge(&self) -> Judge {
        Judge::new(self.table(), self.recent.get())
    }

    /// What is being lost.
    pub(crate) fn losing(&self) -> Vec<LossText> {
        let (workers, logs) = (self.workers.totals(), &self.logs);
        self.of_workers.losses.look(&Totals {
            access_lines: workers.log_lines_dropped + logs.access.lines_lost.load(Relaxed),
            waf_lines: workers.waf_log_lines_dropped + logs.waf.lines_lost.load(Relaxed),
            audit_lines: self.admin.audit.dropped() + logs.audit.lines_lost.load(Relaxed),
            inspections_lost: workers.waf_inspections_lost,
        })
    }

    /// The active table.
    pub fn table(&self) -> Arc<LiveTable> {
        read(&self.table)
    }

    /// The contents of the files of the active configuration.
    pub fn files(&self) -> Arc<Files> {
        read(&self.files)
    }

    /// Stores the files of a new active configuration.
    pub fn set_files(&self, files: Arc<Files>) {
        write(&self.files, files);
    }

    /// Stores a new active table.
    pub fn set_table(&self, table: Arc<LiveTable>) {
        write(&self.table, table);
    }

    /// Access to flows of the packet path.
    pub fn flows(&self) -> Option<crate::packets::Flows> {
        read(&self.open.flows)
    }

    /// Sets the access to flows.
    pub fn set_flows(&self, flows: Option<crate::packets::Flows>) {
        write(&self.open.flows, flows);
    }

    /// Access to sessions of the workers.
    pub fn sessions(&self) -> WorkerSessions {
        read(&self.open.sessions)
    }

    /// Sets the access to sessions of the workers.
    pub fn set_sessions(&self, sessions: WorkerSessions) {
        write(&self.open.sessions, sessions);
    }

    /// The configuration that waits for first probes.
    pub fn waiting(&self) -> Option<WaitingConfiguration> {
        read(&self.waiting)
    }

    /// Sets the configuration that waits for first probes.
    pub fn set_waiting(&self, waiting: Option<WaitingConfiguration>) {
        write(&self.waiting, waiting);
    }

    /// The last panic of a worker.
    pub fn last_panic(&self) -> Option<WorkerPanic> {
        read(&self.of_workers.last_panic)
    }

    /// Records a panic of a worker.
    pub fn set_last_panic(&self, panic: WorkerPanic) {
        write(&self.of_workers.last_panic, Some(panic));
    }

    /// The sandbox of the workers; `None`: they have not started.
    pub fn sandbox(&self) -> Option<Sandbox> {
        read(&self.of_workers.sandbox)
    }

    /// Sets the sandbox of the workers.
    pub fn set_sandbox(&self, sandbox: Sandbox) {
        write(&self.of_workers.sandbox, Some(sandbox));
    }
}

fn read<T: Clone>(lock: &RwLock<T>) -> T {
    lock.read().unwrap_or_else(PoisonError::into_inner).clone()
}

fn write<T>(lock: &RwLock<T>, value: T) {
    *lock.write().unwrap_or_else(PoisonError::into_inner) = value;
}
