//! Clients with HTTP/2: the frames of a connection become exchanges, one per stream.
//!
//! Responses are in [`crate::worker::client::stream`].

use weir_connection::client::http2::{Http2, LAST_STREAMS_MS};
use weir_connection::frames::exchange_of;
use weir_event_loop::EventLoop;
use weir_exchange::arena::{ClientKey, ExchangeKey};
use weir_exchange::parts::end::End;
use weir_exchange::parts::pieces::Pieces;
use weir_exchange::parts::stream_end::StreamEnd;
use weir_exchange::parts::transaction_ends::TransactionEnds;
use weir_exchange::termination::Termination;
use weir_exchange::transaction::{Transaction, trailers};
use weir_http::h2::hpack::HeaderBlock;
use weir_http::h2::message::{ReadError, read_trailers};
use weir_http::h2::{
    ConnectionError, Event, Flood, HeadersKind, Misbehaviour, Priority, ReceiveResult, ResetBy,
};
use weir_http::message::RequestHead;

use crate::worker::agenda::{Agenda, Due, Task};
use crate::worker::client::own_response::{OwnBytes, RefusalFacts};
use crate::worker::edge::WorkerEdge;
use crate::worker::router::Router;
use crate::worker::small_frames::RestOfRead;
use crate::worker::state::clients::Clients;
use crate::worker::state::stage::Stage;
use crate::worker::wire::Socket;
use crate::worker::world::World;

/// A client is paused when more bytes than this are queued for it, because further requests would add to them.
const UNTAKEN_BYTES_MAX: usize = 256 * 1024;

/// The payload of the ping that follows the first GOAWAY.
const END_PING: [u8; 8] = *b"weir end";

impl WorkerEdge<'_> {
    /// Begins HTTP/2 on a client's connection.
    pub fn begin_http2(&mut self, key: ClientKey) {
        let Some(client) = self.world.clients.all.get_mut(key) else { return };
        let server = &client.server;
        server.counters.http2_connections.add(1);
        client.http2 = Some(Box::new(Http2::new(server.http2_limits, self.io.now_ms())));
        client.stage = Stage::Streams;
        let until_ms = self.io.now_ms() + server.http.header_timeout_ms;
        let is_leaving = client.leave_by_ms.is_some();
        self.io.clear_deadline(client.token);
        self.world.clients.arm(self.io, key, until_ms);
        self.world.clients.list_for_flush(&mut self.world.agenda, key);
        if is_leaving || self.world.is_draining() {
            self.world.clients.announce_end((self.io, &mut self.world.agenda), key);
        }
    }
}

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
            match http2.frames.connection.receive(
                rest,
                io.now_ms(),
                &mut block,
                &mut http2.frames.out,
            ) {
                Ok(ReceiveResult { event: Event::NeedMore, .. }) => break,
                Ok(ReceiveResult { consumed, event }) => {
                    at += consumed;
                    self.http2_event(io, key, rest, event, &mut block);
                }
                Err(error) => {
                    self.http2_failed(io, key, error);
                    break;
                }
            }
        }
        self.inbox.header_block = Some(block);
        self.run_due(io, Due::EndOfRead);
        let Some(client) = self.world.clients.all.get_mut(key) else { return };
        let Some(http2) = &mut client.http2 else { return };
        if !http2.frames.connection.awaits_rest() {
            http2.partial_since_ms = None;
        } else if at > 0 || http2.partial_since_ms.is_none() {
            // The incomplete frame began after the last complete event.
            http2.partial_since_ms = Some(io.now_ms());
            let until_ms = io.now_ms() + client.server.http.header_timeout_ms;
            self.world.clients.arm(io, key, until_ms);
        }
        self.world.clients.list_for_flush(&mut self.world.agenda, key);
    }

    fn http2_event(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        input: &[u8],
        event: Event,
        block: &mut HeaderBlock,
    ) {
        match event {
            Event::Headers { stream, kind: HeadersKind::Request, end_stream, .. } => {
                self.stream_request(io, key, stream, end_stream, block);
            }
            Event::Headers { stream, tag, .. } => {
                self.stream_trailers(io, key, (stream, tag), block)
            }
            Event::Data { stream, tag, start, end, end_stream } => {
                let data = &input[start..end];
                match self.begun_exchange(io, key, (stream, tag)) {
                    Some(exchange) => {
                        let stream_end = if end_stream { End::Data } else { End::No };
                        let behind = RestOfRead::of(input, end);
                        self.with_any(io, exchange, |it, at| {
                            at.join_request_data(it, data, stream_end, behind)
                        });
                    }
                    None => {
                        let World { clients, agenda, .. } = &mut self.world;
                        clients.release(agenda, key, stream, data.len() as u32);
                    }
                }
            }
            Event::RequestCut { tag, .. } => {
                if let Some(exchange) = exchange_of(tag) {
                    self.with_any(io, exchange, |it, at| it.client_cut(at));
                }
            }
            Event::StreamReset { tag, by, .. } => {
                let why = match by {
                    ResetBy::Peer => Termination::ClientAbort,
                    ResetBy::Us => Termination::ClientMalformed,
                };
                let Some(client) = self.world.clients.all.get(key) else { return };
                let counters = &client.server.counters;
                counters.requests_malformed.add(u64::from(by == ResetBy::Us));
                if let Some(exchange) = exchange_of(tag) {
                    self.with_any(io, exchange, |it, at| it.abandon(at, why));
                }
            }
            Event::WindowOpened { stream: Some(stream) } => {
                if let Some(exchange) = self.world.clients.exchange_on_stream(key, stream) {
                    while self.send_waiting_data(io, exchange, usize::MAX) {}
                }
            }
            Event::WindowOpened { stream: None } | Event::SettingsChanged => {
                let http2 = self.world.clients.all.get_mut(key).and_then(|it| it.http2.as_mut());
                if http2.is_some_and(|http2| http2.note_opened()) {
                    self.world.agenda.add(Task::SendResponses(key));
                }
            }
            Event::Priority { stream, priority } => self.prioritize(key, stream, priority),
            Event::Pong { .. } => {
                let http2 = self.world.clients.all.get_mut(key).and_then(|it| it.http2.as_mut());
                if let Some(http2) = http2.filter(|http2| http2.announced_ms.is_some()) {
                    http2.end();
                }
            }
            Event::NeedMore | Event::SettingsAcknowledged | Event::Goaway { .. } => {}
        }
    }

    /// Assigns an exchange to its stream.
    pub fn take_to_stream(&mut self, key: ExchangeKey, head: &RequestHead, input: &[u8]) {
        let Some(exchange) = self.exchanges.get_mut(key).and_then(Transaction::http_mut) else {
            return;
        };
        let Some(stream) = exchange.ends.caller.stream() else { return };
        let client = self.world.clients.all.find_mut(exchange.ends.caller.client());
        let Some(http2) = client.and_then(|client| client.http2.as_mut()) else { return };
        let Some(stream) = http2.streams.get_mut(stream) else { return };
        let priority = head.fields.iter().find(|field| field.name.of(input) == b"priority");
        if let Some(priority) = priority {
            stream.priority = Priority::parse(priority.value.of(input));
        }
        stream.head_bytes += http2.held.count_head(input);
        http2.frames.connection.set_tag(stream.out.id, key.to_bits());
        if !head.framing.is_empty() {
            self.world.agenda.add(Task::SendHead(key));
        }
    }
}

impl Router {
    /// Sets the priority of a response to the one that the client requests.
    pub fn set_stream_priority(&mut self, exchange: ExchangeKey, priority: Priority) {
        if let Some(transaction) = self.exchanges.get(exchange)
            && let Some(stream) = self.world.clients.stream_mut(transaction.ends())
        {
            stream.priority = priority;
        }
    }

    /// Handles malformed data on a stream: resets the stream, and counts the error toward the flood limit.
    pub fn refuse_stream(&mut self, io: &mut EventLoop, key: ClientKey, stream: u32) {
        let Some(client) = self.world.clients.all.get_mut(key) else { return };
        client.server.counters.requests_malformed.add(1);
        let Some(http2) = &mut client.http2 else { return };
        let tag = http2.frames.connection.tag(stream);
        let refused = http2.frames.connection.refuse(stream, &mut http2.frames.out);
        match tag.and_then(exchange_of) {
            Some(exchange) => {
                self.with_any(io, exchange, |it, at| it.abandon(at, Termination::ClientMalformed))
            }
            None => {
                let (about, sent) = (RefusalFacts::default(), OwnBytes::default());
                self.edge(io).log_refused(key, about, 0, sent, Termination::ClientMalformed);
            }
        }
        if let Err(error) = refused {
            self.http2_failed(io, key, error);
        }
    }

    /// Handles the trailers of a request.
    fn stream_trailers(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        (stream, tag): (u32, u64),
        block: &HeaderBlock,
    ) {
        let Some(exchange) = self.begun_exchange(io, key, (stream, tag)) else { return };
        let its = match self.exchanges.get(exchange) {
            Some(Transaction::Http(its)) if !its.request.awaits_tunnel(&its.ends.phase) => its,
            // A tunnel carries only DATA frames (RFC 9113 section 8.5).
            Some(_) => return self.refuse_trailers(io, key, stream, exchange),
            None => return,
        };
        let mut fields = std::mem::take(&mut self.inbox.trailers);
        let read = read_trailers(block, trailers::of_request(&its.ends), &mut fields);
        if read.is_ok() {
            self.world.clients.count_trailers(&its.ends, block.text());
            let end = End::Trailers(&fields, block.text());
            self.with_any(io, exchange, |it, at| {
                at.join_request_data(it, b"", end, RestOfRead::Nothing)
            });
        }
        self.inbox.trailers = fields;
        match read {
            Ok(()) => {}
            Err(ReadError::Malformed(_)) => self.refuse_trailers(io, key, stream, exchange),
            Err(ReadError::Refused(_)) => {
                let Some(client) = self.world.clients.all.get(key) else { return };
                let counters = &client.server.counters;
                counters.requests_malformed.add(1);
                self.with(io, exchange, |it, at| it.respond(at, 431, Termination::ClientLimit));
            }
        }
    }

    fn refuse_trailers(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        stream: u32,
        exchange: ExchangeKey,
    ) {
        // If the trailers end the stream, it may be closed already.
        self.refuse_stream(io, key, stream);
        if self.is_on_stream(exchange, key, stream) {
            self.with_any(io, exchange, |it, at| it.abandon(at, Termination::ClientMalformed));
        }
    }

    fn is_on_stream(&self, exchange: ExchangeKey, client: ClientKey, stream: u32) -> bool {
        let ends = self.exchanges.get(exchange).map(Transaction::ends);
        let ends = ends.filter(|ends| ends.caller.client() == Some(client));
        ends.and_then(|ends| self.world.clients.stream(ends)).is_some_and(|it| it.out.id == stream)
    }
}

impl Clients {
    /// Returns flow-control window to a client for processed bytes.
    pub fn release(&mut self, agenda: &mut Agenda, key: ClientKey, stream: u32, bytes: u32) {
        let client = self.all.get_mut(key);
        if let Some(http2) = client.and_then(|client| client.http2.as_mut())
            && bytes > 0
        {
            http2.frames.connection.release(stream, bytes, &mut http2.frames.out);
            self.list_for_flush(agenda, key);
        }
    }
}

impl Router {
    /// Sends the head of a request whose body has not begun, because a client may wait for a response before it continues.
    pub fn send_head(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        let exchange = self.exchanges.get(key).and_then(Transaction::http);
        if exchange.is_some_and(|it| !it.request.is_sent() && it.ends.phase.connection().is_some())
        {
            self.with(io, key, |it, at| it.client_data(at, (b"", &Pieces::whole(0)), End::No));
        }
    }

    /// Ends a connection after a protocol error or a flood. GOAWAY is already queued.
    fn http2_failed(&mut self, io: &mut EventLoop, key: ClientKey, error: ConnectionError) {
        let Some(client) = self.world.clients.all.get_mut(key) else { return };
        let counters = &client.server.counters;
        let (counter, termination) = match error {
            ConnectionError::Misbehaved(_) => {
                (&counters.http2_errors, Termination::ClientMalformed)
            }
            ConnectionError::Flooded(flood) => {
                let counter = match flood {
                    Flood::Resets
                    | Flood::StreamErrors
                    | Flood::ClosedStreams
                    | Flood::RefusedStreams => &counters.http2_floods_streams,
                    Flood::Settings
                    | Flood::Pings
                    | Flood::Priorities
                    | Flood::WindowUpdates
                    | Flood::EmptyData
                    | Flood::TinyData => &counters.http2_floods_frames,
                    Flood::InterimResponses
                    | Flood::Continuations
                    | Flood::HeaderBlock
                    | Flood::HeaderList => &counters.http2_floods_headers,
                };
                (counter, Termination::ClientFlood)
            }
        };
        counter.add(1);
        // Each exchange that ends here writes its own log line.
        if self.abandon_streams(io, key, termination) == 0 {
            self.edge(io).log_without_request(key, b"", OwnBytes::default(), termination);
        }
        let is_stranger = error == ConnectionError::Misbehaved(Misbehaviour::Preface);
        if is_stranger {
            self.edge(io).close_client(key);
        } else {
            self.edge(io).leave(key, true);
        }
    }

    /// Ends all exchanges of a connection; returns their number.
    pub fn abandon_streams(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        why: Termination,
    ) -> usize {
        let Some(http2) = self.world.clients.all.get(key).and_then(|it| it.http2.as_ref()) else {
            return 0;
        };
        let exchanges = http2.streams.exchanges();
        for exchange in &exchanges {
            self.with_any(io, *exchange, |it, at| it.abandon(at, why));
        }
        exchanges.len()
    }

    /// Handles a lost client connection: ends its exchanges.
    pub fn http2_gone(&mut self, io: &mut EventLoop, key: ClientKey) {
        self.abandon_streams(io, key, Termination::ClientAbort);
        self.edge(io).close_client(key);
    }
}

impl Clients {
    /// Closes the stream of an ended exchange.
    pub fn close_stream(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        key: ClientKey,
        (stream, unreleased): (u32, u32),
        end: StreamEnd,
    ) {
        let Some(client) = self.all.get_mut(key) else { return };
        let Some(http2) = &mut client.http2 else { return };
        let (connection, out) = (&mut http2.frames.connection, &mut http2.frames.out);
        connection.release(stream, unreleased, out);
        let ends_ms = match end {
            StreamEnd::Answered(status) => {
                connection.leave_answered(stream, status, io.now_ms(), out)
            }
            StreamEnd::Broken(code) => {
                connection.reset(stream, code, out);
                None
            }
        };
        let mut until_ms = ends_ms.unwrap_or(u64::MAX);
        if http2.has_no_exchange() {
            http2.idle_since_ms = io.now_ms();
            until_ms = until_ms.min(io.now_ms() + client.server.http.idle_timeout_ms);
        }
        self.arm(io, key, until_ms);
        self.list_for_flush(agenda, key);
    }

    /// Announces the end of a connection (GOAWAY). Open requests are still answered.
    pub fn announce_end(&mut self, (io, agenda): (&mut EventLoop, &mut Agenda), key: ClientKey) {
        let Some(http2) = self.all.get_mut(key).and_then(|it| it.http2.as_mut()) else {
            return;
        };
        if http2.announced_ms.is_none() {
            http2.announced_ms = Some(io.now_ms());
            http2.frames.connection.announce_end(&mut http2.frames.out);
            // A client that waits for nothing is not pinged: some (python-h2) take a PING behind GOAWAY for an error. It may open
            // streams until the time is over.
            if !http2.has_nothing() {
                http2.frames.connection.ping(END_PING, &mut http2.frames.out);
            }
            self.arm(io, key, io.now_ms() + LAST_STREAMS_MS);
            self.list_for_flush(agenda, key);
        }
    }

    /// Sets the timer of a connection to `at_ms`, unless it is set to an earlier time.
    pub fn arm(&mut self, io: &mut EventLoop, key: ClientKey, at_ms: u64) {
        let Some(client) = self.all.get_mut(key) else { return };
        if let Some(http2) = &mut client.http2
            && at_ms < http2.timer_ms
            && client.stage == Stage::Streams
        {
            http2.timer_ms = at_ms;
            io.set_deadline(client.token, at_ms);
        }
    }
}

impl WorkerEdge<'_> {
    /// Sends the queued frames of a connection at the end of a turn, or ends the connection if it is finished.
    pub fn flush_client(&mut self, key: ClientKey) {
        let Some(client) = self.world.clients.all.get_mut(key) else { return };
        let Some(http2) = &mut client.http2 else { return };
        http2.is_listed = false;
        if client.stage != Stage::Streams {
            return;
        }
        let is_over = http2.has_nothing() && http2.frames.connection.takes_no_more();
        if is_over {
            self.leave(key, true);
        } else {
            self.world.clients.flush((self.io, &mut self.world.agenda), key);
        }
    }
}

impl Clients {
    /// Sends the queued frames of a connection.
    pub fn flush(&mut self, (io, agenda): (&mut EventLoop, &mut Agenda), key: ClientKey) {
        let Some(client) = self.all.get_mut(key) else { return };
        let Some(http2) = &mut client.http2 else { return };
        http2.frames.flush(&mut Socket::of(io, client.token));
        self.bound_untaken_data(io, key);
        let Some(client) = self.all.get_mut(key) else { return };
        let Some(http2) = &mut client.http2 else { return };
        let held_bytes = (http2.held.bytes + io.sockets.queued(client.token)) as u64;
        let bytes = held_bytes + http2.frames.connection.unreleased_bytes();
        self.http2_memory.count(agenda, &mut http2.held, bytes);
    }

    /// Counts the trailers of a request: they may have to wait until its member can take them.
    fn count_trailers(&mut self, ends: &TransactionEnds, text: &[u8]) {
        let client = self.all.find_mut(ends.caller.client());
        if let Some(http2) = client.and_then(|client| client.http2.as_mut())
            && let Some(stream) = ends.caller.stream().and_then(|it| http2.streams.get_mut(it))
        {
            stream.head_bytes += http2.held.count_head(text);
        }
    }

    /// Sets a deadline for a client with queued data, and pauses the client if the amount is large.
    pub fn bound_untaken_data(&mut self, io: &mut EventLoop, key: ClientKey) {
        let Some(client) = self.all.get(key) else { return };
        let queued = io.sockets.queued(client.token);
        if queued > 0 {
            let until_ms = io.now_ms() + client.server.http.body_timeout_ms;
            if queued > UNTAKEN_BYTES_MAX {
                io.sockets.pause(client.token);
            }
            self.arm(io, key, until_ms);
        }
    }
}

impl Router {
    /// Continues the exchanges of a client after all queued data was sent.
    pub fn http2_drained(&mut self, io: &mut EventLoop, key: ClientKey) {
        let Some(client) = self.world.clients.all.get(key) else { return };
        io.sockets.resume(client.token);
        let now_ms = io.now_ms();
        if let Some(http2) = self.world.clients.all.get_mut(key).and_then(|it| it.http2.as_mut()) {
            http2.held.note_drained(now_ms);
            self.world.clients.list_for_flush(&mut self.world.agenda, key);
        }
        self.streams_opened(io, key);
        let http2 = self.world.clients.all.get(key).and_then(|client| client.http2.as_ref());
        let Some(exchanges) = http2.map(|http2| http2.streams.exchanges()) else { return };
        for key in exchanges {
            let Some(exchange) = self.exchanges.get(key) else { continue };
            let is_waited_for =
                exchange.ends().caller.stream().is_some() && exchange.ends().is_member_stopped;
            let waits = is_waited_for || exchange.is_tunnel();
            if waits && !self.with_any(io, key, |it, at| it.ends().is_client_behind(at)) {
                self.with_any(io, key, |it, at| it.client_took(at));
            }
        }
    }

    /// Handles the timer of a connection: checks all its deadlines, and sets the timer to the next one.
    pub fn http2_timer(&mut self, io: &mut EventLoop, key: ClientKey) {
        let now_ms = io.now_ms();
        let Some(client) = self.world.clients.all.get_mut(key) else { return };
        let Some(http2) = &mut client.http2 else { return };
        http2.timer_ms = u64::MAX;
        let (token, server) = (client.token, std::rc::Rc::clone(&client.server));
        let settings = &server.http;
        let counters = &server.counters;
        if io.sockets.queued(token) > 0 {
            let until_ms = io.patience_until_ms(token, settings.body_timeout_ms);
            if until_ms <= now_ms {
                counters.body_timeouts.add(1);
                self.abandon_streams(io, key, Termination::ClientTimeout);
                return self.edge(io).reset_client(key);
            }
            self.world.clients.arm(io, key, until_ms);
        }
        let Some(http2) = self.world.clients.all.get_mut(key).and_then(|it| it.http2.as_mut())
        else {
            return;
        };
        if let Some(since_ms) = http2.partial_since_ms {
            let until_ms = since_ms + settings.header_timeout_ms;
            if until_ms <= now_ms {
                counters.header_timeouts.add(1);
                return self.end_http2(io, key, Termination::HeaderTimeout);
            }
            self.world.clients.arm(io, key, until_ms);
        }
        let Some(http2) = self.world.clients.all.get_mut(key).and_then(|it| it.http2.as_mut())
        else {
            return;
        };
        let until_ms = http2.end_announced(now_ms).unwrap_or(u64::MAX);
        self.world.clients.arm(io, key, until_ms);
        let Some(http2) = self.world.clients.all.get_mut(key).and_then(|it| it.http2.as_mut())
        else {
            return;
        };
        let (connection, out) = (&mut http2.frames.connection, &mut http2.frames.out);
        connection.end_unwanted(now_ms, out);
        let mut until_ms = connection.unwanted_until_ms().unwrap_or(u64::MAX);
        if http2.has_nothing() {
            until_ms = http2.idle_since_ms + settings.idle_timeout_ms;
            if until_ms <= now_ms && io.sockets.has_arrived(token) {
                // The arrived data is probably a request, which is served.
                until_ms = now_ms + settings.header_timeout_ms;
            } else if until_ms <= now_ms {
                http2.end();
                return self.edge(io).leave(key, true);
            }
        }
        let exchanges = http2.streams.exchanges();
        self.world.clients.arm(io, key, until_ms);
        for exchange in exchanges {
            if !self.exchanges.contains(exchange) {
                continue;
            }
            if self.stream_deadline_ms(exchange) <= now_ms {
                self.with_any(io, exchange, |it, at| it.client_timed_out(at));
            }
            if self.exchanges.contains(exchange) {
                let until_ms = self.stream_deadline_ms(exchange);
                self.world.clients.arm(io, key, until_ms);
            }
        }
        self.world.clients.list_for_flush(&mut self.world.agenda, key);
    }

    fn stream_deadline_ms(&self, exchange: ExchangeKey) -> u64 {
        let transaction = self.exchanges.get(exchange);
        let stream = transaction.and_then(|it| self.world.clients.stream(it.ends()));
        stream.and_then(|stream| stream.deadline_ms).unwrap_or(u64::MAX)
    }

    /// Ends a connection immediately, because the process stops.
    pub fn stop_http2(&mut self, io: &mut EventLoop, key: ClientKey) {
        self.abandon_streams(io, key, Termination::Stopped);
        if let Some(http2) = self.world.clients.all.get_mut(key).and_then(|it| it.http2.as_mut()) {
            http2.end();
        }
        self.world.clients.flush((io, &mut self.world.agenda), key);
        self.edge(io).close_client(key);
    }

    /// Ends a connection with GOAWAY. `why`: the termination reason for the log.
    pub fn end_http2(&mut self, io: &mut EventLoop, key: ClientKey, why: Termination) {
        if self.abandon_streams(io, key, why) == 0 {
            self.edge(io).log_without_request(key, b"", OwnBytes::default(), why);
        }
        if let Some(http2) = self.world.clients.all.get_mut(key).and_then(|it| it.http2.as_mut()) {
            http2.end();
        }
        self.edge(io).leave(key, true);
    }
}
