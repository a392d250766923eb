//! TLS sockets: a [`Session`] converts between network bytes and the handler's plaintext.
//!
//! The handler only sends and receives plaintext. Its data is encrypted in one pass into the loop's buffer, and sent with
//! one system call. Received data is decrypted in the receive buffer. An idle connection needs memory only for its keys.
//!
//! | event or call | plain socket | TLS socket |
//! |---|---|---|
//! | `received` | once per read | once per record |
//! | `ended` | at FIN | at close_notify; at FIN without it: `failed` for a member, `ended` for a client |
//! | `shut_write`, `linger`, `close` | send FIN | send close_notify, then FIN |
//! | `reset` | sends RST | sends RST without close_notify |

use std::io::IoSlice;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use weir_tls::client_hello::COLLECTED_BYTES_MAX;
use weir_tls::{RecordBuffer, Session, Step};

use crate::bounds::{READ_BUFFER_BYTES, SCRATCH_BYTES};
use crate::event_loop::EventLoop;
use crate::handler::Handler;
use crate::output::SpareBuffers;
use crate::reader::Reader;
use crate::socket::{ReadResult, Secure, Socket, State};
use crate::table::Sockets;
use crate::token::{Owner, Token};

/// Maximum number of queued bytes for a peer that causes protocol replies and does not receive them.
const REPLIES_QUEUED_BYTES_MAX: usize = 1024 * 1024;

impl Sockets {
    /// Starts TLS on a socket. `received` is its data so far. Data that is sent before the handshake is complete waits until
    /// then. [`Handler::secured`] reports the end of the handshake.
    pub fn secure(&mut self, token: Token, session: Session, received: &[u8]) {
        const { assert!(COLLECTED_BYTES_MAX + READ_BUFFER_BYTES <= SCRATCH_BYTES) };
        let Some(socket) = self.get(token) else {
            return;
        };
        if received.len() > SCRATCH_BYTES {
            socket.state = State::Broken(Errno::OVERFLOW);
            return self.make_ready(token);
        }
        socket.secure = Some(Box::new(Secure {
            session,
            input: received.to_vec(),
            has_records: true,
            has_more: false,
            has_ended: false,
            is_closed: false,
        }));
        if socket.state == State::Open {
            self.make_ready(token);
        }
    }

    /// Whether the socket uses TLS.
    pub fn is_secure(&mut self, token: Token) -> bool {
        self.get(token).is_some_and(|socket| socket.secure.is_some())
    }

    /// Encrypts `parts` for the peer of a TLS socket. `is_last`: the connection is closed after that, so close_notify
    /// follows.
    pub(crate) fn seal(
        &mut self,
        token: Token,
        parts: &[IoSlice<'_>],
        is_last: bool,
        sealed: &mut RecordBuffer,
    ) {
        if let Some(socket) = self.get(token)
            && let Some(secure) = &mut socket.secure
            && !secure.is_closed
        {
            match secure.session.seal(parts, sealed) {
                Ok(()) if is_last => secure.end(sealed),
                Ok(()) => {}
                // The key has reached its limit. The connection fails, so that the peer detects the missing data.
                Err(_) => {
                    socket.state = State::Broken(Errno::IO);
                    self.make_ready(token);
                }
            }
        }
    }

    /// Writes close_notify for the peer of a TLS socket. The close of the connection must follow.
    pub(crate) fn seal_end(&mut self, token: Token, sealed: &mut RecordBuffer) {
        if let Some(secure) = self.get(token).and_then(|socket| socket.secure.as_mut()) {
            secure.end(sealed);
        }
    }
}

impl Secure {
    /// Writes close_notify, which is the last record. During the handshake there is none.
    fn end(&mut self, sealed: &mut RecordBuffer) {
        if !self.is_closed && !self.session.is_handshaking() {
            self.is_closed = true;
            self.session.close(sealed);
        }
    }
}

impl Socket {
    /// Copies stored data of a TLS socket to `scratch`, and reads more after it. Returns the total length, and the result of
    /// the read.
    fn fill(
        &mut self,
        scratch: &mut [u8],
        spares: &mut SpareBuffers,
    ) -> Option<(usize, ReadResult)> {
        let bytes_max = self.bytes_at_once();
        let secure = self.secure.as_mut()?;
        let has_records = std::mem::take(&mut secure.has_records);
        let kept = std::mem::take(&mut secure.input);
        let kept_bytes = kept.len();
        scratch[..kept_bytes].copy_from_slice(&kept);
        spares.give(kept);
        if has_records {
            // Stored data is delivered before anything is read. Its delivery may pause the socket again.
            return Some((kept_bytes, ReadResult::Bytes(0)));
        }
        let room = &mut scratch[kept_bytes..SCRATCH_BYTES.min(kept_bytes + bytes_max)];
        if room.is_empty() {
            return Some((kept_bytes, ReadResult::Failure(Errno::OVERFLOW)));
        }
        let read = self.receive(room, RecvFlags::empty());
        let more = if let ReadResult::Bytes(count) = read { count } else { 0 };
        Some((kept_bytes + more, read))
    }

    /// What the handler is told after a read of a TLS socket: the end of its data, an error, or nothing. After a failed
    /// write, no data can follow a read without data, so the failure is reported. If the peer's FIN comes without
    /// close_notify, an attacker may have truncated a member's response.
    fn end_of_records(&self, read: &ReadResult) -> Option<Result<(), Errno>> {
        match (read, self.state) {
            (ReadResult::Bytes(_), _) => None,
            (ReadResult::Nothing | ReadResult::End, State::Draining(error)) => Some(Err(error)),
            (ReadResult::Nothing, _) => None,
            (_, state) if !state.is_delivered() => None,
            (ReadResult::Failure(error), _) => Some(Err(*error)),
            (ReadResult::End, _) => match &self.secure {
                Some(secure) if secure.has_ended => None,
                Some(_) if matches!(self.owner, Owner::Member(_)) => Some(Err(Errno::CONNRESET)),
                _ => Some(Ok(())),
            },
        }
    }
}

impl Reader {
    /// Reads once from a TLS socket, and delivers the complete records.
    pub(crate) fn read_secure(
        &mut self,
        io: &mut EventLoop,
        handler: &mut impl Handler,
        token: Token,
        owner: Owner,
    ) {
        let socket = io.sockets.get(token);
        let Some((filled, read)) =
            socket.and_then(|socket| socket.fill(&mut self.scratch, &mut io.spares))
        else {
            return;
        };
        self.deliver_records(io, handler, (token, owner), filled);
        if let ReadResult::Bytes(_) = read {
            return;
        }
        match io.sockets.get(token).and_then(|socket| socket.end_of_records(&read)) {
            Some(Ok(())) => handler.ended(io, owner),
            Some(Err(error)) => handler.failed(io, owner, error),
            None => {}
        }
    }

    /// Delivers the records in the first `filled` bytes of the buffer, and stores an incomplete rest.
    fn deliver_records(
        &mut self,
        io: &mut EventLoop,
        handler: &mut impl Handler,
        (token, owner): (Token, Owner),
        filled: usize,
    ) {
        let input = &mut self.scratch[..filled];
        let mut consumed = 0;
        let mut is_stopped = false;
        while let Some(socket) = io.sockets.get(token) {
            // After a failed write, the rest is processed after the current event.
            let is_broken = matches!(socket.state, State::Broken(_));
            is_stopped = socket.paused || is_broken;
            let Some(secure) = &mut socket.secure else { return };
            if is_stopped {
                break;
            }
            if !socket.state.is_delivered() {
                return;
            }
            let waited = secure.session.waiting_bytes() > 0;
            let step = secure.session.step(input, &mut consumed, &mut io.sealed);
            secure.has_ended |= step == Step::Ended;
            let established =
                if step == Step::Established { secure.session.established() } else { None };
            let has_replied = !io.sealed.is_empty();
            secure.has_more = consumed < input.len();
            io.send_sealed(token, SendFlags::empty());
            if has_replied && io.sockets.queued(token) > REPLIES_QUEUED_BYTES_MAX {
                return handler.failed(io, owner, Errno::NOBUFS);
            }
            let is_drained = |io: &mut EventLoop| {
                waited && io.sockets.is_read(token) && io.sockets.queued(token) == 0
            };
            match step {
                Step::More => break,
                Step::Data { start, end } => handler.received(io, owner, &mut input[start..end]),
                Step::Established => {
                    if let Some(established) = established {
                        handler.secured(io, owner, *established);
                    }
                    if is_drained(io) {
                        handler.drained(io, owner);
                    }
                }
                Step::Confirmed => {
                    handler.confirmed(io, owner);
                    if is_drained(io) {
                        handler.drained(io, owner);
                    }
                }
                Step::Ended => handler.ended(io, owner),
                Step::Failed(error) => return handler.insecure(io, owner, &error),
            }
        }
        let rest = &input[consumed..];
        if rest.is_empty() && !is_stopped {
            return;
        }
        let mut kept = io.spares.take();
        kept.extend_from_slice(rest);
        if let Some(secure) = io.sockets.get(token).and_then(|socket| socket.secure.as_mut()) {
            secure.has_records = is_stopped && !kept.is_empty();
            secure.input = kept;
        }
    }
}
