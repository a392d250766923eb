//! The control plane's part of the packet path: its virtual servers, its state, and its end.
//!
//! [`PacketPlane::settle`] decides, before a snapshot becomes active, whether packets can be processed, and on which
//! interfaces. Virtual servers whose packets cannot be processed become `type: tcp` in the snapshot, or are reported as
//! unserved. One thread (`thread.rs`) does all work on maps, and also follows the members' health.
//!
//! **Architecture invariant:** the data path does not depend on this module. A virtual server in the snapshot's `packets`
//! has no listener; a virtual server that fell back is an ordinary one of `type: tcp`.

mod host;
mod interfaces;
mod leftovers;
mod lock;
mod pace;
mod plan;
mod report;
mod thread;

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use weir_config::snapshot::Snapshot;
use weir_config::snapshot::packet::{Packets, PathSettings};
use weir_exchange::shared::live::LiveTable;
use weir_packet::{Attachment, Flow, FlowFilter, Options, RungsAllowed};

pub use host::{cookies_obstacle, obstacle};
use leftovers::Leftover;
pub use leftovers::{DetachedPaths, detach_leftovers};
pub use plan::check;
pub use report::{Board, EndedFlowCounts, Report};
pub use thread::EndedFlows;
use thread::{Command, ENDED_FLOWS_MAX, Exit, Keeper, Newest, OpenedPath, PacketPathRequest};

use crate::events::Events;

/// Capacity of the channel for commands to the thread.
const COMMANDS_WAITING_MAX: usize = 64;

/// Maximum wait for loading programs, and for creating or reading tables.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of flows in one list.
pub const LISTED_FLOWS_MAX: usize = 100_000;

/// The packet path of this process, if it has one.
#[derive(Debug)]
pub struct PacketPlane {
    events: Events,
    board: Board,
    running: Option<PacketThread>,
    /// The events about forwarding paths that were reported last.
    told: Vec<String>,
    is_kept_at_exit: bool,
    /// Whether the active configuration has packet forwarding; `None`: no configuration is active yet.
    is_wanted: Option<bool>,
    /// The previous settings, while a new configuration is not accepted yet; `None`: no configuration is pending.
    before: Option<Option<PacketPathRequest>>,
}

#[derive(Debug)]
struct PacketThread {
    commands: SyncSender<Command>,
    newest: Arc<Newest>,
    thread: JoinHandle<()>,
    /// The settings and attachments in use, if there are any.
    had: Option<(PacketPathRequest, Vec<Attachment>)>,
}

/// A handle to list and end flows from any thread.
#[derive(Debug, Clone)]
pub struct Flows(SyncSender<Command>);

impl PacketPlane {
    /// A packet path that does not run yet.
    pub fn new(events: Events) -> Self {
        Self {
            events,
            board: Board::default(),
            running: None,
            told: Vec::new(),
            is_kept_at_exit: false,
            is_wanted: None,
            before: None,
        }
    }

    /// The state for metrics and status.
    pub fn board(&self) -> Board {
        self.board.clone()
    }

    /// Decides which virtual servers of the snapshot use the packet path, and makes the others use sockets.
    pub fn settle(&mut self, snapshot: &mut Snapshot) {
        let Some(packets) = &mut snapshot.packets else { return };
        if self.is_wanted.is_none() {
            self.is_kept_at_exit = packets.path.is_kept_at_exit;
        }
        let had = self.had();
        self.before.get_or_insert(had);
        if let Err(why) = self.have(packets) {
            let proxies = packets.fall(&why);
            snapshot.virtual_servers.extend(proxies);
        }
    }

    /// Makes the result of `settle` permanent: the configuration was accepted.
    pub fn accept(&mut self) {
        // The work may have begun early, for a configuration that is not settled yet. Then its result is still pending.
        if self.running.is_none() || self.has_packets() {
            self.before = None;
        }
    }

    /// Begins the work that [`PacketPlane::settle`] would wait for: the kernel verifies programs for about a second, in
    /// which probes and admin requests must not stop. The receiver reports the end of the work; `None`: there is no such
    /// work.
    pub fn begin(&mut self, snapshot: &Snapshot) -> Option<oneshot::Receiver<()>> {
        let wanted = wanted(&snapshot.packets.as_ref()?.path).ok()?;
        // A running packet path has its programs already.
        if self.running.is_some() {
            return None;
        }
        let running = PacketThread::start(&self.events, &self.board).ok()?;
        let (done, is_done) = oneshot::channel();
        running.tell(Command::OpenAhead(wanted, done));
        self.running = Some(running);
        self.before = Some(None);
        Some(is_done)
    }

    /// Sets up the packet path with these settings. The error is the reason why this is impossible.
    fn have(&mut self, packets: &Packets) -> Result<(), String> {
        let wanted = wanted(&packets.path)?;
        let running = match &mut self.running {
            Some(running) => running,
            none => none.insert(PacketThread::start(&self.events, &self.board)?),
        };
        running.open(wanted)
    }

    /// Applies the table, and reports the forwarding path of each virtual server if it has changed.
    pub fn put_in_force(&mut self, table: &Arc<LiveTable>) {
        let packets = table.snapshot.packets.as_ref();
        let is_wanted = packets.is_some_and(|packets| {
            !packets.servers.is_empty() || packets.path.guards() && self.has_packets()
        });
        self.is_kept_at_exit = packets.is_some_and(|packets| packets.path.is_kept_at_exit);
        self.is_wanted = Some(is_wanted);
        if is_wanted {
            if let Some(running) = &self.running {
                running.apply(table);
            }
        } else if let Some(running) = self.running.take() {
            running.stop(Exit::Detach);
        }
        self.accept();
        self.tell_ladder(packets);
    }

    /// Applies other members of these pools, by their indexes: the table differs from the one in force in nothing else.
    pub fn take_members(&mut self, table: &Arc<LiveTable>, pools: &[usize]) {
        if self.is_wanted == Some(true)
            && plan::reaches(&table.snapshot, pools)
            && let Some(running) = &self.running
        {
            running.apply(table);
        }
    }

    fn has_packets(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.had.is_some())
    }

    fn had(&self) -> Option<PacketPathRequest> {
        let (wanted, _) = self.running.as_ref()?.had.as_ref()?;
        Some(wanted.clone())
    }

    /// Restores the packet path after a configuration was refused, on the previous interfaces. Does nothing if that
    /// configuration had no packet forwarding.
    pub fn restore(&mut self) {
        let Some(before) = self.before.take() else { return };
        let Some(wanted) = before else {
            if let Some(running) = self.running.take() {
                running.stop(Exit::Detach);
            }
            return;
        };
        let Some(running) = &mut self.running else { return };
        match running.open(wanted) {
            Ok(()) => running.tell(Command::LeaveOthers),
            Err(why) => self.events.error("packet path", format_args!("is not as before: {why}")),
        }
    }

    /// Removes programs of a former process that would intercept packets for sockets. If the configuration has no packet
    /// forwarding, the programs are only reported, because another weir may take them over.
    fn leftover(&self, packets: Option<&Packets>) -> Option<String> {
        if self.has_packets() {
            return None;
        }
        let pins = Path::new(lock::PINS);
        let Some(packets) = packets else {
            let names = leftovers::abandoned(pins);
            let told = || {
                let names = names.join("`, `");
                format!(
                    "warning packet path `{names}` of a former process still takes packets: `weir l4 detach` removes it"
                )
            };
            return (!names.is_empty()).then(told);
        };
        let name = &packets.path.name;
        match leftovers::remove(pins, name) {
            Leftover::None => None,
            Leftover::Removed => Some(format!(
                "info packet path `{name}` of a former process is removed: sockets serve now"
            )),
            Leftover::Stays(why) => Some(format!(
                "error packet path `{name}` of a former process still takes packets ({why}): `weir l4 detach {name}` removes it"
            )),
        }
    }

    fn tell_ladder(&mut self, packets: Option<&Packets>) {
        let mut told = Vec::new();
        let attachments = self.running.as_ref().and_then(|running| running.had.as_ref());
        let attachments = attachments.map_or(&[][..], |(_, attachments)| attachments);
        for server in packets.iter().flat_map(|packets| &packets.servers) {
            told.push(format!(
                "info virtual server {} is served by packets: {}",
                server.name,
                report::rungs(attachments)
            ));
            let remarks = server.remarks.iter();
            told.extend(remarks.map(|it| format!("info virtual server {}: {it}", server.name)));
        }
        for refused in attachments.iter().filter(|it| it.rung.is_none()) {
            let why: Vec<String> = refused
                .refused
                .iter()
                .map(|it| format!("{}: {}", it.rung.name(), it.why))
                .collect();
            told.push(format!(
                "warning interface {} gives no packets ({})",
                refused.interface,
                why.join("; ")
            ));
        }
        for fallen in packets.iter().flat_map(|packets| &packets.fallen) {
            let (name, why) = (&fallen.server.name, &fallen.why);
            told.push(match &fallen.unserved {
                None => format!("warning virtual server {name} is served by sockets, not by packets: {why}"),
                Some(unserved) => format!("error virtual server {name} is not served: no packets, since {why}; no sockets, since {unserved}"),
            });
        }
        if let Some(packets) =
            packets.filter(|packets| packets.path.guards() && !self.has_packets())
        {
            let what = if packets.path.deny.is_empty() { "syn_cookies" } else { "deny" };
            told.push(format!("error packet_path.{what} does not hold: there are no packets"));
        }
        if packets.is_some_and(|packets| !packets.path.syn_cookies.is_empty()) {
            told.extend(
                cookies_obstacle().map(|why| format!("warning packet_path.syn_cookies: {why}")),
            );
        }
        told.extend(self.leftover(packets));
        for line in told.iter().filter(|line| !self.told.contains(line)) {
            match line.split_once(' ') {
                Some(("info", line)) => self.events.info("ladder:", line),
                Some(("warning", line)) => self.events.warning("ladder:", line),
                Some((_, line)) => self.events.error("ladder:", line),
                None => {}
            }
        }
        self.told = told;
    }

    /// Whether packets are processed.
    pub fn is_running(&self) -> bool {
        self.is_wanted == Some(true) && self.has_packets()
    }

    /// Leaves programs and flows to another process, and stops managing them. Packets are still forwarded.
    pub fn leave(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop(Exit::Keep);
        }
    }

    /// Takes the packet path back after the process to which it was released has ended.
    pub fn take_back(&mut self, table: &Arc<LiveTable>) {
        let Some(packets) = &table.snapshot.packets else { return };
        match self.have(packets) {
            Ok(()) => self.put_in_force(table),
            Err(why) => {
                self.events.error("packet path", format_args!("is not followed any more: {why}"));
            }
        }
    }

    /// Access to flows; `None`: there is no packet path.
    pub fn flows(&self) -> Option<Flows> {
        self.running.as_ref().map(|running| Flows(running.commands.clone()))
    }

    /// Accepts no new flows, and ends after the last flow or after `timeout`. If flows are kept at exit, leaves programs and
    /// flows to the next process at once.
    pub fn drain(&mut self, timeout: Duration) {
        // The configuration with this packet path did not become active, so no flow must be drained.
        if self.is_wanted != Some(true) {
            if let Some(running) = self.running.take() {
                running.stop(Exit::Abandon);
            }
            return;
        }
        let Some(running) = &self.running else { return };
        running.tell(match self.is_kept_at_exit {
            true => Command::Stop(Exit::Keep),
            false => Command::Drain(Instant::now() + timeout),
        });
    }

    /// Whether the thread has ended or never ran.
    pub fn is_finished(&self) -> bool {
        self.running.as_ref().is_none_or(|running| running.thread.is_finished())
    }

    /// Ends the packet path now, and waits for the thread.
    pub fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop(match (self.is_kept_at_exit, self.is_wanted) {
                (false, _) => Exit::Detach,
                // Flows that this process has created serve no client yet. Flows that it has taken over do.
                (true, None) => Exit::Abandon,
                (true, Some(_)) => Exit::Keep,
            });
        }
    }
}

impl Drop for PacketPlane {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop(Exit::Abandon);
        }
    }
}

/// The label of a member: `10.0.0.1:80`, `[::1]:80`, or `10.0.0.1` if the destination port stays the client's.
pub fn member_label(address: IpAddr, port: Option<u16>) -> String {
    match port {
        Some(port) => SocketAddr::new(address, port).to_string(),
        None => address.to_string(),
    }
}

/// The packet path that the settings describe. The error is the reason why it is impossible.
fn wanted(settings: &PathSettings) -> Result<PacketPathRequest, String> {
    let allowed = RungsAllowed { xdp: settings.rungs.xdp, tcx: settings.rungs.tcx };
    if !allowed.xdp && !allowed.tcx {
        return Err("`rungs` has neither `xdp` nor `tcx`".into());
    }
    if let Some(obstacle) = obstacle() {
        return Err(obstacle);
    }
    let interfaces = interfaces(settings);
    if interfaces.is_empty() {
        return Err(
            "no network interface is up that has an IP address and a hardware address".into()
        );
    }
    let options = Options {
        flows_max: settings.flows_max,
        remembered_max: settings.remembered_max,
        ..Options::new(&settings.name)
    };
    Ok(PacketPathRequest { options, interfaces, allowed })
}

/// The interfaces in the settings, or all suitable ones.
fn interfaces(settings: &PathSettings) -> Vec<String> {
    match &settings.interfaces {
        Some(names) => names.iter().map(|name| name.to_string()).collect(),
        None => host::interfaces(),
    }
}

impl PacketThread {
    fn start(events: &Events, board: &Board) -> Result<Self, String> {
        let (commands, waiting) = sync_channel(COMMANDS_WAITING_MAX);
        let keeper = Keeper::new(events.clone(), board.clone());
        let thread = std::thread::Builder::new()
            .name("weir-packets".into())
            .spawn(move || keeper.run(&waiting))
            .map_err(|error| format!("a thread cannot be had: {error}"))?;
        Ok(Self { commands, newest: Arc::default(), thread, had: None })
    }

    fn apply(&self, table: &Arc<LiveTable>) {
        if self.newest.put(Arc::clone(table)) {
            self.tell(Command::InForce(Arc::clone(&self.newest)));
        }
    }

    fn open(&mut self, wanted: PacketPathRequest) -> Result<(), String> {
        if self.had.as_ref().is_some_and(|(had, _)| *had == wanted) {
            return Ok(());
        }
        let (answer, answered) = sync_channel(1);
        self.tell(Command::Open(wanted.clone(), answer));
        let answer = answered.recv_timeout(OPEN_TIMEOUT);
        let answer =
            answer.map_err(|_| format!("no answer of the kernel within {OPEN_TIMEOUT:?}"))?;
        self.had = None;
        let OpenedPath { attachments, taken_over } = answer?;
        if !taken_over && attachments.iter().all(|it| it.rung.is_none()) {
            let why = |it: &Attachment| {
                let refused = it.refused.iter().map(|it| format!("{}: {}", it.rung.name(), it.why));
                format!("{}: {}", it.interface, refused.collect::<Vec<_>>().join("; "))
            };
            let all: Vec<String> = attachments.iter().map(why).collect();
            return Err(format!("no interface gives packets ({})", all.join(", ")));
        }
        self.had = Some((wanted, attachments));
        Ok(())
    }

    /// Sends a command. Blocks while the channel is full. That time is short: the thread handles each command quickly.
    fn tell(&self, command: Command) {
        // An error means that the thread has ended: the command has no effect.
        let _ = self.commands.send(command);
    }

    fn stop(self, exit: Exit) {
        self.tell(Command::Stop(exit));
        // The thread reports a panic itself.
        let _ = self.thread.join();
    }
}

impl Flows {
    /// The flows that match the filter, up to [`LISTED_FLOWS_MAX`].
    pub async fn list(&self, mut filter: FlowFilter) -> Result<Vec<Flow>, String> {
        filter.flows_max = filter.flows_max.min(LISTED_FLOWS_MAX);
        let (answer, answered) = oneshot::channel();
        self.ask(Command::Flows(filter, answer))?;
        answered.await.map_err(|_| ENDED)?
    }

    /// Ends the flows that match the filter. Returns their number. If it is the maximum of one command, matching flows may
    /// remain.
    pub async fn end(&self, mut filter: FlowFilter) -> Result<EndedFlows, String> {
        filter.flows_max = ENDED_FLOWS_MAX;
        let (answer, answered) = oneshot::channel();
        self.ask(Command::End(filter, answer))?;
        answered.await.map_err(|_| ENDED)?
    }

    fn ask(&self, command: Command) -> Result<(), String> {
        self.0.try_send(command).map_err(|_| "too many commands wait for the packet path".into())
    }
}

/// The error after the end of the packet path.
const ENDED: &str = "the packet path has ended";
