//! Upgrades: another process replaces this one, or this one replaces another.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::Signal;
use weir_api::events::StreamEndReason;
use weir_config::snapshot::{Address, ListenPoint, Snapshot};
use weir_config::{Colour, render_text};
use weir_core::persistence::keys::Keys;
use weir_dataplane::inherited_sockets::InheritedSockets;
use weir_event_loop::error_text::io_error_text;
use weir_exchange::shared::live::LiveTable;

use super::{Error, Supervisor};
use crate::admin::{Admin, OpenConnections};
use crate::events::Events;
use crate::observed_state::ObservedState;
use crate::service_manager::ServiceManager;
use crate::time::monotonic_ms;
use crate::upgrade::predecessor::{self, FailureChannel, Predecessor, Sockets};
use crate::upgrade::reports::Request;
use crate::upgrade::successor::{self, Successor, UpgradeHandOver};
use crate::upgrade::{Launch, UpgradeFailure, manager_sockets};

/// The time in which a new process must become ready, in addition to the wait for first probes.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

/// Idle HTTP/1 clients may send one more request within this time, which is limited to half of the drain timeout.
const IDLE_GRACE: Duration = Duration::from_secs(10);

/// The state of upgrades.
pub(super) struct UpgradeState {
    launch: Launch,
    /// The new process, until it serves.
    pub(super) successor: Option<Successor>,
    /// The process that this one replaces.
    pub(super) predecessor: Option<Predecessor>,
    /// The predecessor's keys, for snapshots without keys in a file: the tables from the predecessor are valid only
    /// with them.
    keys: Option<Arc<Keys>>,
    /// Inherited admin listeners, until the first configuration is active.
    admins: Vec<(Address, OwnedFd)>,
    /// Whether another process serves.
    pub(super) has_handed_over: bool,
    /// Connections to admin listeners that were handed over.
    admin_connections: Vec<OpenConnections>,
}

/// The inheritance of this process from its predecessor.
#[derive(Default)]
pub(super) struct InheritedState {
    predecessor: Option<Predecessor>,
    sockets: Sockets,
}

impl InheritedState {
    /// Receives the inheritance that the environment names: from the process that started this one, or from a service
    /// manager. Blocks until it is complete.
    pub(super) fn from_environment(events: &Events) -> Result<Self, Error> {
        // This comes first, before other code can open descriptors with these numbers.
        let passed = manager_sockets::from_environment();
        let (predecessor, sockets) =
            match Predecessor::from_environment().map_err(Error::Handover)? {
                Some((predecessor, sockets)) => (Some(predecessor), sockets),
                None => (None, passed.listeners(events)),
            };
        Ok(Self { predecessor, sockets })
    }

    /// The channel for the reason why this process does not serve, if another process waits for it.
    pub(super) fn failure_channel(&self) -> Option<FailureChannel> {
        self.predecessor.as_ref()?.failure_channel().ok()
    }

    /// Whether this process was started to replace another one.
    pub(super) fn has_predecessor(&self) -> bool {
        self.predecessor.is_some()
    }

    fn keys(&self) -> Option<Arc<Keys>> {
        self.predecessor.as_ref()?.keys.clone()
    }

    /// Sets the predecessor's keys in a snapshot without keys.
    pub(super) fn provide_keys(&self, snapshot: &mut Snapshot) {
        provide(self.keys(), snapshot);
    }

    /// Makes the predecessor release the packet path, if the snapshot needs it.
    pub(super) async fn have_packets_left(&mut self, snapshot: &Snapshot) {
        if let (Some(packets), Some(predecessor)) = (&snapshot.packets, &mut self.predecessor) {
            predecessor.have_packets_left(&packets.path.name).await;
        }
    }

    /// Restores the predecessor's secrets and states in the first table. Returns the listeners of virtual servers; the admin
    /// listeners stay in `self`.
    pub(super) fn give_to(&mut self, table: &LiveTable) -> InheritedSockets {
        if let Some(predecessor) = &self.predecessor {
            predecessor.restore(table);
        }
        let mut listeners = std::mem::take(&mut self.sockets.listeners);
        for address in &table.snapshot.admin.listen {
            let sockets = listeners.remove(&ListenPoint::from(address.clone()));
            let of_address = sockets.into_iter().flatten().map(|it| (address.clone(), it));
            self.sockets.admins.extend(of_address.take(1));
        }
        InheritedSockets::new(listeners, std::mem::take(&mut self.sockets.of_manager))
    }

    /// Addresses of inherited admin listeners, which are opened with the first configuration.
    pub(super) fn admins(&self) -> impl Iterator<Item = &Address> {
        self.sockets.admins.iter().map(|(address, _)| address)
    }
}

impl UpgradeState {
    /// Creates the state from the rest of the inheritance.
    pub(super) fn new(heritage: InheritedState, observed: &ObservedState) -> Self {
        if let Some(predecessor) = &heritage.predecessor {
            observed.upgrades.begin_with(predecessor.number, predecessor.process());
        }
        Self {
            launch: Launch::own(),
            successor: None,
            keys: heritage.keys(),
            predecessor: heritage.predecessor,
            admins: heritage.sockets.admins,
            has_handed_over: false,
            admin_connections: Vec::new(),
        }
    }

    /// Sets the predecessor's keys in a snapshot without keys.
    pub(super) fn provide_keys(&self, snapshot: &mut Snapshot) {
        provide(self.keys.clone(), snapshot);
    }

    /// The service manager, if there is one. In a new process, it still follows the predecessor.
    pub(super) fn service_manager(&self, events: &Events) -> ServiceManager {
        let mut manager = ServiceManager::from_environment(events.clone());
        if self.predecessor.is_some() {
            manager.hold();
        }
        manager
    }

    /// Whether no upgrade is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.successor.is_none() && !Predecessor::is_awaited(&self.predecessor)
    }
}

fn provide(keys: Option<Arc<Keys>>, snapshot: &mut Snapshot) {
    if snapshot.own_keys.is_none() {
        snapshot.own_keys = keys;
    }
}

/// Requests an upgrade at each SIGUSR2.
pub(super) fn follow_signal(supervisor: &Supervisor, mut signal: Signal) {
    let (observed, events) = (supervisor.observed.clone(), supervisor.events.clone());
    let follow = async move {
        while signal.recv().await.is_some() {
            if observed.upgrades.ask(None, None).is_err() {
                events.warning("weir", "is being upgraded already: SIGUSR2 has no effect");
            }
        }
    };
    // The task ends with the process.
    drop(tokio::spawn(follow));
}

/// Whether the files may be read again, and versions written.
pub(super) fn may_read(supervisor: &Supervisor) -> bool {
    let upgrading = &supervisor.upgrading;
    let is_the_one =
        upgrading.successor.is_none() && !Predecessor::is_in_force(&upgrading.predecessor);
    supervisor.reading.is_none() && is_the_one
}

/// Whether an upgrade may begin: the new process must read the same configuration as this one.
pub(super) fn may_begin(supervisor: &Supervisor) -> bool {
    supervisor.upgrading.is_idle() && supervisor.next.is_none() && supervisor.reading.is_none()
}

/// Starts a new process.
pub(super) fn begin(supervisor: &mut Supervisor, request: Request) {
    let started = start(supervisor, &request);
    match started {
        Ok(successor) => {
            let pid = successor.pid();
            supervisor.observed.upgrades.started(pid);
            let what = format_args!("is being upgraded: process {pid} starts");
            supervisor.events.info("weir", what);
            supervisor.upgrading.successor = Some(successor);
        }
        Err(reason) => {
            fail(supervisor, UpgradeFailure { reason, diagnostics: String::new() });
        }
    }
}

fn start(supervisor: &Supervisor, request: &Request) -> Result<Successor, String> {
    if std::process::id() == 1 {
        return Err(
            "weir is process 1, and everything here ends with it: start a new container instead"
                .to_owned(),
        );
    }
    let no_copy = |error: std::io::Error| format!("cannot hand over: {}", io_error_text(&error));
    let admins = supervisor.admins.iter().map(|(asked, admin)| {
        Ok((ListenPoint::from(asked.clone()), admin.duplicate().map_err(no_copy)?))
    });
    let packets = &supervisor.table.snapshot.packets;
    let estate = UpgradeHandOver {
        number: request.number,
        listeners: supervisor.data_plane.duplicate_listeners().map_err(no_copy)?,
        admins: admins.collect::<Result<_, String>>()?,
        of_manager: supervisor.data_plane.of_manager().cloned().collect(),
        packets: packets
            .as_ref()
            .filter(|_| supervisor.packets.is_running())
            .map(|packets| packets.path.name.to_string()),
    };
    let probes = Duration::from_millis(supervisor.table.snapshot.first_probes.wait_ms);
    let timeout = request.timeout.unwrap_or(READY_TIMEOUT + probes);
    let (launch, binary) = (&supervisor.upgrading.launch, request.binary.as_deref());
    Successor::start(launch, binary, timeout, estate, &supervisor.table)
}

/// Handles a message of the new process. Returns whether it serves, so that this process must drain.
pub(super) fn take(supervisor: &mut Supervisor, said: successor::SuccessorEvent) -> bool {
    let Some(successor) = &mut supervisor.upgrading.successor else { return false };
    match said {
        successor::SuccessorEvent::LeavePackets => {
            supervisor.packets.leave();
            successor.packets_left();
        }
        successor::SuccessorEvent::Ready => successor.go(&supervisor.table),
        successor::SuccessorEvent::Serves => return hand_over(supervisor),
        said => {
            if let Some(successor) = supervisor.upgrading.successor.take() {
                give_up(supervisor, successor, said);
            }
        }
    }
    false
}

/// Ends a new process that has failed, and takes back the packet path if it was released.
fn give_up(supervisor: &mut Supervisor, successor: Successor, said: successor::SuccessorEvent) {
    let has_packets = successor.has_packets;
    let failed = successor.end(said);
    if has_packets {
        supervisor.packets.take_back(&supervisor.table);
        supervisor.observed.set_flows(supervisor.packets.flows());
    }
    fail(supervisor, failed);
}

/// Reports a failed upgrade: this process continues to serve.
fn fail(supervisor: &Supervisor, failed: UpgradeFailure) {
    let what = format_args!("was not upgraded, and serves on: {failed}");
    supervisor.events.error("weir", what);
    supervisor.observed.upgrades.fail(failed);
}

fn hand_over(supervisor: &mut Supervisor) -> bool {
    let Some(successor) = supervisor.upgrading.successor.take() else { return false };
    let pid = successor.pid();
    supervisor.observed.upgrades.succeed(successor.number, pid);
    let what = format_args!("was upgraded: process {pid} serves, and this one drains");
    supervisor.events.info("weir", what);
    let admins = supervisor.admins.drain(..).map(|(_, admin)| admin.hand_over());
    supervisor.upgrading.admin_connections = admins.collect();
    supervisor.observed.admin.streams.end(StreamEndReason::HandedOver);
    // This must precede the new process's own message to the service manager.
    supervisor.manager.hand_over(pid);
    successor.release();
    supervisor.upgrading.has_handed_over = true;
    true
}

/// Drains the workers. Another process may serve clients in the meantime.
pub(super) fn drain_workers(supervisor: &mut Supervisor, timeout_ms: u64) {
    // A new process that does not serve yet ends together with this one.
    if let Some(successor) = supervisor.upgrading.successor.take() {
        let failed = UpgradeFailure { reason: "weir ends".to_owned(), diagnostics: String::new() };
        give_up(supervisor, successor, successor::SuccessorEvent::Failed(failed));
    }
    if supervisor.upgrading.has_handed_over {
        let idle_ms = u64::try_from(IDLE_GRACE.as_millis()).unwrap_or(u64::MAX);
        supervisor.data_plane.drain_beside(timeout_ms, idle_ms.min(timeout_ms / 2));
    } else {
        supervisor.data_plane.drain(timeout_ms);
    }
}

/// Waits a short time until the connections of admin clients that connected before the handover are closed.
pub(super) async fn answer_admins(supervisor: &Supervisor) {
    for connections in &supervisor.upgrading.admin_connections {
        connections.closed().await;
    }
}

/// Activates the next configuration. In a process that replaces another one, the first activation needs the
/// predecessor's permission.
pub(super) async fn put_in_force(supervisor: &mut Supervisor) {
    let is_first = supervisor.is_starting();
    if is_first && Predecessor::ask(&mut supervisor.upgrading.predecessor) {
        return;
    }
    supervisor.put_next_in_force().await;
    if is_first {
        open_admins(supervisor);
        for address in supervisor.data_plane.let_go_of_inherited() {
            let what =
                format_args!("{address} was handed over, and no virtual server uses it: closed");
            supervisor.events.warning("listener", what);
        }
        if let Some(predecessor) = &mut supervisor.upgrading.predecessor {
            let number = predecessor.number;
            predecessor.serves();
            supervisor.observed.upgrades.succeed(number, std::process::id());
        }
    }
}

/// Opens the inherited admin listeners.
fn open_admins(supervisor: &mut Supervisor) {
    let wanted = &supervisor.table.snapshot.admin.listen;
    for (address, socket) in std::mem::take(&mut supervisor.upgrading.admins) {
        if !wanted.contains(&address) {
            if let Address::Unix(path) = &address {
                // An error means that the file is gone already.
                let _ = std::fs::remove_file(path);
            }
            continue;
        }
        let (observed, events) = (supervisor.observed.clone(), supervisor.events.clone());
        match Admin::adopt(&address, socket, observed, events) {
            Ok(mut admin) => {
                let point = ListenPoint::from(address.clone());
                if supervisor.data_plane.of_manager().any(|of_manager| *of_manager == point) {
                    admin.keep_file();
                }
                supervisor.admins.push((address, admin));
            }
            Err(error) => {
                let error = io_error_text(&error);
                let what = format_args!("is off: cannot listen on {address}: {error}");
                supervisor.events.error("admin listener", what);
            }
        }
    }
}

/// Handles a message of the predecessor.
pub(super) async fn hear(
    supervisor: &mut Supervisor,
    said: predecessor::PredecessorEvent,
) -> Result<(), Error> {
    let Some(predecessor) = &mut supervisor.upgrading.predecessor else { return Ok(()) };
    match said {
        predecessor::PredecessorEvent::Go => put_in_force(supervisor).await,
        predecessor::PredecessorEvent::Silent => return Err(Error::NoWord),
        predecessor::PredecessorEvent::PacketsLeft => {}
        predecessor::PredecessorEvent::Remembered(table) => {
            table.restore(&supervisor.table.stickies, monotonic_ms());
        }
        // The predecessor has made the service manager follow this process.
        predecessor::PredecessorEvent::Gone if predecessor.is_serving() => {
            supervisor.upgrading.predecessor = None;
            supervisor.manager.release();
        }
        predecessor::PredecessorEvent::Gone => {
            let is_ready = predecessor.orphan();
            let what = "has lost the process that it replaces, and serves in its place";
            supervisor.events.warning("weir", what);
            supervisor.manager.release();
            if is_ready {
                put_in_force(supervisor).await;
            }
        }
    }
    Ok(())
}

/// Sends the reason why this process does not serve to the waiting predecessor.
pub(super) fn tell_failure(channel: &FailureChannel, error: &Error) {
    let (reason, diagnostics) = match error {
        Error::Configuration { file, diagnostics } => {
            (format!("{} has errors", file.display()), render_text(diagnostics, Colour::Never))
        }
        other => (other.to_string(), String::new()),
    };
    Predecessor::tell_failure(channel, UpgradeFailure { reason, diagnostics });
}
