//! Messages that HTTP/2 can express and HTTP/1.1 cannot, or only differently: weir refuses them, or forwards them as exactly
//! one request.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::net::SocketAddr;

use weir_tests::http2::{Frame, Message, Peer, code, flag, kind};
use weir_tests::member::{Member, Request, Then};
use weir_tests::ports::Lease;
use weir_tests::process::Process;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{require, tools};

type Lines = &'static [(&'static str, &'static str)];

/// The frames on a stream, and the expected outcome.
struct Case {
    name: &'static str,
    start: Start,
    fields: Lines,
    then: Rest,
    must: Must,
}

/// The first lines of a head.
#[derive(Clone, Copy)]
enum Start {
    /// Method, scheme, path and authority.
    Usual([&'static str; 4]),
    /// Any lines.
    Lines(Lines),
}

/// The frames after the head.
enum Rest {
    /// No frames: the head ends the stream.
    End,
    /// These data frames. The last one ends the stream.
    Data(&'static [&'static str]),
    /// Data, and trailers that end the stream.
    Trailers(&'static str, Lines),
    /// Data, and a second head that does not end the stream.
    Unended(&'static str, Lines),
}

enum Must {
    /// weir resets the stream with PROTOCOL_ERROR, or responds with 4xx or 501. The member receives nothing.
    Refuse,
    /// As `Refuse`, but weir has already forwarded the head: the member receives an incomplete request.
    Cut,
    /// The member receives one request: its lines joined by `|`, with names in lower case, and its body.
    Pass(&'static str, &'static str),
}

use Must::{Cut, Pass, Refuse};
use Rest::{Data, End, Trailers, Unended};

const GET: Start = Start::Usual(["GET", "http", "/", "test"]);
const POST: Start = Start::Usual(["POST", "http", "/", "test"]);

const fn get(name: &'static str, fields: Lines, must: Must) -> Case {
    Case { name, start: GET, fields, then: End, must }
}

const fn post(name: &'static str, fields: Lines, then: Rest, must: Must) -> Case {
    Case { name, start: POST, fields, then, must }
}

const fn head(name: &'static str, start: Lines, must: Must) -> Case {
    Case { name, start: Start::Lines(start), fields: &[], then: End, must }
}

const fn usual(name: &'static str, start: [&'static str; 4], must: Must) -> Case {
    Case { name, start: Start::Usual(start), fields: &[], then: End, must }
}

const fn method(name: &'static str, method: &'static str, must: Must) -> Case {
    usual(name, [method, "http", "/", "test"], must)
}

const fn scheme(name: &'static str, scheme: &'static str, must: Must) -> Case {
    usual(name, ["GET", scheme, "/", "test"], must)
}

const fn path(name: &'static str, path: &'static str, must: Must) -> Case {
    usual(name, ["GET", "http", path, "test"], must)
}

const fn authority(name: &'static str, authority: &'static str, must: Must) -> Case {
    usual(name, ["GET", "http", "/", authority], must)
}

const fn extended_connect(name: &'static str, fields: Lines, must: Must) -> Case {
    Case { name, start: Start::Usual(["CONNECT", "http", "/", "test"]), fields, then: End, must }
}

/// A request that is hidden in any part that can contain it.
const HIDDEN: &str = "GET /smuggled HTTP/1.1\r\nHost: test\r\n\r\n";
const PLAIN: &str = "GET / HTTP/1.1|host: test";

const CASES: &[Case] = &[
    // Field names
    get("CR and LF in a name", &[("x: 1\r\ny", "2")], Refuse),
    get("LF in a name", &[("x\ny", "2")], Refuse),
    get("NUL in a name", &[("x\0", "2")], Refuse),
    get("space in a name", &[("x y", "2")], Refuse),
    get("space at the end of a name", &[("transfer-encoding ", "chunked")], Refuse),
    get("tab in a name", &[("x\t", "2")], Refuse),
    get("colon at the end of a name", &[("x:", "2")], Refuse),
    get("colon in a name", &[("host: other\r\nx", "2")], Refuse),
    get("a line in a name", &[("transfer-encoding: chunked", "x")], Refuse),
    get("upper case in a name", &[("X-Upper", "2")], Refuse),
    get("Transfer-Encoding in upper case", &[("Transfer-Encoding", "chunked")], Refuse),
    get("empty name", &[("", "2")], Refuse),
    get("name beyond ASCII", &[("xé", "2")], Refuse),
    get("name with a separator", &[("x(y)", "2")], Refuse),
    get("DEL in a name", &[("x\x7f", "2")], Refuse),
    // Field values
    get("CR and LF in a value", &[("x", "1\r\ny: 2")], Refuse),
    get("LF in a value", &[("x", "1\ny: 2")], Refuse),
    get("CR in a value", &[("x", "1\ry: 2")], Refuse),
    get("NUL in a value", &[("x", "1\0")], Refuse),
    get("CR at the end of a value", &[("x", "1\r")], Refuse),
    get("vertical tab in a value", &[("x", "1\x0b2")], Refuse),
    get("DEL in a value", &[("x", "1\x7f2")], Refuse),
    get("obsolete folding", &[("x", "1\r\n 2")], Refuse),
    get("space before a value", &[("x", " 1")], Refuse),
    get("tab behind a value", &[("x", "1\t")], Refuse),
    get("nothing but a space", &[("x", " ")], Refuse),
    get("a request in a value", &[("x", "1\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: test")], Refuse),
    get(
        "an encoded request in a value",
        &[("x", "1%0d%0a%0d%0aGET /smuggled")],
        Pass("GET / HTTP/1.1|host: test|x: 1%0d%0a%0d%0aGET /smuggled", ""),
    ),
    get("tab within a value", &[("x", "1\t2")], Pass("GET / HTTP/1.1|host: test|x: 1\t2", "")),
    get("empty value", &[("x", "")], Pass("GET / HTTP/1.1|host: test|x: ", "")),
    // Connection-specific headers
    post("transfer-encoding", &[("transfer-encoding", "chunked")], Data(&["0\r\n\r\n"]), Refuse),
    post(
        "transfer-encoding beside content-length",
        &[("content-length", "5"), ("transfer-encoding", "chunked")],
        Data(&["0\r\n\r\n"]),
        Refuse,
    ),
    get("transfer-encoding identity", &[("transfer-encoding", "identity")], Refuse),
    get("connection", &[("connection", "close")], Refuse),
    get("connection that names a field", &[("connection", "x"), ("x", "1")], Refuse),
    get("keep-alive", &[("keep-alive", "timeout=5")], Refuse),
    get("proxy-connection", &[("proxy-connection", "keep-alive")], Refuse),
    get("upgrade", &[("upgrade", "websocket")], Refuse),
    get("upgrade to h2c", &[("upgrade", "h2c"), ("http2-settings", "AAMAAABk")], Refuse),
    get("te other than trailers", &[("te", "gzip")], Refuse),
    get("te with more than trailers", &[("te", "trailers, chunked")], Refuse),
    get(
        "te trailers",
        &[("te", "trailers")],
        Pass("GET / HTTP/1.1|host: test|te: trailers|connection: TE", ""),
    ),
    // :path
    path("empty path", "", Refuse),
    head("no path", &[(":method", "GET"), (":scheme", "http"), (":authority", "test")], Refuse),
    path("absolute path", "http://other/", Refuse),
    path("path without a slash", "index.html", Refuse),
    path("asterisk for GET", "*", Refuse),
    head(
        "asterisk for OPTIONS",
        &[(":method", "OPTIONS"), (":scheme", "http"), (":path", "*"), (":authority", "test")],
        Pass("OPTIONS * HTTP/1.1|host: test", ""),
    ),
    path("fragment", "/a#b", Refuse),
    path("space in the path", "/a b", Refuse),
    path("a version in the path", "/ HTTP/1.1\r\nHost: other\r\n\r\nGET /smuggled", Refuse),
    path("a version in the path without line ends", "/ HTTP/1.1", Refuse),
    path("tab in the path", "/a\tb", Refuse),
    path("NUL in the path", "/\0", Refuse),
    path("encoded NUL in the path", "/%00", Refuse),
    path("cut percent-encoding", "/%4", Refuse),
    path("two slashes", "//other/a", Pass("GET /other/a HTTP/1.1|host: test", "")),
    path("encoded slash", "/..%2fa", Refuse),
    path("dot segments", "/a/../b/./c", Pass("GET /b/c HTTP/1.1|host: test", "")),
    path("encoded dot segments", "/a/%2e%2e/b", Pass("GET /b HTTP/1.1|host: test", "")),
    path(
        "dot segments beyond the root",
        "/../../etc/passwd",
        Pass("GET /etc/passwd HTTP/1.1|host: test", ""),
    ),
    path(
        "encoded line end in the query",
        "/?a=%0d%0ab",
        Pass("GET /?a=%0d%0ab HTTP/1.1|host: test", ""),
    ),
    // :authority and Host
    get("the same Host", &[("host", "test")], Pass(PLAIN, "")),
    get("another Host", &[("host", "other")], Refuse),
    get("Host twice", &[("host", "test"), ("host", "test")], Refuse),
    get("empty Host beside :authority", &[("host", "")], Refuse),
    Case {
        name: "Host alone",
        start: Start::Lines(&[(":method", "GET"), (":scheme", "http"), (":path", "/")]),
        fields: &[("host", "test")],
        then: End,
        must: Pass(PLAIN, ""),
    },
    head(
        "neither :authority nor Host",
        &[(":method", "GET"), (":scheme", "http"), (":path", "/")],
        Refuse,
    ),
    authority("userinfo", "user@test", Refuse),
    authority("empty authority", "", Refuse),
    authority("path in the authority", "test/a", Refuse),
    authority("line end in the authority", "test\r\nx: 1", Refuse),
    authority("space in the authority", "test other", Refuse),
    authority("list of authorities", "test, other", Refuse),
    authority("bad port", "test:99999", Refuse),
    // Other pseudo-header fields
    head(
        "method twice",
        &[
            (":method", "GET"),
            (":method", "POST"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "test"),
        ],
        Refuse,
    ),
    head(
        "path twice",
        &[
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/"),
            (":path", "/b"),
            (":authority", "test"),
        ],
        Refuse,
    ),
    head(
        "authority twice",
        &[
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "test"),
            (":authority", "test"),
        ],
        Refuse,
    ),
    head("no method", &[(":scheme", "http"), (":path", "/"), (":authority", "test")], Refuse),
    head("no scheme", &[(":method", "GET"), (":path", "/"), (":authority", "test")], Refuse),
    head(
        "unknown pseudo-header field",
        &[
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "test"),
            (":x", "1"),
        ],
        Refuse,
    ),
    head(
        "status in a request",
        &[
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "test"),
            (":status", "200"),
        ],
        Refuse,
    ),
    head(
        "pseudo-header field behind a field",
        &[
            (":method", "GET"),
            (":scheme", "http"),
            ("x", "1"),
            (":path", "/"),
            (":authority", "test"),
        ],
        Refuse,
    ),
    method("space in the method", "GET /smuggled HTTP/1.1\r\nHost: test\r\n\r\nGET", Refuse),
    method("a target in the method", "GET /admin HTTP/1.1", Refuse),
    method("empty method", "", Refuse),
    method("method with a separator", "GE(T", Refuse),
    scheme("line end in the scheme", "http\r\nx: 1", Refuse),
    scheme("a target in the scheme", "http://other/?", Refuse),
    scheme("another scheme", "ftp", Refuse),
    scheme("empty scheme", "", Refuse),
    head("CONNECT", &[(":method", "CONNECT"), (":authority", "test:443")], Refuse),
    head(
        "CONNECT with a path",
        &[(":method", "CONNECT"), (":scheme", "http"), (":path", "/"), (":authority", "test:443")],
        Refuse,
    ),
    head(
        ":protocol without CONNECT",
        &[
            (":method", "GET"),
            (":protocol", "websocket"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "test"),
        ],
        Refuse,
    ),
    extended_connect("empty :protocol", &[(":protocol", "")], Refuse),
    extended_connect("line end in :protocol", &[(":protocol", "websocket\r\nx: 1")], Refuse),
    extended_connect("list of protocols", &[(":protocol", "websocket, h2c")], Refuse),
    extended_connect(":protocol h2c", &[(":protocol", "h2c")], Refuse),
    head(
        ":protocol without a path",
        &[
            (":method", "CONNECT"),
            (":protocol", "websocket"),
            (":scheme", "http"),
            (":authority", "test"),
        ],
        Refuse,
    ),
    // Content-Length
    post("less data than announced", &[("content-length", "10")], Data(&["hello"]), Cut),
    post("more data than announced", &[("content-length", "2")], Data(&["hello"]), Cut),
    post("more data in a second frame", &[("content-length", "5")], Data(&["hello", HIDDEN]), Cut),
    post("a request behind a length of 0", &[("content-length", "0")], Data(&[HIDDEN]), Refuse),
    post("length without data", &[("content-length", "5")], End, Refuse),
    post(
        "length twice",
        &[("content-length", "5"), ("content-length", "5")],
        Data(&["hello"]),
        Refuse,
    ),
    post(
        "differing lengths",
        &[("content-length", "5"), ("content-length", "0")],
        Data(&["hello"]),
        Refuse,
    ),
    post("list of lengths", &[("content-length", "5, 5")], Data(&["hello"]), Refuse),
    post("negative length", &[("content-length", "-5")], Data(&["hello"]), Refuse),
    post("signed length", &[("content-length", "+5")], Data(&["hello"]), Refuse),
    post("hexadecimal length", &[("content-length", "0x5")], Data(&["hello"]), Refuse),
    post("empty length", &[("content-length", "")], Data(&["hello"]), Refuse),
    post(
        "length beyond 64 bits",
        &[("content-length", "18446744073709551621")],
        Data(&["hello"]),
        Refuse,
    ),
    post(
        "length with a line end",
        &[("content-length", "5\r\ntransfer-encoding: chunked")],
        Data(&["hello"]),
        Refuse,
    ),
    post(
        "length with zeros before it",
        &[("content-length", "005")],
        Data(&["hello"]),
        Pass("POST / HTTP/1.1|host: test|content-length: 5", "hello"),
    ),
    post(
        "length as it is",
        &[("content-length", "5")],
        Data(&["he", "llo"]),
        Pass("POST / HTTP/1.1|host: test|content-length: 5", "hello"),
    ),
    post(
        "length 0 and an empty end",
        &[("content-length", "0")],
        Data(&[""]),
        // Trailers are passed on here, and might have followed: no body is not the end of the message.
        Pass("POST / HTTP/1.1|host: test|transfer-encoding: chunked", ""),
    ),
    post(
        "less data than announced, and trailers",
        &[("content-length", "10")],
        Trailers("hello", &[("x", "1")]),
        Cut,
    ),
    post(
        "no length",
        &[],
        Data(&["hel", "lo"]),
        Pass("POST / HTTP/1.1|host: test|transfer-encoding: chunked", "hello"),
    ),
    post("no length and no data", &[], End, Pass("POST / HTTP/1.1|host: test", "")),
    // Requests in bodies
    post(
        "the end of a chunked body in data",
        &[],
        Data(&["0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: test\r\n\r\n"]),
        Pass(
            "POST / HTTP/1.1|host: test|transfer-encoding: chunked",
            "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: test\r\n\r\n",
        ),
    ),
    post(
        "a request in a body with a length",
        &[("content-length", "38")],
        Data(&[HIDDEN]),
        Pass("POST / HTTP/1.1|host: test|content-length: 38", HIDDEN),
    ),
    Case {
        name: "GET with a body",
        start: GET,
        fields: &[],
        then: Data(&[HIDDEN]),
        must: Pass("GET / HTTP/1.1|host: test|transfer-encoding: chunked", HIDDEN),
    },
    post("expectation that is not known", &[("expect", "tea")], Data(&["hello"]), Refuse),
    // Trailers
    post(
        "trailers",
        &[],
        Trailers("hello", &[("x", "1")]),
        Pass("POST / HTTP/1.1|host: test|transfer-encoding: chunked||x: 1", "hello"),
    ),
    post("pseudo-header field in trailers", &[], Trailers("hello", &[(":path", "/smuggled")]), Cut),
    post("unknown pseudo-header field in trailers", &[], Trailers("hello", &[(":x", "1")]), Cut),
    post(
        "transfer-encoding in trailers",
        &[],
        Trailers("hello", &[("transfer-encoding", "chunked")]),
        Cut,
    ),
    post("connection in trailers", &[], Trailers("hello", &[("connection", "close")]), Cut),
    post(
        "line end in a trailer",
        &[],
        Trailers("hello", &[("x", "1\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a")]),
        Cut,
    ),
    post("upper case in trailers", &[], Trailers("hello", &[("X", "1")]), Cut),
    post(
        "framing fields in trailers",
        &[],
        Trailers("hello", &[("content-length", "0"), ("host", "other"), ("x", "1")]),
        Pass("POST / HTTP/1.1|host: test|transfer-encoding: chunked||x: 1", "hello"),
    ),
    post("trailers that do not end the stream", &[], Unended("hello", &[("x", "1")]), Cut),
    // Cookies
    get(
        "crumbs",
        &[("cookie", "a=1"), ("x", "1"), ("cookie", "b=2"), ("cookie", "c=3")],
        Pass("GET / HTTP/1.1|host: test|cookie: a=1; b=2; c=3|x: 1", ""),
    ),
    get("line end in a crumb", &[("cookie", "a=1"), ("cookie", "b=2\r\nx: 1")], Refuse),
    get(
        "empty crumbs",
        &[("cookie", ""), ("cookie", "a=1"), ("cookie", "")],
        Pass("GET / HTTP/1.1|host: test|cookie: a=1", ""),
    ),
    // Fields with a special meaning only in HTTP/1
    get("http2-settings", &[("http2-settings", "AAMAAABk")], Pass(PLAIN, "")),
    get("a request line for a name", &[("get /smuggled http/1.1", "x")], Refuse),
];

/// The observed outcome of a case.
#[derive(Debug)]
enum Outcome {
    Reset(u32),
    Goaway(u32),
    Answered(u16),
    Nothing,
}

impl Outcome {
    fn is_refusal(&self) -> bool {
        match self {
            Self::Reset(code) | Self::Goaway(code) => *code == code::PROTOCOL_ERROR,
            Self::Answered(status) => matches!(status, 400..=499 | 501),
            Self::Nothing => false,
        }
    }
}

/// Sends the frames of a case and waits for the outcome.
fn play(peer: &mut Peer, case: &Case) -> Outcome {
    let bytes = |lines: Lines| -> Vec<(&'static [u8], &'static [u8])> {
        lines.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
    };
    let stream = peer.new_stream();
    let start = match case.start {
        Start::Usual(values) => [":method", ":scheme", ":path", ":authority"]
            .into_iter()
            .zip(values)
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
            .collect(),
        Start::Lines(lines) => bytes(lines),
    };
    let lines = [start, bytes(case.fields)].concat();
    let mut out = Frame::headers(stream, &lines, matches!(case.then, End)).bytes();
    let data = |data: &str, end: bool, out: &mut Vec<u8>| {
        let flags = if end { flag::END_STREAM } else { 0 };
        Frame::new(kind::DATA, flags, stream, data).write(out);
    };
    match case.then {
        End => {}
        Data(frames) => {
            let last = frames.len() - 1;
            frames.iter().enumerate().for_each(|(at, it)| data(it, at == last, &mut out));
        }
        Trailers(body, lines) => {
            data(body, false, &mut out);
            Frame::headers(stream, &bytes(lines), true).write(&mut out);
        }
        Unended(body, lines) => {
            data(body, false, &mut out);
            Frame::headers(stream, &bytes(lines), false).write(&mut out);
        }
    }
    if peer.send_bytes(out).is_err() {
        return Outcome::Nothing;
    }
    let response: Message = peer.response(stream);
    // A reset stream may have a response before the reset.
    match (response.status(), response.reset, peer.goaways.last()) {
        (0, Some(code), _) => Outcome::Reset(code),
        (0, None, Some((_, code))) => Outcome::Goaway(*code),
        (0, None, None) => Outcome::Nothing,
        (status, ..) => Outcome::Answered(status),
    }
}

/// Whether the member received the expected requests. `seen` contains its requests, without bodies unless `tells_all`.
fn is_right(must: &Must, outcome: &Outcome, seen: &[String], tells_all: bool) -> bool {
    let text = |lines: &str, body: &str| match tells_all {
        true => format!("{lines}#{body}"),
        false => lines.split('|').next().unwrap_or_default().to_owned(),
    };
    match must {
        Refuse => outcome.is_refusal() && seen.is_empty(),
        Cut if tells_all => outcome.is_refusal() && seen.is_empty(),
        Cut => outcome.is_refusal() && matches!(seen, [] | [_]),
        Pass(lines, body) => {
            // The member itself may reject the request.
            let is_answered =
                matches!(outcome, Outcome::Answered(status) if *status == 200 || !tells_all);
            is_answered && seen == [text(lines, body)]
        }
    }
}

/// Runs each case on one connection, followed by another request. `seen` returns the requests that the member has received
/// since the last call, one text each.
fn check_all(address: SocketAddr, seen: impl Fn() -> Vec<String>, tells_all: bool) {
    let names: BTreeSet<_> = CASES.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), CASES.len(), "each has a name of its own");
    let mut peer = Peer::connect(address);
    let mut wrong = Vec::new();
    for case in CASES {
        let outcome = play(&mut peer, case);
        if peer.closed {
            peer = Peer::connect(address);
        }
        peer.get("/canary").assert_status(200);
        let is_canary = |text: &String| text.starts_with("GET /canary ");
        let mut all = Vec::new();
        // The case may have used another connection to the member.
        weir_tests::eventually(case.name, weir_tests::STEP_TIMEOUT, || {
            all.extend(seen());
            all.iter().any(is_canary)
        });
        let (canaries, seen): (Vec<_>, Vec<_>) = all.into_iter().partition(is_canary);
        if !is_right(&case.must, &outcome, &seen, tells_all) || canaries.len() != 1 {
            wrong.push(format!("{}: {outcome:?}, {seen:?}, {canaries:?}", case.name));
        }
    }
    let late = seen();
    assert!(late.is_empty(), "more than was expected: {late:?}");
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
}

/// The requests that a member has received since the last call.
fn recorded(member: &Member, done: &Cell<usize>) -> Vec<String> {
    let requests = member.requests().split_off(done.get());
    done.set(done.get() + requests.len());
    let lines = |fields: &[(String, String)]| -> String {
        let line =
            |(name, value): &(String, String)| format!("|{}: {value}", name.to_ascii_lowercase());
        fields.iter().map(line).collect()
    };
    let text = |request: &Request| {
        let mut text = request.head.start.clone() + &lines(&request.head.fields);
        if !request.trailers.fields.is_empty() {
            text = text + "|" + &lines(&request.trailers.fields);
        }
        text + "#" + &String::from_utf8_lossy(&request.body)
    };
    requests.iter().map(text).collect()
}

fn recording() -> Member {
    Member::new(|exchange| {
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").map(|()| Then::KeepAlive)
    })
}

#[test]
fn a_member_of_http_1_sees_nothing_or_exactly_one_request() {
    let (member, done) = (recording(), Cell::new(0));
    let setup = Setup::new(&[member.address()]).http("http2: true");
    let proxy = Proxy::start(&setup.http("request_trailers: forward"));
    check_all(proxy.address(), || recorded(&member, &done), true);
}

#[test]
fn a_member_of_http_2_sees_nothing_or_exactly_one_request() {
    let (member, done) = (recording(), Cell::new(0));
    let with_trailers =
        |to| Setup::new(&[to]).http("http2: true").http("request_trailers: forward");
    let inner = Proxy::start(&with_trailers(member.address()));
    let outer = Proxy::start(&with_trailers(inner.address()).pool("http2: true"));
    check_all(outer.address(), || recorded(&member, &done), true);
    let malformed = inner.metric("weir_virtual_server_http2_errors_total", &[]);
    assert_eq!(malformed, 0.0, "what goes to a member is sound");
}

#[test]
fn nginx_sees_nothing_or_exactly_one_request() {
    require!("nginx");
    let (directory, lease) = (TempDir::new("nginx-log"), Lease::new());
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    directory.write(
        "nginx.conf",
        format!(
            "daemon off; master_process off; pid nginx.pid; error_log error.log warn; {user}
            events {{}}
            http {{
                log_format line '$request'; access_log access.log line;
                client_body_temp_path client_body; proxy_temp_path proxy;
                fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
                server {{ listen {}; merge_slashes off; location / {{ return 200 \"\"; }} }}
            }}",
            lease.address()
        ),
    );
    let folder = format!("{}/", directory.path().display());
    let program = tools::find("nginx").expect("nginx");
    let arguments = ["-p", &folder, "-e", "error.log", "-c", "nginx.conf"];
    let log = directory.path().join("output.log");
    let mut nginx = Process::start(&program, &arguments, &log);
    nginx.wait_until_listening(&[lease.address()]);
    let proxy = Proxy::start(&Setup::new(&[lease.address()]).http("http2: true"));
    let done = Cell::new(0);
    let access = directory.path().join("access.log");
    let seen = || {
        let log = std::fs::read_to_string(&access).unwrap_or_default();
        // The last line may be incomplete.
        let whole = log.rfind('\n').map_or("", |end| &log[..end]);
        let lines: Vec<String> = whole.lines().skip(done.get()).map(str::to_owned).collect();
        done.set(done.get() + lines.len());
        lines
    };
    check_all(proxy.address(), seen, false);
}
