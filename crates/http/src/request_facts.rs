//! Facts from the fields of a request, for all HTTP versions.

use crate::authority;
use crate::chars::{is_token_byte, is_word, list};
use crate::connection_authentication;
use crate::facts::FieldSummary;
use crate::fields::withhold;
use crate::h1::RequestError;
use crate::message::{Field, FieldId, Method, RequestHead, Span, Version};

/// Facts from the fields of requests that responses do not have.
#[derive(Default)]
pub(crate) struct RequestSummary {
    pub(crate) common: FieldSummary,
    pub(crate) host: Option<Span>,
    /// One of the fields below was seen. Most requests have none.
    is_rare: bool,
    expect_seen: bool,
    te_trailers: bool,
    proxy_seen: bool,
    binds_connection: bool,
}

impl RequestSummary {
    /// Reads a field whose id is not [`FieldId::Other`].
    pub(crate) fn note(
        &mut self,
        field: &Field,
        input: &[u8],
        version: Version,
    ) -> Result<(), RequestError> {
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
                // RFC 9110 section 10.1.1: the field has no meaning in HTTP/1.0.
                let is_continue = is_word(field.value.of(input), b"100-continue");
                if version != Version::Http10 && (self.expect_seen || !is_continue) {
                    return Err(RequestError::Expectation);
                }
                self.expect_seen = true;
                self.is_rare = true;
            }
            FieldId::Te => {
                self.is_rare = true;
                self.te_trailers |=
                    list(field.value.of(input)).any(|coding| is_word(coding, b"trailers"));
            }
            FieldId::Trailer => {
                self.common.note(field, input, version)?;
                self.is_rare = true;
            }
            FieldId::Proxy => {
                self.proxy_seen = true;
                self.is_rare = true;
            }
            FieldId::Credentials => {
                self.binds_connection |=
                    connection_authentication::is_by_credentials(field.value.of(input));
                self.is_rare = true;
            }
            _ => self.common.note(field, input, version)?,
        }
        Ok(())
    }
}

/// Determines the facts that need the whole head, after its version, authority and framing are known.
pub(crate) fn settle(
    facts: &RequestSummary,
    input: &[u8],
    head: &mut RequestHead,
) -> Result<(), RequestError> {
    let common = &facts.common;
    if !matches!(head.method, Method::Get | Method::Post | Method::Head) {
        settle_method(input, head)?;
    }
    head.keep_alive = common.is_persistent(head.version);
    common.withhold_hop_by_hop(&mut head.fields, input);
    if facts.is_rare {
        settle_rare(facts, head);
    }
    if common.connection_upgrade {
        settle_upgrade(common, input, head);
    }
    Ok(())
}

/// Determines what follows from an unusual method.
fn settle_method(input: &[u8], head: &mut RequestHead) -> Result<(), RequestError> {
    head.unusual.reflects = match head.method {
        Method::Trace if !head.framing.is_empty() => return Err(RequestError::TraceWithBody),
        Method::Trace => true,
        // Methods are case-sensitive, but not to every member.
        Method::Other => {
            let text = head.method_text.of(input);
            [&b"TRACE"[..], b"TRACK"].iter().any(|method| text.eq_ignore_ascii_case(method))
        }
        _ => false,
    };
    head.unusual.is_any |= head.unusual.reflects;
    settle_max_forwards(input, head)
}

/// Determines the facts from fields that few requests have.
fn settle_rare(facts: &RequestSummary, head: &mut RequestHead) {
    if facts.proxy_seen {
        // No request needs this field, and CGI-like members turn it into HTTP_PROXY, the proxy for their own requests
        // (httpoxy, CVE-2016-5385).
        withhold(&mut head.fields, FieldId::Proxy);
    }
    head.announces_trailers = facts.common.announces_trailers();
    head.unusual.may_need_edits = head.announces_trailers;
    let is_http10 = head.version == Version::Http10;
    if facts.expect_seen {
        if !is_http10 && !head.framing.is_empty() {
            head.expect_continue =
                head.fields.iter().any(|field| field.id == FieldId::Expect && field.forward);
        } else {
            withhold(&mut head.fields, FieldId::Expect);
        }
    }
    // HTTP/2 has no Connection field, so it need not contain TE.
    let may_pass = facts.common.connection_te || head.version == Version::Http2;
    head.te_trailers = facts.te_trailers && may_pass && !is_http10;
    head.unusual.binds_connection = facts.binds_connection;
    head.unusual.is_any |= facts.binds_connection;
}

/// Determines the protocols that may be offered to a member.
fn settle_upgrade(common: &FieldSummary, input: &[u8], head: &mut RequestHead) {
    head.unusual.has_upgrade = common.upgrade_seen();
    head.unusual.is_any |= head.unusual.has_upgrade;
    if head.version != Version::Http10 {
        head.upgrade = common.upgrade.filter(|offered| may_be_offered(offered.of(input)));
        head.unusual.may_need_edits |= head.upgrade.is_some() && !head.framing.is_empty();
    }
}

/// RFC 9110 section 7.6.2: the field applies to TRACE and OPTIONS; with other methods it is only forwarded.
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
        head.unusual.is_any = true;
    }
    Ok(())
}

/// Parses `1*DIGIT`; numbers that do not fit count as the maximum.
fn parse_max_forwards(value: &[u8]) -> Option<u32> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    is_number.then(|| {
        value.iter().fold(0_u32, |hops, digit| {
            hops.saturating_mul(10).saturating_add(u32::from(digit - b'0'))
        })
    })
}

/// Whether these protocols may be offered to a member: not if one of them is a form of HTTP. Through a tunnel of `h2c`,
/// `HTTP/x` or `TLS`, requests would reach the member without any policy.
pub(crate) fn may_be_offered(protocols: &[u8]) -> bool {
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
