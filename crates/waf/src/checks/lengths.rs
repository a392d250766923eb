//! Checks of lengths and counts, methods and file types.

use super::policy::{FileType, FileTypes, Policy};
use super::{Check, Findings, ReceivedLengths};
use crate::body;
use crate::inspection::Request;

/// Checks a head. `body_bytes`: the length of the body, if the head declares it.
pub fn lengths(request: &Request<'_>, body_bytes: Option<u64>, findings: &mut Findings<'_>) {
    let policy = findings.policy();
    let limits = &policy.limits;
    let (path, query) = match request.target.iter().position(|byte| *byte == b'?') {
        Some(at) => (&request.target[..at], &request.target[at + 1..]),
        None => (request.target, &b""[..]),
    };
    if !policy.methods.iter().any(|method| method.as_bytes() == request.method) {
        findings.add(Check::Method, "method", request.method);
    }
    let known = file_type(path, policy, findings);
    let of_type = |limit: fn(&FileType) -> Option<usize>| known.and_then(limit);
    if path.len() > of_type(|it| it.url_bytes_max).unwrap_or(limits.url_bytes_max) {
        findings.add(Check::UrlLength, "path", path);
    }
    if query.len() > of_type(|it| it.query_bytes_max).unwrap_or(limits.query_bytes_max) {
        findings.add(Check::QueryLength, "query", query);
    }
    let body_max = known.and_then(|it| it.body_bytes_max).unwrap_or(limits.body_bytes_max);
    if body_bytes.is_some_and(|bytes| bytes > body_max) {
        findings.add(Check::BodyLength, "body", b"");
    }
    headers(request, body_bytes, findings);
}

/// Checks the file type of a path. Returns the limits of this type, if it has its own.
fn file_type<'a>(
    path: &[u8],
    policy: &'a Policy,
    findings: &mut Findings<'_>,
) -> Option<&'a FileType> {
    match &policy.file_types {
        FileTypes::AllBut(forbidden) => {
            let decoded = crate::inspection::decoded_path(path);
            let is_forbidden = |segment: &[u8]| {
                let extension = extension_of(segment);
                forbidden.iter().any(|it| it.as_bytes().eq_ignore_ascii_case(extension))
            };
            // Servers also execute a file if the path continues after the file name.
            if decoded.split(|byte| matches!(byte, b'/' | b'\\')).any(is_forbidden) {
                findings.add(Check::FileType, "path", path);
            }
            None
        }
        FileTypes::Only(_) => {
            let found = own_limits(path, policy);
            if found.is_none() {
                findings.add(Check::FileType, "path", path);
            }
            found
        }
    }
}

/// The extension of the last segment, without parameters and after one decoding.
fn extension(path: &[u8]) -> Vec<u8> {
    let path = crate::inspection::decoded_path(path);
    let segment = path.rsplit(|byte| matches!(byte, b'/' | b'\\')).next().unwrap_or_default();
    extension_of(segment).to_vec()
}

/// The extension of a segment.
fn extension_of(segment: &[u8]) -> &[u8] {
    let name = segment.split(|byte| *byte == b';').next().unwrap_or_default();
    // The extension excludes characters that Windows drops at the end of a name, and the suffix of editors' backup files.
    let is_part = |byte: &u8| !matches!(byte, b'.' | b' ' | b'~' | 0);
    let end = name.iter().rposition(is_part).map_or(0, |at| at + 1);
    let name = &name[..end];
    name.iter().rposition(|byte| *byte == b'.').map_or(&[], |at| &name[at + 1..])
}

/// Checks the length of a received body; `target` is the target of its request.
pub fn body_length(target: &[u8], received: ReceivedLengths, findings: &mut Findings<'_>) {
    let policy = findings.policy();
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    let own = own_limits(path, policy).and_then(|it| it.body_bytes_max);
    if received.body_bytes > own.unwrap_or(policy.limits.body_bytes_max) {
        findings.add(Check::BodyLength, "body", b"");
    }
    let all = received.head_bytes.saturating_add(received.body_bytes);
    if all > policy.limits.request_bytes_max {
        findings.add(Check::RequestLength, "request", b"");
    }
}

/// The limits of the path's file type, if it has its own.
fn own_limits<'a>(path: &[u8], policy: &'a Policy) -> Option<&'a FileType> {
    let FileTypes::Only(allowed) = &policy.file_types else { return None };
    let extension = extension(path);
    allowed.iter().find(|it| it.extension.as_bytes().eq_ignore_ascii_case(&extension))
}

fn headers(request: &Request<'_>, body_bytes: Option<u64>, findings: &mut Findings<'_>) {
    let limits = &findings.policy().limits;
    if request.headers.len() > limits.headers_max {
        findings.add(Check::HeaderCount, "headers", b"");
    }
    let (mut head_bytes, mut cookies) = (request.target.len(), 0);
    for (name, value) in request.headers {
        let bytes = name.len() + value.len();
        head_bytes += bytes;
        if bytes > limits.header_bytes_max {
            findings.add(Check::HeaderLength, &format!("header {}", name.escape_ascii()), value);
        }
        if !name.eq_ignore_ascii_case(b"cookie") {
            continue;
        }
        for (name, value) in body::cookies(value) {
            cookies += 1;
            if name.len() + value.len() > limits.cookie_bytes_max {
                findings.add(
                    Check::CookieLength,
                    &format!("cookie {}", name.escape_ascii()),
                    value,
                );
            }
        }
    }
    if cookies > limits.cookies_max {
        findings.add(Check::CookieCount, "cookies", b"");
    }
    let all = (head_bytes as u64).saturating_add(body_bytes.unwrap_or(0));
    if all > limits.request_bytes_max {
        findings.add(Check::RequestLength, "request", b"");
    }
}

/// Checks a parameter. `count`: its position in the request, starting at 1.
pub fn parameter(name: &[u8], value: &[u8], count: usize, findings: &mut Findings<'_>) {
    let policy = findings.policy();
    let limits = &policy.limits;
    if count > limits.parameters_max {
        findings.add(Check::ParameterCount, "parameters", b"");
    }
    let own = policy.parameter_limits.iter().find(|(known, _)| known.as_bytes() == name);
    let max = own.map_or(limits.parameter_bytes_max, |(_, max)| *max);
    if value.len() > max {
        findings.add(Check::ParameterLength, &format!("parameter {}", name.escape_ascii()), value);
    }
    if name.len() > limits.parameter_name_bytes_max {
        findings.add(Check::ParameterNameLength, "parameters", name);
    }
}
