//! Clients with HTTP/2: the events of a connection go to exchanges, one per stream.
//!
//! Responses are in [`crate::worker::client::stream`].

use weir_connection::client::http2::{Due as DueOnConnection, Http2Event};
use weir_connection::joining::RestOfRead;
use weir_event_loop::EventLoop;
use weir_exchange::arena::{ClientKey, ExchangeKey};
use weir_exchange::parts::end::End;
use weir_exchange::termination::Termination;
use weir_exchange::transaction::{Transaction, trailers};
use weir_http::h2::hpack::HeaderBlock;
use weir_http::h2::message::{ReadError, read_trailers};
use weir_http::h2::{ConnectionError, Flood, Misbehaviour, ResetBy};

use crate::worker::agenda::{Due, Task};
use crate::worker::client::handler::ClientHandler;
use crate::worker::client::own_response::OwnBytes;
use crate::worker::client::pending::{AddedRequest, Begins};
use crate::worker::client::unserved_log::RefusalFacts;
use crate::worker::router::Router;
use crate::worker::state::client::Client;
use crate::worker::state::client_end::ClientEnd;
use crate::worker::state::client_step::ClientStep;
use crate::worker::state::stage::Stage;
use crate::worker::world::World;

/// The number of bytes that each stream sends in its turn, while several streams wait for the connection's window.
const TURN_BYTES: usize = 16 * 1024;

impl Router {
    /// Processes bytes of a client with HTTP/2.
    pub fn http2_received(&mut self, io: &mut EventLoop, key: ClientKey, input: &[u8]) {
        let mut block = self.inbox.header_block.take().unwrap_or_default();
        let mut at = 0;
        while let Some(client) = self.world.clients.all.get_mut(key) {
            let Some(http2) = client.http2.as_mut().filter(|_| client.stage == Stage::Streams)
            else {
                break;
            };
            let rest = &input[at..];
            match http2.received(rest, io.now_ms(), &mut block) {
                Ok((_, Http2Event::More)) => break,
                Ok((consumed, mut event)) => {
                    at += consumed;
                    if let Some(place) = http2.begins_before(&event) {
                        self.begin_pending_at(io, key, place);
                        let Some(http2) = self.world.clients.http2_mut(key) else { break };
                        event = http2.of_begun(event);
                    }
                    self.http2_event(io, key, rest, event, &mut block);
                }
                Err(error) => {
                    self.client_event(io, key, |it| it.http2_failed(error));
                    break;
                }
            }
        }
        self.inbox.header_block = Some(block);
        self.run_due(io, Due::EndOfRead);
        let Some(client) = self.world.clients.all.get_mut(key) else { return };
        let Some(http2) = &mut client.http2 else { return };
        if http2.end_read(at > 0, io.now_ms()) {
            let until_ms = io.now_ms() + client.server.http.header_timeout_ms;
            client.arm(io, until_ms);
        }
        client.list_for_flush(&mut self.world.agenda, key);
    }

    fn http2_event(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        input: &[u8],
        event: Http2Event,
        block: &mut HeaderBlock,
    ) {
        match event {
            Http2Event::Request { stream, is_whole } => {
                match self.world.add_request(io, key, (stream, is_whole), block) {
                    AddedRequest::Waits | AddedRequest::Answered => {}
                    AddedRequest::Full => self.begin_pending(io, key, Begins::AtOnce),
                    AddedRequest::Malformed => self.refuse_stream(io, key, stream),
                }
            }
            Http2Event::Trailers { stream, exchange } => {
                if let Some(exchange) = exchange {
                    self.stream_trailers(io, key, (stream, exchange), block);
                }
            }
            Http2Event::Data { stream, exchange, start, end, is_end } => {
                let data = &input[start..end];
                if let Some(exchange) = exchange {
                    let stream_end = if is_end { End::Data } else { End::No };
                    let behind = RestOfRead::of(input, end);
                    self.with_any(io, exchange, |it, at| {
                        at.join_request_data(it, data, stream_end, behind)
                    });
                } else if let Some(client) = self.world.clients.all.get_mut(key)
                    && let Some(http2) = &mut client.http2
                    && http2.release(stream, data.len() as u32)
                {
                    client.list_for_flush(&mut self.world.agenda, key);
                }
            }
            Http2Event::Cut(exchange) => {
                if let Some(exchange) = exchange {
                    self.with_any(io, exchange, |it, at| it.client_cut(at));
                }
            }
            Http2Event::Reset { exchange, by } => {
                let Some(client) = self.world.clients.all.get(key) else { return };
                let why = match by {
                    ResetBy::Peer => Termination::ClientAbort,
                    ResetBy::Us => {
                        client.server.counters.requests_malformed.add(1);
                        Termination::ClientMalformed
                    }
                };
                if let Some(exchange) = exchange {
                    self.with_any(io, exchange, |it, at| it.abandon(at, why));
                }
            }
            Http2Event::StreamOpened(exchange) => self.send_waiting(io, key, Some(exchange)),
            Http2Event::Opened => self.world.agenda.add(Task::SendResponses(key)),
            Http2Event::Nothing | Http2Event::More => {}
        }
    }

    /// Handles malformed data on a stream: resets the stream, and counts the error toward the flood limit.
    pub fn refuse_stream(&mut self, io: &mut EventLoop, key: ClientKey, stream: u32) {
        let Some(client) = self.world.clients.all.get_mut(key) else { return };
        client.server.counters.requests_malformed.add(1);
        let Some(http2) = &mut client.http2 else { return };
        let exchange = http2.exchange_on(stream);
        let refused = http2.refuse_stream(stream);
        match exchange {
            Some(exchange) => {
                self.with_any(io, exchange, |it, at| it.abandon(at, Termination::ClientMalformed))
            }
            None => {
                if let Some(mut client) = self.world.client_handler(io, key) {
                    let (about, sent) = (RefusalFacts::default(), OwnBytes::default());
                    let (clock, why) = (client.io.clock(), Termination::ClientMalformed);
                    client.log.request(client.client, clock, about, (0, sent), why);
                }
            }
        }
        if let Err(error) = refused {
            self.client_event(io, key, |it| it.http2_failed(error));
        }
    }

    /// Handles the trailers of a request.
    fn stream_trailers(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        (stream, exchange): (u32, ExchangeKey),
        block: &HeaderBlock,
    ) {
        let read = match self.exchanges.get(exchange) {
            Some(Transaction::Http(its)) if !its.request.awaits_tunnel(&its.ends.phase) => {
                let fields = &mut self.inbox.trailers;
                Some(read_trailers(block, trailers::of_request(&its.ends), fields))
            }
            // A tunnel carries only DATA frames (RFC 9113 section 8.5).
            Some(_) => None,
            None => return,
        };
        match read {
            Some(Ok(())) => {
                let fields = std::mem::take(&mut self.inbox.trailers);
                self.with_any(io, exchange, |it, at| {
                    if let Some((_, client, stream)) = at.world.clients.with_stream_mut(it.ends()) {
                        let http2 = client.http2.iter_mut();
                        http2.for_each(|http2| http2.count_trailers(stream, block.text()));
                    }
                    let end = End::Trailers(&fields, block.text());
                    at.join_request_data(it, b"", end, RestOfRead::Nothing)
                });
                self.inbox.trailers = fields;
            }
            None | Some(Err(ReadError::Malformed(_))) => {
                self.refuse_stream(io, key, stream);
                // If the trailers end the stream, it may be closed already.
                let http2 = self.world.clients.http2_mut(key);
                let its = http2.and_then(|http2| http2.streams.of_exchange_mut(exchange));
                if its.is_some_and(|its| its.out.id == stream) {
                    let why = Termination::ClientMalformed;
                    self.with_any(io, exchange, |it, at| it.abandon(at, why));
                }
            }
            Some(Err(ReadError::Refused(_))) => {
                let Some(client) = self.world.clients.all.get(key) else { return };
                client.server.counters.requests_malformed.add(1);
                self.with(io, exchange, |it, at| it.respond(at, 431, Termination::ClientLimit));
            }
        }
    }

    /// Sends waiting data after windows have opened: of one exchange, or of all of a connection. Streams of equal urgency take turns;
    /// urgent ones are first.
    pub fn send_waiting(&mut self, io: &mut EventLoop, key: ClientKey, only: Option<ExchangeKey>) {
        // Returns whether more can be sent.
        let mut send = |router: &mut Self, exchange: ExchangeKey, bytes_max: usize| {
            router.with_any(io, exchange, |it, at| {
                let World { clients, agenda, .. } = &mut *at.world;
                let sent = clients.send_waiting_response((at.io, agenda), it.ends_mut(), bytes_max);
                sent.is_some_and(|sent| it.client_let_out(at, &sent))
            })
        };
        if let Some(exchange) = only {
            while send(self, exchange, usize::MAX) {}
            return;
        }
        let Some(http2) = self.world.clients.http2_mut(key) else { return };
        let waiting = http2.waiting();
        for alike in waiting.chunk_by(|(one, _), (other, _)| one == other) {
            let mut alike: Vec<ExchangeKey> = alike.iter().map(|(_, exchange)| *exchange).collect();
            while !alike.is_empty() {
                alike.retain(|&exchange| send(self, exchange, TURN_BYTES));
            }
        }
    }
}

impl ClientHandler<'_> {
    /// The timer of a connection with HTTP/2 has expired. Sets it to the next deadline of the connection.
    pub fn http2_timed_out(&mut self) -> ClientStep {
        if self.client.stops_taking(self.io) {
            return ClientStep::EndStreams(Termination::ClientTimeout, ClientEnd::Reset);
        }
        let Some(http2) = &mut self.client.http2 else { return ClientStep::Nothing };
        let (token, settings) = (self.client.token, &self.client.server.http);
        let timeouts = (settings.header_timeout_ms, settings.idle_timeout_ms);
        match http2.timed_out(self.io.now_ms(), timeouts, || self.io.sockets.has_arrived(token)) {
            DueOnConnection::Partial => {
                self.client.server.counters.header_timeouts.add(1);
                self.end_http2(Termination::HeaderTimeout, ClientEnd::Goaway)
            }
            DueOnConnection::Idle => ClientStep::End(ClientEnd::ORDERLY),
            DueOnConnection::Next(until_ms) => {
                self.client.arm(self.io, until_ms);
                ClientStep::CheckStreams
            }
        }
    }

    /// The client has made an error of the protocol, or a flood. GOAWAY is already queued.
    fn http2_failed(&mut self, error: ConnectionError) -> ClientStep {
        let why = count_failure(self.client, error);
        let how = match error {
            ConnectionError::Misbehaved(Misbehaviour::Preface) => ClientEnd::Close,
            _ => ClientEnd::ORDERLY,
        };
        self.end_http2(why, how)
    }

    /// Ends a connection with HTTP/2. Each exchange writes a log line; without any, the connection does.
    fn end_http2(&mut self, why: Termination, how: ClientEnd) -> ClientStep {
        if self.client.http2.as_ref().is_none_or(|http2| http2.has_no_exchange()) {
            self.log.connection(self.client, self.io.clock(), b"", why);
        }
        ClientStep::EndStreams(why, how)
    }
}

/// Counts the error of a connection. Returns the termination reason of its exchanges.
fn count_failure(client: &Client, error: ConnectionError) -> Termination {
    let counters = &client.server.counters;
    let flood = match error {
        ConnectionError::Misbehaved(_) => {
            counters.http2_errors.add(1);
            return Termination::ClientMalformed;
        }
        ConnectionError::Flooded(flood) => flood,
    };
    let counter = match flood {
        Flood::Resets | Flood::StreamErrors | Flood::ClosedStreams | Flood::RefusedStreams => {
            &counters.http2_floods_streams
        }
        Flood::Settings
        | Flood::Pings
        | Flood::Priorities
        | Flood::WindowUpdates
        | Flood::EmptyData
        | Flood::TinyData => &counters.http2_floods_frames,
        Flood::InterimResponses | Flood::Continuations | Flood::HeaderBlock | Flood::HeaderList => {
            &counters.http2_floods_headers
        }
    };
    counter.add(1);
    Termination::ClientFlood
}
