//! Members with HTTP/2. A connection carries the requests of many exchanges, each on its own stream.
//!
//! An exchange stores the lines of its request head for retries. The head on a stream is encoded from these lines. If a
//! connection fails, each exchange on it is retried elsewhere or ends.

use weir_connection::frames::exchange_of;
use weir_connection::member::streams::MemberStream;
use weir_event_loop::EventLoop;
use weir_exchange::arena::{ConnectionKey, ExchangeKey};
use weir_exchange::parts::attempt::Link;
use weir_exchange::parts::end::End;
use weir_exchange::parts::failure::{MemberFailure, Progress};
use weir_exchange::parts::transaction_ends::TransactionEnds;
use weir_exchange::termination::Termination;
use weir_exchange::transaction::lost_streams::is_whole_without_trailers;
use weir_exchange::transaction::{Transaction, trailers};
use weir_http::h2::hpack::HeaderBlock;
use weir_http::h2::message::{AnsweredRequest, read_response, read_trailers};
use weir_http::h2::{ErrorCode, Event, HeadersKind, ReceiveResult, ResetBy, is_whole};

use crate::worker::agenda::{Agenda, Due};
use crate::worker::edge::WorkerEdge;
use crate::worker::router::Router;
use crate::worker::small_frames::RestOfRead;
use crate::worker::state::member::MemberConnection;
use crate::worker::state::members::{Members, StreamOf};
use crate::worker::wire::{Socket, Spares};

impl WorkerEdge<'_> {
    /// Removes an exchange from its member connection. Returns whether its stream was open.
    pub fn leave_stream(&mut self, ends: &mut TransactionEnds) -> bool {
        let link = ends.phase.take_link();
        let Some(Link { connection: connection_key, stream: Some(stream) }) = link else {
            return false;
        };
        let Some(connection) = self.world.members.all.get_mut(connection_key) else { return false };
        let Some(http2) = &mut connection.http2 else { return false };
        let Some(mut stream) = http2.streams.remove(stream) else { return false };
        let (protocol, out) = (&mut http2.frames.connection, &mut http2.frames.out);
        if stream.is_opened() {
            protocol.release(stream.out.id, stream.unreleased, out);
            protocol.reset(stream.out.id, ErrorCode::CANCEL, out);
        }
        stream.joined.clear(&mut Spares(self.io));
        stream.out.clear(&mut Spares(self.io));
        self.world.members.watch_exhausted_window(self.io, connection_key);
        self.world.members.list_for_flush(&mut self.world.agenda, connection_key);
        let http2 = self.world.members.all.get(connection_key).and_then(|it| it.http2.as_ref());
        if http2.is_some_and(|http2| http2.streams.is_empty()) {
            self.rest_connection(connection_key);
        }
        stream.out.id != 0
    }

    /// Handles a connection without streams, which stays open for the next request or is closed.
    fn rest_connection(&mut self, key: ConnectionKey) {
        let now_ms = self.io.now_ms();
        let is_draining = self.world.is_draining();
        let Some(connection) = self.world.members.all.get_mut(key) else { return };
        let reuse = connection.pool.settings().reuse;
        let Some(http2) = &mut connection.http2 else { return };
        http2.idle_since_ms = now_ms;
        (http2.is_resting, http2.is_tunnels) = (true, false);
        connection.member.counters.connections_idle.add(1);
        let is_kept = !http2.is_leaving
            && !http2.frames.connection.is_closing()
            && http2.frames.connection.peer_settings().streams_max > 0
            && !connection.member.retired.get()
            && !connection.sharing.is_bound
            && connection.requests < reuse.requests_max
            && reuse.idle_per_worker > 0
            && reuse.idle_timeout_ms > 0
            && !is_draining;
        http2.is_leaving |= !is_kept;
        // The timer closes the connection, because the caller may still use it.
        let until_ms = if is_kept { http2.rests_until_ms(reuse.idle_timeout_ms) } else { now_ms };
        self.world.members.arm(self.io, key, until_ms);
    }

    /// Ends a connection without streams. Queued data is still sent, such as the end of a tunnel whose exchange has ended.
    pub fn end_member_http2(&mut self, key: ConnectionKey) {
        let Some(connection) = self.world.members.all.get_mut(key) else { return };
        let timeout_ms = connection.pool.settings().response_timeout_ms;
        let Some(http2) = &mut connection.http2 else { return };
        http2.frames.connection.end(ErrorCode::NO_ERROR, "", &mut http2.frames.out);
        http2.frames.flush(&mut Socket::of(self.io, connection.token));
        if let Some(token) = self.forget_member(key) {
            self.world.counted.member_connections_leaving.add(1);
            self.io.linger(token, timeout_ms);
        }
    }
}

impl Members {
    /// Returns window to the member for forwarded bytes.
    pub fn give_window(&mut self, agenda: &mut Agenda, ends: &mut TransactionEnds) {
        let Some(StreamOf { key, frames, stream, .. }) = self.stream_mut(ends) else {
            return;
        };
        // Data that waits for the rest of a read was not forwarded yet.
        let joined = stream.joined.bytes() as u32;
        let bytes = std::mem::replace(&mut stream.unreleased, joined) - joined;
        if bytes > 0 {
            frames.connection.release(stream.out.id, bytes, &mut frames.out);
            self.list_for_flush(agenda, key);
        }
    }

    /// Sets the timer of a connection to `at_ms`, unless it is set to an earlier time.
    pub fn arm(&mut self, io: &mut EventLoop, key: ConnectionKey, at_ms: u64) {
        let Some(connection) = self.all.get_mut(key) else { return };
        if let Some(http2) = &mut connection.http2
            && at_ms < http2.timer_ms
        {
            http2.timer_ms = at_ms;
            io.set_deadline(connection.token, at_ms);
        }
    }

    /// Sends the queued frames of a connection at the end of a turn.
    pub fn flush(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        let Some(connection) = self.all.get_mut(key) else { return };
        let Some(http2) = &mut connection.http2 else { return };
        http2.is_listed = false;
        http2.frames.flush(&mut Socket::of(io, connection.token));
        self.count_sent(io, key);
    }
}

impl Router {
    /// Handles an opened connection, whose TLS handshake is complete.
    pub fn member_http2_ready(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        let Some(connection) = self.world.members.all.get_mut(key) else { return };
        let Some(http2) = &mut connection.http2 else { return };
        http2.timer_ms = u64::MAX;
        io.clear_deadline(connection.token);
        let exchanges = http2.streams.exchanges();
        if exchanges.is_empty() {
            let now_ms = io.now_ms();
            self.world.members.arm(io, key, now_ms);
        }
        for exchange_key in exchanges {
            if let Some(transaction) = self.exchanges.get_mut(exchange_key) {
                transaction.ends_mut().account.times.connected_us = io.clock().now_us();
            }
            self.with(io, exchange_key, |it, at| {
                it.patience.request_handed_over(at, &mut it.ends, &it.request);
            });
        }
        self.world.members.watch_exhausted_window(io, key);
    }

    /// Processes bytes of a member.
    pub fn member_http2_received(&mut self, io: &mut EventLoop, key: ConnectionKey, input: &[u8]) {
        let mut block = self.inbox.member_block.take().unwrap_or_default();
        let mut at = 0;
        while let Some(http2) = self.world.members.all.get_mut(key).and_then(|it| it.http2.as_mut())
        {
            let (rest, frames) = (&input[at..], &mut http2.frames);
            match frames.connection.receive(rest, io.now_ms(), &mut block, &mut frames.out) {
                Ok(ReceiveResult { event: Event::NeedMore, .. }) => break,
                Ok(ReceiveResult { consumed, event }) => {
                    at += consumed;
                    self.member_event(io, key, rest, event, &mut block);
                }
                Err(_) => {
                    self.run_due(io, Due::EndOfRead);
                    self.connection_lost(io, key, MemberFailure::Malformed);
                    break;
                }
            }
        }
        self.run_due(io, Due::EndOfRead);
        self.inbox.member_block = Some(block);
        if let Some(http2) = self.world.members.all.get_mut(key).and_then(|it| it.http2.as_mut()) {
            http2.received_ms = io.now_ms();
            self.world.members.list_for_flush(&mut self.world.agenda, key);
        }
    }

    /// The exchange on this stream of a connection.
    pub fn exchange_on(&self, key: ConnectionKey, stream: u32, tag: u64) -> Option<ExchangeKey> {
        let exchange_key = exchange_of(tag)?;
        let ends = self.exchanges.get(exchange_key)?.ends();
        let is_on = self.world.members.stream(ends).is_some_and(|it| it.out.id == stream);
        (is_on && ends.phase.connection() == Some(key)).then_some(exchange_key)
    }

    fn member_event(
        &mut self,
        io: &mut EventLoop,
        key: ConnectionKey,
        input: &[u8],
        event: Event,
        block: &mut HeaderBlock,
    ) {
        match event {
            Event::Headers { stream, tag, kind, end_stream } => {
                let Some(exchange) = self.exchange_on(key, stream, tag) else { return };
                match kind {
                    HeadersKind::Trailers => self.member_trailers(io, key, exchange, stream, block),
                    _ => self.member_head(io, key, (exchange, stream), end_stream, block),
                }
            }
            Event::Data { stream, tag, start, end, end_stream } => {
                let data = &input[start..end];
                let Some(exchange) = self.exchange_on(key, stream, tag) else {
                    if let Some(http2) =
                        self.world.members.all.get_mut(key).and_then(|it| it.http2.as_mut())
                    {
                        let (frames, bytes) = (&mut http2.frames, data.len() as u32);
                        frames.connection.release(stream, bytes, &mut frames.out);
                    }
                    return;
                };
                let stream_end = if end_stream { End::Data } else { End::No };
                let behind = RestOfRead::of(input, end);
                self.with_any(io, exchange, |it, at| {
                    at.join_response_data(it, data, stream_end, behind)
                });
            }
            Event::StreamReset { stream, tag, code, by, is_whole } => {
                let Some(exchange) = self.exchange_on(key, stream, tag) else { return };
                stream_reset(self, io, exchange, (code, by, is_whole));
            }
            Event::Goaway { last_stream, .. } => member_goes_away(self, io, key, last_stream),
            Event::WindowOpened { stream: Some(stream) } => {
                let http2 = self.world.members.all.get(key).and_then(|it| it.http2.as_ref());
                let tag = http2.and_then(|http2| http2.frames.connection.tag(stream));
                if let Some(exchange) = tag.and_then(exchange_of) {
                    self.send_waiting_data_of(io, exchange);
                }
            }
            Event::WindowOpened { stream: None } => self.send_waiting_requests(io, key),
            Event::SettingsChanged => {
                let Some(connection) = self.world.members.all.get_mut(key) else { return };
                if let Some(http2) = &mut connection.http2 {
                    http2.has_settings = true;
                    let streams_max = http2.frames.connection.peer_settings().streams_max;
                    connection.member.streams_max.set(streams_max);
                }
                self.send_waiting_requests(io, key);
                self.ask_for_tunnels(io, key);
            }
            Event::NeedMore
            | Event::SettingsAcknowledged
            | Event::RequestCut { .. }
            | Event::Pong { .. }
            | Event::Priority { .. } => {}
        }
    }

    /// Handles the head of a response.
    fn member_head(
        &mut self,
        io: &mut EventLoop,
        key: ConnectionKey,
        (exchange_key, stream): (ExchangeKey, u32),
        end_stream: bool,
        block: &mut HeaderBlock,
    ) {
        let Some(exchange) = self.exchanges.get_mut(exchange_key).and_then(Transaction::http_mut)
        else {
            return;
        };
        if let Some(attempt) = exchange.ends.phase.attempt_mut() {
            attempt.response_seen = true;
        }
        let protocol = exchange.request.tunnel_protocol();
        let answered = AnsweredRequest { method: exchange.request.method, protocol };
        let mut head = self.inbox.response_head.take().unwrap_or_default();
        let taken = exchange.ends.tries.pool.settings().lenient;
        let read = read_response(block, end_stream, answered, taken, &mut head);
        if let Some(connection) = self.world.members.all.get(key)
            && read.is_ok()
            && !head.flaws.is_empty()
        {
            connection.member.counters.count_flaws(head.flaws);
        }
        match read {
            Ok(()) if head.is_interim() => {
                self.with(io, exchange_key, |it, at| it.forward_interim(at, &head, block.text()));
            }
            Ok(()) if head.status == 101 => {
                self.with(io, exchange_key, |it, at| {
                    it.begin_tunnel(at, (&head, block.text()), end_stream)
                });
            }
            Ok(()) if exchange.request.is_no_tunnel(&exchange.ends.phase, head.status) => {
                self.with(io, exchange_key, |it, at| {
                    it.respond(at, 502, Termination::MemberMalformed)
                });
            }
            Ok(()) => {
                let head = self.with(io, exchange_key, |it, at| {
                    it.begin_response(at, &mut head, (block.text(), b""))
                });
                let end = if end_stream { End::Data } else { End::No };
                self.with(io, exchange_key, |it, at| it.member_body(at, head, b"", end));
            }
            Err(_) => self.refuse_member_stream(io, key, exchange_key, stream),
        }
        self.inbox.response_head = Some(head);
    }

    fn member_trailers(
        &mut self,
        io: &mut EventLoop,
        key: ConnectionKey,
        exchange_key: ExchangeKey,
        stream: u32,
        block: &HeaderBlock,
    ) {
        let exchange = match self.exchanges.get(exchange_key) {
            Some(Transaction::Http(exchange)) => exchange,
            // A tunnel carries only DATA frames (RFC 9113 section 8.5).
            Some(_) => {
                return self.refuse_member_stream(io, key, exchange_key, stream);
            }
            None => return,
        };
        let mut fields = std::mem::take(&mut self.inbox.trailers);
        match read_trailers(block, trailers::of_response(&exchange.ends), &mut fields) {
            Ok(()) => {
                let end = End::Trailers(&fields, block.text());
                self.with_any(io, exchange_key, |it, at| {
                    at.join_response_data(it, b"", end, RestOfRead::Nothing)
                });
            }
            Err(_) => self.refuse_member_stream(io, key, exchange_key, stream),
        }
        self.inbox.trailers = fields;
    }

    /// Handles malformed data on a stream: resets the stream and reports the failure to the exchange.
    fn refuse_member_stream(
        &mut self,
        io: &mut EventLoop,
        key: ConnectionKey,
        exchange: ExchangeKey,
        stream: u32,
    ) {
        // What came before it in the same read was sound.
        self.with_any(io, exchange, |it, at| at.pass_joined_response(it, End::No));
        // Trailers have ended the stream already. To a client of HTTP/1 they say nothing about a response of known length.
        let it = self.exchanges.get(exchange).and_then(Transaction::http);
        let is_whole = it.is_some_and(is_whole_without_trailers);
        if let Some(http2) = self.world.members.all.get_mut(key).and_then(|it| it.http2.as_mut()) {
            // The next read reports too many refused streams as a connection error.
            let _ = http2.frames.connection.refuse(stream, &mut http2.frames.out);
        }
        let progress = if is_whole { Progress::Whole } else { Progress::Begun };
        self.with_any(io, exchange, |it, at| {
            it.stream_lost(at, MemberFailure::Malformed, progress)
        });
    }
}

/// The member takes no further requests on a connection: each above `last_stream` is retried elsewhere or ends.
fn member_goes_away(router: &mut Router, io: &mut EventLoop, key: ConnectionKey, last_stream: u32) {
    let Some(http2) = router.world.members.all.get(key).and_then(|it| it.http2.as_ref()) else {
        return;
    };
    let is_above = |it: &&MemberStream| it.out.id > last_stream || it.awaits_window;
    let lost = http2.streams.iter().filter(is_above).map(|it| {
        // A member that has answered with all that it announced has read the request, whatever it says.
        match is_whole(&http2.frames.connection, it.out.id) {
            true => (it.exchange, Progress::Whole),
            false => (it.exchange, Progress::Unread),
        }
    });
    let lost: Vec<(ExchangeKey, Progress)> = lost.collect();
    let is_idle = http2.streams.is_empty();
    for (exchange, progress) in lost {
        router.with_any(io, exchange, |it, at| {
            if progress == Progress::Whole {
                at.pass_joined_response(it, End::No);
            }
            it.stream_lost(at, MemberFailure::Abort, progress);
        });
    }
    if is_idle {
        let now_ms = io.now_ms();
        router.world.members.arm(io, key, now_ms);
    }
}

/// Handles a reset of the stream of an exchange.
fn stream_reset(
    router: &mut Router,
    io: &mut EventLoop,
    exchange: ExchangeKey,
    (code, by, is_whole): (ErrorCode, ResetBy, bool),
) {
    router.with_any(io, exchange, |it, at| at.pass_joined_response(it, End::No));
    if code == ErrorCode::NO_ERROR && router.with_tunnel(io, exchange, |it, at| it.member_left(at))
    {
        return;
    }
    let why = match by {
        ResetBy::Us => MemberFailure::Malformed,
        ResetBy::Peer => MemberFailure::Abort,
    };
    // The connection itself works, so it was not stale.
    let transaction = router.exchanges.get_mut(exchange);
    if let Some(attempt) = transaction.and_then(|it| it.ends_mut().phase.attempt_mut()) {
        attempt.may_be_stale = false;
    }
    let progress = match code {
        _ if is_whole => Progress::Whole,
        ErrorCode::REFUSED_STREAM => Progress::Unread,
        _ => Progress::Begun,
    };
    router.with_any(io, exchange, |it, at| it.stream_lost(at, why, progress));
}

impl Router {
    /// Sends more of this request, if the member's windows allow it.
    fn send_waiting_data_of(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        self.with_any(io, key, |it, at| {
            if at.world.members.send_waiting_request((at.io, &mut at.world.agenda), it.ends_mut())
                && !it.is_member_backed_up(at)
            {
                if let Some(StreamOf { stream, .. }) = at.world.members.stream_mut(it.ends()) {
                    stream.was_backed_up = false;
                }
                it.member_took(at);
            }
        });
    }

    /// Sends more of all requests, after the connection's window has opened or its socket has room again.
    fn send_waiting_requests(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        self.window_opened(io, key);
        let connection = self.world.members.all.get(key);
        for exchange in connection.map(MemberConnection::exchanges).unwrap_or_default() {
            self.send_waiting_data_of(io, exchange);
        }
    }
}

impl Members {
    /// Sends queued data of a request within the member's windows. Returns whether any data was queued.
    pub fn send_waiting_request(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        ends: &mut TransactionEnds,
    ) -> bool {
        let Some(StreamOf { key, token, frames, stream }) = self.stream_mut(ends) else {
            return false;
        };
        if !stream.out.is_behind() {
            return false;
        }
        stream.out.send_waiting_data(&mut Socket::of(io, token), frames, usize::MAX);
        self.note_window(key, io.now_ms());
        self.list_for_flush(agenda, key);
        true
    }
}

impl Router {
    /// Continues the requests of a connection after all data queued on its socket was sent.
    pub fn member_http2_drained(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        let connection = self.world.members.all.get(key);
        for exchange in connection.map(MemberConnection::exchanges).unwrap_or_default() {
            let Some(ends) = self.exchanges.get(exchange).map(Transaction::ends) else { continue };
            if ends.phase.connection() != Some(key) {
                continue;
            }
            if self.world.members.stream(ends).is_some_and(MemberStream::is_behind) {
                self.send_waiting_data_of(io, exchange);
                continue;
            }
            let stream = self.world.members.stream_mut(ends).map(|it| it.stream);
            if stream.is_some_and(|stream| std::mem::take(&mut stream.was_backed_up)) {
                self.with_any(io, exchange, |it, at| it.member_took(at));
            }
        }
    }

    /// Handles the timer of a connection.
    pub fn member_http2_timer(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        let now_ms = io.now_ms();
        let Some(connection) = self.world.members.all.get_mut(key) else { return };
        let is_connecting = connection.connecting;
        let idle_timeout_ms = connection.pool.settings().reuse.idle_timeout_ms;
        let Some(http2) = &mut connection.http2 else { return };
        http2.timer_ms = u64::MAX;
        if is_connecting {
            let open_by_ms = http2.open_by_ms;
            if open_by_ms <= now_ms {
                return self.connection_lost(io, key, MemberFailure::ConnectTimeout);
            }
            return self.world.members.arm(io, key, open_by_ms);
        }
        if http2.streams.is_empty() {
            let until_ms = http2.rests_until_ms(idle_timeout_ms);
            if until_ms <= now_ms || http2.is_leaving || http2.frames.connection.is_closing() {
                return self.edge(io).end_member_http2(key);
            }
            return self.world.members.arm(io, key, until_ms);
        }
        let exchanges = http2.streams.exchanges();
        self.move_off_exhausted_window(io, key);
        for exchange in exchanges {
            self.member_stream_timer(io, key, exchange);
            if !self.world.members.all.contains(key) {
                return;
            }
        }
    }

    /// Checks the deadline of one stream when the timer of its connection expires.
    fn member_stream_timer(
        &mut self,
        io: &mut EventLoop,
        key: ConnectionKey,
        exchange_key: ExchangeKey,
    ) {
        let now_ms = io.now_ms();
        let Some(exchange) = self.exchanges.get(exchange_key).and_then(Transaction::http) else {
            return;
        };
        if exchange.ends.phase.connection() != Some(key) {
            return;
        }
        let awaits_settings = self.world.members.awaits_settings(&exchange.ends, &exchange.request);
        // For a request that waits for the window, `move_off_exhausted_window` checks the time.
        let stream = self.world.members.stream(&exchange.ends).filter(|it| !it.awaits_window);
        let Some(stream) = stream else { return };
        let Some(deadline_ms) = stream.deadline_ms else { return };
        // A member that has not received the request cannot answer yet, so its progress extends the deadline. Requests
        // without a body get no extension, because the acknowledged bytes may belong to other requests.
        let has_body = !exchange.request.framing.is_empty();
        let id = stream.out.id;
        let may_be_behind = has_body || stream.out.is_behind() || stream.was_backed_up;
        let timeout_ms = exchange.patience.pace.client_timeout_ms(&exchange.ends.server);
        let Some(connection) = self.world.members.all.get_mut(key) else { return };
        let until_ms = match deadline_ms <= now_ms && may_be_behind {
            true => io.patience_until_ms(connection.token, timeout_ms),
            false => deadline_ms,
        };
        let response_timeout_ms = connection.pool.settings().response_timeout_ms;
        let Some(http2) = &mut connection.http2 else { return };
        let is_whole = is_whole(&http2.frames.connection, id);
        if awaits_settings && deadline_ms <= now_ms {
            // The member did not send its SETTINGS in time, so the connection gets no more requests.
            http2.leave();
            self.with_any(io, exchange_key, |it, at| {
                it.stream_lost(at, MemberFailure::ConnectTimeout, Progress::Unsettled);
            });
        } else if until_ms <= now_ms {
            // If no bytes arrived for half of the timeout, the connection may be dead and gets no more requests.
            http2.is_leaving |= http2.received_ms + response_timeout_ms / 2 < now_ms;
            let progress = if is_whole { Progress::Whole } else { Progress::Begun };
            self.with_any(io, exchange_key, |it, at| {
                it.stream_lost(at, MemberFailure::Timeout, progress)
            });
        } else {
            self.with(io, exchange_key, |it, at| it.ends.set_member_deadline(at, until_ms));
        }
    }
}
