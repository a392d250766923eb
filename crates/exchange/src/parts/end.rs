//! What follows data: more, nothing, or trailers.

use weir_http::message::Field;

/// What follows data.
#[derive(Clone, Copy)]
pub enum End<'a> {
    /// More, at some time.
    No,
    /// Nothing.
    Data,
    /// Trailers, and the text that they are in.
    Trailers(&'a [Field], &'a [u8]),
}

/// The same, kept.
#[derive(Default)]
pub enum OwnedEnd {
    /// More.
    #[default]
    No,
    /// Nothing.
    Data,
    /// Trailers.
    Trailers(Vec<Field>, Vec<u8>),
}

impl OwnedEnd {
    /// A copy.
    pub fn of(end: End<'_>) -> Self {
        match end {
            End::No => Self::No,
            End::Data => Self::Data,
            End::Trailers(fields, text) => Self::Trailers(fields.to_vec(), text.to_vec()),
        }
    }

    /// It, to be used.
    pub fn get(&self) -> End<'_> {
        match self {
            Self::No => End::No,
            Self::Data => End::Data,
            Self::Trailers(fields, text) => End::Trailers(fields, text),
        }
    }
}
