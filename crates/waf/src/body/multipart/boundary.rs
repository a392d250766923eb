//! The boundary in a Content-Type value (RFC 2046 section 5.1.1).

use super::super::differences::Difference;
use super::super::media_type::is_token_byte;
use super::super::problem::Problem;
use super::flags::{Findings, MultipartFlag};

/// Maximum length of a Content-Type value. ModSecurity also rejects longer values.
const CONTENT_TYPE_BYTES_MAX: usize = 1024;

const MEDIA_TYPE: &[u8] = b"multipart/form-data";
const FAMILY: &[u8] = b"multipart/";
const NAME: &[u8] = b"boundary";

/// Whether the body is a form, and not another multipart type.
pub(super) fn is_form(content_type: &[u8]) -> bool {
    begins(content_type.trim_ascii(), MEDIA_TYPE)
}

fn begins(value: &[u8], prefix: &[u8]) -> bool {
    value.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// Finds the boundary, and records deviations from the syntax.
pub(super) fn read(
    content_type: &[u8],
    bytes_max: u16,
    findings: &mut Findings,
) -> Result<Vec<u8>, Problem> {
    let value = content_type.trim_ascii();
    let is_form = is_form(value);
    if !begins(value, FAMILY) || value.len() > CONTENT_TYPE_BYTES_MAX {
        return Err(Problem::MediaType);
    }
    let is_of_kind = |byte: &u8| *byte == b'/' || is_token_byte(*byte);
    let mut rest = if is_form {
        value.get(MEDIA_TYPE.len()..).unwrap_or_default()
    } else {
        let end = value.iter().position(|byte| !is_of_kind(byte)).unwrap_or(value.len());
        value.get(end..).unwrap_or_default()
    };
    let mut boundary = None;
    let mut is_first = true;
    loop {
        let blanks = rest.len() - rest.trim_ascii_start().len();
        rest = rest.trim_ascii_start();
        let Some(first) = rest.first() else { break };
        if *first == b';' {
            rest = rest.split_first().map_or(rest, |(_, behind)| behind).trim_ascii_start();
        } else if is_first && blanks > 0 {
            findings.flag(MultipartFlag::MissingSemicolon);
        } else {
            return Err(Problem::MediaType);
        }
        let (parameter, behind) = Parameter::read(rest)?;
        rest = behind;
        if parameter.name.eq_ignore_ascii_case(NAME) {
            if boundary.is_some() {
                return Err(Problem::BoundaryRepeated);
            }
            parameter.note(findings);
            boundary = Some(parameter.value);
        } else if boundary.is_none() && is_form && !parameter.is_charset() {
            findings.differ(Difference::ParameterOrder);
        }
        is_first = false;
    }
    let boundary = boundary.ok_or(Problem::BoundaryMissing)?;
    // A parser that only searches for the word would find another boundary in the value.
    let is_repeated = boundary.to_ascii_lowercase().windows(NAME.len()).any(|word| word == NAME)
        && boundary.contains(&b'=');
    if is_repeated {
        return Err(Problem::BoundaryRepeated);
    }
    check(boundary, bytes_max)?;
    Ok(boundary.to_vec())
}

fn check(boundary: &[u8], bytes_max: u16) -> Result<(), Problem> {
    if boundary.is_empty() || boundary.len() > usize::from(bytes_max) {
        return Err(Problem::BoundaryLength);
    }
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(byte);
    if !boundary.iter().all(is_allowed) || boundary.ends_with(b" ") {
        return Err(Problem::BoundaryCharacter);
    }
    Ok(())
}

/// A parameter whose value is not parsed.
struct Parameter<'a> {
    name: &'a [u8],
    value: &'a [u8],
    is_quoted: bool,
    has_blanks: bool,
}

impl<'a> Parameter<'a> {
    /// Parses a parameter up to the next semicolon. Returns the parameter and the rest.
    fn read(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Problem> {
        let name_end = bytes.iter().position(|byte| !is_token_byte(*byte)).unwrap_or(bytes.len());
        let (name, rest) = bytes.split_at(name_end);
        let behind_name = rest.trim_ascii_start();
        let behind_equals = behind_name.strip_prefix(b"=").ok_or(Problem::MediaType)?;
        let start = behind_equals.trim_ascii_start();
        let is_spaced = rest.len() != behind_name.len() || behind_equals.len() != start.len();
        if name.is_empty() {
            return Err(Problem::MediaType);
        }
        let (value, behind, is_quoted) = match start.strip_prefix(b"\"") {
            Some(quoted) => {
                let end = memchr::memchr(b'"', quoted).ok_or(Problem::BoundaryQuoting)?;
                let (value, behind) = quoted.split_at(end);
                (value, behind.get(1..).unwrap_or_default(), true)
            }
            None => {
                let end = memchr::memchr(b';', start).unwrap_or(start.len());
                let (value, behind) = start.split_at(end);
                (value, behind, false)
            }
        };
        let trimmed = if is_quoted { value } else { value.trim_ascii_end() };
        if !is_quoted && trimmed.contains(&b'"') {
            return Err(Problem::BoundaryQuoting);
        }
        let has_blanks =
            is_spaced || trimmed.len() != value.len() || (is_quoted && behind.starts_with(b" "));
        Ok((Self { name, value: trimmed, is_quoted, has_blanks }, behind))
    }

    /// Whether it is the charset, which Spring puts before the boundary. Servers that search for the boundary find it.
    fn is_charset(&self) -> bool {
        self.name.eq_ignore_ascii_case(b"charset") && !self.has_blanks
    }

    fn note(&self, findings: &mut Findings) {
        if self.name != NAME {
            findings.differ(Difference::ParameterCase);
        }
        if self.has_blanks {
            findings.flag(MultipartFlag::BoundaryWhitespace);
        }
        if self.is_quoted {
            findings.flag(MultipartFlag::BoundaryQuoted);
        } else if !self.value.iter().all(|byte| is_token_byte(*byte)) {
            findings.differ(Difference::BoundaryUnquoted);
        }
    }
}
