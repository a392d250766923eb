//! The options of a request, and the head of its response.

use std::fmt::Write as _;

use weir_event_loop::wall_clock::Date;
use weir_http::h1::reason_phrase;
use weir_http::message::{Method, RequestHead};

use super::faults::FaultKind;
use super::objects::{Kind, Object};

/// The path that returns the counts.
pub const COUNTS_PATH: &[u8] = b"/_origin/counts";
/// Maximum delay that a request may ask for.
const DELAY_MS_MAX: u64 = 600_000;
/// Body size of a response that has no object.
const APOLOGY_BYTES: u64 = 16;

/// A request with its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// The request's method.
    pub method: Method,
    /// The requested object; `None`: the path names no object.
    pub object: Option<Object>,
    /// Whether the client allows another request on the connection.
    pub keep_alive: bool,
    /// Delay of the response.
    pub delay_us: u64,
    /// The fault to make.
    pub fault: Option<FaultKind>,
    /// Whether the request asks for the counts.
    pub is_counts: bool,
}

impl Order {
    /// Parses the options from `head`, which was parsed from `input`. Ignores unknown parts of the query, as servers
    /// do.
    pub fn new(head: &RequestHead, input: &[u8]) -> Self {
        let path = head.path(input);
        let mut order = Self {
            method: head.method,
            object: Object::named(path),
            keep_alive: head.keep_alive,
            delay_us: 0,
            fault: None,
            is_counts: path == COUNTS_PATH,
        };
        let query = head.query(input).and_then(|query| std::str::from_utf8(query).ok());
        for pair in query.unwrap_or_default().split('&') {
            match pair.split_once('=') {
                Some(("delay_ms", value)) => {
                    let delay_ms = value.parse().unwrap_or(0_u64).min(DELAY_MS_MAX);
                    order.delay_us = delay_ms * 1_000;
                }
                Some(("fault", value)) => order.fault = value.parse().ok(),
                _ => {}
            }
        }
        order
    }

    /// The response to a malformed request.
    pub fn refusal(status: u16) -> Self {
        Self {
            method: Method::Get,
            object: None,
            keep_alive: false,
            delay_us: 0,
            fault: Some(FaultKind::Status(status)),
            is_counts: false,
        }
    }
}

/// A response in progress.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The object in the body.
    pub object: Object,
    /// Number of body bytes given to the kernel.
    pub sent: u64,
    /// Whether the connection stays open after the response.
    pub keep_alive: bool,
    /// Number of body bytes to send: fewer than Content-Length for HEAD and for a truncated response.
    to_send: u64,
    is_short: bool,
}

impl Answer {
    /// The response to a request.
    pub fn new(order: Order) -> Self {
        let is_short = order.fault == Some(FaultKind::Short);
        let status = match (order.fault, order.object) {
            (Some(FaultKind::Status(status)), _) => status,
            (_, None) => 404,
            (_, Some(_)) => 200,
        };
        let object = match order.object {
            Some(object) if status == 200 => object,
            _ if matches!(status, 204 | 304) => Object { bytes: 0, kind: Kind::Plain },
            _ => Object { bytes: APOLOGY_BYTES, kind: Kind::Plain },
        };
        let to_send = match order.method {
            Method::Head => 0,
            _ if is_short => object.bytes / 2,
            _ => object.bytes,
        };
        Self {
            status,
            object,
            sent: 0,
            keep_alive: order.keep_alive && !is_short,
            to_send,
            is_short,
        }
    }

    /// Whether the response is complete and has status 200.
    pub fn is_good(&self) -> bool {
        self.status == 200 && !self.is_short
    }

    /// Whether the connection closes after the next `count` bytes.
    pub fn ends_with(&self, count: u64) -> bool {
        !self.keep_alive && self.sent + count == self.to_send
    }

    /// Number of body bytes left to send, at most `length_max`.
    pub fn bytes_left_max(&self, length_max: usize) -> usize {
        let left = self.to_send - self.sent;
        usize::try_from(left).map_or(length_max, |left| left.min(length_max))
    }
}

/// Writes response heads. Keeps the last head, because the next is nearly always equal.
#[derive(Debug, Default)]
pub struct HeadWriter {
    text: String,
    written_for: Option<(u16, Object, bool)>,
    date: String,
}

impl HeadWriter {
    /// The head of a response.
    pub fn head(&mut self, answer: &Answer, date: &Date) -> &[u8] {
        let wanted = Some((answer.status, answer.object, answer.keep_alive));
        if self.written_for != wanted || self.date != date.http {
            self.written_for = wanted;
            self.date.clone_from(&date.http);
            self.write(answer);
        }
        self.text.as_bytes()
    }

    fn write(&mut self, answer: &Answer) {
        let connection = if answer.keep_alive { "keep-alive" } else { "close" };
        let (status, date) = (answer.status, &self.date);
        self.text.clear();
        // Writing to a string cannot fail.
        let _ = write!(
            self.text,
            "HTTP/1.1 {status} {}\r\nServer: weir-origin\r\nDate: {date}\r\nConnection: {connection}\r\n",
            reason_phrase(status)
        );
        if !matches!(status, 204 | 304) {
            let (kind, bytes) = (answer.object.kind.content_type(), answer.object.bytes);
            let _ = write!(self.text, "Content-Type: {kind}\r\nContent-Length: {bytes}\r\n");
        }
        self.text.push_str("\r\n");
    }
}
