//! Cases outside the tables: limits, properties of heads, responses to HTTP/1.0 clients, reuse.

use weir_http::edits::{FieldEdits, RequestEdits, TrailerEdits};
use weir_http::fields;
use weir_http::flaws::{Flaw, Flaws};
use weir_http::h1::{
    FieldError, HeadLimits, HeadScan, ParseProgress, Persistence, RequestError, ResponseError,
    ResponseForward, TrailerError, parse_request, parse_response, parse_response_of_member,
    parse_trailers, parse_trailers_of_member, write_request_head, write_response_head,
};
use weir_http::message::{Framing, Method, RequestHead, ResponseHead, Scheme, Version};
use weir_http::path::{RawBytes, TargetForm};

const LIMITS: HeadLimits = HeadLimits { head_size_max: 16 * 1024, headers_max: 100 };

fn parsed(input: &[u8]) -> RequestHead {
    let mut head = RequestHead::new();
    assert_eq!(
        parse_request(input, &LIMITS, TargetForm::default(), &mut head),
        Ok(ParseProgress::Complete { length: input.len() })
    );
    head
}

#[test]
fn a_head_of_the_largest_size_passes_and_one_byte_more_does_not() {
    let input = b"GET /12345 HTTP/1.1\r\nHost: a\r\n\r\n";
    let outcome = |head_size_max, input: &[u8]| {
        let limits = HeadLimits { head_size_max, ..LIMITS };
        let outcome = parse_request(input, &limits, TargetForm::default(), &mut RequestHead::new());
        let mut scan = HeadScan::request();
        assert_eq!(scan.scan(input, &limits), outcome != Ok(ParseProgress::Partial));
        outcome
    };
    let length = input.len();
    let size = length as u32;
    assert_eq!(outcome(size, input), Ok(ParseProgress::Complete { length }));
    assert_eq!(outcome(size - 1, input), Err(RequestError::HeadTooLarge));
    // The error is reported as soon as it is certain, which may be before the end has arrived.
    assert_eq!(outcome(size - 1, &input[..length - 2]), Ok(ParseProgress::Partial));
    assert_eq!(outcome(size - 1, &input[..length - 1]), Err(RequestError::HeadTooLarge));
    assert_eq!(outcome(10, input), Err(RequestError::RequestLineTooLong));
    assert_eq!(outcome(20, input), Err(RequestError::RequestLineTooLong));
    assert_eq!(outcome(21, input), Err(RequestError::HeadTooLarge));
    assert_eq!(RequestError::RequestLineTooLong.status(), 414);
    assert_eq!(RequestError::HeadTooLarge.status(), 431);
    // Bytes after the head are not counted.
    assert_eq!(
        outcome(size, &[input.as_slice(), &[b'x'; 100]].concat()),
        Ok(ParseProgress::Complete { length })
    );
}

#[test]
fn limits_hold_for_responses_and_trailers() {
    let limits = HeadLimits { head_size_max: 20, headers_max: 1 };
    let response =
        |input: &[u8]| parse_response(input, &limits, Method::Get, &mut ResponseHead::new());
    assert_eq!(response(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n"), Err(ResponseError::HeadTooLarge));
    assert_eq!(response(b"HTTP/1.1 200 O"), Ok(ParseProgress::Partial));
    let limits = HeadLimits { head_size_max: 10, headers_max: 1 };
    let trailers =
        |input: &[u8]| parse_trailers(input, &limits, TrailerEdits::Keep, &mut Vec::new());
    assert_eq!(trailers(b"A: bcd\r\n\r\n"), Ok(ParseProgress::Complete { length: 10 }));
    assert_eq!(trailers(b"A: bcde\r\n\r\n"), Err(TrailerError::TooLarge));
    assert_eq!(trailers(b"A:\r\nB:\r\n\r\n"), Err(TrailerError::Field(FieldError::TooMany)));
    assert_eq!(TrailerError::TooLarge.status(), 431);
}

#[test]
fn limits_hold_for_what_is_mended() {
    let limits = HeadLimits { head_size_max: 24, headers_max: 2 };
    let response = |input: &[u8]| {
        let (mut head, mut repaired) = (ResponseHead::new(), Vec::new());
        let (method, taken) = (Method::Get, Flaws::ALL);
        parse_response_of_member(input, &limits, method, taken, &mut repaired, &mut head)
    };
    // The repaired head is longer, and the limit applies to it.
    assert_eq!(
        response(b"HTTP/1.1 200 O\nA:\nB: c\n\n"),
        Ok(ParseProgress::Complete { length: 24 })
    );
    assert_eq!(response(b"HTTP/1.1 200 OK\nA:\nB: c\n\n"), Err(ResponseError::HeadTooLarge));
    assert_eq!(response(b"HTTP/1.1 200 OK\nA:\nB: c\n"), Err(ResponseError::HeadTooLarge));
    assert_eq!(response(b"HTTP/1.1 200 OK\nA:\nB:"), Ok(ParseProgress::Partial));
    let too_many = Err(ResponseError::Field(FieldError::TooMany));
    assert_eq!(response(b"HTTP/1.1 200\nA:\nB:\nC:\n\n"), too_many);
    let trailers = |input: &[u8]| {
        let by_member = (Flaws::ALL, &mut Flaws::default());
        let (mut repaired, mut fields) = (Vec::new(), Vec::new());
        let edits = TrailerEdits::Keep;
        parse_trailers_of_member(input, &limits, edits, by_member, (&mut repaired, &mut fields))
    };
    assert_eq!(trailers(b"A: 45678901234567890123\n"), Err(TrailerError::TooLarge));
    assert_eq!(trailers(b"A: 4567890123456789012\n\n"), Ok(ParseProgress::Complete { length: 24 }));
    assert_eq!(trailers(b"A:\nB:\nC:\n\n"), Err(TrailerError::Field(FieldError::TooMany)));
}

#[test]
fn a_dripping_head_with_flaws_is_parsed_twice_not_at_every_byte() {
    let mut input = b"HTTP/1.1 200 OK\n".to_vec();
    input.extend_from_slice(&b"A: b\0c\rd\n".repeat(90));
    input.extend_from_slice(b"\n");
    let ready = |taken| {
        let mut scan = HeadScan::section_of_member(taken);
        let arrivals = 1..=input.len();
        arrivals.filter(|arrived| scan.scan(&input[..*arrived], &LIMITS)).collect::<Vec<_>>()
    };
    assert_eq!(ready(Flaws::ALL), [input.len()]);
    // A flaw that is not tolerated is an error, so the scan reports the head as ready from the first such flaw on.
    let lines = Flaws::NONE.with(Flaw::BareLineFeed);
    assert_eq!(ready(lines), (21..=input.len()).collect::<Vec<_>>());
    assert_eq!(ready(Flaws::NONE), (16..=input.len()).collect::<Vec<_>>());
}

#[test]
fn a_dripping_head_is_parsed_twice_not_at_every_byte() {
    let mut input = b"GET / HTTP/1.1\r\nHost: a\r\n".to_vec();
    input.extend_from_slice(&b"A: b\r\n".repeat(90));
    input.extend_from_slice(b"\r\n");
    let mut scan = HeadScan::request();
    let ready: Vec<usize> =
        (1..=input.len()).filter(|arrived| scan.scan(&input[..*arrived], &LIMITS)).collect();
    assert_eq!(ready, [input.len()]);
}

#[test]
fn a_request_tells_what_decisions_need() {
    let input = b"POST https://Example.com:8443/a/../%62?c=d HTTP/1.1\r\nHost: example.com:8443\r\n\
        Cookie: x\r\nExpect: 100-continue\r\nTE: trailers\r\nConnection: TE\r\ncookie: y\r\nContent-Length: 3\r\n\r\n";
    let head = parsed(input);
    assert_eq!((head.method, head.method_text.of(input)), (Method::Post, &b"POST"[..]));
    assert_eq!(head.scheme, Some(Scheme::Https));
    assert_eq!(head.target.of(input), b"https://Example.com:8443/a/../%62?c=d");
    assert_eq!((head.path(input), head.query(input)), (&b"/b"[..], Some(&b"c=d"[..])));
    assert_eq!(
        (head.authority(input), head.host(input)),
        (&b"Example.com:8443"[..], &b"Example.com"[..])
    );
    assert!(head.expect_continue && head.te_trailers && head.keep_alive);
    assert_eq!((head.upgrade, head.framing), (None, Framing::Length(3)));
    let cookies: Vec<_> = fields::values(&head.fields, input, "Cookie").collect();
    assert_eq!(cookies, [b"x", b"y"]);
}

#[test]
fn heads_leave_in_one_spelling_whatever_they_came_in() {
    let request = |input: &[u8], edits: &RequestEdits| {
        let mut out = Vec::new();
        write_request_head(&parsed(input), input, edits, &mut out);
        String::from_utf8(out).unwrap()
    };
    for input in [
        "GET /a?b HTTP/1.1\r\nHost: c\r\nX: d\r\n\r\n",
        "GET /a?b HTTP/1.1\r\nhost: c\r\nX: d\r\n\r\n",
        "GET /a?b HTTP/1.1\r\nHost:c\r\nX: d\r\n\r\n",
        "GET /a?b HTTP/1.1\r\nHost: c \r\nX: d\r\n\r\n",
        "GET /a?b HTTP/1.1\r\nHost: c:\r\nX: d\r\n\r\n",
        "GET /a?b HTTP/1.1\r\nX: d\r\nHost: c\r\n\r\n",
        "GET /a?b HTTP/1.1\r\nHost: c\r\nX:d\r\n\r\n",
        "GET /a?b HTTP/1.0\r\nHost: c\r\nX: d\r\n\r\n",
        "GET /a?b HTTP/1.9\r\nHost: c\r\nX: d\r\n\r\n",
        "GET /x/../a?b HTTP/1.1\r\nHost: c\r\nX: d\r\n\r\n",
        "GET http://c/a?b HTTP/1.1\r\nHost: c\r\nX: d\r\n\r\n",
        "\r\nGET /a?b HTTP/1.1\r\nHost: c\r\nX: d\r\n\r\n",
    ] {
        let expected = "GET /a?b HTTP/1.1\r\nHost: c\r\nX: d\r\n\r\n";
        assert_eq!(request(input.as_bytes(), &RequestEdits::NONE), expected, "{input}");
    }
    let input = b"GET /a?b HTTP/1.1\r\nHost: c\r\nX: d\r\n\r\n";
    let mut edits = RequestEdits::default();
    edits.authority_mut().push(b'e');
    assert_eq!(request(input, &edits), "GET /a?b HTTP/1.1\r\nHost: e\r\nX: d\r\n\r\n");
    edits.query_mut();
    assert_eq!(request(input, &edits), "GET /a HTTP/1.1\r\nHost: e\r\nX: d\r\n\r\n");

    for (input, status, expected) in [
        ("HTTP/1.1 201 Ok\r\nX: d\r\n\r\n", 201, "HTTP/1.1 201 Ok"),
        ("HTTP/1.0 201 Ok\r\nX: d\r\n\r\n", 201, "HTTP/1.1 201 Ok"),
        ("HTTP/1.9 200 Ok\r\nX: d\r\n\r\n", 200, "HTTP/1.1 200 Ok"),
        ("HTTP/1.1 201\r\nX: d\r\n\r\n", 201, "HTTP/1.1 201 "),
        ("HTTP/1.1 200 \r\nX: d\r\n\r\n", 200, "HTTP/1.1 200 "),
        ("HTTP/1.1 200 OK\r\nX:d\r\n\r\n", 200, "HTTP/1.1 200 OK"),
        // The caller has changed the status.
        ("HTTP/1.1 200 OK\r\nX: d\r\n\r\n", 404, "HTTP/1.1 404 OK"),
    ] {
        let (mut head, mut out) = (ResponseHead::new(), Vec::new());
        parse_response(input.as_bytes(), &LIMITS, Method::Get, &mut head).unwrap();
        head.status = status;
        let forward = ResponseForward {
            framing: Framing::UntilClose,
            client_version: Version::Http11,
            persistence: Persistence::KeepAlive,
            date: None,
        };
        write_response_head(&head, input.as_bytes(), &forward, &FieldEdits::NONE, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected.to_owned() + "\r\nX: d\r\n\r\n");
    }
}

#[test]
fn an_expectation_that_is_nominated_away_is_not_waited_for() {
    let head = parsed(
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\nConnection: expect\r\n\r\n",
    );
    assert!(!head.expect_continue);
}

#[test]
fn a_head_tells_how_many_forwards_are_left() {
    for (method, value, expected) in [
        ("OPTIONS", "0", Some(0)),
        ("OPTIONS", "00", Some(0)),
        ("TRACE", "0", Some(0)),
        ("TRACE", "7", Some(7)),
        ("OPTIONS", "5000000000", Some(u32::MAX)),
        ("GET", "0", None),
        ("options", "0", None),
    ] {
        let input = format!("{method} / HTTP/1.1\r\nHost: a\r\nMax-Forwards: {value}\r\n\r\n");
        assert_eq!(parsed(input.as_bytes()).max_forwards, expected, "{method} {value}");
    }
}

#[test]
fn a_head_that_is_used_again_remembers_nothing() {
    let mut head = parsed(
        b"POST http://a/%7e?b HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTE: trailers\r\nConnection: TE, close\r\n\
        Transfer-Encoding: chunked\r\n\r\n",
    );
    let input = b"GET / HTTP/1.0\r\n\r\n";
    assert_eq!(
        parse_request(input, &LIMITS, TargetForm::default(), &mut head),
        Ok(ParseProgress::Complete { length: input.len() })
    );
    assert_eq!(format!("{head:?}"), format!("{:?}", parsed(input)));
}

#[test]
fn raw_bytes_are_refused_where_targets_are_strict() {
    let strict = TargetForm { raw_bytes: RawBytes::Refuse, ..TargetForm::default() };
    for target in ["/é", "/?é", "/a?\"", "/<", "/?>", "http://a/é", "http://a?é", "http://a/b?é"]
    {
        let input = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut head = RequestHead::new();
        let outcome = |form, head: &mut RequestHead| {
            parse_request(input.as_bytes(), &LIMITS, form, head).map(|_| ())
        };
        assert_eq!(outcome(strict, &mut head), Err(RequestError::TargetCharacter), "{target}");
        assert_eq!(outcome(TargetForm::default(), &mut head), Ok(()), "{target}");
    }
}

#[test]
fn queries_stand_where_they_came_unless_they_are_encoded() {
    for (target, query) in [("/?a=b", "a=b"), ("/?a=é", "a=%C3%A9"), ("/é?a", "a"), ("/?", "")] {
        let input = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes();
        let head = parsed(&input);
        assert_eq!(head.query(&input), Some(query.as_bytes()), "{target}");
        let (span, text) = head.query_place(&input).expect("a query");
        assert_eq!(span.of(text), query.as_bytes(), "{target}");
        assert_eq!(std::ptr::eq(text, &*input), !query.contains('%'), "{target}");
        assert_eq!(head.target.of(&input), target.as_bytes());
    }
}

#[test]
fn nothing_is_allocated_once_buffers_have_grown() {
    let input = b"GET /%7ejoe HTTP/1.1\r\nHost: a\r\nA: b\r\nC: d\r\n\r\n";
    let (mut head, mut out) = (RequestHead::new(), Vec::new());
    let mut places = Vec::new();
    for _ in 0..3 {
        out.clear();
        assert!(parse_request(input, &LIMITS, TargetForm::default(), &mut head).is_ok());
        write_request_head(&head, input, &RequestEdits::NONE, &mut out);
        places.push((head.fields.as_ptr(), head.path(input).as_ptr(), out.as_ptr()));
    }
    assert_eq!(places[1], places[2]);
    assert_eq!(places[0], places[1]);
}

#[test]
fn answers_to_http_1_0_clients() {
    let check = |received: &[u8], persistence, expected: &str| {
        let mut head = ResponseHead::new();
        assert!(parse_response(received, &LIMITS, Method::Get, &mut head).is_ok());
        let client_version = Version::Http10;
        let framing = head.framing.toward(client_version);
        let mut out = Vec::new();
        write_response_head(
            &head,
            received,
            &ResponseForward { framing, client_version, persistence, date: None },
            &FieldEdits::NONE,
            &mut out,
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    };
    let length = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
    check(
        length,
        Persistence::KeepAlive,
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\n",
    );
    check(
        length,
        Persistence::Close,
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\n",
    );
    check(
        b"HTTP/1.1 200 OK\r\nTrailer: A\r\nTransfer-Encoding: chunked\r\n\r\n",
        Persistence::Close,
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
    );
}

#[test]
fn a_member_tells_how_long_it_keeps_its_connection() {
    let input = b"HTTP/1.1 204 x\r\nKeep-Alive: timeout=7, max=3\r\nConnection: keep-alive\r\n\r\n";
    let mut head = ResponseHead::new();
    assert!(parse_response(input, &LIMITS, Method::Get, &mut head).is_ok());
    assert_eq!((head.keep_alive, head.keep_alive_timeout_s), (true, Some(7)));
}
