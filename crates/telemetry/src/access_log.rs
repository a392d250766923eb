//! Access log lines, formatted by the worker that served the request, and sent in batches.
//!
//! The data path never waits for the log: a batch that the log cannot accept is dropped and counted.

mod custom_format;
mod entry;

use std::net::SocketAddr;
use std::sync::mpsc::SyncSender;

use weir_config::snapshot::{AccessFormat, GivenFormat, LogField};
use weir_core::clock::Clock;
use weir_event_loop::wall_clock::{Date, WallClock};
use weir_exchange::shared::counters::WorkerCounters;
use weir_exchange::termination::Termination;
use weir_http::message::RequestHead;
use weir_http::write_ip;

use self::custom_format::CustomFormat;
use self::entry::{
    HeadFieldValues, put_address_text, put_marks, put_quoted, put_rules, version_of,
};
use crate::json::{
    SHOWN_BYTES_MAX, put, put_id, put_json_string, put_number, put_text_key, put_three_digits,
};
use crate::log_batch::Batcher;
use crate::reports::{Log, LogBatch};

pub use self::entry::{Entry, PolicyFields, RequestId};

/// The access log of one worker.
pub struct AccessLog {
    format: AccessFormat,
    /// The latest custom format of the configuration.
    given: Option<CustomFormat>,
    batch: Batcher,
    request_id: u128,
    wall: WallClock,
}

impl AccessLog {
    /// Creates a log that sends batches to `sender`. Assigned request ids count up from `request_id`.
    pub fn new(sender: SyncSender<LogBatch>, request_id: u128) -> Self {
        Self {
            format: AccessFormat::Off,
            given: None,
            batch: Batcher::new(Log::Access, sender),
            request_id,
            wall: WallClock::default(),
        }
    }

    /// Sets the format of later lines. `given`: the custom format, if the configuration has one.
    pub fn set_format(&mut self, format: AccessFormat, given: &GivenFormat) {
        self.format = format;
        if let Some(format) = given
            && self.given.as_ref().is_none_or(|known| known.format != *format)
        {
            let number = self.given.as_ref().map_or(0, |known| known.number.wrapping_add(1));
            self.given = Some(CustomFormat::new(number, format));
        }
    }

    /// The format of lines for new requests.
    #[inline]
    pub fn format(&self) -> AccessFormat {
        self.format
    }

    /// Whether lines contain the applied rules.
    pub fn notes_rules(&self) -> bool {
        match (self.format, &self.given) {
            (AccessFormat::Json, _) => true,
            (AccessFormat::Given, Some(given)) => given.format.shows(LogField::Rules),
            _ => false,
        }
    }

    /// Formats the request's part of a line while its bytes are available. `client` is the client's address, if it differs
    /// from the connection's peer.
    pub fn request_part(
        &self,
        client: Option<SocketAddr>,
        head: &RequestHead,
        input: &[u8],
        out: &mut Vec<u8>,
    ) {
        if let Some(given) = self.given_now() {
            return given.keep_head(client, head, input, out);
        }
        let version = version_of(head);
        let (method, target) = (head.method_text.of(input), head.target.of(input));
        let shown = HeadFieldValues::of(head, input);
        if self.format == AccessFormat::Json {
            if let Some(client) = client {
                put_address(out, CLIENT_KEY, client);
            }
            put_text(out, "method", method);
            put_text(out, "host", head.authority(input));
            put_text(out, "target", target);
            put_text(out, "version", version.as_bytes());
            put_text(out, "referer", shown.referer);
            put_text(out, "user_agent", shown.user_agent);
        } else {
            if let Some(client) = client {
                write_ip(client.ip(), out);
                out.push(0);
            }
            out.push(b'"');
            put_quoted(out, method);
            out.push(b' ');
            put_quoted(out, target);
            out.push(b' ');
            out.extend_from_slice(version.as_bytes());
            out.extend_from_slice(b"\"\0");
            for value in [shown.referer, shown.user_agent] {
                out.extend_from_slice(b" \"");
                put_quoted(out, if value.is_empty() { b"-" } else { value });
                out.push(b'"');
            }
        }
    }

    /// Formats the request's part of a line for a malformed or refused request. Only a refused path is logged, because
    /// operators need to know it; the head may be incomplete.
    pub fn refused_part(
        &self,
        why: Termination,
        head: &RequestHead,
        input: &[u8],
        out: &mut Vec<u8>,
    ) {
        if why == Termination::PathRefused && self.format != AccessFormat::Off {
            self.request_part(None, head, input, out);
        }
    }

    /// Formats the part of a line for a connection without requests: the server name.
    pub fn connection_part(&self, server_name: &str, out: &mut Vec<u8>) {
        if let Some(given) = self.given_now() {
            given.keep_server_name(server_name, out);
        } else if self.format == AccessFormat::Json && !server_name.is_empty() {
            put_text_key(out, "server_name");
            put_json_string(out, server_name.as_bytes());
        }
    }

    /// Formats the part of a line for a UDP session: the numbers of datagrams received from and sent to the client.
    pub fn session_part(&self, (received, sent): (u64, u64), out: &mut Vec<u8>) {
        if let Some(given) = self.given_now() {
            given.keep_datagrams((received, sent), out);
        } else if self.format == AccessFormat::Json {
            for (key, number) in [("datagrams_received", received), ("datagrams_sent", sent)] {
                put_text_key(out, key);
                put_number(out, number);
            }
        }
    }

    /// The custom format of the configuration, if new requests use one.
    fn given_now(&self) -> Option<&CustomFormat> {
        self.given.as_ref().filter(|_| self.format == AccessFormat::Given)
    }

    /// Writes a line, unless the entry's format is off.
    pub fn write(&mut self, entry: &Entry<'_>, clock: Clock, counters: &WorkerCounters) {
        if entry.format == AccessFormat::Off {
            return;
        }
        if let RequestId::OfLog = entry.request_id {
            self.request_id = self.request_id.wrapping_add(1);
        }
        let (date, millisecond) = self.wall.at(clock);
        let out = self.batch.line(clock.now_ms());
        match (entry.format, &self.given) {
            (AccessFormat::Json, _) => put_json(out, entry, date, millisecond, self.request_id),
            (AccessFormat::Given, Some(given)) => {
                given.write(out, entry, (date, millisecond), self.request_id);
            }
            _ => put_combined(out, entry, date),
        }
        self.batch.end_line(&counters.log_lines_dropped);
    }

    /// The time of day, in milliseconds since 1970.
    pub fn unix_ms(&mut self, clock: Clock) -> u64 {
        self.wall.unix_ms(clock)
    }

    /// Assigns and returns the next number, for the record of an entry without an id. The log line must use the same number.
    pub fn number(&mut self) -> u128 {
        self.request_id = self.request_id.wrapping_add(1);
        self.request_id
    }

    /// Sends the batch if it is old enough. Returns the time of the next call; `None`: no line waits.
    #[inline]
    pub fn flush_if_due(&mut self, now_ms: u64, counters: &WorkerCounters) -> Option<u64> {
        self.batch.flush_if_due(now_ms, &counters.log_lines_dropped)
    }

    /// Sends the batch; if the queue is full, drops and counts it.
    pub fn flush(&mut self, counters: &WorkerCounters) {
        self.batch.flush(&counters.log_lines_dropped);
    }
}

/// Writes a key and a text.
#[inline(always)]
fn put_text(out: &mut Vec<u8>, key: &str, text: &[u8]) {
    put_text_key(out, key);
    put_json_string(out, text);
}

/// Writes a key and a number.
#[inline(always)]
fn put_amount(out: &mut Vec<u8>, key: &str, number: u64) {
    put_text_key(out, key);
    put_number(out, number);
}

fn put_servers(out: &mut Vec<u8>, entry: &Entry<'_>) {
    put_text(out, "virtual_server", entry.server.as_bytes());
    if let Some(entered_at) = entry.decided.entered_at {
        put_text(out, "entered_at", entered_at.as_bytes());
    }
}

fn put_json(out: &mut Vec<u8>, entry: &Entry<'_>, date: &Date, millisecond: u64, of_log: u128) {
    out.extend_from_slice(b"{\"time\":\"");
    out.extend_from_slice(date.iso.as_bytes());
    out.push(b'.');
    put_three_digits(out, millisecond);
    out.extend_from_slice(b"Z\",\"request_id\":");
    match entry.request_id {
        RequestId::OfLog => put_made_id(out, of_log),
        RequestId::Made(id) => put_made_id(out, id),
        RequestId::Taken(id) => put_json_string(out, id),
    }
    if let Some((trace_id, span_id)) = entry.decided.trace {
        put(out, format_args!(",\"trace_id\":\"{trace_id:032x}\",\"span_id\":\"{span_id:016x}\""));
    }
    let is_named = entry.request.starts_with(CLIENT_KEY);
    match entry.client {
        _ if is_named => {}
        Some(client) => put_address(out, CLIENT_KEY, client),
        None => out.extend_from_slice(b",\"client\":\"unix\""),
    }
    if let Some(peer) = entry.peer.filter(|_| is_named || entry.peer != entry.client) {
        put_address(out, b",\"peer\":", peer);
    }
    put_servers(out, entry);
    out.extend_from_slice(entry.request);
    if let Some(pool) = entry.pool.filter(|pool| !pool.is_empty()) {
        put_text(out, "pool", pool.as_bytes());
    }
    if let Some(member) = entry.member.filter(|member| !member.is_empty()) {
        put_text(out, "member", member.as_bytes());
    }
    put_amount(out, "status", entry.status.into());
    put_amount(out, "bytes_received", entry.bytes_received);
    put_amount(out, "bytes_sent", entry.bytes_sent);
    put_amount(out, "retries", entry.retries.into());
    put_amount(out, "queue_us", entry.queue_us);
    put_amount(out, "connect_us", entry.connect_us);
    put_amount(out, "first_byte_us", entry.first_byte_us);
    put_amount(out, "total_us", entry.total_us);
    put_decided(out, &entry.decided);
    if let Some(tls) = entry.tls.ok().flatten().filter(|tls| !tls.version.is_empty()) {
        put_text(out, "tls_version", tls.version.as_bytes());
        put_text(out, "tls_cipher", tls.cipher.as_bytes());
    }
    if let Err(why) = entry.tls {
        put_text(out, "tls_error", why.as_bytes());
    }
    out.extend_from_slice(b",\"termination\":\"");
    out.extend_from_slice(entry.termination.as_str().as_bytes());
    out.extend_from_slice(b"\"}\n");
}

fn put_made_id(out: &mut Vec<u8>, id: u128) {
    out.push(b'"');
    put_id(out, id);
    out.push(b'"');
}

fn put_decided(out: &mut Vec<u8>, decided: &PolicyFields<'_>) {
    if decided.is_bound {
        put_text(out, "reuse", b"client");
    }
    if let Some(marks) = decided.shown_marks() {
        put_text_key(out, "marks");
        put_marks(out, marks);
    }
    if decided.has_rules() {
        put_text_key(out, "rules");
        put_rules(out, decided);
    }
    if !decided.user.is_empty() {
        put_text(out, "user", decided.user);
    }
    if let Some(kept) = decided.persistence {
        put_text(out, "persistence", kept.as_str().as_bytes());
    }
}

fn put_combined(out: &mut Vec<u8>, entry: &Entry<'_>, date: &Date) {
    let mut parts = entry.request.rsplitn(3, |&byte| byte == 0);
    let (fields, line, named) = (parts.next(), parts.next(), parts.next());
    match (named, entry.client) {
        (Some(named), _) => out.extend_from_slice(named),
        (None, Some(client)) => write_ip(client.ip(), out),
        (None, None) => out.extend_from_slice(b"unix:"),
    }
    out.extend_from_slice(b" - ");
    put_user(out, entry.decided.user);
    out.extend_from_slice(b" [");
    out.extend_from_slice(date.combined.as_bytes());
    out.extend_from_slice(b"] ");
    let (line, fields) = match (line, fields) {
        (Some(line), Some(fields)) => (line, fields),
        _ => (&b"\"-\""[..], &b" \"-\" \"-\""[..]),
    };
    out.extend_from_slice(line);
    let body_bytes = entry.bytes_sent.saturating_sub(entry.head_bytes_sent);
    out.push(b' ');
    put_three_digits(out, entry.status.into());
    out.push(b' ');
    put_number(out, body_bytes);
    out.extend_from_slice(fields);
    out.push(b'\n');
}

/// The key before the client's address.
const CLIENT_KEY: &[u8] = b",\"client\":";

/// Writes an address. A port of 0 is unknown and omitted.
fn put_address(out: &mut Vec<u8>, key: &[u8], address: SocketAddr) {
    out.extend_from_slice(key);
    out.push(b'"');
    put_address_text(out, address);
    out.push(b'"');
}

/// Writes a user name, without characters that would end the field.
fn put_user(out: &mut Vec<u8>, user: &[u8]) {
    if user.is_empty() {
        out.push(b'-');
    }
    for part in user[..user.len().min(SHOWN_BYTES_MAX)].split_inclusive(|byte| *byte == b' ') {
        let (name, space) = match part.strip_suffix(b" ") {
            Some(name) => (name, &b"\\x20"[..]),
            None => (part, &b""[..]),
        };
        put_quoted(out, name);
        out.extend_from_slice(space);
    }
}
