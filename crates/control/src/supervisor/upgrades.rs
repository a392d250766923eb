//! Upgrades: another process replaces this one, or this one replaces another.

use std::io;
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

use super::admin_listeners::AdminListeners;
use super::{Error, Supervisor};
use crate::events::Events;
use crate::observed_state::ObservedState;
use crate::packets::PacketPlane;
use crate::service_manager::ServiceManager;
use crate::time::monotonic_ms;
use crate::upgrade::predecessor::{FailureChannel, Predecessor, PredecessorEvent, Sockets};
use crate::upgrade::reports::Request;
use crate::upgrade::successor::{Successor, SuccessorEvent, UpgradeHandOver};
use crate::upgrade::{Launch, UpgradeFailure, manager_sockets};

/// The time in which a new process must become ready, in addition to the wait for first probes.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

/// Idle HTTP/1 clients may send one more request within this time, which is limited to half of the drain timeout.
const IDLE_GRACE: Duration = Duration::from_secs(10);

/// The state of upgrades: the process that this one replaces, and the one that replaces it.
pub(super) struct UpgradeState {
    observed: Arc<ObservedState>,
    events: Events,
    launch: Launch,
    /// The new process, until it serves.
    pub(super) successor: Option<Successor>,
    /// The process that this one replaces.
    pub(super) predecessor: Option<Predecessor>,
    /// The predecessor's keys, for snapshots without keys in a file: the tables from the predecessor are valid only
    /// with them.
    keys: Option<Arc<Keys>>,
    /// Whether another process serves.
    has_handed_over: bool,
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

    /// The inherited admin listeners, which are opened with the first configuration.
    pub(super) fn take_admins(&mut self) -> Vec<(Address, OwnedFd)> {
        std::mem::take(&mut self.sockets.admins)
    }
}

impl UpgradeState {
    /// Creates the state from the rest of the inheritance.
    pub(super) fn new(
        heritage: InheritedState,
        observed: &Arc<ObservedState>,
        events: &Events,
    ) -> Self {
        if let Some(predecessor) = &heritage.predecessor {
            observed.upgrades.begin_with(predecessor.number, predecessor.process());
        }
        Self {
            observed: Arc::clone(observed),
            events: events.clone(),
            launch: Launch::own(),
            successor: None,
            keys: heritage.keys(),
            predecessor: heritage.predecessor,
            has_handed_over: false,
        }
    }

    /// Sets the predecessor's keys in a snapshot without keys.
    pub(super) fn provide_keys(&self, snapshot: &mut Snapshot) {
        provide(self.keys.clone(), snapshot);
    }

    /// The service manager, if there is one. In a new process, it still follows the predecessor.
    pub(super) fn service_manager(&self) -> ServiceManager {
        let mut manager = ServiceManager::from_environment(self.events.clone());
        if self.predecessor.is_some() {
            manager.hold();
        }
        manager
    }

    /// Whether no upgrade is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.successor.is_none() && !Predecessor::is_awaited(&self.predecessor)
    }

    /// Remembers the new process, or reports why it could not be started.
    pub(super) fn begin(&mut self, started: Result<Successor, String>) {
        match started {
            Ok(successor) => {
                let pid = successor.pid();
                self.observed.upgrades.started(pid);
                self.events.info("weir", format_args!("is being upgraded: process {pid} starts"));
                self.successor = Some(successor);
            }
            Err(reason) => self.fail(UpgradeFailure { reason, diagnostics: String::new() }),
        }
    }

    /// Handles a message of the new process. Returns whether it serves, so that this process must hand over and drain.
    pub(super) fn take(
        &mut self,
        said: SuccessorEvent,
        packets: &mut PacketPlane,
        table: &Arc<LiveTable>,
    ) -> bool {
        let Some(successor) = &mut self.successor else { return false };
        match said {
            SuccessorEvent::LeavePackets => {
                packets.leave();
                successor.packets_left();
            }
            SuccessorEvent::Ready => successor.go(table),
            SuccessorEvent::Serves => return true,
            said => self.give_up(said, packets, table),
        }
        false
    }

    /// Ends a new process that has failed, and takes back the packet path if it was released.
    fn give_up(&mut self, said: SuccessorEvent, packets: &mut PacketPlane, table: &Arc<LiveTable>) {
        let Some(successor) = self.successor.take() else { return };
        let has_packets = successor.has_packets;
        let failed = successor.end(said);
        if has_packets {
            packets.take_back(table);
            self.observed.set_flows(packets.flows());
        }
        self.fail(failed);
    }

    /// Reports a failed upgrade: this process continues to serve.
    fn fail(&self, failed: UpgradeFailure) {
        self.events.error("weir", format_args!("was not upgraded, and serves on: {failed}"));
        self.observed.upgrades.fail(failed);
    }

    /// Leaves the admin listeners and the service manager to the new process, which serves.
    pub(super) fn hand_over(&mut self, admins: &mut AdminListeners, manager: &mut ServiceManager) {
        let Some(successor) = self.successor.take() else { return };
        let pid = successor.pid();
        self.observed.upgrades.succeed(successor.number, pid);
        let what = format_args!("was upgraded: process {pid} serves, and this one drains");
        self.events.info("weir", what);
        admins.hand_over();
        self.observed.admin.streams.end(StreamEndReason::HandedOver);
        // This must precede the new process's own message to the service manager.
        manager.hand_over(pid);
        successor.release();
        self.has_handed_over = true;
    }

    /// Ends a new process that does not serve yet, because this process ends.
    pub(super) fn abandon(&mut self, packets: &mut PacketPlane, table: &Arc<LiveTable>) {
        let reason = "weir ends".to_owned();
        let failed = UpgradeFailure { reason, diagnostics: String::new() };
        self.give_up(SuccessorEvent::Failed(failed), packets, table);
    }

    /// How long idle HTTP/1 clients may send one more request in a drain, in ms; `None`: no other process serves them.
    pub(super) fn idle_grace_ms(&self, drain_timeout_ms: u64) -> Option<u64> {
        let grace_ms = u64::try_from(IDLE_GRACE.as_millis()).unwrap_or(u64::MAX);
        self.has_handed_over.then(|| grace_ms.min(drain_timeout_ms / 2))
    }

    /// Handles a message of the predecessor. Returns whether the first configuration must be activated now.
    pub(super) fn hear(
        &mut self,
        said: PredecessorEvent,
        table: &LiveTable,
        manager: &mut ServiceManager,
    ) -> Result<bool, Error> {
        let Some(predecessor) = &mut self.predecessor else { return Ok(false) };
        match said {
            PredecessorEvent::Go => return Ok(true),
            PredecessorEvent::Silent => return Err(Error::NoWord),
            PredecessorEvent::PacketsLeft => {}
            PredecessorEvent::Remembered(remembered) => {
                remembered.restore(&table.stickies, monotonic_ms());
            }
            // The predecessor has made the service manager follow this process.
            PredecessorEvent::Gone if predecessor.is_serving() => {
                self.predecessor = None;
                manager.release();
            }
            PredecessorEvent::Gone => {
                let is_ready = predecessor.orphan();
                let what = "has lost the process that it replaces, and serves in its place";
                self.events.warning("weir", what);
                manager.release();
                return Ok(is_ready);
            }
        }
        Ok(false)
    }

    /// Tells the predecessor that this process serves.
    fn serves(&mut self) {
        let Some(predecessor) = &mut self.predecessor else { return };
        let number = predecessor.number;
        predecessor.serves();
        self.observed.upgrades.succeed(number, std::process::id());
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

/// Starts a new process, with duplicates of all sockets.
pub(super) fn start(supervisor: &Supervisor, request: &Request) -> Result<Successor, String> {
    if std::process::id() == 1 {
        return Err(
            "weir is process 1, and everything here ends with it: start a new container instead"
                .to_owned(),
        );
    }
    let no_copy = |error: io::Error| format!("cannot hand over: {}", io_error_text(&error));
    let admins = supervisor.admins.duplicate().map_err(no_copy)?;
    let packets = &supervisor.table.snapshot.packets;
    let estate = UpgradeHandOver {
        number: request.number,
        listeners: supervisor.data_plane.duplicate_listeners().map_err(no_copy)?,
        admins,
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

/// Activates the next configuration. In a process that replaces another one, the first activation needs the
/// predecessor's permission.
pub(super) async fn put_in_force(supervisor: &mut Supervisor) {
    let is_first = supervisor.is_starting();
    if is_first && Predecessor::ask(&mut supervisor.upgrading.predecessor) {
        return;
    }
    supervisor.put_next_in_force().await;
    if is_first {
        let data_plane = &supervisor.data_plane;
        let is_of_manager = |point: &ListenPoint| data_plane.of_manager().any(|it| it == point);
        supervisor.admins.adopt(&supervisor.table.snapshot.admin.listen, is_of_manager);
        for address in supervisor.data_plane.let_go_of_inherited() {
            let what =
                format_args!("{address} was handed over, and no virtual server uses it: closed");
            supervisor.events.warning("listener", what);
        }
        supervisor.upgrading.serves();
    }
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
