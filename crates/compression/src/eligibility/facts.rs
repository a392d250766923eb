//! Facts for the decision: about the request and the response.

use weir_http::edits::FieldEdits;
use weir_http::fields::values;
use weir_http::list;
use weir_http::message::{FieldId, Framing, Method, RequestHead, ResponseHead, Version};

use super::Rules;
use crate::entity_tags;
use crate::negotiation::Choice;

/// Facts about a request; a small value, kept until the response arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestTraits {
    /// The coding for the client.
    pub choice: Choice,
    /// Whether the method is HEAD: the response then has no content.
    pub is_head: bool,
    /// The client's version.
    pub version: Version,
    /// Whether Cache-Control forbids transformations.
    pub no_transform: bool,
    /// Whether If-None-Match contains a weak tag, possibly one that weir has made weak.
    pub revalidates_weak: bool,
}

impl RequestTraits {
    /// Reads the facts of a request, as the client sent it.
    pub fn read(rules: &Rules, head: &RequestHead, input: &[u8]) -> Self {
        let fields = &head.fields;
        Self {
            choice: rules.choose(values(fields, input, "Accept-Encoding")),
            is_head: head.method == Method::Head,
            version: head.version,
            no_transform: values(fields, input, "Cache-Control").any(is_no_transform),
            revalidates_weak: values(fields, input, "If-None-Match")
                .flat_map(entity_tags::tags)
                .any(|tag| tag.is_weak),
        }
    }
}

/// Facts about a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseTraits<'r> {
    /// The status, from 100 to 599.
    pub status: u16,
    /// The value of Content-Type; `None`: missing or duplicate.
    pub content_type: Option<&'r [u8]>,
    /// The size of the content; for HEAD, the size for GET; `None`: unknown yet.
    pub length_bytes: Option<u64>,
    /// Whether the content already has a coding.
    pub is_encoded: bool,
    /// Whether the response has a Content-Range field: its content is, or claims to be, a part.
    pub is_range: bool,
    /// Whether the response has a digest of its content, or announces one in its trailers.
    pub has_digest: bool,
    /// Whether Cache-Control forbids transformations.
    pub no_transform: bool,
}

impl<'r> ResponseTraits<'r> {
    /// Reads the facts of a response, including the edits made so far.
    pub fn read(
        head: &'r ResponseHead,
        input: &'r [u8],
        edits: &'r FieldEdits,
        is_head: bool,
    ) -> Self {
        let mut facts = Self {
            status: head.status,
            content_type: None,
            length_bytes: length_bytes(head, is_head),
            is_encoded: false,
            is_range: false,
            has_digest: false,
            no_transform: false,
        };
        let mut content_types = 0;
        for field in &head.fields {
            let name = field.name.of(input);
            let is_trailer = field.id == FieldId::Trailer;
            let counts = is_trailer || (field.id == FieldId::Other && field.forward);
            if counts && is_told(name) && !edits.withholds(name) {
                facts.note(name, field.value.of(input), &mut content_types);
            }
        }
        for (name, value) in edits.added() {
            facts.note(name, value, &mut content_types);
        }
        if content_types != 1 {
            facts.content_type = None;
        }
        facts
    }

    fn note(&mut self, name: &[u8], value: &'r [u8], content_types: &mut usize) {
        let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
        match name.len() {
            6 if is("digest") => self.has_digest = true,
            7 if is("trailer") => self.has_digest |= list(value).any(is_digest),
            11 | 14 if is_digest(name) => self.has_digest = true,
            12 if is("content-type") => {
                self.content_type = Some(value);
                *content_types += 1;
            }
            13 if is("content-range") => self.is_range = true,
            13 if is("cache-control") => self.no_transform |= is_no_transform(value),
            16 if is("content-encoding") => {
                self.is_encoded |= list(value).any(|name| !name.eq_ignore_ascii_case(b"identity"));
            }
            _ => {}
        }
    }
}

/// Whether a name has the length of one that [`ResponseTraits::note`] evaluates.
fn is_told(name: &[u8]) -> bool {
    matches!(name.len(), 6 | 7 | 11..=14 | 16)
}

/// A digest of the sent content (Content-MD5, RFC 9530's Content-Digest), or of the representation with its codings
/// (RFC 9530's Repr-Digest, RFC 3230's Digest): compression makes all of them wrong.
fn is_digest(name: &[u8]) -> bool {
    ["digest", "content-md5", "repr-digest", "content-digest"]
        .iter()
        .any(|digest| name.eq_ignore_ascii_case(digest.as_bytes()))
}

/// Whether a Cache-Control field says no-transform (RFC 9111 section 5.2).
fn is_no_transform(value: &[u8]) -> bool {
    list(value).any(|directive| directive.eq_ignore_ascii_case(b"no-transform"))
}

fn length_bytes(head: &ResponseHead, is_head: bool) -> Option<u64> {
    match head.framing {
        Framing::Length(bytes) => Some(bytes),
        Framing::None if is_head => head.content_length,
        Framing::None => Some(0),
        Framing::Chunked | Framing::UntilClose => None,
    }
}
