//! The place of the token in a request.

use weir_http::cookies::request_cookies;
use weir_http::message::RequestHead;

use super::Refusal;

/// The place of the token in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenPlace {
    /// `Authorization: Bearer TOKEN` (RFC 6750 section 2.1).
    Authorization,
    /// The value of this field, with or without the prefix `Bearer`.
    Header(Box<str>),
    /// The first cookie with this name.
    Cookie(Box<str>),
}

const AUTHORIZATION: &str = "authorization";

impl TokenPlace {
    /// The token of a request.
    ///
    /// # Errors
    /// The request has no token, or several.
    pub fn find<'a>(&self, head: &RequestHead, input: &'a [u8]) -> Result<&'a [u8], Refusal> {
        match self {
            Self::Authorization => {
                let value = only(head, input, AUTHORIZATION)?;
                after_bearer(value).ok_or(Refusal::Missing)
            }
            Self::Header(name) => {
                let value = only(head, input, name)?;
                let token = after_bearer(value).unwrap_or(value);
                if token.is_empty() { Err(Refusal::Missing) } else { Ok(token) }
            }
            Self::Cookie(name) => {
                let mut cookies = request_cookies(&head.fields, input);
                let found = cookies.find(|cookie| cookie.name.of(input) == name.as_bytes());
                let value = found.map_or(&b""[..], |cookie| cookie.value.of(input));
                if value.is_empty() { Err(Refusal::Missing) } else { Ok(value) }
            }
        }
    }
}

/// The value of the only field with this name.
fn only<'a>(head: &RequestHead, input: &'a [u8], name: &str) -> Result<&'a [u8], Refusal> {
    let is_it = |field: &&weir_http::message::Field| {
        field.name.of(input).eq_ignore_ascii_case(name.as_bytes())
    };
    let mut found = head.fields.iter().filter(is_it);
    let field = found.next().ok_or(Refusal::Missing)?;
    match found.next() {
        Some(_) => Err(Refusal::Several),
        None => Ok(field.value.of(input)),
    }
}

/// The text after the scheme `Bearer`, which is case-insensitive (RFC 9110 section 11.1).
fn after_bearer(value: &[u8]) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"Bearer";
    let (scheme, rest) = value.split_at_checked(SCHEME.len())?;
    if !scheme.eq_ignore_ascii_case(SCHEME) || rest.first() != Some(&b' ') {
        return None;
    }
    Some(rest.trim_ascii_start())
}
