//! Version 1: one line of text.

use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use super::{
    ParsedHeader, ProxiedConnection, ProxyError, ProxyHeader, Transport, V1_BYTES_MAX,
    of_one_family,
};

pub(super) const SIGNATURE: &[u8] = b"PROXY ";

/// Parses a header whose bytes so far match the signature.
pub(super) fn parse(input: &[u8]) -> Result<ParsedHeader<'_>, ProxyError> {
    let within = &input[..input.len().min(V1_BYTES_MAX)];
    let Some(line_feed) = memchr::memchr(b'\n', within) else {
        return if input.len() < V1_BYTES_MAX {
            Ok(ParsedHeader::Partial)
        } else {
            Err(ProxyError::TooLong)
        };
    };
    let line = input[..line_feed].strip_suffix(b"\r").ok_or(ProxyError::Line)?;
    let rest = line.strip_prefix(SIGNATURE).ok_or(ProxyError::Line)?;
    let text = std::str::from_utf8(rest).map_err(|_| ProxyError::Line)?;
    let header = parse_text(text).ok_or(ProxyError::Line)?;
    Ok(ParsedHeader::Complete { length: line_feed + 1, header })
}

/// Parses the text between the signature and the line's end.
fn parse_text(text: &str) -> Option<ProxyHeader<'static>> {
    let mut words = text.split(' ');
    let (source, destination) = match words.next()? {
        // The rest of the line is ignored (section 2.1) if it has no control characters.
        "UNKNOWN" => return (!text.contains(char::is_control)).then_some(ProxyHeader::Unknown),
        "TCP4" => addresses::<Ipv4Addr>(&mut words)?,
        "TCP6" => addresses::<Ipv6Addr>(&mut words)?,
        _ => return None,
    };
    words.next().is_none().then_some(ProxyHeader::Proxied(ProxiedConnection {
        transport: Transport::Stream,
        source,
        destination,
        authority: None,
        unique_id: None,
    }))
}

/// Parses `source destination source-port destination-port` of one address family.
fn addresses<'a, Ip: FromStr + Into<std::net::IpAddr>>(
    words: &mut impl Iterator<Item = &'a str>,
) -> Option<(SocketAddr, SocketAddr)> {
    let source: Ip = words.next()?.parse().ok()?;
    let destination: Ip = words.next()?.parse().ok()?;
    let source_port = port(words.next()?)?;
    let destination_port = port(words.next()?)?;
    Some(((source, source_port).into(), (destination, destination_port).into()))
}

/// Parses a decimal port without sign or leading zeros.
fn port(text: &str) -> Option<u16> {
    let canonical = text.bytes().all(|byte| byte.is_ascii_digit())
        && (text.len() == 1 || !text.starts_with('0'));
    if canonical { text.parse().ok() } else { None }
}

/// Appends a header of version 1.
///
/// Version 1 cannot express [`ProxyHeader::Local`] or datagrams: these become `UNKNOWN`, and the receiver uses the
/// connection's own addresses. The authority and the unique id are not written.
pub fn write_v1(header: &ProxyHeader<'_>, out: &mut Vec<u8>) {
    let ProxyHeader::Proxied(proxied @ ProxiedConnection { transport: Transport::Stream, .. }) =
        header
    else {
        out.extend_from_slice(b"PROXY UNKNOWN\r\n");
        return;
    };
    let (source, destination) = of_one_family(proxied);
    let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
    let written = write!(
        out,
        "PROXY {family} {} {} {} {}\r\n",
        source.ip(),
        destination.ip(),
        source.port(),
        destination.port()
    );
    debug_assert!(written.is_ok(), "a vector takes everything");
}
