//! Listeners: accepting connections, within bounds.

use rustix::io::Errno;

use crate::bounds::{ACCEPT_REST_MS, ACCEPTS_BEFORE_CLOSE_MAX, ACCEPTS_IN_A_ROW_MAX};
use crate::event_loop::EventLoop;
use crate::handler::Handler;
use crate::token::{Owner, Token};
use crate::turn::Turns;

impl EventLoop {
    /// Pauses accepting for a short time, because no descriptor or memory is available: a level-triggered listener would
    /// cause a busy loop. The listener leaves epoll, because an EXCLUSIVE entry cannot be modified.
    pub(crate) fn rest_listener(&mut self, token: Token) {
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        socket.paused = true;
        if let Some(fd) = &socket.fd {
            // The call fails only if the listener is not in epoll.
            let _ = self.kernel.unwatch(fd);
        }
        self.set_deadline(token, self.now_ms() + ACCEPT_REST_MS);
    }

    /// Accepts again after a pause.
    pub(crate) fn resume_listener(&mut self, token: Token) {
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        socket.paused = false;
        if let Some(fd) = &socket.fd
            && self.kernel.watch(fd, token.data(), socket.state.events()).is_err()
        {
            self.set_deadline(token, self.now_ms() + ACCEPT_REST_MS);
        }
    }
}

impl Turns {
    /// Accepts the connections that wait at a listener, within its share of the turn.
    #[inline(never)]
    pub(crate) fn accept(
        &mut self,
        io: &mut EventLoop,
        handler: &mut impl Handler,
        token: Token,
        owner: Owner,
    ) {
        let Owner::Listener(listener) = owner else {
            return;
        };
        // An accept that finds no connection costs as much as a successful one. So several accepts are tried only if the
        // previous turn accepted a connection, too: connections then arrive faster than turns.
        let turn = self.number;
        let is_busy = io.sockets.get(token).is_some_and(|socket| socket.sent_bytes == turn);
        for _ in 0..if is_busy { ACCEPTS_IN_A_ROW_MAX } else { 1 } {
            let Some(socket) = io.sockets.get(token).filter(|socket| !socket.paused) else {
                return;
            };
            let Some(fd) = &socket.fd else { return };
            let failure = if io.room.fits_client() {
                match fd.accept() {
                    Ok((stream, peer)) => {
                        socket.sent_bytes = turn + 1;
                        handler.accepted(io, listener, stream, peer);
                        continue;
                    }
                    Err(Errno::AGAIN) => return,
                    Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO) => continue,
                    Err(error) => error,
                }
            } else if handler.make_room(io) {
                continue;
            } else {
                Errno::MFILE
            };
            io.rest_listener(token);
            return handler.accept_failed(io, listener, failure);
        }
    }
}

/// Accepts the connections that are queued at a listener before it closes, because the kernel would reset them.
pub fn accept_before_close(io: &mut EventLoop, handler: &mut impl Handler, token: Token) {
    let Some(Owner::Listener(listener)) = io.sockets.get(token).map(|socket| socket.owner) else {
        return;
    };
    for _ in 0..ACCEPTS_BEFORE_CLOSE_MAX {
        let has_room = io.room.fits_client();
        let Some(fd) = io.sockets.descriptor(token).filter(|_| has_room) else { return };
        match fd.accept() {
            Ok((stream, peer)) => handler.accepted(io, listener, stream, peer),
            Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO) => {}
            Err(_) => return,
        }
    }
}
