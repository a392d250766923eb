//! Operations of a transaction on its client connection. With HTTP/1 the transaction owns the connection, with HTTP/2 a
//! stream of it.

use std::io::IoSlice;

use weir_event_loop::wall_clock::HTTP_DATE_BYTES;
use weir_exchange::edge::{Flow, Lag};
use weir_exchange::parts::end::{End, OwnedEnd};
use weir_exchange::parts::ends::Ends;
use weir_exchange::parts::errand::Errand;
use weir_exchange::parts::messages::{HeadKind, Message, OutHead, OwnAnswer, Sending};
use weir_exchange::parts::pieces::Pieces;
use weir_http::h1::{ResponseForward, write_response_head};
use weir_http::h2::SendKind;
use weir_http::h2::message::write_response;

use crate::worker::body::{self, Tail};
use crate::worker::desk::Desk;

impl Desk<'_> {
    /// Begins a message to the client; see [`weir_exchange::edge::Edge::head`].
    pub fn begin_message(
        &mut self,
        ends: &mut Ends,
        out: &OutHead<'_>,
        (kind, is_end): (HeadKind, bool),
    ) -> Message {
        let OutHead { head, input, edits, forward, is_dated } = out;
        let mut message = self.world.tools.scratch.take();
        let mut date = [0; HTTP_DATE_BYTES];
        let mut forward = ResponseForward { date: None, ..*forward };
        if *is_dated {
            date.copy_from_slice(self.world.wall.at(self.io.clock()).0.http.as_bytes());
            forward.date = Some(&date);
        }
        let bytes = if ends.stream.is_some() {
            let kind = match kind {
                HeadKind::Interim => SendKind::Interim,
                HeadKind::Final => SendKind::Response,
            };
            let bytes = self.send_stream_head(ends, kind, is_end, |lines| {
                write_response(head, input, &forward, edits, lines);
            });
            ends.count_sent(bytes);
            bytes
        } else {
            write_response_head(head, input, &forward, edits, &mut message);
            message.len()
        };
        ends.account.head_bytes_sent += bytes as u64;
        message
    }

    /// Sends a part of a body, behind `head` if that was not sent yet.
    pub fn send_body(&mut self, ends: &mut Ends, mut head: Message, body: &Sending<'_>) {
        let Sending { input, pieces, framing, end, is_last } = *body;
        if ends.stream.is_some() {
            if !framing.is_empty() {
                self.deliver(ends, input, pieces, end);
            }
        } else if let Some(client) = self.world.clients.get(ends.client) {
            let tail = Tail::of(&mut self.world.tools.scratch, framing, end);
            let sent = body::send(&mut head, framing, input, pieces, tail.bytes(), |parts| {
                if is_last {
                    self.io.send_last(client.token, parts);
                } else {
                    self.io.send(client.token, parts);
                }
            });
            ends.count_sent(sent);
            tail.give_back(&mut self.world.tools.scratch);
        }
        self.world.tools.scratch.give(head);
    }

    /// Sends a response of weir's own, and counts its bytes.
    pub fn send_own(&mut self, ends: &mut Ends, answer: &OwnAnswer<'_>) {
        if ends.stream.is_some() {
            return self.send_own_on_stream(ends, answer);
        }
        let sent = self.send_own_response(ends.client, answer);
        ends.account.bytes_sent += sent.bytes;
        ends.account.head_bytes_sent += sent.head_bytes;
    }

    /// Sends bytes of a tunnel to the client.
    pub fn send_bytes(&mut self, ends: &mut Ends, bytes: &[u8]) {
        if ends.stream.is_some() {
            return self.deliver(ends, bytes, &Pieces::whole(bytes.len()), End::No);
        }
        let Some(client) = self.world.clients.get(ends.client) else { return };
        self.io.send(client.token, &[IoSlice::new(bytes)]);
        ends.count_sent(bytes.len());
    }

    /// Ends the sending side toward the client: END_STREAM or FIN.
    pub fn end_client(&mut self, ends: &mut Ends) {
        if let Some(stream) = self.world.stream_mut(ends) {
            if !std::mem::replace(&mut stream.is_end_told, true) {
                self.deliver(ends, b"", &Pieces::whole(0), End::Data);
            }
        } else if let Some(client) = self.world.clients.get(ends.client) {
            self.io.shut_write(client.token);
        }
    }
}

impl Desk<'_> {
    /// Whether the client has taken the data that was sent to it.
    pub fn client_lag(&mut self, ends: &Ends) -> Lag {
        if self.world.stream(ends).is_some_and(|stream| stream.out.is_behind()) {
            return Lag::Behind;
        }
        match self.world.clients.get(ends.client) {
            Some(client) if self.io.queued(client.token) > 0 => match ends.stream {
                Some(_) => Lag::Others,
                None => Lag::Behind,
            },
            _ => Lag::None,
        }
    }

    /// Sets or removes the deadline of the client.
    #[inline]
    pub fn set_client_due(&mut self, ends: &mut Ends, at_ms: Option<u64>) {
        let client = ends.client;
        if let Some(stream) = self.world.stream_mut(ends) {
            stream.deadline_ms = at_ms;
            if let Some(at_ms) = at_ms {
                self.arm(client, at_ms);
            }
        } else if let Some(client) = self.world.clients.get(client) {
            match at_ms {
                Some(at_ms) => self.io.set_deadline(client.token, at_ms),
                None => self.io.clear_deadline(client.token),
            }
        }
    }

    /// Pauses a client with HTTP/1, or opens the window of a stream. [`Self::let_client_send`] resumes a paused client.
    #[inline]
    pub fn set_client_flow(&mut self, ends: &mut Ends, flow: Flow) {
        match flow {
            Flow::Window if ends.stream.is_some() => self.give_window(ends),
            Flow::Stop if ends.stream.is_none() => {
                if let Some(client) = self.world.clients.get(ends.client) {
                    self.io.pause(client.token);
                }
            }
            Flow::Window | Flow::Stop => {}
            Flow::Go | Flow::Slices(_) | Flow::Bulk | Flow::Straight => {
                debug_assert!(false, "no transaction asks that of its client");
            }
        }
    }

    /// Returns window for forwarded bytes of a client's stream, and of the connection.
    fn give_window(&mut self, ends: &mut Ends) {
        let Some(stream) = self.world.stream_mut(ends) else { return };
        // Data that waits for a member, for a tunnel, or for the rest of a read, was not forwarded yet.
        let held = (stream.held.bytes() + stream.joined.bytes()) as u32;
        let bytes = std::mem::replace(&mut stream.unreleased, held) - held;
        let id = stream.out.id;
        self.world.release(ends.client, id, bytes);
    }

    /// The deadline of the client for taking more data. Progress of other streams counts only while this stream waits
    /// for the socket behind them.
    pub fn client_patience_until_ms(&mut self, ends: &Ends, timeout_ms: u64) -> u64 {
        let Some(client) = self.world.clients.get(ends.client) else { return 0 };
        let Some(stream) = self.world.stream(ends) else {
            return self.io.patience_until_ms(client.token, timeout_ms);
        };
        match client.window_until_ms(stream, timeout_ms) {
            Some(until_ms) => until_ms,
            None if !ends.is_member_stopped => 0,
            None => self.io.patience_until_ms(client.token, timeout_ms),
        }
    }
}

impl Desk<'_> {
    /// Resumes the client. Returns the held data of its stream; with HTTP/1, schedules the data that it has already
    /// sent.
    pub fn let_client_send(&mut self, ends: &mut Ends) -> Option<(Vec<u8>, OwnedEnd)> {
        if ends.stream.is_none() {
            let client = self.world.clients.get(ends.client)?;
            self.io.resume(client.token);
            if client.has_input() {
                self.world.tools.errands.push(Errand::Client(ends.client));
            }
            return None;
        }
        let stream = self.world.stream_mut(ends)?;
        Some(stream.held.take())
    }

    /// Holds data of the client's stream; the stream's window limits its size.
    pub fn hold_of_client(
        &mut self,
        ends: &mut Ends,
        (input, pieces): (&[u8], &Pieces),
        end: End<'_>,
    ) {
        let stream = self.world.stream_mut(ends);
        debug_assert!(stream.is_some(), "what has a connection for itself is not read ahead");
        if let Some(stream) = stream {
            pieces.of(input).for_each(|data| stream.held.push(self.io, data));
            stream.held.set_end(end);
        }
    }

    /// Whether the client of an HTTP/1 connection has ended its sending side, and all its data was processed.
    pub fn has_client_ended(&self, ends: &Ends) -> bool {
        let client = self.world.clients.get(ends.client).filter(|_| ends.stream.is_none());
        client.is_some_and(|client| client.ended && !client.has_input())
    }
}
