//! Heads and trailers: conversion between header lists and the version-neutral message (RFC 9113 section 8).
//!
//! A head that is read here equals the head of the same request or response in HTTP/1.1: the canonical path, authority,
//! framing and fields are the same. [`RequestHead`](crate::message::RequestHead) documents the differences: the scheme is
//! always known, and an extended CONNECT appears as the equivalent GET with Upgrade. A body of unknown length is
//! [`Framing::Chunked`](crate::message::Framing::Chunked), and END_STREAM marks its end.
//!
//! The spans of a head refer to the block's text as their `input`. The text has the line format of HTTP/1, so runs of lines
//! are copied to an HTTP/1 member.

mod common;
mod lines;
mod request;
mod response;
mod write;

use std::fmt;

pub use common::read_trailers;
pub use lines::{LineSink, Lines, LinesWriter};
pub use request::read_request;
pub use response::{AnsweredRequest, read_response};
pub use write::{
    RequestForward, own_response_has_body, write_own_response, write_request, write_response,
    write_trailers,
};

/// The reason why a message is malformed (RFC 9113 section 8.1.1). Its stream must be reset with PROTOCOL_ERROR, as
/// [`Connection::refuse`](super::Connection::refuse) does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// A field name that is empty, not a token, or not in lower case.
    Name,
    /// A control character in a value.
    Value,
    /// Whitespace at the start or the end of a value.
    ValueSpace,
    /// A pseudo-header field that is not defined for this type of message.
    PseudoUnknown,
    /// A repeated pseudo-header field.
    PseudoRepeated,
    /// A pseudo-header field after another field.
    PseudoOrder,
    /// A pseudo-header field in trailers.
    PseudoInTrailers,
    /// A missing or superfluous pseudo-header field.
    PseudoSet,
    /// `:method` is not a token.
    Method,
    /// `:scheme` is empty.
    Scheme,
    /// `:path` is neither in origin-form nor, for OPTIONS, an asterisk.
    Path,
    /// `:authority` is empty or contains userinfo.
    Authority,
    /// Host and `:authority` differ.
    HostMismatch,
    /// An invalid `:protocol`.
    Protocol,
    /// `:status` is not a number from 100 to 599, or it is 101, which HTTP/2 does not support.
    Status,
    /// A connection-specific field of HTTP/1.
    ConnectionField,
    /// TE has another value than `trailers`.
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

/// The reason why a header list is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadError<E> {
    /// The message is malformed: the stream must be reset.
    Malformed(Malformed),
    /// The message is valid but refused; a refused request gets a response.
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
