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
use crate::socket::{ReadResult, Secure, State};
use crate::token::{Owner, Token};

/// Maximum number of queued bytes for a peer that causes protocol replies and does not receive them.
const REPLIES_QUEUED_BYTES_MAX: usize = 1024 * 1024;

impl EventLoop {
    /// Starts TLS on a socket. `received` is its data so far. Data that is sent before the handshake is complete waits until
    /// then. [`Handler::secured`] reports the end of the handshake.
    pub fn secure(&mut self, token: Token, session: Session, received: &[u8]) {
        const { assert!(COLLECTED_BYTES_MAX + READ_BUFFER_BYTES <= SCRATCH_BYTES) };
        let Some(socket) = self.sockets.get(token) else {
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
        self.sockets.get(token).is_some_and(|socket| socket.secure.is_some())
    }

    /// Encrypts `parts` and sends them. `is_last`: the connection is closed after that, so close_notify is sent with the
    /// data.
    pub(crate) fn send_sealed(&mut self, token: Token, parts: &[IoSlice<'_>], is_last: bool) {
        let mut sealed = std::mem::take(&mut self.sealed);
        if let Some(socket) = self.sockets.get(token)
            && let Some(secure) = &mut socket.secure
            && !secure.is_closed
        {
            match secure.session.seal(parts, &mut sealed) {
                Ok(()) if is_last && !secure.session.is_handshaking() => {
                    secure.is_closed = true;
                    secure.session.close(&mut sealed);
                }
                Ok(()) => {}
                // The key has reached its limit. The connection fails, so that the peer detects the missing data.
                Err(_) => {
                    socket.state = State::Broken(Errno::IO);
                    self.make_ready(token);
                }
            }
        }
        self.send_away(
            token,
            &mut sealed,
            if is_last { SendFlags::MORE } else { SendFlags::empty() },
        );
        self.sealed = sealed;
    }

    /// Sends close_notify, which is the last record. The close of the connection must follow.
    pub(crate) fn send_close_notify(&mut self, token: Token) {
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        let Some(secure) = &mut socket.secure else {
            return;
        };
        if secure.is_closed || secure.session.is_handshaking() {
            return;
        }
        secure.is_closed = true;
        let mut sealed = std::mem::take(&mut self.sealed);
        secure.session.close(&mut sealed);
        self.send_away(token, &mut sealed, SendFlags::MORE);
        self.sealed = sealed;
    }

    /// Sends the encrypted data and empties the buffer.
    fn send_away(&mut self, token: Token, sealed: &mut RecordBuffer, flags: SendFlags) {
        if !sealed.is_empty() {
            self.send_bytes(token, &[IoSlice::new(sealed.as_slice())], flags);
            sealed.clear();
        }
    }

    /// Reads once from a TLS socket, and delivers the complete records.
    pub(crate) fn read_secure(&mut self, handler: &mut impl Handler, token: Token, owner: Owner) {
        // The scratch buffer is moved out of the loop, so that the handler can use both.
        let mut scratch = std::mem::take(&mut self.scratch);
        if let Some((filled, read)) = self.fill(token, &mut scratch) {
            self.deliver(handler, token, owner, &mut scratch[..filled]);
            match read {
                ReadResult::Bytes(_) => {}
                ReadResult::Nothing => self.secure_pause(handler, token, owner),
                ReadResult::End => self.secure_end(handler, token, owner),
                ReadResult::Failure(error) if self.sockets.is_read(token) => {
                    handler.failed(self, owner, error)
                }
                ReadResult::Failure(_) => {}
            }
        }
        self.scratch = scratch;
    }

    /// Copies stored data to `scratch`, and reads more after it. Returns the total length, and the result of the read.
    fn fill(&mut self, token: Token, scratch: &mut [u8]) -> Option<(usize, ReadResult)> {
        let socket = self.sockets.get(token)?;
        let bytes_max = socket.bytes_at_once();
        let secure = socket.secure.as_mut()?;
        let has_records = std::mem::take(&mut secure.has_records);
        let kept = std::mem::take(&mut secure.input);
        let kept_bytes = kept.len();
        scratch[..kept_bytes].copy_from_slice(&kept);
        self.spares.give(kept);
        if has_records {
            // Stored data is delivered before anything is read. Its delivery may pause the socket again.
            return Some((kept_bytes, ReadResult::Bytes(0)));
        }
        let room = &mut scratch[kept_bytes..SCRATCH_BYTES.min(kept_bytes + bytes_max)];
        if room.is_empty() {
            return Some((kept_bytes, ReadResult::Failure(Errno::OVERFLOW)));
        }
        let read = self.read_once(token, room, RecvFlags::empty());
        let more = if let ReadResult::Bytes(count) = read { count } else { 0 };
        Some((kept_bytes + more, read))
    }

    /// Delivers the records in `input`, and stores an incomplete rest.
    fn deliver(
        &mut self,
        handler: &mut impl Handler,
        token: Token,
        owner: Owner,
        input: &mut [u8],
    ) {
        let mut consumed = 0;
        let mut is_stopped = false;
        while let Some(socket) = self.sockets.get(token) {
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
            let mut sealed = std::mem::take(&mut self.sealed);
            let step = secure.session.step(input, &mut consumed, &mut sealed);
            secure.has_ended |= step == Step::Ended;
            let established =
                if step == Step::Established { secure.session.established() } else { None };
            let has_replied = !sealed.is_empty();
            secure.has_more = consumed < input.len();
            self.send_away(token, &mut sealed, SendFlags::empty());
            self.sealed = sealed;
            if has_replied && self.queued(token) > REPLIES_QUEUED_BYTES_MAX {
                return handler.failed(self, owner, Errno::NOBUFS);
            }
            match step {
                Step::More => break,
                Step::Data { start, end } => handler.received(self, owner, &mut input[start..end]),
                Step::Established => {
                    if let Some(established) = established {
                        handler.secured(self, owner, *established);
                    }
                    if waited && self.sockets.is_read(token) && self.queued(token) == 0 {
                        handler.drained(self, owner);
                    }
                }
                Step::Confirmed => {
                    handler.confirmed(self, owner);
                    if waited && self.sockets.is_read(token) && self.queued(token) == 0 {
                        handler.drained(self, owner);
                    }
                }
                Step::Ended => handler.ended(self, owner),
                Step::Failed(error) => return handler.insecure(self, owner, &error),
            }
        }
        let rest = &input[consumed..];
        if rest.is_empty() && !is_stopped {
            return;
        }
        let mut kept = self.spares.take();
        kept.extend_from_slice(rest);
        if let Some(secure) = self.sockets.get(token).and_then(|socket| socket.secure.as_mut()) {
            secure.has_records = is_stopped && !kept.is_empty();
            secure.input = kept;
        }
    }

    /// Handles a read without data. After a failed write, no data can follow, so the failure is reported.
    fn secure_pause(&mut self, handler: &mut impl Handler, token: Token, owner: Owner) {
        if let Some(State::Draining(error)) = self.sockets.get(token).map(|socket| socket.state) {
            handler.failed(self, owner, error);
        }
    }

    /// Handles the peer's FIN. Without close_notify, an attacker may have truncated a member's response.
    fn secure_end(&mut self, handler: &mut impl Handler, token: Token, owner: Owner) {
        let Some(socket) = self.sockets.get(token).filter(|socket| socket.state.is_delivered())
        else {
            return;
        };
        match (socket.state, &socket.secure) {
            (State::Draining(error), _) => handler.failed(self, owner, error),
            (_, Some(secure)) if secure.has_ended => {}
            (_, Some(_)) if matches!(owner, Owner::Member(_)) => {
                handler.failed(self, owner, Errno::CONNRESET);
            }
            _ => handler.ended(self, owner),
        }
    }
}
