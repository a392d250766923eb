//! The table of sockets.

use rustix::io::Errno;

use crate::event_loop::READ_BUFFER_BYTES;
use crate::handler::{Owner, Token};
use crate::kernel::Descriptor;
use crate::leaving::Leaving;
use crate::output::Output;
use crate::secure::Secure;
use crate::timers::{Entries, Entry};

/// Where a socket is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No socket in this slot.
    Free,
    /// Accepts connections.
    Listening,
    /// Wakes the loop; read by the handler.
    Waking,
    /// Being opened.
    Connecting,
    /// Open.
    Open,
    /// Sends what is queued, then closes.
    Closing,
    /// Sends what is queued, then its end, then drops what arrives until the peer's end.
    Lingering,
    /// Sends what is queued, then closes with a reset when the peer has everything.
    Resetting,
    /// A write failed; that is looked at when the current event is done with.
    Broken(Errno),
    /// A write failed; what the peer had sent before is delivered, then the handler hears of it.
    Draining(Errno),
}

#[derive(Debug)]
pub struct Socket {
    pub fd: Option<Descriptor>,
    pub owner: Owner,
    pub generation: u32,
    pub state: State,
    /// There may be something to read.
    pub readable: bool,
    /// The kernel said that the peer's end or an error is near: short reads prove nothing.
    pub hangup: bool,
    /// The handler wants nothing delivered.
    pub paused: bool,
    /// Bytes that are read of it at once.
    pub read_bytes_max: u32,
    /// In `EventLoop::ready`.
    pub in_ready: bool,
    pub output: Option<Box<Output>>,
    /// It speaks TLS.
    pub secure: Option<Box<Secure>>,
    /// Bytes that the kernel took so far.
    pub sent_bytes: u64,
    /// Those of them that the peer had acknowledged when it was last looked at.
    pub taken_bytes: u64,
    /// When the peer was last seen to take bytes.
    pub progress_ms: u64,
    /// What there is of a finished socket.
    pub leaving: Leaving,
    pub timer: Entry,
}

impl Socket {
    /// Whether it is read in slices, see [`EventLoop::limit_reads`](crate::EventLoop::limit_reads).
    pub fn is_read_in_slices(&self) -> bool {
        (self.read_bytes_max as usize) < READ_BUFFER_BYTES
    }
}

/// The table of sockets; apart from the loop so that the wheel can borrow it.
#[derive(Debug, Default)]
pub struct Sockets {
    pub slots: Vec<Socket>,
    pub free: Vec<u32>,
}

impl Entries for Sockets {
    fn entry(&mut self, index: u32) -> &mut Entry {
        &mut self.slots[index as usize].timer
    }
}

impl Sockets {
    pub fn insert(&mut self, fd: Descriptor, owner: Owner, state: State) -> Token {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.slots.push(Socket {
                    fd: None,
                    owner,
                    generation: 0,
                    state: State::Free,
                    readable: false,
                    hangup: false,
                    paused: false,
                    read_bytes_max: READ_BUFFER_BYTES as u32,
                    in_ready: false,
                    output: None,
                    secure: None,
                    sent_bytes: 0,
                    taken_bytes: 0,
                    progress_ms: 0,
                    leaving: Leaving::default(),
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
        (slot.readable, slot.hangup, slot.paused) = (false, false, false);
        // A stale token may still stand in the ready list; it is not this socket's.
        slot.in_ready = false;
        slot.read_bytes_max = READ_BUFFER_BYTES as u32;
        (slot.sent_bytes, slot.taken_bytes, slot.progress_ms) = (0, 0, 0);
        Token { index, generation: slot.generation }
    }

    #[inline]
    pub fn get(&mut self, token: Token) -> Option<&mut Socket> {
        self.slots.get_mut(token.index as usize).filter(|slot| {
            slot.generation == token.generation && !matches!(slot.state, State::Free)
        })
    }
}

#[cfg(all(test, not(feature = "simulation"), target_pointer_width = "64"))]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_no_larger_than_today() {
        let (size, today) = (size_of::<Socket>(), 128);
        assert!(
            size <= today,
            "a socket has {size} bytes, and it had {today}: box what few sockets need"
        );
        assert!(size == today, "a socket has {size} bytes now: lower the number here from {today}");
    }
}
