//! The request's orders, and the head of its response.

use std::fmt::Write as _;

use weir_event_loop::wall_clock::Date;
use weir_http::h1::reason_phrase;
use weir_http::message::{Method, RequestHead};

use super::faults::FaultKind;
use super::objects::{Kind, Object};

/// Where the counts are read.
pub const COUNTS_PATH: &[u8] = b"/_origin/counts";
/// The longest delay that a request may ask for.
const DELAY_MS_MAX: u64 = 600_000;
/// Size of the body of an answer that is no object.
const APOLOGY_BYTES: u64 = 16;

/// The orders of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Its method.
    pub method: Method,
    /// The object; `None`: there is no object of that name.
    pub object: Option<Object>,
    /// Whether the client allows another request on the connection.
    pub keep_alive: bool,
    /// Time before the answer.
    pub delay_us: u64,
    /// A fault to make.
    pub fault: Option<FaultKind>,
    /// Asks for the counts.
    pub is_counts: bool,
}

impl Order {
    /// The orders in `head`, parsed from `input`. Unknown parts of its query are ignored, as servers do.
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

/// An answer under way.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// The object that its body consists of.
    pub object: Object,
    /// Body bytes handed over so far.
    pub sent: u64,
    /// Whether the connection serves on.
    pub keep_alive: bool,
    /// Body bytes to send; fewer than announced for HEAD and for a short answer.
    to_send: u64,
    is_short: bool,
}

impl Answer {
    /// The answer to an order.
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

    /// Whether it is the requested response.
    pub fn is_good(&self) -> bool {
        self.status == 200 && !self.is_short
    }

    /// Whether the connection ends behind the next `count` bytes.
    pub fn ends_with(&self, count: u64) -> bool {
        !self.keep_alive && self.sent + count == self.to_send
    }

    /// Body bytes that are still to be sent, at most `length_max`.
    pub fn bytes_left_max(&self, length_max: usize) -> usize {
        let left = self.to_send - self.sent;
        usize::try_from(left).map_or(length_max, |left| left.min(length_max))
    }
}

/// Writes heads of answers; the last one is kept, because the next is nearly always the same.
#[derive(Debug, Default)]
pub struct HeadWriter {
    text: String,
    written_for: Option<(u16, Object, bool)>,
    date: String,
}

impl HeadWriter {
    /// The head of an answer.
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
        // Writing into a string does not fail.
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
