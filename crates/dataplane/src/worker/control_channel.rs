//! The way of commands to a worker: a channel, and a socket that announces them and carries listeners.

use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::mpsc::Receiver;

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use weir_event_loop::{Descriptor, EventLoop, Token};

use crate::worker::command::{Command, LISTENER_MESSAGE};

/// The commands of the control plane, and the listeners that belong to them.
pub struct ControlChannel {
    commands: Receiver<Command>,
    socket: Token,
    /// Listeners that have arrived, and whose command has not; `None`: lost, because no descriptor was free.
    listeners: VecDeque<Option<Descriptor>>,
}

/// What has arrived at a worker.
pub enum ControlEvent {
    /// A command. Its listeners have arrived.
    Command(Command),
    /// The control plane has ended.
    End,
    /// The control socket cannot be read.
    Failure(Errno),
}

enum ControlMessage {
    /// A listener; `None`: the process had no free descriptor for it.
    Listener(Option<OwnedFd>),
    /// The channel has a command.
    Command,
    End,
}

impl ControlChannel {
    /// The channel with these commands, which this socket announces.
    pub fn new(commands: Receiver<Command>, socket: Token) -> Self {
        Self { commands, socket, listeners: VecDeque::new() }
    }

    /// The next event; `None`: nothing else has arrived.
    pub fn next(&mut self, io: &mut EventLoop) -> Option<ControlEvent> {
        loop {
            let socket = io.sockets.descriptor(self.socket).and_then(Descriptor::socket)?;
            match receive(socket) {
                Ok(ControlMessage::Listener(descriptor)) => {
                    self.listeners.push_back(descriptor.map(Descriptor::from));
                }
                Ok(ControlMessage::Command) => {
                    if let Ok(command) = self.commands.try_recv() {
                        return Some(ControlEvent::Command(command));
                    }
                }
                Ok(ControlMessage::End) => return Some(ControlEvent::End),
                Err(Errno::AGAIN) => return None,
                Err(Errno::INTR) => {}
                Err(error) => return Some(ControlEvent::Failure(error)),
            }
        }
    }

    /// The next listener of the command that arrived last; `None`: it was lost.
    pub fn next_listener(&mut self) -> Option<Descriptor> {
        self.listeners.pop_front().flatten()
    }

    /// Adds listeners for the next command.
    #[cfg(feature = "simulation")]
    pub fn add_listeners(&mut self, listeners: Vec<Descriptor>) {
        self.listeners.extend(listeners.into_iter().map(Some));
    }
}

/// Receives one message of the control socket.
fn receive(socket: &OwnedFd) -> Result<ControlMessage, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut kind = [0; 1];
    let message = recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut kind)],
        &mut ancillary,
        RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC,
    )?;
    let descriptor = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok(match kind[0] {
        _ if message.bytes == 0 => ControlMessage::End,
        LISTENER_MESSAGE => ControlMessage::Listener(descriptor),
        _ => ControlMessage::Command,
    })
}
