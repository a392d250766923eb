//! The end of a piece of data: more follows, nothing, or trailers.

use weir_http::message::Field;

/// The end of a piece of data.
#[derive(Clone, Copy)]
pub enum End<'a> {
    /// More, at some time.
    No,
    /// Nothing.
    Data,
    /// Trailers, and the text that they are in.
    Trailers(&'a [Field], &'a [u8]),
}

/// An owned [`End`].
#[derive(Default)]
pub enum OwnedEnd {
    /// More.
    #[default]
    No,
    /// Nothing.
    Data,
    /// Trailers. They are rare, and boxing them keeps waiting data small.
    Trailers(Box<OwnedTrailers>),
}

/// Trailers, and the text that they are in.
pub struct OwnedTrailers {
    fields: Vec<Field>,
    text: Vec<u8>,
}

impl OwnedTrailers {
    /// A copy, if data ends with trailers.
    pub fn of(end: End<'_>) -> Option<Box<Self>> {
        let End::Trailers(fields, text) = end else { return None };
        Some(Box::new(Self { fields: fields.to_vec(), text: text.to_vec() }))
    }

    /// They, to be used.
    pub fn get(&self) -> End<'_> {
        End::Trailers(&self.fields, &self.text)
    }
}

impl OwnedEnd {
    /// A copy.
    pub fn of(end: End<'_>) -> Self {
        match (OwnedTrailers::of(end), end) {
            (Some(trailers), _) => Self::Trailers(trailers),
            (None, End::No) => Self::No,
            (None, _) => Self::Data,
        }
    }

    /// It, to be used.
    pub fn get(&self) -> End<'_> {
        match self {
            Self::No => End::No,
            Self::Data => End::Data,
            Self::Trailers(trailers) => trailers.get(),
        }
    }
}
