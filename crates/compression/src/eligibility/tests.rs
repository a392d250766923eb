//! Decisions about received heads.

use weir_http::edits::FieldEdits;
use weir_http::h1::{HeadLimits, parse_request, parse_response};
use weir_http::message::{Method, RequestHead, ResponseHead};
use weir_http::path::TargetForm;

use super::*;

const LIMITS: HeadLimits = HeadLimits { head_size_max: 4096, headers_max: 32 };

const VARY: Decision = Decision::Identity { vary: true };
const PLAIN: Decision = Decision::Identity { vary: false };

fn compress(coding: Coding, level: u8, flush: FlushWhen) -> Decision {
    Decision::Compress { coding, level: Level::new(level).unwrap(), flush }
}

/// The decision about a response (its status line and field lines without line ends) to a request (its method and field
/// lines).
fn decide_with(rules: &Rules, request: &[&str], response: &[&str], edits: &FieldEdits) -> Decision {
    let (line, fields) = request.split_first().unwrap();
    let line = if line.contains(' ') { (*line).to_owned() } else { format!("{line} / HTTP/1.1") };
    let request = format!("{line}\r\nHost: a\r\n{}\r\n", lines(fields));
    let mut request_head = RequestHead::new();
    assert!(
        parse_request(request.as_bytes(), &LIMITS, TargetForm::default(), &mut request_head)
            .is_ok(),
        "{request}"
    );
    let response = format!("HTTP/1.1 {}\r\n", lines(response));
    let mut head = ResponseHead::new();
    let method = request_head.method;
    assert!(parse_response(response.as_bytes(), &LIMITS, method, &mut head).is_ok(), "{response}");
    let request = RequestTraits::read(rules, &request_head, request.as_bytes());
    let is_head = method == Method::Head;
    assert_eq!(request.is_head, is_head);
    decide(rules, &request, &ResponseTraits::read(&head, response.as_bytes(), edits, is_head))
}

fn lines(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\r\n")).collect()
}

fn check(request: &[&str], response: &[&str], expected: Decision) {
    let found = decide_with(&Rules::default(), request, response, &FieldEdits::NONE);
    assert_eq!(found, expected, "{request:?} {response:?}");
}

const GZIP: &str = "Accept-Encoding: gzip";
const HTML: &str = "Content-Type: text/html; charset=utf-8";
const LONG: &str = "Content-Length: 5000";
const CHUNKED: &str = "Transfer-Encoding: chunked";

#[test]
fn clients_get_what_they_ask_for() {
    let gzip = compress(Coding::Gzip, 5, FlushWhen::End);
    for (fields, expected) in [
        (&[GZIP][..], gzip),
        (&["accept-encoding: deflate", "ACCEPT-ENCODING: x-gzip"], gzip),
        (&["Accept-Encoding: gzip, deflate, br, zstd"], compress(Coding::Zstd, 3, FlushWhen::End)),
        (&["Accept-Encoding: gzip, deflate, br"], compress(Coding::Brotli, 3, FlushWhen::End)),
        (&[], VARY),
        (&["Accept-Encoding:"], VARY),
        (&["Accept-Encoding: deflate"], VARY),
        (&["Accept-Encoding: identity;q=0"], VARY),
        (&[GZIP, "Cache-Control: no-transform"], VARY),
        (&[GZIP, "Cache-Control: max-age=0, NO-TRANSFORM"], VARY),
        (&[GZIP, "Cache-Control: no-cache"], gzip),
        (&[GZIP, "Range: bytes=0-99"], gzip),
    ] {
        let request = [&["GET"], fields].concat();
        check(&request, &["200 OK", HTML, LONG], expected);
    }
    check(&["GET / HTTP/1.0", GZIP], &["200 OK", HTML, LONG], VARY);
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "SEARCH"] {
        check(&[method, GZIP], &["200 OK", HTML, LONG], gzip);
    }
}

#[test]
fn responses_that_are_compressed_or_not() {
    let end = compress(Coding::Gzip, 5, FlushWhen::End);
    let dry = compress(Coding::Gzip, 5, FlushWhen::Dry);
    for (response, expected) in [
        (&["200 OK", HTML, LONG][..], end),
        (&["200 OK", HTML, CHUNKED], dry),
        (&["200 OK", HTML], dry),
        (&["200 OK", "Content-Type: text/event-stream", CHUNKED], dry),
        // Sizes.
        (&["200 OK", HTML, "Content-Length: 1024"], end),
        (&["200 OK", HTML, "Content-Length: 1023"], PLAIN),
        (&["200 OK", HTML, "Content-Length: 0"], PLAIN),
        // Types.
        (&["200 OK", LONG], PLAIN),
        (&["200 OK", "Content-Type: image/png", LONG], PLAIN),
        (&["200 OK", HTML, "Content-Type: text/plain", LONG], PLAIN),
        (&["200 OK", "content-type: APPLICATION/problem+JSON", LONG], end),
        // Statuses.
        (&["201 Created", HTML, LONG], end),
        (&["203 Other", HTML, LONG], end),
        (&["204 No Content", HTML], PLAIN),
        (&["206 Partial Content", HTML, LONG, "Content-Range: bytes 0-4999/9000"], VARY),
        (&["206 Partial Content", HTML, LONG, "Content-Encoding: br"], PLAIN),
        (&["206 Partial Content", "Content-Type: image/png", LONG], PLAIN),
        (&["226 IM Used", HTML, LONG], PLAIN),
        (&["302 Found", HTML, LONG], PLAIN),
        (&["304 Not Modified", HTML], VARY),
        (&["304 Not Modified"], VARY),
        (&["304 Not Modified", "Content-Encoding: br"], PLAIN),
        (&["304 Not Modified", "Cache-Control: no-transform"], PLAIN),
        (&["304 Not Modified", "Content-Type: image/png"], PLAIN),
        (&["404 Not Found", HTML, LONG], end),
        (&["410 Gone", HTML, LONG], end),
        (&["416 Range Not Satisfiable", HTML, LONG], PLAIN),
        (&["500 Oops", HTML, LONG], end),
        (&["503 Busy", HTML, LONG], end),
        // Responses that must stay unchanged.
        (&["200 OK", HTML, LONG, "Content-Encoding: gzip"], PLAIN),
        (&["200 OK", HTML, LONG, "Content-Encoding: identity, br"], PLAIN),
        (&["200 OK", HTML, LONG, "Content-Encoding: unknown"], PLAIN),
        (&["200 OK", HTML, LONG, "Content-Encoding: identity"], end),
        (&["200 OK", HTML, LONG, "Cache-Control: public, no-transform"], PLAIN),
        (&["200 OK", HTML, LONG, "Cache-Control: public", "cache-control: No-Transform"], PLAIN),
        (&["200 OK", HTML, LONG, "Cache-Control: public"], end),
        (&["200 OK", HTML, LONG, "Content-Range: bytes 0-4999/9000"], PLAIN),
        (&["200 OK", HTML, LONG, "Content-MD5: Q2hlY2sgSW50ZWdyaXR5IQ=="], PLAIN),
        (&["200 OK", HTML, LONG, "Content-Digest: sha-256=:AA==:"], PLAIN),
        (&["200 OK", HTML, LONG, "Repr-Digest: sha-256=:AA==:"], PLAIN),
        (&["200 OK", HTML, LONG, "Digest: sha-256=AA=="], PLAIN),
        (&["200 OK", HTML, CHUNKED, "Trailer: X-A, repr-digest"], PLAIN),
        (&["200 OK", HTML, CHUNKED, "Trailer: X-A"], dry),
        (&["200 OK", HTML, LONG, "ETag: \"a\"", "Accept-Ranges: bytes"], end),
    ] {
        check(&["GET", GZIP], response, expected);
    }
}

#[test]
fn head_gets_what_get_would_get() {
    for (response, expected) in [
        (&["200 OK", HTML, LONG][..], compress(Coding::Gzip, 5, FlushWhen::End)),
        (&["200 OK", HTML, CHUNKED], compress(Coding::Gzip, 5, FlushWhen::Dry)),
        (&["200 OK", HTML], compress(Coding::Gzip, 5, FlushWhen::Dry)),
        (&["200 OK", HTML, "Content-Length: 10"], PLAIN),
        (&["200 OK", LONG], PLAIN),
    ] {
        check(&["HEAD", GZIP], response, expected);
    }
    check(&["HEAD"], &["200 OK", HTML, LONG], VARY);
}

#[test]
fn edits_made_before_count() {
    let gzip = compress(Coding::Gzip, 5, FlushWhen::End);
    let set = |name: &str, value: &str| {
        let mut edits = FieldEdits::default();
        edits.set(name.as_bytes(), |out| out.extend_from_slice(value.as_bytes()));
        edits
    };
    let removed = |name: &str| {
        let mut edits = FieldEdits::default();
        edits.remove(name.as_bytes());
        edits
    };
    for (field, edits, expected) in [
        ("X-A: 1", set("Content-Type", "image/png"), PLAIN),
        ("X-A: 1", set("cache-control", "no-transform"), PLAIN),
        ("X-A: 1", removed("Content-Type"), PLAIN),
        ("Cache-Control: no-transform", removed("Cache-Control"), gzip),
        ("Content-Encoding: br", removed("Content-Type"), PLAIN),
        ("Content-MD5: x", removed("content-md5"), gzip),
    ] {
        let response = ["200 OK", HTML, LONG, field];
        let found = decide_with(&Rules::default(), &["GET", GZIP], &response, &edits);
        assert_eq!(found, expected, "{field}");
    }
}

#[test]
fn rules_say_what_is_on_offer() {
    let response = ["200 OK", HTML, "Content-Length: 100"];
    let rules = |offered: &[(Coding, u8)], min_size_bytes, types: &str| Rules {
        offered: offered
            .iter()
            .map(|(coding, level)| (*coding, Level::new(*level).unwrap()))
            .collect(),
        min_size_bytes,
        level_min: None,
        types: MediaTypes::parse([types]).unwrap(),
    };
    let both = [(Coding::Gzip, 9), (Coding::Brotli, 1)];
    for (rules, accept, expected) in [
        (rules(&[], 0, "*/*"), "gzip", PLAIN),
        (rules(&both, 100, "*/*"), "gzip, br", compress(Coding::Gzip, 9, FlushWhen::End)),
        (rules(&both, 100, "*/*"), "br", compress(Coding::Brotli, 1, FlushWhen::End)),
        (rules(&both, 100, "*/*"), "zstd", VARY),
        (rules(&both, 101, "*/*"), "br", PLAIN),
        (rules(&both, 0, "application/json"), "br", PLAIN),
    ] {
        let accept = format!("Accept-Encoding: {accept}");
        let found = decide_with(&rules, &["GET", &accept], &response, &FieldEdits::NONE);
        assert_eq!(found, expected, "{rules:?} {accept}");
    }
}
