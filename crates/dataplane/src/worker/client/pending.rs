//! Delayed start of HTTP/2 requests: after all frames of the same read were parsed, and for a limited time per turn.
//!
//! An attacker that opens streams only to reset them (CVE-2023-44487), or to make the server reset them (CVE-2025-8671),
//! usually sends both within one read. A request whose stream is already closed then uses neither a member nor a place in a
//! queue. A request begins immediately if data or trailers for it arrive.

use weir_config::snapshot::RequestTrailers;
use weir_connection::client::pending::{BegunRequest, PendingRequests};
use weir_event_loop::{EventLoop, clock};
use weir_exchange::arena::ClientKey;
use weir_exchange::termination::Termination;
use weir_exchange::transaction::Transaction;
use weir_http::h2::hpack::HeaderBlock;
use weir_http::h2::message::ReadError;

use crate::worker::agenda::Task;
use crate::worker::client::early_data;
use crate::worker::client::unserved_log::RefusalFacts;
use crate::worker::router::Router;
use crate::worker::state::clients::Clients;
use crate::worker::state::stage::Stage;
use crate::worker::world::World;

/// Maximum time per turn to begin requests of one client. The others begin in the next turn.
const SLICE_US: u64 = 250;

/// When requests begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    /// At the end of the read.
    AtEndOfRead,
    /// In the next turn, because the read or the turn before had no time for them.
    InNextTurn,
    /// At once, because they are many.
    AtOnce,
}

/// What becomes of a received request head.
pub enum AddedRequest {
    /// The request begins later.
    Waits,
    /// All pending requests begin now.
    Full,
    /// The head is malformed: its stream is reset.
    Malformed,
    /// The request was answered.
    Answered,
}

impl World {
    /// Adds a request whose head is in `block` to those that begin at the end of this read, or refuses it.
    pub fn add_request(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        (stream, is_whole): (u32, bool),
        block: &mut HeaderBlock,
    ) -> AddedRequest {
        let Self { clients, agenda, .. } = self;
        let Some(client) = clients.all.get_mut(key) else { return AddedRequest::Waits };
        let settings = &client.server.http;
        let passes_trailers = settings.request_trailers == RequestTrailers::Forward;
        let rules = (settings.target, passes_trailers);
        let Some(http2) = &mut client.http2 else { return AddedRequest::Waits };
        let pending = http2.pending.get_or_insert_with(|| clients.spare.take_pending());
        if !std::mem::replace(&mut pending.is_due, true) {
            agenda.add(Task::BeginRequests(key));
        }
        let Err((error, head)) = pending.add((stream, is_whole), block, rules) else {
            return if pending.is_full() { AddedRequest::Full } else { AddedRequest::Waits };
        };
        let added = match error {
            ReadError::Malformed(_) => AddedRequest::Malformed,
            ReadError::Refused(error) => {
                if let Some(mut client) = self.client_handler(io, key) {
                    client.refuse_head_on_stream(stream, error, &head, block.text());
                }
                AddedRequest::Answered
            }
        };
        if let Some(pending) = self.clients.pending_of(key) {
            pending.spare_heads.push(head);
        }
        added
    }

    /// Whether a pending request may begin. If not, it is refused. Otherwise, the client has the virtual server of the latest table.
    fn may_begin(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        request: &BegunRequest,
        text: &[u8],
    ) -> bool {
        let stream = request.stream;
        let Some(mut handler) = self.client_handler(io, key) else { return false };
        if early_data::has_to_wait(handler.client.is_early, &request.head) {
            // The client repeats the request after the handshake (RFC 8470 section 5.2).
            let head = Some((&*request.head, text));
            let about = RefusalFacts { line: b"", head, tls_error: "" };
            handler.refuse_on_stream(stream, 425, Termination::TooEarly, about);
            return false;
        }
        self.refresh_server(key);
        let Self { clients, agenda, .. } = self;
        let Some(client) = clients.all.get_mut(key) else { return false };
        let is_relayed = client.server.is_tcp;
        if !is_relayed && client.server.http.target == request.form {
            return true;
        }
        // A reload has made the virtual server a relay, or changed the form of targets.
        client.http2.iter_mut().for_each(|http2| http2.refuse_for_repeat(stream));
        match is_relayed {
            true => client.announce_end((io, agenda), key),
            false => client.list_for_flush(agenda, key),
        }
        false
    }
}

impl Clients {
    /// The requests of a client that have not begun.
    pub fn pending_of(&mut self, key: ClientKey) -> Option<&mut PendingRequests> {
        self.http2_mut(key)?.pending.as_deref_mut()
    }

    /// Drops the list after all requests have begun, or stores it for reuse.
    fn forget_pending(&mut self, key: ClientKey) {
        if let Some(pending) = self.http2_mut(key).and_then(|http2| http2.pending.take()) {
            self.spare.give_pending(pending);
        }
    }
}

impl Router {
    /// Begins the requests of a client whose streams are still open, for a limited time unless they begin at once.
    pub fn begin_pending(&mut self, io: &mut EventLoop, key: ClientKey, begins: Begins) {
        let Some(pending) = self.world.clients.pending_of(key) else { return };
        match begins {
            Begins::AtEndOfRead => pending.is_due = false,
            Begins::InNextTurn => pending.is_listed = false,
            Begins::AtOnce => {}
        }
        let slice_us = if begins == Begins::AtOnce { u64::MAX } else { SLICE_US };
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

    /// Begins the pending request at this index, if its stream is still open.
    pub fn begin_pending_at(&mut self, io: &mut EventLoop, key: ClientKey, place: usize) {
        let Some(client) = self.world.clients.all.get_mut(key) else { return };
        let Some(http2) = &mut client.http2 else { return };
        let Some((request, text)) = http2.pending.as_mut().and_then(|it| it.take(place)) else {
            return;
        };
        if client.stage == Stage::Streams && http2.has_open(request.stream) {
            let its_text = &text[request.text.clone()];
            if self.world.may_begin(io, key, &request, its_text) {
                self.begin_request(io, key, request.stream, &request.head, its_text);
                let http2 = self.world.clients.http2_mut(key);
                if let Some(exchange) = http2.and_then(|it| it.exchange_on(request.stream))
                    && let Some(exchange) =
                        self.exchanges.get_mut(exchange).and_then(Transaction::http_mut)
                {
                    exchange.client_ended = request.is_whole;
                }
            }
            if let Some(priority) = request.priority {
                let http2 = self.world.clients.http2_mut(key);
                http2.into_iter().for_each(|it| it.prioritize(request.stream, priority));
            }
        }
        if let Some(pending) = self.world.clients.pending_of(key) {
            pending.put_back(request, text);
        }
    }
}
