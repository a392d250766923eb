//! A trace collector (OTLP over HTTP, binary protobuf). Its decoder is independent of weir's encoder.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use crate::member::{Exchange, Member, Request, Then};
use crate::{STEP_TIMEOUT, eventually};

/// A decoded span; ids are in hexadecimal digits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Span {
    /// The trace id.
    pub trace_id: String,
    /// The span id.
    pub id: String,
    /// The span id of the parent; empty: none.
    pub parent: String,
    /// The value of `tracestate`.
    pub state: String,
    /// The name.
    pub name: String,
    /// `SpanKind`: 2 is a server, 3 a client.
    pub kind: u64,
    /// Start time, in nanoseconds since 1970.
    pub start: u64,
    /// End time, in nanoseconds since 1970.
    pub end: u64,
    /// Attributes; values as text.
    pub attributes: BTreeMap<String, String>,
    /// The names of the span's events.
    pub events: Vec<String>,
    /// Whether the status is an error.
    pub is_error: bool,
    /// The flags.
    pub flags: u64,
}

impl Span {
    /// The value of an attribute; empty if it is absent.
    pub fn get(&self, key: &str) -> &str {
        self.attributes.get(key).map_or("", String::as_str)
    }

    /// Whether this is the span of a received request.
    pub fn is_server(&self) -> bool {
        self.kind == 2
    }

    /// Whether this is the span of an attempt with a member.
    pub fn is_client(&self) -> bool {
        self.kind == 3
    }
}

/// A collector.
#[derive(Debug)]
pub struct Collector(Member);

impl Collector {
    /// Starts a collector that accepts all requests.
    #[expect(clippy::new_without_default, reason = "it opens a socket")]
    pub fn new() -> Self {
        Self::answering(|exchange, _| exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
    }

    /// Starts a collector that answers with this function. Its number argument is the number of earlier requests.
    pub fn answering(
        answer: impl Fn(&mut Exchange<'_>, usize) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let count = std::sync::atomic::AtomicUsize::new(0);
        Self(Member::new(move |exchange| {
            let number = count.fetch_add(1, std::sync::atomic::Ordering::AcqRel);
            answer(exchange, number)?;
            Ok(Then::Close)
        }))
    }

    /// The address that the collector listens on.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// The `tracing:` section for a file, with further keys, such as `, timeout: 1s`.
    pub fn section(&self, more: &str) -> String {
        format!("tracing: {{ otlp: \"http://{}\", interval: 100ms{more} }}", self.address())
    }

    /// The received requests.
    pub fn requests(&self) -> Vec<Request> {
        self.0.requests()
    }

    /// All received spans.
    pub fn spans(&self) -> Vec<Span> {
        self.requests().iter().flat_map(|request| spans(&request.body)).collect()
    }

    /// Waits until this many spans have arrived, and returns them.
    #[track_caller]
    pub fn wait_for(&self, count: usize) -> Vec<Span> {
        eventually("spans come", STEP_TIMEOUT, || self.spans().len() >= count);
        let spans = self.spans();
        assert_eq!(spans.len(), count, "{spans:#?}");
        spans
    }

    /// The resource attributes of the first request.
    pub fn resource(&self) -> BTreeMap<String, String> {
        let body = self.requests().first().expect("a request").body.clone();
        let mut attributes = BTreeMap::new();
        for resource_spans in messages(&body, 1) {
            for resource in messages(resource_spans, 1) {
                attributes.extend(messages(resource, 1).into_iter().map(attribute));
            }
        }
        attributes
    }
}

/// The value of a field.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Decodes the fields of a message. Panics if it is malformed.
fn fields(mut rest: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let tag = varint(&mut rest);
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut rest)),
            1 => Value::Number(fixed(&mut rest, 8)),
            5 => Value::Number(fixed(&mut rest, 4)),
            2 => {
                let length = varint(&mut rest) as usize;
                let (bytes, behind) = rest.split_at(length);
                rest = behind;
                Value::Bytes(bytes)
            }
            wire => panic!("wire type {wire}"),
        };
        fields.push((tag >> 3, value));
    }
    fields
}

fn varint(rest: &mut &[u8]) -> u64 {
    let length = rest.iter().position(|byte| *byte < 0x80).expect("it ends") + 1;
    let (bytes, behind) = rest.split_at(length);
    *rest = behind;
    bytes.iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f))
}

fn fixed(rest: &mut &[u8], length: usize) -> u64 {
    let (bytes, behind) = rest.split_at(length);
    *rest = behind;
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn messages(message: &[u8], wanted: u64) -> Vec<&[u8]> {
    let found = fields(message).into_iter().filter(|(field, _)| *field == wanted);
    let bytes = |value| match value {
        Value::Bytes(bytes) => bytes,
        Value::Number(number) => panic!("{number} is no message"),
    };
    found.map(|(_, value)| bytes(value)).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("a text is UTF-8")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attribute(pair: &[u8]) -> (String, String) {
    let key = messages(pair, 1).pop().map(text).expect("a key");
    let any = messages(pair, 2).pop().expect("a value");
    let value = match fields(any).pop() {
        Some((1, Value::Bytes(value))) => text(value),
        Some((3, Value::Number(number))) => number.to_string(),
        _ => panic!("{key} has a value of another type"),
    };
    (key, value)
}

/// Decodes the spans of an `ExportTraceServiceRequest`.
pub fn spans(request: &[u8]) -> Vec<Span> {
    let mut spans = Vec::new();
    for resource_spans in messages(request, 1) {
        for scope_spans in messages(resource_spans, 2) {
            spans.extend(messages(scope_spans, 2).into_iter().map(span));
        }
    }
    spans
}

fn span(message: &[u8]) -> Span {
    let mut span = Span::default();
    for (field, value) in fields(message) {
        match (field, value) {
            (1, Value::Bytes(id)) => span.trace_id = hex(id),
            (2, Value::Bytes(id)) => span.id = hex(id),
            (3, Value::Bytes(state)) => span.state = text(state),
            (4, Value::Bytes(id)) => span.parent = hex(id),
            (5, Value::Bytes(name)) => span.name = text(name),
            (6, Value::Number(kind)) => span.kind = kind,
            (7, Value::Number(start)) => span.start = start,
            (8, Value::Number(end)) => span.end = end,
            (9, Value::Bytes(pair)) => {
                let (key, value) = attribute(pair);
                assert!(span.attributes.insert(key.clone(), value).is_none(), "{key} comes twice");
            }
            (11, Value::Bytes(event)) => {
                span.events.extend(messages(event, 2).into_iter().map(text))
            }
            (15, Value::Bytes(status)) => {
                span.is_error = matches!(fields(status)[..], [(3, Value::Number(2))]);
            }
            (16, Value::Number(flags)) => span.flags = flags,
            (field, _) => panic!("a span has no field {field}"),
        }
    }
    span
}
