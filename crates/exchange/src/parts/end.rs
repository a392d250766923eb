//! What follows a piece of data: more data, nothing, or trailers.

use weir_http::message::Field;

/// What follows a piece of data.
#[derive(Clone, Copy)]
pub enum End<'a> {
    /// More data.
    No,
    /// Nothing.
    Data,
    /// Trailers, with the text that they refer to.
    Trailers(&'a [Field], &'a [u8]),
}

/// An owned [`End`].
#[derive(Default)]
pub enum OwnedEnd {
    /// More data.
    #[default]
    No,
    /// Nothing.
    Data,
    /// Trailers, boxed because they are rare.
    Trailers(Box<OwnedTrailers>),
}

/// Trailers, with the text that they refer to.
pub struct OwnedTrailers {
    fields: Vec<Field>,
    text: Vec<u8>,
}

impl OwnedTrailers {
    /// A copy of the trailers, if there are any.
    pub fn of(end: End<'_>) -> Option<Box<Self>> {
        let End::Trailers(fields, text) = end else { return None };
        Some(Box::new(Self { fields: fields.to_vec(), text: text.to_vec() }))
    }

    /// The borrowed form.
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

    /// The borrowed form.
    pub fn get(&self) -> End<'_> {
        match self {
            Self::No => End::No,
            Self::Data => End::Data,
            Self::Trailers(trailers) => trailers.get(),
        }
    }
}
