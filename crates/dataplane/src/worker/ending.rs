//! How an exchange ends: with its member's response, with one of weir's own, or without.

use std::rc::Rc;

use weir_config::snapshot::{AccessFormat, Page};
use weir_event_loop::EventLoop;
use weir_event_loop::clock::Clock;
use weir_http::edits::FieldEdits;
use weir_http::message::{Framing, Method};

use super::Worker;
use super::client_connection::Client;
use super::exchange::{Exchange, Outcome, Phase};
use super::own_response::OwnAnswer;
use super::relay::count_relay;
use crate::access_log::{Entry, Termination};
use crate::arena::{ClientKey, ExchangeKey};
use crate::counters::count_status;

impl Worker {
    /// The response is whole. The member connection has been dealt with.
    pub fn complete(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        let Some(exchange) = self.exchanges.get(key) else { return };
        if exchange.stream.is_some() {
            return self.end_delivery(io, key, Termination::Complete);
        }
        let request_done = exchange.request_done;
        let outcome = Outcome {
            keep_alive: exchange.keep_alive && request_done,
            request_done,
            client_closes: exchange.client_closes,
        };
        if let Some(client) = self.end(io, key, Termination::Complete) {
            self.response_ended(io, client, outcome);
        }
    }

    /// Answers in place of a member, with the virtual server's page for the status if it has one; ends
    /// the exchange.
    pub fn respond(
        &mut self,
        io: &mut EventLoop,
        key: ExchangeKey,
        status: u16,
        termination: Termination,
    ) {
        self.respond_adding(io, key, status, termination, FieldEdits::NONE);
    }

    /// The same with further fields.
    pub fn respond_adding(
        &mut self,
        io: &mut EventLoop,
        key: ExchangeKey,
        status: u16,
        termination: Termination,
        mut fields: FieldEdits,
    ) {
        let page = self.error_page(key, status);
        if let Some(page) = &page {
            let content_type = page.content_type.as_bytes();
            fields.add(b"Content-Type", |out| out.extend_from_slice(content_type));
        }
        let body = page.as_ref().map(|page| &*page.body);
        self.respond_with(io, key, status, termination, &fields, body);
    }

    /// The page of an exchange's virtual server for a status.
    pub fn error_page(&self, key: ExchangeKey, status: u16) -> Option<Page> {
        let server = &self.exchanges.get(key)?.server;
        server.settings().error_pages.of(status).cloned()
    }

    /// Answers in place of a member, with these fields and this body (`None`: a line that says the
    /// status); ends the exchange.
    pub fn respond_with(
        &mut self,
        io: &mut EventLoop,
        key: ExchangeKey,
        status: u16,
        termination: Termination,
        fields: &FieldEdits,
        body: Option<&[u8]>,
    ) {
        self.drop_member(io, key);
        let draining = self.world.is_draining();
        let Some(exchange) = self.exchanges.get_mut(key) else { return };
        if exchange.phase != Phase::AwaitHead {
            return self.truncate(io, key, termination);
        }
        // The rest of a request body is not waited for: it may be long, and nobody wants it.
        let keep_alive = exchange.keep_alive && exchange.request_done && !draining;
        exchange.status = status;
        exchange.keep_alive = keep_alive;
        count_status!(exchange.server.live.counters.of(self.world.id), status);
        let (client, head_only) = (exchange.client, exchange.method == Method::Head);
        let request_done = exchange.request_done;
        let version = exchange.version;
        let mut edits = std::mem::take(&mut self.world.response_edits);
        let mut head = self.inbox.response_head.take().unwrap_or_default();
        head.clear();
        head.status = status;
        self.edit_response(key, &head, b"", &mut edits);
        self.inbox.response_head = Some(head);
        for (name, value) in fields.added() {
            if !edits.withholds(name) {
                edits.add(name, |out| out.extend_from_slice(value));
            }
        }
        let own = OwnAnswer { status, version, keep_alive, head_only, edits: &edits, body };
        let sent = self.desk(io).send_own_response(client, Some(key), &own);
        self.world.response_edits = edits;
        let Some(exchange) = self.exchanges.get_mut(key) else { return };
        exchange.bytes_sent += sent.bytes;
        exchange.head_bytes_sent += sent.head_bytes;
        if exchange.stream.is_some() {
            return self.end_delivery(io, key, termination);
        }
        let client_closes = exchange.client_closes;
        if self.end(io, key, termination).is_none() {
            return;
        }
        let outcome = Outcome { keep_alive, request_done, client_closes };
        self.response_ended(io, client, outcome);
    }

    /// Ends an exchange and its connection without an answer.
    pub fn end_unanswered(
        &mut self,
        io: &mut EventLoop,
        key: ExchangeKey,
        termination: Termination,
        must_reset: bool,
    ) {
        let Some(client) = self.end(io, key, termination) else { return };
        // With it go all that are on the same connection.
        self.abandon_streams(io, client, termination);
        self.desk(io).cut_client(client, must_reset);
    }

    /// Ends an exchange whose response cannot be completed, so that the client notices.
    pub fn truncate(&mut self, io: &mut EventLoop, key: ExchangeKey, termination: Termination) {
        self.drop_member(io, key);
        let Some(exchange) = self.exchanges.get(key) else { return };
        let had_connection = exchange.stream.is_none();
        // An end by closing would make the part look like the whole.
        let must_reset =
            exchange.response_framing == Framing::UntilClose || exchange.is_broken_tunnel();
        // Its stream is reset with it.
        if let Some(client) = self.end(io, key, termination)
            && had_connection
        {
            self.desk(io).cut_client(client, must_reset);
        }
    }

    /// Ends an exchange because its client is gone; the client connection is the caller's to close.
    pub fn abandon(&mut self, io: &mut EventLoop, key: ExchangeKey, termination: Termination) {
        self.drop_member(io, key);
        self.end(io, key, termination);
    }

    /// Closes the member connection of an exchange that will not use it to the end.
    fn drop_member(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        let Some(exchange) = self.exchanges.get_mut(key) else { return };
        if exchange.member_stream.is_some() {
            self.leave_stream(io, key);
        } else if let Some(connection) = exchange.connection.take() {
            let token = self.world.members.get(connection).map(|connection| connection.token);
            // It would take an end for that of the client.
            if let Some(token) = token.filter(|_| exchange.is_relay())
                && !(exchange.client_ended && io.queued(token) == 0)
            {
                io.reset_on_close(token);
            }
            self.desk(io).close_member(connection);
        }
        self.leave_member(key, None, io.now_ms());
    }

    /// Takes an exchange off the books and logs it; the client that it was of. `None`: it was over already.
    pub fn end(
        &mut self,
        io: &mut EventLoop,
        key: ExchangeKey,
        termination: Termination,
    ) -> Option<ClientKey> {
        let mut exchange = self.exchanges.remove(key)?;
        if let Some(place) = exchange.place.take() {
            let pool = Rc::clone(&exchange.pool);
            self.world.leave_line(&pool, place, key);
        }
        if let Some(member) = exchange.reserved.take() {
            exchange.pool.release(member);
        }
        let clock = io.clock();
        let now_us = clock.now_us();
        let total_us = now_us - exchange.begun_us;
        let counters = exchange.server.live.counters.of(self.world.id);
        if exchange.is_relay() {
            count_relay(counters, termination);
        } else {
            counters.requests_active.subtract(1);
            counters.request_duration.record(total_us);
        }
        if termination == Termination::ClientAbort {
            counters.client_aborts.add(1);
        }
        if let Some(client) = self.world.clients.get_mut(exchange.client) {
            client.exchange_ended();
        }
        if exchange.log_format != AccessFormat::Off {
            if termination != Termination::Complete && exchange.stream.is_none() {
                let queued = self.world.clients.get(exchange.client);
                let queued = queued.map_or(0, |client| io.queued(client.token));
                exchange.bytes_sent = exchange.bytes_sent.saturating_sub(queued as u64);
            }
            self.log_exchange(&exchange, clock, termination, total_us);
        }
        io.give_buffer(std::mem::take(&mut exchange.request));
        io.give_buffer(std::mem::take(&mut exchange.log_request));
        let extras = exchange.extras.take();
        self.world.give_extras(extras);
        let encoding = exchange.encoding.take();
        self.world.give_encoding(encoding);
        self.desk(io).end_stream(&mut exchange, termination);
        Some(exchange.client)
    }

    fn log_exchange(
        &mut self,
        exchange: &Exchange,
        clock: Clock,
        termination: Termination,
        total_us: u64,
    ) {
        let span = |from: u64, to: u64| {
            if from == 0 { 0 } else { to.saturating_sub(from) }
        };
        let entry = Entry {
            format: exchange.log_format,
            request: &exchange.log_request,
            peer: self.world.clients.get(exchange.client).and_then(Client::address),
            server: &exchange.server.live.name,
            pool: Some(&exchange.pool.live.name),
            member: exchange.last_member.as_ref().map(|member| &*member.live.label),
            status: exchange.status,
            bytes_received: exchange.bytes_received,
            bytes_sent: exchange.bytes_sent,
            head_bytes_sent: exchange.head_bytes_sent,
            retries: exchange.retries,
            // Who got no member has waited all the time.
            queue_us: match exchange.tried_us {
                0 => total_us,
                tried_us => tried_us.saturating_sub(exchange.begun_us),
            },
            connect_us: span(exchange.tried_us, exchange.connected_us),
            first_byte_us: span(exchange.connected_us, exchange.first_byte_us),
            total_us,
            marks: exchange.extras.as_ref().map(|extras| &extras.marks),
            termination,
        };
        self.world.log.write(&entry, clock, self.world.counters.of(self.world.id));
    }
}
