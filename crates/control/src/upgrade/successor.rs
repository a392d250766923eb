//! The running process's view of the new one. It starts the new process, passes the listening sockets, and lets it take over
//! when it is ready. If that fails, the new process is killed, and the running one continues to serve.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Pid;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, sleep_until};
use weir_config::snapshot::ListenPoint;
use weir_event_loop::error_text::io_error_text;
use weir_exchange::shared::live::LiveTable;
use weir_exchange::shared::table_contents::TableContents;

use crate::time::monotonic_ms;

use super::launch::Launch;
use super::process::Process;
use super::wire::{
    Begin, Channel, FromSuccessor, ListenerPlace, MemberState, PROTOCOL, Part, SOCKETS_MAX,
    Tickets, ToSuccessor, UpgradeFailure,
};

/// Maximum time from the permission to serve until the new process serves.
const GO_TIMEOUT: Duration = Duration::from_secs(30);

/// The state and sockets that are handed over to the new process.
pub(crate) struct UpgradeHandOver {
    /// The number of the upgrade.
    pub number: u64,
    /// The listeners of all virtual servers.
    pub listeners: Vec<(ListenPoint, Vec<OwnedFd>)>,
    /// The admin listeners.
    pub admins: Vec<(ListenPoint, OwnedFd)>,
    /// Listeners that a service manager has opened.
    pub of_manager: Vec<ListenPoint>,
    /// The name of the packet path, if there is one.
    pub packets: Option<String>,
}

/// A new process that does not serve yet.
#[derive(Debug)]
pub(crate) struct Successor {
    /// The number of the upgrade.
    pub number: u64,
    /// The process. It is killed on drop, unless it has taken over.
    child: ChildGuard,
    channel: Channel,
    said: UnboundedReceiver<SuccessorEvent>,
    timeout: Duration,
    deadline: Instant,
    /// Whether the packet path was released for the new process.
    pub has_packets: bool,
    is_told_to_go: bool,
}

/// An event from the new process.
#[derive(Debug)]
pub(crate) enum SuccessorEvent {
    /// The new process needs the packet path.
    LeavePackets,
    /// The new process is ready to serve.
    Ready,
    /// The new process serves.
    Serves,
    /// The new process has failed.
    Failed(UpgradeFailure),
    /// The new process has ended, or has closed the channel.
    Gone,
    /// The timeout has passed.
    TooLate,
}

impl Successor {
    /// Starts the new process.
    pub(crate) fn start(
        launch: &Launch,
        binary: Option<&Path>,
        timeout: Duration,
        estate: UpgradeHandOver,
        table: &LiveTable,
    ) -> Result<Self, String> {
        let fail = |error: io::Error| format!("cannot hand over: {}", io_error_text(&error));
        let (channel, theirs) = Channel::pair().map_err(fail)?;
        let (reading, number) = (channel.try_clone().map_err(fail)?, estate.number);
        let child = launch.start(binary, theirs)?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let process = pid.and_then(Process::of);
        let child = ChildGuard(Some(child));
        let (to_supervisor, said) = unbounded_channel();
        let messages = of_table(table);
        let talk = move || {
            let last = match hand_over(&reading, estate, messages) {
                Err(error) if !is_end(&error) => SuccessorEvent::failed(fail(error)),
                // A process that has ended may have sent the reason before its end.
                Err(_) | Ok(()) => loop {
                    let said = match reading.receive::<FromSuccessor>() {
                        Ok(Some((FromSuccessor::LeavePackets, _))) => SuccessorEvent::LeavePackets,
                        Ok(Some((FromSuccessor::Ready, _))) => SuccessorEvent::Ready,
                        Ok(Some((FromSuccessor::Serves, _))) => SuccessorEvent::Serves,
                        Ok(Some((FromSuccessor::Failed(failed), _))) => {
                            SuccessorEvent::Failed(failed)
                        }
                        Ok(None) => {
                            // The process is reported as gone even if it has not ended within this time.
                            let _ = process.map(|it| it.ends_within(END_PATIENCE));
                            break SuccessorEvent::Gone;
                        }
                        Err(error) => {
                            let reason = format!("it is not understood: {}", io_error_text(&error));
                            break SuccessorEvent::failed(reason);
                        }
                    };
                    if to_supervisor.send(said).is_err() {
                        return;
                    }
                },
            };
            // Without a receiver, the upgrade has ended already.
            let _ = to_supervisor.send(last);
        };
        std::thread::Builder::new().name("weir-upgrade".into()).spawn(talk).map_err(fail)?;
        Ok(Self {
            number,
            child,
            channel,
            said,
            timeout,
            deadline: Instant::now() + timeout,
            has_packets: false,
            is_told_to_go: false,
        })
    }

    /// Waits for the next message of the new process; waits forever without one. Dropping the future loses nothing.
    pub(crate) async fn said(successor: &mut Option<Self>) -> SuccessorEvent {
        let Some(successor) = successor else { return std::future::pending().await };
        tokio::select! {
            biased;
            said = successor.said.recv() => said.unwrap_or(SuccessorEvent::Gone),
            () = sleep_until(successor.deadline) => SuccessorEvent::TooLate,
        }
    }

    /// The process id of the new process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.0.as_ref().map_or(0, Child::id)
    }

    /// Tells the new process that the packet path was released.
    pub(crate) fn packets_left(&mut self) {
        self.has_packets = true;
        self.tell(&ToSuccessor::PacketsLeft);
    }

    /// Sends the persistence tables, and then the permission to serve.
    pub(crate) fn go(&mut self, table: &Arc<LiveTable>) {
        self.is_told_to_go = true;
        self.deadline = Instant::now() + GO_TIMEOUT;
        let table = Arc::clone(table);
        // Tables may be large, so a thread sends them. If no thread can be started, the new process starts with empty
        // tables.
        let is_sent = self.channel.try_clone().and_then(|channel| {
            let send = move || {
                // If the new process has ended, `said` reports that.
                let _ = send_remembered(&channel, &table);
                let _ = channel.send(&ToSuccessor::Go, &[]);
            };
            std::thread::Builder::new().name("weir-upgrade".into()).spawn(send)
        });
        if is_sent.is_err() {
            self.tell(&ToSuccessor::Go);
        }
    }

    fn tell(&self, message: &ToSuccessor) {
        // If the new process has ended, `said` reports that.
        let _ = self.channel.send(message, &[]);
    }

    /// Gives up control of the new process, which serves and must survive the end of this process.
    pub(crate) fn release(mut self) {
        self.child.0 = None;
    }

    /// Kills the new process if it has not ended. Returns the reason for its failure.
    pub(crate) fn end(mut self, said: SuccessorEvent) -> UpgradeFailure {
        let when =
            if self.is_told_to_go { "after it was told to serve" } else { "before it was ready" };
        let reason = match said {
            SuccessorEvent::Failed(failed) => return failed,
            SuccessorEvent::TooLate if self.is_told_to_go => {
                format!("the new process did not serve within {GO_TIMEOUT:?}")
            }
            SuccessorEvent::TooLate => {
                format!("the new process was not ready within {:?}", self.timeout)
            }
            _ => match self.child.end() {
                Some(status) => format!("the new process ended ({status}) {when}"),
                None => format!("the new process ended {when}"),
            },
        };
        UpgradeFailure { reason, diagnostics: String::new() }
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        self.channel.close();
    }
}

impl SuccessorEvent {
    fn failed(reason: String) -> Self {
        Self::Failed(UpgradeFailure { reason, diagnostics: String::new() })
    }
}

/// Whether an error means that the other process has ended or has closed the channel.
fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// A process that has closed the channel gets this time to end on its own, so that its exit status shows the reason.
const END_PATIENCE: Duration = Duration::from_millis(200);

/// A child process that is killed on drop.
#[derive(Debug)]
struct ChildGuard(Option<Child>);

impl ChildGuard {
    /// Kills the process if it has not ended. Returns its exit status.
    fn end(&mut self) -> Option<ExitStatus> {
        let mut child = self.0.take()?;
        // An error means that the process has ended. Its status is still available.
        let _ = child.kill();
        child.wait().ok()
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Display for UpgradeFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.reason)
    }
}

/// Secrets and states that exist only in memory.
fn of_table(table: &LiveTable) -> Vec<ToSuccessor> {
    let hex = |secret: &[u8; 32]| data_encoding::HEXLOWER.encode(secret);
    let servers = table.snapshot.virtual_servers.iter().zip(&table.tls);
    let tickets = servers.filter_map(|(server, tls)| {
        let own = tls.as_ref()?.ticket_secrets()?;
        let secrets = own.secrets.iter().map(hex).collect();
        let virtual_server = server.name.to_string();
        Some(ToSuccessor::Tickets(Tickets { virtual_server, since_s: own.since_s, secrets }))
    });
    let members = table.pools.iter().flat_map(|pool| &pool.members);
    let states = members.filter_map(|member| {
        let state = member.state_override()?.as_str().to_owned();
        let (pool, member) = (member.pool.name.to_string(), member.label.to_string());
        Some(ToSuccessor::MemberState(MemberState { pool, member, state }))
    });
    let keys = ToSuccessor::Keys(table.stickies.own_keys.to_file());
    tickets.chain(states).chain([keys]).collect()
}

/// Sends the persistence tables.
fn send_remembered(channel: &Channel, table: &LiveTable) -> io::Result<()> {
    for table in TableContents::all(&table.stickies, monotonic_ms()) {
        for part in Part::parts(&table) {
            channel.send(&ToSuccessor::Remembered(part), &[])?;
        }
    }
    Ok(())
}

/// Sends everything that the new process needs to start.
fn hand_over(
    channel: &Channel,
    estate: UpgradeHandOver,
    messages: Vec<ToSuccessor>,
) -> io::Result<()> {
    let UpgradeHandOver { number, listeners, admins, of_manager, packets } = estate;
    channel.send(&ToSuccessor::Begin(Begin { protocol: PROTOCOL, number, packets }), &[])?;
    for (point, sockets) in &listeners {
        for sockets in sockets.chunks(SOCKETS_MAX) {
            channel.send(&ToSuccessor::Listeners(ListenerPlace::from(point)), sockets)?;
        }
    }
    for (point, socket) in admins {
        channel.send(&ToSuccessor::Admin(ListenerPlace::from(&point)), &[socket])?;
    }
    for point in &of_manager {
        channel.send(&ToSuccessor::OfManager(ListenerPlace::from(point)), &[])?;
    }
    for message in messages {
        channel.send(&message, &[])?;
    }
    channel.send(&ToSuccessor::Start, &[])
}
