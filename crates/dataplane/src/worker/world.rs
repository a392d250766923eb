//! The state that operations of a worker's transactions change: connections, queues, buffers, logs.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use weir_core::clock::Clock;
use weir_event_loop::wall_clock::{self, WallClock};
use weir_event_loop::{clock, random};
use weir_exchange::local::surroundings::Sources;
use weir_exchange::local::table::LocalTable;
use weir_exchange::parts::inspection_job::TURN;
use weir_exchange::parts::inspection_report::InspectionReport;
use weir_exchange::parts::tools::Tools;
use weir_exchange::shared::counters::{Own, WorkerCounters};
use weir_exchange::shared::live::LiveTable;
use weir_http::h2::hpack::HeaderBlock;
use weir_http::message::{Field, RequestHead, ResponseHead};
use weir_telemetry::access_log::AccessLog;
use weir_telemetry::records::recorder::Recorder;
use weir_telemetry::side_logs::SideLogs;

use crate::inspection_queue::{ToInspectors, Work};
use crate::worker::agenda::Agenda;
use crate::worker::command::Command;
use crate::worker::notices::Notices;
use crate::worker::setup::Setup;
use crate::worker::state::clients::Clients;
use crate::worker::state::http2_memory::Http2Memory;
use crate::worker::state::listener::StreamListeners;
use crate::worker::state::members::Members;
use crate::worker::state::waiting_requests::WaitingRequests;

/// Memory for the message that is being read. It is borrowed while the worker processes the message.
#[derive(Default)]
pub struct Inbox {
    // The contents are reused for every message, and stale between events. Heads are taken out while they are in use.
    pub request_head: Option<Box<RequestHead>>,
    pub header_block: Option<HeaderBlock>,
    pub member_block: Option<HeaderBlock>,
    pub response_head: Option<Box<ResponseHead>>,
    pub trailers: Vec<Field>,
}

/// The state that operations of transactions change.
pub struct World {
    pub id: usize,
    pub live: Arc<LiveTable>,
    pub table: LocalTable,
    pub clients: Clients,
    pub members: Members,
    pub listeners: StreamListeners,
    /// The counters of this worker.
    pub counted: Own<WorkerCounters>,
    pub log: AccessLog,
    pub side_logs: SideLogs,
    pub recorder: Recorder,
    pub notices: Notices,
    /// The earliest deadline of a client that must leave after a reload.
    pub leave_by_ms: Option<u64>,
    pub wall: WallClock,
    /// Requests that wait for a member or for the end of a delay.
    pub waiting: WaitingRequests,
    /// All work that is put off.
    pub agenda: Agenda,
    pub tools: Tools,
    /// The threads that write long lines of logs; `None`: there are none.
    pub inspectors: Option<ToInspectors>,
}

impl World {
    /// Creates the state without connections, and returns the receiver for commands of the control plane.
    pub fn new(setup: Setup) -> (Self, Receiver<Command>) {
        let Setup { id, table, counters, log, side_logs, .. } = setup;
        let Setup { events, policy_lines, records, commands, inspectors, .. } = setup;
        let local = LocalTable::new(&table, None, id);
        let http2_memory_bytes = table.snapshot.data_plane.http2_memory_bytes;
        let mut tools = Tools::new(
            || clock::now().now_us(),
            Sources { unix_s: wall_clock::unix_s, fill_randomly: random::fill },
        );
        tools.cpu_us = clock::thread_cpu_us;
        tools.held_room.count(counters.own(id));
        if inspectors.is_some() {
            tools.offloaded.turn = TURN;
        }
        let world = Self {
            id,
            live: table,
            table: local,
            clients: Clients::new(Http2Memory::new(counters.own(id), http2_memory_bytes)),
            members: Members::new(counters.own(id), counters.workers()),
            listeners: StreamListeners::default(),
            notices: Notices::new(events, policy_lines, counters.own(id)),
            counted: counters.own(id),
            log,
            side_logs,
            recorder: Recorder::new(records),
            leave_by_ms: None,
            wall: WallClock::default(),
            waiting: WaitingRequests::new(id),
            agenda: Agenda::default(),
            tools,
            inspectors,
        };
        (world, commands)
    }

    /// Writes the log line of an inspected request: a long one on another thread, if one has a place for it.
    pub fn log_inspected(&mut self, report: Box<InspectionReport>, clock: Clock) {
        report.inspection.iter().for_each(|it| self.live.waf_rules.count(it));
        let mut line = self.side_logs.begin_inspected(report, clock);
        if let Some(to) = self.inspectors.as_ref().filter(|_| line.is_long()) {
            match to.send(self.id, Work::Write(line)) {
                Err(Work::Write(refused)) => line = refused,
                Ok(()) | Err(Work::Inspect(_)) => return,
            }
        }
        self.side_logs.write_inspected(&line, clock, &self.counted);
    }

    /// Whether the process is draining.
    pub fn is_draining(&self) -> bool {
        self.clients.draining.is_some()
    }
}
