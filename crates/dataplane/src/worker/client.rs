//! The client side of HTTP/1: bytes of a client connection become exchanges, one at a time.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use rustix::io::Errno;
use weir_config::snapshot::AccessFormat;
use weir_core::limit::Admission;
use weir_event_loop::{Descriptor, EventLoop, Owner, Token};
use weir_http::h1::{
    BodyDecoder, BodyError, HeadScan, Parsed, parse_request, parse_trailers, write_request_head,
};
use weir_http::h2::frame::PREFACE;
use weir_http::message::{Framing, Method};
use weir_http::proxy_protocol::{self, ProxyHeader};

use super::Worker;
use super::body::{self, Next, Pieces};
use super::client_connection::Client;
use super::considered::{Considered, Ending};
use super::early_data;
use super::end::End;
use super::ends::Outcome;
use super::exchange::Begin;
use super::handshake::HandshakePlace;
use super::own_response::OwnBytes;
use super::pace::Pace;
use super::parked::Parked;
use super::request::Request;
use super::stage::Stage;
use super::trailers;
use super::transaction::Transaction;
use super::websocket;
use super::world::{Desk, World};
use crate::access_log::Termination;
use crate::arena::{ClientKey, ExchangeKey, ListenerKey};
use crate::pool::Wish;
use crate::table::LocalServer;
use crate::traffic::HeldByConnection;

/// Whether a client has to begin with a header of the PROXY protocol: those who may tell of others.
fn expects_proxy_header(server: &LocalServer, peer: Option<SocketAddr>) -> bool {
    let settings = &server.settings().client_address;
    settings.proxy_protocol && peer.is_some_and(|peer| settings.trust.contains(peer.ip()))
}

impl Worker {
    /// Takes on an accepted connection.
    pub fn accept_client(
        &mut self,
        io: &mut EventLoop,
        listener: ListenerKey,
        socket: Descriptor,
        peer: Option<SocketAddr>,
    ) -> Result<(), Errno> {
        let Some(listener) = self.world.listeners.get(listener) else { return Ok(()) };
        let (server, listen) = (Rc::clone(&listener.server), Rc::clone(&listener.address));
        let token = io.add_stream(socket, Owner::Client(self.world.clients.next_key().into()))?;
        let counters = server.live.counters.of(self.world.id);
        counters.connections_accepted.add(1);
        self.world.counters.of(self.world.id).connections.add(1);
        let before = server.live.connection_opened(self.world.id);
        let limits = &server.settings().limits;
        let refused = limits.connections_max.is_some_and(|limit| before >= limit);
        let is_above_rate = limits.connections.as_ref().is_some_and(|rate| {
            let admission = server.live.used.connections.admit(rate, io.clock().now_us());
            matches!(admission, Admission::Refuse { .. })
        });
        let held = match (&server.traffic, peer) {
            (Some(traffic), Some(peer)) if !refused && !is_above_rate => {
                traffic.admit_connection(peer.ip(), io.clock())
            }
            _ => Some(HeldByConnection::default()),
        };
        let is_limited = is_above_rate || held.is_none();
        let key = self.world.clients.insert(Client {
            token,
            peer,
            server: Rc::clone(&server),
            generation: self.world.table.generation,
            listen,
            leave_by_ms: None,
            counted: !refused && !is_limited,
            _held: held.unwrap_or_default(),
            proxied: None,
            awaits_proxy: expects_proxy_header(&server, peer),
            tls: None,
            handshake: HandshakePlace::take(&server),
            is_early: false,
            server_name: "".into(),
            hello_bytes: 0,
            stage: Stage::first(&server),
            ended: false,
            working: false,
            collecting: false,
            input: Vec::new(),
            scan: HeadScan::request(),
            body: BodyDecoder::new(Framing::None, None),
            may_be_http2: server.http.http2 && server.tls.is_none(),
            http2: None,
        });
        if is_limited {
            counters.connections_limited.add(1);
            server.live.connection_closed(self.world.id);
            self.desk(io).close_client(key);
            return Ok(());
        }
        if refused {
            counters.connections_refused.add(1);
            server.live.connection_closed(self.world.id);
            if server.settings().service.is_tcp() {
                self.desk(io).refuse_relay(key, Termination::ConnectionLimit);
                return Ok(());
            }
            self.desk(io).refuse(key, 503, Termination::ConnectionLimit);
            return Ok(());
        }
        // The first request has the time of a head to begin, as any further one has.
        let relay = server.settings().service.relay();
        let mut timeout_ms =
            relay.map_or(server.http.header_timeout_ms, |relay| relay.hello_timeout_ms);
        if let Some(tls) = &server.settings().tls {
            if self.world.clients.get(key).is_some_and(|client| client.handshake.is_none()) {
                counters.handshakes_limited.add(1);
                self.desk(io).close_client(key);
                return Ok(());
            }
            timeout_ms = tls.handshake_timeout_ms;
        }
        io.set_deadline(token, io.now_ms() + timeout_ms);
        if self.world.clients.get(key).is_some_and(|client| client.stage == Stage::Preface) {
            // Most need not say anything first.
            self.client_input(io, key, b"");
        }
        Ok(())
    }

    /// Bytes came from a client.
    pub fn client_received(&mut self, io: &mut EventLoop, key: ClientKey, bytes: &mut [u8]) {
        let Some(client) = self.world.clients.get_mut(key) else { return };
        client.server.live.counters.of(self.world.id).bytes_received.add(bytes.len() as u64);
        if client.stage == Stage::Streams {
            return self.http2_received(io, key, bytes);
        }
        if let Some(exchange) = client.exchange()
            && self.exchanges.get(exchange).is_some_and(Transaction::is_tunnel)
        {
            return self.with_tunnel(io, exchange, |it, at| it.client_sent(at, bytes));
        }
        if client.input.is_empty() {
            let consumed = self.client_input(io, key, bytes);
            self.desk(io).keep_input(key, &bytes[consumed..]);
        } else {
            client.input.extend_from_slice(bytes);
            let limits = client.server.limits;
            if !client.collecting || client.scan.scan(&client.input, &limits) {
                self.client_continue(io, key);
            }
        }
    }

    /// A client may send on: what it has sent already is looked at, and the end that may be behind it.
    pub fn client_goes_on(&mut self, io: &mut EventLoop, key: ClientKey) {
        if self.world.clients.get(key).is_some_and(Client::has_input) {
            self.client_continue(io, key);
        }
        let Some(client) = self.world.clients.get(key).filter(|client| client.ended) else {
            return;
        };
        if let Some(exchange) = client.exchange() {
            self.with_tunnel(io, exchange, |it, at| it.heed_end(at));
        }
    }

    /// Works on the bytes that were kept.
    pub fn client_continue(&mut self, io: &mut EventLoop, key: ClientKey) {
        let Some(client) = self.world.clients.get_mut(key) else {
            return;
        };
        let mut input = std::mem::take(&mut client.input);
        let consumed = self.client_input(io, key, &input);
        match self.world.clients.get_mut(key) {
            Some(client) if consumed < input.len() => {
                input.drain(..consumed);
                client.input = input;
            }
            _ => io.give_buffer(input),
        }
    }
}

impl Desk<'_> {
    /// Keeps bytes that cannot be used yet.
    fn keep_input(&mut self, key: ClientKey, rest: &[u8]) {
        if rest.is_empty() {
            return;
        }
        if let Some(client) = self.world.clients.get_mut(key) {
            if client.input.capacity() == 0 {
                client.input = self.io.take_buffer();
            }
            client.input.extend_from_slice(rest);
        }
    }
}

impl Worker {
    /// Uses what it can of `input`; returns how many bytes.
    fn client_input(&mut self, io: &mut EventLoop, key: ClientKey, input: &[u8]) -> usize {
        let mut at = 0;
        while let Some(client) = self.world.clients.get_mut(key) {
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
                    let length = rest.len().min(PREFACE.len());
                    client.may_be_http2 = false;
                    if rest[..length] != PREFACE[..length] {
                        continue;
                    }
                    if length == PREFACE.len() {
                        self.desk(io).begin_http2(key);
                        continue;
                    }
                    client.may_be_http2 = true;
                    client.stage = Stage::Head;
                    break;
                }
                Stage::Idle | Stage::Head => {
                    if rest.is_empty() {
                        break;
                    }
                    let token = client.token;
                    if self.world.is_relayed_now(key) {
                        self.desk(io).leave(key, true);
                        return input.len();
                    }
                    // Responses that the client does not take are not followed by more of them.
                    if io.queued(token) > 0 {
                        io.pause(token);
                        break;
                    }
                    match self.client_head(io, key, rest) {
                        Some(length) => at += length,
                        None => break,
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
                                io.pause(client.token);
                            }
                            break;
                        }
                        None => break,
                    };
                    // What waits for a member is not read on, nor is what comes behind a request.
                    if state.request.is_whole
                        || state.ends.parked.waits()
                        || state.has_lost_its_member()
                    {
                        if !rest.is_empty() {
                            io.pause(client.token);
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
        if let Some(client) = self.world.clients.get_mut(key) {
            client.working = false;
        }
        at
    }

    /// Reads the header of the PROXY protocol. `None`: more bytes are needed, or it is over.
    fn proxy_header(&mut self, io: &mut EventLoop, key: ClientKey, input: &[u8]) -> Option<usize> {
        let client = self.world.clients.get_mut(key)?;
        match proxy_protocol::parse(input) {
            Ok(proxy_protocol::Parsed::Partial) => {
                // It is short; whatever comes next is looked at with it.
                None
            }
            Ok(proxy_protocol::Parsed::Complete { length, header }) => {
                client.awaits_proxy = false;
                if let ProxyHeader::Proxied(proxied) = header {
                    client.proxied = Some(proxied.source);
                }
                Some(length)
            }
            Err(_) => {
                if client.server.settings().service.is_tcp() {
                    self.desk(io).refuse_relay(key, Termination::ClientMalformed);
                    return None;
                }
                // No answer: who does not speak the protocol that was agreed on would not understand it.
                client.server.live.counters.of(self.world.id).requests_malformed.add(1);
                let (sent, why) = (OwnBytes::default(), Termination::ClientMalformed);
                self.desk(io).log_without_request(key, 0, sent, why);
                self.desk(io).close_client(key);
                None
            }
        }
    }

    /// Parses a request head and starts its exchange. `None`: more bytes are needed, or it is over.
    fn client_head(&mut self, io: &mut EventLoop, key: ClientKey, input: &[u8]) -> Option<usize> {
        let client = self.world.clients.get_mut(key)?;
        let (limits, form) = (client.server.limits, client.server.http.path);
        let mut head = self.inbox.request_head.take().unwrap_or_default();
        let parsed = parse_request(input, &limits, form, &mut head);
        let length = match parsed {
            // It comes again when the handshake is done.
            Ok(Parsed::Complete { .. }) if early_data::has_to_wait(client.is_early, &head) => None,
            Ok(Parsed::Complete { length }) => {
                self.begin_request(io, key, 0, &head, &input[..length]);
                Some(length)
            }
            Ok(Parsed::Partial) => {
                if client.stage == Stage::Idle {
                    client.stage = Stage::Head;
                    let timeout_ms = client.server.http.header_timeout_ms;
                    io.set_deadline(client.token, io.now_ms() + timeout_ms);
                }
                client.collect(HeadScan::request(), input);
                None
            }
            Err(error) => {
                self.desk(io).refuse_malformed(key, error, (&head, input));
                None
            }
        };
        self.inbox.request_head = Some(head);
        length
    }

    /// Starts the exchange of a request, on `stream` of the client's connection; 0: on all of that (HTTP/1).
    pub fn begin_request(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        stream: u32,
        head: &weir_http::message::RequestHead,
        input: &[u8],
    ) {
        self.world.refresh_server(key);
        let draining = self.world.is_draining();
        let Some(client) = self.world.clients.get_mut(key) else { return };
        let server = Rc::clone(&client.server);
        // Where there are rules it is judged with them.
        let is_misdirected = server.traffic.is_none()
            && server.tls.is_some()
            && self.world.is_misdirected(key, &server, head, input);
        let Some(client) = self.world.clients.get_mut(key) else { return };
        let body_size_max = server.http.body_size_max;
        client.body = BodyDecoder::new(head.framing, body_size_max);
        let mut decision = self.world.decision.take().unwrap_or_default();
        let considered = server.traffic.as_ref().and_then(|traffic| {
            let request = (head, input);
            let mut desk = Desk { io: &mut *io, world: &mut self.world };
            let considered = desk.consider(key, &server, traffic, request, &mut decision)?;
            // As its own snapshot numbers it: the table in force may have another by now.
            Some((Rc::clone(traffic.pool(considered.pool)), considered))
        });
        let codings = self.world.note_codings(&server, head, input, &mut decision);
        if head.extended_connect {
            // RFC 8441 section 5: only HTTP/1.1 has a key, and its member wants one.
            decision.request.fields.add(b"Sec-WebSocket-Key", websocket::write_key);
        }
        let Some(client) = self.world.clients.get(key) else { return };
        early_data::tell_member(client.is_early, head, input, &mut decision.request);
        trailers::announce(&server, head, &mut decision.request);
        let mut text = io.take_buffer();
        write_request_head(head, input, &decision.request, &mut text);
        let mut log_request = Vec::new();
        let log_format = self.world.log.format();
        if log_format != AccessFormat::Off {
            log_request = io.take_buffer();
            self.world.log.request_part(head, input, &mut log_request);
        }
        let keep_alive = head.keep_alive && !draining && client.leave_by_ms.is_none();
        let client_closes = !head.keep_alive;
        let (pool, wish, not_before_us, extras, ending) = match considered {
            None => (Rc::clone(&server.pool), Wish::Any, 0, None, None),
            Some((pool, considered)) => {
                let Considered { wish, not_before_us, extras, ending, .. } = considered;
                (pool, wish, not_before_us, extras, ending)
            }
        };
        let extras = self.world.keep_request_edits(&server, head, &decision.request, extras);
        let on_stream = if stream == 0 { None } else { self.take_stream(key, stream) };
        let exchange = self.begin(
            io,
            Begin {
                client: key,
                stream: on_stream,
                pool,
                wish,
                extras,
                codings,
                server,
                keep_alive,
                client_closes,
                pace: Pace::of_request(head, input),
                request: Request::new(text, head, input),
                log_format,
                log_request,
            },
        );
        if stream == 0 {
            if let Some(client) = self.world.clients.get_mut(key) {
                client.stage = Stage::Exchange(exchange);
            }
        } else {
            self.take_to_stream(exchange, head, input);
        }
        let ending = if is_misdirected { Some(Ending::Misdirected) } else { ending };
        if let Some(ending) = ending {
            if not_before_us > io.clock().now_us() {
                if let Some(exchange) =
                    self.exchanges.get_mut(exchange).and_then(Transaction::http_mut)
                {
                    exchange.ends.parked = Parked::Until(Some((ending, decision)));
                }
                return self.with(io, exchange, |it, at| it.hold_back(at, not_before_us));
            }
            self.with(io, exchange, |it, at| it.end_early(at, ending, &mut decision));
        }
        decision.clear();
        self.world.decision = Some(decision);
        if ending.is_some() {
            return;
        }
        if let (Framing::Length(length), Some(limit)) = (head.framing, body_size_max)
            && length > limit
        {
            return self.with(io, exchange, |it, at| it.respond(at, 413, Termination::ClientLimit));
        }
        if head.max_forwards == Some(0) {
            // Weir is the final recipient: it knows no methods to list, and reflects no request.
            let status = if head.method == Method::Trace { 501 } else { 204 };
            return self.with(io, exchange, |it, at| it.respond(at, status, Termination::Complete));
        }
        if head.framing.is_empty() {
            self.with(io, exchange, |it, at| it.ends.clear_client_deadline(at));
        } else {
            self.with(io, exchange, |it, at| it.await_client(at));
        }
        if not_before_us > io.clock().now_us() {
            return self.with(io, exchange, |it, at| it.hold_back(at, not_before_us));
        }
        // A head with a body waits for the first bytes of it, which are often here already.
        if self.with(io, exchange, |it, at| it.dispatch(at)) && head.framing.is_empty() {
            self.with(io, exchange, |it, at| it.send_request_head(at));
        }
    }
}

impl World {
    /// The virtual server of the newest table: each request takes the newest at its head.
    pub fn refresh_server(&mut self, key: ClientKey) {
        let Some(client) = self.clients.get(key) else { return };
        if client.generation == self.table.generation {
            return;
        }
        let Some(server) = self.server_of(client).cloned() else {
            return;
        };
        let Some(client) = self.clients.get_mut(key) else { return };
        client.generation = self.table.generation;
        // Another one, or one that went and came back under its name: the connection counts there.
        if client.counted && !Arc::ptr_eq(&server.live, &client.server.live) {
            client.server.live.connection_closed(self.id);
            server.live.connection_opened(self.id);
        }
        client.server = server;
    }

    /// The virtual server in the table in force that serves a client: the one that listens where it
    /// came in, else the one that it knows.
    fn server_of(&self, client: &Client) -> Option<&Rc<LocalServer>> {
        let here = self.table.server_at(&client.listen);
        here.or_else(|| self.table.server(&client.server.live.name))
    }

    /// Whether no virtual server serves a client any more.
    pub fn has_lost_its_server(&self, client: &Client) -> bool {
        client.generation != self.table.generation && self.server_of(client).is_none()
    }

    /// Whether a client has shown in its handshake that it is let in where now others are.
    pub fn has_handshake_of_others(&self, client: &Client) -> bool {
        let server = self.server_of(client).unwrap_or(&client.server);
        match (&client.tls, &server.tls) {
            (Some(passed), Some(tls)) => passed.is_of_others(&tls.lets_in),
            _ => false,
        }
    }
}

impl Worker {
    /// Passes on what `input` has of a request body; returns the bytes used.
    fn request_body(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        exchange_key: ExchangeKey,
        input: &[u8],
    ) -> Option<usize> {
        let client = self.world.clients.get_mut(key)?;
        let mut pieces = Pieces::none();
        if let Err(error) = body::gather(&mut client.body, input, &mut pieces) {
            let termination = match error {
                BodyError::TooLarge => Termination::ClientLimit,
                _ => {
                    let counters = client.server.live.counters.of(self.world.id);
                    counters.requests_malformed.add(1);
                    Termination::ClientMalformed
                }
            };
            self.with(io, exchange_key, |it, at| it.respond(at, error.status(), termination));
            return None;
        }
        let mut consumed = pieces.consumed;
        let mut fields = std::mem::take(&mut self.inbox.trailers);
        let mut end = if pieces.next == Next::Done { End::Data } else { End::No };
        if pieces.next == Next::Trailers {
            let limits = client.server.limits;
            let exchange = self.exchanges.get(exchange_key).and_then(Transaction::http)?;
            let edits = exchange.request_trailers();
            match parse_trailers(&input[consumed..], &limits, edits, &mut fields) {
                Ok(Parsed::Complete { length }) => {
                    end = End::Trailers(&fields, &input[consumed..]);
                    client.body.trailers_done();
                    consumed += length;
                }
                Ok(Parsed::Partial) => client.collect(HeadScan::section(), &input[consumed..]),
                Err(_) => {
                    self.inbox.trailers = fields;
                    client.server.live.counters.of(self.world.id).requests_malformed.add(1);
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

    /// Everything that was queued for the client went out: what waited for it goes on.
    pub fn client_drained(&mut self, io: &mut EventLoop, key: ClientKey) {
        let Some(client) = self.world.clients.get_mut(key) else { return };
        match client.stage {
            Stage::Leaving => {}
            Stage::Preface | Stage::Hello | Stage::Handshake => {}
            Stage::Idle | Stage::Head => self.client_next(io, key),
            Stage::Exchange(exchange) => self.with_any(io, exchange, |it, at| it.client_took(at)),
            Stage::Streams => self.http2_drained(io, key),
        }
    }

    /// The response of an exchange has been handed over; the exchange is gone.
    pub fn response_ended(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        Outcome { keep_alive, request_done, client_closes }: Outcome,
    ) {
        let Some(client) = self.world.clients.get(key) else {
            return;
        };
        if keep_alive && (self.world.is_draining() || client.leave_by_ms.is_some()) {
            return self.desk(io).leave(key, true);
        }
        if !keep_alive {
            // A client that asked for the end knows it; any other may be sending.
            let clean = request_done && client_closes && client.input.is_empty();
            return self.desk(io).leave(key, !clean);
        }
        let timeout_ms = client.server.http.idle_timeout_ms;
        io.set_deadline(client.token, io.now_ms() + timeout_ms);
        if !client.working {
            self.client_next(io, key);
        }
    }

    /// Goes on with a connection between requests: the next one, if it is here, or the end.
    pub fn client_next(&mut self, io: &mut EventLoop, key: ClientKey) {
        let Some(client) = self.world.clients.get(key) else { return };
        if io.queued(client.token) > 0 {
            return; // When it has taken everything.
        }
        if client.has_input() {
            self.client_continue(io, key);
        }
        let Some(client) = self.world.clients.get(key) else {
            return;
        };
        let token = client.token;
        if let Stage::Exchange(exchange) = client.stage
            && self.is_body_to_come(exchange)
            && !self.with(io, exchange, |it, at| it.is_member_backed_up(at))
        {
            // It may have been stopped when its request was not yet the one under way.
            io.resume(token);
        }
        let Some(client) = self.world.clients.get(key) else { return };
        if !matches!(client.stage, Stage::Idle | Stage::Head) {
            return;
        }
        if client.ended {
            self.desk(io).leave(key, false);
        } else {
            io.resume(client.token);
        }
    }

    /// Whether more of a request has to come from its client, and can be used.
    fn is_body_to_come(&self, exchange: ExchangeKey) -> bool {
        self.exchanges
            .get(exchange)
            .and_then(Transaction::http)
            .is_some_and(|it| !it.request.is_whole && !it.ends.parked.waits())
    }

    /// The client's FIN.
    pub fn client_ended(&mut self, io: &mut EventLoop, key: ClientKey) {
        let Some(client) = self.world.clients.get_mut(key) else { return };
        client.ended = true;
        match client.stage {
            Stage::Preface => self.desk(io).preface_ended(key),
            // Somebody looked whether anybody listens.
            Stage::Hello if !client.has_input() => self.desk(io).close_client(key),
            Stage::Hello | Stage::Handshake => self.desk(io).handshake_failed(key),
            // What was sent ahead is answered first, once the client has taken what is queued.
            Stage::Idle if client.has_input() && !client.is_early => {}
            Stage::Idle => self.desk(io).leave(key, false),
            Stage::Head => {
                self.desk(io).note_abort_in_head(key);
                self.desk(io).close_client(key);
            }
            Stage::Exchange(exchange) => {
                let state = match self.exchanges.get(exchange) {
                    Some(Transaction::Http(state)) => state,
                    Some(Transaction::Tunnel(_)) => {
                        return self.with_tunnel(io, exchange, |it, at| it.client_ended(at));
                    }
                    Some(Transaction::Relay(state)) => {
                        if state.gives_up() {
                            let why = Termination::ClientAbort;
                            self.with_any(io, exchange, |it, at| it.abandon(at, why));
                            self.desk(io).close_client(key);
                        }
                        return;
                    }
                    None => return,
                };
                if !state.request.is_whole {
                    // A request that is cut short must not look whole to anybody.
                    self.with(io, exchange, |it, at| it.respond(at, 400, Termination::ClientAbort));
                } else if state.ends.gives_up_its_place() {
                    self.with_any(io, exchange, |it, at| it.abandon(at, Termination::ClientAbort));
                    self.desk(io).close_client(key);
                }
                // Else it has only ended its sending; it may well wait for the response.
            }
            Stage::Streams => self.http2_gone(io, key),
            Stage::Leaving => {}
        }
    }

    /// The client's connection broke.
    pub fn client_failed(&mut self, io: &mut EventLoop, key: ClientKey) {
        let Some(client) = self.world.clients.get(key) else { return };
        match client.stage {
            Stage::Exchange(exchange) => {
                self.with_any(io, exchange, |it, at| it.abandon(at, Termination::ClientAbort))
            }
            Stage::Head => self.desk(io).note_abort_in_head(key),
            Stage::Preface => return self.desk(io).preface_ended(key),
            Stage::Hello | Stage::Handshake if client.hello_bytes > 0 => {
                return self.desk(io).handshake_failed(key);
            }
            Stage::Streams => {
                self.abandon_streams(io, key, Termination::ClientAbort);
            }
            Stage::Hello | Stage::Handshake => {}
            Stage::Idle | Stage::Leaving => {}
        }
        self.desk(io).close_client(key);
    }
}

impl Desk<'_> {
    /// The client went away within a request head.
    fn note_abort_in_head(&mut self, key: ClientKey) {
        let Some(client) = self.world.clients.get(key) else { return };
        // An empty line may follow a request (RFC 9112 section 2.2) and begins no other.
        if matches!(&*client.input, b"\r" | b"\r\n") {
            return;
        }
        client.server.live.counters.of(self.world.id).client_aborts.add(1);
        self.log_without_request(key, 0, OwnBytes::default(), Termination::ClientAbort);
    }
}

impl Worker {
    /// The client's deadline passed.
    pub fn client_timer(&mut self, io: &mut EventLoop, key: ClientKey) {
        let Some(client) = self.world.clients.get(key) else { return };
        let (token, server) = (client.token, Rc::clone(&client.server));
        let counters = server.live.counters.of(self.world.id);
        match client.stage {
            Stage::Leaving => {}
            Stage::Streams => self.http2_timer(io, key),
            Stage::Preface => self.desk(io).refuse_relay(key, Termination::HelloTimeout),
            Stage::Hello | Stage::Handshake => self.desk(io).handshake_failed(key),
            Stage::Idle | Stage::Head if io.queued(token) > 0 => {
                if !is_taking(io, token, server.http.body_timeout_ms) {
                    counters.body_timeouts.add(1);
                    self.desk(io).close_client(key);
                }
            }
            Stage::Idle => self.desk(io).leave_idle(key),
            Stage::Head => {
                counters.header_timeouts.add(1);
                self.desk(io).refuse(key, 408, Termination::HeaderTimeout);
            }
            Stage::Exchange(exchange) => {
                let state = match self.exchanges.get(exchange) {
                    Some(Transaction::Http(state)) => state,
                    Some(Transaction::Tunnel(_)) => {
                        return self.with_tunnel(io, exchange, |it, at| it.timer(at));
                    }
                    Some(Transaction::Relay(_)) | None => return,
                };
                if io.queued(token) > 0 {
                    let timeout_ms = state.client_timeout_ms();
                    if is_taking(io, token, timeout_ms) {
                        return;
                    }
                    counters.body_timeouts.add(1);
                    self.with_any(io, exchange, |it, at| {
                        it.abandon(at, Termination::ClientTimeout)
                    });
                    return self.desk(io).reset_client(key);
                }
                if !state.request.is_whole
                    && !self.with(io, exchange, |it, at| it.is_member_backed_up(at))
                {
                    counters.body_timeouts.add(1);
                    self.with(io, exchange, |it, at| {
                        it.respond(at, 408, Termination::ClientTimeout)
                    });
                }
            }
        }
    }
}

/// Whether a client with queued bytes took some lately; if so, it gets more time.
fn is_taking(io: &mut EventLoop, token: Token, timeout_ms: u64) -> bool {
    let until_ms = io.patience_until_ms(token, timeout_ms);
    let taking = until_ms > io.now_ms();
    if taking {
        io.set_deadline(token, until_ms);
    }
    taking
}
