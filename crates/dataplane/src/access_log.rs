//! Access log lines, formatted by the worker that served the request, handed over in batches.
//!
//! The data path never waits for the log: a batch that the log cannot take is dropped and counted.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::mpsc::{SyncSender, TrySendError};

use weir_config::snapshot::AccessFormat;
use weir_core::clock::Clock;
use weir_core::policy::Lines;
use weir_event_loop::wall_clock::{Date, WallClock};
use weir_exchange::shared::counters::WorkerCounters;
use weir_exchange::termination::Termination;
use weir_http::message::{RequestHead, Version};

use crate::reports::LogBatch;

/// A batch of this size is handed over at once.
const BATCH_BYTES: usize = 32 * 1024;
/// A line waits at most this long for its batch.
const BATCH_MS: u64 = 100;
/// Bytes of one request field (target, host, …) that a line shows.
const SHOWN_BYTES_MAX: usize = 2048;

/// What a line says besides the request itself.
pub struct Entry<'a> {
    /// The form that was in force when the request came; `request` has it already.
    pub format: AccessFormat,
    /// What [`AccessLog::request_part`] made of the request head; empty if there was none.
    pub request: &'a [u8],
    /// The client.
    pub peer: Option<SocketAddr>,
    /// Virtual server.
    pub server: &'a str,
    /// Pool and member that answered.
    pub pool: Option<&'a str>,
    /// Its label.
    pub member: Option<&'a str>,
    /// Status sent; 0: none.
    pub status: u16,
    /// Body bytes of the request.
    pub bytes_received: u64,
    /// Bytes of the response, head included.
    pub bytes_sent: u64,
    /// Those of its heads.
    pub head_bytes_sent: u64,
    /// Further members tried.
    pub retries: u32,
    /// From the complete request head to the first try of a member.
    pub queue_us: u64,
    /// From there to an open connection; 0: an idle one was used.
    pub connect_us: u64,
    /// From there to the response head.
    pub first_byte_us: u64,
    /// From the complete request head to the end.
    pub total_us: u64,
    /// What policies marked it with.
    pub marks: Option<&'a Lines>,
    /// How it ended.
    pub termination: Termination,
}

/// The access log of one worker.
pub struct AccessLog {
    format: AccessFormat,
    batch: LogBatch,
    batch_since_ms: u64,
    sender: SyncSender<LogBatch>,
    request_id: u128,
    wall: WallClock,
}

impl AccessLog {
    /// A log that hands batches to `sender`; `request_id` seeds the ids.
    pub fn new(sender: SyncSender<LogBatch>, request_id: u128) -> Self {
        Self {
            format: AccessFormat::Off,
            batch: LogBatch { bytes: Vec::new(), lines: 0 },
            batch_since_ms: 0,
            sender,
            request_id,
            wall: WallClock::default(),
        }
    }

    /// Sets the form of further lines.
    pub fn set_format(&mut self, format: AccessFormat) {
        self.format = format;
    }

    /// The form of the line of a request that comes now.
    #[inline]
    pub fn format(&self) -> AccessFormat {
        self.format
    }

    /// Formats what a line will say of the request, while its bytes are at hand.
    pub fn request_part(&self, head: &RequestHead, input: &[u8], out: &mut Vec<u8>) {
        let field = |name: &[u8]| {
            let mut fields = head.fields.iter();
            let found = fields.find(|field| field.name.of(input).eq_ignore_ascii_case(name));
            found.map_or(&b""[..], |field| field.value.of(input))
        };
        let version = match head.version {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http2 => "HTTP/2.0",
        };
        let (method, target) = (head.method_text.of(input), head.target.of(input));
        if self.format == AccessFormat::Json {
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

    /// Formats what a line will say of a request that was refused before it was one. An operator wants to see
    /// which path was refused; the head may be there in part.
    pub fn refused_part(
        &self,
        why: Termination,
        head: &RequestHead,
        input: &[u8],
        out: &mut Vec<u8>,
    ) {
        if why == Termination::PathRefused && self.format != AccessFormat::Off {
            self.request_part(head, input, out);
        }
    }

    /// Formats what a line will say of a connection that has no requests: the name that it asked for.
    pub fn connection_part(&self, server_name: &str, out: &mut Vec<u8>) {
        if self.format == AccessFormat::Json && !server_name.is_empty() {
            put_text_key(out, "server_name");
            put_json_string(out, server_name.as_bytes());
        }
    }

    /// Formats what a line will say of a session of datagrams: how many came of the client, and went to it.
    pub fn session_part(&self, (received, sent): (u64, u64), out: &mut Vec<u8>) {
        if self.format == AccessFormat::Json {
            for (key, number) in [("datagrams_received", received), ("datagrams_sent", sent)] {
                put_text_key(out, key);
                put_number(out, number);
            }
        }
    }

    /// Writes one line.
    pub fn write(&mut self, entry: &Entry<'_>, clock: Clock, counters: &WorkerCounters) {
        if entry.format == AccessFormat::Off {
            return;
        }
        if self.batch.lines == 0 {
            self.batch_since_ms = clock.now_ms();
        }
        let (date, millisecond) = self.wall.at(clock);
        let out = &mut self.batch.bytes;
        if entry.format == AccessFormat::Json {
            self.request_id = self.request_id.wrapping_add(1);
            put_json(out, entry, date, millisecond, self.request_id);
        } else {
            put_combined(out, entry, date);
        }
        self.batch.lines += 1;
        if self.batch.bytes.len() >= BATCH_BYTES {
            self.flush(counters);
        }
    }

    /// Hands the batch over when it is old enough. Returns when to call again.
    pub fn flush_if_due(&mut self, now_ms: u64, counters: &WorkerCounters) -> Option<u64> {
        if self.batch.lines == 0 {
            return None;
        }
        let due_ms = self.batch_since_ms + BATCH_MS;
        if now_ms < due_ms {
            return Some(due_ms);
        }
        self.flush(counters);
        None
    }

    /// Hands the batch over, or drops and counts it.
    pub fn flush(&mut self, counters: &WorkerCounters) {
        let empty = LogBatch { bytes: Vec::with_capacity(BATCH_BYTES + 1024), lines: 0 };
        let batch = std::mem::replace(&mut self.batch, empty);
        if batch.lines == 0 {
            return;
        }
        match self.sender.try_send(batch) {
            Ok(()) => {}
            Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) => {
                counters.log_lines_dropped.add(u64::from(batch.lines));
                self.batch.bytes = batch.bytes;
                self.batch.bytes.clear();
            }
        }
    }
}

fn put_json(out: &mut Vec<u8>, entry: &Entry<'_>, date: &Date, millisecond: u64, id: u128) {
    out.extend_from_slice(b"{\"time\":\"");
    out.extend_from_slice(date.iso.as_bytes());
    put(out, format_args!(".{millisecond:03}Z\",\"request_id\":\"{id:032x}\""));
    put_text_key(out, "client");
    match entry.peer {
        Some(peer) => put(out, format_args!("\"{peer}\"")),
        None => out.extend_from_slice(b"\"unix\""),
    }
    put_text_key(out, "virtual_server");
    put_json_string(out, entry.server.as_bytes());
    out.extend_from_slice(entry.request);
    for (key, value) in [("pool", entry.pool), ("member", entry.member)] {
        if let Some(value) = value {
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
    if let Some(marks) = entry.marks.filter(|marks| !marks.is_empty()) {
        put_text_key(out, "marks");
        for (index, mark) in marks.iter().enumerate() {
            out.push(if index == 0 { b'[' } else { b',' });
            put_json_string(out, mark);
        }
        out.push(b']');
    }
    put_text_key(out, "termination");
    out.push(b'"');
    out.extend_from_slice(entry.termination.as_str().as_bytes());
    out.extend_from_slice(b"\"}\n");
}

fn put_combined(out: &mut Vec<u8>, entry: &Entry<'_>, date: &Date) {
    match entry.peer {
        Some(peer) => put(out, format_args!("{}", peer.ip())),
        None => out.extend_from_slice(b"unix:"),
    }
    out.extend_from_slice(b" - - [");
    out.extend_from_slice(date.combined.as_bytes());
    out.extend_from_slice(b"] ");
    let end = entry.request.iter().position(|&byte| byte == 0);
    let (line, fields) = match end {
        Some(end) => (&entry.request[..end], &entry.request[end + 1..]),
        None => (&b"\"-\""[..], &b" \"-\" \"-\""[..]),
    };
    out.extend_from_slice(line);
    let body_bytes = entry.bytes_sent.saturating_sub(entry.head_bytes_sent);
    put(out, format_args!(" {:03} {body_bytes}", entry.status));
    out.extend_from_slice(fields);
    out.push(b'\n');
}

/// Writing to a `Vec` cannot fail.
fn put(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(arguments);
}

fn put_text_key(out: &mut Vec<u8>, key: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// A JSON string of bytes that need not be UTF-8: each byte above ASCII is shown as the code point
/// of its value, so that no byte is lost and every line is valid.
fn put_json_string(out: &mut Vec<u8>, value: &[u8]) {
    out.push(b'"');
    let shown = &value[..value.len().min(SHOWN_BYTES_MAX)];
    let mut plain_from = 0;
    for (index, &byte) in shown.iter().enumerate() {
        if matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&shown[plain_from..index]);
        plain_from = index + 1;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            _ => put(out, format_args!("\\u{byte:04x}")),
        }
    }
    out.extend_from_slice(&shown[plain_from..]);
    out.push(b'"');
}

/// The escapes of nginx and Apache: `\xhh`.
fn put_quoted(out: &mut Vec<u8>, value: &[u8]) {
    for &byte in &value[..value.len().min(SHOWN_BYTES_MAX)] {
        if matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\' {
            out.push(byte);
        } else {
            put(out, format_args!("\\x{byte:02X}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_stay_valid_json() {
        for (value, json) in [
            (&b"plain"[..], r#""plain""#),
            (b"a\"b\\c", r#""a\"b\\c""#),
            (b"\x00\xff\n", r#""\u0000\u00ff\u000a""#),
            (b"", r#""""#),
        ] {
            let mut out = Vec::new();
            put_json_string(&mut out, value);
            assert_eq!(out, json.as_bytes());
        }
    }

    #[test]
    fn numbers() {
        for number in [0, 7, 10, 1_234_567, u64::MAX] {
            let mut out = Vec::new();
            put_number(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }
}
