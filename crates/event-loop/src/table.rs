//! The table of sockets.

use crate::bounds::READ_BUFFER_BYTES;
use crate::kernel::Descriptor;
use crate::socket::{LingeringClose, Socket, State};
use crate::timers::{Entries, Entry};
use crate::token::{Owner, Token};

/// The table of sockets. It is separate from the loop so that the timer wheel can borrow it.
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
    pub fn get(&mut self, token: Token) -> Option<&mut Socket> {
        let slot = self.slots.get_mut(token.index as usize)?;
        if slot.generation != token.generation {
            return None;
        }
        debug_assert_ne!(slot.state, State::Free, "the generation of a free slot is nobody's yet");
        Some(slot)
    }
    /// Whether the handler receives arriving data of the socket.
    pub fn is_read(&mut self, token: Token) -> bool {
        self.get(token).is_some_and(|socket| socket.state.is_delivered())
    }
}
