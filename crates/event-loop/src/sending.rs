//! Sending on streams. What a socket does not accept at once waits in its queue ([`Output`](crate::output::Output)).

use std::io::IoSlice;

use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::event_loop::EventLoop;
use crate::handler::Handler;
use crate::lingering_close::{LINGER_SILENCE_MS, LeavingStep};
use crate::socket::State;
use crate::token::Token;

impl EventLoop {
    /// Sends `parts` in order. Data that the socket does not accept at once is queued.
    /// [`Handler::failed`] reports a failure later.
    pub fn send(&mut self, token: Token, parts: &[IoSlice<'_>]) {
        if self.sockets.is_secure(token) {
            self.sockets.seal(token, parts, false, &mut self.sealed);
            return self.send_sealed(token, SendFlags::empty());
        }
        self.send_bytes(token, parts, SendFlags::empty());
    }

    /// Sends the last data of a connection. The caller must close or finish the socket within the same callback: data and
    /// FIN then share a segment, which wakes the peer only once. Without a close, the kernel would delay the data
    /// (MSG_MORE). A TLS socket sends close_notify with the data.
    pub fn send_last(&mut self, token: Token, parts: &[IoSlice<'_>]) {
        if self.sockets.is_secure(token) {
            self.sockets.seal(token, parts, true, &mut self.sealed);
            return self.send_sealed(token, SendFlags::MORE);
        }
        self.send_bytes(token, parts, SendFlags::MORE);
    }

    /// Sends the encrypted data and empties its buffer.
    pub(crate) fn send_sealed(&mut self, token: Token, flags: SendFlags) {
        if self.sealed.is_empty() {
            return;
        }
        // The buffer is moved out of the loop, so that sending can use both.
        let mut sealed = std::mem::take(&mut self.sealed);
        self.send_bytes(token, &[IoSlice::new(sealed.as_slice())], flags);
        sealed.clear();
        self.sealed = sealed;
    }

    /// Sends bytes without encryption.
    pub(crate) fn send_bytes(&mut self, token: Token, parts: &[IoSlice<'_>], flags: SendFlags) {
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        if socket.state == State::Connecting || socket.output.is_some() {
            // A draining socket will be reported as failed, so new data is dropped.
            if !socket.state.is_leaving() && !matches!(socket.state, State::Draining(_)) {
                let output = socket.output.get_or_insert_with(|| self.spares.take_output());
                output.append(parts, 0);
            }
            return;
        }
        if socket.state != State::Open {
            return;
        }
        let total: usize = parts.iter().map(|part| part.len()).sum();
        match socket.write(parts, flags) {
            Ok(count) if count == total => socket.sent_bytes += count as u64,
            Ok(count) => {
                socket.sent_bytes += count as u64;
                socket.progress_ms = self.clock.now_ms();
                let mut output = self.spares.take_output();
                output.append(parts, count);
                socket.output = Some(output);
            }
            Err(error) => {
                // The bytes stay available to `take_queued`. This socket will not send them.
                let mut output = self.spares.take_output();
                output.append(parts, 0);
                socket.output = Some(output);
                socket.state = State::Broken(error);
                self.sockets.make_ready(token);
            }
        }
    }

    /// Sends FIN, on a TLS socket after close_notify. The caller ensures that nothing is queued.
    pub fn shut_write(&mut self, token: Token) {
        self.sockets.seal_end(token, &mut self.sealed);
        self.send_sealed(token, SendFlags::MORE);
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        if let (State::Open, Some(fd)) = (socket.state, &socket.fd)
            && let Err(error) = fd.shut_write()
            && error != Errno::NOTCONN
        {
            socket.state = State::Broken(error);
            self.sockets.make_ready(token);
        }
    }

    /// The deadline of a peer that has not received all data: `timeout_ms` after its last known progress. 0: nothing is
    /// queued, and since the last query the peer has acknowledged either nothing or all of the data.
    ///
    /// Acceptance by the kernel is no measure of progress: with a slow peer, a full send buffer accepts nothing for minutes,
    /// until a large part of it is free. So bytes count that the peer has acknowledged. This query is a system call, made
    /// only when a deadline has passed. If nothing is queued here, only bytes acknowledged since the last query count.
    pub fn patience_until_ms(&mut self, token: Token, timeout_ms: u64) -> u64 {
        let now_ms = self.clock.now_ms();
        self.sockets.get(token).map_or(0, |socket| socket.patience_until_ms(timeout_ms, now_ms))
    }

    /// Sends queued data, as much as the socket accepts, and tells the handler of the end of the queue.
    pub(crate) fn flush(&mut self, handler: &mut impl Handler, token: Token) {
        let now_ms = self.now_ms();
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        let (owner, state) = (socket.owner, socket.state);
        if matches!(state, State::Broken(_) | State::Draining(_)) {
            return;
        }
        if let Some(mut output) = socket.output.take() {
            match socket.send_queued(&mut output, &mut self.pipes) {
                Ok(false) => {}
                Ok(true) => socket.progress_ms = now_ms,
                Err(error) => {
                    socket.output = Some(output);
                    if state.is_leaving() {
                        return self.go_on_leaving(handler, token, LeavingStep::Close);
                    }
                    socket.state = State::Broken(error);
                    return self.sockets.make_ready(token);
                }
            }
            if output.len() > 0 {
                socket.output = Some(output);
                return;
            }
            self.spares.give_output(*output);
        } else if !state.is_leaving() {
            return;
        }
        if state.is_leaving() {
            socket.all_sent(now_ms);
            self.set_deadline(token, now_ms + LINGER_SILENCE_MS);
            let socket = self.sockets.get(token);
            let step = socket.map_or(LeavingStep::Stay, |socket| socket.leaving_step(now_ms));
            self.go_on_leaving(handler, token, step);
        } else if self.sockets.queued(token) == 0 {
            // Data that waits for a handshake has not been sent yet.
            handler.drained(self, owner);
        }
    }
}
