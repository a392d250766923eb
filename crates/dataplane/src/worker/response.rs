//! A response on its way from a member to a client, whichever versions they speak.

use std::io::IoSlice;

use weir_event_loop::EventLoop;
use weir_http::edits::FieldEdits;
use weir_http::h1::{Persistence, ResponseForward, write_response_head};
use weir_http::h2::SendKind;
use weir_http::h2::message::write_response;
use weir_http::message::{Framing, ResponseHead, Version};

use super::Worker;
use super::body::{self, Pieces, end_of_chunks};
use super::encoding::Encoded;
use super::end::End;
use super::exchange::{Exchange, Phase};
use super::pace::Pace;
use super::scratch::Message;
use crate::access_log::Termination;
use crate::arena::{ConnectionKey, ExchangeKey};
use crate::counters::count_status;

/// What became of some of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// It was passed on.
    On,
    /// So it was, and the rest is not worth waiting for.
    Enough,
    /// It could not be, and the exchange is over.
    Over,
}

impl Worker {
    /// Passes an interim response on, which the member of the connection `key` has made.
    pub fn forward_interim(
        &mut self,
        io: &mut EventLoop,
        key: ConnectionKey,
        exchange_key: ExchangeKey,
        head: &ResponseHead,
        input: &[u8],
    ) {
        let Some(exchange) = self.exchanges.get_mut(exchange_key) else { return };
        let Some(connection) = self.world.members.get(key) else { return };
        count_status!(connection.member.live.counters.of(self.world.id), head.status);
        if exchange.version == Version::Http10 {
            return;
        }
        count_status!(exchange.server.live.counters.of(self.world.id), head.status);
        let forward = ResponseForward {
            framing: Framing::None,
            client_version: exchange.version,
            persistence: Persistence::KeepAlive,
            date: None,
        };
        let head_bytes = if exchange.stream.is_some() {
            self.send_stream_head(exchange_key, SendKind::Interim, false, |lines| {
                write_response(head, input, &forward, &FieldEdits::NONE, lines);
            })
        } else {
            let mut out = self.world.scratch.take();
            write_response_head(head, input, &forward, &FieldEdits::NONE, &mut out);
            let bytes = out.len();
            if let Some(client) = self.world.clients.get(exchange.client) {
                io.send(client.token, &[IoSlice::new(&out)]);
            }
            self.world.scratch.give(out);
            bytes
        };
        let Some(exchange) = self.exchanges.get_mut(exchange_key) else { return };
        exchange.count_sent(self.world.id, head_bytes);
        exchange.head_bytes_sent += head_bytes as u64;
        if self.is_client_behind(io, exchange_key) {
            self.await_client(io, exchange_key);
            self.pause_member(io, exchange_key);
            self.clear_member_deadline(io, exchange_key);
        }
    }

    /// Begins a response. Of HTTP/1 the head for the client is returned, to go out with the first bytes of the body. `input`
    /// is the head, `body` what there is behind it.
    pub fn begin_response(
        &mut self,
        io: &mut EventLoop,
        exchange_key: ExchangeKey,
        head: &mut ResponseHead,
        (input, body): (&[u8], &[u8]),
    ) -> Message {
        let mut out = self.world.scratch.take();
        let Some(exchange) = self.exchanges.get_mut(exchange_key) else { return out };
        exchange.leave_out_known(head, input);
        self.response_began(io, exchange_key, head.status);
        let draining = self.world.is_draining();
        let mut edits = std::mem::take(&mut self.world.response_edits);
        edits.clear();
        let Some(mut exchange) = self.exchanges.get_mut(exchange_key) else { return out };
        if exchange.extras.is_some() {
            self.edit_response(exchange_key, head, input, &mut edits);
            let Some(edited) = self.exchanges.get_mut(exchange_key) else { return out };
            exchange = edited;
        }
        exchange.time_response(&mut edits);
        let mut framing = head.framing.toward(exchange.version);
        if exchange.server.settings().compression.is_some() {
            let bytes = (input, body);
            framing = self.begin_compression(io, exchange_key, head, bytes, &mut edits, framing);
            let Some(compressed) = self.exchanges.get_mut(exchange_key) else { return out };
            exchange = compressed;
        }
        // An answer to a request that is still coming in may leave part of it unread.
        exchange.keep_alive &= exchange.request_done && !draining && framing != Framing::UntilClose;
        exchange.phase = Phase::Respond;
        exchange.pace = exchange.pace.with_response(head, input);
        exchange.response_framing = framing;
        let persistence =
            if exchange.keep_alive { Persistence::KeepAlive } else { Persistence::Close };
        let client_version = exchange.version;
        let mut wall = std::mem::take(&mut self.world.wall);
        let date = (!head.has_date).then(|| wall.at(io.clock()).0.http.as_bytes());
        let forward = ResponseForward { framing, client_version, persistence, date };
        if exchange.stream.is_some() {
            let is_end = framing.is_empty();
            let bytes = self.send_stream_head(exchange_key, SendKind::Response, is_end, |lines| {
                write_response(head, input, &forward, &edits, lines);
            });
            if let Some(exchange) = self.exchanges.get_mut(exchange_key) {
                exchange.head_bytes_sent += bytes as u64;
                exchange.count_sent(self.world.id, bytes);
            }
        } else {
            write_response_head(head, input, &forward, &edits, &mut out);
            exchange.head_bytes_sent += out.len() as u64;
        }
        self.world.wall = wall;
        self.world.response_edits = edits;
        out
    }

    /// Passes on pieces of a response's body, behind its head where that has not gone out yet, and its end.
    pub fn send_response(
        &mut self,
        io: &mut EventLoop,
        key: ExchangeKey,
        head: Message,
        (input, pieces): (&[u8], &Pieces),
        end: End<'_>,
    ) -> Passed {
        match self.exchanges.get(key) {
            Some(Exchange { encoding: None, .. }) => {
                self.send_pieces(io, key, head, (input, pieces), end);
                return Passed::On;
            }
            Some(_) => {}
            None => {
                self.world.scratch.give(head);
                return Passed::Over;
            }
        }
        let is_end = !matches!(end, End::No);
        let mut compressed = self.world.scratch.take();
        let encoded = self.compress(io, key, (input, pieces), is_end, &mut compressed);
        if encoded == Encoded::Broken {
            // What has gone out cannot be made whole.
            self.world.scratch.give(compressed);
            self.send_head_alone(io, key, head);
            self.truncate(io, key, Termination::EncodingFailed);
            return Passed::Over;
        }
        let whole = Pieces::whole(compressed.len());
        self.send_pieces(io, key, head, (&compressed, &whole), end);
        self.world.scratch.give(compressed);
        if encoded == Encoded::Enough { Passed::Enough } else { Passed::On }
    }

    fn send_pieces(
        &mut self,
        io: &mut EventLoop,
        key: ExchangeKey,
        mut head: Message,
        (body, pieces): (&[u8], &Pieces),
        end: End<'_>,
    ) {
        let exchange = self.exchanges.get_mut(key);
        let Some(exchange) = exchange else { return self.world.scratch.give(head) };
        let framing = exchange.response_framing;
        if exchange.stream.is_some() {
            if !framing.is_empty() {
                self.deliver(io, key, body, pieces, end);
            }
        } else if let Some(client) = self.world.clients.get(exchange.client) {
            let is_last = !matches!(end, End::No) && !exchange.keep_alive;
            let mut trailers = self.world.scratch.take_if(matches!(end, End::Trailers(..)));
            let tail = end_of_chunks(framing, end, &mut trailers);
            let sent = body::send(&mut head, framing, body, pieces, tail, |parts| {
                if is_last {
                    io.send_last(client.token, parts);
                } else {
                    io.send(client.token, parts);
                }
            });
            exchange.count_sent(self.world.id, sent);
            self.world.scratch.give(trailers);
        }
        self.world.scratch.give(head);
    }

    /// Sends a response head whose body turned out to be malformed at once; an empty one was sent before.
    pub fn send_head_alone(&mut self, io: &mut EventLoop, key: ExchangeKey, head: Message) {
        if let Some(exchange) = self.exchanges.get_mut(key)
            && let Some(client) = self.world.clients.get(exchange.client)
            && !head.is_empty()
        {
            io.send(client.token, &[IoSlice::new(&head)]);
            exchange.count_sent(self.world.id, head.len());
        }
        self.world.scratch.give(head);
    }

    /// The member sends as fast as the client takes.
    pub fn pace_response(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        let Some(exchange) = self.exchanges.get(key) else { return };
        let until_ms = io.now_ms() + exchange.response_body_timeout_ms();
        if self.is_client_behind(io, key) {
            self.pause_member(io, key);
            self.clear_member_deadline(io, key);
            self.await_client(io, key);
        } else {
            if exchange.pace == Pace::Sparse && !exchange.request_done {
                // What comes from either side shows that nobody is gone.
                self.await_client(io, key);
            }
            self.set_member_deadline(io, key, until_ms);
        }
    }

    /// The client took everything: the member may go on.
    pub fn client_takes_more(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        let Some(exchange) = self.exchanges.get(key) else { return };
        if exchange.phase == Phase::Tunnel {
            return self.tunnel_client_drained(io, key);
        }
        if exchange.connection.is_none() {
            return;
        }
        let until_ms = io.now_ms() + exchange.response_body_timeout_ms();
        let (is_responding, request_done) =
            (exchange.phase == Phase::Respond, exchange.request_done);
        if request_done {
            self.clear_client_deadline(io, key);
        } else {
            self.await_client(io, key);
        }
        self.resume_member(io, key);
        if is_responding {
            self.set_member_deadline(io, key, until_ms);
        } else {
            // It was interim responses that waited.
            self.request_handed_over(io, key);
        }
    }
}
