//! How an exchange ends: with its member's response, with one of weir's own, or without.

use std::rc::Rc;

use weir_config::snapshot::{AccessFormat, Page};
use weir_event_loop::clock::Clock;
use weir_http::edits::FieldEdits;
use weir_http::message::{Framing, Method};

use super::client_connection::Client;
use super::exchange::{After, Exchange, Outcome, Phase};
use super::own_response::OwnAnswer;
use super::relay::count_relay;
use super::world::{Desk, World};
use crate::access_log::{Entry, Termination};
use crate::counters::count_status;

impl Exchange {
    /// The response is whole. The member connection has been dealt with.
    pub fn complete(&mut self, at: &mut Desk<'_>) {
        if self.is_over() {
            return;
        }
        if self.stream.is_some() {
            return self.end_delivery(at, Termination::Complete);
        }
        let request_done = self.request_done;
        let outcome = Outcome {
            keep_alive: self.keep_alive && request_done,
            request_done,
            client_closes: self.client_closes,
        };
        self.end(at, Termination::Complete, After::Response(outcome));
    }

    /// Answers in place of a member, with the virtual server's page for the status if it has one; ends
    /// the exchange.
    pub fn respond(&mut self, at: &mut Desk<'_>, status: u16, termination: Termination) {
        self.respond_adding(at, status, termination, FieldEdits::NONE);
    }

    /// The same with further fields.
    pub fn respond_adding(
        &mut self,
        at: &mut Desk<'_>,
        status: u16,
        termination: Termination,
        mut fields: FieldEdits,
    ) {
        let page = self.error_page(status);
        if let Some(page) = &page {
            let content_type = page.content_type.as_bytes();
            fields.add(b"Content-Type", |out| out.extend_from_slice(content_type));
        }
        let body = page.as_ref().map(|page| &*page.body);
        self.respond_with(at, status, termination, &fields, body);
    }

    /// The page of an exchange's virtual server for a status.
    pub fn error_page(&self, status: u16) -> Option<Page> {
        self.server.settings().error_pages.of(status).cloned()
    }

    /// Answers in place of a member, with these fields and this body (`None`: a line that says the
    /// status); ends the exchange.
    pub fn respond_with(
        &mut self,
        at: &mut Desk<'_>,
        status: u16,
        termination: Termination,
        fields: &FieldEdits,
        body: Option<&[u8]>,
    ) {
        self.drop_member(at);
        let draining = at.world.is_draining();
        if self.is_over() {
            return;
        }
        if self.phase != Phase::AwaitHead {
            return self.truncate(at, termination);
        }
        // The rest of a request body is not waited for: it may be long, and nobody wants it.
        let keep_alive = self.keep_alive && self.request_done && !draining;
        self.status = status;
        self.keep_alive = keep_alive;
        count_status!(self.server.live.counters.of(at.world.id), status);
        let (_client, head_only) = (self.client, self.method == Method::Head);
        let request_done = self.request_done;
        let version = self.version;
        let mut edits = std::mem::take(&mut at.world.response_edits);
        let mut head = at.world.own_head.take().unwrap_or_default();
        head.clear();
        head.status = status;
        self.edit_response(at, &head, b"", &mut edits);
        at.world.own_head = Some(head);
        for (name, value) in fields.added() {
            if !edits.withholds(name) {
                edits.add(name, |out| out.extend_from_slice(value));
            }
        }
        let own = OwnAnswer { status, version, keep_alive, head_only, edits: &edits, body };
        let sent = self.send_own_response(at, &own);
        at.world.response_edits = edits;
        if self.is_over() {
            return;
        }
        self.bytes_sent += sent.bytes;
        self.head_bytes_sent += sent.head_bytes;
        if self.stream.is_some() {
            return self.end_delivery(at, termination);
        }
        let client_closes = self.client_closes;
        let outcome = Outcome { keep_alive, request_done, client_closes };
        self.end(at, termination, After::Response(outcome));
    }

    /// Ends an exchange and its connection without an answer.
    pub fn end_unanswered(
        &mut self,
        at: &mut Desk<'_>,
        termination: Termination,
        must_reset: bool,
    ) {
        self.end(at, termination, After::Cut { termination, must_reset });
    }

    /// Ends an exchange whose response cannot be completed, so that the client notices.
    pub fn truncate(&mut self, at: &mut Desk<'_>, termination: Termination) {
        self.drop_member(at);
        if self.is_over() {
            return;
        }
        let had_connection = self.stream.is_none();
        // An end by closing would make the part look like the whole.
        let must_reset = self.response_framing == Framing::UntilClose || self.is_broken_tunnel();
        // Its stream is reset with it.
        self.end(at, termination, After::Nothing);
        if had_connection {
            at.cut_client(self.client, must_reset);
        }
    }

    /// Ends an exchange because its client is gone; the client connection is the caller's to close.
    pub fn abandon(&mut self, at: &mut Desk<'_>, termination: Termination) {
        self.drop_member(at);
        self.end(at, termination, After::Nothing);
    }

    /// Closes the member connection of an exchange that will not use it to the end.
    fn drop_member(&mut self, at: &mut Desk<'_>) {
        if self.is_over() {
            return;
        }
        if self.member_stream.is_some() {
            self.leave_stream(at);
        } else if let Some(connection) = self.connection.take() {
            let token = at.world.members.get(connection).map(|connection| connection.token);
            // It would take an end for that of the client.
            if let Some(token) = token.filter(|_| self.is_relay())
                && !(self.client_ended && at.io.queued(token) == 0)
            {
                at.io.reset_on_close(token);
            }
            at.close_member(connection);
        }
        self.leave_member(at, None, at.io.now_ms());
    }

    /// Takes an exchange off the books and logs it.
    pub fn end(&mut self, at: &mut Desk<'_>, termination: Termination, after: After) {
        if self.is_over() {
            return;
        }
        self.over = Some(after);
        if let Some(place) = self.place.take() {
            let pool = Rc::clone(&self.pool);
            at.world.leave_line(&pool, place, self.key);
        }
        if let Some(member) = self.reserved.take() {
            self.pool.release(member);
        }
        let clock = at.io.clock();
        let now_us = clock.now_us();
        let total_us = now_us - self.begun_us;
        let counters = self.server.live.counters.of(at.world.id);
        if self.is_relay() {
            count_relay(counters, termination);
        } else {
            counters.requests_active.subtract(1);
            counters.request_duration.record(total_us);
        }
        if termination == Termination::ClientAbort {
            counters.client_aborts.add(1);
        }
        if let Some(client) = at.world.clients.get_mut(self.client) {
            client.exchange_ended();
        }
        if self.log_format != AccessFormat::Off {
            if termination != Termination::Complete && self.stream.is_none() {
                let queued = at.world.clients.get(self.client);
                let queued = queued.map_or(0, |client| at.io.queued(client.token));
                self.bytes_sent = self.bytes_sent.saturating_sub(queued as u64);
            }
            at.world.log_exchange(self, clock, termination, total_us);
        }
        at.io.give_buffer(std::mem::take(&mut self.request));
        at.io.give_buffer(std::mem::take(&mut self.log_request));
        let extras = self.extras.take();
        at.world.give_extras(extras);
        let encoding = self.encoding.take();
        at.world.give_encoding(encoding);
        at.end_stream(self, termination);
    }
}

impl World {
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
            peer: self.clients.get(exchange.client).and_then(Client::address),
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
        self.log.write(&entry, clock, self.counters.of(self.id));
    }
}
