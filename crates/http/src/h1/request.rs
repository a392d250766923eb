//! Request heads (RFC 9112 sections 2 to 6, RFC 9110 sections 7 to 10).

use super::facts::Facts;
use super::field_lines::parse_field_lines;
use super::{HeadLimits, Parsed, RequestError, within_limit};
use crate::authority;
use crate::chars::{
    PATH, PLAIN, PathByte, is_query_byte, is_token_byte, is_word, list, run_length,
};
use crate::fields::withhold;
use crate::message::{
    Field, FieldId, Framing, Method, PathSource, RequestHead, Scheme, Span, Version,
};
use crate::path;

/// Bytes of a method; the longest registered one (UPDATEREDIRECTREF) has 17.
pub const METHOD_LENGTH_MAX: usize = 32;

/// Parses the request head at the start of `input`.
///
/// An error is final; the connection must be closed after the answer. Malformed bytes are one as soon
/// as they are here, whatever may follow; what the fields mean is judged once the head is whole. What
/// `head` holds after `Partial` or an error is what was read so far.
pub fn parse_request(
    input: &[u8],
    limits: &HeadLimits,
    head: &mut RequestHead,
) -> Result<Parsed, RequestError> {
    head.clear();
    let (input, may_grow) = within_limit(input, *limits);
    let Some(fields_start) = parse_request_line(input, head)? else {
        return if may_grow { Ok(Parsed::Partial) } else { Err(RequestError::RequestLineTooLong) };
    };
    match parse_field_lines(input, fields_start, limits.headers_max, &mut head.fields)? {
        Some(length) => {
            let mut facts = RequestFacts::default();
            for field in head.fields.iter().filter(|field| field.id != FieldId::Other) {
                facts.note(field, input, head.version)?;
            }
            settle(&facts, input, head)?;
            Ok(Parsed::Complete { length })
        }
        None if may_grow => Ok(Parsed::Partial),
        None => Err(RequestError::HeadTooLarge),
    }
}

/// What a request's fields say beyond what every message's do.
#[derive(Default)]
struct RequestFacts {
    common: Facts,
    host: Option<Span>,
    expect_seen: bool,
    te_trailers: bool,
}

impl RequestFacts {
    fn note(&mut self, field: &Field, input: &[u8], version: Version) -> Result<(), RequestError> {
        match field.id {
            FieldId::Host => {
                if self.host.is_some() {
                    return Err(RequestError::HostRepeated);
                }
                let length =
                    authority::check(field.value.of(input)).ok_or(RequestError::HostInvalid)?;
                self.host =
                    Some(Span { start: field.value.start, end: field.value.start + length as u32 });
            }
            FieldId::Expect => {
                // RFC 9110 section 10.1.1: in HTTP/1.0 it means nothing.
                let is_continue = is_word(field.value.of(input), b"100-continue");
                if version != Version::Http10 && (self.expect_seen || !is_continue) {
                    return Err(RequestError::Expectation);
                }
                self.expect_seen = true;
            }
            FieldId::Te => {
                self.te_trailers |=
                    list(field.value.of(input)).any(|coding| is_word(coding, b"trailers"));
            }
            _ => self.common.note(field, input, version)?,
        }
        Ok(())
    }
}

/// The request line, and one empty line before it. Where the fields start.
fn parse_request_line(input: &[u8], head: &mut RequestHead) -> Result<Option<usize>, RequestError> {
    // RFC 9112 section 2.2: a server SHOULD ignore at least one empty line before the request line.
    let start = match input {
        [b'\r', b'\n', ..] => 2,
        [] | [b'\r'] => return Ok(None),
        _ => 0,
    };
    let Some(target_start) = parse_method(input, start, head)? else {
        return Ok(None);
    };
    let Some(target) = scan_target(input, target_start)? else {
        return Ok(None);
    };
    head.target = target.span;
    let version_start = target.span.end as usize + 1;
    let Some(version) = parse_version(&input[version_start..])? else {
        return Ok(None);
    };
    head.version = version;
    let line_end = version_start + VERSION_LENGTH;
    match (input.get(line_end), input.get(line_end + 1)) {
        (Some(b'\r'), Some(b'\n')) => {}
        (None, _) | (Some(b'\r'), None) => return Ok(None),
        _ => return Err(RequestError::LineEnd),
    }
    resolve_target(input, target, head)?;
    Ok(Some(line_end + 2))
}

/// The method and the space after it. Where the target starts.
fn parse_method(
    input: &[u8],
    start: usize,
    head: &mut RequestHead,
) -> Result<Option<usize>, RequestError> {
    let window = &input[start..input.len().min(start + METHOD_LENGTH_MAX + 1)];
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
    head.method_text = Span::new(start, start + length);
    head.method = match &window[..length] {
        b"GET" => Method::Get,
        b"HEAD" => Method::Head,
        b"POST" => Method::Post,
        b"PUT" => Method::Put,
        b"DELETE" => Method::Delete,
        b"OPTIONS" => Method::Options,
        b"TRACE" => Method::Trace,
        b"PATCH" => Method::Patch,
        b"CONNECT" => return Err(RequestError::Connect),
        _ => Method::Other,
    };
    Ok(Some(start + length + 1))
}

/// What one pass over the target has found.
#[derive(Clone, Copy)]
struct Target {
    span: Span,
    /// Of an origin-form target: where the path ends, and whether it may differ from its canonical
    /// form. Of any other, the end of the target.
    path_end: usize,
    needs_canonical: bool,
}

/// The target and the space after it. Any form: only its characters are judged here.
fn scan_target(input: &[u8], start: usize) -> Result<Option<Target>, RequestError> {
    let mut needs_canonical = false;
    let mut at = start;
    if input.get(at) == Some(&b'/') {
        while let Some(byte) = input.get(at) {
            match PATH[usize::from(*byte)] {
                PathByte::Plain => at += run_length(&input[at..], &PLAIN, b'/'),
                PathByte::Dot => {
                    needs_canonical |= input[at - 1] == b'/';
                    at += 1;
                }
                PathByte::Encode => {
                    needs_canonical = true;
                    at += 1;
                }
                PathByte::Query | PathByte::End | PathByte::Refused => break,
            }
        }
    }
    let path_end = at;
    if input.get(at) != Some(&b' ') {
        if input.get(at) == Some(&b'\\') && at > start && input[start] == b'/' {
            return Err(RequestError::TargetCharacter);
        }
        at += input[at..].iter().position(|byte| !is_query_byte(*byte)).unwrap_or(input.len() - at);
    }
    match input.get(at) {
        None => Ok(None),
        Some(b' ') if at > start => {
            Ok(Some(Target { span: Span::new(start, at), path_end, needs_canonical }))
        }
        Some(b' ') => Err(RequestError::TargetForm),
        Some(b'\r' | b'\n') => Err(RequestError::VersionMissing),
        Some(_) => Err(RequestError::TargetCharacter),
    }
}

const VERSION_LENGTH: usize = b"HTTP/1.1".len();

/// `HTTP/` DIGIT `.` DIGIT. A higher minor version is one that a 1.1 recipient understands
/// (RFC 9110 section 2.5).
fn parse_version(rest: &[u8]) -> Result<Option<Version>, RequestError> {
    const LITERAL: &[u8; VERSION_LENGTH] = b"HTTP/d.d";
    if rest.starts_with(b"HTTP/1.1") {
        return Ok(Some(Version::Http11));
    }
    let matches = |(byte, want): (&u8, &u8)| {
        if *want == b'd' { byte.is_ascii_digit() } else { byte == want }
    };
    if !std::iter::zip(rest, LITERAL).all(matches) {
        return Err(RequestError::Version);
    }
    match (rest.get(5), rest.get(7)) {
        (_, None) => Ok(None),
        (Some(b'1'), Some(b'0')) => Ok(Some(Version::Http10)),
        (Some(b'1'), Some(_)) => Ok(Some(Version::Http11)),
        _ => Err(RequestError::VersionNotSupported),
    }
}

/// Takes the target apart by its form (RFC 9112 section 3.2).
fn resolve_target(
    input: &[u8],
    target: Target,
    head: &mut RequestHead,
) -> Result<(), RequestError> {
    let span = target.span;
    let (start, end) = (span.start as usize, span.end as usize);
    match span.of(input) {
        [b'/', ..] => set_path_and_query(input, start..end, target, head),
        b"*" if head.method == Method::Options => {
            head.path = PathSource::Received(span);
            Ok(())
        }
        _ => resolve_absolute_form(input, span, head),
    }
}

fn resolve_absolute_form(
    input: &[u8],
    span: Span,
    head: &mut RequestHead,
) -> Result<(), RequestError> {
    let target = span.of(input);
    let (scheme, prefix) = if starts_with_ignore_case(target, b"http://") {
        (Scheme::Http, "http://".len())
    } else if starts_with_ignore_case(target, b"https://") {
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
        let rest = Target { span, path_end, needs_canonical: true };
        return set_path_and_query(input, authority_end..end, rest, head);
    }
    head.path = PathSource::Canonical;
    if authority_end < end {
        head.query = Some(Span::new(authority_end + 1, end));
        head.canonical.push(b'/');
    } else {
        // RFC 9112 section 3.2.4: the last proxy on the way turns this into the asterisk-form.
        head.canonical.push(if head.method == Method::Options { b'*' } else { b'/' });
    }
    Ok(())
}

fn set_path_and_query(
    input: &[u8],
    range: std::ops::Range<usize>,
    target: Target,
    head: &mut RequestHead,
) -> Result<(), RequestError> {
    let received = Span::new(range.start, target.path_end);
    head.path = PathSource::Received(received);
    if target.needs_canonical {
        path::canonicalise(received.of(input), &mut head.canonical)?;
        if head.canonical != received.of(input) {
            head.path = PathSource::Canonical;
        }
    }
    if target.path_end < range.end {
        head.query = Some(Span::new(target.path_end + 1, range.end));
    }
    Ok(())
}

fn starts_with_ignore_case(bytes: &[u8], prefix: &[u8]) -> bool {
    bytes.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// Everything that needs the whole head.
fn settle(facts: &RequestFacts, input: &[u8], head: &mut RequestHead) -> Result<(), RequestError> {
    settle_authority(facts.host, input, head)?;
    let common = &facts.common;
    head.framing = common.framing().unwrap_or(Framing::None);
    if head.method == Method::Trace && !head.framing.is_empty() {
        return Err(RequestError::TraceWithBody);
    }
    settle_max_forwards(input, head)?;
    head.keep_alive = common.is_persistent(head.version);
    common.withhold_hop_by_hop(&mut head.fields, input);
    let is_http11 = head.version == Version::Http11;
    if facts.expect_seen {
        if is_http11 && !head.framing.is_empty() {
            head.expect_continue =
                head.fields.iter().any(|field| field.id == FieldId::Expect && field.forward);
        } else {
            withhold(&mut head.fields, FieldId::Expect);
        }
    }
    head.te_trailers = facts.te_trailers && common.connection_te && is_http11;
    if common.connection_upgrade && is_http11 && head.framing.is_empty() {
        head.upgrade = common.upgrade.filter(|offered| may_be_offered(offered.of(input)));
    }
    Ok(())
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
        let default_port: &[u8] = match scheme {
            Scheme::Http => b"80",
            Scheme::Https => b"443",
        };
        if !authority::same(head.authority(input), host.of(input), default_port) {
            return Err(RequestError::HostMismatch);
        }
    } else {
        head.authority = host;
    }
    Ok(())
}

/// RFC 9110 section 7.6.2: the field counts with TRACE and OPTIONS, and is only passed on with others.
fn settle_max_forwards(input: &[u8], head: &mut RequestHead) -> Result<(), RequestError> {
    if !matches!(head.method, Method::Options | Method::Trace) {
        return Ok(());
    }
    for field in head.fields.iter_mut().filter(|field| field.id == FieldId::MaxForwards) {
        let hops = parse_max_forwards(field.value.of(input)).ok_or(RequestError::MaxForwards)?;
        if head.max_forwards.replace(hops).is_some() {
            return Err(RequestError::MaxForwards);
        }
        field.forward = false;
    }
    Ok(())
}

/// `1*DIGIT`; what is larger than the largest number counts as that.
fn parse_max_forwards(value: &[u8]) -> Option<u32> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    is_number.then(|| {
        value.iter().fold(0_u32, |hops, digit| {
            hops.saturating_mul(10).saturating_add(u32::from(digit - b'0'))
        })
    })
}

/// Whether a member may be offered these protocols: not when one of them is HTTP in another guise.
/// Through a tunnel of `h2c`, `HTTP/x` or `TLS`, requests would reach the member past every policy.
fn may_be_offered(protocols: &[u8]) -> bool {
    const HTTP_IN_DISGUISE: [&[u8]; 4] = [b"h2c", b"h2", b"http", b"tls"];
    let mut protocols = list(protocols).peekable();
    protocols.peek().is_some()
        && protocols.all(|protocol| {
            let mut parts = protocol.split(|byte| *byte == b'/');
            let name = parts.next().unwrap_or_default();
            let version = parts.next();
            let is_token =
                |part: &[u8]| !part.is_empty() && part.iter().all(|byte| is_token_byte(*byte));
            is_token(name)
                && version.is_none_or(is_token)
                && parts.next().is_none()
                && !HTTP_IN_DISGUISE.iter().any(|refused| name.eq_ignore_ascii_case(refused))
        })
}
