//! Heads and trailers: from header lists to the version-neutral message and back (RFC 9113 section 8).
//!
//! A head that is read here equals that of the same request or response in HTTP/1.1: the same canonical path,
//! authority, framing and fields. [`RequestHead`](crate::message::RequestHead) notes the differences: the scheme is
//! always known, and an extended CONNECT appears as the GET with Upgrade that it stands for. A body of unknown length
//! is [`Framing::Chunked`](crate::message::Framing::Chunked), whose end END_STREAM marks.
//!
//! The block's text is the `input` that the spans of a head refer to. Since its lines stand in it as
//! HTTP/1 has them, a head that goes on to an HTTP/1 member is copied in runs.

mod lines;
mod read;
mod request;
mod response;
mod write;

use std::fmt;

pub use lines::{LineSink, Lines, LinesWriter};
pub use read::read_trailers;
pub use request::read_request;
pub use response::{Answered, read_response};
pub use write::{
    RequestForward, own_response_has_body, write_own_response, write_request, write_response,
    write_trailers,
};

/// Why a message is malformed as RFC 9113 section 8.1.1 means it: its stream is to be reset with
/// PROTOCOL_ERROR, as [`Connection::refuse`](super::Connection::refuse) does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// A field name that is empty, not a token, or not in lower case.
    Name,
    /// A control character in a value.
    Value,
    /// Whitespace at the start or the end of a value.
    ValueSpace,
    /// A pseudo-header field that is not defined for this message.
    PseudoUnknown,
    /// A pseudo-header field that stands twice.
    PseudoRepeated,
    /// A pseudo-header field behind another field.
    PseudoOrder,
    /// A pseudo-header field in trailers.
    PseudoInTrailers,
    /// A pseudo-header field is missing, or there without need.
    PseudoSet,
    /// `:method` is not a token.
    Method,
    /// `:scheme` that is empty.
    Scheme,
    /// `:path` that is neither in origin-form nor, for OPTIONS, an asterisk.
    Path,
    /// `:authority` that is empty or holds userinfo.
    Authority,
    /// Host names another authority than `:authority`.
    HostMismatch,
    /// An invalid `:protocol`.
    Protocol,
    /// `:status` that is not a number from 100 to 599, or 101, which HTTP/2 does not have.
    Status,
    /// A field that concerns a connection of HTTP/1.
    ConnectionField,
    /// TE that says more than `trailers`.
    Te,
    /// Content-Length is not a number, is repeated, or contradicts END_STREAM.
    ContentLength,
}

impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Name => "field name not a token in lower case",
            Self::Value => "control character in a field value",
            Self::ValueSpace => "whitespace around a field value",
            Self::PseudoUnknown => "unknown pseudo-header field",
            Self::PseudoRepeated => "repeated pseudo-header field",
            Self::PseudoOrder => "pseudo-header field behind another field",
            Self::PseudoInTrailers => "pseudo-header field in trailers",
            Self::PseudoSet => "pseudo-header field missing or not allowed",
            Self::Method => "method is not a token",
            Self::Scheme => "empty scheme",
            Self::Path => "path in no form that is allowed",
            Self::Authority => "empty authority, or one with userinfo",
            Self::HostMismatch => "Host differs from :authority",
            Self::Protocol => "malformed :protocol",
            Self::Status => "malformed status",
            Self::ConnectionField => "connection-specific field",
            Self::Te => "TE other than trailers",
            Self::ContentLength => "Content-Length malformed, repeated or contradicted",
        })
    }
}

impl std::error::Error for Malformed {}

/// Why a header list is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadError<E> {
    /// The message is malformed: the stream must be reset.
    Malformed(Malformed),
    /// It is understood and refused, with an answer where it is a request.
    Refused(E),
}

impl<E> From<Malformed> for ReadError<E> {
    fn from(error: Malformed) -> Self {
        Self::Malformed(error)
    }
}

impl<E: fmt::Display> fmt::Display for ReadError<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(error) => error.fmt(formatter),
            Self::Refused(error) => error.fmt(formatter),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for ReadError<E> {}
