//! The parts of a worker.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

use weir_exchange::shared::counters::{PerWorker, WorkerCounters};
use weir_exchange::shared::live::LiveTable;

use crate::access_log::AccessLog;
use crate::reports::Event;
use crate::side_logs::SideLogs;
use crate::worker::command::Command;

/// The parts of a worker.
pub struct Setup {
    /// Its number.
    pub id: usize,
    /// The first table to serve.
    pub table: Arc<LiveTable>,
    /// Its own counters are `counters.of(id)`.
    pub counters: Arc<PerWorker<WorkerCounters>>,
    /// The access log.
    pub log: AccessLog,
    /// The log of the web application firewall, and spans.
    pub side_logs: SideLogs,
    /// Where events go.
    pub events: SyncSender<Event>,
    /// Where the lines of policies go.
    pub policy_lines: SyncSender<Event>,
    /// Commands of the control plane; each message is announced on the control socket.
    pub commands: Receiver<Command>,
}
