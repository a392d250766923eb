//! Content codings of request bodies (RFC 9110, section 8.4), decoded incrementally and within limits.
//!
//! Each coding must be a single stream. Servers disagree on several gzip members, several zstd frames and other data after
//! the end of a stream, so these are rejected here.
//!
//! **Architecture invariant:** memory and work are bounded by the received bytes and by the limit in [`Inflater::new`]. The
//! decoded body is not collected here.

mod chunks;
mod decoder;
mod inflater;
mod stage;
mod step;

pub use inflater::{INFLATION_MAX, Inflater, inflated_bytes_max, memory_bytes_max};

/// Maximum number of nested codings of a body.
pub const CODINGS_MAX: usize = 3;

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// RFC 1952.
    Gzip,
    /// RFC 1950. RFC 1951 without the zlib frame is also accepted, because some clients send it.
    Deflate,
    /// RFC 7932.
    Brotli,
    /// RFC 8878.
    Zstd,
    /// The chunks of S3.
    AwsChunked,
}

impl Coding {
    /// The coding with this name in Content-Encoding.
    fn named(name: &[u8]) -> Option<Self> {
        let names: [(&[u8], Self); 6] = [
            (b"gzip", Self::Gzip),
            (b"x-gzip", Self::Gzip),
            (b"deflate", Self::Deflate),
            (b"br", Self::Brotli),
            (b"zstd", Self::Zstd),
            (b"aws-chunked", Self::AwsChunked),
        ];
        names.into_iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, it)| it)
    }
}

/// The reason why an encoded body cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InflateProblem {
    /// An unknown coding.
    Unknown,
    /// More codings than [`CODINGS_MAX`].
    TooManyCodings,
    /// Data that is invalid in its coding.
    Malformed,
    /// A missing end.
    Truncated,
    /// Data after the end.
    Trailing,
    /// Data that is valid both as a zlib stream and as raw deflate, with different content.
    Ambiguous,
    /// A body longer than the limit.
    TooLong,
    /// A body more than [`INFLATION_MAX`] times as long as the received data.
    Bomb,
}

impl InflateProblem {
    /// A sentence for logs.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Unknown => "The body has a coding that is not known (Content-Encoding).",
            Self::TooManyCodings => "The body has too many codings (Content-Encoding).",
            Self::Malformed => "The body is not encoded as Content-Encoding says.",
            Self::Truncated => "The encoded body has no end.",
            Self::Trailing => "There is data after the end of the encoded body.",
            Self::Ambiguous => "Servers decode this body in different ways.",
            Self::TooLong => "The decoded body is too long.",
            Self::Bomb => "The decoded body is far longer than what was sent.",
        }
    }

    /// Whether the problem is the length of the body.
    pub fn is_length(self) -> bool {
        matches!(self, Self::TooLong | Self::Bomb)
    }
}

/// The codings of a field's value, in the order in which they were applied, without `identity`.
pub fn codings(value: &[u8]) -> Result<Vec<Coding>, InflateProblem> {
    let mut found = Vec::new();
    for name in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
        // A list may contain empty elements (RFC 9110 section 5.6.1).
        if name.is_empty() || name.eq_ignore_ascii_case(b"identity") {
            continue;
        }
        found.push(Coding::named(name).ok_or(InflateProblem::Unknown)?);
    }
    if found.len() > CODINGS_MAX { Err(InflateProblem::TooManyCodings) } else { Ok(found) }
}

#[cfg(test)]
mod tests;
