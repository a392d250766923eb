//! Clients with HTTP/1. Their bytes are parsed as requests, one at a time; pipelined data waits.

use weir_event_loop::EventLoop;
use weir_exchange::arena::{ClientKey, ExchangeKey};
use weir_exchange::parts::end::End;
use weir_exchange::parts::pieces::{self, AfterData, Pieces};
use weir_exchange::parts::transaction_ends::KeepAliveFacts;
use weir_exchange::termination::Termination;
use weir_exchange::transaction::exchange::Exchange;
use weir_exchange::transaction::{Transaction, trailers};
use weir_http::h1::{BodyError, HeadScan, ParseProgress, parse_request, parse_trailers};

use crate::worker::client::early_data;
use crate::worker::edge::WorkerEdge;
use crate::worker::router::Router;
use crate::worker::state::client::Client;
use crate::worker::state::stage::Stage;
use crate::worker::world::DrainDeadlines;

impl Router {
    /// Continues with a client: processes stored input, and passes the client's FIN to a tunnel that has received all data.
    pub fn client_goes_on(&mut self, io: &mut EventLoop, key: ClientKey) {
        if self.world.clients.all.get(key).is_some_and(Client::has_input) {
            self.client_continue(io, key);
        }
        let Some(client) = self.world.clients.all.get(key).filter(|client| client.ended) else {
            return;
        };
        if let Some(exchange) = client.exchange() {
            self.with_tunnel(io, exchange, |it, at| {
                if at.world.clients.has_ended(&it.ends) {
                    it.handle_client_end(at);
                }
            });
        }
    }

    /// Processes the stored input.
    pub fn client_continue(&mut self, io: &mut EventLoop, key: ClientKey) {
        let Some(client) = self.world.clients.all.get_mut(key) else {
            return;
        };
        let mut input = std::mem::take(&mut client.input);
        let consumed = self.client_input(io, key, &input);
        match self.world.clients.all.get_mut(key) {
            Some(client) if consumed < input.len() => {
                input.drain(..consumed);
                client.input = input;
            }
            _ => io.spares.give(input),
        }
    }
}

impl WorkerEdge<'_> {
    /// Stores input that cannot be processed yet.
    pub fn keep_input(&mut self, key: ClientKey, rest: &[u8]) {
        if rest.is_empty() {
            return;
        }
        if let Some(client) = self.world.clients.all.get_mut(key) {
            if client.input.capacity() == 0 {
                client.input = self.io.spares.take();
            }
            client.input.extend_from_slice(rest);
        }
    }
}

impl Router {
    /// Processes as much of `input` as possible; returns the number of bytes used.
    pub fn client_input(&mut self, io: &mut EventLoop, key: ClientKey, input: &[u8]) -> usize {
        let mut at = 0;
        while let Some(client) = self.world.clients.all.get_mut(key) {
            client.working = true;
            client.collecting = false;
            let rest = &input[at..];
            match client.stage {
                Stage::Leaving => return input.len(),
                Stage::Preface | Stage::Hello | Stage::Idle | Stage::Head
                    if client.awaits_proxy =>
                {
                    match self.proxy_header(io, key, rest) {
                        Some(length) => at += length,
                        None => break,
                    }
                }
                Stage::Preface => {
                    if !self.relay_preface(io, key, rest) {
                        break;
                    }
                }
                Stage::Hello => {
                    if self.client_hello(io, key, rest) {
                        at = input.len();
                    }
                    break;
                }
                Stage::Handshake => break,
                Stage::Streams => {
                    self.http2_received(io, key, rest);
                    at = input.len();
                    break;
                }
                Stage::Idle | Stage::Head if client.may_be_http2 && !rest.is_empty() => {
                    match client.speaks_http2(rest) {
                        Some(true) => self.edge(io).begin_http2(key),
                        Some(false) => {}
                        None => break,
                    }
                }
                Stage::Idle | Stage::Head => {
                    if rest.is_empty() {
                        break;
                    }
                    let token = client.token;
                    if self.world.is_relayed_now(key) {
                        self.edge(io).leave(key, true);
                        return input.len();
                    }
                    // A client that has not received its responses gets no further ones.
                    if io.sockets.queued(token) > 0 {
                        io.sockets.pause(token);
                        break;
                    }
                    let Some((length, is_whole)) = self.client_head(io, key, rest) else { break };
                    at += length;
                    if is_whole && at == input.len() {
                        break;
                    }
                }
                Stage::Exchange(exchange) => {
                    let state = match self.exchanges.get(exchange) {
                        Some(Transaction::Http(state)) => state,
                        Some(Transaction::Tunnel(_)) => {
                            self.with_tunnel(io, exchange, |it, at| it.client_sent(at, rest));
                            return input.len();
                        }
                        Some(Transaction::Relay(_)) => {
                            if !rest.is_empty() {
                                io.sockets.pause(client.token);
                            }
                            break;
                        }
                        None => break,
                    };
                    // The body is not read while the request waits for a member, nor pipelined data until it is complete.
                    if !state.takes_body() {
                        if !rest.is_empty() {
                            io.sockets.pause(client.token);
                        }
                        break;
                    }
                    match self.request_body(io, key, exchange, rest) {
                        Some(0) | None => break,
                        Some(length) => at += length,
                    }
                }
            }
        }
        if let Some(client) = self.world.clients.all.get_mut(key) {
            client.working = false;
        }
        at
    }

    /// Parses a request head and begins its exchange. Returns the length of the head, and whether the request has no
    /// body. `None`: more bytes are needed, or the connection ends.
    fn client_head(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        input: &[u8],
    ) -> Option<(usize, bool)> {
        let client = self.world.clients.all.get_mut(key)?;
        let (limits, form) = (client.server.limits, client.server.http.target);
        let mut head = self.inbox.request_head.take().unwrap_or_default();
        let parsed = parse_request(input, &limits, form, &mut head);
        let length = match parsed {
            // The head is parsed again when the handshake is complete.
            Ok(ParseProgress::Complete { .. })
                if early_data::has_to_wait(client.special.is_early, &head) =>
            {
                None
            }
            Ok(ParseProgress::Complete { length }) => {
                self.begin_request(io, key, 0, &head, &input[..length]);
                Some((length, head.framing.is_empty()))
            }
            Ok(ParseProgress::Partial) => {
                if client.stage == Stage::Idle {
                    client.stage = Stage::Head;
                    let timeout_ms = client.server.http.header_timeout_ms;
                    io.set_deadline(client.token, io.now_ms() + timeout_ms);
                }
                client.collect(HeadScan::request(), input);
                None
            }
            Err(error) => {
                self.edge(io).refuse_malformed(key, error, (&head, input));
                None
            }
        };
        self.inbox.request_head = Some(head);
        length
    }

    /// Processes body data in `input`, and returns the number of bytes used. `None`: the request was answered with an error.
    fn request_body(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        exchange_key: ExchangeKey,
        input: &[u8],
    ) -> Option<usize> {
        let client = self.world.clients.all.get_mut(key)?;
        let mut pieces = Pieces::none();
        if let Err(error) = pieces::gather(&mut client.body, input, &mut pieces) {
            let termination = match error {
                BodyError::TooLarge => Termination::ClientLimit,
                _ => {
                    let counters = &client.server.counters;
                    counters.requests_malformed.add(1);
                    Termination::ClientMalformed
                }
            };
            self.with(io, exchange_key, |it, at| it.respond(at, error.status(), termination));
            return None;
        }
        let mut consumed = pieces.consumed;
        let mut fields = std::mem::take(&mut self.inbox.trailers);
        let mut end = if pieces.next == AfterData::Done { End::Data } else { End::No };
        if pieces.next == AfterData::Trailers {
            let limits = client.server.limits;
            let exchange = self.exchanges.get(exchange_key).and_then(Transaction::http)?;
            let edits = trailers::of_request(&exchange.ends);
            match parse_trailers(&input[consumed..], &limits, edits, &mut fields) {
                Ok(ParseProgress::Complete { length }) => {
                    end = End::Trailers(&fields, &input[consumed..]);
                    client.body.trailers_done();
                    consumed += length;
                }
                Ok(ParseProgress::Partial) => {
                    client.collect(HeadScan::section(), &input[consumed..])
                }
                Err(_) => {
                    self.inbox.trailers = fields;
                    client.server.counters.requests_malformed.add(1);
                    self.with(io, exchange_key, |it, at| {
                        it.respond(at, 400, Termination::ClientMalformed)
                    });
                    return None;
                }
            }
        }
        self.with(io, exchange_key, |it, at| it.client_data(at, (input, &pieces), end));
        self.inbox.trailers = fields;
        Some(consumed)
    }

    /// Continues with the connection after the response of an exchange was queued.
    pub fn response_ended(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        KeepAliveFacts { keep_alive, request_done, client_closes }: KeepAliveFacts,
    ) {
        let Some(client) = self.world.clients.all.get(key) else {
            return;
        };
        let must_leave =
            self.world.is_draining() && !DrainDeadlines::spares_idle(self.world.draining);
        if keep_alive && (must_leave || client.leave_by_ms.is_some()) {
            return self.edge(io).leave(key, true);
        }
        if !keep_alive {
            // A client that has announced its last request expects the close. Any other client may still be sending.
            let clean = request_done && client_closes && client.input.is_empty();
            return self.edge(io).leave(key, !clean);
        }
        let timeout_ms = client.server.http.idle_timeout_ms;
        io.set_deadline(client.token, io.now_ms() + timeout_ms);
        if !client.working {
            self.client_next(io, key);
        }
    }

    /// Continues with a connection between requests: begins the next request if it has arrived, or ends the connection.
    pub fn client_next(&mut self, io: &mut EventLoop, key: ClientKey) {
        let Some(client) = self.world.clients.all.get(key) else { return };
        if io.sockets.queued(client.token) > 0 {
            return; // `client_drained` calls this function again.
        }
        if client.is_waiting() {
            return io.sockets.resume(client.token);
        }
        if client.has_input() {
            self.client_continue(io, key);
        }
        let Some(client) = self.world.clients.all.get(key) else {
            return;
        };
        let token = client.token;
        if let Stage::Exchange(exchange) = client.stage
            && !client.has_input()
            && self
                .exchanges
                .get(exchange)
                .and_then(Transaction::http)
                .is_some_and(|it| it.request.is_whole())
        {
            // The client was paused, or has ended, while the request before this one was served.
            let has_ended = client.ended;
            io.sockets.resume(token);
            if has_ended {
                self.with(io, exchange, |it, at| it.client_finished(at));
            }
            return;
        }
        if let Stage::Exchange(exchange) = client.stage
            && self
                .exchanges
                .get(exchange)
                .and_then(Transaction::http)
                .is_some_and(Exchange::takes_body)
            && !self.with_any(io, exchange, |it, at| it.is_member_backed_up(at))
        {
            // The client may have been paused while this request was pipelined.
            io.sockets.resume(token);
        }
        let Some(client) = self.world.clients.all.get(key) else { return };
        if !matches!(client.stage, Stage::Idle | Stage::Head) {
            return;
        }
        // Pipelined data is processed after the queued responses were sent.
        if client.has_input() && io.sockets.queued(client.token) > 0 {
            return;
        }
        if client.ended {
            self.edge(io).leave(key, false);
        } else {
            io.sockets.resume(client.token);
        }
    }
}
