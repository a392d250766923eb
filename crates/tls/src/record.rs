//! The framing of the record layer (RFC 8446 section 5, RFC 5246 section 6.2).

/// Size of a record header in bytes: type, version, length.
pub const HEADER_BYTES: usize = 5;
/// Maximum size of the plaintext of a record in bytes (RFC 8446 section 5.1).
pub const PLAINTEXT_BYTES_MAX: usize = 1 << 14;
/// Maximum number of bytes of a TLS 1.3 record in addition to its plaintext (RFC 8446 section 5.2).
pub const EXPANSION_BYTES_MAX_13: usize = 256;
/// Maximum number of bytes of a TLS 1.2 record in addition to its plaintext (RFC 5246 section 6.2.3).
pub const EXPANSION_BYTES_MAX_12: usize = 2048;
/// The version in record headers, also with TLS 1.3 (RFC 8446 section 5.1).
pub const LEGACY_VERSION: [u8; 2] = [3, 3];

/// The content type of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentType {
    /// ChangeCipherSpec
    ChangeCipherSpec,
    /// Alert
    Alert,
    /// Handshake
    Handshake,
    /// Application data
    ApplicationData,
}

impl ContentType {
    /// The type with this number.
    pub fn of(number: u8) -> Option<Self> {
        Some(match number {
            20 => Self::ChangeCipherSpec,
            21 => Self::Alert,
            22 => Self::Handshake,
            23 => Self::ApplicationData,
            _ => return None,
        })
    }

    /// The number of the type.
    pub fn number(self) -> u8 {
        match self {
            Self::ChangeCipherSpec => 20,
            Self::Alert => 21,
            Self::Handshake => 22,
            Self::ApplicationData => 23,
        }
    }
}

/// The header of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The content type; in TLS 1.3 the outer one.
    pub content: ContentType,
    /// The number of bytes after the header.
    pub length: usize,
}

/// The result of reading the first bytes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordStart {
    /// The header is incomplete.
    Partial,
    /// Not a TLS record.
    Malformed,
    /// The record exceeds the maximum size.
    TooLong,
    /// A complete header. The rest of the record may be incomplete.
    Header(Header),
}

/// Reads the header at the start of `input`. The record may have `expansion_bytes_max` bytes in addition to its plaintext.
pub fn read_header(input: &[u8], expansion_bytes_max: usize) -> RecordStart {
    if input.first().is_some_and(|&first| ContentType::of(first).is_none()) {
        return RecordStart::Malformed;
    }
    let [content, major, _, high, low, ..] = *input else {
        return RecordStart::Partial;
    };
    let length = usize::from(u16::from_be_bytes([high, low]));
    match ContentType::of(content) {
        Some(_) if major != 3 => RecordStart::Malformed,
        Some(_) if length > PLAINTEXT_BYTES_MAX + expansion_bytes_max => RecordStart::TooLong,
        Some(content) => RecordStart::Header(Header { content, length }),
        None => RecordStart::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        let check = |input: &[u8], expected| {
            assert_eq!(read_header(input, EXPANSION_BYTES_MAX_13), expected, "{input:?}");
        };
        let header = |content, length| RecordStart::Header(Header { content, length });
        check(&[], RecordStart::Partial);
        check(&[23, 3, 3, 0], RecordStart::Partial);
        check(&[23, 3, 3, 0, 0], header(ContentType::ApplicationData, 0));
        check(&[22, 3, 1, 1, 2, 9], header(ContentType::Handshake, 258));
        check(&[21, 3, 4, 0, 2], header(ContentType::Alert, 2));
        check(&[20, 3, 3, 0, 1], header(ContentType::ChangeCipherSpec, 1));
        check(&[23, 3, 3, 0x41, 0], header(ContentType::ApplicationData, 16_640));
        check(&[23, 3, 3, 0x41, 1], RecordStart::TooLong);
        check(&[24, 3, 3, 0, 1], RecordStart::Malformed);
        check(b"G", RecordStart::Malformed);
        check(&[0x80], RecordStart::Malformed);
        check(&[22, 2, 0, 0, 1], RecordStart::Malformed);
    }
}
