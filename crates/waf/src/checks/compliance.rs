//! Requirements of HTTP for a request head. Weir rejects most violations itself (400) before any check runs. These checks
//! find the violations that its settings accept.

use std::net::IpAddr;

use super::{Check, Findings};
use crate::body::MediaType;
use crate::inspection::Request;

/// Checks a head. `has_body`: whether a body follows it.
pub fn compliance(request: &Request<'_>, has_body: bool, findings: &mut Findings<'_>) {
    let values = |wanted: &str| -> Vec<&[u8]> {
        let all = request.headers.iter();
        all.filter(|(name, _)| name.eq_ignore_ascii_case(wanted.as_bytes()))
            .map(|(_, value)| *value)
            .collect()
    };
    host(request, &values("host"), findings);
    let lengths = values("content-length");
    content_length(&lengths, !values("transfer-encoding").is_empty(), findings);
    if has_body && matches!(request.method, b"GET" | b"HEAD") {
        findings.add(Check::BodyInGet, "method", request.method);
    }
    content_type(&values("content-type"), has_body, findings);
    for (name, value) in request.headers {
        // A tab is allowed between words.
        if value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
            let place = format!("header {}", name.escape_ascii());
            findings.add(Check::HeaderControl, &place, value);
        }
    }
}

fn host(request: &Request<'_>, hosts: &[&[u8]], findings: &mut Findings<'_>) {
    // HTTP/1.0 does not require Host.
    let is_old = request.protocol == b"HTTP/1.0";
    match hosts {
        [] if !is_old => findings.add(Check::HostMissing, "header Host", b""),
        [] => {}
        [host] => one_host(host, findings),
        [_, second, ..] => findings.add(Check::HostRepeated, "header Host", second),
    }
}

fn one_host(host: &[u8], findings: &mut Findings<'_>) {
    let place = "header Host";
    let Some(name) = std::str::from_utf8(host).ok().and_then(without_port) else {
        return findings.add(Check::HostMalformed, place, host);
    };
    let bare = name.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    if bare.unwrap_or(name).parse::<IpAddr>().is_ok() {
        return findings.add(Check::HostIsAddress, place, host);
    }
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    if bare.is_some() || name.len() > 253 || !name.split('.').all(is_label) {
        findings.add(Check::HostMalformed, place, host);
    }
}

/// The host without its port; `None`: the port is invalid.
fn without_port(host: &str) -> Option<&str> {
    let end_of_name = host.rfind(']').map_or(0, |at| at + 1);
    match host[end_of_name..].find(':') {
        None => Some(host),
        Some(at) => {
            let port = &host[end_of_name + at + 1..];
            let is_port = port.is_empty()
                || port.bytes().all(|it| it.is_ascii_digit()) && port.parse::<u16>().is_ok();
            is_port.then_some(&host[..end_of_name + at])
        }
    }
}

fn content_length(lengths: &[&[u8]], is_chunked: bool, findings: &mut Findings<'_>) {
    let place = "header Content-Length";
    let values: Vec<&[u8]> = lengths
        .iter()
        .flat_map(|value| value.split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .collect();
    if let Some(bad) = values.iter().find(|value| !is_whole(value)) {
        findings.add(Check::ContentLengthMalformed, place, bad);
    }
    if let [_, second, ..] = values.as_slice() {
        findings.add(Check::ContentLengthRepeated, place, second);
    }
    if let (true, [first, ..]) = (is_chunked, values.as_slice()) {
        findings.add(Check::ContentLengthWithChunked, place, first);
    }
}

fn is_whole(value: &[u8]) -> bool {
    const DIGITS_MAX: usize = 19;
    (1..=DIGITS_MAX).contains(&value.len()) && value.iter().all(u8::is_ascii_digit)
}

fn content_type(types: &[&[u8]], has_body: bool, findings: &mut Findings<'_>) {
    let place = "header Content-Type";
    match types {
        [] if has_body => findings.add(Check::ContentTypeMissing, place, b""),
        [] => {}
        [one] if MediaType::parse(one).is_some() => {}
        [one] => findings.add(Check::ContentTypeMalformed, place, one),
        // Servers disagree on requests with two Content-Type fields.
        [_, second, ..] => findings.add(Check::ContentTypeMalformed, place, second),
    }
}
