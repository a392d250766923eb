//! Request heads (RFC 9113 section 8.3.1, RFC 8441).

use super::common::{Pseudo, take_apart};
use super::{Malformed, ReadError};
use crate::authority;
use crate::chars::is_token_byte;
use crate::h1::{FieldError, METHOD_LENGTH_MAX, RequestError};
use crate::h2::hpack::{Excess, HeaderBlock};
use crate::message::{Field, FieldId, Framing, Method, Part, RequestHead, Scheme, Span, Version};
use crate::path::TargetForm;
use crate::request_facts::{RequestSummary, may_be_offered, settle};
use crate::target::Target;

type RequestReadError = ReadError<RequestError>;

/// Reads the request from the list in `block`; `end_stream`: the stream ends with this list. The target is normalised by
/// `form`.
///
/// The head's spans refer to the block's text, to which lines may be added: the crumbs of a cookie are joined into one line
/// (section 8.2.3). After an error, `head` has the part that was read so far. CONNECT is refused as in HTTP/1. An extended
/// CONNECT is accepted; the caller must refuse it if it has not announced support.
pub fn read_request(
    block: &mut HeaderBlock,
    end_stream: bool,
    form: TargetForm,
    head: &mut RequestHead,
) -> Result<(), RequestReadError> {
    head.clear();
    head.version = Version::Http2;
    head.keep_alive = true;
    let pseudo = take_apart(block, &mut head.fields)?;
    take_method_and_target(&pseudo, block.text(), head)?;
    match block.excess() {
        None => {}
        Some(Excess::Size) => return Err(ReadError::Refused(RequestError::HeadTooLarge)),
        Some(Excess::Lines) => return Err(refused(FieldError::TooMany)),
    }
    check_set(&pseudo, head)?;
    if pseudo.cookies > 1 {
        join_cookies(block, &mut head.fields);
    }
    let mut facts = RequestSummary::default();
    for field in head.fields.iter().filter(|field| field.id != FieldId::Other) {
        facts.note(field, block.text(), Version::Http2).map_err(|error| match error {
            // Section 8.1.1: the message is malformed, so the stream is reset and no 400 is sent.
            RequestError::Framing(_) => ReadError::Malformed(Malformed::ContentLength),
            error => ReadError::Refused(error),
        })?;
    }
    settle_authority(&pseudo, facts.host, block.text(), head)?;
    if head.method == Method::Connect && pseudo.protocol.is_none() {
        return Err(ReadError::Refused(RequestError::Connect));
    }
    settle_path(block.text(), form, head)?;
    head.framing = match (facts.common.content_length, end_stream) {
        (Some(length), true) if length > 0 => return Err(Malformed::ContentLength.into()),
        (Some(length), _) => Framing::Length(length),
        (None, true) => Framing::None,
        (None, false) => Framing::Chunked,
    };
    facts.common.chunked = head.framing == Framing::Chunked;
    if let Some(protocol) = pseudo.protocol {
        settle_extended_connect(protocol, block, head)?;
    }
    settle(&facts, block.text(), head).map_err(ReadError::Refused)?;
    if head.extended_connect {
        head.upgrade = pseudo.protocol;
    }
    Ok(())
}

fn refused(error: impl Into<RequestError>) -> RequestReadError {
    ReadError::Refused(error.into())
}

/// Sets the method and the target, which are known even if the request is refused for its size.
fn take_method_and_target(
    pseudo: &Pseudo,
    text: &[u8],
    head: &mut RequestHead,
) -> Result<(), RequestReadError> {
    if pseudo.status.is_some() {
        return Err(Malformed::PseudoUnknown.into());
    }
    if let Some(method) = pseudo.method {
        let token = method.of(text);
        if token.is_empty() || !token.iter().all(|byte| is_token_byte(*byte)) {
            return Err(Malformed::Method.into());
        }
        if token.len() > METHOD_LENGTH_MAX {
            return Err(refused(RequestError::MethodTooLong));
        }
        head.method_text = method;
        head.method = Method::of(token);
    }
    head.target = pseudo.path.unwrap_or_default();
    head.scheme = match pseudo.scheme.map(|scheme| scheme.of(text)) {
        None => None,
        Some(b"") => return Err(Malformed::Scheme.into()),
        Some(scheme) if scheme.eq_ignore_ascii_case(b"https") => Some(Scheme::Https),
        Some(scheme) if scheme.eq_ignore_ascii_case(b"http") => Some(Scheme::Http),
        Some(_) => return Err(refused(RequestError::TargetForm)),
    };
    Ok(())
}

/// Checks for exactly the pseudo-header fields of the method (sections 8.3.1 and 8.5, RFC 8441 section 4).
fn check_set(pseudo: &Pseudo, head: &RequestHead) -> Result<(), Malformed> {
    let is_connect = head.method == Method::Connect;
    let names_target = pseudo.scheme.is_some() && pseudo.path.is_some();
    let names_part = pseudo.scheme.is_some() || pseudo.path.is_some();
    let sound = match pseudo.protocol {
        _ if pseudo.method.is_none() => false,
        Some(_) => is_connect && names_target && pseudo.authority.is_some(),
        None if is_connect => !names_part && pseudo.authority.is_some(),
        None => names_target,
    };
    if sound { Ok(()) } else { Err(Malformed::PseudoSet) }
}

/// Joins the crumbs of a cookie at the place of the first, so that all readers see one cookie.
fn join_cookies(block: &mut HeaderBlock, fields: &mut Vec<Field>) {
    let is_cookie =
        |field: &Field, text: &[u8]| field.id == FieldId::Other && field.name.of(text) == b"cookie";
    let text = &mut block.text;
    let Some(first) = fields.iter().position(|field| is_cookie(field, text)) else { return };
    let start = text.len();
    text.extend_from_slice(b"cookie: ");
    let value_start = text.len();
    let mut never_indexed = false;
    for field in &fields[first..] {
        // An empty crumb has no meaning, and would leave a space at the end.
        if !is_cookie(field, text) || field.value.is_empty() {
            continue;
        }
        if text.len() > value_start {
            text.extend_from_slice(b"; ");
        }
        text.extend_from_within(field.value.start as usize..field.value.end as usize);
        never_indexed |= field.never_indexed;
    }
    let value = Span::new(value_start, text.len());
    text.extend_from_slice(b"\r\n");
    let name = Span::new(start, start + b"cookie".len());
    fields[first] = Field { name, value, never_indexed, ..fields[first] };
    let mut place = 0;
    fields.retain(|field| {
        place += 1;
        place <= first + 1 || !is_cookie(field, text)
    });
}

/// Sets the authority from `:authority`, or from Host if there is no `:authority`. If both exist, they must be equal.
fn settle_authority(
    pseudo: &Pseudo,
    host: Option<Span>,
    text: &[u8],
    head: &mut RequestHead,
) -> Result<(), RequestReadError> {
    let Some(authority) = pseudo.authority else {
        head.authority = host.ok_or(refused(RequestError::HostMissing))?;
        // An empty Host is valid in HTTP/1.1, but not with http and https (RFC 9110 section 4.2).
        let is_named = !head.authority.is_empty();
        return if is_named { Ok(()) } else { Err(refused(RequestError::HostInvalid)) };
    };
    let received = authority.of(text);
    if received.is_empty() || received.contains(&b'@') {
        return Err(Malformed::Authority.into());
    }
    let length = authority::check(received).ok_or(refused(RequestError::HostInvalid))?;
    head.authority = Span { start: authority.start, end: authority.start + length as u32 };
    let default_port = head.scheme.unwrap_or(Scheme::Https).default_port();
    match host {
        Some(host) if !authority::same(head.authority(text), host.of(text), default_port) => {
            Err(Malformed::HostMismatch.into())
        }
        _ => Ok(()),
    }
}

/// `:path`: origin-form, or the asterisk of OPTIONS.
fn settle_path(
    text: &[u8],
    form: TargetForm,
    head: &mut RequestHead,
) -> Result<(), RequestReadError> {
    let span = head.target;
    match span.of(text) {
        [b'/', ..] => {
            let (start, end) = (span.start as usize, span.end as usize);
            let (target, scanned) = Target::scan(&text[..end], start);
            if scanned != end {
                return Err(refused(RequestError::TargetCharacter));
            }
            target.set_path_and_query(text, start..end, form, head).map_err(ReadError::Refused)
        }
        b"*" if head.method == Method::Options => {
            head.path = Part::Received(span);
            Ok(())
        }
        _ => Err(Malformed::Path.into()),
    }
}

/// Converts an extended CONNECT to the equivalent GET of HTTP/1.1.
fn settle_extended_connect(
    protocol: Span,
    block: &mut HeaderBlock,
    head: &mut RequestHead,
) -> Result<(), RequestReadError> {
    let name = protocol.of(&block.text);
    if name.is_empty() || !name.iter().all(|byte| is_token_byte(*byte) || *byte == b'/') {
        return Err(Malformed::Protocol.into());
    }
    if matches!(head.framing, Framing::Length(_)) {
        // The data that follows belongs to the tunnel; there is no body.
        return Err(Malformed::ContentLength.into());
    }
    if !may_be_offered(name) {
        return Err(refused(RequestError::Protocol));
    }
    let start = block.text.len();
    block.text.extend_from_slice(b"GET");
    head.method = Method::Get;
    head.method_text = Span::new(start, block.text.len());
    head.framing = Framing::None;
    head.extended_connect = true;
    for field in &mut head.fields {
        // RFC 8441 section 5: the field has no meaning in HTTP/2, and a member gets a new key.
        if field.name.of(&block.text) == b"sec-websocket-key" {
            field.forward = false;
        }
    }
    Ok(())
}
