//! The PROXY protocol, versions 1 and 2: a header at the start of a connection that contains the original addresses
//! (HAProxy's `proxy-protocol.txt`).
//!
//! The caller decides which sources may send a header: from these sources it is required and parsed, and it is never
//! detected from the bytes (section 2 of the specification).
//!
//! The parser is strict and accepts one spelling of everything: a header that two readers could read as different addresses
//! is an error. Both versions have a maximum length, so that a sender cannot fill memory: [`V1_BYTES_MAX`] and
//! [`V2_BYTES_MAX`].

mod v1;
mod v2;

use std::fmt;
use std::net::SocketAddr;

pub use v1::write_v1;
pub use v2::write_v2;

/// Maximum length of a version 1 header, with its CR LF (section 2.1).
pub const V1_BYTES_MAX: usize = 107;

/// Maximum length of an accepted version 2 header. The format permits 65,551. Our headers have at most 450; headers with
/// names of a client certificate have about a thousand.
pub const V2_BYTES_MAX: usize = 4096;

/// Maximum length of a unique id (section 2.2.5).
pub const UNIQUE_ID_BYTES_MAX: usize = 128;

/// Maximum length of an authority: a host name (RFC 1035 section 2.3.4).
pub const AUTHORITY_BYTES_MAX: usize = 255;

/// The addresses in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyHeader<'a> {
    /// The connection was opened by the sender itself, for example for a health check: the connection's own addresses apply.
    Local,
    /// A proxied connection without addresses (unknown family, or Unix sockets).
    Unknown,
    /// A proxied connection with addresses.
    Proxied(ProxiedConnection<'a>),
}

/// The original connection or flow that the sender forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxiedConnection<'a> {
    /// The transport; version 1 supports only streams.
    pub transport: Transport,
    /// The client.
    pub source: SocketAddr,
    /// The destination of the client's connection, in the same address family as the source.
    pub destination: SocketAddr,
    /// The host name that the client requested (TLS SNI); version 2 only.
    pub authority: Option<&'a [u8]>,
    /// An opaque id of the connection; version 2 only.
    pub unique_id: Option<&'a [u8]>,
}

/// Kind of a proxied connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP
    Stream,
    /// UDP
    Datagram,
}

/// The result of parsing the start of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParsedHeader<'a> {
    /// No error so far, but more bytes are needed.
    Partial,
    /// A complete header.
    Complete {
        /// The length of the header; the payload of the connection follows.
        length: usize,
        /// The contents.
        header: ProxyHeader<'a>,
    },
}

/// The reason why a connection does not start with a valid PROXY header; it must be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyError {
    /// The signature of neither version.
    Signature,
    /// Longer than the maximum of this version.
    TooLong,
    /// Version 1: the line is malformed.
    Line,
    /// Version 2: unknown version, command, family or transport.
    Kind,
    /// Version 2: shorter than the addresses of its family.
    TooShort,
    /// Version 2: a record (TLV) is truncated, repeated or of the wrong length.
    Record,
    /// Version 2: wrong checksum.
    Checksum,
}

impl fmt::Display for ProxyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Signature => "no PROXY protocol signature",
            Self::TooLong => "PROXY protocol header too long",
            Self::Line => "malformed PROXY protocol line",
            Self::Kind => "unknown PROXY protocol version, command, family or transport",
            Self::TooShort => "PROXY protocol header shorter than its addresses",
            Self::Record => "malformed PROXY protocol record",
            Self::Checksum => "wrong PROXY protocol checksum",
        })
    }
}

impl std::error::Error for ProxyError {}

/// The reason why a header cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteError {
    /// The unique id is longer than [`UNIQUE_ID_BYTES_MAX`].
    UniqueId,
    /// The authority is longer than [`AUTHORITY_BYTES_MAX`].
    Authority,
}

impl fmt::Display for WriteError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::UniqueId => "unique id too long for the PROXY protocol",
            Self::Authority => "host name too long for the PROXY protocol",
        })
    }
}

impl std::error::Error for WriteError {}

/// Parses a header of either version at the start of `input`.
///
/// If the result is not `Partial`, more bytes do not change it. For version 2, an error may be returned as soon as its cause
/// is received.
pub fn parse(input: &[u8]) -> Result<ParsedHeader<'_>, ProxyError> {
    let begins_as = |signature: &[u8]| {
        let length = input.len().min(signature.len());
        input[..length] == signature[..length]
    };
    if begins_as(v2::SIGNATURE) {
        v2::parse(input)
    } else if begins_as(v1::SIGNATURE) {
        v1::parse(input)
    } else {
        Err(ProxyError::Signature)
    }
}

/// Both addresses in the same family: an IPv4 address becomes IPv4-mapped if the other one is IPv6.
fn of_one_family(proxied: &ProxiedConnection<'_>) -> (SocketAddr, SocketAddr) {
    match (proxied.source, proxied.destination) {
        (SocketAddr::V4(source), destination @ SocketAddr::V6(_)) => {
            ((source.ip().to_ipv6_mapped(), source.port()).into(), destination)
        }
        (source @ SocketAddr::V6(_), SocketAddr::V4(destination)) => {
            (source, (destination.ip().to_ipv6_mapped(), destination.port()).into())
        }
        same => same,
    }
}

#[cfg(test)]
mod tests;
