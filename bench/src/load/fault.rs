//! Faults of transactions or connections.

use std::fmt;

use rustix::io::Errno;
use weir_http::h1::ResponseError;
use weir_http::h2::message::ReadError;
use weir_http::h2::{ConnectionError, ErrorCode, OpenError};
use weir_tls::TlsError;

use super::load_outcome::ErrorKind;

/// A fault, with its details.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// The connection could not be opened.
    Connect(Errno),
    /// The server closed an accepted connection before any request.
    ClosedUnused,
    /// The connection was not open when the load ended.
    NotOpened,
    /// The TLS handshake failed.
    Handshake(TlsError),
    /// The server ended the connection in the TLS handshake.
    HandshakeEnded,
    /// The TLS handshake negotiated an unexpected value; the text names it.
    Negotiated(String),
    /// The connection broke.
    Broken(Errno),
    /// The server closed a keep-alive connection instead of answering the next request on it.
    ClosedKept,
    /// The connection ended before the response was complete.
    Short,
    /// The response was not complete within the time limit.
    Timeout,
    /// No answer came to a datagram within the time limit.
    Lost,
    /// The datagram is no answer to the query.
    NoAnswer,
    /// The response head is malformed.
    Head(ResponseError),
    /// The body does not match the framing in its head.
    Body,
    /// The data is not valid TLS.
    Tls(TlsError),
    /// Another status than expected.
    Status(u16),
    /// Another body length than expected.
    Length {
        /// The received value.
        found: u64,
        /// The expected value.
        expected: u64,
    },
    /// Another checksum than expected.
    Checksum {
        /// The received value.
        found: u32,
        /// The expected value.
        expected: u32,
    },
    /// A response that should be compressed was not.
    NotCompressed,
    /// No stream could be opened.
    StreamNotOpened(OpenError),
    /// The server reset the stream, or rejected it with GOAWAY.
    StreamReset(ErrorCode),
    /// The response head on a stream is malformed.
    StreamHead(ReadError<ResponseError>),
    /// The data is not valid HTTP/2.
    Http2(ConnectionError),
}

impl Fault {
    /// The kind under which the fault is counted.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Connect(Errno::TIMEDOUT) | Self::Broken(Errno::TIMEDOUT) | Self::Timeout => {
                ErrorKind::Timeout
            }
            Self::Connect(_) | Self::ClosedUnused | Self::NotOpened => ErrorKind::Connect,
            Self::Handshake(_) | Self::HandshakeEnded | Self::Negotiated(_) => ErrorKind::Handshake,
            Self::Broken(_) => ErrorKind::Reset,
            Self::ClosedKept => ErrorKind::Closed,
            Self::Short => ErrorKind::Short,
            Self::Lost => ErrorKind::Lost,
            Self::NoAnswer | Self::Head(_) | Self::Body | Self::Tls(_) | Self::StreamHead(_) => {
                ErrorKind::Malformed
            }
            Self::StreamNotOpened(_) | Self::StreamReset(_) | Self::Http2(_) => ErrorKind::Stream,
            Self::NotCompressed => ErrorKind::NotCompressed,
            Self::Status(_) => ErrorKind::Status,
            Self::Length { .. } => ErrorKind::Length,
            Self::Checksum { .. } => ErrorKind::Checksum,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => write!(formatter, "cannot connect: {error}"),
            Self::ClosedUnused => {
                formatter.write_str("the server closed the connection before anything was asked")
            }
            Self::NotOpened => {
                formatter.write_str("the connection was not open yet when the load ended")
            }
            Self::Handshake(error) => write!(formatter, "TLS handshake: {error}"),
            Self::Negotiated(what) => write!(formatter, "TLS handshake: {what}"),
            Self::NotCompressed => formatter.write_str("the body did not come compressed"),
            Self::StreamNotOpened(error) => write!(formatter, "no stream: {error}"),
            Self::StreamReset(code) => write!(formatter, "the stream was reset: {code:?}"),
            Self::StreamHead(error) => write!(formatter, "not a response head: {error}"),
            Self::Http2(error) => write!(formatter, "not HTTP/2: {}", error.text()),
            Self::HandshakeEnded => {
                formatter.write_str("the server ended the connection in the TLS handshake")
            }
            Self::Broken(error) => write!(formatter, "the connection broke: {error}"),
            Self::ClosedKept => {
                formatter.write_str("the server closed a kept connection instead of answering")
            }
            Self::Short => formatter.write_str("the connection ended before the response did"),
            Self::Timeout => formatter.write_str("no complete response within the time limit"),
            Self::Lost => formatter.write_str("no answer within the time limit"),
            Self::NoAnswer => formatter.write_str("not the answer that was asked for"),
            Self::Head(error) => write!(formatter, "not a response head: {error}"),
            Self::Body => formatter.write_str("not a body as its head announced it"),
            Self::Tls(error) => write!(formatter, "not TLS: {error}"),
            Self::Status(status) => write!(formatter, "status {status}"),
            Self::Length { found, expected } => {
                write!(formatter, "a body of {found} bytes instead of {expected}")
            }
            Self::Checksum { found, expected } => {
                write!(formatter, "a body with checksum {found:08x} instead of {expected:08x}")
            }
        }
    }
}
