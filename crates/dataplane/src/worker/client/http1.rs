//! Clients with HTTP/1. Their bytes are parsed as requests, one at a time; pipelined data waits.

use weir_connection::client::http1::{BodyEvent, FirstBytes, HeadEvent};
use weir_event_loop::EventLoop;
use weir_exchange::arena::{ClientKey, ExchangeKey};
use weir_exchange::parts::pieces::Pieces;
use weir_exchange::parts::transaction_ends::KeepAliveFacts;
use weir_exchange::termination::Termination;
use weir_exchange::transaction::exchange::Exchange;
use weir_exchange::transaction::{Transaction, trailers};

use crate::worker::client::early_data;
use crate::worker::client::handler::ClientHandler;
use crate::worker::edge::WorkerEdge;
use crate::worker::router::Router;
use crate::worker::state::client::Client;
use crate::worker::state::client_end::ClientEnd;
use crate::worker::state::client_step::ClientStep;
use crate::worker::state::drain_deadlines::DrainDeadlines;
use crate::worker::state::stage::Stage;

/// How much of a client's input was used, and what follows.
enum InputProgress {
    /// So many bytes. More may be possible.
    GoOn(usize),
    /// So many bytes. The rest waits for an event.
    Wait(usize),
    /// The connection ends.
    End(ClientEnd),
}

impl Client {
    /// What becomes of an HTTP/1 connection after the response of its exchange was queued. `draining`: the deadlines of the process, if
    /// it drains.
    #[inline]
    pub fn answered(
        &self,
        io: &mut EventLoop,
        KeepAliveFacts { keep_alive, request_done, client_closes }: KeepAliveFacts,
        draining: Option<DrainDeadlines>,
    ) -> ClientStep {
        let must_leave = draining.is_some() && !DrainDeadlines::spares_idle(draining);
        if keep_alive && (must_leave || self.leave_by_ms.is_some()) {
            return ClientStep::End(ClientEnd::ORDERLY);
        }
        if !keep_alive {
            // A client that has announced its last request expects the close. Any other client may still be sending.
            let clean = request_done && client_closes && !self.has_input();
            return ClientStep::End(ClientEnd::Orderly { may_send: !clean });
        }
        io.set_deadline(self.token, io.now_ms() + self.server.http.idle_timeout_ms);
        match self.http1.is_working() {
            true => ClientStep::Nothing,
            false => ClientStep::Next,
        }
    }
}

impl Router {
    /// Processes the stored input.
    pub fn client_continue(&mut self, io: &mut EventLoop, key: ClientKey) {
        let Some(client) = self.world.clients.all.get_mut(key) else { return };
        if !client.has_input() {
            return;
        }
        let input = client.http1.take_input();
        let consumed = self.client_input(io, key, &input);
        let unused = match self.world.clients.all.get_mut(key) {
            Some(client) => client.http1.put_back(input, consumed),
            None => Some(input),
        };
        unused.into_iter().for_each(|buffer| io.spares.give(buffer));
    }

    /// Processes as much of `input` as possible; returns the number of bytes used.
    pub fn client_input(&mut self, io: &mut EventLoop, key: ClientKey, input: &[u8]) -> usize {
        let (mut at, is_draining) = (0, self.world.is_draining());
        while let Some(client) = self.world.clients.all.get_mut(key) {
            client.http1.begin_work();
            let rest = &input[at..];
            let used = match client.stage {
                Stage::Leaving => InputProgress::Wait(rest.len()),
                Stage::Preface | Stage::Hello | Stage::Idle | Stage::Head
                    if client.http1.awaits_proxy =>
                {
                    let handler = self.world.client_handler(io, key);
                    let read = handler.map_or(Ok(None), |mut it| it.read_proxy_header(rest));
                    read.map_or_else(InputProgress::End, |it| {
                        it.map_or(InputProgress::Wait(0), InputProgress::GoOn)
                    })
                }
                Stage::Preface => {
                    self.world.refresh_server(key);
                    let handler = self.world.client_handler(io, key);
                    let step = handler.and_then(|mut it| it.read_preface(rest));
                    let Some(step) = step else { break };
                    self.client_step(io, key, step);
                    InputProgress::GoOn(0)
                }
                Stage::Hello => match WorkerEdge::of(io, &mut self.world).client_hello(key, rest) {
                    Ok(true) => InputProgress::Wait(rest.len()),
                    Ok(false) => InputProgress::Wait(0),
                    Err(how) => InputProgress::End(how),
                },
                Stage::Handshake => InputProgress::Wait(0),
                Stage::Streams => {
                    self.http2_received(io, key, rest);
                    InputProgress::Wait(rest.len())
                }
                Stage::Idle | Stage::Head if rest.is_empty() => InputProgress::Wait(0),
                Stage::Idle | Stage::Head if client.http1.may_be_http2() => {
                    let first = client.http1.first_bytes(rest);
                    match first {
                        FirstBytes::Request => {}
                        FirstBytes::Preface => {
                            client.begin_http2((io, &mut self.world.agenda), key, is_draining);
                        }
                        FirstBytes::More => client.stage = Stage::Head,
                    }
                    let goes_on = first != FirstBytes::More;
                    if goes_on { InputProgress::GoOn(0) } else { InputProgress::Wait(0) }
                }
                Stage::Idle | Stage::Head => self.client_head(io, key, rest),
                Stage::Exchange(exchange) => self.request_body(io, key, exchange, rest),
            };
            match used {
                InputProgress::GoOn(bytes) => at += bytes,
                InputProgress::Wait(bytes) => {
                    at += bytes;
                    break;
                }
                InputProgress::End(how) => {
                    WorkerEdge::of(io, &mut self.world).end_client(key, how);
                    at = input.len();
                    break;
                }
            }
        }
        if let Some(client) = self.world.clients.all.get_mut(key) {
            client.http1.end_work();
        }
        at
    }

    /// Reads a request head and begins its exchange.
    fn client_head(&mut self, io: &mut EventLoop, key: ClientKey, input: &[u8]) -> InputProgress {
        let Some(client) = self.world.client_at_request(key) else { return InputProgress::Wait(0) };
        if client.server.is_tcp {
            return InputProgress::End(ClientEnd::ORDERLY);
        }
        // A client that has not received its responses gets no further ones.
        if io.sockets.queued(client.token) > 0 {
            io.sockets.pause(client.token);
            return InputProgress::Wait(0);
        }
        let mut head = self.inbox.request_head.take().unwrap_or_default();
        let (limits, form) = (&client.server.limits, client.server.http.target);
        let used = match client.http1.read_head(input, limits, form, &mut head) {
            // The head is read again when the handshake is complete.
            HeadEvent::Head { .. } if early_data::has_to_wait(client.is_early, &head) => {
                InputProgress::Wait(0)
            }
            HeadEvent::Head { length } => {
                self.begin_request(io, key, 0, &head, &input[..length]);
                match head.framing.is_empty() && length == input.len() {
                    true => InputProgress::Wait(length),
                    false => InputProgress::GoOn(length),
                }
            }
            HeadEvent::More => {
                if client.stage == Stage::Idle {
                    client.stage = Stage::Head;
                    let timeout_ms = client.server.http.header_timeout_ms;
                    io.set_deadline(client.token, io.now_ms() + timeout_ms);
                }
                InputProgress::Wait(0)
            }
            HeadEvent::Malformed(error) => {
                let handler = self.world.client_handler(io, key);
                let refuse = |mut it: ClientHandler<'_>| it.refuse_malformed(error, &head, input);
                handler.map_or(InputProgress::Wait(0), |it| InputProgress::End(refuse(it)))
            }
        };
        self.inbox.request_head = Some(head);
        used
    }

    /// Passes what comes behind a request's head to its transaction.
    fn request_body(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        exchange_key: ExchangeKey,
        input: &[u8],
    ) -> InputProgress {
        let Some(client) = self.world.clients.all.get_mut(key) else {
            return InputProgress::Wait(0);
        };
        let exchange = match self.exchanges.get(exchange_key) {
            // The body is not read while the request waits for a member, nor pipelined data until it is complete.
            Some(Transaction::Http(exchange)) if exchange.takes_body() => exchange,
            Some(Transaction::Tunnel(_)) => {
                self.with_any(io, exchange_key, |it, at| {
                    it.with_tunnel(|it| it.client_sent(at, input))
                });
                return InputProgress::Wait(input.len());
            }
            Some(_) if !input.is_empty() => {
                io.sockets.pause(client.token);
                return InputProgress::Wait(0);
            }
            Some(_) | None => return InputProgress::Wait(0),
        };
        let (mut pieces, mut fields) = (Pieces::none(), std::mem::take(&mut self.inbox.trailers));
        let server = &client.server;
        let rules = (&server.limits, trailers::of_request(&exchange.ends));
        let refused = match client.http1.read_body(input, rules, &mut pieces, &mut fields) {
            BodyEvent::Data { end, consumed } => {
                self.with(io, exchange_key, |it, at| it.client_data(at, (input, &pieces), end));
                Ok(consumed)
            }
            BodyEvent::TooLarge => Err((413, Termination::ClientLimit)),
            BodyEvent::Malformed => {
                server.counters.requests_malformed.add(1);
                Err((400, Termination::ClientMalformed))
            }
        };
        self.inbox.trailers = fields;
        match refused {
            Ok(0) => InputProgress::Wait(0),
            Ok(bytes) => InputProgress::GoOn(bytes),
            Err((status, why)) => {
                self.with(io, exchange_key, |it, at| it.respond(at, status, why));
                InputProgress::Wait(0)
            }
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
        self.client_continue(io, key);
        let Some(client) = self.world.clients.all.get(key) else { return };
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
            WorkerEdge::of(io, &mut self.world)
                .end_client(key, ClientEnd::Orderly { may_send: false });
        } else {
            io.sockets.resume(client.token);
        }
    }
}
