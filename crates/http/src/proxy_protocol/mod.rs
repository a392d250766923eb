//! The PROXY protocol, versions 1 and 2: a few bytes ahead of a connection that contain its real addresses
//! (HAProxy's `proxy-protocol.txt`).
//!
//! The caller decides who may send a header: it is parsed only from listed sources, where it is required, and is never
//! guessed from the bytes (section 2 of the specification).
//!
//! Read strictly, with one spelling for everything: a header that two readers could take for different addresses is an
//! error. Both versions are bounded, so that a sender cannot fill memory: [`V1_BYTES_MAX`] and [`V2_BYTES_MAX`].

mod v1;
mod v2;

use std::fmt;
use std::net::SocketAddr;

pub use v1::write_v1;
pub use v2::write_v2;

/// Longest header of version 1, its CR LF included (section 2.1).
pub const V1_BYTES_MAX: usize = 107;

/// Maximum length of a parsed header of version 2. The format permits 65,551; ours has at most 450, and headers with
/// names of a client certificate have about a thousand.
pub const V2_BYTES_MAX: usize = 4096;

/// Longest unique id (section 2.2.5).
pub const UNIQUE_ID_BYTES_MAX: usize = 128;

/// Longest authority: a host name (RFC 1035 section 2.3.4).
pub const AUTHORITY_BYTES_MAX: usize = 255;

/// The addresses in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyHeader<'a> {
    /// The sender itself speaks (a health check): the connection's own addresses count.
    Local,
    /// A connection of another host without addresses (unknown family, or Unix sockets).
    Unknown,
    /// Somebody else's connection.
    Proxied(Proxied<'a>),
}

/// The connection or flow that a sender stands in for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proxied<'a> {
    /// The transport; version 1 supports only streams.
    pub transport: Transport,
    /// The client.
    pub source: SocketAddr,
    /// Where the client connected to; of the same family as the source.
    pub destination: SocketAddr,
    /// The host name that the client requested (TLS SNI); version 2 only.
    pub authority: Option<&'a [u8]>,
    /// An opaque name of the connection; version 2 only.
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

/// Outcome of reading the start of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// All right so far, and not whole yet.
    Partial,
    /// A whole header.
    Complete {
        /// Its length; the connection's own bytes follow.
        length: usize,
        /// The contents.
        header: ProxyHeader<'a>,
    },
}

/// The reason why a connection does not begin with a valid PROXY header; it must be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyError {
    /// Neither version's signature.
    Signature,
    /// Longer than this version may be.
    TooLong,
    /// Version 1: the line is malformed.
    Line,
    /// Version 2: unknown version, command, family or transport.
    Kind,
    /// Version 2: shorter than the addresses of its family.
    TooShort,
    /// Version 2: a record (TLV) is cut, of the wrong length, or there twice.
    Record,
    /// Version 2: the checksum does not fit.
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

/// Why a header cannot be written.
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

/// Reads a header of either version at the start of `input`.
///
/// Given a longer piece of the same bytes, the outcome stays as it is once it is not `Partial`; for
/// version 2 an error may come as soon as the bytes that it is about are there.
pub fn parse(input: &[u8]) -> Result<Parsed<'_>, ProxyError> {
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

/// Both addresses in one family: IPv4 ones as IPv4-mapped IPv6 where the other is IPv6.
fn of_one_family(proxied: &Proxied<'_>) -> (SocketAddr, SocketAddr) {
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
