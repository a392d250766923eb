//! A worker on the event loop's simulated kernel, executed turn by turn.

use std::cell::Cell;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};

use weir_config::snapshot::{Address, ListenPoint, Member, Snapshot};
use weir_core::monitor::Health;
use weir_event_loop::kernel::Kernel;
use weir_event_loop::memory::{self, Network};
use weir_event_loop::{Descriptor, EventLoop, Token, Turns, random};
use weir_exchange::shared::counters::{PerWorker, WorkerCounters};
use weir_exchange::shared::live::{LiveMember, LiveTable};
use weir_telemetry::access_log::AccessLog;
use weir_telemetry::records::record::Record;
use weir_telemetry::records::recorder::RecordSender;
use weir_telemetry::reports::{Event, LogBatch, SpanBatch};
use weir_telemetry::side_logs::SideLogs;

use crate::inspection_queue::{QueuedWork, ToInspectors, Work};
use crate::outside;
use crate::worker::{Command, Setup, Worker};

/// Capacity of the channels for batches of log lines and for events.
const REPORTS_MAX: usize = 4_096;

thread_local! {
    /// The processor time, and how much of it passes with each reading.
    static CPU_US: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

fn cpu_us() -> u64 {
    let (now_us, passes_us) = CPU_US.get();
    CPU_US.set((now_us + passes_us, passes_us));
    now_us
}

/// What inspections by the web application firewall need in a simulation.
#[derive(Debug, Clone, Copy)]
pub struct InspectionTerms {
    /// Whether there is a thread that goes on with long inspections. Otherwise, the worker keeps them.
    pub has_thread: bool,
    /// Whether each inspection is a long one: it leaves its first turn at the first rule, or at the first part of a body.
    pub are_all_long: bool,
    /// The processor time that passes with each look at it, in microseconds.
    pub look_us: u64,
}

/// A worker, its loop, and the control plane's ends of the worker's channels.
pub struct SimulatedWorker {
    io: EventLoop,
    turns: Turns,
    worker: Worker,
    network: Network,
    wanted_at_us: Option<u64>,
    table: Arc<LiveTable>,
    counters: Arc<PerWorker<WorkerCounters>>,
    log: Receiver<LogBatch>,
    waf_log: Receiver<LogBatch>,
    _spans: Receiver<SpanBatch>,
    events: Receiver<Event>,
    policy_lines: Receiver<Event>,
    records: Receiver<Box<Record>>,
    /// The queue of long inspections, and whether a thread serves it.
    inspections: Receiver<QueuedWork>,
    has_inspector: Arc<AtomicBool>,
    /// The work that the thread has, and when it is done.
    inspected: Option<(u64, Work)>,
    /// Kept open, because a worker stops when its channel for commands is closed.
    _commands: Sender<Command>,
}

impl SimulatedWorker {
    /// Creates a worker that serves the snapshot. All members are up.
    pub fn new(network: &Network, snapshot: Snapshot) -> Self {
        let table = Arc::new(LiveTable::build(Arc::new(snapshot), None, 1, &outside()));
        let counters = Arc::new(PerWorker::new(1));
        let (log_sender, log) = sync_channel(REPORTS_MAX);
        let (waf_log_sender, waf_log) = sync_channel(REPORTS_MAX);
        let (span_sender, spans) = sync_channel(REPORTS_MAX);
        let (event_sender, events) = sync_channel(REPORTS_MAX);
        let (line_sender, policy_lines) = sync_channel(REPORTS_MAX);
        let (record_sender, records) = sync_channel(REPORTS_MAX);
        let (command_sender, commands) = channel();
        let has_inspector = Arc::new(AtomicBool::new(false));
        let (to_inspectors, inspections) = ToInspectors::new(1, Arc::clone(&has_inspector));
        let setup = Setup {
            id: 0,
            table: Arc::clone(&table),
            counters: Arc::clone(&counters),
            log: AccessLog::new(log_sender, u128::from_ne_bytes(random::bytes())),
            side_logs: SideLogs::new(waf_log_sender, span_sender),
            events: event_sender,
            policy_lines: line_sender,
            records: Some(RecordSender { records: record_sender, dropped: Arc::default() }),
            commands,
            inspectors: Some(to_inspectors),
        };
        let mut simulated = Self {
            io: EventLoop::over(Kernel::Memory(network.clone())),
            turns: Turns::default(),
            worker: Worker::new(setup, Token::NONE),
            network: network.clone(),
            wanted_at_us: Some(0),
            table,
            counters,
            log,
            waf_log,
            _spans: spans,
            events,
            policy_lines,
            records,
            inspections,
            has_inspector,
            inspected: None,
            _commands: command_sender,
        };
        simulated.put_in_force(Arc::clone(&simulated.table), &[]);
        simulated
    }

    /// Makes a snapshot active.
    pub fn apply(&mut self, snapshot: Snapshot) {
        let table = Arc::new(LiveTable::build(
            Arc::new(snapshot),
            Some(&self.table),
            self.table.workers(),
            &outside(),
        ));
        let old = addresses(&self.table.snapshot);
        self.put_in_force(table, &old);
    }

    /// Gives a pool of the active table other members, by its index: `change` edits the present ones.
    pub fn change_members(&mut self, pool: usize, change: impl FnOnce(&mut Vec<Member>)) {
        let mut snapshot = Snapshot::clone(&self.table.snapshot);
        change(&mut Arc::make_mut(&mut snapshot.pools[pool]).members);
        let table = self.table.with_members(Arc::new(snapshot), &[pool], &outside());
        let now_ms = memory::now_us() / 1_000;
        table.pools[pool].enter_into_force(now_ms);
        let members = table.pools[pool].members.iter();
        for member in members.filter(|member| member.health() == Health::Pending) {
            member.set_health(Health::Up, now_ms);
        }
        self.table = Arc::new(table);
        let command = Command::Members { table: Arc::clone(&self.table), pools: Arc::from([pool]) };
        self.worker.obey_in_simulation(&mut self.io, command, Vec::new());
        self.wanted_at_us = Some(0);
    }

    fn put_in_force(&mut self, table: Arc<LiveTable>, old: &[ListenPoint]) {
        let now_ms = memory::now_us() / 1_000;
        table.enter_into_force(now_ms);
        // The first probe of each monitored member succeeds immediately.
        let members = table.pools.iter().flat_map(|pool| &pool.members);
        for member in members.filter(|member| member.health() == Health::Pending) {
            member.set_health(Health::Up, now_ms);
        }
        let new = addresses(&table.snapshot);
        let added: Vec<ListenPoint> = new.iter().filter(|it| !old.contains(it)).cloned().collect();
        let kept: HashSet<ListenPoint> = new.into_iter().collect();
        let removed: Vec<ListenPoint> =
            old.iter().filter(|it| !kept.contains(*it)).cloned().collect();
        let listen = |point: &ListenPoint| match &point.address {
            Address::Socket(socket) => Some(self.network.listen(*socket)),
            Address::Udp(socket) => Some(self.network.listen_datagrams(*socket)),
            Address::Unix(_) => None,
        };
        let listeners = added.iter().filter_map(listen).map(Descriptor::Memory).collect();
        self.table = Arc::clone(&table);
        let command = Command::Apply { table, added, removed };
        self.worker.obey_in_simulation(&mut self.io, command, listeners);
        // The next turn follows immediately.
        self.wanted_at_us = Some(0);
    }

    /// Sets what inspections need.
    pub fn set_inspection_terms(&mut self, terms: InspectionTerms) {
        let InspectionTerms { has_thread, are_all_long, look_us } = terms;
        self.has_inspector.store(has_thread, Relaxed);
        CPU_US.set((0, look_us));
        let command = Command::SetInspections { are_all_long, cpu_us };
        self.worker.obey_in_simulation(&mut self.io, command, Vec::new());
    }

    /// Lets the thread for inspections begin with the next work, if it has none. It is done in the first turn after this time.
    pub fn inspect(&mut self, until_us: u64) {
        if self.inspected.is_none() {
            self.inspected = self.inspections.try_recv().ok().map(|(_, work)| (until_us, work));
        }
    }

    /// A member of a pool of the active table.
    pub fn member(&self, pool: &str, address: SocketAddr) -> Option<&Arc<LiveMember>> {
        let pool = self.table.pools.iter().find(|it| *it.pool.name == *pool)?;
        pool.members.iter().find(|it| it.address == Address::Socket(address))
    }

    /// Starts to drain the worker.
    pub fn drain(&mut self, timeout_ms: u64) {
        let command = Command::Drain { timeout_ms, idle_ms: None };
        self.worker.obey_in_simulation(&mut self.io, command, Vec::new());
        self.wanted_at_us = Some(0);
    }

    /// Recovers from a panic of the worker as a worker thread does: all connections are closed, and the worker continues.
    pub fn recover(&mut self) {
        self.io.close_streams();
        self.worker.forget_connections("as told");
        self.wanted_at_us = Some(0);
    }

    /// The numbers of failed and of attempted connections to each member.
    pub fn connects(&self) -> Vec<(Address, u64, u64)> {
        let members = self.table.pools.iter().flat_map(|pool| &pool.members);
        let counted = members.map(|member| {
            let totals = member.counters.totals();
            (member.address.clone(), totals.connect_failures, totals.connections_opened)
        });
        counted.collect()
    }

    /// Whether the worker has ended.
    pub fn has_ended(&self) -> bool {
        self.io.is_stopping()
    }

    /// Makes one turn of the loop.
    pub fn turn(&mut self) -> std::io::Result<()> {
        self.wanted_at_us = self.turns.turn(&mut self.io, &mut self.worker, self.wanted_at_us)?;
        let is_done = |(until_us, _): &mut (u64, _)| *until_us <= memory::now_us();
        if let Some((_, work)) = self.inspected.take_if(is_done) {
            let command = match work {
                Work::Inspect(mut job) => {
                    job.run();
                    Command::Inspected(job)
                }
                Work::Write(line) if line.send() => return Ok(()),
                Work::Write(_) => Command::LineDropped,
            };
            self.worker.obey_in_simulation(&mut self.io, command, Vec::new());
            self.wanted_at_us = Some(0);
        }
        Ok(())
    }

    /// The time of the next turn if no event arrives; `None`: there is none.
    pub fn due_us(&self) -> Option<u64> {
        let inspected_us = self.inspected.as_ref().map(|(until_us, _)| *until_us);
        let due_us = self.io.due_us(self.wanted_at_us, memory::now_us());
        due_us.into_iter().chain(inspected_us).min()
    }

    /// Bytes that were spliced from socket to socket.
    pub fn bytes_spliced(&self) -> u64 {
        self.counters.totals().bytes_spliced
    }

    /// The numbers of long inspections that went to the thread, and of those that the worker kept.
    pub fn long_inspections(&self) -> [u64; 2] {
        let totals = self.counters.totals();
        [totals.waf_inspections_moved, totals.waf_inspections_kept]
    }

    /// The active table.
    pub fn table(&self) -> &Arc<LiveTable> {
        &self.table
    }

    /// Appends the access log lines written since the last call.
    pub fn take_log(&mut self, into: &mut Vec<u8>) {
        for batch in self.log.try_iter() {
            into.extend_from_slice(&batch.bytes);
        }
        for line in self.policy_lines.try_iter() {
            into.extend_from_slice(format!("{line:?}\n").as_bytes());
        }
    }

    /// Appends the WAF log lines written since the last call.
    pub fn take_waf_log(&mut self, into: &mut Vec<u8>) {
        for batch in self.waf_log.try_iter() {
            into.extend_from_slice(&batch.bytes);
        }
    }

    /// The records of requests since the last call.
    pub fn take_records(&mut self) -> Vec<Box<Record>> {
        self.records.try_iter().collect()
    }

    /// The events that the worker has reported since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.events.try_iter().collect()
    }

    /// State that remains after the last client has disconnected.
    pub fn remains(&self) -> Vec<String> {
        let mut remains = self.worker.remains();
        let (here, there) = (self.io.room.open_sockets(), self.network.descriptors_open());
        if here != there {
            remains.push(format!("{there} descriptors for {here} sockets"));
        }
        remains
    }

    /// Connections to members with a reduced window although they have no streams.
    pub fn lost_windows(&self) -> Vec<String> {
        self.worker.lost_windows()
    }

    /// All counts, as text.
    pub fn counts(&self) -> String {
        use std::fmt::Write;
        let mut text = format!("{:?}\n", self.counters.totals());
        let table = &self.table;
        for server in &table.virtual_servers {
            let _ = writeln!(text, "{}: {:?}", server.name, server.counters.totals());
        }
        for pool in &table.pools {
            let _ = writeln!(text, "{}: {:?}", pool.pool.name, pool.pool.counters.totals());
            for member in &pool.members {
                let _ = writeln!(text, "  {}: {:?}", member.label, member.counters.totals());
            }
        }
        text
    }
}

/// The addresses of a snapshot's listeners in the simulated network.
fn addresses(snapshot: &Snapshot) -> Vec<ListenPoint> {
    let all = snapshot.virtual_servers.iter().flat_map(|server| &server.listen);
    all.filter(|address| address.address.socket().is_some()).cloned().collect()
}

/// All texts of a record's request, with line ends between them.
pub fn texts_of(record: &Record) -> Vec<u8> {
    let notes = record.notes.as_deref();
    let mut texts = vec![&*record.user];
    texts.extend(record.marks.iter().map(|mark| &**mark));
    texts.extend(notes.map(|notes| &*notes.head));
    let firewall = notes.and_then(|notes| notes.firewall.as_ref());
    texts.extend(firewall.into_iter().flat_map(|it| &it.rules).map(|(_, text)| &**text));
    texts.join(&b'\n')
}
