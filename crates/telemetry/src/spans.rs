//! Spans of sampled requests, encoded by the worker that served the request and sent in batches.
//!
//! A line of a batch is the field `spans` of OTLP's `ScopeSpans` with one span
//! (`opentelemetry/proto/trace/v1/trace.proto`), so batches need no re-encoding. Attributes follow the semantic
//! conventions of OpenTelemetry for HTTP; weir's own begin with `weir.`. Secrets in queries are masked
//! ([`redaction`](crate::redaction)).

use std::net::SocketAddr;
use std::sync::mpsc::SyncSender;

use weir_core::clock::Clock;
use weir_event_loop::wall_clock::WallClock;
use weir_exchange::parts::request_context::RequestContext;
use weir_exchange::parts::request_ids::RequestIds;
use weir_exchange::parts::request_trace::{FinishedAttempt, Kind, Record, RequestTrace};
use weir_exchange::parts::transaction_ends::TransactionEnds;
use weir_exchange::shared::counters::WorkerCounters;
use weir_exchange::termination::Termination;
use weir_exchange::transaction::tracing::attempted;
use weir_http::message::Version;

use crate::log_batch::Batcher;
use crate::protobuf::Message;
use crate::redaction;
use crate::reports::{SpanBatch, Spans};

/// Field number in `ScopeSpans`.
const SPANS: u32 = 2;

/// Field numbers of `Span`.
mod span {
    pub const TRACE_ID: u32 = 1;
    pub const SPAN_ID: u32 = 2;
    pub const TRACE_STATE: u32 = 3;
    pub const PARENT_SPAN_ID: u32 = 4;
    pub const NAME: u32 = 5;
    pub const KIND: u32 = 6;
    pub const START: u32 = 7;
    pub const END: u32 = 8;
    pub const ATTRIBUTES: u32 = 9;
    pub const EVENTS: u32 = 11;
    pub const STATUS: u32 = 15;
    pub const FLAGS: u32 = 16;
}

/// Values of `SpanKind`.
const KIND_SERVER: u64 = 2;
const KIND_CLIENT: u64 = 3;
/// Value of `StatusCode`.
const STATUS_ERROR: u64 = 2;
/// The flags `HAS_IS_REMOTE` and `IS_REMOTE` of a span: it is known whether the parent is remote, and the parent is remote.
const FLAG_HAS_REMOTE: u32 = 0x100;
const FLAG_REMOTE: u32 = 0x200;

/// The methods that the semantic conventions define.
const METHODS: [&[u8]; 9] =
    [b"CONNECT", b"DELETE", b"GET", b"HEAD", b"OPTIONS", b"PATCH", b"POST", b"PUT", b"TRACE"];

/// A finished transaction with its trace.
pub struct FinishedTrace<'a> {
    /// The connections.
    pub ends: &'a TransactionEnds,
    /// The stored facts about the request.
    pub context: &'a RequestContext,
    /// The trace context.
    pub traced: &'a RequestTrace,
    /// The facts for the spans.
    pub record: &'a Record,
    /// The termination reason.
    pub why: Termination,
}

/// The spans of one worker.
pub struct SpanLog {
    batch: Batcher<Spans>,
    wall: WallClock,
}

impl SpanLog {
    /// Creates a log that sends its batches to `sender`.
    pub fn new(sender: SyncSender<SpanBatch>) -> Self {
        Self { batch: Batcher::new(Spans, sender), wall: WallClock::default() }
    }

    /// Writes the spans of a transaction: one for a client's request, and one for each attempt with a member.
    pub fn write(
        &mut self,
        finished: &FinishedTrace<'_>,
        ids: &RequestIds,
        clock: Clock,
        counters: &WorkerCounters,
    ) {
        let offset_us = self.wall.unix_us(clock) - clock.now_us();
        let unix = |us: u64| (us + offset_us) * 1_000;
        let FinishedTrace { ends, traced, record, why, .. } = *finished;
        if record.kind == Kind::Client {
            let out = self.batch.line(clock.now_ms());
            Message::new(out).message(SPANS, |span| {
                let times = (unix(ends.account.begun_us), unix(clock.now_us()));
                put_server_span(span, finished, ids, times);
            });
            self.batch.end_line(&counters.spans_dropped);
        }
        let last = attempted(ends, traced, clock.now_us(), None);
        let cut = last.as_ref().and_then(|_| cut_by(why));
        let attempts = record.attempts.iter().map(|it| (it, None));
        let attempts = attempts.chain(last.iter().map(|it| (it, cut)));
        for (number, (attempt, cut)) in attempts.enumerate() {
            let out = self.batch.line(clock.now_ms());
            Message::new(out).message(SPANS, |span| {
                let attempt = (number as u64, attempt, cut);
                put_client_span(span, (traced, record), attempt, unix);
            });
            self.batch.end_line(&counters.spans_dropped);
        }
    }

    /// Sends the batch if it is old enough. Returns the time of the next call; `None`: no span waits.
    pub fn flush_if_due(&mut self, now_ms: u64, counters: &WorkerCounters) -> Option<u64> {
        self.batch.flush_if_due(now_ms, &counters.spans_dropped)
    }

    /// Sends the batch; if the queue is full, drops and counts it.
    pub fn flush(&mut self, counters: &WorkerCounters) {
        self.batch.flush(&counters.spans_dropped);
    }
}

fn put_server_span(
    span: &mut Message<'_>,
    finished: &FinishedTrace<'_>,
    ids: &RequestIds,
    times: (u64, u64),
) {
    let FinishedTrace { ends, context, traced, record, why } = *finished;
    let (account, status) = (&ends.account, ends.account.status);
    put_ids(span, traced, traced.span_id, traced.parent_id, record);
    put_start(span, &record.method, KIND_SERVER, times);
    if traced.parent_id != 0 {
        span.fixed32(span::FLAGS, u32::from(traced.flags) | FLAG_HAS_REMOTE | FLAG_REMOTE);
    } else {
        span.fixed32(span::FLAGS, u32::from(traced.flags) | FLAG_HAS_REMOTE);
    }
    put_method(span, &record.method);
    put_path_and_query(span, &record.target);
    put_text(span, "url.scheme", if record.is_secure { b"https" } else { b"http" });
    put_host(span, &record.host);
    put_text(span, "network.protocol.version", version(record.version).as_bytes());
    put_address(span, ("client.address", "client.port"), record.client);
    put_address(span, ("network.peer.address", "network.peer.port"), record.peer);
    put_address(span, ("network.local.address", "network.local.port"), record.listen);
    put_text(span, "user_agent.original", &redaction::text(&record.user_agent));
    put_status(span, status);
    put_text(span, "weir.virtual_server", ends.server.live.name.as_bytes());
    if let Some(entered_at) = &context.entered_at {
        put_text(span, "weir.entered_at", entered_at.live.name.as_bytes());
    }
    if ends.tries.was_sought {
        put_text(span, "weir.pool", ends.tries.pool.live.name.as_bytes());
    }
    if let Some(member) = &account.last_member {
        put_text(span, "weir.member", member.live.label.as_bytes());
    }
    match account.request_number {
        0 => put_text(span, "weir.request_id", &context.request_id),
        number => {
            put_text(span, "weir.request_id", format!("{:032x}", ids.id(number)).as_bytes());
        }
    }
    if let Some(kept) = context.kept {
        put_text(span, "weir.persistence", kept.as_str().as_bytes());
    }
    put_number(span, "weir.retries", account.retries.into());
    put_text(span, "weir.termination", why.as_str().as_bytes());
    match cut_by(why) {
        Some(cut) => put_error(span, cut),
        None if status >= 500 => put_error(span, &status.to_string()),
        None => {}
    }
}

fn put_client_span(
    span: &mut Message<'_>,
    (traced, record): (&RequestTrace, &Record),
    (number, attempted, cut): (u64, &FinishedAttempt, Option<&str>),
    unix: impl Fn(u64) -> u64,
) {
    let FinishedAttempt { span_id, pool, member, begun_us, ended_us, status, .. } = attempted;
    put_ids(span, traced, *span_id, traced.span_id, record);
    put_start(span, &record.method, KIND_CLIENT, (unix(*begun_us), unix(*ended_us)));
    span.fixed32(span::FLAGS, u32::from(traced.flags) | FLAG_HAS_REMOTE);
    put_method(span, &record.method);
    let address = member.live.address.socket();
    put_address(span, ("server.address", "server.port"), address);
    if address.is_none() {
        put_text(span, "server.address", member.live.label.as_bytes());
    }
    put_status(span, *status);
    if number > 0 {
        put_number(span, "http.request.resend_count", number);
    }
    put_text(span, "weir.pool", pool.live.name.as_bytes());
    put_text(span, "weir.member", member.live.label.as_bytes());
    if let Kind::Own(purpose) = record.kind {
        put_text(span, "weir.request", purpose.as_bytes());
    }
    let events = [("connected", attempted.connected_us), ("response", attempted.first_byte_us)];
    for (name, us) in events.into_iter().filter(|(_, us)| us > begun_us) {
        span.message(span::EVENTS, |event| {
            event.fixed64(1, unix(us));
            event.text(2, name.as_bytes());
        });
    }
    match (attempted.failure, cut) {
        (Some(failure), _) => put_error(span, failure.termination().as_str()),
        (None, _) if *status >= 400 => put_error(span, &status.to_string()),
        (None, Some(cut)) => put_error(span, cut),
        (None, None) => {}
    }
}

/// The reason why a request got no complete response from a member or from weir; `None`: the response was complete.
fn cut_by(why: Termination) -> Option<&'static str> {
    match why {
        Termination::Complete
        | Termination::Policy
        | Termination::Waf
        | Termination::RateLimit
        | Termination::ClientLimit
        | Termination::Misdirected
        | Termination::TooEarly
        | Termination::PathRefused => None,
        why => Some(why.as_str()),
    }
}

fn put_ids(
    span: &mut Message<'_>,
    traced: &RequestTrace,
    id: u64,
    parent_id: u64,
    record: &Record,
) {
    span.bytes(span::TRACE_ID, &traced.trace_id.to_be_bytes());
    span.bytes(span::SPAN_ID, &id.to_be_bytes());
    if !record.state.is_empty() {
        span.text(span::TRACE_STATE, &record.state);
    }
    if parent_id != 0 {
        span.bytes(span::PARENT_SPAN_ID, &parent_id.to_be_bytes());
    }
}

fn put_start(span: &mut Message<'_>, method: &[u8], kind: u64, (start, end): (u64, u64)) {
    span.text(span::NAME, if is_known(method) { method } else { b"HTTP" });
    span.number(span::KIND, kind);
    span.fixed64(span::START, start);
    span.fixed64(span::END, end);
}

fn is_known(method: &[u8]) -> bool {
    METHODS.contains(&method)
}

fn put_method(span: &mut Message<'_>, method: &[u8]) {
    if is_known(method) {
        return put_text(span, "http.request.method", method);
    }
    put_text(span, "http.request.method", b"_OTHER");
    put_text(span, "http.request.method_original", method);
}

/// Writes the path and the query, without secrets.
fn put_path_and_query(span: &mut Message<'_>, received: &[u8]) {
    // The scheme and host of an absolute target have attributes of their own.
    let target = match memchr::memmem::find(received, b"://") {
        Some(at) if !received.starts_with(b"/") => {
            let rest = &received[at + 3..];
            let path = rest.iter().position(|byte| matches!(byte, b'/' | b'?'));
            path.map_or(&b"/"[..], |path| &rest[path..])
        }
        _ => received,
    };
    let shown = redaction::target(target);
    let (path, query) = match shown.iter().position(|byte| *byte == b'?') {
        Some(at) => (&shown[..at], &shown[at + 1..]),
        None => (&shown[..], &b""[..]),
    };
    put_text(span, "url.path", path);
    put_text(span, "url.query", query);
}

/// Writes the host and the port that the client requested.
fn put_host(span: &mut Message<'_>, host: &[u8]) {
    let port_at = match host.iter().rposition(|byte| matches!(byte, b':' | b']')) {
        Some(at) if host[at] == b':' => at,
        _ => host.len(),
    };
    let (name, port) = host.split_at(port_at);
    put_text(span, "server.address", name);
    let port = port.get(1..).and_then(|port| std::str::from_utf8(port).ok());
    if let Some(port) = port.and_then(|port| port.parse::<u16>().ok()) {
        put_number(span, "server.port", port.into());
    }
}

fn version(version: Version) -> &'static str {
    match version {
        Version::Http10 => "1.0",
        Version::Http11 => "1.1",
        Version::Http2 => "2",
    }
}

fn put_address(span: &mut Message<'_>, (name, port): (&str, &str), address: Option<SocketAddr>) {
    let Some(address) = address else { return };
    put_text(span, name, address.ip().to_canonical().to_string().as_bytes());
    // The port of a client behind a proxy is unknown.
    if address.port() != 0 {
        put_number(span, port, address.port().into());
    }
}

fn put_status(span: &mut Message<'_>, status: u16) {
    if status != 0 {
        put_number(span, "http.response.status_code", status.into());
    }
}

fn put_error(span: &mut Message<'_>, error: &str) {
    put_text(span, "error.type", error.as_bytes());
    span.message(span::STATUS, |status| status.number(3, STATUS_ERROR));
}

/// Writes an attribute; an empty value is omitted.
fn put_text(span: &mut Message<'_>, key: &str, value: &[u8]) {
    if value.is_empty() {
        return;
    }
    span.message(span::ATTRIBUTES, |pair| {
        pair.text(1, key.as_bytes());
        pair.message(2, |any| any.text(1, value));
    });
}

fn put_number(span: &mut Message<'_>, key: &str, value: u64) {
    span.message(span::ATTRIBUTES, |pair| {
        pair.text(1, key.as_bytes());
        pair.message(2, |any| any.number(3, value));
    });
}

#[cfg(test)]
mod tests;
