//! Malformed and ambiguous messages: weir rejects them with a complete response, closes the connection, and forwards
//! nothing.

use std::time::Duration;

use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};

/// The request after every case on the same connection. weir must neither answer nor forward it.
const FOLLOWER: &str = "GET /smuggled HTTP/1.1\r\nHost: test\r\n\r\n";

/// A head that weir must reject. `\n` and `\r` are as written.
struct Case {
    name: &'static str,
    request: &'static str,
    status: u16,
}

const fn bad(name: &'static str, request: &'static str) -> Case {
    refused(400, name, request)
}

const fn refused(status: u16, name: &'static str, request: &'static str) -> Case {
    Case { name, request, status }
}

const MALFORMED_HEADS: &[Case] = &[
    // Request line
    bad("no version", "GET /\r\nHost: test\r\n\r\n"),
    bad("empty target", "GET  HTTP/1.1\r\nHost: test\r\n\r\n"),
    bad("two spaces before the version", "GET /  HTTP/1.1\r\nHost: test\r\n\r\n"),
    bad("space before the method", " GET / HTTP/1.1\r\nHost: test\r\n\r\n"),
    bad("tab for a space", "GET\t/ HTTP/1.1\r\nHost: test\r\n\r\n"),
    bad("space in the target", "GET /a b HTTP/1.1\r\nHost: test\r\n\r\n"),
    bad("lower-case version", "GET / http/1.1\r\nHost: test\r\n\r\n"),
    bad("version with two digits", "GET / HTTP/1.10\r\nHost: test\r\n\r\n"),
    bad("version without a minor", "GET / HTTP/1\r\nHost: test\r\n\r\n"),
    bad("other protocol", "GET / ICY/1.1\r\nHost: test\r\n\r\n"),
    refused(505, "version 2.0", "GET / HTTP/2.0\r\nHost: test\r\n\r\n"),
    refused(505, "version 0.9", "GET / HTTP/0.9\r\nHost: test\r\n\r\n"),
    bad("method with a separator", "GE(T / HTTP/1.1\r\nHost: test\r\n\r\n"),
    bad("method with NUL", "G\0T / HTTP/1.1\r\nHost: test\r\n\r\n"),
    bad("bare LF after the request line", "GET / HTTP/1.1\nHost: test\r\n\r\n"),
    bad("bare CR in the request line", "GET /\r HTTP/1.1\r\nHost: test\r\n\r\n"),
    bad("fragment in the target", "GET /a#b HTTP/1.1\r\nHost: test\r\n\r\n"),
    bad("NUL in the target", "GET /\0 HTTP/1.1\r\nHost: test\r\n\r\n"),
    bad("encoded NUL in the path", "GET /%00 HTTP/1.1\r\nHost: test\r\n\r\n"),
    bad("cut percent-encoding", "GET /%4 HTTP/1.1\r\nHost: test\r\n\r\n"),
    bad("percent-encoding of no digits", "GET /%zz HTTP/1.1\r\nHost: test\r\n\r\n"),
    bad("relative target", "GET index.html HTTP/1.1\r\nHost: test\r\n\r\n"),
    bad("asterisk for GET", "GET * HTTP/1.1\r\nHost: test\r\n\r\n"),
    bad("three leading empty lines", "\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: test\r\n\r\n"),
    bad("leading LF", "\nGET / HTTP/1.1\r\nHost: test\r\n\r\n"),
    refused(501, "CONNECT", "CONNECT test:443 HTTP/1.1\r\nHost: test:443\r\n\r\n"),
    refused(505, "HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    bad("TLS to a plain port", "\x16\x03\x01\x02\0\x01\0\x01\u{fc}\x03\x03\r\n\r\n"),
    // Host
    bad("no Host", "GET / HTTP/1.1\r\n\r\n"),
    bad("two Hosts", "GET / HTTP/1.1\r\nHost: test\r\nHost: other\r\n\r\n"),
    bad("two equal Hosts", "GET / HTTP/1.1\r\nHost: test\r\nHost: test\r\n\r\n"),
    bad("Host with user information", "GET / HTTP/1.1\r\nHost: user@test\r\n\r\n"),
    bad("Host with a path", "GET / HTTP/1.1\r\nHost: test/x\r\n\r\n"),
    bad("list of Hosts", "GET / HTTP/1.1\r\nHost: test, other\r\n\r\n"),
    bad("Host with a bad port", "GET / HTTP/1.1\r\nHost: test:99999\r\n\r\n"),
    bad("Host other than the target's authority", "GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n"),
    bad("authority with user information", "GET http://u@test/ HTTP/1.1\r\nHost: test\r\n\r\n"),
    // Field syntax
    bad("space before the colon", "GET / HTTP/1.1\r\nHost : test\r\n\r\n"),
    bad("tab before the colon", "GET / HTTP/1.1\r\nHost\t: test\r\n\r\n"),
    bad("space before the first field", "GET / HTTP/1.1\r\n Host: test\r\n\r\n"),
    bad("obsolete folding", "GET / HTTP/1.1\r\nHost: test\r\nX: a\r\n b\r\n\r\n"),
    bad(
        "folded Transfer-Encoding",
        "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    ),
    bad("no colon", "GET / HTTP/1.1\r\nHost: test\r\nField\r\n\r\n"),
    bad("empty name", "GET / HTTP/1.1\r\nHost: test\r\n: value\r\n\r\n"),
    bad("name with a separator", "GET / HTTP/1.1\r\nHost: test\r\nX[]: 1\r\n\r\n"),
    bad("name with a space", "GET / HTTP/1.1\r\nHost: test\r\nX Y: 1\r\n\r\n"),
    bad("name with a control character", "GET / HTTP/1.1\r\nHost: test\r\nX\x01: 1\r\n\r\n"),
    bad("name beyond ASCII", "GET / HTTP/1.1\r\nHost: test\r\nXé: 1\r\n\r\n"),
    bad("NUL in a value", "GET / HTTP/1.1\r\nHost: test\r\nX: a\0b\r\n\r\n"),
    bad("control character in a value", "GET / HTTP/1.1\r\nHost: test\r\nX: a\x0bb\r\n\r\n"),
    bad("DEL in a value", "GET / HTTP/1.1\r\nHost: test\r\nX: a\x7fb\r\n\r\n"),
    bad("bare CR in a value", "GET / HTTP/1.1\r\nHost: test\r\nX: a\rb\r\n\r\n"),
    bad("bare LF between fields", "GET / HTTP/1.1\r\nHost: test\nX: 1\r\n\r\n"),
    bad("bare LF at the end of the head", "GET / HTTP/1.1\r\nHost: test\r\n\n"),
    bad(
        "field hidden behind a bare CR",
        "GET / HTTP/1.1\r\nHost: test\r\nX: 1\rContent-Length: 5\r\n\r\n",
    ),
    // Content-Length
    bad("negative length", "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: -1\r\n\r\n"),
    bad("signed length", "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: +5\r\n\r\nhello"),
    bad("hexadecimal length", "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 0x5\r\n\r\nhello"),
    bad("length with a unit", "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 5b\r\n\r\nhello"),
    bad(
        "length with a space",
        "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1 0\r\n\r\n0123456789",
    ),
    bad("empty length", "POST / HTTP/1.1\r\nHost: test\r\nContent-Length:\r\n\r\n"),
    bad(
        "length beyond 64 bits",
        "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 18446744073709551616\r\n\r\n",
    ),
    bad("list of lengths", "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 5,5\r\n\r\nhello"),
    bad(
        "list of differing lengths",
        "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 5, 6\r\n\r\nhello",
    ),
    bad(
        "equal lengths twice",
        "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    ),
    bad(
        "differing lengths",
        "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\nContent-Length: 0\r\n\r\nhello",
    ),
    bad(
        "empty length, then a length (CVE-2023-40225)",
        "POST / HTTP/1.1\r\nHost: test\r\nContent-Length:\r\nContent-Length: 5\r\n\r\nhello",
    ),
    bad("fractional length", "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 5.0\r\n\r\nhello"),
    // Transfer-Encoding
    bad(
        "length and chunked",
        "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    bad(
        "chunked and length",
        "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    ),
    bad(
        "chunked twice",
        "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    ),
    bad(
        "chunked in two fields",
        "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    bad("identity", "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: identity\r\n\r\n"),
    bad(
        "gzip, chunked",
        "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    ),
    bad(
        "chunked, gzip",
        "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    ),
    bad(
        "unknown coding",
        "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    ),
    bad(
        "chunked with a parameter",
        "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n",
    ),
    bad(
        "quoted chunked",
        "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
    ),
    bad("empty coding", "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding:\r\n\r\n"),
    bad(
        "vertical tab before chunked",
        "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    ),
    bad(
        "chunked by HTTP/1.0",
        "POST / HTTP/1.0\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    bad(
        "chunked and a nominated length",
        "POST / HTTP/1.1\r\nHost: test\r\nConnection: Content-Length\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    bad(
        "space in the name of Transfer-Encoding",
        "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\nTransfer-Encoding : chunked\r\n\r\nhello",
    ),
    refused(
        417,
        "unknown expectation",
        "POST / HTTP/1.1\r\nHost: test\r\nExpect: tea\r\nContent-Length: 0\r\n\r\n",
    ),
];

#[test]
fn malformed_heads_are_refused_and_the_connection_closed() {
    let member = Member::echo();
    let proxy = Proxy::start(&Setup::new(&[member.address()]));
    let mut wrong = Vec::new();
    for case in MALFORMED_HEADS {
        if let Err(what) = refuse(&proxy, case) {
            wrong.push(format!("{}: {what}", case.name));
        }
        if member.saw_anything() {
            wrong.push(format!("{}: the member saw {:?}", case.name, member.requests()));
            break;
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        MALFORMED_HEADS.len(),
        wrong.join("\n")
    );
    proxy.client().get("/").assert_status(200);
}

fn refuse(proxy: &Proxy, case: &Case) -> Result<(), String> {
    let mut client = proxy.client();
    // weir may close the connection while the client sends the second request.
    let _ = client.try_send(case.request.to_owned() + FOLLOWER);
    let response = client.try_response(false).map_err(|error| format!("no response: {error}"))?;
    if response.status != case.status {
        return Err(format!("{} instead of {}", response.status, case.status));
    }
    if !response.head.has_token("connection", "close") {
        return Err("no Connection: close".to_owned());
    }
    match client.reader().rest().as_slice() {
        [] => Ok(()),
        rest => Err(format!("more came: {:?}", String::from_utf8_lossy(rest))),
    }
}

/// Chunked bodies with an ambiguous end.
const MALFORMED_CHUNKS: &[(&str, &str)] = &[
    ("size that is no number", "zz\r\nhello\r\n0\r\n\r\n"),
    ("negative size", "-5\r\nhello\r\n0\r\n\r\n"),
    ("signed size", "+5\r\nhello\r\n0\r\n\r\n"),
    ("prefixed size", "0x5\r\nhello\r\n0\r\n\r\n"),
    ("empty size", "\r\nhello\r\n0\r\n\r\n"),
    ("size beyond 64 bits", "10000000000000005\r\nhello\r\n0\r\n\r\n"),
    ("size of many digits", "00000000000000000000000000000000005\r\nhello\r\n0\r\n\r\n"),
    ("space before the size", " 5\r\nhello\r\n0\r\n\r\n"),
    ("space after the size", "5 \r\nhello\r\n0\r\n\r\n"),
    ("underscore in the size", "1_0\r\n0123456789abcdef\r\n0\r\n\r\n"),
    ("bare LF after the size", "5\nhello\r\n0\r\n\r\n"),
    ("bare CR after the size", "5\rhello\r\n0\r\n\r\n"),
    ("bare LF after the data", "5\r\nhello\n0\r\n\r\n"),
    ("nothing after the data", "5\r\nhello0\r\n\r\n"),
    ("more data than announced", "5\r\nhello!\r\n0\r\n\r\n"),
    ("less data than announced", "6\r\nhello\r\n0\r\n\r\n"),
    ("LF in an extension", "5;a\nb\r\nhello\r\n0\r\n\r\n"),
    ("NUL in an extension", "5;a\0b\r\nhello\r\n0\r\n\r\n"),
    ("bare LF after the last chunk", "5\r\nhello\r\n0\n\r\n"),
    ("bare LF after the trailers", "5\r\nhello\r\n0\r\nX: 1\n\r\n"),
    ("trailer without a colon", "5\r\nhello\r\n0\r\nX\r\n\r\n"),
    ("folded trailer", "5\r\nhello\r\n0\r\nX: 1\r\n 2\r\n\r\n"),
    ("trailer with NUL", "5\r\nhello\r\n0\r\nX: \0\r\n\r\n"),
];

#[test]
fn malformed_chunks_never_make_a_request() {
    let member = Member::echo();
    let proxy = Proxy::start(&Setup::new(&[member.address()]));
    let long_extension = format!("5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(100_000));
    let cases =
        MALFORMED_CHUNKS.iter().copied().chain([("endless extension", long_extension.as_str())]);
    let mut wrong = Vec::new();
    for (name, body) in cases {
        let mut client = proxy.client();
        let head = "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n";
        // weir may close the connection while the client sends the second request.
        let _ = client.try_send(format!("{head}{body}{FOLLOWER}"));
        match client.try_response(false) {
            Ok(response) if response.status == 400 => {}
            Ok(response) => wrong.push(format!("{name}: {}", response.status)),
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
        if !client.reader().rest().is_empty() {
            wrong.push(format!("{name}: a second response"));
        }
    }
    // A connection to a member with an incomplete request must not be used for another request.
    std::thread::sleep(Duration::from_millis(100));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(member.request_count(), 0, "{:?}", member.requests());
}

/// Invalid responses of a member. weir must reject them before it has forwarded any byte of the body.
const MALFORMED_RESPONSES: &[(&str, &str)] = &[
    ("nothing at all", ""),
    ("no HTTP", "hello\r\n\r\n"),
    ("status of two digits", "HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n"),
    ("status of four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n"),
    ("status 099", "HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n"),
    ("status 999", "HTTP/1.1 999 High\r\nContent-Length: 0\r\n\r\n"),
    ("version 2.0", "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ("lower-case version", "http/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ("bare LF", "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n"),
    ("bare LF between fields", "HTTP/1.1 200 OK\r\nX: 1\nContent-Length: 0\r\n\r\n"),
    ("space before a colon", "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n"),
    ("obsolete folding", "HTTP/1.1 200 OK\r\nX: 1\r\n 2\r\nContent-Length: 0\r\n\r\n"),
    ("field without a colon", "HTTP/1.1 200 OK\r\nX\r\nContent-Length: 0\r\n\r\n"),
    ("NUL in a value", "HTTP/1.1 200 OK\r\nX: \0\r\nContent-Length: 0\r\n\r\n"),
    ("length that is no number", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"),
    ("negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
    ("differing lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc"),
    ("list of differing lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nabc"),
    (
        "length, and chunked twice",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    ("unknown coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc"),
    ("chunked twice", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
    ("chunked by HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    (
        "101 that nobody asked for",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
    ),
];

#[test]
fn malformed_responses_become_502_and_their_connection_is_not_used_again() {
    let mut wrong = Vec::new();
    for &(name, response) in MALFORMED_RESPONSES {
        let member = Member::script(response);
        let proxy = Proxy::start(&Setup::new(&[member.address()]).pool("retries: 0"));
        let mut client = proxy.client();
        // POST is never retried, so the member sends its invalid response only once.
        let answer = client.post("/", b"x");
        if answer.status != 502 || !answer.complete {
            wrong.push(format!("{name}: {} {:?}", answer.status, answer.text()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn bytes_after_a_response_are_no_answer_to_the_next_request() {
    let member = Member::new(|exchange| {
        exchange.send(
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirstHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison",
        )?;
        Ok(weir_tests::member::Then::KeepAlive)
    });
    let proxy = Proxy::start(&Setup::new(&[member.address()]).top("data_plane: { workers: 1 }"));
    for _ in 0..10 {
        assert_eq!(proxy.client().get("/").assert_status(200).text(), "first");
    }
    assert_eq!(member.connection_count(), 10);
}

#[test]
fn a_tunnel_opens_only_with_101() {
    // CVE-2026-2833 and similar: the bytes after an Upgrade request that the member refused are a request.
    let member = Member::new(|exchange| {
        let target = exchange.request.target().to_owned();
        exchange.answer(target)
    });
    let proxy = Proxy::start(&Setup::new(&[member.address()]));
    let mut client = proxy.client();
    client.send(
        "GET /first HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n\
         GET /%73econd HTTP/1.1\r\nHost: test\r\nX-Private: 1\r\nConnection: X-Private\r\n\r\n",
    );
    assert_eq!(client.response().text(), "/first");
    assert_eq!(client.response().text(), "/second");
    // weir parsed and serialised the second request instead of forwarding its bytes.
    assert_eq!(member.requests()[1].head.field("x-private"), None);
}
