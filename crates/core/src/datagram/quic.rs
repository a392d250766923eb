//! The header of the first QUIC packet in a datagram: the parts that all versions share (RFC 8999), and the length of
//! connection ids in version 1 (RFC 9000 section 17.2).
//!
//! ```text
//! long:   1xxxxxxx  version (4)  length (1)  destination id  length (1)  source id  …
//! short:  0xxxxxxx  destination id, of a length that only its owner knows  …
//! ```
//!
//! The other packets of a datagram go to the same connection (RFC 9000 section 12.2), so the first one is enough.
//! The fixed bit is ignored: it depends on the version, and ends may agree to vary it (RFC 9287).

use std::fmt;

use weir_http::message::Span;

use super::span;

/// QUIC version 1 (RFC 9000).
pub const VERSION_1: u32 = 1;
/// QUIC version 2 (RFC 9369).
pub const VERSION_2: u32 = 0x6b33_43cf;
/// Maximum length of a connection id in versions 1 and 2. Other versions may have longer ones, up to 255.
pub const CONNECTION_ID_BYTES_MAX: usize = 20;

/// The bit in the first byte that marks a long header.
const FORM_BIT: u8 = 0x80;
/// The first byte and the version.
const PREFIX_BYTES: usize = 5;
/// Size of a version in a Version Negotiation packet.
const VERSION_BYTES: usize = 4;

/// The header of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// The header of packets during the handshake.
    Long(LongHeader),
    /// A server's list of supported versions, in answer to an unknown version.
    VersionNegotiation(VersionNegotiation),
    /// The header of packets after the handshake.
    Short {
        /// The destination connection id.
        destination: Span,
    },
}

/// See [`Header::Long`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongHeader {
    /// The version; never 0.
    pub version: u32,
    /// The destination connection id; in a client's first packets, a random id chosen by the client.
    pub destination: Span,
    /// The source connection id.
    pub source: Span,
}

/// See [`Header::VersionNegotiation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionNegotiation {
    /// The source id of the answered packet.
    pub destination: Span,
    /// The destination id of the answered packet.
    pub source: Span,
    /// The versions, four bytes each; at least one.
    pub versions: Span,
}

/// The reason why a datagram does not begin with a QUIC packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderError {
    /// The datagram ends within the header.
    Truncated,
    /// A connection id is longer than its version allows; such packets must be dropped.
    ConnectionIdLength(u8),
    /// The list of a Version Negotiation packet is empty, or contains an incomplete version.
    Versions,
}

impl fmt::Display for HeaderError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => formatter.write_str("the datagram ends within the QUIC header"),
            Self::ConnectionIdLength(length) => write!(
                formatter,
                "a QUIC connection id of {length} bytes, and this version allows {CONNECTION_ID_BYTES_MAX}"
            ),
            Self::Versions => {
                formatter.write_str("a QUIC Version Negotiation packet without a list of versions")
            }
        }
    }
}

impl std::error::Error for HeaderError {}

impl Header {
    /// Parses the header at the beginning of a datagram. A short header does not contain the length of its connection id, so
    /// `short_id_bytes` is the length of the receiver's ids.
    ///
    /// # Errors
    /// The datagram is not QUIC, or was truncated.
    pub fn parse(datagram: &[u8], short_id_bytes: usize) -> Result<Self, HeaderError> {
        let first = *datagram.first().ok_or(HeaderError::Truncated)?;
        if first & FORM_BIT == 0 {
            let end = 1 + short_id_bytes;
            if datagram.len() < end {
                return Err(HeaderError::Truncated);
            }
            return Ok(Self::Short { destination: span(1, end) });
        }
        let prefix = datagram.first_chunk::<PREFIX_BYTES>().ok_or(HeaderError::Truncated)?;
        let [_, version @ ..] = *prefix;
        let version = u32::from_be_bytes(version);
        let (destination, end) = connection_id(datagram, PREFIX_BYTES, version)?;
        let (source, end) = connection_id(datagram, end, version)?;
        if version != 0 {
            return Ok(Self::Long(LongHeader { version, destination, source }));
        }
        let versions = span(end, datagram.len());
        if versions.is_empty() || !versions.len().is_multiple_of(VERSION_BYTES) {
            return Err(HeaderError::Versions);
        }
        Ok(Self::VersionNegotiation(VersionNegotiation { destination, source, versions }))
    }

    /// The destination connection id.
    pub fn destination(&self) -> Span {
        match self {
            Self::Long(header) => header.destination,
            Self::VersionNegotiation(header) => header.destination,
            Self::Short { destination } => *destination,
        }
    }
}

/// The connection id with its length byte at `at`, and the position after the id.
fn connection_id(datagram: &[u8], at: usize, version: u32) -> Result<(Span, usize), HeaderError> {
    let length = *datagram.get(at).ok_or(HeaderError::Truncated)?;
    let is_bounded = matches!(version, VERSION_1 | VERSION_2);
    if is_bounded && usize::from(length) > CONNECTION_ID_BYTES_MAX {
        return Err(HeaderError::ConnectionIdLength(length));
    }
    let (start, end) = (at + 1, at + 1 + usize::from(length));
    if datagram.len() < end {
        return Err(HeaderError::Truncated);
    }
    Ok((span(start, end), end))
}

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;

    use super::*;

    /// The header as text: `long VERSION DESTINATION SOURCE` or similar, ids in hexadecimal digits.
    fn shown(datagram: &[u8], short_id_bytes: usize) -> String {
        let hex = |span: Span| HEXLOWER.encode(span.of(datagram));
        match Header::parse(datagram, short_id_bytes) {
            Ok(Header::Long(LongHeader { version, destination, source })) => {
                format!("long {version:x} {} {}", hex(destination), hex(source))
            }
            Ok(Header::VersionNegotiation(VersionNegotiation {
                destination,
                source,
                versions,
            })) => format!("versions {} {} {}", hex(destination), hex(source), hex(versions)),
            Ok(Header::Short { destination }) => format!("short {}", hex(destination)),
            Err(error) => error.to_string(),
        }
    }

    fn check(hex: &str, short_id_bytes: usize, expected: &str) {
        let datagram = HEXLOWER.decode(hex.as_bytes()).expect("hexadecimal digits");
        assert_eq!(shown(&datagram, short_id_bytes), expected, "{hex}");
    }

    const CUT: &str = "the datagram ends within the QUIC header";

    /// RFC 9001 appendix A and RFC 9369 appendix A, the beginnings of the protected packets.
    #[test]
    fn samples_of_the_standards() {
        let client = "long 1 8394c8f03e515708 ";
        check("c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11", 8, client);
        let server = "long 1  f067a5502a4262b5";
        check("cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a", 8, server);
        let retry = "ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba";
        check(retry, 8, server);
        let chacha20 = "4cfe4189655e5cd55c41f69080575d7999c25a5bfb";
        check(chacha20, 0, "short ");
        check(chacha20, 8, "short fe4189655e5cd55c");
        let version_2 = "d76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485";
        check(version_2, 0, "long 6b3343cf 8394c8f03e515708 ");
    }

    #[test]
    fn ids_of_every_allowed_length() {
        let id = "ab".repeat(20);
        check(&format!("c000000001{:02x}{id}00", 20), 0, &format!("long 1 {id} "));
        check(&format!("c00000000100{:02x}{id}", 20), 0, &format!("long 1  {id}"));
        let long = "cd".repeat(21);
        let refused = "a QUIC connection id of 21 bytes, and this version allows 20";
        check(&format!("c00000000115{long}00"), 0, refused);
        check(&format!("c06b3343cf0015{long}"), 0, refused);
        // A future version may have longer ids, and so may its negotiation.
        check(&format!("c00a0a0a0a15{long}00"), 0, &format!("long a0a0a0a {long} "));
        let longest = "ef".repeat(255);
        check(&format!("c00000000200ff{longest}"), 0, &format!("long 2  {longest}"));
    }

    #[test]
    fn version_negotiation() {
        let expected = "versions aa bb 000000016b3343cf";
        check("800000000001aa01bb000000016b3343cf", 0, expected);
        let wrong = "a QUIC Version Negotiation packet without a list of versions";
        check("800000000001aa01bb", 0, wrong);
        check("800000000001aa01bb00000001ff", 0, wrong);
    }

    #[test]
    fn the_fixed_bit_may_vary() {
        check("800000000101aa01bb", 0, "long 1 aa bb");
        check("00aabb", 2, "short aabb");
    }

    #[test]
    fn cut_headers() {
        let whole = "c00000000102aabb01cc";
        for length in (0..whole.len()).step_by(2) {
            check(&whole[..length], 0, CUT);
        }
        check(whole, 0, "long 1 aabb cc");
        check("40", 0, "short ");
        check("40", 1, CUT);
        check("40aabbcc", 4, CUT);
    }
}
