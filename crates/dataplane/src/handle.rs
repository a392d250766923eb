//! How the control plane starts, feeds and stops the data path.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use weir_config::snapshot::Address;

use crate::counters::{PerWorker, WorkerCounters};
use crate::live::LiveTable;

/// Finished access log lines of one worker.
#[derive(Debug)]
pub struct LogBatch {
    /// Whole lines, each ended by a line feed.
    pub bytes: Vec<u8>,
    /// How many.
    pub lines: u32,
}

/// Something that a worker wants people to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Passive marking took a member out.
    MemberEjected {
        /// Pool.
        pool: Arc<str>,
        /// Member.
        member: Arc<str>,
        /// For how long.
        eject_ms: u32,
    },
    /// Connections cannot be accepted; at most one such event a second and worker.
    AcceptFailed {
        /// Why.
        error: String,
    },
    /// A worker panicked; its connections are lost, it starts again.
    WorkerPanicked {
        /// Its number.
        worker: usize,
        /// The panic's message.
        message: String,
    },
}

/// What the data path is started with.
#[derive(Debug)]
pub struct Options {
    /// Threads; the table's counters must be laid out for as many.
    pub workers: usize,
    /// Where access log batches go; never waited for.
    pub log: SyncSender<LogBatch>,
    /// Where events go; never waited for.
    pub events: SyncSender<Event>,
}

/// A virtual server's address cannot be listened on.
#[derive(Debug)]
pub struct BindError {
    /// The virtual server.
    pub virtual_server: Arc<str>,
    /// The address.
    pub address: Address,
    /// Why.
    pub error: io::Error,
}

impl std::fmt::Display for BindError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            virtual_server,
            address,
            error,
        } = self;
        write!(
            formatter,
            "virtual server {virtual_server}: cannot listen on {address}: {error}"
        )
    }
}

impl std::error::Error for BindError {}

/// Cores that this process may run on: the default number of workers.
pub fn usable_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The running data path.
#[derive(Debug)]
pub struct DataPlane {
    counters: Arc<PerWorker<WorkerCounters>>,
}

impl DataPlane {
    /// Binds every listener of the table, starts the workers. On error nothing runs.
    pub fn start(table: Arc<LiveTable>, options: Options) -> Result<Self, BindError> {
        let _ = (table, options.log, options.events);
        Ok(Self {
            counters: Arc::new(PerWorker::new(options.workers)),
        })
    }

    /// Puts a new table in force: binds what is new, hands it to the workers, closes what is gone.
    /// On error nothing has changed. Listeners that are in both tables are not touched.
    pub fn apply(&mut self, table: Arc<LiveTable>) -> Result<(), BindError> {
        let _ = table;
        Ok(())
    }

    /// Stops accepting; each worker ends when its last transaction has, at the latest after
    /// `timeout_ms`.
    pub fn drain(&mut self, timeout_ms: u64) {
        let _ = timeout_ms;
    }

    /// Ends all workers at once.
    pub fn stop(&mut self) {}

    /// Whether all workers have ended.
    pub fn is_finished(&self) -> bool {
        false
    }

    /// What the worker threads did.
    pub fn counters(&self) -> &PerWorker<WorkerCounters> {
        &self.counters
    }
}
