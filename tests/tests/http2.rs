//! HTTP/2 from clients: what the other scenarios show for HTTP/1.1, on streams.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use weir_tests::http2::{Frame, Message, Peer, code, flag, kind, setting};
use weir_tests::member::{Exchange, Member, Then};
use weir_tests::pattern::{self, Checker};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{STEP_TIMEOUT, eventually, require, tls, tools, websocket};

/// A proxy before these members that takes HTTP/2 without TLS.
fn h2c(members: &[&Member]) -> Setup {
    let addresses: Vec<SocketAddr> = members.iter().map(|member| member.address()).collect();
    Setup::new(&addresses).http("http2: true")
}

fn start(member: &Member) -> Proxy {
    Proxy::start(&h2c(&[member]))
}

/// A connection, and the settings of the other side.
fn connect(proxy: &Proxy) -> Peer {
    let mut peer = Peer::connect(proxy.address());
    peer.pump_until("its settings", |peer| !peer.settings.is_empty());
    peer
}

fn metric(proxy: &Proxy, name: &str) -> f64 {
    proxy.metric(&format!("weir_virtual_server_{name}"), &["\"main\""])
}

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
    // Upgrade: h2c is gone with RFC 9113; the request is served as it is.
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

/// Sends the pattern and checks what comes, both at once.
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
    // Nearly all of the connection's window, whole requests, before their members are even connected.
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
    let proxy = start(&member);
    let mut peer = connect(&proxy);
    let stream = peer.request("POST", "/", &[("trailer", "x-sum")], false);
    peer.data(stream, b"body", false).headers(stream, &[("x-sum", "42")], true);
    let response = peer.response(stream);
    assert_eq!(response.assert_status(200).text(), "hello");
    assert_eq!(response.trailers, [("x-back".to_owned(), "42".to_owned())]);
    assert_eq!(response.field("trailer"), Some("X-Back"));
    // Without data, too.
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
    // The body is not sent before.
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

// What weir says itself, and what it does with requests

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

    // A length that is too large is refused before its body.
    let stream = peer.request("POST", "/", &[("content-length", "1025")], false);
    let refused = peer.response(stream);
    assert_eq!(refused.assert_status(413).text(), "too much");
    assert_eq!(refused.field("content-type"), Some("text/x-page"));
    // A body that turns out to be too large is refused when it does.
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
    // The connection has lived through all of it.
    assert_eq!(peer.get("/").assert_status(200).text(), "member");
    assert_eq!(metric(&proxy, "http2_connections_total"), 1.0);
}

#[test]
fn limits_refuse_streams_and_leave_the_connection() {
    let (member, is_open) = Member::gated("done");
    let setup = h2c(&[&member]).virtual_server("limits: { per_key: [ { requests: 2 } ] }");
    let proxy = Proxy::start(&setup);
    let mut peer = connect(&proxy);
    let under_way = [0; 2].map(|_| peer.request("GET", "/", &[], true));
    member.wait_for_requests(2);
    assert_eq!(peer.get("/").assert_status(429).field("retry-after"), Some("1"));
    is_open.store(true, Ordering::Release);
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
    // A worker that is busy compresses less.
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
    let (member, is_open) = Member::gated("done");
    let busy = format!("{{ address: {}, connections_max: 1 }}", member.address());
    let setup = Setup::new(&[]).member(&busy).http("http2: true");
    let proxy = Proxy::start(&setup.pool("queue: { timeout: 10s }"));
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
    is_open.store(true, Ordering::Release);
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

// Slow, failing and leaving

/// Answers with so many bytes as the target says.
fn sized() -> Member {
    Member::new(|exchange| {
        let size = exchange.request.target()[1..].parse().unwrap_or(0);
        let mut body = vec![0; size];
        pattern::fill(&mut body, 0);
        exchange.answer(body)
    })
}

#[test]
fn a_slow_reader_holds_its_own_stream_alone_and_little_memory() {
    const GROWTH_BYTES_MAX: u64 = 8 * 1024 * 1024;
    let member = sized();
    let mut proxy = Proxy::start(&h2c(&[&member]).http("body_timeout: 1s").access_log());
    let mut peer = connect(&proxy);
    peer.get("/0");
    let before = proxy.process().resident_bytes();
    // A window of 1 KiB each, and none for more; the connection's stays open.
    let mut settings = vec![];
    Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, 1024)]).write(&mut settings);
    Frame::window_update(0, 10_000_000).write(&mut settings);
    peer.send_bytes(settings).expect("sent");
    peer.holds_windows = true;
    let slow: Vec<u32> = (0..20).map(|_| peer.request("GET", "/5000000", &[], true)).collect();
    peer.pump_until("what the windows let out", |peer| {
        slow.iter().all(|stream| peer.streams.get(stream).is_some_and(|it| it.body.len() == 1024))
    });
    let grown = proxy.process().resident_bytes().saturating_sub(before);
    assert!(grown < GROWTH_BYTES_MAX, "{grown} bytes more");
    // One of them reads on, slowly.
    let going = slow[0];
    for _ in 0..8 {
        peer.pump_for(Duration::from_millis(250));
        peer.send(&Frame::window_update(going, 2_000));
        peer.get("/500").assert_status(200);
    }
    for stream in &slow[1..] {
        let response = peer.response(*stream);
        assert_eq!((response.reset, response.ended), (Some(code::CANCEL), false));
    }
    assert_eq!(peer.streams[&going].reset, None, "it takes something");
    assert_eq!(proxy.metric("weir_virtual_server_timeouts_total", &["\"body\""]), 19.0);
    peer.send(&Frame::window_update(going, 6_000_000));
    let mut checker = Checker::default();
    checker.take(&peer.response(going).assert_status(200).body);
    checker.assert_whole(5_000_000);
    let log = proxy.process().output();
    assert_eq!(log.matches("\"termination\":\"client_timeout\"").count(), 19, "{log}");
}

#[test]
fn a_client_that_takes_nothing_is_cut_in_the_end() {
    let member = sized();
    let mut proxy = Proxy::start(&h2c(&[&member]).http("body_timeout: 1s").access_log());
    let windows = [(setting::INITIAL_WINDOW_SIZE, 0x7fff_ffff)];
    let mut peer = Peer::connect_with(proxy.address(), &windows);
    peer.send(&Frame::window_update(0, 0x7fff_0000));
    for _ in 0..4 {
        peer.request("GET", "/16000000", &[], true);
    }
    eventually("it is cut", STEP_TIMEOUT, || {
        proxy.process().output().matches("\"termination\":\"client_timeout\"").count() == 4
    });
    eventually("nothing is left", STEP_TIMEOUT, || {
        metric(&proxy, "connections_open") == 0.0 && member.open_connections() == 0
    });
}

#[test]
fn a_stream_that_the_client_resets_frees_its_member() {
    let member = Member::streaming(|exchange| {
        exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        loop {
            exchange.send("5\r\nhello\r\n")?;
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let proxy = start(&member);
    let mut peer = connect(&proxy);
    let streams: Vec<u32> = (0..5).map(|_| peer.request("GET", "/", &[], true)).collect();
    for stream in &streams {
        peer.response_head(*stream).status();
    }
    for stream in &streams[1..] {
        peer.send(&Frame::reset(*stream, code::CANCEL));
    }
    eventually("one is left", STEP_TIMEOUT, || member.open_connections() == 1);
    assert_eq!(metric(&proxy, "requests_active"), 1.0);
    assert_eq!(metric(&proxy, "client_aborts_total"), 4.0);
    let before = peer.streams[&streams[0]].body.len();
    peer.pump_until("more on the one that is left", |peer| {
        peer.streams[&streams[0]].body.len() > before + 100
    });
}

#[test]
fn a_member_that_dies_resets_its_stream_and_no_other() {
    let member = Member::new(|exchange| match exchange.request.target() {
        "/dies" => {
            exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nhello")?;
            Ok(Then::Reset)
        }
        _ => {
            exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")?;
            std::thread::sleep(Duration::from_millis(300));
            exchange.send("there").map(|()| Then::KeepAlive)
        }
    });
    let proxy = start(&member);
    let mut peer = connect(&proxy);
    let lives = peer.request("GET", "/lives", &[], true);
    let dies = peer.request("GET", "/dies", &[], true);
    assert_eq!(peer.response(dies).reset, Some(code::INTERNAL_ERROR));
    assert_eq!(peer.response(lives).assert_status(200).text(), "hellothere");
    peer.get("/after").assert_status(200);
}

#[test]
fn a_body_found_too_large_after_the_response_began_does_not_look_like_its_end() {
    let member = Member::streaming(|exchange| {
        exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")?;
        exchange.read_body(|_| {})?;
        exchange.send("0\r\n\r\n").map(|()| Then::KeepAlive)
    });
    let proxy = Proxy::start(&h2c(&[&member]).http("body_size_max: 1KiB"));
    let mut peer = connect(&proxy);
    let stream = peer.request("POST", "/", &[], false);
    peer.data(stream, b"some", false);
    peer.response_head(stream).status();
    peer.data(stream, &[b'x'; 1024], false);
    let response = peer.response(stream);
    assert!(!response.ended, "{response:?}");
    assert!(response.reset.is_some_and(|code| code != code::NO_ERROR), "{response:?}");
}

#[test]
fn an_idle_connection_ends_with_goaway() {
    let member = Member::named("here");
    let proxy = Proxy::start(&h2c(&[&member]).http("idle_timeout: 500ms"));
    let mut peer = connect(&proxy);
    peer.get("/").assert_status(200);
    let begun = Instant::now();
    assert_eq!(peer.rest(), Some((1, code::NO_ERROR)));
    assert!(begun.elapsed() >= Duration::from_millis(400), "{:?}", begun.elapsed());
    // One that never asks for anything, too; PING is no request.
    let mut peer = connect(&proxy);
    peer.settle();
    assert_eq!(peer.rest(), Some((0, code::NO_ERROR)));
}

#[test]
fn half_a_frame_has_the_time_of_a_head() {
    let member = Member::named("here");
    let proxy = Proxy::start(&h2c(&[&member]).http("header_timeout: 500ms"));
    let whole = Frame::headers(1, &[(b":method", b"GET")], true).bytes();
    for cut in [4, 9, 12] {
        let mut peer = connect(&proxy);
        peer.send_bytes(&whole[..cut]).expect("sent");
        assert_eq!(peer.rest(), Some((0, code::NO_ERROR)), "{cut}");
    }
    // Half a preface is half a head.
    let mut client = proxy.client();
    client.send("PRI * HTTP/2.0\r\n\r\nSM");
    client.response().assert_status(408);
    // A head that CONTINUATION never ends.
    let mut peer = connect(&proxy);
    peer.send(&Frame::new(kind::HEADERS, flag::END_STREAM, 1, []));
    assert_eq!(peer.rest().map(|(_, code)| code), Some(code::NO_ERROR));
    assert_eq!(proxy.metric("weir_virtual_server_timeouts_total", &["\"head\""]), 5.0);
}

#[test]
fn frames_that_are_always_cut_somewhere_are_no_slow_head() {
    let member = Member::named("here");
    let proxy = Proxy::start(&h2c(&[&member]).http("header_timeout: 500ms"));
    let mut peer = connect(&proxy);
    let head = |stream: u32| {
        let lines: [(&[u8], &[u8]); 4] = [
            (b":method", b"GET"),
            (b":scheme", b"http"),
            (b":path", b"/"),
            (b":authority", b"test"),
        ];
        Frame::headers(stream, &lines, true).bytes()
    };
    // Nothing of its own comes between the halves.
    peer.holds_windows = true;
    // Each write ends one request and begins the next.
    peer.send_bytes(&head(1)[..20]).expect("sent");
    for stream in (1..20).step_by(2) {
        peer.pump_for(Duration::from_millis(100));
        let bytes = [&head(stream)[20..], &head(stream + 2)[..20]].concat();
        peer.send_bytes(bytes).expect("sent");
        let response = peer.response(stream);
        assert_eq!(response.status(), 200, "{stream}: {response:?}, {:?}", peer.goaways);
    }
}

// Reloads and the end

#[test]
fn a_drain_lets_streams_end_and_takes_what_was_under_way() {
    let member = Member::new(|exchange| {
        if exchange.request.target() == "/slow" {
            std::thread::sleep(Duration::from_millis(700));
        }
        exchange.answer("done")
    });
    let mut proxy = start(&member);
    let mut peer = connect(&proxy);
    let slow = peer.request("GET", "/slow", &[], true);
    member.wait_for_requests(1);
    let mut idle = connect(&proxy);
    proxy.process().signal(Signal::TERM);
    peer.pump_until("the announcement", |peer| !peer.goaways.is_empty());
    assert_eq!(peer.goaways[0], (0x7fff_ffff, code::NO_ERROR), "it may still open streams");
    // It was sent before the client knew better.
    let late = peer.new_stream();
    let lines = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "test")];
    peer.headers(late, &lines, true);
    let late = peer.response(late);
    assert!(late.status() == 200 || late.status() == 0, "{late:?}");
    peer.response(slow).assert_status(200);
    let last = peer.rest().expect("GOAWAY");
    assert!(last.1 == code::NO_ERROR && last.0 >= slow, "{last:?}");
    // Nothing that the last GOAWAY counts in is lost.
    assert_eq!(late.status() == 200, last.0 > slow, "{last:?}, {late:?}");
    assert_eq!(idle.rest(), Some((0, code::NO_ERROR)));
    assert!(proxy.process().wait(Duration::from_secs(10)).success());
}

/// Asks on connection after connection, some streams at a time, until told to stop; a connection that was told of
/// its end is replaced by another. What was asked and not answered, though the last GOAWAY counts it in.
fn ask_on(address: SocketAddr, stop: &AtomicBool) -> (usize, Vec<String>) {
    let (mut good, mut failed) = (0, Vec::new());
    while !stop.load(Ordering::Acquire) {
        let Ok(mut peer) = Peer::try_connect(address, &[]) else { continue };
        let mut asked = Vec::new();
        while peer.goaways.is_empty() && !stop.load(Ordering::Acquire) {
            let lines: [(&[u8], &[u8]); 4] = [
                (b":method", b"GET"),
                (b":scheme", b"http"),
                (b":path", b"/"),
                (b":authority", b"test"),
            ];
            for _ in 0..8 {
                let stream = peer.new_stream();
                asked.push(stream);
                if peer.send_bytes(Frame::headers(stream, &lines, true).bytes()).is_err() {
                    break;
                }
            }
            for stream in asked.split_off(asked.len().saturating_sub(8)) {
                let response = peer.response(stream);
                let last = peer.goaways.last().map_or(u32::MAX, |(last, _)| *last);
                if response.status() == 200 && response.ended {
                    good += 1;
                } else if stream <= last && peer.goaways.last() != Some(&(0x7fff_ffff, 0)) {
                    failed.push(format!("{stream}: {response:?}, {:?}", peer.goaways));
                }
            }
        }
    }
    (good, failed)
}

#[test]
fn no_request_fails_across_reloads_and_a_drain() {
    let member = Member::named("here");
    let setup = |more: &str| h2c(&[&member]).http(more);
    let mut proxy = Proxy::start(&setup("idle_timeout: 20s"));
    let stop = AtomicBool::new(false);
    let address = proxy.address();
    std::thread::scope(|scope| {
        let loads: Vec<_> = (0..3).map(|_| scope.spawn(|| ask_on(address, &stop))).collect();
        for seconds in 21..25 {
            std::thread::sleep(Duration::from_millis(150));
            proxy.reload_and_wait(&setup(&format!("idle_timeout: {seconds}s")));
        }
        std::thread::sleep(Duration::from_millis(150));
        proxy.process().signal(Signal::TERM);
        proxy.process().wait(Duration::from_secs(10));
        stop.store(true, Ordering::Release);
        for load in loads {
            let (good, failed) = load.join().expect("a load");
            assert!(failed.is_empty(), "{good} good, {failed:?}");
            assert!(good > 20, "{good}");
        }
    });
}

#[test]
fn h2load_loses_nothing_across_reloads() {
    require!("h2load");
    let member = Member::named("here");
    let setup = |more: &str| h2c(&[&member]).http(more);
    let proxy = Proxy::start(&setup("idle_timeout: 20s"));
    let url = proxy.url("/");
    let load = std::thread::spawn(move || {
        let arguments = ["-D", "2", "-c", "4", "-m", "10"];
        tools::run(Command::new("h2load").args(arguments).arg(url))
    });
    for seconds in 21..26 {
        std::thread::sleep(Duration::from_millis(200));
        proxy.reload_and_wait(&setup(&format!("idle_timeout: {seconds}s")));
    }
    let text = load.join().expect("h2load");
    assert!(text.contains(" 0 failed, 0 errored, 0 timeout"), "{text}");
}

#[test]
fn a_reload_turns_it_on_and_off_for_new_connections() {
    let member = Member::named("here");
    let with = |http2: bool| Setup::new(&[member.address()]).http(&format!("http2: {http2}"));
    let proxy = Proxy::start(&with(true));
    let mut before = connect(&proxy);
    before.get("/").assert_status(200);
    proxy.reload_and_wait(&with(false));
    // The connection that there is goes on, or is told of its end before a request is lost.
    let stream = before.request("GET", "/", &[], true);
    let response = before.response(stream);
    assert!(response.status() == 200 || !before.goaways.is_empty(), "{response:?}");
    let mut refused = proxy.client();
    refused.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    refused.response().assert_status(505);
    proxy.reload_and_wait(&with(true));
    connect(&proxy).get("/").assert_status(200);
    proxy.client().get("/").assert_status(200);
}

// Extended CONNECT (RFC 8441)

fn websocket_head(path: &'static str) -> [(&'static str, &'static str); 7] {
    [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "test"),
        ("sec-websocket-version", "13"),
        ("origin", "http://test"),
    ]
}

#[test]
fn a_websocket_echoes_on_a_stream() {
    let member = websocket::echo_member();
    let proxy = start(&member);
    let mut peer = connect(&proxy);
    assert_eq!(peer.settings.get(&setting::ENABLE_CONNECT_PROTOCOL), Some(&1));
    let sockets: Vec<u32> = (0..5).map(|_| peer.open(&websocket_head("/chat"), false)).collect();
    for stream in &sockets {
        let head = peer.response_head(*stream);
        assert_eq!((head.status(), head.field("sec-websocket-accept")), (200, None), "{head:?}");
        assert!(head.field("connection").is_none() && head.field("upgrade").is_none());
    }
    let upgrade = &member.requests()[0].head;
    assert_eq!(upgrade.start, "GET /chat HTTP/1.1");
    assert!(
        upgrade.has_token("upgrade", "websocket") && upgrade.has_token("connection", "upgrade")
    );
    assert_eq!(upgrade.field("sec-websocket-key").map(str::len), Some(24));
    for round in 0..20_u8 {
        for stream in &sockets {
            // A text of five bytes, masked with zeros.
            let text = [b"\x81\x85\0\0\0\0he", &[b'a' + round][..], b"lo"].concat();
            peer.data(*stream, &text, false);
        }
        for stream in &sockets {
            let length = (usize::from(round) + 1) * 7;
            peer.pump_until("an echo", |peer| peer.streams[stream].body.len() >= length);
            let echo = [b"\x81\x05he", &[b'a' + round][..], b"lo"].concat();
            assert_eq!(peer.streams[stream].body[length - 7..], echo);
        }
        peer.get("/beside").assert_status(200);
    }
    for stream in sockets {
        peer.data(stream, b"\x88\x80\0\0\0\0", false);
        let closed = peer.response(stream);
        assert!(closed.ended && closed.body.ends_with(b"\x88\x00"), "{closed:?}");
        peer.data(stream, b"", true);
    }
    eventually("the member's sides are closed", STEP_TIMEOUT, || member.open_connections() <= 1);
    assert_eq!(metric(&proxy, "requests_active"), 0.0);
}

#[test]
fn each_half_of_a_tunnel_ends_by_itself() {
    let member = Member::new(|exchange| {
        exchange.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello ",
        )?;
        let mut buffer = [0; 1024];
        loop {
            match exchange.receive(&mut buffer)? {
                0 => break,
                count => exchange.send(&buffer[..count])?,
            }
        }
        // The client has ended its half; this one has not.
        exchange.send(" bye")?;
        Ok(Then::Close)
    });
    let proxy = start(&member);
    let mut peer = connect(&proxy);
    let stream = peer.open(&websocket_head("/"), false);
    // Before the answer, too, what is sent is the tunnel's.
    peer.data(stream, b"out ", false);
    assert_eq!(peer.response_head(stream).status(), 200);
    peer.data(stream, b"there", true);
    let response = peer.response(stream);
    assert_eq!(response.text(), "hello out there bye");
    assert!(response.ended && response.reset.is_none(), "{response:?}");
    peer.get("/beside");
}

#[test]
fn a_tunnel_that_is_refused_reset_or_idle_is_over() {
    let member = Member::new(|exchange| match exchange.request.target() {
        "/refused" => exchange
            .send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
            .map(|()| Then::KeepAlive),
        "/page" => exchange.answer("a page, and no tunnel"),
        _ => websocket::serve(exchange),
    });
    let proxy = Proxy::start(&h2c(&[&member]).http("tunnel_timeout: 500ms"));
    let mut peer = connect(&proxy);
    // Passed on, its 200 would open a tunnel.
    let stream = peer.open(&websocket_head("/page"), false);
    peer.response(stream).assert_status(502);
    let stream = peer.open(&websocket_head("/refused"), false);
    let refused = peer.response(stream);
    assert_eq!(refused.assert_status(403).text(), "no");
    let stream = peer.open(&websocket_head("/idle"), false);
    assert_eq!(peer.response(stream).reset, Some(code::CANCEL));
    let stream = peer.open(&websocket_head("/reset"), false);
    peer.response_head(stream);
    peer.send(&Frame::reset(stream, code::CANCEL));
    eventually("nothing is left", STEP_TIMEOUT, || metric(&proxy, "requests_active") == 0.0);
    peer.get("/").assert_status(200);
}

// Priorities (RFC 9218)

#[test]
fn the_urgent_come_first_when_the_window_is_short() {
    let member = sized();
    let proxy = start(&member);
    let mut peer =
        Peer::connect_with(proxy.address(), &[(setting::INITIAL_WINDOW_SIZE, 1_000_000)]);
    peer.holds_windows = true;
    // This takes the connection's window.
    let filler = peer.request("GET", "/65535", &[], true);
    peer.response(filler).assert_status(200);
    let ask = |peer: &mut Peer, priority| {
        let stream = peer.request("GET", "/30000", &[("priority", priority)], true);
        peer.response_head(stream);
        stream
    };
    let background = ask(&mut peer, "u=7");
    let usual = ask(&mut peer, "u=3, i");
    let urgent = ask(&mut peer, "u=0");
    // PRIORITY_UPDATE moves it before all others that are not urgent.
    let moved = ask(&mut peer, "u=6");
    let update = [&moved.to_be_bytes()[..], b"u=1"].concat();
    peer.send(&Frame::new(16, 0, 0, update));
    eventually("all that can wait waits", STEP_TIMEOUT, || member.request_count() == 5);
    peer.settle();
    peer.data_order.clear();
    for _ in 0..12 {
        peer.send(&Frame::window_update(0, 10_000));
        peer.settle();
    }
    for stream in [background, usual, urgent, moved] {
        peer.response(stream).assert_status(200);
    }
    let mut order: Vec<u32> = peer.data_order.iter().map(|(stream, _)| *stream).collect();
    order.dedup();
    assert_eq!(order, [urgent, moved, usual, background]);
}

#[test]
fn a_member_that_hangs_is_given_up_while_others_are_busy() {
    let member = Member::new(|exchange| match exchange.request.target() {
        "/never" => {
            std::thread::sleep(Duration::from_secs(5));
            Ok(Then::Close)
        }
        _ => exchange.answer(vec![b'x'; 4 << 20]),
    });
    let setup = h2c(&[&member]).pool("response_timeout: 500ms").top("data_plane: { workers: 1 }");
    let proxy = Proxy::start(&setup);
    let mut peer = connect(&proxy);
    let never = peer.request("GET", "/never", &[], true);
    let begun = Instant::now();
    while !peer.streams.get(&never).is_some_and(|it| it.ended) {
        assert!(
            begun.elapsed() < Duration::from_secs(4),
            "its time goes on while others are served"
        );
        peer.get("/big").assert_status(200);
    }
    peer.response(never).assert_status(504);
}

/// The member's 200 becomes 304 for a client that has it: its stream is over before the member's response is.
#[test]
fn a_client_may_leave_before_what_it_has_already_was_read() {
    let member = Member::new(|exchange| {
        exchange.send(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nETag: \"a\"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        )?;
        std::thread::sleep(Duration::from_millis(600));
        exchange.send("5\r\nthere\r\n0\r\n\r\n").map(|()| Then::KeepAlive)
    });
    let setup = h2c(&[&member]).virtual_server("compression: {}").top("data_plane: { workers: 1 }");
    let proxy = Proxy::start(&setup);
    for _ in 0..3 {
        let mut peer = connect(&proxy);
        let known = [("if-none-match", "W/\"a\""), ("accept-encoding", "gzip")];
        let stream = peer.request("GET", "/", &known, true);
        peer.response_head(stream).assert_status(304);
        drop(peer);
        connect(&proxy).get("/").assert_status(200);
    }
    assert_eq!(proxy.metric("weir_worker_panics_total", &[]), 0.0);
    eventually("nothing is under way", STEP_TIMEOUT, || {
        proxy.metric("weir_member_requests_active", &[]) == 0.0
    });
}

#[test]
fn a_virtual_server_that_becomes_a_relay_takes_no_more_streams() {
    let member = Member::echo();
    let proxy = start(&member);
    let mut peer = connect(&proxy);
    peer.get("/").assert_status(200);
    proxy.reload_and_wait(&Setup::new(&[member.address()]).virtual_server("type: tcp"));
    let stream = peer.request("GET", "/", &[], true);
    peer.pump_until("a refusal", |peer| {
        peer.streams.get(&stream).is_some_and(|it| it.reset == Some(code::REFUSED_STREAM))
    });
    assert_eq!(member.request_count(), 1);
}
