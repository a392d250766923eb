//! Messages forwarded according to RFC 9110 and RFC 9112: framing, interim responses, trailers, persistent connections.

use std::io::Write;
use std::time::Duration;

use weir_tests::client::Client;
use weir_tests::http2::Peer;
use weir_tests::member::{Member, Then};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::wire::Head;

/// A member and a proxy in front of it.
fn behind(member: Member) -> (Member, Proxy) {
    let proxy = Proxy::start(&Setup::new(&[member.address()]));
    (member, proxy)
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let (member, proxy) = behind(Member::new(|exchange| {
        // The first responses take longest, so their order does not follow from their timing.
        let number: u64 = exchange.request.target().trim_start_matches("/n").parse().unwrap_or(0);
        std::thread::sleep(Duration::from_millis(5 * (3 - number.min(3))));
        let target = exchange.request.target().to_owned();
        exchange.answer(target)
    }));
    let requests: String =
        (0..100).map(|number| format!("GET /n{number} HTTP/1.1\r\nHost: test\r\n\r\n")).collect();
    let mut client = proxy.client();
    client.send(requests);
    for number in 0..100 {
        assert_eq!(client.response().assert_status(200).text(), format!("/n{number}"));
    }
    assert_eq!(member.request_count(), 100);
}

#[test]
fn pipelined_posts_keep_their_bodies() {
    let (_member, proxy) = behind(Member::new(|exchange| {
        let body = exchange.request.body.clone();
        exchange.answer(body)
    }));
    let mut client = proxy.client();
    client.send(
        "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nfirst\
         POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nsec\r\n3\r\nond\r\n0\r\n\r\n\
         POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n\
         GET /last HTTP/1.1\r\nHost: test\r\n\r\n",
    );
    for body in ["first", "second", "", ""] {
        assert_eq!(client.response().assert_status(200).text(), body);
    }
}

#[test]
fn a_request_that_comes_byte_by_byte_is_whole() {
    let (member, proxy) = behind(Member::echo());
    let mut client = proxy.client();
    let request = "POST /slow HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n";
    for byte in request.bytes() {
        client.send([byte]);
        std::thread::sleep(Duration::from_millis(1));
    }
    client.response().assert_status(200);
    assert_eq!(member.requests()[0].body, b"body");
}

#[test]
fn a_response_that_comes_byte_by_byte_is_whole() {
    let (_member, proxy) = behind(Member::new(|exchange| {
        let message = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n";
        for byte in message.bytes() {
            exchange.send([byte])?;
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Then::KeepAlive)
    }));
    assert_eq!(proxy.client().get("/").text(), "body");
}

#[test]
fn one_member_connection_serves_many_clients_in_turn() {
    let member = Member::echo();
    let setup = Setup::new(&[member.address()]).top("data_plane: { workers: 1 }");
    let proxy = Proxy::start(&setup);
    let mut clients: Vec<Client> = (0..20).map(|_| proxy.client()).collect();
    for _ in 0..3 {
        for client in &mut clients {
            client.get("/").assert_status(200);
        }
    }
    assert_eq!(member.request_count(), 60);
    assert_eq!(member.connection_count(), 1);
}

#[test]
fn expect_100_continue_gets_its_go_ahead_before_the_body() {
    let (member, proxy) = behind(Member::new(|exchange| {
        let body = exchange.request.body.clone();
        exchange.answer(body)
    }));
    let mut client = proxy.client();
    client
        .send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    let interim = client.reader().head().expect("reading").expect("an interim response");
    // 100 may be from the member or from weir.
    assert!(interim.start.starts_with("HTTP/1.1 100"), "{interim:?}");
    client.send("body");
    assert_eq!(client.response().assert_status(200).text(), "body");
    assert_eq!(member.request_count(), 1);
}

#[test]
fn a_member_may_refuse_what_expects_100_continue() {
    let (_member, proxy) = behind(Member::streaming(|exchange| {
        exchange.send("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n")?;
        Ok(Then::Close)
    }));
    let mut client = proxy.client();
    client
        .send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.response().status, 417);
}

#[test]
fn interim_responses_reach_the_client_in_order() {
    let (_member, proxy) = behind(Member::script(
        "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ));
    let response = proxy.client().get("/");
    assert_eq!(response.text(), "ok");
    let seen: Vec<&str> = response.interim.iter().map(|head| &head.start[9..12]).collect();
    assert_eq!(seen, ["103", "102"]);
    assert_eq!(response.interim[0].field("link"), Some("</a.css>; rel=preload"));
}

#[test]
fn an_http_1_0_client_gets_no_interim_response() {
    let (_member, proxy) = behind(Member::script(
        "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ));
    let mut client = proxy.client();
    client.send("GET / HTTP/1.0\r\n\r\n");
    let response = client.response();
    assert!(response.interim.is_empty(), "{response:?}");
    assert_eq!(response.assert_status(200).text(), "ok");
    client.assert_closed();
}

#[test]
fn an_http_1_0_client_gets_no_chunks() {
    let (member, proxy) = behind(Member::new(|exchange| {
        exchange.send(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
        )?;
        Ok(Then::KeepAlive)
    }));
    let mut client = proxy.client();
    client.send("GET / HTTP/1.0\r\n\r\n");
    let response = client.response();
    assert_eq!(response.assert_status(200).text(), "abc");
    assert!(response.until_close, "{response:?}");
    assert_eq!(response.head.field("transfer-encoding"), None);
    let request = &member.requests()[0];
    assert!(request.head.start.ends_with("HTTP/1.1"), "{request:?}");
    assert_eq!(request.head.all("host").collect::<Vec<_>>(), [""]);
}

#[test]
fn an_http_1_0_member_ends_its_response_by_closing() {
    let (member, proxy) =
        behind(Member::script("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nold but fine"));
    for _ in 0..2 {
        assert_eq!(proxy.client().get("/").assert_status(200).text(), "old but fine");
    }
    assert_eq!(member.connection_count(), 2);
}

#[test]
fn a_body_until_close_keeps_a_1_1_client_connection_or_says_that_it_closes() {
    let (_member, proxy) = behind(Member::script("HTTP/1.1 200 OK\r\n\r\nall there is"));
    let mut client = proxy.client();
    let response = client.get("/");
    assert_eq!(response.assert_status(200).text(), "all there is");
    if response.until_close {
        assert!(response.head.has_token("connection", "close"), "{response:?}");
    } else {
        client.get("/").assert_status(200);
    }
}

#[test]
fn trailers_pass_in_both_directions() {
    let member = Member::new(|exchange| {
        exchange.send(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n\
             2\r\nok\r\n0\r\nX-Sum: 42\r\n\r\n",
        )?;
        Ok(Then::KeepAlive)
    });
    let setup = Setup::new(&[member.address()]).http("request_trailers: forward");
    let proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    client.send(
        "POST / HTTP/1.1\r\nHost: test\r\nTE: trailers\r\nConnection: TE\r\nTransfer-Encoding: chunked\r\n\
         Trailer: X-Digest\r\n\r\n4\r\nbody\r\n0\r\nX-Digest: abc\r\n\r\n",
    );
    let response = client.response();
    assert_eq!(response.assert_status(200).text(), "ok");
    assert_eq!(response.trailers.field("x-sum"), Some("42"));
    let request = &member.requests()[0];
    assert_eq!(request.trailers.field("x-digest"), Some("abc"));
    assert_eq!(request.head.field("trailer"), Some("X-Digest"));
    assert_eq!(request.body, b"body");
}

/// CVE-2016-5385 (httpoxy): as a CGI variable, the header Proxy would set the proxy for the member's own requests.
#[test]
fn no_member_learns_of_a_proxy_from_a_client() {
    let (member, proxy) = behind(Member::echo());
    let mut client = proxy.client();
    client.send(
        "GET / HTTP/1.1\r\nHost: test\r\nProxy: http://192.0.2.1\r\npROXY: x\r\nX-Proxy: y\r\n\
         Proxy-Authorization: z\r\n\r\n",
    );
    client.response().assert_status(200);
    let request = &member.requests()[0];
    assert_eq!(request.head.field("proxy"), None, "{request:?}");
    assert_eq!(request.head.field("x-proxy"), Some("y"));
    assert_eq!(request.head.field("proxy-authorization"), Some("z"));
}

/// Old clients send CR LF after a body, which is not part of the Content-Length (RFC 9112 section 2.2).
#[test]
fn empty_lines_before_a_request_are_skipped() {
    let (member, proxy) = behind(Member::echo());
    let mut client = proxy.client();
    for empty_lines in ["\r\n\r\n", "\r\n", "", "\r\n\r\n"] {
        client.send(format!(
            "{empty_lines}POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\nhi"
        ));
        client.response().assert_status(200);
    }
    for byte in b"\r\n\r\nGET /slowly HTTP/1.1\r\nHost: test\r\n\r\n" {
        client.send([*byte]);
        std::thread::sleep(Duration::from_millis(1));
    }
    client.response().assert_status(200);
    assert_eq!(member.request_count(), 5);
}

#[test]
fn responses_without_a_body_do_not_swallow_the_next() {
    let (_member, proxy) = behind(Member::new(|exchange| {
        let answer = match (exchange.request.method(), exchange.request.target()) {
            ("HEAD", _) => "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
            (_, "/204") => "HTTP/1.1 204 No Content\r\n\r\n",
            (_, "/304") => {
                "HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\nETag: \"x\"\r\n\r\n"
            }
            _ => "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext",
        };
        exchange.send(answer).map(|()| Then::KeepAlive)
    }));
    let mut client = proxy.client();
    client.send("HEAD / HTTP/1.1\r\nHost: test\r\n\r\n");
    let response = client.head_response();
    assert_eq!(response.assert_status(200).head.field("content-length"), Some("1000"));
    for (path, status) in [("/204", 204), ("/304", 304)] {
        client.get(path).assert_status(status);
        assert_eq!(client.get("/200").assert_status(200).text(), "next");
    }
}

#[test]
fn connection_close_is_honoured_on_the_client_side() {
    let (member, proxy) = behind(Member::echo());
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    let response = client.response();
    assert!(response.assert_status(200).head.has_token("connection", "close"), "{response:?}");
    client.assert_closed();
    // `Connection: close` is for this hop only.
    assert!(!member.requests()[0].head.has_token("connection", "close"));
}

#[test]
fn connection_close_of_a_member_leaves_the_client_connection() {
    let (member, proxy) = behind(Member::new(|exchange| {
        exchange.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")?;
        Ok(Then::Close)
    }));
    let mut client = proxy.client();
    for _ in 0..3 {
        let response = client.get("/");
        assert!(!response.assert_status(200).head.has_token("connection", "close"), "{response:?}");
    }
    assert_eq!(member.connection_count(), 3);
}

#[test]
fn hop_by_hop_fields_end_here() {
    let (member, proxy) = behind(Member::new(|exchange| {
        exchange.send(
            "HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n\
             X-End: 2\r\nContent-Length: 0\r\n\r\n",
        )?;
        Ok(Then::KeepAlive)
    }));
    let mut client = proxy.client();
    client.send(
        "GET / HTTP/1.1\r\nHost: test\r\nConnection: X-Private, Host, keep-alive\r\nX-Private: 1\r\n\
         Keep-Alive: 300\r\nProxy-Connection: keep-alive\r\nUpgrade: h2c\r\nTE: gzip\r\nX-End: 2\r\n\r\n",
    );
    let response = client.response();
    let request = &member.requests()[0].head;
    for name in ["x-private", "keep-alive", "proxy-connection", "upgrade", "te"] {
        assert_eq!(request.field(name), None, "{request:?}");
    }
    assert_eq!(request.field("x-end"), Some("2"));
    // Host is forwarded even if `Connection` lists it.
    assert_eq!(request.all("host").collect::<Vec<_>>(), ["test"]);
    for name in ["x-hop", "keep-alive"] {
        assert_eq!(response.head.field(name), None, "{response:?}");
    }
    assert_eq!(response.head.field("x-end"), Some("2"));
}

#[test]
fn nothing_is_added_that_was_not_configured() {
    let (member, proxy) =
        behind(Member::script("HTTP/1.1 200 OK\r\nA: b\r\nDate: now\r\nContent-Length: 0\r\n\r\n"));
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: test\r\nC: d\r\n\r\n");
    let response = client.response().head;
    let request = &member.requests()[0].head;
    let fields = |head: &Head| -> Vec<String> {
        head.fields.iter().map(|(name, value)| format!("{name}: {value}")).collect()
    };
    assert_eq!(fields(request), ["Host: test", "C: d"]);
    assert_eq!(fields(&response), ["A: b", "Date: now", "Content-Length: 0"]);
}

#[test]
fn a_response_without_date_gets_the_time_of_its_receipt() {
    let (_member, proxy) = behind(Member::script(
        "HTTP/1.1 103 Early Hints\r\n\r\n\
         HTTP/1.1 200 OK\r\nConnection: Date\r\nDate: never\r\nContent-Length: 0\r\n\r\n",
    ));
    let own_date = || {
        let mut client = proxy.client();
        client.send("no request\r\n\r\n");
        client.response().assert_status(400).head.field("date").map(str::to_owned)
    };
    let mut client = proxy.client();
    // All three times are in the same second in at least one of ten attempts.
    let in_one_second = (0..10).any(|_| {
        let before = own_date();
        let response = client.get("/");
        let date = response.assert_status(200).head.field("date");
        assert!(date.is_some_and(|date| date.ends_with(" GMT")), "{response:?}");
        assert_eq!(response.head.all("date").count(), 1, "{response:?}");
        assert_eq!(response.interim[0].field("date"), None, "{response:?}");
        before == own_date() && before.as_deref() == date
    });
    assert!(in_one_second);
}

/// A member that answers TRACE would tell the client what weir has added to the head.
#[test]
fn requests_for_the_request_itself_reach_members_only_if_they_may() {
    let member = Member::echo();
    let setup = Setup::new(&[member.address()]).http("http2: true");
    let proxy = Proxy::start(&setup);
    for method in ["TRACE", "TRACK", "trace", "Trace", "tRACK"] {
        let mut client = proxy.client();
        client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n"));
        let response = client.response();
        let allowed = response.assert_status(405).head.field("allow").unwrap_or_default();
        assert!(allowed.contains("GET") && !allowed.contains("TRACE"), "{response:?}");
        // The connection goes on.
        client.get("/").assert_status(200);
        let mut peer = Peer::connect(proxy.address());
        let stream = peer.request(method, "/", &[], true);
        peer.response(stream).assert_status(405);
    }
    let methods: Vec<String> = member.requests().iter().map(|it| it.method().to_owned()).collect();
    assert_eq!(methods, ["GET"; 5]);
    let proxy = Proxy::start(&setup.http("trace: true"));
    for method in ["TRACE", "TRACK"] {
        let mut client = proxy.client();
        client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n"));
        client.response().assert_status(200);
    }
    assert_eq!(member.request_count(), 7);
}

#[test]
fn forwards_are_counted_and_end_here() {
    let member = Member::echo();
    let setup = Setup::new(&[member.address()]).http("trace: true").access_log();
    let mut proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    let mut ask = |method: &str, value: &str| {
        client.send(format!("{method} / HTTP/1.1\r\nHost: test\r\nMax-Forwards: {value}\r\n\r\n"));
        client.response()
    };
    for (method, value, sent) in [
        ("OPTIONS", "1", "0"),
        ("TRACE", "10", "9"),
        ("OPTIONS", "123456789012345678901234567890", "4294967294"),
        ("GET", "0", "0"),
    ] {
        ask(method, value).assert_status(200);
        let requests = member.requests();
        let request = &requests.last().expect("a request").head;
        let seen: Vec<&str> = request.all("max-forwards").collect();
        assert_eq!(seen, [sent], "{method} {value}");
    }
    let before = member.request_count();
    let response = ask("OPTIONS", "0");
    assert!(response.assert_status(204).body.is_empty(), "{response:?}");
    for name in ["content-length", "content-type", "allow"] {
        assert_eq!(response.head.field(name), None, "{response:?}");
    }
    let response = ask("TRACE", "0");
    assert!(response.assert_status(405).head.field("allow").is_some(), "{response:?}");
    // The connection continues until it receives an invalid request.
    ask("GET", "0").assert_status(200);
    ask("OPTIONS", "-1").assert_status(400);
    assert_eq!(member.request_count(), before + 1);
    weir_tests::eventually("the log is written", weir_tests::STEP_TIMEOUT, || {
        proxy.process().output().contains("\"client_malformed\"")
    });
    let log = proxy.process().output();
    for (status, termination) in [(204, "complete"), (405, "complete"), (400, "client_malformed")] {
        let line = log.lines().find(|line| line.contains(&format!("\"status\":{status},")));
        let line = line.unwrap_or_else(|| panic!("no line with {status}: {log}"));
        assert!(line.contains(&format!("\"termination\":\"{termination}\"")), "{line}");
        assert!(!line.contains("\"member\":"), "{line}");
    }
}

#[test]
fn targets_reach_the_member_in_canonical_form() {
    let (member, proxy) = behind(Member::echo());
    let table = [
        ("GET http://other.example/a?b HTTP/1.1\r\nHost: other.example", "/a?b", "other.example"),
        ("GET http://other.example HTTP/1.1\r\nHost: other.example", "/", "other.example"),
        ("OPTIONS * HTTP/1.1\r\nHost: test", "*", "test"),
        ("GET /a/./b/../c HTTP/1.1\r\nHost: test", "/a/c", "test"),
        ("GET /../a/../../b HTTP/1.1\r\nHost: test", "/b", "test"),
        ("GET /%61%2d%7Eb HTTP/1.1\r\nHost: test", "/a-~b", "test"),
        ("GET /q?x=/../y HTTP/1.1\r\nHost: test", "/q?x=/../y", "test"),
        ("\r\nGET /after-empty-line HTTP/1.1\r\nHost: test", "/after-empty-line", "test"),
    ];
    let mut client = proxy.client();
    for (request, target, host) in table {
        client.send(format!("{request}\r\n\r\n"));
        client.response().assert_status(200);
        let requests = member.requests();
        let seen = requests.last().expect("a request");
        assert_eq!(seen.target(), target, "{request}");
        assert_eq!(seen.head.all("host").collect::<Vec<_>>(), [host], "{request}");
    }
}

#[test]
fn a_client_that_half_closes_after_its_request_gets_the_response() {
    let member = Member::new(|exchange| {
        std::thread::sleep(Duration::from_millis(200));
        exchange.answer("late")
    });
    let proxy = Proxy::start(&Setup::new(&[member.address()]).http("half_closed: wait"));
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n").finish();
    assert_eq!(client.response().assert_status(200).text(), "late");
    client.assert_closed();
}

#[test]
fn a_half_close_within_a_request_body_is_no_request() {
    let (member, proxy) = behind(Member::echo());
    for request in [
        "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\nhalf",
        "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\n",
    ] {
        let mut client = proxy.client();
        client.send(request).finish();
        if let Ok(response) = client.try_response(false) {
            assert_eq!(response.status, 400, "{request:?}");
        }
    }
    assert_eq!(member.request_count(), 0, "{:?}", member.requests());
}

#[test]
fn the_member_may_answer_before_the_body_has_come() {
    let (_member, proxy) = behind(Member::streaming(|exchange| {
        exchange
            .send("HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnope")?;
        Ok(Then::Close)
    }));
    let mut client = proxy.client();
    client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 100000000\r\n\r\nstart");
    // The client does not send the rest, so the response must not wait for it.
    assert_eq!(client.response().assert_status(403).text(), "nope");
}

#[test]
fn a_client_that_goes_away_frees_its_member_connection() {
    let (member, mut proxy) = behind(Member::new(|exchange| {
        std::thread::sleep(Duration::from_millis(300));
        exchange.answer("nobody reads this")
    }));
    let descriptors = proxy.process().descriptors();
    let open = [(); 20].map(|()| proxy.client());
    weir_tests::eventually("open sockets are seen", weir_tests::STEP_TIMEOUT, || {
        proxy.process().descriptors() > descriptors + open.len() / 2
    });
    drop(open);
    for _ in 0..20 {
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
        client.reset();
    }
    weir_tests::eventually(
        "clients' and members' sockets closed",
        weir_tests::STEP_TIMEOUT,
        || proxy.process().descriptors() <= descriptors + 4 && member.open_connections() <= 4,
    );
    proxy.client().get("/").assert_status(200);
}

#[test]
fn a_response_body_passes_in_any_chunking() {
    let (_member, proxy) = behind(Member::new(|exchange| {
        exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        for size in [1_usize, 2, 15, 16, 4095, 4096, 65_535, 65_536, 100_000] {
            let mut chunk = format!("{size:X};name=\"value\"\r\n").into_bytes();
            chunk.extend(std::iter::repeat_n(b'x', size));
            chunk.extend(b"\r\n");
            exchange.stream().write_all(&chunk)?;
        }
        exchange.send("000\r\n\r\n").map(|()| Then::KeepAlive)
    }));
    let mut client = proxy.client();
    for _ in 0..2 {
        let response = client.get("/");
        assert_eq!(
            response.assert_status(200).body.len(),
            1 + 2 + 15 + 16 + 4095 + 4096 + 65_535 + 65_536 + 100_000
        );
    }
}
