//! Request heads (RFC 9112 sections 2 to 6, RFC 9110 sections 7 to 10).

use super::field_lines::parse_field_lines;
use super::{HeadLimits, ParseProgress, RequestError, within_limit};
use crate::authority;
use crate::chars::is_token_byte;
use crate::message::{FieldId, Framing, Method, Part, RequestHead, Scheme, Span, Version};
use crate::path::TargetForm;
use crate::request_facts::{RequestSummary, settle};
use crate::target::{Target, encode_query};

/// Maximum length of a method in bytes; the longest registered method (UPDATEREDIRECTREF) has 17.
pub const METHOD_LENGTH_MAX: usize = 32;

/// Maximum number of empty lines before a request line. RFC 9112 section 2.2 requires at least one to be ignored; old
/// clients send an uncounted CR LF after a body, some of them twice.
pub const EMPTY_LINES_MAX: u8 = 2;

/// Parses the request head at the start of `input`; its target is normalised by `form`.
///
/// An error is final; the connection must be closed after the response. Malformed bytes are an error as soon as they
/// have arrived; the meaning of the fields is judged when the head is complete. After `Partial` or an error, `head` has
/// the part that was read so far.
pub fn parse_request(
    input: &[u8],
    limits: &HeadLimits,
    form: TargetForm,
    head: &mut RequestHead,
) -> Result<ParseProgress, RequestError> {
    head.clear();
    let (input, may_grow) = within_limit(input, *limits);
    let Some(fields_start) = parse_request_line(input, form, head)? else {
        return if may_grow {
            Ok(ParseProgress::Partial)
        } else {
            Err(RequestError::RequestLineTooLong)
        };
    };
    match parse_field_lines(input, fields_start, limits.headers_max, &mut head.fields)? {
        Some(length) => {
            let mut facts = RequestSummary::default();
            for field in head.fields.iter().filter(|field| field.id != FieldId::Other) {
                facts.note(field, input, head.version)?;
            }
            settle_authority(facts.host, input, head)?;
            head.framing = facts.common.framing().unwrap_or(Framing::None);
            settle(&facts, input, head)?;
            Ok(ParseProgress::Complete { length })
        }
        None if may_grow => Ok(ParseProgress::Partial),
        None => Err(RequestError::HeadTooLarge),
    }
}

/// Parses the request line, and empty lines before it. Returns the start of the fields.
fn parse_request_line(
    input: &[u8],
    form: TargetForm,
    head: &mut RequestHead,
) -> Result<Option<usize>, RequestError> {
    let start = match input {
        [] => return Ok(None),
        [b'\r', ..] => match empty_lines(input) {
            Some(start) => start,
            None => return Ok(None),
        },
        _ => 0,
    };
    let Some(target_start) = parse_method(input, start, head)? else {
        return Ok(None);
    };
    let Some(target) = scan_target(input, target_start)? else {
        return Ok(None);
    };
    head.target = target.span;
    let Some(fields_start) = parse_version(input, target.span.end as usize + 1, head)? else {
        return Ok(None);
    };
    resolve_target(input, target, form, head)?;
    Ok(Some(fields_start))
}

/// The end of permitted empty lines; `None` if it is not known yet.
#[cold]
fn empty_lines(input: &[u8]) -> Option<usize> {
    let mut start = 0;
    for _ in 0..EMPTY_LINES_MAX {
        match &input[start..] {
            [b'\r', b'\n', ..] => start += 2,
            [] | [b'\r'] => return None,
            _ => break,
        }
    }
    Some(start)
}

/// Parses the method and the space after it. Returns the start of the target.
#[inline(always)]
fn parse_method(
    input: &[u8],
    start: usize,
    head: &mut RequestHead,
) -> Result<Option<usize>, RequestError> {
    let rest = &input[start..];
    let (method, length) = if rest.starts_with(b"GET ") {
        (Method::Get, b"GET".len())
    } else if rest.starts_with(b"POST ") {
        (Method::Post, b"POST".len())
    } else {
        match parse_any_method(rest)? {
            Some(found) => found,
            None => return Ok(None),
        }
    };
    head.method_text = Span::new(start, start + length);
    head.method = method;
    if head.method == Method::Connect {
        return Err(RequestError::Connect);
    }
    Ok(Some(start + length + b" ".len()))
}

#[inline(never)]
fn parse_any_method(rest: &[u8]) -> Result<Option<(Method, usize)>, RequestError> {
    let window = &rest[..rest.len().min(METHOD_LENGTH_MAX + 1)];
    let Some(length) = window.iter().position(|byte| !is_token_byte(*byte)) else {
        return if window.len() > METHOD_LENGTH_MAX {
            Err(RequestError::MethodTooLong)
        } else {
            Ok(None)
        };
    };
    if length == 0 || window[length] != b' ' {
        return Err(RequestError::Method);
    }
    Ok(Some((Method::of(&window[..length]), length)))
}

/// Finds the target and the space after it, in any form: only its characters are checked here.
#[inline(always)]
fn scan_target(input: &[u8], start: usize) -> Result<Option<Target>, RequestError> {
    let (target, end) = Target::scan(input, start);
    match input.get(end) {
        None => Ok(None),
        Some(b' ') if end > start => Ok(Some(target)),
        Some(b' ') => Err(RequestError::TargetForm),
        Some(b'\r' | b'\n') => Err(RequestError::VersionMissing),
        Some(_) => Err(RequestError::TargetCharacter),
    }
}

/// Parses the version at `start`, and the end of the line. Returns the start of the fields.
#[inline(always)]
fn parse_version(
    input: &[u8],
    start: usize,
    head: &mut RequestHead,
) -> Result<Option<usize>, RequestError> {
    const USUAL: &[u8] = b"HTTP/1.1\r\n";
    let rest = &input[start..];
    if rest.starts_with(USUAL) {
        head.version = Version::Http11;
    } else if !parse_any_version(rest, head)? {
        return Ok(None);
    }
    Ok(Some(start + USUAL.len()))
}

/// Parses `HTTP/` DIGIT `.` DIGIT CRLF. Returns whether it is complete. A 1.1 recipient understands any higher minor version
/// (RFC 9110 section 2.5).
#[inline(never)]
fn parse_any_version(rest: &[u8], head: &mut RequestHead) -> Result<bool, RequestError> {
    const LITERAL: &[u8] = b"HTTP/d.d";
    let matches = |(byte, want): (&u8, &u8)| {
        if *want == b'd' { byte.is_ascii_digit() } else { byte == want }
    };
    if !std::iter::zip(rest, LITERAL).all(matches) {
        return Err(RequestError::Version);
    }
    head.version = match (rest.get(5), rest.get(7)) {
        (_, None) => return Ok(false),
        (Some(b'1'), Some(b'0')) => Version::Http10,
        (Some(b'1'), Some(_)) => Version::Http11,
        _ => return Err(RequestError::VersionNotSupported),
    };
    match &rest[LITERAL.len()..] {
        [b'\r', b'\n', ..] => Ok(true),
        [] | [b'\r'] => Ok(false),
        _ => Err(RequestError::LineEnd),
    }
}

/// Parses the target according to its form (RFC 9112 section 3.2).
#[inline(always)]
fn resolve_target(
    input: &[u8],
    target: Target,
    form: TargetForm,
    head: &mut RequestHead,
) -> Result<(), RequestError> {
    let span = target.span;
    let (start, end) = (span.start as usize, span.end as usize);
    match span.of(input) {
        [b'/', ..] => target.set_path_and_query(input, start..end, form, head),
        b"*" if head.method == Method::Options => {
            head.path = Part::Received(span);
            Ok(())
        }
        _ => resolve_absolute_form(input, target, form, head),
    }
}

#[inline(never)]
fn resolve_absolute_form(
    input: &[u8],
    target: Target,
    form: TargetForm,
    head: &mut RequestHead,
) -> Result<(), RequestError> {
    let span = target.span;
    let text = span.of(input);
    let (scheme, prefix) = if starts_with_ignore_case(text, b"http://") {
        (Scheme::Http, "http://".len())
    } else if starts_with_ignore_case(text, b"https://") {
        (Scheme::Https, "https://".len())
    } else {
        return Err(RequestError::TargetForm);
    };
    let (start, end) = (span.start as usize + prefix, span.end as usize);
    let authority_end =
        memchr::memchr2(b'/', b'?', &input[start..end]).map_or(end, |length| start + length);
    let length = authority::check(&input[start..authority_end]).ok_or(RequestError::HostInvalid)?;
    if length == 0 {
        return Err(RequestError::HostInvalid);
    }
    head.scheme = Some(scheme);
    head.authority = Span::new(start, start + length);
    if input[authority_end] == b'/' {
        let path_end = memchr::memchr(b'?', &input[authority_end..end])
            .map_or(end, |length| authority_end + length);
        let rest = Target { path_end, needs_canonical: true, ..target };
        return rest.set_path_and_query(input, authority_end..end, form, head);
    }
    head.path = Part::Made(Span::new(0, 1));
    if authority_end < end {
        head.canonical.push(b'/');
        let query = Span::new(authority_end + 1, end);
        head.query = Some(encode_query(query, input, form, head)?);
    } else {
        // RFC 9112 section 3.2.4: the last proxy on the way turns this into the asterisk-form.
        head.canonical.push(if head.method == Method::Options { b'*' } else { b'/' });
    }
    Ok(())
}

fn starts_with_ignore_case(bytes: &[u8], prefix: &[u8]) -> bool {
    bytes.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

fn settle_authority(
    host: Option<Span>,
    input: &[u8],
    head: &mut RequestHead,
) -> Result<(), RequestError> {
    let Some(host) = host else {
        return if head.version == Version::Http10 {
            Ok(())
        } else {
            Err(RequestError::HostMissing)
        };
    };
    if let Some(scheme) = head.scheme {
        if !authority::same(head.authority(input), host.of(input), scheme.default_port()) {
            return Err(RequestError::HostMismatch);
        }
    } else {
        head.authority = host;
    }
    Ok(())
}
