//! HTTP/2 members: another weir, nginx if it supports this, and scripted members.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use weir_tests::client::Client;
use weir_tests::http2::{Frame, Http2Member, Peer, code, kind, setting};
use weir_tests::member::{Member, Then};
use weir_tests::pattern::{self, Checker};
use weir_tests::ports::Lease;
use weir_tests::process::Process;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{STEP_TIMEOUT, eventually, require, tls, tools};

/// A proxy whose members use HTTP/2. Clients may use it, too.
fn before(members: &[SocketAddr]) -> Setup {
    Setup::new(members).http("http2: true").pool("http2: true")
}

/// Sets one worker, so that all requests share its connections.
fn one_worker(setup: Setup) -> Setup {
    setup.top("data_plane: { workers: 1 }")
}

/// A weir with HTTP/2 in front of a member.
fn inner(member: &Member) -> Proxy {
    Proxy::start(&Setup::new(&[member.address()]).http("http2: true"))
}

fn connections(proxy: &Proxy) -> f64 {
    proxy.metric("weir_member_connections_total", &[])
}

#[test]
fn messages_pass_whole_and_share_a_connection() {
    let member = Member::new(|exchange| match exchange.request.method() {
        "HEAD" => {
            exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n").map(|()| Then::KeepAlive)
        }
        "DELETE" => exchange.send("HTTP/1.1 204 No Content\r\n\r\n").map(|()| Then::KeepAlive),
        "PUT" => {
            let seen = exchange.request.trailers.field("x-sum").unwrap_or("none").to_owned();
            exchange.send(format!(
                "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                 5\r\nhello\r\n0\r\nX-Back: {seen}\r\n\r\n"
            ))?;
            Ok(Then::KeepAlive)
        }
        _ => exchange.echo(),
    });
    let trailers = "request_trailers: forward";
    let inner = Proxy::start(&Setup::new(&[member.address()]).http("http2: true").http(trailers));
    let outer = Proxy::start(&one_worker(before(&[inner.address()]).http(trailers)));
    let mut peer = Peer::connect(outer.address());
    let mut client = outer.client();
    for _ in 0..5 {
        let got = peer.get("/a?b");
        assert!(got.assert_status(200).text().starts_with("GET /a?b HTTP/1.1\r\nHost: test\r\n"));
        let posted = peer.post("/", b"hello");
        assert!(posted.assert_status(200).text().ends_with("\r\n\r\nhello"));
        let stream = peer.request("HEAD", "/", &[], true);
        assert_eq!(peer.response(stream).assert_status(200).field("content-length"), Some("7"));
        let stream = peer.request("DELETE", "/", &[], true);
        peer.response(stream).assert_status(204);
        let stream = peer.request("PUT", "/", &[], false);
        peer.data(stream, b"body", false).headers(stream, &[("x-sum", "42")], true);
        let put = peer.response(stream);
        assert_eq!((put.assert_status(200).text(), put.interim.len()), ("hello".to_owned(), 1));
        assert_eq!(put.trailers, [("x-back".to_owned(), "42".to_owned())]);

        // HTTP/1 clients share the connection, too.
        client.get("/c").assert_status(200);
        let posted = client.post("/d", b"there");
        assert!(posted.assert_status(200).text().ends_with("\r\n\r\nthere"));
        client.send("HEAD / HTTP/1.1\r\nHost: test\r\n\r\n");
        assert_eq!(client.head_response().head.field("content-length"), Some("7"));
        client.send("PUT / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 43\r\n\r\n");
        let put = client.response();
        assert_eq!((put.assert_status(200).text().as_str(), put.interim.len()), ("hello", 1));
        assert_eq!(put.trailers.field("x-back"), Some("43"));
    }
    assert_eq!(connections(&outer), 1.0, "one connection carried all");
    assert_eq!(inner.metric("weir_virtual_server_http2_connections_total", &[]), 1.0);
    assert_eq!(inner.metric("weir_virtual_server_http2_errors_total", &[]), 0.0);
}

#[test]
fn expectations_pass() {
    let member = Member::new(|exchange| {
        let body = exchange.request.body.clone();
        exchange.answer(body)
    });
    let inner = inner(&member);
    let outer = Proxy::start(&before(&[inner.address()]));
    let mut peer = Peer::connect(outer.address());
    let stream = peer.request("POST", "/", &[("expect", "100-continue")], false);
    let is_told = |peer: &Peer| peer.streams.get(&stream).is_some_and(|it| it.status() == 100);
    peer.pump_until("100", is_told);
    peer.data(stream, b"now", true);
    assert_eq!(peer.response(stream).assert_status(200).text(), "now");
}

#[test]
fn large_bodies_pass_both_ways_on_many_streams() {
    const SIZE: u64 = 1_500_001;
    const CLIENTS: usize = 8;
    let member = Member::new(|exchange| {
        let mut checker = Checker::default();
        checker.take(&exchange.request.body);
        checker.assert_whole(SIZE);
        let body = std::mem::take(&mut exchange.request.body);
        exchange.answer(body)
    });
    let inner = inner(&member);
    let outer = Proxy::start(&one_worker(before(&[inner.address()])));
    let address = outer.address();
    let mut body = vec![0; SIZE as usize];
    pattern::fill(&mut body, 0);
    let check = |answer: &[u8]| {
        let mut checker = Checker::default();
        checker.take(answer);
        checker.assert_whole(SIZE);
    };
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (body, check) = (&body, &check);
            scope.spawn(move || match number % 2 {
                0 => check(&Peer::connect(address).post("/", body).assert_status(200).body),
                _ => check(&Client::connect(address).post("/", body).assert_status(200).body),
            });
        }
    });
    assert_eq!(connections(&outer), 1.0);
}

#[test]
fn a_request_has_no_more_time_for_what_others_upload() {
    // The member reads slowly and does not respond.
    let large = [(setting::INITIAL_WINDOW_SIZE, 0x7fff_ffff)];
    let member = Http2Member::new(&large, |peer, _| {
        peer.send(&Frame::window_update(0, 0x7f00_0000));
        peer.drops_data = true;
        while peer.frame().is_some() {
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    });
    let setup = one_worker(before(&[member.address()])).pool("response_timeout: 500ms");
    let proxy = Proxy::start(&setup);
    let mut uploading = proxy.client();
    uploading.send("POST /slow HTTP/1.1\r\nHost: test\r\nContent-Length: 1000000000\r\n\r\n");
    let mut stream = uploading.stream().try_clone().expect("the same once more");
    let upload = std::thread::spawn(move || {
        let part = vec![b'x'; 64 * 1024];
        while stream.write_all(&part).is_ok() {}
    });
    eventually("it does not keep up", STEP_TIMEOUT, || {
        proxy.metric("weir_member_sent_bytes_total", &[]) > 200_000.0
    });
    let mut client = proxy.client();
    client.send("GET /never HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("it is given up", STEP_TIMEOUT, || {
        proxy.metric("weir_virtual_server_requests_active", &[]) == 1.0
    });
    assert_eq!(client.response().status, 504);
    assert_eq!(member.connection_count(), 1);
    uploading.stream().shutdown(std::net::Shutdown::Both).expect("an end");
    upload.join().expect("the upload");
}

#[test]
fn tls_to_a_member_agrees_on_it_by_alpn() {
    require!("curl");
    let member = Member::echo();
    let secure = |http2: bool| {
        let setup = Setup::new(&[member.address()]).virtual_server(&tls::shop(""));
        Proxy::start(&setup.http(&format!("http2: {http2}")))
    };
    let trust =
        format!("tls: {{ ca: {}, server_name: shop.example }}", tls::file("authorities.crt"));
    let (with, without) = (secure(true), secure(false));
    let outer = |inner: &Proxy| Proxy::start(&before(&[inner.address()]).pool(&trust));
    let good = outer(&with);
    assert!(
        Peer::connect(good.address()).get("/a").assert_status(200).text().starts_with("GET /a")
    );
    good.client().get("/b").assert_status(200);
    assert!(with.metric("weir_virtual_server_http2_connections_total", &[]) >= 1.0);

    let mut bad = outer(&without);
    bad.client().get("/").assert_status(502);
    Peer::connect(bad.address()).get("/").assert_status(502);
    eventually("an event says why", STEP_TIMEOUT, || {
        bad.process().output().contains("no_application_protocol")
    });
}

#[test]
fn a_server_that_ignores_alpn_is_told_from_one_that_agrees() {
    require!("openssl");
    let (lease, directory) = (Lease::new(), TempDir::new("s_server"));
    let at = lease.address().to_string();
    let (certificate, key) = (tls::file("shop-ec.crt"), tls::file("shop-ec.key"));
    let program = tools::find("openssl").expect("openssl");
    let arguments = ["s_server", "-accept", &at, "-cert", &certificate, "-key", &key, "-www"];
    let mut server = Process::start(&program, &arguments, &directory.path().join("output.log"));
    server.wait_until_listening(&[lease.address()]);
    let mut proxy = Proxy::start(&before(&[lease.address()]).pool("tls: { verify: false }"));
    Peer::connect(proxy.address()).get("/").assert_status(502);
    eventually("an event says why", STEP_TIMEOUT, || {
        proxy.process().output().contains("does not agree to HTTP/2 (ALPN)")
    });
}

#[test]
fn streams_of_a_member_are_no_more_than_it_allows() {
    const STREAMS_MAX: usize = 4;
    let most = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&most);
    let member = Http2Member::new(
        &[(setting::MAX_CONCURRENT_STREAMS, STREAMS_MAX as u32)],
        move |peer, _| loop {
            // The member responds when nothing has arrived for some time.
            peer.pump_for(Duration::from_millis(30));
            if peer.closed {
                return Ok(());
            }
            let asked: Vec<u32> = peer.streams.keys().copied().collect();
            seen.fetch_max(asked.len(), Ordering::AcqRel);
            for stream in asked {
                peer.answer_with(stream, b"done")?;
                peer.streams.remove(&stream);
            }
        },
    );
    let proxy = Proxy::start(&one_worker(before(&[member.address()])));
    let mut peer = Peer::connect(proxy.address());
    // After this response, weir knows the member's settings.
    peer.get("/first").assert_status(200);
    let streams: Vec<u32> = (0..40).map(|_| peer.request("POST", "/", &[], true)).collect();
    for stream in streams {
        peer.response(stream).assert_status(200);
    }
    assert!(most.load(Ordering::Acquire) <= STREAMS_MAX, "{most:?} streams");
    assert!(member.connection_count() >= 2, "others were opened");
    assert_eq!(proxy.metric("weir_pool_retries_total", &[]), 0.0);
}

#[test]
fn streams_beyond_what_a_member_turns_out_to_allow_are_served() {
    // weir does not know the maximum of concurrent streams before the member's SETTINGS arrive. It retries the streams that
    // the member refuses.
    const STREAMS_MAX: usize = 5;
    let member =
        Http2Member::new(&[(setting::MAX_CONCURRENT_STREAMS, STREAMS_MAX as u32)], |peer, _| {
            loop {
                let Some(first) = peer.next_request() else { return Ok(()) };
                let mut open = vec![first];
                peer.pump_for(Duration::from_millis(100));
                while let Some(stream) = peer.try_next_request() {
                    if open.len() < STREAMS_MAX {
                        open.push(stream);
                    } else {
                        peer.send(&Frame::reset(stream, code::REFUSED_STREAM));
                    }
                }
                for stream in open {
                    peer.answer_with(stream, b"done")?;
                }
            }
        });
    let proxy = Proxy::start(&one_worker(before(&[member.address()])));
    let mut peer = Peer::connect(proxy.address());
    let streams: Vec<u32> = (0..30).map(|_| peer.request("POST", "/", &[], true)).collect();
    for stream in streams {
        peer.response(stream).assert_status(200);
    }
    let opened = member.connection_count();
    // A busy member serves fewer streams in the time and refuses more.
    assert!(opened <= 15, "{opened} connections");
}

/// The first member does not listen, so all requests go to the second one.
#[test]
fn trailers_go_along_to_another_member() {
    let nobody = Lease::new();
    let member = Member::new(|exchange| {
        let body = exchange.request.body.clone();
        let seen = exchange.request.trailers.field("x-sum").unwrap_or("none").to_owned();
        let text = format!("{} {seen}", String::from_utf8_lossy(&body));
        exchange
            .send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()))?;
        Ok(Then::KeepAlive)
    });
    let trailers = "request_trailers: forward";
    let inner = Proxy::start(&Setup::new(&[member.address()]).http("http2: true").http(trailers));
    let setup = before(&[nobody.address(), inner.address()]).pool("retries: 1");
    let outer = Proxy::start(&one_worker(setup.http(trailers)));
    for _ in 0..4 {
        let mut client = outer.client();
        client.send(
            "PUT / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 43\r\n\r\n",
        );
        assert_eq!(client.response().assert_status(200).text(), "body 43");
    }
    assert!(outer.metric("weir_pool_retries_total", &[]) > 0.0);
}

#[test]
fn a_refused_stream_is_tried_once_more() {
    let refusals = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&refusals);
    let member = Http2Member::new(&[], move |peer, _| {
        while let Some(stream) = peer.next_request() {
            let is_refused = peer.streams[&stream].path() == "/refused"
                && count.fetch_add(1, Ordering::AcqRel) == 0;
            if is_refused {
                peer.send(&Frame::reset(stream, code::REFUSED_STREAM));
            } else {
                peer.answer_with(stream, b"done")?;
            }
        }
        Ok(())
    });
    let proxy = Proxy::start(&one_worker(before(&[member.address()])));
    let mut peer = Peer::connect(proxy.address());
    peer.get("/first").assert_status(200);
    // The member has refused the stream unprocessed, so weir may retry even POST.
    peer.post("/refused", b"body").assert_status(200);
    assert_eq!(refusals.load(Ordering::Acquire), 2);
}

#[test]
fn what_a_goaway_leaves_unread_goes_on_elsewhere_on_one_connection() {
    const STREAMS: usize = 40;
    let member = Http2Member::new(&[], |peer, number| {
        if number > 0 {
            while let Some(stream) = peer.next_request() {
                peer.answer_with(stream, b"second")?;
            }
            return Ok(());
        }
        let first = peer.next_request().unwrap_or(1);
        peer.answer_with(first, b"first")?;
        // The member processes the next two requests, and no others.
        let read: Vec<u32> = (0..2).filter_map(|_| peer.next_request()).collect();
        let last = read.last().copied().unwrap_or(first);
        while peer.streams.len() < STREAMS + 1 && peer.pump() {}
        peer.send(&Frame::goaway(last, code::NO_ERROR));
        for stream in read {
            peer.answer_with(stream, b"first")?;
        }
        peer.rest();
        Ok(())
    });
    let proxy = Proxy::start(&one_worker(before(&[member.address()])));
    let mut peer = Peer::connect(proxy.address());
    assert_eq!(peer.get("/").assert_status(200).text(), "first");
    let streams: Vec<u32> = (0..STREAMS).map(|_| peer.request("POST", "/", &[], true)).collect();
    let answers: Vec<String> =
        streams.iter().map(|stream| peer.response(*stream).assert_status(200).text()).collect();
    assert_eq!(answers.iter().filter(|answer| *answer == "first").count(), 2, "{answers:?}");
    assert_eq!(member.connection_count(), 2, "what goes on shares a connection");
    assert_eq!(proxy.metric("weir_member_failures_total", &[]), 0.0);
}

#[test]
fn a_connection_that_breaks_takes_only_what_cannot_be_repeated() {
    let member = Http2Member::new(&[], |peer, number| {
        if number > 0 {
            while let Some(stream) = peer.next_request() {
                peer.answer_with(stream, b"second")?;
            }
            return Ok(());
        }
        let first = peer.next_request().unwrap_or(1);
        peer.answer_with(first, b"first")?;
        while peer.streams.len() < 5 && peer.pump() {}
        // The response to one of the requests has started.
        let begun = peer.streams.iter().find(|(_, it)| it.path() == "/begun");
        let begun = begun.map_or(1, |(stream, _)| *stream);
        peer.headers(begun, &[(":status", "200")], false).data(begun, b"part", false);
        std::thread::sleep(Duration::from_millis(100));
        Ok(())
    });
    let proxy = Proxy::start(&one_worker(before(&[member.address()])));
    let mut peer = Peer::connect(proxy.address());
    peer.get("/").assert_status(200);
    let begun = peer.request("GET", "/begun", &[], true);
    let gets = [0; 2].map(|_| peer.request("GET", "/", &[], true));
    let post = peer.request("POST", "/", &[], true);
    let cut = peer.response(begun);
    assert_eq!((cut.text().as_str(), cut.reset), ("part", Some(code::INTERNAL_ERROR)));
    for stream in gets {
        assert_eq!(peer.response(stream).assert_status(200).text(), "second");
    }
    peer.response(post).assert_status(502);
    assert_eq!(member.connection_count(), 2);
}

#[test]
fn connections_are_reused_counted_and_closed_when_idle() {
    let member = Http2Member::telling(&[]);
    let setup = one_worker(before(&[member.address()]));
    let proxy = Proxy::start(&setup.pool("reuse: { idle_timeout: 3s, requests_max: 10 }"));
    let mut peer = Peer::connect(proxy.address());
    for number in 0..10 {
        assert!(peer.get("/").assert_status(200).text().starts_with("0 "), "{number}");
    }
    // The first connection has reached its maximum of ten requests.
    assert!(peer.get("/").assert_status(200).text().starts_with("1 "));
    let idle = || proxy.metric("weir_member_connections_idle", &[]);
    eventually("one rests", STEP_TIMEOUT, || idle() == 1.0);
    eventually("none is left", STEP_TIMEOUT, || {
        idle() == 0.0 && proxy.metric("weir_member_connections_open", &[]) == 0.0
    });
    eventually("the member knows", STEP_TIMEOUT, || member.open_connections() == 0);
    assert!(peer.get("/").assert_status(200).text().starts_with("2 "));
}

#[test]
fn a_member_that_does_not_speak_it_is_a_failure_of_that_member() {
    let old = Member::script("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let good = Http2Member::telling(&[]);
    let alone = Proxy::start(&before(&[old.address()]));
    alone.client().get("/").assert_status(502);
    Peer::connect(alone.address()).get("/").assert_status(502);
    let both = Proxy::start(&before(&[old.address(), good.address()]));
    let mut peer = Peer::connect(both.address());
    let answers: Vec<u16> = (0..6).map(|_| peer.get("/").status()).collect();
    assert!(
        answers.contains(&200) && answers.iter().all(|status| [200, 502].contains(status)),
        "{answers:?}"
    );
}

#[test]
fn a_dead_member_is_passed_over() {
    let mut dead = Member::named("dead");
    let address = dead.address();
    dead.kill();
    let good = Http2Member::telling(&[]);
    let proxy = Proxy::start(&before(&[address, good.address()]));
    let mut peer = Peer::connect(proxy.address());
    for _ in 0..6 {
        peer.get("/").assert_status(200);
        peer.post("/", &[b'x'; 30_000]).assert_status(200);
    }
}

#[test]
fn a_connect_that_fails_counts_once_however_many_wait_for_it() {
    const WAITING: usize = 20;
    // This member accepts connections but does not take part in the TLS handshake.
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a listener");
    let address = listener.local_addr().expect("its address");
    let setup = one_worker(before(&[address]))
        .pool("tls: { verify: false }")
        .pool("connect_timeout: 2s")
        .pool("passive: { failures: 3, window: 1m, eject: 1m }");
    let proxy = Proxy::start(&setup);
    let failures = || proxy.metric("weir_member_failures_total", &[]);
    let ejections = || proxy.metric("weir_member_ejections_total", &[]);
    for round in 1..=3 {
        let mut peer = Peer::connect(proxy.address());
        let streams: Vec<u32> = (0..WAITING).map(|_| peer.request("GET", "/", &[], true)).collect();
        for stream in streams {
            peer.response(stream).assert_status(504);
        }
        assert_eq!((connections(&proxy), failures()), (f64::from(round), f64::from(round)));
        assert_eq!(ejections(), if round < 3 { 0.0 } else { 1.0 });
    }
}

#[test]
fn malformed_responses_are_refused_and_the_connection_goes_on() {
    type Lines = &'static [(&'static str, &'static str)];
    const CASES: &[(&str, Lines)] = &[
        ("no status", &[("x", "1")]),
        ("status of two digits", &[(":status", "20")]),
        ("status 101", &[(":status", "101")]),
        ("status 999", &[(":status", "999")]),
        ("two statuses", &[(":status", "200"), (":status", "200")]),
        ("a request's pseudo-header field", &[(":status", "200"), (":path", "/")]),
        ("connection", &[(":status", "200"), ("connection", "close")]),
        ("transfer-encoding", &[(":status", "200"), ("transfer-encoding", "chunked")]),
        ("upper case", &[(":status", "200"), ("X-Upper", "1")]),
        ("line end in a value", &[(":status", "200"), ("x", "1\r\nset-cookie: a=b")]),
        ("line end in a name", &[(":status", "200"), ("x: 1\r\ny", "2")]),
        ("NUL in a value", &[(":status", "200"), ("x", "\0")]),
        (
            "differing lengths",
            &[(":status", "200"), ("content-length", "2"), ("content-length", "3")],
        ),
        ("length with nothing behind it", &[(":status", "200"), ("content-length", "5")]),
    ];
    let member = Http2Member::new(&[], |peer, _| {
        while let Some(stream) = peer.next_request() {
            match peer.streams[&stream].path()[1..].parse::<usize>() {
                Ok(case) => {
                    peer.headers(stream, CASES[case].1, true);
                }
                Err(_) => peer.answer_with(stream, b"sound")?,
            }
        }
        Ok(())
    });
    let proxy = Proxy::start(&one_worker(before(&[member.address()])));
    let mut peer = Peer::connect(proxy.address());
    peer.get("/sound").assert_status(200);
    for (number, (name, _)) in CASES.iter().enumerate() {
        let response = peer.get(&format!("/{number}"));
        assert_eq!(response.status(), 502, "{name}: {response:?}");
        assert_eq!(proxy.client().get(&format!("/{number}")).status, 502, "{name}");
        assert_eq!(peer.get("/sound").assert_status(200).text(), "sound", "{name}");
    }
    assert_eq!(member.connection_count(), 1);
}

/// More errors than a client may cause. Each counts as one failure, and the other stream is not affected.
#[test]
fn many_malformed_responses_end_nothing_else() {
    const BAD: usize = 80;
    let member = Http2Member::new(&[], |peer, _| {
        let mut waiting = None;
        while let Some(stream) = peer.next_request() {
            match peer.streams[&stream].path() {
                "/bad" => {
                    peer.headers(stream, &[(":status", "200"), ("X-Upper", "1")], false);
                }
                "/wait" => {
                    peer.headers(stream, &[(":status", "200")], false);
                    waiting = Some(stream);
                }
                _ => {
                    peer.answer_with(stream, b"last")?;
                    if let Some(waiting) = waiting.take() {
                        peer.data(waiting, b"whole", true);
                    }
                }
            }
        }
        Ok(())
    });
    let proxy = Proxy::start(&one_worker(before(&[member.address()])));
    let mut peer = Peer::connect(proxy.address());
    let waiting = peer.request("GET", "/wait", &[], true);
    assert_eq!(peer.response_head(waiting).status(), 200);
    let bad: Vec<u32> = (0..BAD).map(|_| peer.request("GET", "/bad", &[], true)).collect();
    for stream in bad {
        peer.response(stream).assert_status(502);
    }
    assert_eq!(peer.get("/last").assert_status(200).text(), "last");
    assert_eq!(peer.response(waiting).assert_status(200).text(), "whole");
    assert_eq!(proxy.metric("weir_member_failures_total", &[]), BAD as f64);
    assert_eq!(member.connection_count(), 1);
}

#[test]
fn a_slow_client_holds_only_its_own_stream_back() {
    const GROWTH_BYTES_MAX: u64 = 8 * 1024 * 1024;
    let member = Http2Member::new(&[], |peer, _| {
        let mut large = Vec::new();
        while let Some(stream) = peer.next_request() {
            if peer.streams[&stream].path() == "/large" {
                peer.headers(stream, &[(":status", "200")], false);
                large.push(stream);
            } else {
                peer.answer_with(stream, b"small")?;
            }
            // As many bytes of each response as the windows allow.
            for stream in &large {
                while peer.allowance(*stream) > 0 {
                    let part = peer.allowance(*stream).min(16_000);
                    peer.data(*stream, &vec![b'x'; part], false);
                }
            }
        }
        Ok(())
    });
    let mut proxy = Proxy::start(&one_worker(before(&[member.address()])));
    let mut slow = Peer::connect_with(proxy.address(), &[(setting::INITIAL_WINDOW_SIZE, 1000)]);
    slow.holds_windows = true;
    slow.get("/");
    let before = proxy.process().resident_bytes();
    let streams: Vec<u32> = (0..12).map(|_| slow.request("GET", "/large", &[], true)).collect();
    // Each stream has received its whole window.
    slow.pump_until("what its windows let out", |peer| {
        streams
            .iter()
            .all(|stream| peer.streams.get(stream).is_some_and(|it| it.body.len() == 1000))
    });
    let mut quick = Peer::connect(proxy.address());
    for _ in 0..20 {
        assert_eq!(quick.get("/").assert_status(200).text(), "small");
        assert_eq!(proxy.client().get("/").assert_status(200).text(), "small");
    }
    let grown = proxy.process().resident_bytes().saturating_sub(before);
    assert!(grown < GROWTH_BYTES_MAX, "{grown} bytes more");
    assert_eq!(member.connection_count(), 1);
}

#[test]
fn a_client_that_leaves_resets_its_stream_at_the_member() {
    let resets = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&resets);
    let member = Http2Member::new(&[], move |peer, _| {
        while peer.pump() {
            let reset = peer.streams.values().filter(|it| it.reset == Some(code::CANCEL)).count();
            count.store(reset, Ordering::Release);
            let quick: Vec<u32> = peer
                .streams
                .iter()
                .filter(|(_, it)| it.path() == "/quick" && it.ended)
                .map(|(stream, _)| *stream)
                .collect();
            for stream in quick {
                peer.streams.remove(&stream);
                peer.answer_with(stream, b"quick")?;
            }
        }
        Ok(())
    });
    let proxy = Proxy::start(&one_worker(before(&[member.address()])));
    let mut peer = Peer::connect(proxy.address());
    peer.get("/quick").assert_status(200);
    let streams = [0; 3].map(|_| peer.request("GET", "/slow", &[], true));
    let mut client = proxy.client();
    client.send("GET /slow HTTP/1.1\r\nHost: test\r\n\r\n");
    peer.settle();
    for stream in streams {
        peer.send(&Frame::reset(stream, code::CANCEL));
    }
    client.reset();
    eventually("the member is told", STEP_TIMEOUT, || resets.load(Ordering::Acquire) == 4);
    peer.get("/quick").assert_status(200);
    assert_eq!(member.connection_count(), 1);
}

#[test]
fn a_member_that_does_not_answer_in_time_loses_that_stream() {
    let member = Http2Member::new(&[], |peer, _| {
        while let Some(stream) = peer.next_request() {
            if peer.streams[&stream].path() != "/never" {
                peer.answer_with(stream, b"here")?;
            }
        }
        Ok(())
    });
    let setup = one_worker(before(&[member.address()]));
    let proxy = Proxy::start(&setup.pool("response_timeout: 3s"));
    let mut peer = Peer::connect(proxy.address());
    let never = peer.request("GET", "/never", &[], true);
    while !peer.streams.get(&never).is_some_and(|it| it.ended) {
        peer.get("/").assert_status(200);
        peer.pump_for(Duration::from_millis(20));
    }
    peer.response(never).assert_status(504);
    assert_eq!(member.connection_count(), 1);
}

#[test]
fn places_of_a_member_are_requests_and_a_queue_forms() {
    let (member, gate) = Member::gated("done");
    let inner = inner(&member);
    let limited = format!("{{ address: {}, connections_max: 2 }}", inner.address());
    let setup = Setup::new(&[]).member(&limited).http("http2: true").pool("http2: true");
    let proxy = Proxy::start(&setup.pool("queue: { timeout: 60s }"));
    let mut peer = Peer::connect(proxy.address());
    let streams: Vec<u32> = (0..6)
        .map(|_| {
            let stream = peer.request("POST", "/", &[], false);
            peer.data(stream, b"held", true);
            stream
        })
        .collect();
    member.wait_for_requests(2);
    eventually("four wait", STEP_TIMEOUT, || proxy.metric("weir_pool_queue_requests", &[]) == 4.0);
    gate.open();
    for stream in streams {
        peer.response(stream).assert_status(200);
    }
    assert!(member.requests().iter().all(|request| request.body == b"held"));
}

#[test]
fn a_reload_changes_how_members_are_spoken_to_and_loses_nothing() {
    require!("h2load");
    let member = Member::named("here");
    let inner = inner(&member);
    let with = |http2: bool| {
        let setup = Setup::new(&[inner.address()]).http("http2: true");
        setup.pool(&format!("http2: {http2}"))
    };
    let proxy = Proxy::start(&with(true));
    let url = proxy.url("/");
    let load = std::thread::spawn(move || {
        tools::run(Command::new("h2load").args(["-D", "2", "-c", "4", "-m", "10"]).arg(url))
    });
    for round in 0..6 {
        std::thread::sleep(Duration::from_millis(200));
        proxy.reload_and_wait(&with(round % 2 == 1));
    }
    let text = load.join().expect("h2load");
    assert!(text.contains(" 0 failed, 0 errored, 0 timeout"), "{text}");
    assert_eq!(metric_of_failures(&proxy), 0.0);
}

fn metric_of_failures(proxy: &Proxy) -> f64 {
    proxy.metric("weir_virtual_server_responses_total", &["\"5xx\""])
}

#[test]
fn a_member_that_floods_is_left() {
    let is_flooding = Arc::new(AtomicBool::new(true));
    let floods = Arc::clone(&is_flooding);
    let member = Http2Member::new(&[], move |peer, _| {
        while let Some(stream) = peer.next_request() {
            if floods.swap(false, Ordering::AcqRel) {
                let pings = Frame::new(kind::PING, 0, 0, [0; 8]).bytes().repeat(1_000);
                peer.send_bytes(pings)?;
                peer.rest();
                return Ok(());
            }
            peer.answer_with(stream, b"calm")?;
        }
        Ok(())
    });
    let proxy = Proxy::start(&one_worker(before(&[member.address()])));
    let mut peer = Peer::connect(proxy.address());
    peer.get("/").assert_status(502);
    assert_eq!(peer.get("/").assert_status(200).text(), "calm");
}

#[test]
fn hops_are_counted_once() {
    let member = Http2Member::new(&[], |peer, _| {
        while let Some(stream) = peer.next_request() {
            let hops = peer.streams[&stream].field("max-forwards").unwrap_or("none").to_owned();
            peer.answer_with(stream, hops.as_bytes())?;
        }
        Ok(())
    });
    let proxy = Proxy::start(&before(&[member.address()]));
    let mut peer = Peer::connect(proxy.address());
    let stream = peer.request("OPTIONS", "/", &[("max-forwards", "5")], true);
    assert_eq!(peer.response(stream).assert_status(200).text(), "4");
}

#[test]
fn what_a_rule_sets_is_not_judged_again() {
    let member = Http2Member::new(&[], |peer, _| {
        while let Some(stream) = peer.next_request() {
            let expected = peer.streams[&stream].field("expect").unwrap_or("nothing").to_owned();
            peer.answer_with(stream, expected.as_bytes())?;
        }
        Ok(())
    });
    // weir would reject this header from a client. A header that a rule sets is sent to members of both versions.
    let rule = "rules: [ { when: 'request.path == \"/odd\"', then: [ { set_header: { Expect: something } } ] } ]";
    let setup = one_worker(before(&[member.address()]))
        .virtual_server("policies: [ odd ]")
        .top(&format!("policies: {{ odd: {{ {rule} }} }}"));
    let proxy = Proxy::start(&setup);
    let mut peer = Peer::connect(proxy.address());
    for _ in 0..3 {
        assert_eq!(peer.get("/odd").assert_status(200).text(), "something");
        assert_eq!(peer.get("/").assert_status(200).text(), "nothing");
    }
    assert_eq!(connections(&proxy), 1.0);
}

#[test]
fn a_connection_that_is_silent_gets_no_further_request() {
    let member = Http2Member::new(&[], |peer, number| {
        while let Some(stream) = peer.next_request() {
            if number > 0 {
                peer.answer_with(stream, b"here")?;
            }
        }
        Ok(())
    });
    let setup = one_worker(before(&[member.address()])).pool("response_timeout: 2s");
    let proxy = Proxy::start(&setup);
    let mut peer = Peer::connect(proxy.address());
    peer.get("/").assert_status(504);
    peer.get("/").assert_status(200);
}
