//! The table of sockets: what each of them has and is waiting for, and which of them need attention.

use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::bounds::READ_BUFFER_BYTES;
use crate::kernel::Descriptor;
use crate::socket::{LingeringClose, ReadMode, Socket, State};
use crate::timers::{Entries, Entry};
use crate::token::{Owner, Token};

/// The sockets of a loop: questions about each of them, and whether and how it is read. A stale token stands for a socket
/// that has nothing and wants nothing.
#[derive(Debug, Default)]
pub struct Sockets {
    pub(crate) slots: Vec<Socket>,
    pub(crate) free: Vec<u32>,
    /// Sockets that the next turn handles without an event from the kernel.
    pub(crate) ready: Vec<Token>,
}

impl Entries for Sockets {
    fn entry(&mut self, index: u32) -> &mut Entry {
        &mut self.slots[index as usize].timer
    }
}

impl Sockets {
    pub(crate) fn insert(&mut self, fd: Descriptor, owner: Owner, state: State) -> Token {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.slots.push(Socket {
                    fd: None,
                    owner,
                    generation: 0,
                    state: State::Free,
                    readable: false,
                    alert: false,
                    paused: false,
                    read_bytes_max: READ_BUFFER_BYTES as u32,
                    in_ready: false,
                    output: None,
                    secure: None,
                    straight: None,
                    sent_bytes: 0,
                    taken_bytes: 0,
                    progress_ms: 0,
                    leaving: LingeringClose::default(),
                    timer: Entry::default(),
                });
                (self.slots.len() - 1) as u32
            }
        };
        let slot = &mut self.slots[index as usize];
        debug_assert_eq!(slot.state, State::Free);
        slot.fd = Some(fd);
        slot.owner = owner;
        slot.state = state;
        (slot.readable, slot.alert, slot.paused) = (false, false, false);
        // The ready list may contain a stale token of this slot, which belongs to the previous socket.
        slot.in_ready = false;
        slot.read_bytes_max = READ_BUFFER_BYTES as u32;
        (slot.sent_bytes, slot.taken_bytes, slot.progress_ms) = (0, 0, 0);
        Token { index, generation: slot.generation }
    }

    #[inline]
    pub(crate) fn get(&mut self, token: Token) -> Option<&mut Socket> {
        let slot = self.slots.get_mut(token.index as usize)?;
        if slot.generation != token.generation {
            return None;
        }
        debug_assert_ne!(slot.state, State::Free, "the generation of a free slot is nobody's yet");
        Some(slot)
    }

    /// Whether the handler receives arriving data of the socket.
    pub(crate) fn is_read(&mut self, token: Token) -> bool {
        self.get(token).is_some_and(|socket| socket.state.is_delivered())
    }

    pub(crate) fn make_ready(&mut self, token: Token) {
        if let Some(socket) = self.get(token)
            && !socket.in_ready
        {
            socket.in_ready = true;
            self.ready.push(token);
        }
    }

    /// The descriptor of a socket, for socket options and for other system calls.
    pub fn descriptor(&mut self, token: Token) -> Option<&Descriptor> {
        self.get(token).and_then(|socket| socket.fd.as_ref())
    }

    /// The number of queued bytes that the socket has not accepted; 0 after a failed write.
    #[inline]
    pub fn queued(&mut self, token: Token) -> usize {
        let Some(socket) = self.get(token) else {
            return 0;
        };
        let output = match (&socket.output, socket.state) {
            (None, _) | (_, State::Broken(_) | State::Draining(_)) => 0,
            (Some(output), _) => output.len(),
        };
        match &socket.secure {
            None => output,
            Some(secure) => output + secure.session.waiting_bytes(),
        }
    }

    /// Whether nothing is queued, and nothing was received beyond the data of the current event, not even a part of a TLS
    /// record.
    #[inline]
    pub fn is_quiet(&mut self, token: Token) -> bool {
        match self.get(token) {
            Some(Socket { output: None, secure: None, .. }) => true,
            Some(Socket { output: None, secure: Some(secure), .. }) => {
                !secure.has_more && secure.session.waiting_bytes() == 0
            }
            _ => false,
        }
    }

    /// Removes and returns the queued bytes, including those of a failed write, so that they can be sent on another
    /// connection. On a TLS socket: the data that waits for the handshake.
    pub fn take_queued(&mut self, token: Token) -> Vec<u8> {
        let Some(socket) = self.get(token) else {
            return Vec::new();
        };
        match &mut socket.secure {
            Some(secure) => secure.session.take_waiting(),
            None => socket.output.take().map_or_else(Vec::new, |output| output.into_pending()),
        }
    }

    /// The number of bytes that the kernel has accepted for this socket.
    pub fn sent_bytes(&mut self, token: Token) -> u64 {
        self.get(token).map_or(0, |socket| socket.sent_bytes)
    }

    /// Ends the rest of a socket: it has no deadline any more, and the peer has received all data, because it has
    /// responded. Returns [`Self::sent_bytes`].
    #[inline]
    pub fn end_rest(&mut self, token: Token) -> u64 {
        let Some(socket) = self.get(token) else {
            return 0;
        };
        socket.taken_bytes = socket.sent_bytes;
        socket.timer.clear();
        socket.sent_bytes
    }

    /// Stops delivering the peer's data. When the kernel's buffer is full, TCP flow control stops the peer.
    #[inline]
    pub fn pause(&mut self, token: Token) {
        if let Some(socket) = self.get(token) {
            socket.paused = true;
        }
    }

    /// Resumes delivery. Data that arrived during the pause is delivered in the next turn.
    #[inline]
    pub fn resume(&mut self, token: Token) {
        let Some(socket) = self.get(token) else {
            return;
        };
        if socket.paused {
            socket.paused = false;
            if socket.readable || socket.has_records() {
                self.make_ready(token);
            }
        }
    }

    /// Sets how a socket is read. [`ReadMode::Straight`] becomes [`ReadMode::Usual`] if the sink or the socket uses TLS.
    pub fn read_as(&mut self, token: Token, reading: ReadMode) {
        let reading = match reading {
            ReadMode::Straight(sink) if self.is_secure(sink) => ReadMode::Usual,
            reading => reading,
        };
        if let Some(socket) = self.get(token) {
            socket.read_as(reading);
        }
    }

    /// Whether the kernel has unread data for a plain socket. Always false for a TLS socket, because unread bytes may
    /// contain no application data.
    pub fn has_unread(&mut self, token: Token) -> bool {
        match self.get(token) {
            // A system call, made only if the last read filled its buffer.
            Some(Socket { readable: true, secure: None, fd: Some(fd), .. }) => fd.has_unread(),
            _ => false,
        }
    }

    /// Whether anything undelivered has arrived: data, FIN, or a part of a TLS record. Arrivals since the start of this turn
    /// may be missed.
    pub fn has_news(&mut self, token: Token) -> bool {
        match self.get(token) {
            Some(Socket { alert: true, .. }) => true,
            Some(Socket { secure: Some(secure), .. }) if !secure.input.is_empty() => true,
            Some(Socket { readable: true, fd: Some(fd), .. }) => fd.has_unread(),
            _ => false,
        }
    }

    /// Whether anything undelivered has arrived, including FIN. It is delivered in the next turn. This is a system call,
    /// intended for a socket that is about to be closed as idle.
    pub fn has_arrived(&mut self, token: Token) -> bool {
        let Some(socket) = self.get(token) else {
            return false;
        };
        let peeked = match &socket.fd {
            Some(fd) => fd.receive(&mut [0; 1], RecvFlags::PEEK),
            None => return false,
        };
        let has_arrived = !matches!(peeked, Err(Errno::AGAIN));
        if has_arrived {
            socket.readable = true;
            self.make_ready(token);
        }
        has_arrived
    }

    /// Makes the next close of a socket send a reset.
    pub fn reset_on_close(&mut self, token: Token) {
        if let Some(socket) = self.get(token) {
            socket.secure = None;
            if let Some(fd) = &socket.fd {
                // If the option cannot be set, the close is an ordinary one. This error is not reported.
                let _ = fd.reset_on_close();
            }
        }
    }
}
