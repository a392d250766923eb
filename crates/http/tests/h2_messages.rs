//! The table of HTTP/2 messages, and the messages written for members and clients with HTTP/1 and HTTP/2.

mod cases;
mod invariants;

use cases::h2_messages::{List, requests, responses};
use weir_http::edits::{FieldEdits, FieldNames, RequestEdits, TrailerEdits};
use weir_http::flaws::{Flaw, Flaws};
use weir_http::h1::{
    self, FieldError, HeadLimits, OwnResponse, Persistence, ResponseForward, TrailerError,
};
use weir_http::h2::hpack::{BlockEncoder, Decoder, Encoder, HeaderBlock, ListLimits};
use weir_http::h2::message::{
    AnsweredRequest, Malformed, ReadError, RequestForward, own_response_has_body, read_request,
    read_response, read_trailers, write_own_response, write_request, write_response,
    write_trailers,
};
use weir_http::message::{Framing, Method, RequestHead, ResponseHead, Scheme, Version};
use weir_http::path::TargetForm;

const LISTS: ListLimits =
    ListLimits { size_max: 16 * 1024, lines_max: 100, hard_size_max: 64 * 1024 };

fn decoded(list: &List) -> HeaderBlock {
    let lines: Vec<(&str, &str)> =
        list.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let mut block = HeaderBlock::new();
    assert_eq!(Decoder::new().decode(&cases::h2::block(&lines), &LISTS, &mut block), Ok(()));
    block
}

/// The decoded output of `write`, as lines.
fn encoded(write: impl FnOnce(&mut BlockEncoder<'_>)) -> String {
    let mut out = Vec::new();
    write(&mut Encoder::new(4096).block(&mut out));
    let mut block = HeaderBlock::new();
    assert_eq!(Decoder::new().decode(&out, &LISTS, &mut block), Ok(()));
    String::from_utf8(block.text().to_vec()).expect("text").replace("\r\n", "\n")
}

#[test]
fn requests_become_what_the_table_says() {
    let cases = requests();
    let malformed = cases.iter().filter(|case| case.expected.is_err()).count();
    assert!(malformed >= 100, "{malformed} cases");
    for case in cases {
        let mut block = decoded(&case.list);
        let mut head = RequestHead::new();
        let outcome = read_request(&mut block, case.end_stream, TargetForm::default(), &mut head);
        let name = format!("{} ({})", case.name, case.section);
        let sent = outcome.map(|()| {
            let mut out = Vec::new();
            h1::write_request_head(&head, block.text(), &RequestEdits::NONE, &mut out);
            String::from_utf8(out).expect("text")
        });
        assert_eq!(sent, case.expected, "{name}");
        invariants::h2::check_messages(&mut decoded(&case.list));
    }
}

#[test]
fn responses_become_what_the_table_says() {
    for case in responses() {
        let mut block = decoded(&case.list);
        let mut head = ResponseHead::new();
        let request = AnsweredRequest { method: case.method, protocol: None };
        let outcome = read_response(&mut block, case.end_stream, request, Flaws::NONE, &mut head);
        let sent = outcome.map(|()| {
            let forward = ResponseForward {
                framing: head.framing.toward(Version::Http11),
                client_version: Version::Http11,
                persistence: Persistence::KeepAlive,
                date: None,
            };
            let mut out = Vec::new();
            h1::write_response_head(&head, block.text(), &forward, &FieldEdits::NONE, &mut out);
            (String::from_utf8(out).expect("text"), head.framing)
        });
        let expected = case.expected.map(|(text, framing)| (text.to_owned(), framing));
        assert_eq!(sent, expected, "{}", case.name);
        invariants::h2::check_messages(&mut decoded(&case.list));
    }
}

#[test]
fn trailers_become_what_the_table_says() {
    let many = vec![("x".to_owned(), "y".to_owned()); 200];
    let list = |lines: &[(&str, &str)]| -> List {
        lines.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    for (list, expected) in [
        (list(&[("grpc-status", "0"), ("content-length", "5")]), Ok("grpc-status: 0\n")),
        (list(&[]), Ok("")),
        (list(&[(":status", "200")]), Err(ReadError::Malformed(Malformed::PseudoInTrailers))),
        (
            list(&[("x", "y"), (":path", "/")]),
            Err(ReadError::Malformed(Malformed::PseudoInTrailers)),
        ),
        (list(&[("X", "y")]), Err(ReadError::Malformed(Malformed::Name))),
        (list(&[("x", "y\r\n")]), Err(ReadError::Malformed(Malformed::Value))),
        (list(&[("connection", "x")]), Err(ReadError::Malformed(Malformed::ConnectionField))),
        (many, Err(ReadError::Refused(TrailerError::Field(FieldError::TooMany)))),
    ] {
        let block = decoded(&list);
        let mut fields = Vec::new();
        let outcome = read_trailers(&block, TrailerEdits::Keep, &mut fields);
        let sent = outcome.map(|()| {
            encoded(|lines| {
                write_trailers(&fields, block.text(), lines);
            })
        });
        assert_eq!(sent, expected.map(str::to_owned), "{list:?}");
    }
}

/// A rule's edits of a head also apply to the trailers, for any spelling of a name.
#[test]
fn trailers_obey_the_edits_of_their_head() {
    let mut edits = FieldEdits::default();
    edits.set(b"X-User", |out| out.extend_from_slice(b"weir"));
    edits.remove(b"x-secret");
    edits.add(b"X-More", |out| out.extend_from_slice(b"1"));
    edits.note_changed(b"X-Changed");
    let mut names = FieldNames::default();
    names.note(&edits);
    let list: List = ["x-user", "x_user", "x.secret", "x-more", "x~changed", "x-sum"]
        .map(|name| (name.to_owned(), "v".to_owned()))
        .to_vec();
    let by_http1 =
        b"X-USER: v\r\nX_User: v\r\nX.Secret: v\r\nx-more: v\r\nX~Changed: v\r\nx-sum: v\r\n\r\n";
    for (rule, expected) in
        [(TrailerEdits::KeepBut(&names), "x-more: v\nx-sum: v\n"), (TrailerEdits::Drop, "")]
    {
        let block = decoded(&list);
        let mut fields = Vec::new();
        assert_eq!(read_trailers(&block, rule, &mut fields), Ok(()));
        let sent = encoded(|lines| {
            write_trailers(&fields, block.text(), lines);
        });
        assert_eq!(sent, expected);
        let limits = HeadLimits { head_size_max: 4096, headers_max: 100 };
        assert!(h1::parse_trailers(by_http1, &limits, rule, &mut fields).is_ok());
        let mut out = Vec::new();
        h1::write_trailers(&fields, by_http1, &mut out);
        let sent = String::from_utf8(out).expect("text").replace("\r\n", "\n");
        assert_eq!(sent, format!("0\n{expected}\n"));
    }
    names.clear();
    assert!(!names.have(b"x-user"));
}

/// A rule that sets or removes a field also removes fields whose names a CGI-like recipient does not distinguish from it, in
/// requests and in responses.
#[test]
fn look_alikes_of_what_is_edited_do_not_travel() {
    let input =
        b"GET / HTTP/1.1\r\nHost: a\r\nX_User: 1\r\nX.User: 2\r\nX-Users: 3\r\nX-Us-er: 4\r\n\r\n";
    let limits = HeadLimits { head_size_max: 4096, headers_max: 100 };
    let mut head = RequestHead::new();
    assert!(h1::parse_request(input, &limits, TargetForm::default(), &mut head).is_ok());
    let mut edits = RequestEdits::default();
    edits.fields.set(b"X-User", |out| out.extend_from_slice(b"weir"));
    let mut out = Vec::new();
    h1::write_request_head(&head, input, &edits, &mut out);
    assert_eq!(
        out.escape_ascii().to_string(),
        b"GET / HTTP/1.1\r\nHost: a\r\nX-Users: 3\r\nX-Us-er: 4\r\nX-User: weir\r\n\r\n"
            .escape_ascii()
            .to_string()
    );
    let forward = RequestForward { scheme: Scheme::Http, protocol: None };
    assert_eq!(
        encoded(|lines| write_request(&head, input, &edits, &forward, lines)),
        ":method: GET\n:scheme: http\n:authority: a\n:path: /\nx-users: 3\nx-us-er: 4\nx-user: weir\n"
    );

    let input = b"HTTP/1.1 200 OK\r\nX_Secret: 1\r\nX!Secret: 2\r\nX-Secret: 3\r\nContent-Length: 0\r\n\r\n";
    let mut head = ResponseHead::new();
    assert!(h1::parse_response(input, &limits, Method::Get, &mut head).is_ok());
    let mut edits = FieldEdits::default();
    edits.remove(b"X-Secret");
    let forward = ResponseForward {
        framing: head.framing,
        client_version: Version::Http11,
        persistence: Persistence::KeepAlive,
        date: None,
    };
    let mut out = Vec::new();
    h1::write_response_head(&head, input, &forward, &edits, &mut out);
    assert_eq!(out, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(
        encoded(|lines| write_response(&head, input, &forward, &edits, lines)),
        ":status: 200\ncontent-length: 0\n"
    );
}

/// Flaws of HTTP/2 members that can be tolerated. Bare line feeds cannot occur, and control characters are always refused.
#[test]
fn flaws_of_members_of_http2() {
    let repeated = Flaws::NONE.with(Flaw::RepeatedContentLength);
    let unknown = Flaws::NONE.with(Flaw::UnknownStatus);
    let (length, status) = (Malformed::ContentLength, Malformed::Status);
    let (two, three) = (("content-length", "2"), ("content-length", "3"));
    let list_of_two = ("content-length", "2, 2");
    for (code, lines, strict, lenient) in [
        ("200", &[two, two][..], length, Ok((repeated, Framing::Length(2)))),
        ("200", &[list_of_two], length, Ok((repeated, Framing::Length(2)))),
        ("200", &[two, three], length, Err(length)),
        ("200", &[list_of_two, three], length, Err(length)),
        ("999", &[two], status, Ok((unknown, Framing::Length(2)))),
        ("1000", &[two], status, Err(status)),
        ("099", &[two], status, Err(status)),
        ("200", &[("x", "a\0b")], Malformed::Value, Err(Malformed::Value)),
    ] {
        let mut list = vec![(":status".to_owned(), code.to_owned())];
        list.extend(lines.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let request = AnsweredRequest { method: Method::Get, protocol: None };
        let read = |taken| {
            let mut head = ResponseHead::new();
            let outcome = read_response(&mut decoded(&list), false, request, taken, &mut head);
            outcome.map(|()| (head.flaws, head.framing))
        };
        assert_eq!(read(Flaws::NONE), Err(ReadError::Malformed(strict)), "{list:?}");
        assert_eq!(read(Flaws::ALL), lenient.map_err(ReadError::Malformed), "{list:?}");
        if let Ok((flaws, _)) = lenient {
            assert_eq!(read(flaws), lenient.map_err(ReadError::Malformed), "{list:?}");
            let others = Flaws::ALL.without(flaws);
            assert_eq!(read(others), Err(ReadError::Malformed(strict)), "{list:?}");
        }
    }
}

/// The same request in HTTP/1 and in HTTP/2 yields the same head for rules.
#[test]
fn a_request_says_the_same_by_either_version() {
    let by_http1 =
        b"POST /a/%7Eb/../c?d HTTP/1.1\r\nHost: Example.com:8443\r\nX-A: b\r\nCookie: e=f; g=h\r\n\
        TE: trailers\r\nConnection: TE\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    let list: List = [
        (":method", "POST"),
        (":scheme", "https"),
        (":authority", "Example.com:8443"),
        (":path", "/a/%7Eb/../c?d"),
        ("x-a", "b"),
        ("cookie", "e=f"),
        ("cookie", "g=h"),
        ("te", "trailers"),
        ("expect", "100-continue"),
        ("content-length", "3"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec();
    let mut block = decoded(&list);
    let (mut one, mut other) = (RequestHead::new(), RequestHead::new());
    let limits = HeadLimits { head_size_max: 4096, headers_max: 100 };
    assert!(h1::parse_request(by_http1, &limits, TargetForm::default(), &mut one).is_ok());
    assert_eq!(read_request(&mut block, false, TargetForm::default(), &mut other), Ok(()));
    let text = block.text();
    assert_eq!(one.path(by_http1), other.path(text));
    assert_eq!(one.query(by_http1), other.query(text));
    assert_eq!(one.authority(by_http1), other.authority(text));
    assert_eq!(one.target.of(by_http1), other.target.of(text));
    assert_eq!(
        (one.method, one.framing, one.expect_continue, one.te_trailers),
        (other.method, other.framing, other.expect_continue, other.te_trailers)
    );
    assert_eq!((other.version, other.scheme), (Version::Http2, Some(Scheme::Https)));
    let sent = |head: &RequestHead, input: &[u8]| {
        let mut out = Vec::new();
        h1::write_request_head(head, input, &RequestEdits::NONE, &mut out);
        String::from_utf8(out).expect("text").to_ascii_lowercase()
    };
    assert_eq!(sent(&one, by_http1), sent(&other, text));
}

#[test]
fn requests_go_on_by_http2() {
    let input = b"GET /a?b HTTP/1.1\r\nHost: a\r\nX-Old: 1\r\nX-Gone: 2\r\nAuthorization: s\r\n\
        Max-Forwards: 3\r\nKeep-Alive: 5\r\nConnection: x-nominated, keep-alive\r\nX-Nominated: n\r\n\r\n";
    let mut head = RequestHead::new();
    let limits = HeadLimits { head_size_max: 4096, headers_max: 100 };
    assert!(h1::parse_request(input, &limits, TargetForm::default(), &mut head).is_ok());
    let mut edits = RequestEdits::default();
    edits.fields.set(b"X-Gone", |out| out.extend_from_slice(b"3"));
    edits.fields.add(b"Connection", |out| out.extend_from_slice(b"close"));
    edits.path_mut().extend_from_slice(b"/c");
    edits.authority_mut().extend_from_slice(b"b:80");
    let forward = RequestForward { scheme: Scheme::Http, protocol: None };
    assert_eq!(
        encoded(|lines| write_request(&head, input, &edits, &forward, lines)),
        ":method: GET\n:scheme: http\n:authority: b:80\n:path: /c?b\nx-old: 1\nauthorization: s\n\
         max-forwards: 3\nx-gone: 3\n"
    );
}

#[test]
fn tunnels_cross_from_either_version_to_the_other() {
    let input = b"GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nContent-Length: 0\r\n\r\n";
    let mut head = RequestHead::new();
    let limits = HeadLimits { head_size_max: 4096, headers_max: 100 };
    assert!(h1::parse_request(input, &limits, TargetForm::default(), &mut head).is_ok());
    let forward = RequestForward { scheme: Scheme::Http, protocol: Some(b"websocket") };
    assert_eq!(
        encoded(|lines| write_request(&head, input, &RequestEdits::NONE, &forward, lines)),
        ":method: CONNECT\n:protocol: websocket\n:scheme: http\n:authority: a\n:path: /chat\n\
         sec-websocket-version: 13\n"
    );
    // The member's 200 becomes the client's 101.
    let mut block = decoded(&vec![(":status".to_owned(), "200".to_owned())]);
    let mut response = ResponseHead::new();
    let request = AnsweredRequest { method: Method::Get, protocol: Some(b"websocket") };
    assert_eq!(read_response(&mut block, false, request, Flaws::NONE, &mut response), Ok(()));
    assert_eq!(response.status, 101);
    let forward = ResponseForward {
        framing: Framing::None,
        client_version: Version::Http11,
        persistence: Persistence::Upgrade,
        date: None,
    };
    let mut edits = FieldEdits::default();
    edits
        .set(b"Sec-WebSocket-Accept", |out| out.extend_from_slice(b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    let mut out = Vec::new();
    h1::write_response_head(&response, block.text(), &forward, &edits, &mut out);
    assert_eq!(
        String::from_utf8(out).expect("text"),
        "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\
         Connection: upgrade\r\nUpgrade: websocket\r\n\r\n"
    );
    // A 101 of an HTTP/1 member becomes a 200 for an HTTP/2 client.
    let input =
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: chat\r\n\r\n";
    assert!(h1::parse_response(input, &limits, Method::Get, &mut response).is_ok());
    assert_eq!(
        encoded(|lines| write_response(&response, input, &forward, &FieldEdits::NONE, lines)),
        ":status: 200\nsec-websocket-protocol: chat\n"
    );
    // Other statuses stay unchanged.
    let mut block = decoded(&vec![(":status".to_owned(), "403".to_owned())]);
    assert_eq!(read_response(&mut block, true, request, Flaws::NONE, &mut response), Ok(()));
    assert_eq!((response.status, response.upgrade), (403, None));
}

#[test]
fn responses_go_on_by_http2() {
    let input = b"HTTP/1.1 200 Fine\r\nServer: m\r\nConnection: close, x\r\nX: y\r\nTrailer: t\r\n\
        Transfer-Encoding: chunked\r\nKeep-Alive: timeout=5\r\n\r\n";
    let mut head = ResponseHead::new();
    let limits = HeadLimits { head_size_max: 4096, headers_max: 100 };
    assert!(h1::parse_response(input, &limits, Method::Get, &mut head).is_ok());
    let forward = ResponseForward {
        framing: head.framing.toward(Version::Http2),
        client_version: Version::Http2,
        persistence: Persistence::Close,
        date: Some(b"Sat, 21 Nov 2026 12:00:00 GMT"),
    };
    assert_eq!(
        encoded(|lines| write_response(&head, input, &forward, &FieldEdits::NONE, lines)),
        ":status: 200\nserver: m\ntrailer: t\ndate: Sat, 21 Nov 2026 12:00:00 GMT\n"
    );
}

#[test]
fn own_responses_go_by_http2() {
    let mut edits = FieldEdits::default();
    edits.add(b"X-A", |out| out.extend_from_slice(b"b"));
    let response = OwnResponse {
        status: 503,
        fields: &[("Retry-After", b"1"), ("Connection", b"close")],
        edits: &edits,
        body: b"no member\n",
        client_version: Version::Http2,
        persistence: Persistence::Close,
        head_only: false,
    };
    let written = |response: OwnResponse<'_>| {
        let text = encoded(|lines| write_own_response(&response, lines));
        (text, own_response_has_body(&response))
    };
    assert_eq!(
        written(response),
        (
            ":status: 503\nretry-after: 1\nx-a: b\ncontent-type: text/plain; charset=utf-8\n\
             content-length: 10\n"
                .to_owned(),
            true
        )
    );
    assert!(!written(OwnResponse { head_only: true, ..response }).1);
    assert_eq!(
        written(OwnResponse { status: 204, fields: &[], ..response }),
        (":status: 204\nx-a: b\n".to_owned(), false)
    );
}

#[test]
fn nothing_is_allocated_once_buffers_have_grown() {
    let list = decoded(&cases::h2_messages::requests()[5].list);
    let mut lines = Vec::new();
    for line in list.lines() {
        lines.push((line.name.of(list.text()).to_vec(), line.value.of(list.text()).to_vec()));
    }
    let (mut encoder, mut decoder) = (Encoder::new(4096), Decoder::new());
    let (mut block, mut head, mut out) = (HeaderBlock::new(), RequestHead::new(), Vec::new());
    let mut places = Vec::new();
    for _ in 0..6 {
        out.clear();
        let mut writer = encoder.block(&mut out);
        for (name, value) in &lines {
            writer.field(name, value);
        }
        assert_eq!(decoder.decode(&out, &LISTS, &mut block), Ok(()));
        assert_eq!(read_request(&mut block, true, TargetForm::default(), &mut head), Ok(()));
        let memory = (encoder.memory_size(), decoder.memory_size(), block.memory_size());
        places.push((block.text().as_ptr(), head.fields.as_ptr(), out.as_ptr(), memory));
    }
    assert_eq!(places[3], places[5]);
}
