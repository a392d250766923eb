//! Version 2: binary.
//!
//! ```text
//! signature (12) | version, command (1) | family, transport (1) | length of the rest (2)
//! source, destination, source port, destination port (12, 36 or 216 by family)
//! records: type (1) | length (2) | value
//! ```
//! Numbers are big-endian.

use std::net::{IpAddr, SocketAddr};

use super::{
    AUTHORITY_BYTES_MAX, ParsedHeader, ProxiedConnection, ProxyError, ProxyHeader, Transport,
    UNIQUE_ID_BYTES_MAX, V2_BYTES_MAX, WriteError, of_one_family,
};

pub(super) const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Number of bytes before the addresses.
const FIXED_BYTES: usize = SIGNATURE.len() + 4;

const VERSION: u8 = 0x20;
const COMMAND_LOCAL: u8 = 0;
const COMMAND_PROXY: u8 = 1;

const FAMILY_UNSPECIFIED: u8 = 0x00;
const FAMILY_INET: u8 = 0x10;
const FAMILY_INET6: u8 = 0x20;
const FAMILY_UNIX: u8 = 0x30;
const TRANSPORT_STREAM: u8 = 1;
const TRANSPORT_DATAGRAM: u8 = 2;

const UNIX_ADDRESSES_BYTES: usize = 2 * 108;

/// Record types (section 2.2).
const RECORD_AUTHORITY: u8 = 0x02;
const RECORD_CRC32C: u8 = 0x03;
const RECORD_UNIQUE_ID: u8 = 0x05;

/// Bytes of a record's type and length.
const RECORD_HEAD_BYTES: usize = 3;

/// Parses a header whose bytes so far match the signature.
pub(super) fn parse(input: &[u8]) -> Result<ParsedHeader<'_>, ProxyError> {
    let Some((fixed, rest)) = input.split_first_chunk::<FIXED_BYTES>() else {
        return Ok(ParsedHeader::Partial);
    };
    let [version_command, kind, length @ ..] = fixed.last_chunk::<4>().expect("four of sixteen");
    let is_local = match version_command ^ VERSION {
        COMMAND_LOCAL => true,
        COMMAND_PROXY => false,
        _ => return Err(ProxyError::Kind),
    };
    check_kind(*kind)?;
    let length = usize::from(u16::from_be_bytes(*length));
    if FIXED_BYTES + length > V2_BYTES_MAX {
        return Err(ProxyError::TooLong);
    }
    let Some(body) = rest.get(..length) else {
        return Ok(ParsedHeader::Partial);
    };
    let length = FIXED_BYTES + length;
    let header = if is_local {
        // Section 2.2: "the receiver must ... discard the protocol block".
        ProxyHeader::Local
    } else {
        parse_body(*kind, body, &input[..length])?
    };
    Ok(ParsedHeader::Complete { length, header })
}

/// Checks that family and transport are one of the seven pairs of section 2.2.
fn check_kind(kind: u8) -> Result<(), ProxyError> {
    let transport = kind & 0x0f;
    let known = match kind & 0xf0 {
        FAMILY_UNSPECIFIED => transport == 0,
        FAMILY_INET | FAMILY_INET6 | FAMILY_UNIX => {
            matches!(transport, TRANSPORT_STREAM | TRANSPORT_DATAGRAM)
        }
        _ => false,
    };
    if known { Ok(()) } else { Err(ProxyError::Kind) }
}

/// Parses the addresses and records in the body of the complete header `whole`.
fn parse_body<'a>(kind: u8, body: &'a [u8], whole: &[u8]) -> Result<ProxyHeader<'a>, ProxyError> {
    let ((source, destination), rest) = match kind & 0xf0 {
        FAMILY_INET => addresses::<4>(body).ok_or(ProxyError::TooShort)?,
        FAMILY_INET6 => addresses::<16>(body).ok_or(ProxyError::TooShort)?,
        FAMILY_UNIX => {
            let records = body.get(UNIX_ADDRESSES_BYTES..).ok_or(ProxyError::TooShort)?;
            Records::parse(records, whole)?;
            return Ok(ProxyHeader::Unknown);
        }
        // The length of addresses of an unspecified family is undefined, and so is the start of the records.
        _ => return Ok(ProxyHeader::Unknown),
    };
    let records = Records::parse(rest, whole)?;
    Ok(ProxyHeader::Proxied(ProxiedConnection {
        transport: match kind & 0x0f {
            TRANSPORT_DATAGRAM => Transport::Datagram,
            _ => Transport::Stream,
        },
        source,
        destination,
        authority: records.authority,
        unique_id: records.unique_id,
    }))
}

/// Parses two addresses of `BYTES` bytes. Returns them and the rest of the body.
fn addresses<const BYTES: usize>(body: &[u8]) -> Option<((SocketAddr, SocketAddr), &[u8])>
where
    IpAddr: From<[u8; BYTES]>,
{
    let (source, rest) = body.split_first_chunk::<BYTES>()?;
    let (destination, rest) = rest.split_first_chunk::<BYTES>()?;
    let (source_port, rest) = rest.split_first_chunk::<2>()?;
    let (destination_port, rest) = rest.split_first_chunk::<2>()?;
    let end = |ip: [u8; BYTES], port| SocketAddr::new(ip.into(), u16::from_be_bytes(port));
    Some(((end(*source, *source_port), end(*destination, *destination_port)), rest))
}

/// The records that are used; others are skipped (section 2.2).
#[derive(Default)]
struct Records<'a> {
    authority: Option<&'a [u8]>,
    unique_id: Option<&'a [u8]>,
    checksum: Option<&'a [u8]>,
}

impl<'a> Records<'a> {
    /// Parses the records at the end of the header `whole`, and verifies its checksum, if any.
    fn parse(mut rest: &'a [u8], whole: &[u8]) -> Result<Self, ProxyError> {
        let mut records = Self::default();
        while !rest.is_empty() {
            let (head, tail) =
                rest.split_first_chunk::<RECORD_HEAD_BYTES>().ok_or(ProxyError::Record)?;
            let length = usize::from(u16::from_be_bytes([head[1], head[2]]));
            let (value, tail) = tail.split_at_checked(length).ok_or(ProxyError::Record)?;
            rest = tail;
            let (place, length_ok) = match head[0] {
                RECORD_AUTHORITY => (&mut records.authority, length <= AUTHORITY_BYTES_MAX),
                RECORD_UNIQUE_ID => (&mut records.unique_id, length <= UNIQUE_ID_BYTES_MAX),
                RECORD_CRC32C => (&mut records.checksum, length == 4),
                _ => continue,
            };
            if !length_ok || place.replace(value).is_some() {
                return Err(ProxyError::Record);
            }
            if head[0] == RECORD_CRC32C {
                let at = whole.len() - rest.len() - length;
                if value != checksum(whole, at) {
                    return Err(ProxyError::Checksum);
                }
            }
        }
        Ok(records)
    }
}

/// The checksum of a header; the four bytes of the checksum field at `at` count as zeros.
fn checksum(header: &[u8], at: usize) -> [u8; 4] {
    let crc = crc32c(u32::MAX, &header[..at]);
    let crc = crc32c(crc, &[0; 4]);
    (!crc32c(crc, &header[at + 4..])).to_be_bytes()
}

/// Appends a header of version 2, with a checksum if `with_checksum`.
///
/// [`ProxyHeader::Unknown`] is written without a family, and the receiver uses the connection's own addresses. On an error
/// nothing is written.
pub fn write_v2(
    header: &ProxyHeader<'_>,
    with_checksum: bool,
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
    let (command, proxied) = match header {
        ProxyHeader::Local => (COMMAND_LOCAL, None),
        ProxyHeader::Unknown => (COMMAND_PROXY, None),
        ProxyHeader::Proxied(proxied) => (COMMAND_PROXY, Some(proxied)),
    };
    if let Some(proxied) = proxied {
        check_lengths(proxied)?;
    }
    let start = out.len();
    out.extend_from_slice(SIGNATURE);
    out.extend_from_slice(&[VERSION | command, FAMILY_UNSPECIFIED, 0, 0]);
    if let Some(proxied) = proxied {
        out[start + SIGNATURE.len() + 1] = write_addresses(proxied, out);
        write_record(RECORD_AUTHORITY, proxied.authority, out);
        write_record(RECORD_UNIQUE_ID, proxied.unique_id, out);
        write_record(RECORD_CRC32C, with_checksum.then_some(&[0; 4][..]), out);
    }
    let body_length = (out.len() - start - FIXED_BYTES) as u16;
    out[start + FIXED_BYTES - 2..start + FIXED_BYTES].copy_from_slice(&body_length.to_be_bytes());
    if proxied.is_some() && with_checksum {
        let at = out.len() - 4;
        let sum = checksum(&out[start..], at - start);
        out[at..].copy_from_slice(&sum);
    }
    Ok(())
}

fn check_lengths(proxied: &ProxiedConnection<'_>) -> Result<(), WriteError> {
    if proxied.unique_id.is_some_and(|id| id.len() > UNIQUE_ID_BYTES_MAX) {
        return Err(WriteError::UniqueId);
    }
    if proxied.authority.is_some_and(|authority| authority.len() > AUTHORITY_BYTES_MAX) {
        return Err(WriteError::Authority);
    }
    Ok(())
}

/// Appends both addresses; returns family and transport.
fn write_addresses(proxied: &ProxiedConnection<'_>, out: &mut Vec<u8>) -> u8 {
    let (source, destination) = of_one_family(proxied);
    for end in [source, destination] {
        match end.ip() {
            IpAddr::V4(ip) => out.extend_from_slice(&ip.octets()),
            IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
        }
    }
    out.extend_from_slice(&source.port().to_be_bytes());
    out.extend_from_slice(&destination.port().to_be_bytes());
    let family = if source.is_ipv4() { FAMILY_INET } else { FAMILY_INET6 };
    family
        | match proxied.transport {
            Transport::Stream => TRANSPORT_STREAM,
            Transport::Datagram => TRANSPORT_DATAGRAM,
        }
}

fn write_record(kind: u8, value: Option<&[u8]>, out: &mut Vec<u8>) {
    if let Some(value) = value {
        out.push(kind);
        out.extend_from_slice(&(value.len() as u16).to_be_bytes());
        out.extend_from_slice(value);
    }
}

/// Continues a CRC-32C (RFC 3720 appendix B.4) over `bytes`. The initial value is all ones; the result must be inverted.
fn crc32c(crc: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(crc, |crc, byte| (crc >> 8) ^ CRC32C[usize::from(crc as u8 ^ byte)])
}

static CRC32C: [u32; 256] = {
    const POLYNOMIAL_REFLECTED: u32 = 0x82f6_3b78;
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL_REFLECTED } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc32c_of_the_standard() {
        for (bytes, expected) in [
            (b"123456789".to_vec(), 0xe306_9283),
            (vec![0; 32], 0x8a91_36aa),
            (vec![0xff; 32], 0x62a8_ab43),
            ((0..32).collect(), 0x46dd_794e),
        ] {
            assert_eq!(!crc32c(u32::MAX, &bytes), expected);
        }
    }

    #[test]
    fn what_is_written_is_within_what_is_read() {
        let longest = FIXED_BYTES
            + 36
            + 3 * RECORD_HEAD_BYTES
            + AUTHORITY_BYTES_MAX
            + UNIQUE_ID_BYTES_MAX
            + 4;
        assert_eq!(longest, 448);
        assert!(longest <= V2_BYTES_MAX);
    }
}
