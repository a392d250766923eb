//! HTTP/2 clients: messages in both directions, with real and raw clients, and responses of weir itself.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weir_tests::http2::{Frame, Message, Peer, code};
use weir_tests::member::{Exchange, Member, Then};
use weir_tests::pattern::{self, Checker};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{STEP_TIMEOUT, eventually, require, tls, tools};

use super::{connect, h2c, metric, start};

// Real clients

#[test]
fn curl_speaks_it_over_tls_and_without() {
    require!("curl");
    let member = Member::echo();
    let setup = Setup::new(&[member.address()]).virtual_server(&tls::shop(""));
    let secure = Proxy::start(&setup);
    let version = ["-o", "/dev/null", "-w", "%{http_version} %{http_code}"];
    let ask = |more: &[&str]| tls::get(secure.address(), "/a?b", &[&version[..], more].concat());
    assert_eq!(ask(&["--http2"]), "2 200");
    assert_eq!(ask(&["--http2", "--head"]), "2 200");
    assert_eq!(ask(&["--http2", "-d", "hello"]), "2 200");
    assert_eq!(ask(&["--http1.1"]), "1.1 200", "who does not want it is served as before");
    assert_eq!(metric(&secure, "http2_connections_total"), 3.0);

    let plain = start(&member);
    let curl = |arguments: &[&str]| {
        let mut command = Command::new("curl");
        tools::run(command.args(["-sS", "--max-time", "20"]).args(arguments).arg(plain.url("/x")))
    };
    assert!(curl(&["--http2-prior-knowledge"]).starts_with("GET /x HTTP/1.1\r\n"));
    let posted = curl(&["--http2-prior-knowledge", "-d", "hello"]);
    assert!(posted.ends_with("\r\n\r\nhello"), "{posted}");
    assert!(curl(&["--http1.1"]).starts_with("GET /x HTTP/1.1\r\n"), "both on one port");
    // `Upgrade: h2c`: RFC 9113 removed it, so weir responds over HTTP/1.1.
    assert!(curl(&["--http2"]).starts_with("GET /x HTTP/1.1\r\n"));
}

#[test]
fn nghttp_and_h2load_get_every_response() {
    require!("nghttp", "h2load");
    let member = Member::named("here");
    let proxy = start(&member);
    let text = tools::run(Command::new("nghttp").arg("-v").arg(proxy.url("/a")));
    assert!(text.contains(":status: 200") && text.contains("here"), "{text}");
    let loads = ["-n", "2000", "-c", "8", "-m", "20"];
    let text = tools::run(Command::new("h2load").args(loads).arg(proxy.url("/")));
    assert!(text.contains("2000 succeeded, 0 failed, 0 errored"), "{text}");
}

// Messages

#[test]
fn methods_keep_their_meaning_and_one_connection_serves_all() {
    let member = Member::new(|exchange| match exchange.request.method() {
        "HEAD" => {
            exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n").map(|()| Then::KeepAlive)
        }
        "DELETE" => exchange.send("HTTP/1.1 204 No Content\r\n\r\n").map(|()| Then::KeepAlive),
        _ => exchange.echo(),
    });
    let proxy = start(&member);
    let mut peer = connect(&proxy);
    let got = peer.get("/a");
    assert!(got.assert_status(200).text().starts_with("GET /a HTTP/1.1\r\nHost: test\r\n"));
    assert!(got.field("date").is_some() && got.field("connection").is_none(), "{got:?}");
    let stream = peer.request("HEAD", "/", &[], true);
    let head = peer.response(stream);
    assert_eq!((head.assert_status(200).field("content-length"), head.body.len()), (Some("7"), 0));
    let stream = peer.request("DELETE", "/", &[], true);
    peer.response(stream).assert_status(204);
    assert!(peer.post("/", b"hello").assert_status(200).text().ends_with("\r\n\r\nhello"));
    assert_eq!((metric(&proxy, "http2_connections_total"), member.connection_count()), (1.0, 1));
}

/// Sends the pattern and checks the received bytes concurrently.
fn both_ways(exchange: &mut Exchange, size: u64) -> std::io::Result<Then> {
    let mut out = exchange.stream().try_clone()?;
    let sender = std::thread::spawn(move || {
        use std::io::Write;
        let mut block = vec![0; 100_000];
        write!(out, "HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n")?;
        for start in (0..size).step_by(block.len()) {
            let length = block.len().min((size - start) as usize);
            pattern::fill(&mut block[..length], start);
            out.write_all(&block[..length])?;
        }
        std::io::Result::Ok(())
    });
    let mut checker = Checker::default();
    exchange.read_body(|bytes| checker.take(bytes))?;
    checker.assert_whole(size);
    sender.join().expect("the sender")?;
    Ok(Then::KeepAlive)
}

#[test]
fn large_bodies_go_both_ways_at_once_on_many_streams() {
    const STREAMS: usize = 20;
    const SIZE: u64 = 2_000_003;
    let member = Member::streaming(|exchange| both_ways(exchange, SIZE));
    let proxy = start(&member);
    let mut peer = connect(&proxy);
    let length = SIZE.to_string();
    let mut sent: Vec<(u32, u64)> = (0..STREAMS)
        .map(|_| (peer.request("POST", "/", &[("content-length", &length)], false), 0))
        .collect();
    let streams: Vec<u32> = sent.iter().map(|(stream, _)| *stream).collect();
    let mut block = vec![0; 16_000];
    while !sent.is_empty() {
        let mut has_sent = false;
        for (stream, at) in &mut sent {
            let part = peer.allowance(*stream).min(block.len()).min((SIZE - *at) as usize);
            pattern::fill(&mut block[..part], *at);
            if part > 0 {
                *at += part as u64;
                peer.data(*stream, &block[..part], *at == SIZE);
                has_sent = true;
            }
        }
        sent.retain(|(_, at)| *at < SIZE);
        if !has_sent {
            assert!(peer.pump(), "closed: {:?}", peer.goaways);
        }
    }
    for stream in streams {
        let response = peer.response(stream);
        let mut checker = Checker::default();
        checker.take(&response.assert_status(200).body);
        checker.assert_whole(SIZE);
    }
    eventually("nothing is left", STEP_TIMEOUT, || metric(&proxy, "requests_active") == 0.0);
}

#[test]
fn requests_that_are_with_their_members_leave_the_window_to_others() {
    let is_open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&is_open);
    let member = Member::new(move |exchange| {
        if exchange.request.target() == "/held" {
            eventually("the gate", STEP_TIMEOUT, || gate.load(Ordering::Acquire));
        }
        exchange.answer("done")
    });
    let proxy = start(&member);
    let mut peer = connect(&proxy);
    // Complete requests that nearly fill the window of the connection, before weir has connected to the member.
    peer.settle();
    let window = peer.allowance_of_connection();
    let part = vec![b'x'; 16_000];
    let mut held = Vec::new();
    let lines: [(&[u8], &[u8]); 4] = [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", b"/held"),
        (b":authority", b"test"),
    ];
    for _ in 0..window / part.len() {
        let stream = peer.new_stream();
        peer.send_bytes(Frame::headers(stream, &lines, false).bytes()).expect("sent");
        peer.data(stream, &part, true);
        held.push(stream);
    }
    member.wait_for_requests(held.len());
    peer.post("/", &[b'x'; 200_000]).assert_status(200);
    is_open.store(true, Ordering::Release);
    for stream in held {
        peer.response(stream).assert_status(200);
    }
}

#[test]
fn trailers_pass_both_ways() {
    let member = Member::new(|exchange| {
        let seen = exchange.request.trailers.field("x-sum").unwrap_or("none").to_owned();
        exchange.send(format!(
            "HTTP/1.1 200 OK\r\nTrailer: X-Back\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\
             X-Back: {seen}\r\nContent-Length: 3\r\n\r\n"
        ))?;
        Ok(Then::KeepAlive)
    });
    let proxy = Proxy::start(&h2c(&[&member]).http("request_trailers: forward"));
    let mut peer = connect(&proxy);
    let stream = peer.request("POST", "/", &[("trailer", "x-sum")], false);
    peer.data(stream, b"body", false).headers(stream, &[("x-sum", "42")], true);
    let response = peer.response(stream);
    assert_eq!(response.assert_status(200).text(), "hello");
    assert_eq!(response.trailers, [("x-back".to_owned(), "42".to_owned())]);
    assert_eq!(response.field("trailer"), Some("X-Back"));
    // Trailers without data.
    let stream = peer.request("POST", "/", &[], false);
    peer.headers(stream, &[("x-sum", "43")], true);
    assert_eq!(peer.response(stream).assert_status(200).trailers[0].1, "43");
}

#[test]
fn interim_responses_come_before_the_final_one() {
    let member = Member::new(|exchange| {
        exchange.send("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n")?;
        let body = exchange.request.body.clone();
        exchange.answer(body)
    });
    let proxy = start(&member);
    let mut peer = connect(&proxy);
    let stream = peer.request("POST", "/", &[("expect", "100-continue")], false);
    let is_told = |peer: &Peer| peer.streams.get(&stream).is_some_and(|it| it.status() == 100);
    // The client sends the body only after 100.
    peer.pump_until("100", is_told);
    peer.data(stream, b"now", true);
    let response = peer.response(stream);
    assert_eq!(response.assert_status(200).text(), "now");
    let interim: Vec<&str> = response.interim.iter().map(|head| head[0].1.as_str()).collect();
    assert_eq!(interim, ["100", "103"]);
    assert!(response.interim[1].contains(&("link".to_owned(), "</a.css>".to_owned())));
}

#[test]
fn any_framing_of_a_member_ends_its_stream() {
    for (head, ends) in [
        ("HTTP/1.1 200 OK\r\n\r\n", true),
        ("HTTP/1.0 200 OK\r\n\r\n", true),
        ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false),
    ] {
        let member = Member::script(format!("{head}hello"));
        let proxy = start(&member);
        let mut peer = connect(&proxy);
        for _ in 0..3 {
            let stream = peer.request("GET", "/", &[], true);
            let response = peer.response(stream);
            assert_eq!(response.ended, ends, "{head:?}: {response:?}");
            if ends {
                assert_eq!(response.assert_status(200).text(), "hello", "{head:?}");
            } else {
                assert_eq!(response.reset, Some(code::INTERNAL_ERROR), "{head:?}");
            }
        }
    }
}

// Responses of weir itself, and rules

#[test]
fn own_responses_end_their_stream_alone() {
    let member = Member::named("member");
    let rules = [
        r#"{ when: 'request.path == "/moved"', then: [ { redirect: { to: "https://new.example${request.target}", status: 301 } } ] }"#,
        r#"{ when: 'request.path == "/none"', then: [ { respond: { status: 404, body: "not here" } } ] }"#,
    ];
    let setup = h2c(&[&member])
        .http("body_size_max: 1KiB")
        .http("head_size_max: 4KiB")
        .virtual_server("policies: [ p ]")
        .virtual_server("error_pages: { 413: { body: \"too much\", content_type: text/x-page } }")
        .top(&format!("policies:\n  p:\n    rules:\n      - {}\n      - {}", rules[0], rules[1]));
    let proxy = Proxy::start(&setup);
    let mut peer = connect(&proxy);
    let moved = peer.get("/moved");
    assert_eq!(moved.assert_status(301).field("location"), Some("https://new.example/moved"));
    assert_eq!(peer.get("/none").assert_status(404).text(), "not here");
    let stream = peer.request("HEAD", "/none", &[], true);
    let head = peer.response(stream);
    assert_eq!((head.assert_status(404).field("content-length"), head.body.len()), (Some("8"), 0));

    // A Content-Length above the limit is rejected before the body.
    let stream = peer.request("POST", "/", &[("content-length", "1025")], false);
    let refused = peer.response(stream);
    assert_eq!(refused.assert_status(413).text(), "too much");
    assert_eq!(refused.field("content-type"), Some("text/x-page"));
    // A body without Content-Length is rejected when it exceeds the limit.
    let response = peer.post("/", &[b'x'; 1025]);
    response.assert_status(413);
    assert_eq!(peer.post("/", &[b'x'; 1024]).assert_status(200).text(), "member");

    let long = "x".repeat(9_000);
    let stream = peer.request("GET", "/", &[("x", &long)], true);
    peer.response(stream).assert_status(431);
    let many: Vec<(String, &str)> = (0..200).map(|number| (format!("x-{number}"), "1")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (&**name, *value)).collect();
    let stream = peer.request("GET", "/", &many, true);
    peer.response(stream).assert_status(431);
    // The connection remains usable.
    assert_eq!(peer.get("/").assert_status(200).text(), "member");
    assert_eq!(metric(&proxy, "http2_connections_total"), 1.0);
}

#[test]
fn limits_refuse_streams_and_leave_the_connection() {
    let (member, gate) = Member::gated("done");
    let setup = h2c(&[&member]).virtual_server("limits: { per_key: [ { requests: 2 } ] }");
    let proxy = Proxy::start(&setup);
    let mut peer = connect(&proxy);
    let under_way = [0; 2].map(|_| peer.request("GET", "/", &[], true));
    member.wait_for_requests(2);
    assert_eq!(peer.get("/").assert_status(429).field("retry-after"), Some("1"));
    gate.open();
    for stream in under_way {
        peer.response(stream).assert_status(200);
    }
    peer.get("/").assert_status(200);
}

#[test]
fn policies_see_version_host_and_one_cookie() {
    let member = Member::echo();
    let rule = "{ then: [ { set_header: { X-Seen: \"${request.version}|${request.host}|${request.cookies['b']}|${request.scheme}\" } } ] }";
    let setup = h2c(&[&member])
        .virtual_server("policies: [ p ]")
        .top(&format!("policies:\n  p:\n    rules:\n      - {rule}"));
    let proxy = Proxy::start(&setup);
    let mut peer = connect(&proxy);
    let stream = peer.request("GET", "/", &[("cookie", "a=1"), ("cookie", "b=2")], true);
    let seen = peer.response(stream).assert_status(200).text();
    assert!(seen.contains("\r\nX-Seen: 2|test|2|http\r\n"), "{seen}");
    assert!(seen.contains("\r\ncookie: a=1; b=2\r\n"), "{seen}");
}

#[test]
fn a_cookie_keeps_a_client_at_its_member() {
    let directory = TempDir::new("http2-persistence");
    let members = ["one", "two", "three"].map(Member::named);
    let setup = h2c(&members.each_ref())
        .virtual_server("persistence: test")
        .top("persistence:\n  test: { type: cookie }")
        .top(&format!("state_dir: {}", directory.path().display()));
    let proxy = Proxy::start(&setup);
    let mut peer = connect(&proxy);
    let first = peer.get("/");
    let cookie = first.field("set-cookie").expect("a cookie").split(';').next().unwrap_or_default();
    for _ in 0..9 {
        let stream = peer.request("GET", "/", &[("cookie", "a=1"), ("cookie", cookie)], true);
        assert_eq!(peer.response(stream).assert_status(200).text(), first.text());
    }
}

#[test]
fn responses_are_compressed() {
    require!("curl");
    let body = "a line that repeats itself\n".repeat(10_000);
    let answer = body.clone();
    let member = Member::new(move |exchange| {
        exchange.send(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n",
        )?;
        for piece in answer.as_bytes().chunks(30_000) {
            exchange.send(format!("{:x}\r\n", piece.len()))?;
            exchange.send([piece, b"\r\n"].concat())?;
        }
        exchange.send("0\r\nX-Trailer: 1\r\n\r\n").map(|()| Then::KeepAlive)
    });
    let proxy = Proxy::start(&h2c(&[&member]).virtual_server("compression: {}"));
    for coding in ["gzip", "br", "zstd"] {
        let accepts = format!("Accept-Encoding: {coding}");
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--http2-prior-knowledge", "--compressed", "-H", &accepts]);
        assert!(tools::run(curl.arg(proxy.url("/"))) == body, "{coding}");
    }
    let mut peer = connect(&proxy);
    let mut response = Message::default();
    // A busy worker skips compression for some responses.
    eventually("it is compressed", STEP_TIMEOUT, || {
        let stream = peer.request("GET", "/", &[("accept-encoding", "gzip")], true);
        response = peer.response(stream);
        response.assert_status(200).field("content-encoding") == Some("gzip")
    });
    assert!(response.body.len() < body.len() / 10, "{}", response.body.len());
    assert_eq!(response.trailers[0].1, "1");
}

#[test]
fn the_access_log_names_the_version_and_how_streams_ended() {
    let member = Member::new(|exchange| match exchange.request.target() {
        "/cut" => {
            exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")?;
            Ok(Then::Close)
        }
        _ => exchange.answer("here"),
    });
    let mut proxy = Proxy::start(&h2c(&[&member]).access_log());
    let mut peer = connect(&proxy);
    peer.get("/logged").assert_status(200);
    let stream = peer.request("GET", "/cut", &[], true);
    assert_eq!(peer.response(stream).reset, Some(code::INTERNAL_ERROR));
    let stream = peer.request("GET", "/malformed", &[("connection", "close")], true);
    assert_eq!(peer.response(stream).reset, Some(code::PROTOCOL_ERROR));
    let line = |proxy: &mut Proxy, text: &str| {
        let mut found = None;
        eventually(text, STEP_TIMEOUT, || {
            let log = proxy.process().output();
            found = log.lines().find(|line| line.contains(text)).map(str::to_owned);
            found.is_some()
        });
        found.expect("a line")
    };
    let logged = line(&mut proxy, "/logged");
    assert!(logged.contains("HTTP/2.0") && logged.contains("\"complete\""), "{logged}");
    let cut = line(&mut proxy, "/cut");
    assert!(cut.contains("\"termination\":\"member_abort\""), "{cut}");
    line(&mut proxy, "\"termination\":\"client_malformed\"");
}

#[test]
fn a_body_waits_with_its_request_for_a_member() {
    let (member, gate) = Member::gated("done");
    let busy = format!("{{ address: {}, connections_max: 1 }}", member.address());
    let setup = Setup::new(&[]).member(&busy).http("http2: true");
    let setup = setup.http("request_trailers: forward");
    let proxy = Proxy::start(&setup.pool("queue: { timeout: 60s }"));
    let mut peer = connect(&proxy);
    let first = peer.request("GET", "/first", &[], true);
    member.wait_for_requests(1);
    let held = peer.request("POST", "/held", &[], false);
    peer.data(held, b"one ", false);
    eventually("it waits", STEP_TIMEOUT, || proxy.metric("weir_pool_queue_requests", &[]) >= 1.0);
    peer.data(held, b"two ", false);
    peer.headers(held, &[("x-end", "3")], true);
    let given_up = peer.request("POST", "/given-up", &[], false);
    peer.data(given_up, b"nobody wants this", false);
    peer.settle();
    peer.send(&Frame::reset(given_up, code::CANCEL));
    eventually("it has left", STEP_TIMEOUT, || {
        proxy.metric("weir_pool_queue_requests", &[]) == 1.0
    });
    gate.open();
    peer.response(first).assert_status(200);
    peer.response(held).assert_status(200);
    let requests = member.requests();
    assert_eq!(requests.len(), 2, "{requests:?}");
    assert_eq!((requests[1].target(), &requests[1].body[..]), ("/held", &b"one two "[..]));
    assert_eq!(requests[1].trailers.field("x-end"), Some("3"));
}

#[test]
fn a_request_goes_on_to_another_member() {
    let bad = Member::new(|_| Ok(Then::Close));
    let good = Member::echo();
    let proxy = Proxy::start(&h2c(&[&bad, &good]));
    let mut peer = connect(&proxy);
    let streams: Vec<u32> = (0..8).map(|_| peer.request("GET", "/", &[], true)).collect();
    for stream in streams {
        peer.response(stream).assert_status(200);
    }
    for _ in 0..4 {
        let stream = peer.request("PUT", "/", &[], false);
        peer.data(stream, b"once ", false).data(stream, b"more", true);
        let response = peer.response(stream);
        assert!(response.assert_status(200).text().contains("once "), "{response:?}");
    }
    assert!(bad.request_count() > 0, "it was tried");
}
