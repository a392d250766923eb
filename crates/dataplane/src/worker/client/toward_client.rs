//! What an exchange asks of its client's connection, whichever version that speaks: of HTTP/1 the exchange has
//! the connection for itself, of HTTP/2 a stream of it.

use std::io::IoSlice;

use weir_http::edits::FieldEdits;
use weir_http::h1::{ResponseForward, write_response_head};
use weir_http::h2::SendKind;
use weir_http::h2::message::write_response;
use weir_http::message::{Framing, ResponseHead};

use crate::worker::body::{self, Pieces, end_of_chunks};
use crate::worker::client::own_response::{OwnAnswer, OwnBytes};
use crate::worker::scratch::Message;
use crate::worker::transaction::end::{End, OwnedEnd};
use crate::worker::transaction::ends::Ends;
use crate::worker::world::Desk;

/// A response head as it goes to a client.
pub struct OutHead<'a> {
    /// The member's, or one of weir's own.
    pub head: &'a ResponseHead,
    /// What its spans are of.
    pub input: &'a [u8],
    /// What is changed of it.
    pub edits: &'a FieldEdits,
    /// How it is passed on.
    pub forward: ResponseForward<'a>,
}

impl Ends {
    /// Begins a message to the client with a head. Where that goes out by itself nothing is returned, else the head, to go
    /// out with the first bytes of the body.
    pub fn begin_message(
        &mut self,
        at: &mut Desk<'_>,
        out: &OutHead<'_>,
        (kind, is_end): (SendKind, bool),
    ) -> Message {
        let OutHead { head, input, edits, forward } = out;
        let mut message = at.world.scratch.take();
        let bytes = if self.stream.is_some() {
            let bytes = self.send_stream_head(at, kind, is_end, |lines| {
                write_response(head, input, forward, edits, lines);
            });
            self.count_sent(at.world.id, bytes);
            bytes
        } else {
            write_response_head(head, input, forward, edits, &mut message);
            message.len()
        };
        self.account.head_bytes_sent += bytes as u64;
        message
    }

    /// Sends the head alone, if it has not gone out.
    pub fn send_head_alone(&mut self, at: &mut Desk<'_>, head: Message) {
        if let Some(client) = at.world.clients.get(self.client)
            && !head.is_empty()
        {
            at.io.send(client.token, &[IoSlice::new(&head)]);
            self.count_sent(at.world.id, head.len());
        }
        at.world.scratch.give(head);
    }

    /// Sends pieces of a body and its end, behind its head where that has not gone out. `is_last`: nothing follows on the
    /// connection, if the client has that for itself.
    pub fn send_body(
        &mut self,
        at: &mut Desk<'_>,
        mut head: Message,
        (body, pieces): (&[u8], &Pieces),
        (framing, end, is_last): (Framing, End<'_>, bool),
    ) {
        if self.stream.is_some() {
            if !framing.is_empty() {
                self.deliver(at, body, pieces, end);
            }
        } else if let Some(client) = at.world.clients.get(self.client) {
            let mut trailers = at.world.scratch.take_if(matches!(end, End::Trailers(..)));
            let tail = end_of_chunks(framing, end, &mut trailers);
            let sent = body::send(&mut head, framing, body, pieces, tail, |parts| {
                if is_last {
                    at.io.send_last(client.token, parts);
                } else {
                    at.io.send(client.token, parts);
                }
            });
            self.count_sent(at.world.id, sent);
            at.world.scratch.give(trailers);
        }
        at.world.scratch.give(head);
    }

    /// Sends a response that weir makes itself; returns its bytes, but for those that were counted when they were sent.
    pub fn send_own(&mut self, at: &mut Desk<'_>, answer: &OwnAnswer<'_>) -> OwnBytes {
        match self.stream {
            Some(_) => self.send_own_on_stream(at, answer),
            None => at.send_own_response(self.client, answer),
        }
    }

    /// Sends bytes of a tunnel.
    pub fn send_bytes(&mut self, at: &mut Desk<'_>, bytes: &[u8]) {
        if self.stream.is_some() {
            return self.deliver(at, bytes, &Pieces::whole(bytes.len()), End::No);
        }
        let Some(client) = at.world.clients.get(self.client) else { return };
        at.io.send(client.token, &[IoSlice::new(bytes)]);
        self.count_sent(at.world.id, bytes.len());
    }

    /// The client learns that nothing follows.
    pub fn end_client(&mut self, at: &mut Desk<'_>) {
        if let Some(stream) = at.world.stream_mut(self) {
            if !std::mem::replace(&mut stream.is_end_told, true) {
                self.deliver(at, b"", &Pieces::whole(0), End::Data);
            }
        } else if let Some(client) = at.world.clients.get(self.client) {
            at.io.shut_write(client.token);
        }
    }
}

impl Ends {
    /// Whether the client has not taken everything that it was sent: what comes next has to wait.
    pub fn is_client_behind(&self, at: &mut Desk<'_>) -> bool {
        let is_stream_behind = at.world.stream(self).is_some_and(|stream| stream.out.is_behind());
        let client = at.world.clients.get(self.client);
        is_stream_behind || client.is_some_and(|client| at.io.queued(client.token) > 0)
    }

    /// The client must have done something by then.
    pub fn set_client_deadline(&mut self, at: &mut Desk<'_>, at_ms: u64) {
        let client = self.client;
        if let Some(stream) = at.world.stream_mut(self) {
            stream.deadline_ms = Some(at_ms);
            at.arm(client, at_ms);
        } else if let Some(client) = at.world.clients.get(client) {
            at.io.set_deadline(client.token, at_ms);
        }
    }

    /// The client need not do anything.
    #[inline]
    pub fn clear_client_deadline(&mut self, at: &mut Desk<'_>) {
        if let Some(stream) = at.world.stream_mut(self) {
            stream.deadline_ms = None;
        } else if let Some(client) = at.world.clients.get(self.client) {
            at.io.clear_deadline(client.token);
        }
    }
}

impl Ends {
    /// What the client has sent of a stream while it had nowhere to go. A client that has its connection for itself
    /// may send on; what it has sent already is looked at next.
    pub fn let_client_send(&mut self, at: &mut Desk<'_>) -> Option<(Vec<u8>, OwnedEnd)> {
        if self.stream.is_none() {
            let client = at.world.clients.get(self.client)?;
            at.io.resume(client.token);
            if client.has_input() {
                at.world.agenda.push(self.client);
            }
            return None;
        }
        let stream = at.world.stream_mut(self)?;
        let (held, end) = (std::mem::take(&mut stream.held), std::mem::take(&mut stream.held_end));
        // It is counted anew on its way.
        stream.unreleased -= held.len() as u32;
        self.account.bytes_received -= held.len() as u64;
        Some((held, end))
    }

    /// The client has to wait; on a stream its window does that.
    pub fn stop_client(&mut self, at: &mut Desk<'_>) {
        if self.stream.is_none()
            && let Some(client) = at.world.clients.get(self.client)
        {
            at.io.pause(client.token);
        }
    }

    /// Whether a client that has its connection for itself sends nothing more, and all that it has sent was looked at.
    pub fn has_client_ended(&self, at: &Desk<'_>) -> bool {
        let client = at.world.clients.get(self.client).filter(|_| self.stream.is_none());
        client.is_some_and(|client| client.ended && !client.has_input())
    }

    /// Whether what the client has taken just now can have been of this transaction. A connection that many streams share
    /// says nothing of those that had nothing on it.
    pub fn has_client_taken_its_own(&self, at: &Desk<'_>) -> bool {
        at.world.stream(self).is_none_or(|stream| stream.holds_up_member)
    }

    /// Until when the client has time to take more of what it was sent. What it takes of other streams says nothing,
    /// unless this one waits for their turn.
    pub fn client_patience_until_ms(&self, at: &mut Desk<'_>, timeout_ms: u64) -> u64 {
        let Some(client) = at.world.clients.get(self.client) else { return 0 };
        match (at.world.stream(self), &client.http2) {
            (Some(stream), Some(http2))
                if stream.out.is_behind()
                    && http2.frames.connection.data_allowance(stream.out.id) == 0 =>
            {
                self.stalled_since_ms(at).map_or(0, |since_ms| since_ms + timeout_ms)
            }
            (Some(stream), _) if !stream.holds_up_member => 0,
            _ => at.io.patience_until_ms(client.token, timeout_ms),
        }
    }

    /// So much came of the client's stream, whose window is given back for it later.
    pub fn take_in(&mut self, at: &mut Desk<'_>, bytes: usize) {
        if let Some(stream) = at.world.stream_mut(self) {
            stream.unreleased += bytes as u32;
        }
    }

    /// What came of the client's stream waits there. The window bounds how much that is.
    pub fn hold(&mut self, at: &mut Desk<'_>, (input, pieces): (&[u8], &Pieces), end: End<'_>) {
        let stream = at.world.stream_mut(self);
        debug_assert!(stream.is_some(), "what has a connection for itself is not read ahead");
        if let Some(stream) = stream {
            pieces.of(input).for_each(|data| stream.held.extend_from_slice(data));
            stream.held_end = OwnedEnd::of(end);
        }
    }

    /// Whether the member waits for what the client has yet to take. What else waits on a connection that many streams share
    /// says nothing.
    pub fn is_client_holding_up(&self, at: &mut Desk<'_>) -> bool {
        match at.world.stream(self) {
            Some(stream) => stream.holds_up_member,
            None => self.is_client_behind(at),
        }
    }

    /// Whether the head of a request goes before its body comes: a client that has its connection for itself may wait for an
    /// answer to it. On a stream it is sent by itself.
    pub fn sends_head_first(&self) -> bool {
        self.stream.is_none()
    }
}
