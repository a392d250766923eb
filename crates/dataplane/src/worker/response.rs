//! A response on its way from a member to a client, whichever versions they speak.

use std::io::IoSlice;

use weir_http::edits::FieldEdits;
use weir_http::h1::{
    LAST_CHUNK, Persistence, ResponseForward, write_response_head, write_trailers,
};
use weir_http::h2::SendKind;
use weir_http::h2::message::write_response;
use weir_http::message::{Framing, ResponseHead, Version};

use super::Worker;
use super::body::{self, Pieces};
use super::compress::Encoded;
use super::exchange::Phase;
use super::frames::End;
use crate::access_log::Termination;
use crate::counters::count_status;
use crate::event_loop::EventLoop;

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
        key: u32,
        exchange_key: u32,
        head: &ResponseHead,
        input: &[u8],
    ) {
        let exchange = &mut self.exchanges[exchange_key as usize];
        count_status!(self.members[key as usize].member.live.counters.of(self.id), head.status);
        if exchange.version == Version::Http10 {
            return;
        }
        count_status!(exchange.server.live.counters.of(self.id), head.status);
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
            self.out.clear();
            write_response_head(head, input, &forward, &FieldEdits::NONE, &mut self.out);
            let client = &self.clients[exchange.client as usize];
            io.send(client.token, &[IoSlice::new(&self.out)]);
            self.out.len()
        };
        let exchange = &mut self.exchanges[exchange_key as usize];
        exchange.count_sent(self.id, head_bytes);
        exchange.head_bytes_sent += head_bytes as u64;
        let timeout_ms = exchange.server.http.body_timeout_ms;
        if self.is_client_behind(io, exchange_key) {
            self.set_client_deadline(io, exchange_key, io.now_ms() + timeout_ms);
            self.pause_member(io, exchange_key);
            self.clear_member_deadline(io, exchange_key);
        }
    }

    /// Begins a response. Of HTTP/1 the head for the client is left in `out`; it goes out with the first bytes
    /// of the body. `input` is the head, `body` what there is behind it.
    pub fn begin_response(
        &mut self,
        io: &mut EventLoop,
        exchange_key: u32,
        head: &mut ResponseHead,
        (input, body): (&[u8], &[u8]),
    ) {
        self.leave_out_known(exchange_key, head, input);
        self.response_began(io, exchange_key, head.status);
        let draining = self.is_draining();
        let mut edits = std::mem::take(&mut self.response_edits);
        edits.clear();
        if self.exchanges[exchange_key as usize].extras.is_some() {
            self.edit_response(exchange_key, head, input, &mut edits);
        }
        self.time_response(exchange_key, &mut edits);
        let plain = head.framing.toward(self.exchanges[exchange_key as usize].version);
        let framing =
            self.begin_compression(io, exchange_key, head, (input, body), &mut edits, plain);
        let exchange = &mut self.exchanges[exchange_key as usize];
        // An answer to a request that is still coming in may leave part of it unread.
        exchange.keep_alive &= exchange.request_done && !draining && framing != Framing::UntilClose;
        exchange.phase = Phase::Respond;
        exchange.response_framing = framing;
        let persistence =
            if exchange.keep_alive { Persistence::KeepAlive } else { Persistence::Close };
        let client_version = exchange.version;
        let is_on_stream = exchange.stream.is_some();
        let mut wall = std::mem::take(&mut self.wall);
        let date = (!head.has_date).then(|| wall.at(io.clock()).0.http.as_bytes());
        let forward = ResponseForward { framing, client_version, persistence, date };
        self.out.clear();
        let head_bytes = if is_on_stream {
            let is_end = framing.is_empty();
            self.send_stream_head(exchange_key, SendKind::Response, is_end, |lines| {
                write_response(head, input, &forward, &edits, lines);
            })
        } else {
            write_response_head(head, input, &forward, &edits, &mut self.out);
            self.out.len()
        };
        self.wall = wall;
        self.response_edits = edits;
        let exchange = &mut self.exchanges[exchange_key as usize];
        exchange.head_bytes_sent += head_bytes as u64;
        if is_on_stream {
            exchange.count_sent(self.id, head_bytes);
        }
    }

    /// Passes on pieces of a response's body, behind what `out` holds, and its end.
    pub fn send_response(
        &mut self,
        io: &mut EventLoop,
        key: u32,
        input: &[u8],
        pieces: &Pieces,
        end: End<'_>,
    ) -> Passed {
        if self.exchanges[key as usize].encoding.is_none() {
            self.send_pieces(io, key, input, pieces, end);
            return Passed::On;
        }
        let is_end = !matches!(end, End::No);
        let encoded = self.compress(io, key, input, pieces, is_end);
        if encoded == Encoded::Broken {
            // What has gone out cannot be made whole.
            self.flush_out(io, key);
            self.truncate(io, key, Termination::EncodingFailed);
            return Passed::Over;
        }
        let compressed = std::mem::take(&mut self.compressed);
        let whole = Pieces::whole(compressed.len());
        self.send_pieces(io, key, &compressed, &whole, end);
        self.compressed = compressed;
        if encoded == Encoded::Enough { Passed::Enough } else { Passed::On }
    }

    fn send_pieces(
        &mut self,
        io: &mut EventLoop,
        key: u32,
        body: &[u8],
        pieces: &Pieces,
        end: End<'_>,
    ) {
        let exchange = &mut self.exchanges[key as usize];
        let framing = exchange.response_framing;
        if exchange.stream.is_some() {
            if !framing.is_empty() {
                self.deliver(io, key, body, pieces, end);
            }
            return;
        }
        self.tail.clear();
        if framing == Framing::Chunked {
            match end {
                End::No => {}
                End::Data => self.tail.extend_from_slice(LAST_CHUNK),
                End::Trailers(fields, text) => write_trailers(fields, text, &mut self.tail),
            }
        }
        let client_token = self.clients[exchange.client as usize].token;
        let is_last = !matches!(end, End::No) && !exchange.keep_alive;
        let sent = body::send(&mut self.out, framing, body, pieces, &self.tail, |parts| {
            if is_last { io.send_last(client_token, parts) } else { io.send(client_token, parts) }
        });
        self.out.clear();
        exchange.count_sent(self.id, sent);
    }

    /// Sends what `out` holds: a response head whose body turned out to be malformed at once.
    pub fn flush_out(&mut self, io: &mut EventLoop, exchange_key: u32) {
        let exchange = &mut self.exchanges[exchange_key as usize];
        if !self.out.is_empty() {
            let client = &self.clients[exchange.client as usize];
            io.send(client.token, &[IoSlice::new(&self.out)]);
            exchange.count_sent(self.id, self.out.len());
            self.out.clear();
        }
    }

    /// The member sends as fast as the client takes.
    pub fn pace_response(&mut self, io: &mut EventLoop, key: u32) {
        let until_ms = io.now_ms() + self.exchanges[key as usize].server.http.body_timeout_ms;
        if self.is_client_behind(io, key) {
            self.pause_member(io, key);
            self.clear_member_deadline(io, key);
            self.set_client_deadline(io, key, until_ms);
        } else {
            self.set_member_deadline(io, key, until_ms);
        }
    }

    /// The client took everything: the member may go on.
    pub fn client_takes_more(&mut self, io: &mut EventLoop, key: u32) {
        let exchange = &self.exchanges[key as usize];
        if exchange.phase == Phase::Tunnel {
            return self.tunnel_client_drained(io, key);
        }
        if exchange.connection.is_none() {
            return;
        }
        let until_ms = io.now_ms() + exchange.server.http.body_timeout_ms;
        let (is_responding, request_done) =
            (exchange.phase == Phase::Respond, exchange.request_done);
        if request_done {
            self.clear_client_deadline(io, key);
        } else {
            self.set_client_deadline(io, key, until_ms);
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
