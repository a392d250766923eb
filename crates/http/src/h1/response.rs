//! Response heads (RFC 9112 sections 4 to 6).

use super::field_lines::parse_field_lines;
use super::repair::{Repair, repair};
use super::{FieldError, HeadLimits, ParseProgress, ResponseError, within_limit};
use crate::chars::{find_control, is_word, list, trim_ows};
use crate::facts::FieldSummary;
use crate::flaws::{Flaw, Flaws};
use crate::message::{FieldId, Framing, Method, ResponseHead, Span, Version};

/// Parses the response head at the start of `input`, the answer to a request with `request_method`.
///
/// An error is final: the client gets 502, and the member connection is closed. A status of 600 or more is an error
/// too: RFC 9110 section 15 calls it invalid and requires it to be treated as 5xx.
///
/// The caller must check that a 101 answers a request that offered the protocol, with
/// [`upgrade_was_offered`](super::upgrade_was_offered).
pub fn parse_response(
    input: &[u8],
    limits: &HeadLimits,
    request_method: Method,
    head: &mut ResponseHead,
) -> Result<ParseProgress, ResponseError> {
    parse(input, limits, request_method, Flaws::NONE, head)
}

/// As above, for a member whose flaws in `taken` are tolerated; [`ResponseHead::flaws`] has the found ones.
///
/// A head with repaired lines is in `repaired`, and its spans refer to that instead of `input`; otherwise `repaired` is
/// empty. The length is always that of the received bytes.
pub fn parse_response_of_member(
    input: &[u8],
    limits: &HeadLimits,
    request_method: Method,
    taken: Flaws,
    repaired: &mut Vec<u8>,
    head: &mut ResponseHead,
) -> Result<ParseProgress, ResponseError> {
    repaired.clear();
    let error = match parse(input, limits, request_method, taken, head) {
        Err(error) if may_be_mended(error) => error,
        outcome => return outcome,
    };
    let mut flaws = Flaws::NONE;
    match repair(input, limits, taken, &mut flaws, repaired) {
        Repair::Partial => Ok(ParseProgress::Partial),
        Repair::TooLarge => Err(ResponseError::HeadTooLarge),
        Repair::Refused => Err(error),
        Repair::Done(length) => {
            // The line ends have grown; the original section was within its limit.
            let limits = HeadLimits { head_size_max: u32::MAX, ..*limits };
            parse(repaired, &limits, request_method, taken, head)?;
            head.flaws.add_all(flaws);
            Ok(ParseProgress::Complete { length })
        }
    }
}

/// Whether an error is about a line end or a control character.
fn may_be_mended(error: ResponseError) -> bool {
    use FieldError::{BareCr, BareLf, Value};
    matches!(
        error,
        ResponseError::LineEnd
            | ResponseError::Reason
            | ResponseError::Field(BareLf | BareCr | Value)
    )
}

fn parse(
    input: &[u8],
    limits: &HeadLimits,
    request_method: Method,
    taken: Flaws,
    head: &mut ResponseHead,
) -> Result<ParseProgress, ResponseError> {
    head.clear();
    let (input, may_grow) = within_limit(input, *limits);
    let partial = || {
        if may_grow { Ok(ParseProgress::Partial) } else { Err(ResponseError::HeadTooLarge) }
    };
    let Some(fields_start) = parse_status_line(input, taken, head)? else {
        return partial();
    };
    let Some(length) =
        parse_field_lines(input, fields_start, limits.headers_max, &mut head.fields)?
    else {
        return partial();
    };
    let mut facts = FieldSummary::default();
    for field in head.fields.iter().filter(|field| field.id != FieldId::Other) {
        match field.id {
            FieldId::Date => head.has_date = true,
            FieldId::KeepAlive => {
                let timeout_s = keep_alive_timeout(field.value.of(input));
                head.keep_alive_timeout_s = timeout_s.or(head.keep_alive_timeout_s);
            }
            _ => {
                if let Err(error) = facts.note(field, input, head.version) {
                    facts.overlook(error, field.value.of(input), taken, &mut head.flaws)?;
                }
            }
        }
    }
    settle(&facts, request_method, head)?;
    head.binds_connection = facts.challenges_connection;
    facts.withhold_hop_by_hop(&mut head.fields, input);
    if facts.nominations > 0 {
        head.has_date = head.fields.iter().any(|field| field.id == FieldId::Date && field.forward);
    }
    Ok(ParseProgress::Complete { length })
}

/// Parses `HTTP/1.x SP 3DIGIT [SP reason] CRLF`. Returns the start of the fields.
///
/// The grammar requires the space after the status even if the reason is empty, but many members
/// omit it, and the meaning is unambiguous.
#[inline(always)]
fn parse_status_line(
    input: &[u8],
    taken: Flaws,
    head: &mut ResponseHead,
) -> Result<Option<usize>, ResponseError> {
    const USUAL: &[u8] = b"HTTP/1.1 200 OK\r\n";
    if input.starts_with(USUAL) {
        head.version = Version::Http11;
        head.status = 200;
        head.reason = Span::new(b"HTTP/1.1 200 ".len(), b"HTTP/1.1 200 OK".len());
        return Ok(Some(USUAL.len()));
    }
    parse_any_status_line(input, taken, head)
}

#[inline(never)]
fn parse_any_status_line(
    input: &[u8],
    taken: Flaws,
    head: &mut ResponseHead,
) -> Result<Option<usize>, ResponseError> {
    const LINE: &[u8; LINE_LENGTH] = b"HTTP/1.d ddd";
    const LINE_LENGTH: usize = 12;
    const STATUS_START: usize = b"HTTP/1.1 ".len();
    let matches = |(byte, want): (&u8, &u8)| {
        if *want == b'd' { byte.is_ascii_digit() } else { byte == want }
    };
    let start = match input.first_chunk::<LINE_LENGTH>() {
        Some(start)
            if start.starts_with(b"HTTP/1.1 ")
                && start[STATUS_START..].iter().all(u8::is_ascii_digit) =>
        {
            start
        }
        _ => match std::iter::zip(input, LINE).position(|pair| !matches(pair)) {
            Some(wrong) if wrong < STATUS_START - 1 => return Err(ResponseError::Version),
            Some(_) => return Err(ResponseError::Status),
            None => match input.first_chunk() {
                Some(start) => start,
                None => return Ok(None),
            },
        },
    };
    head.version = if start[7] == b'0' { Version::Http10 } else { Version::Http11 };
    head.status = start[9..].iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0'));
    if !(100..=599).contains(&head.status) {
        if head.status < 600 || !taken.have(Flaw::UnknownStatus) {
            return Err(ResponseError::Status);
        }
        head.flaws.add(Flaw::UnknownStatus);
    }
    let reason_start = match input.get(LINE.len()) {
        None => return Ok(None),
        Some(b' ') => LINE.len() + 1,
        Some(b'\r' | b'\n') => LINE.len(),
        Some(_) => return Err(ResponseError::Status),
    };
    let Some(line_end) = find_control(input, reason_start) else {
        return Ok(None);
    };
    head.reason = Span::new(reason_start, line_end);
    match (input[line_end], input.get(line_end + 1)) {
        (b'\r', Some(b'\n')) => Ok(Some(line_end + 2)),
        (b'\r', None) => Ok(None),
        (b'\r' | b'\n', _) => Err(ResponseError::LineEnd),
        _ => Err(ResponseError::Reason),
    }
}

/// Framing by RFC 9112 section 6.3, and its consequences for the connection.
fn settle(
    facts: &FieldSummary,
    request_method: Method,
    head: &mut ResponseHead,
) -> Result<(), ResponseError> {
    let declared = facts.framing();
    let announces_body = declared.is_some_and(|framing| !framing.is_empty());
    let is_empty_by_status = matches!(head.status, 100..=199 | 204 | 304);
    if matches!(head.status, 100..=199) && announces_body {
        return Err(ResponseError::InterimWithBody);
    }
    if request_method == Method::Connect && matches!(head.status, 200..=299) {
        return Err(ResponseError::Connect);
    }
    head.framing = if is_empty_by_status || request_method == Method::Head {
        Framing::None
    } else {
        declared.unwrap_or(Framing::UntilClose)
    };
    // RFC 9110 section 8.6: 1xx and 204 must not have Content-Length. RFC 9112 section 6.3: Content-Length beside a
    // transfer coding is ignored.
    let has_both = head.flaws.have(Flaw::BothFramings);
    let may_have_length = !matches!(head.status, 100..=199 | 204) && !has_both;
    head.content_length = facts.content_length.filter(|_| may_have_length);
    // A 204 that announces a body may send it: then the next response would start in the middle of that body.
    let contradicts_itself = head.status == 204 && announces_body;
    head.keep_alive = facts.is_persistent(head.version)
        && head.framing != Framing::UntilClose
        && head.status != 101
        && !contradicts_itself
        && !has_both;
    if matches!(head.status, 101 | 426) {
        head.upgrade = facts.upgrade.filter(|_| facts.connection_upgrade);
    }
    if head.status == 101 && head.upgrade.is_none() {
        return Err(ResponseError::UpgradeMissing);
    }
    Ok(())
}

/// The `timeout` parameter of a Keep-Alive field (RFC 2068 section 19.7.1.1).
fn keep_alive_timeout(value: &[u8]) -> Option<u32> {
    list(value).find_map(|parameter| {
        let (name, seconds) = parameter.split_at(memchr::memchr(b'=', parameter)?);
        if !is_word(trim_ows(name), b"timeout") {
            return None;
        }
        std::str::from_utf8(trim_ows(&seconds[1..])).ok()?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keep_alive_timeouts() {
        for (value, expected) in [
            ("timeout=5", Some(5)),
            ("timeout=5, max=100", Some(5)),
            ("max=100, Timeout = 7", Some(7)),
            ("max=100", None),
            ("timeout=", None),
            ("timeout=-1", None),
            ("timeout=99999999999", None),
            ("timeout", None),
            ("", None),
        ] {
            assert_eq!(keep_alive_timeout(value.as_bytes()), expected, "{value}");
        }
    }
}
