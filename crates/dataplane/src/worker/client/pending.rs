//! Delayed start of HTTP/2 requests: after all frames of the same read were parsed, and for a limited time per turn.
//!
//! An attacker that opens streams only to reset them (CVE-2023-44487), or to make the server reset them (CVE-2025-8671),
//! usually sends both within one read. A request whose stream is already closed then uses neither a member nor a place in a
//! queue. A request begins immediately if data or trailers for it arrive.

use weir_config::snapshot::RequestTrailers;
use weir_connection::client::pending::PendingRequests;
use weir_connection::frames::exchange_of;
use weir_event_loop::{EventLoop, clock};
use weir_exchange::arena::{ClientKey, ExchangeKey};
use weir_exchange::termination::Termination;
use weir_exchange::transaction::Transaction;
use weir_http::h2::hpack::HeaderBlock;
use weir_http::h2::message::{ReadError, read_request};
use weir_http::h2::{ErrorCode, Priority};
use weir_http::message::RequestHead;
use weir_http::path::TargetForm;

use crate::worker::agenda::Task;
use crate::worker::client::early_data;
use crate::worker::client::own_response::{RefusalFacts, refused_as};
use crate::worker::router::Router;
use crate::worker::state::clients::Clients;

/// Maximum time per turn to begin requests of one client. The others begin in the next turn.
const SLICE_US: u64 = 250;

impl Router {
    /// Handles the head of a request, which begins at the end of this read.
    pub fn stream_request(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        stream: u32,
        is_whole: bool,
        block: &mut HeaderBlock,
    ) {
        let Some(client) = self.world.clients.all.get_mut(key) else { return };
        let form = client.server.http.target;
        let passes_trailers = client.server.http.request_trailers == RequestTrailers::Forward;
        let Some(http2) = &mut client.http2 else { return };
        let spare = &mut self.world.clients.spare;
        let pending = http2.pending.get_or_insert_with(|| spare.take_pending());
        if !std::mem::replace(&mut pending.is_due, true) {
            self.world.agenda.add(Task::BeginRequests(key));
        }
        let mut head = pending.spare_heads.pop().unwrap_or_default();
        let Err(error) = read_request(block, is_whole, form, &mut head) else {
            if passes_trailers && !is_whole {
                head.expect_trailers();
            }
            pending.add((stream, is_whole), (head, form), block.text());
            if pending.is_full() {
                self.begin_pending(io, key, u64::MAX);
            }
            return;
        };
        let mut about = Vec::new();
        if let ReadError::Refused(error) = error {
            self.world.log.refused_part(refused_as(error), &head, block.text(), &mut about);
        }
        match error {
            ReadError::Malformed(_) => self.refuse_stream(io, key, stream),
            ReadError::Refused(error) => {
                let (status, why) = (error.status(), refused_as(error));
                let head = Some((&*head, block.text()));
                let about = RefusalFacts { line: &about, head, tls_error: "" };
                self.edge(io).answer_refused(key, stream, status, why, about);
            }
        }
        if let Some(pending) = self.world.clients.pending_of(key) {
            pending.spare_heads.push(head);
        }
    }

    /// Sets the priority of a stream to the one that the client requests.
    pub fn prioritize(&mut self, key: ClientKey, stream: u32, priority: Priority) {
        if let Some(exchange) = self.world.clients.exchange_on_stream(key, stream) {
            self.set_stream_priority(exchange, priority);
        } else if let Some(http2) =
            self.world.clients.all.get_mut(key).and_then(|it| it.http2.as_mut())
            && let Some(pending) = &mut http2.pending
            && let Some(place) = pending.place_of(stream)
        {
            pending.requests[place].priority = Some(priority);
        }
    }

    /// Begins the requests of a read.
    pub fn begin_requests(&mut self, io: &mut EventLoop, key: ClientKey) {
        if let Some(pending) = self.world.clients.pending_of(key) {
            pending.is_due = false;
            self.begin_pending(io, key, SLICE_US);
        }
    }

    /// Begins requests for which a read or the previous turn had no time.
    pub fn begin_more_requests(&mut self, io: &mut EventLoop, key: ClientKey) {
        if let Some(pending) = self.world.clients.pending_of(key) {
            pending.is_listed = false;
            self.begin_pending(io, key, SLICE_US);
        }
    }
}

impl Clients {
    pub fn pending_of(&mut self, key: ClientKey) -> Option<&mut Box<PendingRequests>> {
        self.all.get_mut(key)?.http2.as_mut()?.pending.as_mut()
    }
}

impl Router {
    /// Begins the requests of a client whose streams are still open, for at most `slice_us`.
    fn begin_pending(&mut self, io: &mut EventLoop, key: ClientKey, slice_us: u64) {
        // The clock is not read for a single request.
        let mut until_us = None;
        while let Some(pending) = self.world.clients.pending_of(key) {
            let place = pending.done;
            if place == pending.requests.len() {
                return self.world.clients.forget_pending(key);
            }
            if until_us.is_some_and(|until_us| clock::now().now_us() >= until_us) {
                if !std::mem::replace(&mut pending.is_listed, true) {
                    self.world.agenda.add(Task::BeginMoreRequests(key));
                }
                return;
            }
            pending.done += 1;
            if until_us.is_none() && pending.done < pending.requests.len() {
                until_us = Some(clock::now().now_us().saturating_add(slice_us));
            }
            self.begin_pending_at(io, key, place);
        }
    }
}

impl Clients {
    /// Drops the list after all requests have begun, or stores it for reuse.
    pub fn forget_pending(&mut self, key: ClientKey) {
        let client = self.all.get_mut(key);
        let http2 = client.and_then(|client| client.http2.as_mut());
        if let Some(pending) = http2.and_then(|http2| http2.pending.take()) {
            self.spare.give_pending(pending);
        }
    }
}

impl Router {
    /// The exchange of a stream on which data or trailers have arrived. If its request is pending, it begins here.
    pub fn begun_exchange(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        (stream, tag): (u32, u64),
    ) -> Option<ExchangeKey> {
        exchange_of(tag).or_else(|| {
            let place = self.world.clients.pending_of(key)?.place_of(stream)?;
            self.begin_pending_at(io, key, place);
            self.world.clients.exchange_on_stream(key, stream)
        })
    }

    fn begin_pending_at(&mut self, io: &mut EventLoop, key: ClientKey, place: usize) {
        let Some(pending) = self.world.clients.pending_of(key) else { return };
        let request = &mut pending.requests[place];
        let (stream, is_whole, priority) = (request.stream, request.is_whole, request.priority);
        let (range, form) = (request.text.clone(), request.form);
        let Some(head) = request.head.take() else { return };
        let text = std::mem::take(&mut pending.text);
        if self.world.clients.all.get(key).is_some_and(|it| it.has_open(stream)) {
            self.begin_on_stream(io, key, (stream, is_whole), (&head, form), &text[range]);
            if let Some(priority) = priority {
                self.prioritize(key, stream, priority);
            }
        }
        if let Some(pending) = self.world.clients.pending_of(key) {
            pending.text = text;
            pending.spare_heads.push(head);
        }
    }
}

impl Router {
    fn begin_on_stream(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        (stream, is_whole): (u32, bool),
        (head, form): (&RequestHead, TargetForm),
        text: &[u8],
    ) {
        // The client repeats the request after the handshake (RFC 8470 section 5.2).
        let Some(client) = self.world.clients.all.get(key) else { return };
        if early_data::has_to_wait(client.special.is_early, head) {
            let about = RefusalFacts { line: b"", head: Some((head, text)), tls_error: "" };
            return self.edge(io).answer_refused(key, stream, 425, Termination::TooEarly, about);
        }
        let Some(client) = self.world.client_at_request(key) else { return };
        let is_relayed = client.server.is_tcp;
        if is_relayed || client.server.http.target != form {
            // A reload has made the virtual server a relay, or changed the form of targets. REFUSED_STREAM permits the
            // client to repeat the request.
            if let Some(http2) = &mut client.http2 {
                let (frames, code) = (&mut http2.frames, ErrorCode::REFUSED_STREAM);
                frames.connection.reset(stream, code, &mut frames.out);
            }
            if is_relayed {
                return self.world.clients.announce_end((io, &mut self.world.agenda), key);
            }
            return self.world.clients.list_for_flush(&mut self.world.agenda, key);
        }
        self.begin_request(io, key, stream, head, text);
        if let Some(exchange) = self.world.clients.exchange_on_stream(key, stream)
            && let Some(exchange) = self.exchanges.get_mut(exchange).and_then(Transaction::http_mut)
        {
            exchange.client_ended = is_whole;
        }
    }
}
