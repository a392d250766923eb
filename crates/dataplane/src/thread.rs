//! The thread of a worker: its own descriptor table, its control socket, its life after a panic.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use rustix::net::{
    self, AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::event_loop::EventLoop;
use crate::worker::{COMMAND_MESSAGE, Command, LISTENER_MESSAGE, Setup, Worker};

/// A worker as the control plane holds it.
#[derive(Debug)]
pub struct WorkerThread {
    /// The thread.
    pub thread: JoinHandle<()>,
    commands: Sender<Command>,
    control: OwnedFd,
}

impl WorkerThread {
    /// Starts a worker and waits until it has its own descriptors.
    pub fn start(setup: impl FnOnce(Receiver<Command>) -> Setup) -> io::Result<Self> {
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
                match prepare(number) {
                    Ok((io, control)) => {
                        // The starter waits for this message: it is there.
                        let _ = started.send(Ok(()));
                        serve(io, control, setup);
                    }
                    Err(error) => {
                        let _ = started.send(Err(error));
                    }
                }
            })?;
        outcome.recv().unwrap_or_else(|_| Err(io::Error::other("it ended at once")))?;
        // Our copy of the worker's end; the worker has its own by now.
        drop(theirs);
        Ok(Self { thread, commands, control })
    }

    /// Sends a listener; the command that names its address must follow.
    pub fn hand_over(&self, listener: &OwnedFd) {
        let descriptors = [listener.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        self.send(LISTENER_MESSAGE, &mut ancillary);
    }

    /// Sends what arrives when the worker has no descriptor left for a listener.
    #[cfg(test)]
    pub fn hand_over_nothing(&self) {
        self.send(LISTENER_MESSAGE, &mut SendAncillaryBuffer::default());
    }

    /// Sends a command.
    pub fn tell(&self, command: Command) {
        // A worker that has ended wants no commands.
        if self.commands.send(command).is_ok() {
            self.send(COMMAND_MESSAGE, &mut SendAncillaryBuffer::default());
        }
    }

    fn send(&self, kind: u8, ancillary: &mut SendAncillaryBuffer<'_, '_, '_>) {
        // Fails only when the worker has ended, which `is_finished` tells.
        let _ =
            net::sendmsg(&self.control, &[IoSlice::new(&[kind])], ancillary, SendFlags::NOSIGNAL);
    }
}

/// Gives the calling thread a descriptor table of its own, with nothing in it but the standard
/// streams and the control socket: accepting and closing then share no lock with other cores, and
/// the limit on open descriptors counts for each worker.
fn prepare(control: RawFd) -> io::Result<(EventLoop, OwnedFd)> {
    block_signals();
    // SAFETY: this thread has touched no descriptor yet and will use none of other threads: what it
    // needs from now on it opens itself or receives through the control socket.
    unsafe { unshare_unsafe(UnshareFlags::FILES) }?;
    for (first, last) in [(3, control as u32 - 1), (control as u32 + 1, u32::MAX)] {
        if first <= last {
            // SAFETY: the table is this thread's own since the call above, and no object of this
            // thread owns one of these descriptors.
            let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
            if result != 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    // SAFETY: the number names the control socket in this thread's table, where nothing else owns
    // it; the starter's descriptor of the same number is in another table.
    let control = unsafe { OwnedFd::from_raw_fd(control) };
    Ok((EventLoop::new()?, control))
}

/// Keeps signals away from the calling thread. Their handlers write to descriptors of the control
/// plane, whose numbers name other things in this thread's table.
fn block_signals() {
    // Raised by a fault of the thread itself; blocked, they would end the process without a word.
    const FAULTS: [libc::c_int; 6] =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT];
    // SAFETY: the set is initialised by `sigfillset` before it is read, and lives through the calls.
    unsafe {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(set.as_mut_ptr());
        for fault in FAULTS {
            libc::sigdelset(set.as_mut_ptr(), fault);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// Serves until told to stop. A panic costs the connections of this worker, not the process.
fn serve(mut io: EventLoop, control: OwnedFd, setup: Setup) {
    let Ok(control) = io.add_control(control) else {
        return;
    };
    let mut worker = Worker::new(setup, control);
    loop {
        let message = match catch_unwind(AssertUnwindSafe(|| io.run(&mut worker))) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => format!("event loop: {error}"),
            Err(panic) => panic_message(&*panic),
        };
        io.close_streams();
        worker.forget_connections(&message);
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
}
