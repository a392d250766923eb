//! Request bodies, query strings and cookies, parsed into named values.
//!
//! [`Body`] parses a body incrementally. The body may be split anywhere, and the result does not depend on the splits.
//! Values are delivered to a [`Sink`] in the order of the body. Parsing ends at the first [`Problem`]; everything before it
//! is delivered, including the beginning of an incomplete value. A [`Difference`] does not end the parsing: it reports input
//! that servers interpret differently. [`Query`] and [`cookies()`] parse parts of the head.
//!
//! **Architecture invariant:** every buffer and counter is bounded by [`Limits`], work is linear in the input (times the
//! logarithm of a limit if keys are compared), and there is no recursion. Callers limit the size of the whole body.

mod characters;
mod charset;
mod cookies;
mod differences;
mod format;
mod json;
mod limits;
mod media_type;
mod multipart;
mod nested_values;
mod problem;
mod query;
mod sink;
#[cfg(test)]
mod testing;
mod transcode;
mod urlencoded;
mod xml;

pub(crate) use characters::Characters;
pub(crate) use charset::Charset;
pub use cookies::cookies;
pub use differences::{Difference, Differences};
pub use format::{
    Call, LOOK_BYTES, arguments_in, call, is_binary, is_control, is_image, significant,
};
pub use json::{Json, JsonNames};
pub use limits::Limits;
pub use media_type::{MediaType, PARAMETERS_MAX, Parameter, Processor};
pub use multipart::{Multipart, MultipartFlag, MultipartFlags};
pub use nested_values::{
    NESTED_DEPTH_MAX, NestedValues, cookie_text, may_be_nested, without_escapes,
};
pub use problem::{Failure, Problem};
pub use query::Query;
pub use sink::Sink;
pub use transcode::{Encoding, encoding_of, readings};
pub use urlencoded::UrlEncoded;
pub use xml::{Xml, is_plain_text, is_published};

/// Settings of body parsers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The separator of form arguments (SecArgumentSeparator).
    pub separator: u8,
    /// The format of names of JSON array elements.
    pub json_names: JsonNames,
    /// Limits of the parsers.
    pub limits: Limits,
}

impl Settings {
    /// ModSecurity's default configuration.
    pub const DEFAULT: Self =
        Self { separator: b'&', json_names: JsonNames::ModSecurity, limits: Limits::DEFAULT };
}

impl Default for Settings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A body that is being parsed.
#[derive(Debug, Clone)]
pub enum Body {
    /// A form.
    UrlEncoded(Box<UrlEncoded>),
    /// A form with files.
    Multipart(Box<Multipart>),
    /// JSON.
    Json(Box<Json>),
    /// XML.
    Xml(Box<Xml>),
    /// A body that is not parsed.
    None,
}

impl Body {
    /// A parser before the first byte. Only the boundary of a multipart body is taken from the Content-Type value.
    pub fn new(processor: Processor, content_type: &[u8], settings: &Settings) -> Self {
        let limits = settings.limits;
        match processor {
            Processor::UrlEncoded => {
                Self::UrlEncoded(Box::new(UrlEncoded::new(settings.separator, limits)))
            }
            Processor::Multipart => Self::Multipart(Box::new(Multipart::new(content_type, limits))),
            Processor::Json => Self::Json(Box::new(Json::new(settings.json_names, limits))),
            Processor::Xml => Self::Xml(Box::new(Xml::new(limits))),
            Processor::Text | Processor::Content | Processor::None => Self::None,
        }
    }

    /// States the charset of XML. The declaration in it may name the same one.
    #[must_use]
    pub(crate) fn with_charset(mut self, charset: Charset) -> Self {
        if let Self::Xml(body) = &mut self {
            body.set_charset(charset);
        }
        self
    }

    /// Parses the next piece of the body, which may be split anywhere. Does nothing after a problem.
    pub fn feed(&mut self, bytes: &[u8], to: &mut impl Sink) {
        match self {
            Self::UrlEncoded(body) => body.feed(bytes, to),
            Self::Multipart(body) => body.feed(bytes, to),
            Self::Json(body) => body.feed(bytes, to),
            Self::Xml(body) => body.feed(bytes, to),
            Self::None => {}
        }
    }

    /// Ends the body. An empty body has no problem, unless the boundary in its Content-Type is invalid.
    pub fn finish(&mut self, to: &mut impl Sink) {
        match self {
            Self::UrlEncoded(body) => body.finish(to),
            Self::Multipart(body) => body.finish(to),
            Self::Json(body) => body.finish(to),
            Self::Xml(body) => body.finish(to),
            Self::None => {}
        }
    }

    /// The problem that ended the parsing, if any (REQBODY_ERROR).
    pub fn failure(&self) -> Option<Failure> {
        match self {
            Self::UrlEncoded(body) => body.failure(),
            Self::Multipart(body) => body.failure(),
            Self::Json(body) => body.failure(),
            Self::Xml(body) => body.failure(),
            Self::None => None,
        }
    }

    /// The differences found so far.
    pub fn differences(&self) -> Differences {
        match self {
            Self::UrlEncoded(body) => body.differences(),
            Self::Multipart(body) => body.differences(),
            Self::Json(body) => body.differences(),
            Self::Xml(body) => body.differences(),
            Self::None => Differences::NONE,
        }
    }

    /// The length of the name that all next values have at least; 0 unless values have paths.
    pub fn path_bytes(&self) -> usize {
        match self {
            Self::Json(body) => body.path_bytes(),
            Self::UrlEncoded(_) | Self::Multipart(_) | Self::Xml(_) | Self::None => 0,
        }
    }

    /// The processor of this body.
    pub fn processor(&self) -> Processor {
        match self {
            Self::UrlEncoded(_) => Processor::UrlEncoded,
            Self::Multipart(_) => Processor::Multipart,
            Self::Json(_) => Processor::Json,
            Self::Xml(_) => Processor::Xml,
            Self::None => Processor::None,
        }
    }
}

#[cfg(test)]
mod tests;
