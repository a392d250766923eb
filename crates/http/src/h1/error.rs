//! Reasons for refusing a message. The type names the side: a [`RequestError`] is the client's fault and has the status
//! of the response, a [`ResponseError`] the member's.

use std::fmt;

use crate::path::PathError;

/// A violation of RFC 9112 section 5 in a field section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldError {
    /// More field lines than allowed.
    TooMany,
    /// LF without CR.
    BareLf,
    /// CR without LF.
    BareCr,
    /// A line that starts with whitespace: obsolete folding, or space before the first field.
    Folded,
    /// Nothing before the colon.
    NameEmpty,
    /// Whitespace between name and colon.
    SpaceBeforeColon,
    /// A name is not a token, or a line has no colon.
    Name,
    /// A control character in a value.
    Value,
}

impl fmt::Display for FieldError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::TooMany => "too many fields",
            Self::BareLf => "LF without CR in the fields",
            Self::BareCr => "CR without LF in the fields",
            Self::Folded => "field line starts with whitespace",
            Self::NameEmpty => "empty field name",
            Self::SpaceBeforeColon => "whitespace before the colon of a field",
            Self::Name => "character not allowed in a field name",
            Self::Value => "control character in a field value",
        })
    }
}

impl std::error::Error for FieldError {}

/// Fields that make the end of the body ambiguous (RFC 9112 section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FramingError {
    /// Content-Length is not a number, or too large.
    ContentLength,
    /// More than one Content-Length field.
    ContentLengthRepeated,
    /// Content-Length together with Transfer-Encoding.
    Both,
    /// Transfer-Encoding other than exactly one `chunked`.
    TransferEncoding,
    /// Transfer-Encoding in an HTTP/1.0 message.
    TransferEncodingInHttp10,
    /// Connection nominates more fields than [`NOMINATIONS_MAX`](crate::h1::NOMINATIONS_MAX).
    Nominations,
}

impl fmt::Display for FramingError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ContentLength => "Content-Length is not a number that can be",
            Self::ContentLengthRepeated => "repeated Content-Length",
            Self::Both => "Content-Length together with Transfer-Encoding",
            Self::TransferEncoding => "Transfer-Encoding is not exactly one chunked",
            Self::TransferEncodingInHttp10 => "Transfer-Encoding in HTTP/1.0",
            Self::Nominations => "Connection nominates too many fields",
        })
    }
}

impl std::error::Error for FramingError {}

/// The reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestError {
    /// The method is not a token.
    Method,
    /// The method is longer than any known method.
    MethodTooLong,
    /// CONNECT, which this server does not implement.
    Connect,
    /// The request line ends without a version (HTTP/0.9).
    VersionMissing,
    /// The version is malformed.
    Version,
    /// Another major version than 1.
    VersionNotSupported,
    /// The request line does not end in CR LF right after the version.
    LineEnd,
    /// A character that is not allowed in a target.
    TargetCharacter,
    /// The target has a form that is not allowed for the method.
    TargetForm,
    /// The path has no canonical form.
    Path(PathError),
    /// The request line alone exceeds the limit.
    RequestLineTooLong,
    /// The head exceeds the limit.
    HeadTooLarge,
    /// The field section is malformed.
    Field(FieldError),
    /// The end of the body is ambiguous.
    Framing(FramingError),
    /// HTTP/1.1 without Host.
    HostMissing,
    /// More than one Host field.
    HostRepeated,
    /// Host or the target's authority is invalid.
    HostInvalid,
    /// Host differs from the target's authority.
    HostMismatch,
    /// An expectation other than 100-continue.
    Expectation,
    /// TRACE with a body.
    TraceWithBody,
    /// Max-Forwards of TRACE or OPTIONS is not a number, or is repeated.
    MaxForwards,
    /// An extended CONNECT for a protocol whose requests would bypass all policies.
    Protocol,
}

impl RequestError {
    /// The status of the response.
    pub fn status(self) -> u16 {
        match self {
            Self::RequestLineTooLong => 414,
            Self::HeadTooLarge | Self::Field(FieldError::TooMany) => 431,
            Self::Expectation => 417,
            // RFC 9112 section 3: a method longer than any implemented. RFC 9110 section 15.6.2:
            // a method that is supported for no resource; 405 would be for some, and list them.
            Self::MethodTooLong | Self::Connect | Self::Protocol => 501,
            Self::VersionNotSupported => 505,
            _ => 400,
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Method => "method is not a token",
            Self::MethodTooLong => "method too long",
            Self::Connect => "CONNECT is not supported",
            Self::VersionMissing => "request line without version",
            Self::Version => "malformed version",
            Self::VersionNotSupported => "HTTP version not supported",
            Self::LineEnd => "request line does not end in CR LF after the version",
            Self::TargetCharacter => "character not allowed in the target",
            Self::TargetForm => "form of the target not allowed",
            Self::Path(error) => return error.fmt(formatter),
            Self::RequestLineTooLong => "request line too long",
            Self::HeadTooLarge => "request head too large",
            Self::Field(error) => return error.fmt(formatter),
            Self::Framing(error) => return error.fmt(formatter),
            Self::HostMissing => "Host missing",
            Self::HostRepeated => "repeated Host",
            Self::HostInvalid => "invalid Host",
            Self::HostMismatch => "Host differs from the target's authority",
            Self::Expectation => "expectation other than 100-continue",
            Self::TraceWithBody => "TRACE with a body",
            Self::MaxForwards => "Max-Forwards is not one number",
            Self::Protocol => "protocol that is not tunnelled",
        })
    }
}

impl std::error::Error for RequestError {}

/// The reason why a member's response is refused. The client gets 502.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseError {
    /// The version is malformed, or not HTTP/1.
    Version,
    /// The status is not three digits from 100 to 599.
    Status,
    /// A control character in the reason phrase.
    Reason,
    /// The status line does not end in CR LF.
    LineEnd,
    /// The head exceeds the limit.
    HeadTooLarge,
    /// The field section is malformed.
    Field(FieldError),
    /// The end of the body is ambiguous.
    Framing(FramingError),
    /// An interim response that announces a body.
    InterimWithBody,
    /// A 101 without the name of the new protocol.
    UpgradeMissing,
    /// A tunnel in response to CONNECT, which weir never sends.
    Connect,
}

impl fmt::Display for ResponseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Version => "malformed or unsupported version",
            Self::Status => "malformed status",
            Self::Reason => "control character in the reason phrase",
            Self::LineEnd => "status line does not end in CR LF",
            Self::HeadTooLarge => "response head too large",
            Self::Field(error) => return error.fmt(formatter),
            Self::Framing(error) => return error.fmt(formatter),
            Self::InterimWithBody => "interim response with a body",
            Self::UpgradeMissing => "101 without Upgrade",
            Self::Connect => "success in answer to CONNECT",
        })
    }
}

impl std::error::Error for ResponseError {}

/// The reason why a trailer section is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrailerError {
    /// The section exceeds the limit.
    TooLarge,
    /// The section is malformed.
    Field(FieldError),
}

impl TrailerError {
    /// The status of the response, if the section came from the client.
    pub fn status(self) -> u16 {
        match self {
            Self::TooLarge | Self::Field(FieldError::TooMany) => 431,
            Self::Field(_) => 400,
        }
    }
}

impl fmt::Display for TrailerError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => formatter.write_str("trailer section too large"),
            Self::Field(error) => write!(formatter, "{error} (trailer section)"),
        }
    }
}

impl std::error::Error for TrailerError {}

macro_rules! from_variants {
    ($($part:ident: $whole:ident :: $variant:ident),+ $(,)?) => {
        $(impl From<$part> for $whole {
            fn from(error: $part) -> Self {
                Self::$variant(error)
            }
        })+
    };
}

from_variants! {
    PathError: RequestError::Path,
    FieldError: RequestError::Field,
    FramingError: RequestError::Framing,
    FieldError: ResponseError::Field,
    FramingError: ResponseError::Framing,
    FieldError: TrailerError::Field,
}
