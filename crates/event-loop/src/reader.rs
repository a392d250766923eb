//! Reading from streams, and delivering to the handler what has arrived.

use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::bounds::{READ_BUFFER_BYTES, READS_IN_A_ROW_MAX, SCRATCH_BYTES};
use crate::event_loop::EventLoop;
use crate::handler::Handler;
use crate::socket::{ReadResult, State};
use crate::token::{Owner, Token};

/// Reads from sockets, each within its share of the turn. Its buffer is not part of the loop, so the handler can use both.
#[derive(Debug)]
pub struct Reader {
    pub(crate) scratch: Box<[u8]>,
}

impl Default for Reader {
    fn default() -> Self {
        Self { scratch: vec![0; SCRATCH_BYTES].into_boxed_slice() }
    }
}

impl Reader {
    /// Reads and delivers the available data, within the socket's share of the turn.
    #[inline(never)]
    pub(crate) fn read(&mut self, io: &mut EventLoop, handler: &mut impl Handler, token: Token) {
        self.read_now(io, handler, token);
    }

    /// See [`Self::read`]. It is inlined into event handling, where nearly all data is read.
    #[inline(always)]
    pub(crate) fn read_now(
        &mut self,
        io: &mut EventLoop,
        handler: &mut impl Handler,
        token: Token,
    ) {
        for _ in 0..READS_IN_A_ROW_MAX {
            let Some(socket) = io.sockets.get(token) else {
                return;
            };
            if socket.paused || !(socket.readable || socket.has_records()) {
                return;
            }
            if !matches!(socket.state, State::Open) {
                if self.read_finished(io, handler, token) {
                    continue;
                }
                return;
            }
            if !socket.is_read_as_usual() {
                self.read_otherwise(io, handler, token);
                break;
            }
            let owner = socket.owner;
            if socket.secure.is_some() {
                self.read_secure(io, handler, token, owner);
                continue;
            }
            match socket.receive(&mut self.scratch[..READ_BUFFER_BYTES], RecvFlags::empty()) {
                ReadResult::Bytes(count) => handler.received(io, owner, &mut self.scratch[..count]),
                ReadResult::Nothing => {}
                ReadResult::End => handler.ended(io, owner),
                ReadResult::Failure(error) => handler.failed(io, owner, error),
            }
        }
        let socket = io.sockets.get(token);
        if socket.is_some_and(|socket| (socket.readable || socket.has_records()) && !socket.paused)
        {
            io.sockets.make_ready(token);
        }
    }

    /// Reads once from an open socket that is read in slices, or moves its bytes directly to another socket.
    #[inline(never)]
    fn read_otherwise(&mut self, io: &mut EventLoop, handler: &mut impl Handler, token: Token) {
        let Some(socket) = io.sockets.get(token) else {
            return;
        };
        let owner = socket.owner;
        if socket.straight.is_some() {
            return self.read_straight(io, handler, token, owner);
        }
        if socket.secure.is_some() {
            return self.read_secure(io, handler, token, owner);
        }
        let bytes_max = socket.bytes_at_once();
        match socket.receive(&mut self.scratch[..bytes_max], RecvFlags::empty()) {
            ReadResult::Bytes(count) => handler.received(io, owner, &mut self.scratch[..count]),
            ReadResult::Nothing => {}
            ReadResult::End => handler.ended(io, owner),
            ReadResult::Failure(error) => handler.failed(io, owner, error),
        }
    }

    /// Reads once from a socket that is finished or cannot send. Returns whether another read may follow.
    #[cold]
    fn read_finished(
        &mut self,
        io: &mut EventLoop,
        handler: &mut impl Handler,
        token: Token,
    ) -> bool {
        let now_ms = io.now_ms();
        let Some(socket) = io.sockets.get(token) else {
            return false;
        };
        let owner = socket.owner;
        match socket.state {
            state if state.is_leaving() => {
                let step = socket.drop_input(&mut self.scratch, now_ms);
                io.go_on_leaving(handler, token, step);
            }
            State::Draining(_) if socket.secure.is_some() => {
                self.read_secure(io, handler, token, owner);
            }
            State::Draining(error) => self.read_broken(io, handler, (token, owner), error),
            _ => return false,
        }
        true
    }

    /// Reads data that arrived before a write failed. The kernel reports a reset only once, and the failed write has
    /// consumed that report. So an end of data that is read afterwards is not a FIN of the peer. Exception: EPIPE means that
    /// the peer sent FIN before its reset, so the end is real.
    fn read_broken(
        &mut self,
        io: &mut EventLoop,
        handler: &mut impl Handler,
        (token, owner): (Token, Owner),
        error: Errno,
    ) {
        let Some(socket) = io.sockets.get(token) else {
            return;
        };
        let bytes_max = socket.bytes_at_once();
        match socket.receive(&mut self.scratch[..bytes_max], RecvFlags::empty()) {
            ReadResult::Bytes(count) => handler.received(io, owner, &mut self.scratch[..count]),
            ReadResult::Failure(error) => handler.failed(io, owner, error),
            ReadResult::End if error == Errno::PIPE => {
                handler.ended(io, owner);
                if io.sockets.get(token).is_some() {
                    handler.failed(io, owner, error);
                }
            }
            ReadResult::End | ReadResult::Nothing => handler.failed(io, owner, error),
        }
    }
}
