//! The threads of the demo: the control plane as in `weir run`, and the members with their clients.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use weir_control::events::Events;
use weir_control::member_state::MemberState;
use weir_control::names::NameServers;
use weir_control::observed_state::ObservedState;
use weir_control::supervisor::{Error, Supervisor};

use super::members::Member;
use super::traffic::Clients;

/// Maximum wait for the first probes before clients begin.
const PROBES_TIMEOUT: Duration = Duration::from_secs(3);

/// The interval between checks for first probes.
const PROBES_POLL: Duration = Duration::from_millis(20);

/// Maximum time for the last requests when clients are stopped.
pub const CLIENTS_TIMEOUT: Duration = Duration::from_millis(1_500);

/// The running control plane with its data path.
pub struct ControlPlane {
    thread: JoinHandle<Result<(), Error>>,
    drain: watch::Sender<bool>,
    /// A signal has requested the end of the demo.
    signalled: Arc<AtomicBool>,
    /// The state of the process.
    pub observed: Arc<ObservedState>,
}

impl ControlPlane {
    /// Serves `file` in its own thread.
    pub fn start(file: PathBuf, events: Events) -> Result<Self, Error> {
        let (drain, told) = watch::channel(false);
        let signalled = Arc::<AtomicBool>::default();
        let set_signalled = Arc::clone(&signalled);
        let (started, start) = sync_channel(1);
        let thread = thread::Builder::new()
            .name("weir-demo-control".into())
            .spawn(move || {
                let runtime = runtime().map_err(Error::System)?;
                let result = runtime.block_on(serve(file, events, started, &set_signalled, told));
                runtime.shutdown_background();
                result
            })
            .map_err(Error::System)?;
        match start.recv() {
            Ok(observed) => Ok(Self { thread, drain, signalled, observed }),
            // The thread ended before it served.
            Err(_) => Err(join(thread).err().unwrap_or(Error::WorkersEnded)),
        }
    }

    /// Whether a signal has arrived, or serving has ended.
    pub fn is_ending(&self) -> bool {
        self.thread.is_finished() || self.signalled.load(Relaxed)
    }

    /// Drains, and ends the thread.
    pub fn end(self) -> Result<(), Error> {
        self.drain.send_replace(true);
        join(self.thread)
    }
}

fn join(thread: JoinHandle<Result<(), Error>>) -> Result<(), Error> {
    thread
        .join()
        .unwrap_or_else(|_| Err(Error::System(io::Error::other("the control plane panicked"))))
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// The signals that end the demo.
struct EndSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl EndSignals {
    async fn recv(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Waits until the main thread requests the end (returns false), or a second signal arrives (returns true). The
    /// first signal is only reported to the main thread.
    async fn or_told(&mut self, told: &mut watch::Receiver<bool>, signalled: &AtomicBool) -> bool {
        // A channel error means that the main thread has ended.
        tokio::select! {
            _ = told.wait_for(|&told| told) => return false,
            () = self.recv() => {}
        }
        signalled.store(true, Relaxed);
        tokio::select! {
            _ = told.wait_for(|&told| told) => false,
            () = self.recv() => true,
        }
    }
}

/// Serves until the main thread requests the end. The first signal is reported to the main thread, so that clients stop
/// first; a second signal ends everything at once.
async fn serve(
    file: PathBuf,
    events: Events,
    started: SyncSender<Arc<ObservedState>>,
    signalled: &AtomicBool,
    mut told: watch::Receiver<bool>,
) -> Result<(), Error> {
    let of = |kind| signal(kind).map_err(Error::System);
    let mut hangup = of(SignalKind::hangup())?;
    let mut ends = EndSignals {
        terminate: of(SignalKind::terminate())?,
        interrupt: of(SignalKind::interrupt())?,
    };
    let mut supervisor = Supervisor::start(&file, NameServers::System, events).await?;
    // The main thread waits for this message.
    let _ = started.send(Arc::clone(supervisor.observed()));
    drop(started);
    let mut at_once = false;
    let end = async { at_once = ends.or_told(&mut told, signalled).await };
    supervisor.serve_until(&mut hangup, end).await?;
    supervisor.drain();
    if !at_once {
        tokio::select! {
            () = supervisor.drained() => {}
            () = ends.recv() => at_once = true,
        }
    }
    if at_once {
        supervisor.stop().await;
    }
    supervisor.finish();
    Ok(())
}

/// The members and their clients, in their own thread.
pub struct Load {
    thread: JoinHandle<()>,
    stop_clients: watch::Sender<bool>,
    stop_members: watch::Sender<bool>,
    clients_ended: Receiver<()>,
}

impl Load {
    /// Starts the members. Clients begin when the gate is opened.
    pub fn start(members: Vec<Member>, events: Events) -> io::Result<(Self, Gate)> {
        let (stop_clients, clients_end) = watch::channel(false);
        let (stop_members, mut members_end) = watch::channel(false);
        let (gate, opened) = tokio::sync::oneshot::channel();
        let (to_main, clients_ended) = sync_channel(1);
        let runtime = runtime()?;
        let thread = thread::Builder::new().name("weir-demo-load".into()).spawn(move || {
            runtime.block_on(async {
                for member in members {
                    tokio::spawn(member.serve(events.clone()));
                }
                tokio::spawn(async move {
                    run_clients(opened, clients_end).await;
                    // The main thread may have stopped waiting.
                    let _ = to_main.try_send(());
                });
                // An error means that the main thread has ended.
                let _ = members_end.wait_for(|&end| end).await;
            });
        })?;
        let load = Self { thread, stop_clients, stop_members, clients_ended };
        Ok((load, Gate(gate)))
    }

    /// Stops the clients after their current requests.
    pub fn stop_clients(&self) {
        self.stop_clients.send_replace(true);
        // Clients that take too long are ended by the drain.
        let _ = self.clients_ended.recv_timeout(CLIENTS_TIMEOUT);
    }

    /// Stops the members.
    pub fn end(self) {
        self.stop_members.send_replace(true);
        // A panic has already been reported.
        let _ = self.thread.join();
    }
}

/// Starts the clients.
pub struct Gate(tokio::sync::oneshot::Sender<(Clients, Arc<ObservedState>)>);

impl Gate {
    /// Clients begin when all members have been probed.
    pub fn open(self, clients: Clients, observed: Arc<ObservedState>) {
        // The thread runs until it is told to stop.
        let _ = self.0.send((clients, observed));
    }
}

async fn run_clients(
    opened: tokio::sync::oneshot::Receiver<(Clients, Arc<ObservedState>)>,
    end: watch::Receiver<bool>,
) {
    // If the gate was dropped, there is no traffic.
    let Ok((clients, observed)) = opened.await else {
        return;
    };
    let probed = async {
        while is_pending(&observed) {
            tokio::time::sleep(PROBES_POLL).await;
        }
    };
    // After the timeout, clients begin even if members could not be probed.
    let _ = tokio::time::timeout(PROBES_TIMEOUT, probed).await;
    clients.run(end).await;
}

fn is_pending(observed: &ObservedState) -> bool {
    let table = observed.table();
    let mut members = table.pools.iter().flat_map(|pool| &pool.members);
    members.any(|member| MemberState::of(member) == MemberState::Pending)
}
