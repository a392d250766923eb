//! Members with HTTP/2. A connection carries the requests of many exchanges, each on its own stream.
//!
//! An exchange stores the lines of its request head for retries. The head on a stream is encoded from these lines. If a
//! connection fails, each exchange on it is retried elsewhere or ends.

use weir_connection::joining::RestOfRead;
use weir_connection::member::events::MemberEvent;
use weir_connection::member::http2::DueAtTimer;
use weir_event_loop::EventLoop;
use weir_exchange::arena::{ConnectionKey, ExchangeKey};
use weir_exchange::parts::failure::MemberFailure;
use weir_http::h2::hpack::HeaderBlock;

use crate::worker::agenda::{Due, Task};
use crate::worker::member::stream_event::{MemberStreamId, StreamEvent};
use crate::worker::router::Router;

impl Router {
    /// Tells a transaction what happens to its stream, and what follows from that.
    pub fn tell_stream(&mut self, io: &mut EventLoop, key: ExchangeKey, event: StreamEvent<'_>) {
        let mut next = Some(event);
        while let Some(event) = next {
            next = self.with_any(io, key, |it, at| event.tell(it, at));
        }
    }

    /// Processes bytes of a member.
    pub fn member_http2_received(&mut self, io: &mut EventLoop, key: ConnectionKey, input: &[u8]) {
        let mut block = self.inbox.member_block.take().unwrap_or_default();
        let mut at = 0;
        while let Some(http2) = self.world.members.http2_mut(key) {
            let rest = &input[at..];
            match http2.received(rest, io.now_ms(), &mut block) {
                Ok(None) => break,
                Ok(Some((consumed, event))) => {
                    at += consumed;
                    self.member_event(io, key, (rest, event), &mut block);
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
        if let Some(http2) = self.world.members.http2_mut(key) {
            http2.received_ms = io.now_ms();
            if http2.must_be_listed() {
                self.world.agenda.add(Task::FlushMember(key));
            }
        }
    }

    fn member_event(
        &mut self,
        io: &mut EventLoop,
        key: ConnectionKey,
        (input, event): (&[u8], MemberEvent),
        block: &mut HeaderBlock,
    ) {
        match event {
            MemberEvent::Nothing => {}
            MemberEvent::Head { exchange, stream, is_end } => {
                let mut head = self.inbox.response_head.take().unwrap_or_default();
                let stream = MemberStreamId { connection: key, id: stream };
                let event = StreamEvent::Head { stream, head: &mut head, block, is_end };
                self.tell_stream(io, exchange, event);
                self.inbox.response_head = Some(head);
            }
            MemberEvent::Trailers { exchange, stream } => {
                let mut fields = std::mem::take(&mut self.inbox.trailers);
                let stream = MemberStreamId { connection: key, id: stream };
                let event = StreamEvent::Trailers { stream, fields: &mut fields, block };
                self.tell_stream(io, exchange, event);
                self.inbox.trailers = fields;
            }
            MemberEvent::Data { exchange, data, is_end } => {
                let behind = RestOfRead::of(input, data.end);
                let event = StreamEvent::Data { data: &input[data], is_end, behind };
                self.tell_stream(io, exchange, event);
            }
            MemberEvent::Reset { exchange, reset } => {
                self.tell_stream(io, exchange, StreamEvent::Reset(reset));
            }
            MemberEvent::GoesAway { lost, is_idle } => {
                for (exchange, progress) in lost {
                    self.tell_stream(io, exchange, StreamEvent::GoneAway(progress));
                }
                if is_idle && let Some(connection) = self.world.members.all.get_mut(key) {
                    connection.arm(io, io.now_ms());
                }
            }
            MemberEvent::StreamOpened(exchange) => {
                self.tell_stream(io, exchange, StreamEvent::WindowOpened);
            }
            MemberEvent::WindowOpened { streams_max } => {
                let Some(connection) = self.world.members.all.get_mut(key) else { return };
                connection.note_window(io.now_ms());
                streams_max.into_iter().for_each(|max| connection.member.streams_max.set(max));
                // Requests that have waited for the window precede further data of those that have exhausted it.
                for exchange in connection.admitted_by_window() {
                    self.tell_stream(io, exchange, StreamEvent::Resent);
                }
                for exchange in self.world.members.exchanges_of(key) {
                    self.tell_stream(io, exchange, StreamEvent::WindowOpened);
                }
                if streams_max.is_some() {
                    for exchange in self.world.members.exchanges_of(key) {
                        self.tell_stream(io, exchange, StreamEvent::Settings);
                    }
                }
            }
        }
    }

    /// Handles the timer of a connection.
    pub fn member_http2_timer(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        let now_ms = io.now_ms();
        let Some(connection) = self.world.members.all.get_mut(key) else { return };
        let idle_timeout_ms = connection.pool.settings().reuse.idle_timeout_ms;
        let Some(http2) = &mut connection.http2 else { return };
        match http2.timer(connection.connecting, idle_timeout_ms, now_ms) {
            DueAtTimer::NotOpen => {
                return self.connection_lost(io, key, MemberFailure::ConnectTimeout);
            }
            DueAtTimer::Later(at_ms) => return connection.arm(io, at_ms),
            DueAtTimer::End => return self.world.members.end_http2(io, key),
            DueAtTimer::Streams => {}
        }
        let exchanges = http2.streams.exchanges();
        if http2.takes_body(now_ms) {
            connection.watch_exhausted_window(io);
        } else {
            // Requests that wait for the window move to another connection to the same member.
            for exchange in http2.awaiting_window() {
                self.tell_stream(io, exchange, StreamEvent::Crowded);
            }
        }
        for exchange in exchanges {
            self.tell_stream(io, exchange, StreamEvent::Timer(key));
            if !self.world.members.all.contains(key) {
                return;
            }
        }
    }
}
