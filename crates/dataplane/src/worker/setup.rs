//! The inputs of a worker.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

use weir_exchange::shared::counters::{PerWorker, WorkerCounters};
use weir_exchange::shared::live::LiveTable;
use weir_telemetry::access_log::AccessLog;
use weir_telemetry::records::recorder::RecordSender;
use weir_telemetry::reports::Event;
use weir_telemetry::side_logs::SideLogs;

use crate::inspection_queue::ToInspectors;
use crate::worker::command::Command;

/// The inputs of a worker.
pub struct Setup {
    /// The index of the worker.
    pub id: usize,
    /// The first table to serve.
    pub table: Arc<LiveTable>,
    /// The counters of all workers; this one uses `counters.of(id)`.
    pub counters: Arc<PerWorker<WorkerCounters>>,
    /// The access log.
    pub log: AccessLog,
    /// The channels of the firewall log and of spans.
    pub side_logs: SideLogs,
    /// The channel for events.
    pub events: SyncSender<Event>,
    /// The channel for log lines of policies.
    pub policy_lines: SyncSender<Event>,
    /// The queue of request records; `None`: requests are not recorded.
    pub records: Option<RecordSender>,
    /// The commands from the control plane. Each command is also announced on the control socket.
    pub commands: Receiver<Command>,
    /// The threads that go on with long inspections; `None`: there are none.
    pub inspectors: Option<ToInspectors>,
}
