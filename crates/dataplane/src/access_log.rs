//! Access log lines, formatted by the worker that served the request, handed over in batches.
//!
//! The data path never waits for the log: a batch that the log cannot take is dropped and counted.

mod given;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use weir_config::snapshot::{AccessFormat, GivenFormat, LogField, RuleName};
use weir_core::clock::Clock;
use weir_core::expression::TlsFacts;
use weir_core::policy::Lines;
use weir_event_loop::wall_clock::{Date, WallClock};
use weir_exchange::local::stickiness::Kept;
use weir_exchange::shared::counters::WorkerCounters;
use weir_exchange::termination::Termination;
use weir_http::message::{RequestHead, Version};

use self::given::Given;
use crate::json::{SHOWN_BYTES_MAX, put, put_json_string, put_number, put_text_key};
use crate::log_batch::Batcher;
use crate::reports::{Log, LogBatch};

/// The fields of a line that are not from the request head.
pub struct Entry<'a> {
    /// The format when the request arrived; `request` is in this format already.
    pub format: AccessFormat,
    /// The id of the request.
    pub request_id: RequestId<'a>,
    /// The output of [`AccessLog::request_part`] for the request head; empty without a valid head.
    pub request: &'a [u8],
    /// The client's address by its connection; `request` may name another (from a trusted proxy).
    pub client: Option<SocketAddr>,
    /// The address of the connection's peer.
    pub peer: Option<SocketAddr>,
    /// The results of the TLS handshake.
    pub tls: Option<TlsFacts<'a>>,
    /// Virtual server.
    pub server: &'a str,
    /// Pool and member that answered.
    pub pool: Option<&'a str>,
    /// The member's address.
    pub member: Option<&'a str>,
    /// The status that was sent; 0: no response.
    pub status: u16,
    /// Body bytes of the request.
    pub bytes_received: u64,
    /// Bytes of the response, including its heads.
    pub bytes_sent: u64,
    /// Bytes of the response's heads.
    pub head_bytes_sent: u64,
    /// The number of further members that were tried.
    pub retries: u32,
    /// µs from the complete request head to the first try of a member.
    pub queue_us: u64,
    /// µs from the first try to an open connection; 0: a kept connection was used.
    pub connect_us: u64,
    /// µs from the open connection to the response head.
    pub first_byte_us: u64,
    /// µs from the complete request head to the end.
    pub total_us: u64,
    /// The decisions of policies and persistence.
    pub decided: Decided<'a>,
    /// The reason for the end.
    pub termination: Termination,
}

/// The id of a request.
#[derive(Debug, Clone, Copy)]
pub enum RequestId<'a> {
    /// The log assigns a number.
    OfLog,
    /// A number that this process has assigned.
    Made(u128),
    /// An id from a trusted proxy.
    Taken(&'a [u8]),
}

/// The decisions of policies and persistence about a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Decided<'a> {
    /// Marks that policies added.
    pub marks: Option<&'a Lines>,
    /// The numbers of the rules that were applied.
    pub rules: &'a [u32],
    /// The names of rules.
    pub rule_names: &'a [RuleName],
    /// The result of persistence.
    pub persistence: Option<Kept>,
    /// The authenticated user; empty: not authenticated.
    pub user: &'a [u8],
    /// The virtual server that received the request, if it passed the request to another one.
    pub entered_at: Option<&'a str>,
    /// The trace id and the span id of the request.
    pub trace: Option<(u128, u64)>,
}

impl Decided<'_> {
    /// The marks, if there are any.
    fn shown_marks(&self) -> Option<&Lines> {
        self.marks.filter(|marks| !marks.is_empty())
    }

    /// Whether a rule was applied.
    fn has_rules(&self) -> bool {
        self.followed().next().is_some()
    }

    fn followed(&self) -> impl Iterator<Item = &RuleName> {
        self.rules.iter().filter_map(|rule| self.rule_names.get(*rule as usize))
    }
}

/// The access log of one worker.
pub struct AccessLog {
    format: AccessFormat,
    /// The latest custom format of the configuration.
    given: Option<Given>,
    batch: Batcher,
    request_id: u128,
    wall: WallClock,
}

impl AccessLog {
    /// A log that hands batches to `sender`; `request_id` seeds the ids.
    pub fn new(sender: SyncSender<LogBatch>, request_id: u128) -> Self {
        Self {
            format: AccessFormat::Off,
            given: None,
            batch: Batcher::new(Log::Access, sender),
            request_id,
            wall: WallClock::default(),
        }
    }

    /// Sets the format of further lines. `given`: the custom format, if the configuration has one.
    pub fn set_format(&mut self, format: AccessFormat, given: &GivenFormat) {
        self.format = format;
        if let Some(format) = given
            && self.given.as_ref().is_none_or(|known| known.format != *format)
        {
            let number = self.given.as_ref().map_or(0, |known| known.number.wrapping_add(1));
            self.given = Some(Given { number, format: Arc::clone(format) });
        }
    }

    /// The format of the lines of new requests.
    #[inline]
    pub fn format(&self) -> AccessFormat {
        self.format
    }

    /// Whether lines list the applied rules.
    pub fn notes_rules(&self) -> bool {
        match (self.format, &self.given) {
            (AccessFormat::Json, _) => true,
            (AccessFormat::Given, Some(given)) => given.format.shows(LogField::Rules),
            _ => false,
        }
    }

    /// Formats the request's part of a line while its bytes are available. `client` is the client's address, if it is
    /// not the connection's peer.
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
        let field = |name: &[u8]| {
            let mut fields = head.fields.iter();
            let found = fields.find(|field| field.name.of(input).eq_ignore_ascii_case(name));
            found.map_or(&b""[..], |field| field.value.of(input))
        };
        let version = version_of(head);
        let (method, target) = (head.method_text.of(input), head.target.of(input));
        if self.format == AccessFormat::Json {
            if let Some(client) = client {
                put_address(out, CLIENT_KEY, client);
            }
            for (key, value) in [
                ("method", method),
                ("host", head.authority(input)),
                ("target", target),
                ("version", version.as_bytes()),
                ("referer", field(b"referer")),
                ("user_agent", field(b"user-agent")),
            ] {
                put_text_key(out, key);
                put_json_string(out, value);
            }
        } else {
            if let Some(client) = client {
                put(out, format_args!("{}\0", client.ip()));
            }
            out.push(b'"');
            put_quoted(out, method);
            out.push(b' ');
            put_quoted(out, target);
            out.push(b' ');
            out.extend_from_slice(version.as_bytes());
            out.extend_from_slice(b"\"\0");
            for name in [&b"referer"[..], b"user-agent"] {
                let value = field(name);
                out.extend_from_slice(b" \"");
                put_quoted(out, if value.is_empty() { b"-" } else { value });
                out.push(b'"');
            }
        }
    }

    /// Formats the request's part of a line for a malformed or refused request. Operators need to see which path was
    /// refused; the head may be incomplete.
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

    /// Formats the part of a line for a UDP session: the numbers of datagrams from the client and to the client.
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
    fn given_now(&self) -> Option<&Given> {
        self.given.as_ref().filter(|_| self.format == AccessFormat::Given)
    }

    /// Writes one line.
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

    /// Returns the id of a record whose entry has none. The log line that must follow gets the same id.
    pub fn number(&mut self) -> u128 {
        self.request_id = self.request_id.wrapping_add(1);
        self.request_id
    }

    /// Hands the batch over when it is old enough. Returns when to call again.
    #[inline]
    pub fn flush_if_due(&mut self, now_ms: u64, counters: &WorkerCounters) -> Option<u64> {
        self.batch.flush_if_due(now_ms, &counters.log_lines_dropped)
    }

    /// Hands the batch over, or drops and counts it.
    pub fn flush(&mut self, counters: &WorkerCounters) {
        self.batch.flush(&counters.log_lines_dropped);
    }
}

fn put_servers(out: &mut Vec<u8>, entry: &Entry<'_>) {
    put_text_key(out, "virtual_server");
    put_json_string(out, entry.server.as_bytes());
    if let Some(entered_at) = entry.decided.entered_at {
        put_text_key(out, "entered_at");
        put_json_string(out, entered_at.as_bytes());
    }
}

fn put_json(out: &mut Vec<u8>, entry: &Entry<'_>, date: &Date, millisecond: u64, of_log: u128) {
    out.extend_from_slice(b"{\"time\":\"");
    out.extend_from_slice(date.iso.as_bytes());
    put(out, format_args!(".{millisecond:03}Z\",\"request_id\":"));
    match entry.request_id {
        RequestId::OfLog => put(out, format_args!("\"{of_log:032x}\"")),
        RequestId::Made(id) => put(out, format_args!("\"{id:032x}\"")),
        RequestId::Taken(id) => put_json_string(out, id),
    }
    if let Some((trace_id, span_id)) = entry.decided.trace {
        put(out, format_args!(",\"trace_id\":\"{trace_id:032x}\",\"span_id\":\"{span_id:016x}\""));
    }
    let is_named = entry.request.starts_with(CLIENT_KEY);
    match entry.client {
        _ if is_named => {}
        Some(client) => put_address(out, CLIENT_KEY, client),
        None => put(out, format_args!(",\"client\":\"unix\"")),
    }
    if let Some(peer) = entry.peer.filter(|_| is_named || entry.peer != entry.client) {
        put_address(out, b",\"peer\":", peer);
    }
    put_servers(out, entry);
    out.extend_from_slice(entry.request);
    for (key, value) in [("pool", entry.pool), ("member", entry.member)] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            put_text_key(out, key);
            put_json_string(out, value.as_bytes());
        }
    }
    for (key, number) in [
        ("status", u64::from(entry.status)),
        ("bytes_received", entry.bytes_received),
        ("bytes_sent", entry.bytes_sent),
        ("retries", u64::from(entry.retries)),
        ("queue_us", entry.queue_us),
        ("connect_us", entry.connect_us),
        ("first_byte_us", entry.first_byte_us),
        ("total_us", entry.total_us),
    ] {
        put_text_key(out, key);
        put_number(out, number);
    }
    if let Some(marks) = entry.decided.shown_marks() {
        put_text_key(out, "marks");
        put_marks(out, marks);
    }
    if entry.decided.has_rules() {
        put_text_key(out, "rules");
        put_rules(out, &entry.decided);
    }
    if !entry.decided.user.is_empty() {
        put_text_key(out, "user");
        put_json_string(out, entry.decided.user);
    }
    if let Some(kept) = entry.decided.persistence {
        put_text_key(out, "persistence");
        put_json_string(out, kept.as_str().as_bytes());
    }
    if let Some(tls) = entry.tls.filter(|tls| !tls.version.is_empty()) {
        for (key, value) in [("tls_version", tls.version), ("tls_cipher", tls.cipher)] {
            put_text_key(out, key);
            put_json_string(out, value.as_bytes());
        }
    }
    put_text_key(out, "termination");
    out.push(b'"');
    out.extend_from_slice(entry.termination.as_str().as_bytes());
    out.extend_from_slice(b"\"}\n");
}

/// Writes the marks of rules; there must be at least one.
fn put_marks(out: &mut Vec<u8>, marks: &Lines) {
    for (index, mark) in marks.iter().enumerate() {
        out.push(if index == 0 { b'[' } else { b',' });
        put_json_string(out, mark);
    }
    out.push(b']');
}

/// Writes the applied rules; there must be at least one: `["shop/no-admin"]`.
fn put_rules(out: &mut Vec<u8>, decided: &Decided<'_>) {
    for (index, name) in decided.followed().enumerate() {
        out.push(if index == 0 { b'[' } else { b',' });
        put_json_string(out, format!("{}/{}", name.policy, name.rule).as_bytes());
    }
    out.push(b']');
}

/// The HTTP version of a request.
fn version_of(head: &RequestHead) -> &'static str {
    match head.version {
        Version::Http10 => "HTTP/1.0",
        Version::Http11 => "HTTP/1.1",
        Version::Http2 => "HTTP/2.0",
    }
}

fn put_combined(out: &mut Vec<u8>, entry: &Entry<'_>, date: &Date) {
    let mut parts = entry.request.rsplitn(3, |&byte| byte == 0);
    let (fields, line, named) = (parts.next(), parts.next(), parts.next());
    match (named, entry.client) {
        (Some(named), _) => out.extend_from_slice(named),
        (None, Some(client)) => put(out, format_args!("{}", client.ip())),
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
    put(out, format_args!(" {:03} {body_bytes}", entry.status));
    out.extend_from_slice(fields);
    out.push(b'\n');
}

/// The text before the client's address.
const CLIENT_KEY: &[u8] = b",\"client\":";

/// Writes an address; without its port if the port is unknown.
fn put_address(out: &mut Vec<u8>, key: &[u8], address: SocketAddr) {
    out.extend_from_slice(key);
    out.push(b'"');
    put_address_text(out, address);
    out.push(b'"');
}

fn put_address_text(out: &mut Vec<u8>, address: SocketAddr) {
    match address.port() {
        0 => put(out, format_args!("{}", address.ip())),
        _ => put(out, format_args!("{address}")),
    }
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

/// Writes a value with the escapes of nginx and Apache: `\xhh`.
fn put_quoted(out: &mut Vec<u8>, value: &[u8]) {
    for &byte in &value[..value.len().min(SHOWN_BYTES_MAX)] {
        if matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\' {
            out.push(byte);
        } else {
            put(out, format_args!("\\x{byte:02X}"));
        }
    }
}
