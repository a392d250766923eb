//! The new process's view of its predecessor: the inheritance, and the permission to serve.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, sleep_until, timeout};
use weir_config::snapshot::{Address, ListenPoint};
use weir_core::admin_state::AdminState;
use weir_core::persistence::keys::Keys;
use weir_exchange::shared::live::LiveTable;
use weir_exchange::shared::table_contents::TableContents;
use weir_tls::tickets::{OwnSecrets, SECRET_BYTES};

use super::launch;
use super::process::Process;
use super::wire::{
    Channel, FromSuccessor, MemberState, PROTOCOL, Tickets, ToSuccessor, UpgradeFailure,
};

/// Maximum wait for an answer of the predecessor.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The predecessor of this process.
#[derive(Debug)]
pub(crate) struct Predecessor {
    channel: Channel,
    said: UnboundedReceiver<PredecessorEvent>,
    /// The number of the upgrade.
    pub number: u64,
    /// The name of the predecessor's packet path.
    packets: Option<String>,
    tickets: Vec<Tickets>,
    states: Vec<MemberState>,
    /// The keys of the predecessor's persistence tables.
    pub keys: Option<Arc<Keys>>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// This process is not ready.
    Starting,
    /// This process is ready, and waits for the permission to serve. The time is the end of the wait.
    Asking(Instant),
    /// This process serves.
    Serving,
    /// The predecessor ended during the startup of this process.
    Orphaned,
}

/// The sockets of the predecessor.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    /// The listeners of virtual servers.
    pub listeners: HashMap<ListenPoint, Vec<OwnedFd>>,
    /// The admin listeners.
    pub admins: Vec<(Address, OwnedFd)>,
    /// Listeners of a service manager: weir does not remove their files.
    pub of_manager: HashSet<ListenPoint>,
}

/// An event from the predecessor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PredecessorEvent {
    /// The predecessor has released the packet path.
    PacketsLeft,
    /// A persistence table.
    Remembered(TableContents),
    /// The permission to serve.
    Go,
    /// The predecessor has ended, or has closed the channel.
    Gone,
    /// The predecessor has not answered in time.
    Silent,
}

impl Predecessor {
    /// Receives the inheritance from the predecessor that has started this process for an upgrade. `None`: this process has
    /// no predecessor. Blocks until everything is handed over.
    pub(crate) fn from_environment() -> io::Result<Option<(Self, Sockets)>> {
        match launch::take_channel()? {
            Some(socket) => Self::take_over(Channel::of(socket)?).map(Some),
            None => Ok(None),
        }
    }

    fn take_over(channel: Channel) -> io::Result<(Self, Sockets)> {
        let gone = || io::Error::other("the process before ended while it handed over");
        let mut sockets = Sockets::default();
        let (mut tickets, mut states, mut begin) = (Vec::new(), Vec::new(), None);
        let mut keys = None;
        loop {
            let (message, received) = channel.receive()?.ok_or_else(gone)?;
            match message {
                ToSuccessor::Begin(found) if found.protocol != PROTOCOL => {
                    return Err(io::Error::other(
                        "the process before hands over in a way that this version does not know: restart weir",
                    ));
                }
                ToSuccessor::Begin(found) => begin = Some(found),
                ToSuccessor::Listeners(at) => {
                    sockets.listeners.entry(at.into()).or_default().extend(received);
                }
                ToSuccessor::Admin(at) => {
                    let point = ListenPoint::from(at);
                    sockets
                        .admins
                        .extend(received.into_iter().map(|it| (point.address.clone(), it)));
                }
                ToSuccessor::OfManager(at) => {
                    sockets.of_manager.insert(at.into());
                }
                ToSuccessor::Tickets(found) => tickets.push(found),
                ToSuccessor::MemberState(state) => states.push(state),
                // If the keys are unreadable, only the assignments of clients to members are lost.
                ToSuccessor::Keys(text) => keys = Keys::parse(&text).ok().map(Arc::new),
                ToSuccessor::Start => break,
                ToSuccessor::PacketsLeft | ToSuccessor::Remembered(_) | ToSuccessor::Go => {}
            }
        }
        let begin = begin.ok_or_else(|| io::Error::other("the process before did not begin"))?;
        let (number, packets) = (begin.number, begin.packets);
        let said = listen(channel.try_clone()?)?;
        let stage = Stage::Starting;
        Ok((Self { channel, said, number, packets, tickets, states, keys, stage }, sockets))
    }

    /// Asks the predecessor to release the packet path of this name, if the predecessor uses it.
    pub(crate) async fn have_packets_left(&mut self, name: &str) {
        let has_it = self.packets.as_deref() == Some(name);
        if has_it && self.channel.send(&FromSuccessor::LeavePackets, &[]).is_ok() {
            // Without an answer, opening the packet path fails, which is reported.
            let _ = timeout(ANSWER_TIMEOUT, self.said.recv()).await;
        }
    }

    /// Copies the predecessor's secrets and member states into a table.
    pub(crate) fn restore(&self, table: &LiveTable) {
        for tickets in &self.tickets {
            let servers = table.snapshot.virtual_servers.iter().zip(&table.tls);
            let mut found = servers.filter(|(server, _)| *server.name == *tickets.virtual_server);
            if let Some((_, Some(tls))) = found.next() {
                let secrets = tickets.secrets.iter().filter_map(|text| secret(text)).collect();
                tls.continue_tickets(&OwnSecrets { since_s: tickets.since_s, secrets });
            }
        }
        for MemberState { pool, member, state } in &self.states {
            let states = [AdminState::Enabled, AdminState::Drain, AdminState::Disabled];
            let state = states.into_iter().find(|known| known.as_str() == state);
            let mut members = table.pools.iter().flat_map(|pool| &pool.members);
            let found = members.find(|it| *it.pool.name == **pool && *it.label == **member);
            if let Some(member) = found {
                member.set_state_override(state);
            }
        }
    }

    /// Whether this process is ready and waits for the permission to serve.
    pub(crate) fn is_awaited(this: &Option<Self>) -> bool {
        this.as_ref().is_some_and(|it| matches!(it.stage, Stage::Asking(_)))
    }

    /// Whether the predecessor still serves, so that this process does not.
    pub(crate) fn is_in_force(this: &Option<Self>) -> bool {
        this.as_ref().is_some_and(|it| matches!(it.stage, Stage::Starting | Stage::Asking(_)))
    }

    /// Reports to the predecessor that this process is ready. Returns whether to wait for the permission to serve.
    pub(crate) fn ask(this: &mut Option<Self>) -> bool {
        let Some(it) = this.as_mut().filter(|it| it.stage == Stage::Starting) else { return false };
        it.stage = Stage::Asking(Instant::now() + ANSWER_TIMEOUT);
        // If the predecessor has ended, `said` reports that next.
        let _ = it.channel.send(&FromSuccessor::Ready, &[]);
        true
    }

    /// Reports to the predecessor that this process serves.
    pub(crate) fn serves(&mut self) {
        // An orphaned process has no predecessor that waits for the report.
        if self.stage == Stage::Orphaned {
            return;
        }
        self.stage = Stage::Serving;
        let _ = self.channel.send(&FromSuccessor::Serves, &[]);
    }

    /// Reports to the predecessor why this process failed.
    pub(crate) fn tell_failure(channel: &FailureChannel, failed: UpgradeFailure) {
        // If the predecessor has ended, the report is lost.
        let _ = channel.0.send(&FromSuccessor::Failed(failed), &[]);
    }

    /// The predecessor's process; `None`: the kernel cannot report its end.
    pub(crate) fn process(&self) -> Option<Process> {
        self.channel.maker()
    }

    /// A channel to the predecessor for the reason of a failure.
    pub(crate) fn failure_channel(&self) -> io::Result<FailureChannel> {
        self.channel.try_clone().map(FailureChannel)
    }

    /// Whether this process serves.
    pub(crate) fn is_serving(&self) -> bool {
        self.stage == Stage::Serving
    }

    /// Records that the predecessor has ended: this process serves as soon as it is ready. Returns whether it is ready.
    pub(crate) fn orphan(&mut self) -> bool {
        let is_ready = matches!(self.stage, Stage::Asking(_));
        self.stage = Stage::Orphaned;
        is_ready
    }

    /// Waits for the next message of the predecessor; waits forever without a predecessor.
    pub(crate) async fn said(this: &mut Option<Self>) -> PredecessorEvent {
        let Some(it) = this else { return std::future::pending().await };
        match it.stage {
            Stage::Asking(until) => tokio::select! {
                biased;
                said = it.said.recv() => said.unwrap_or(PredecessorEvent::Gone),
                () = sleep_until(until) => PredecessorEvent::Silent,
            },
            Stage::Orphaned => std::future::pending().await,
            Stage::Starting | Stage::Serving => {
                it.said.recv().await.unwrap_or(PredecessorEvent::Gone)
            }
        }
    }
}

/// A channel to the predecessor for the reason of a failure.
#[derive(Debug)]
pub(crate) struct FailureChannel(Channel);

fn secret(text: &str) -> Option<[u8; SECRET_BYTES]> {
    data_encoding::HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok()
}

/// Starts a thread that receives the messages of the predecessor.
fn listen(channel: Channel) -> io::Result<UnboundedReceiver<PredecessorEvent>> {
    let (to_supervisor, said) = unbounded_channel();
    let hear = move || {
        let mut table = TableContents::default();
        loop {
            let said = match channel.receive::<ToSuccessor>() {
                Ok(Some((ToSuccessor::PacketsLeft, _))) => PredecessorEvent::PacketsLeft,
                Ok(Some((ToSuccessor::Go, _))) => PredecessorEvent::Go,
                Ok(Some((ToSuccessor::Remembered(part), _))) => match part.add_to(&mut table) {
                    Some(whole) => PredecessorEvent::Remembered(whole),
                    None => continue,
                },
                Ok(Some(_)) => continue,
                Ok(None) | Err(_) => break,
            };
            if to_supervisor.send(said).is_err() {
                return;
            }
        }
        // The receiver reports the end of the channel as `PredecessorEvent::Gone`.
    };
    std::thread::Builder::new().name("weir-upgrade".into()).spawn(hear)?;
    Ok(said)
}
