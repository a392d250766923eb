//! The sockets of the event loop and its spare buffers, as connections see them.

use std::io::IoSlice;

use weir_connection::wire::{Buffers, Wire};
use weir_event_loop::{EventLoop, Token};

/// The spare buffers of an event loop.
pub struct Spares<'a>(pub &'a mut EventLoop);

impl Buffers for Spares<'_> {
    #[inline(always)]
    fn take(&mut self) -> Vec<u8> {
        self.0.spares.take()
    }

    #[inline(always)]
    fn give(&mut self, buffer: Vec<u8>) {
        self.0.spares.give(buffer);
    }
}

/// The socket of one connection.
pub struct Socket<'a> {
    io: &'a mut EventLoop,
    token: Token,
}

impl<'a> Socket<'a> {
    /// The socket with this token.
    #[inline(always)]
    pub fn of(io: &'a mut EventLoop, token: Token) -> Self {
        Self { io, token }
    }
}

impl Buffers for Socket<'_> {
    #[inline(always)]
    fn take(&mut self) -> Vec<u8> {
        self.io.spares.take()
    }

    #[inline(always)]
    fn give(&mut self, buffer: Vec<u8>) {
        self.io.spares.give(buffer);
    }
}

impl Wire for Socket<'_> {
    #[inline(always)]
    fn send(&mut self, parts: &[IoSlice<'_>]) {
        self.io.send(self.token, parts);
    }

    #[inline(always)]
    fn send_last(&mut self, parts: &[IoSlice<'_>]) {
        self.io.send_last(self.token, parts);
    }

    #[inline(always)]
    fn now_ms(&self) -> u64 {
        self.io.now_ms()
    }
}
