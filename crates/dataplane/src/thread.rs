//! The thread of a worker: its own descriptor table, its control socket, its recovery after a panic.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use rustix::net::{
    self, AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType,
};
use weir_event_loop::{EventLoop, Owner, Turns, confine, descriptors};

use crate::panics;
use crate::worker::{COMMAND_MESSAGE, Command, LISTENER_MESSAGE, Setup, Worker};

/// The control plane's handle for a worker.
#[derive(Debug)]
pub struct WorkerThread {
    /// The thread.
    pub thread: JoinHandle<()>,
    /// Whether the worker has ended and the duplicates of its listeners are closed.
    pub is_let_go: bool,
    link: Arc<Link>,
    /// Set by the worker when it executes the latest [`Command::Answer`].
    answer: Arc<AtomicBool>,
}

/// The way of commands to a worker.
#[derive(Debug)]
pub struct Link {
    commands: Sender<Command>,
    control: OwnedFd,
}

impl Link {
    /// A link whose commands arrive in this channel, for tests. The descriptor is the other end of its socket.
    #[cfg(test)]
    pub fn to_channel() -> io::Result<(Arc<Self>, Receiver<Command>, OwnedFd)> {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (control, theirs) = net::socketpair(AddressFamily::UNIX, kind, flags, None)?;
        let (commands, receiver) = mpsc::channel();
        Ok((Arc::new(Self { commands, control }), receiver, theirs))
    }

    /// Sends a command. Returns whether the worker runs.
    pub fn tell(&self, command: Command) -> bool {
        let is_there = self.commands.send(command).is_ok();
        if is_there {
            self.send(COMMAND_MESSAGE, &mut SendAncillaryBuffer::default());
        }
        is_there
    }

    fn send(&self, kind: u8, ancillary: &mut SendAncillaryBuffer<'_, '_, '_>) {
        // Sending fails only if the worker has ended, which `is_finished` reports.
        let _ =
            net::sendmsg(&self.control, &[IoSlice::new(&[kind])], ancillary, SendFlags::NOSIGNAL);
    }
}

impl WorkerThread {
    /// Starts a worker, and waits until it has its own descriptor table. A confined worker cannot open files.
    pub fn start(
        is_confined: bool,
        setup: impl FnOnce(Receiver<Command>) -> Setup,
    ) -> io::Result<Self> {
        let (control, theirs) = net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let (commands, receiver) = mpsc::channel();
        let setup = setup(receiver);
        let (started, outcome) = mpsc::channel();
        let number = theirs.as_raw_fd();
        let thread =
            std::thread::Builder::new().name(format!("weir-{}", setup.id)).spawn(move || {
                match prepare(number, is_confined) {
                    Ok((io, control)) => {
                        // The starting thread waits for this message, so the receiver exists.
                        let _ = started.send(Ok(()));
                        serve(io, control, setup);
                    }
                    Err(error) => {
                        let _ = started.send(Err(error));
                    }
                }
            })?;
        outcome.recv().unwrap_or_else(|_| Err(io::Error::other("it ended at once")))?;
        // The worker has its own copy of this end of the socket.
        drop(theirs);
        let answer = Arc::new(AtomicBool::new(true));
        let link = Arc::new(Link { commands, control });
        Ok(Self { thread, is_let_go: false, link, answer })
    }

    /// Sends a listener; the command that names its address must follow.
    pub fn hand_over(&self, listener: &OwnedFd) {
        let descriptors = [listener.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        self.link.send(LISTENER_MESSAGE, &mut ancillary);
    }

    /// Sends the message as it arrives at a worker without a free descriptor for the listener.
    #[cfg(test)]
    pub fn hand_over_nothing(&self) {
        self.link.send(LISTENER_MESSAGE, &mut SendAncillaryBuffer::default());
    }

    /// Sends a command.
    pub fn tell(&self, command: Command) {
        // Sending fails only if the worker has ended.
        self.link.tell(command);
    }

    /// The way of commands to the worker, for other threads.
    pub fn link(&self) -> Arc<Link> {
        Arc::clone(&self.link)
    }

    /// Whether the worker has answered the previous request, or has ended. Sends the next request if the previous one was
    /// answered. The request wakes a worker that waits for events; a stuck worker does not answer.
    pub fn is_turning(&mut self) -> bool {
        if self.thread.is_finished() {
            return true;
        }
        let has_answered = self.answer.load(Relaxed);
        if has_answered {
            self.answer = Arc::new(AtomicBool::new(false));
            self.tell(Command::Answer(Arc::clone(&self.answer)));
        }
        has_answered
    }
}

/// Creates the worker's own descriptor table and its loop, and takes the control socket from that table.
fn prepare(control: RawFd, is_confined: bool) -> io::Result<(EventLoop, OwnedFd)> {
    descriptors::isolate(Some(control))?;
    if is_confined {
        confine::without_files()?;
    }
    // SAFETY: the number refers to the control socket in this thread's descriptor table, and nothing else owns this
    // descriptor there. The starting thread's descriptor of the same number is in another table.
    let control = unsafe { OwnedFd::from_raw_fd(control) };
    Ok((EventLoop::new()?, control))
}

/// Runs until the worker is stopped. After a panic, the connections of this worker are closed and the worker continues.
fn serve(mut io: EventLoop, control: OwnedFd, setup: Setup) {
    panics::note_worker();
    let Ok(control) = io.add(control.into(), Owner::Control) else {
        return;
    };
    let mut worker = Worker::new(setup, control);
    let mut turns = Turns::default();
    loop {
        let message = match catch_unwind(AssertUnwindSafe(|| turns.run(&mut io, &mut worker))) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => format!("event loop: {error}"),
            Err(panic) => panics::message(&*panic),
        };
        let put_in_order = catch_unwind(AssertUnwindSafe(|| {
            io.close_streams();
            worker.forget_connections(&message);
        }));
        if put_in_order.is_err() {
            // The state of the worker is unusable. The control plane notices and reports that the worker has ended.
            return;
        }
    }
}
