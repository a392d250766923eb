//! Content codings of request bodies (RFC 9110, section 8.4), inflated as they come and within a budget.
//!
//! One stream per coding: several members of gzip, several frames of zstd and whatever else stands behind a stream's end are read in
//! different ways by servers, and so by nobody here.
//!
//! **Architecture invariant:** memory and work are bounded by what has come and by [`Inflater::new`]'s limit; nothing is collected here.

mod decoder;
mod inflater;
mod stage;

pub use inflater::{INFLATION_MAX, Inflater};

/// Codings of one body, one within the other.
pub const CODINGS_MAX: usize = 3;

/// How a body is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// RFC 1952.
    Gzip,
    /// RFC 1950; RFC 1951 alone is taken too, as some clients send it.
    Deflate,
    /// RFC 7932.
    Brotli,
    /// RFC 8878.
    Zstd,
}

impl Coding {
    /// By its name in Content-Encoding.
    fn named(name: &[u8]) -> Option<Self> {
        let names: [(&[u8], Self); 5] = [
            (b"gzip", Self::Gzip),
            (b"x-gzip", Self::Gzip),
            (b"deflate", Self::Deflate),
            (b"br", Self::Brotli),
            (b"zstd", Self::Zstd),
        ];
        names.into_iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, it)| it)
    }
}

/// Why an encoded body cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InflateProblem {
    /// It has a coding that is not known.
    Unknown,
    /// It has more codings than [`CODINGS_MAX`].
    TooManyCodings,
    /// It is not what its coding says.
    Malformed,
    /// Its end is missing.
    Truncated,
    /// Something stands behind its end.
    Trailing,
    /// It is a stream of zlib and one without its frame, of other content.
    Ambiguous,
    /// It is longer than it may be.
    TooLong,
    /// It is more than [`INFLATION_MAX`] times as long as what was sent.
    Bomb,
}

impl InflateProblem {
    /// As it is told.
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

    /// Whether it is about how long the body is.
    pub fn is_length(self) -> bool {
        matches!(self, Self::TooLong | Self::Bomb)
    }
}

/// The codings of a field's value, in the order in which they were applied; `identity` is none.
pub fn codings(value: &[u8]) -> Result<Vec<Coding>, InflateProblem> {
    let mut found = Vec::new();
    for name in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
        // Lists may have empty elements (RFC 9110, section 5.6.1).
        if name.is_empty() || name.eq_ignore_ascii_case(b"identity") {
            continue;
        }
        found.push(Coding::named(name).ok_or(InflateProblem::Unknown)?);
    }
    if found.len() > CODINGS_MAX { Err(InflateProblem::TooManyCodings) } else { Ok(found) }
}

#[cfg(test)]
mod tests;
