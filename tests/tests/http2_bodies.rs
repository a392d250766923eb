//! Bodies over HTTP/2: responses before the end of an upload, members that send no window updates, data in many small
//! frames.

use std::io::Write;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use weir_testing::Random;
use weir_tests::client::Client;
use weir_tests::http2::{Frame, Http2Member, Peer, code, flag, kind, setting};
use weir_tests::member::{Member, Then};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually, require, tls, tools};

fn h2c(members: &[SocketAddr]) -> Setup {
    Setup::new(members).http("http2: true")
}

/// A proxy with one worker. The member uses HTTP/2, and clients may use it.
fn before(member: &Http2Member) -> Setup {
    h2c(&[member.address()])
        .http("request_trailers: forward")
        .pool("http2: true")
        .top("data_plane: { workers: 1 }")
}

fn connect(proxy: &Proxy) -> Peer {
    let mut peer = Peer::connect(proxy.address());
    peer.pump_until("its settings", |peer| !peer.settings.is_empty());
    peer
}

fn metric(proxy: &Proxy, name: &str) -> f64 {
    proxy.metric(&format!("weir_virtual_server_{name}"), &["\"main\""])
}

// Responses before the end of an upload

/// A member that responds when the head has arrived, and then reads the rest.
fn hasty() -> Member {
    Member::streaming(|exchange| {
        exchange.send(
            "HTTP/1.1 403 Forbidden\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhasty!",
        )?;
        // weir may close the connection before the end.
        let _ = exchange.read_body(|_| {});
        Ok(Then::Close)
    })
}

/// The cause of a rejected upload: a rule, the limit on bodies, or the member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Rule,
    Size,
    Member,
}

impl Refusal {
    const ALL: [Self; 3] = [Self::Rule, Self::Size, Self::Member];

    fn path(self) -> &'static str {
        if self == Self::Rule { "/rule" } else { "/" }
    }

    fn status(self) -> u16 {
        if self == Self::Size { 413 } else { 403 }
    }

    fn before(self, member: &Member) -> Setup {
        let setup = h2c(&[member.address()]);
        let rules = "rules: [ { when: 'request.path == \"/rule\"', then: [ { respond: { status: 403 } } ] } ]";
        match self {
            Self::Rule => setup
                .virtual_server("policies: [ no ]")
                .top(&format!("policies: {{ no: {{ {rules} }} }}")),
            Self::Size => setup.http("body_size_max: 16KiB"),
            Self::Member => setup,
        }
    }

    /// Sends a part of an upload, and reads the response.
    fn begin(self, peer: &mut Peer) -> u32 {
        let stream = peer.request("POST", self.path(), &[("content-length", "100000")], false);
        peer.body(stream, &[b'x'; 10], false).expect("sent");
        peer.response(stream).assert_status(self.status());
        stream
    }
}

#[test]
fn an_upload_that_is_answered_early_is_read_on_before_its_stream_is_reset() {
    let member = hasty();
    for refusal in Refusal::ALL {
        let proxy = Proxy::start(&refusal.before(&member));
        let mut peer = connect(&proxy);
        let stream = refusal.begin(&mut peer);
        for _ in 0..3 {
            peer.settle();
            assert_eq!(peer.streams[&stream].reset, None, "{refusal:?}");
            peer.data(stream, &[b'x'; 16_000], false);
        }
        peer.pump_until("the reset", |peer| peer.streams[&stream].reset.is_some());
        assert_eq!(peer.streams[&stream].reset, Some(code::NO_ERROR), "{refusal:?}");
        // Data that the client sent before the reset arrived is not an error.
        peer.data(stream, b"more", true).settle();
        assert_eq!((&peer.goaways[..], peer.closed), (&[][..], false));
        assert_eq!(metric(&proxy, "requests_malformed_total"), 0.0);
        assert_eq!(metric(&proxy, "http2_errors_total"), 0.0);
    }
}

#[test]
fn an_upload_that_ends_short_when_it_is_answered_is_no_error() {
    let member = hasty();
    for refusal in Refusal::ALL {
        let mut proxy = Proxy::start(&refusal.before(&member).access_log());
        let mut peer = connect(&proxy);
        for trailers in [false, true] {
            // weir frees each stream at once. Otherwise it would reject the requests above the maximum of concurrent
            // streams.
            for _ in 0..60 {
                let stream = refusal.begin(&mut peer);
                match trailers {
                    true => peer.headers(stream, &[("x-sum", "1")], true),
                    false => peer.data(stream, b"", true),
                };
                peer.settle();
                assert_eq!(peer.streams[&stream].reset, None, "{refusal:?}");
            }
        }
        assert_eq!((&peer.goaways[..], peer.closed), (&[][..], false));
        assert_eq!(metric(&proxy, "requests_malformed_total"), 0.0);
        let log = proxy.process().output();
        assert!(!log.contains("client_malformed"), "{log}");
    }
}

#[test]
fn a_window_is_given_back_for_what_is_dropped() {
    const SIZE: usize = 1_000_000;
    let member = hasty();
    let proxy = Proxy::start(&Refusal::Rule.before(&member));
    let mut peer = connect(&proxy);
    let length = SIZE.to_string();
    let stream = peer.request("POST", "/rule", &[("content-length", &length)], false);
    peer.response(stream).assert_status(403);
    peer.body(stream, &vec![b'x'; SIZE], true).expect("all of it");
    peer.settle();
    assert_eq!(peer.streams[&stream].reset, None);
    assert_eq!(metric(&proxy, "received_bytes_total") as usize / SIZE, 1);
}

/// The client stops its upload when it has received the head of the response.
#[test]
fn a_response_under_way_goes_on_when_its_request_ends_short() {
    let is_cut = Arc::new(AtomicBool::new(false));
    let (gate, gate_too) = (Arc::clone(&is_cut), Arc::clone(&is_cut));
    let old = Member::streaming(move |exchange| {
        exchange.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 10\r\n\r\nhello")?;
        eventually("it is cut", STEP_TIMEOUT, || gate.load(Ordering::Acquire));
        exchange.send("there")?;
        // The member does not keep the connection open if the request is incomplete.
        exchange.read_body(|_| {}).map(|_| Then::KeepAlive)
    });
    let ended = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&ended);
    let new = Http2Member::new(&[], move |peer, _| {
        while let Some(stream) = peer.next_request() {
            let lines: [(&[u8], &[u8]); 2] = [(b":status", b"403"), (b"content-length", b"10")];
            peer.send(&Frame::headers(stream, &lines, false)).data(stream, b"hello", false);
            while !gate_too.load(Ordering::Acquire) {
                peer.pump_for(Duration::from_millis(5));
            }
            peer.settle();
            seen.fetch_add(usize::from(peer.streams[&stream].ended), Ordering::AcqRel);
            peer.data(stream, b"there", true);
        }
        Ok(())
    });
    for setup in [h2c(&[old.address()]), before(&new)] {
        is_cut.store(false, Ordering::Release);
        // The timeout does not apply to the ended request.
        let mut proxy = Proxy::start(&setup.http("body_timeout: 10s").access_log());
        let mut peer = connect(&proxy);
        let stream = peer.request("POST", "/", &[("content-length", "100000")], false);
        peer.data(stream, b"some of it", false);
        peer.response_head(stream);
        peer.data(stream, b"", true).settle();
        is_cut.store(true, Ordering::Release);
        assert_eq!(peer.response(stream).assert_status(403).text(), "hellothere");
        peer.settle();
        assert_eq!((peer.streams[&stream].reset, &peer.goaways[..]), (None, &[][..]));
        assert_eq!(metric(&proxy, "requests_malformed_total"), 0.0);
        eventually("it is logged as whole", STEP_TIMEOUT, || {
            proxy.process().output().contains("\"termination\":\"complete\"")
        });
    }
    assert_eq!(ended.load(Ordering::Acquire), 0, "no member took it for whole");
    eventually("its connection is given up", STEP_TIMEOUT, || old.open_connections() == 0);
}

#[test]
fn an_upload_that_is_refused_early_is_no_error_to_curl() {
    require!("curl");
    const RUNS: usize = 8;
    let member = hasty();
    let directory = weir_tests::temp::TempDir::new("uploads");
    let files: Vec<String> = [1, 3]
        .iter()
        .map(|mib| {
            let file = directory.path().join(format!("{mib}MiB"));
            std::fs::write(&file, vec![b'x'; mib << 20]).expect("a file");
            format!("@{}", file.display())
        })
        .collect();
    for refusal in Refusal::ALL {
        let plain = Proxy::start(&refusal.before(&member));
        let secure = Proxy::start(&refusal.before(&member).virtual_server(&tls::shop("")));
        let (path, status) = (refusal.path(), refusal.status().to_string());
        for file in files.iter().cycle().take(RUNS) {
            let asked = ["--data-binary", file, "-o", "/dev/null", "-w", "%{http_code}"];
            let mut curl = Command::new("curl");
            curl.args(["-sS", "--max-time", "30", "--http2-prior-knowledge"]).args(asked);
            assert_eq!(tools::run(curl.arg(plain.url(path))), status, "{refusal:?}");
            let got = tls::get(secure.address(), path, &[&["--http2"][..], &asked].concat());
            assert_eq!(got, status, "{refusal:?}");
        }
    }
}

/// A member may reset with NO_ERROR after its complete response (RFC 9113 section 8.1). Node's servers do that without
/// END_STREAM. With another code, too, what its length says is whole is whole.
#[test]
fn a_member_that_wants_no_more_of_a_request_has_answered_it_whole() {
    let answer: [(&[u8], &[u8]); 2] = [(b":status", b"403"), (b"content-length", b"5")];
    let member = Http2Member::new(&[], move |peer, _| {
        while let Some(stream) = peer.next_request() {
            let path = peer.streams[&stream].path().to_owned();
            let mut out = Vec::new();
            let lines = if path == "/unsized" { &answer[..1] } else { &answer[..] };
            Frame::headers(stream, lines, false).write(&mut out);
            let (body, flags) = match path.as_str() {
                "/short" => (&b"hell"[..], 0),
                "/ended" => (&b"hello"[..], flag::END_STREAM),
                _ => (&b"hello"[..], 0),
            };
            Frame::new(kind::DATA, flags, stream, body).write(&mut out);
            let code = if path == "/failed" { code::INTERNAL_ERROR } else { code::NO_ERROR };
            Frame::reset(stream, code).write(&mut out);
            peer.send_bytes(out)?;
        }
        Ok(())
    });
    let proxy = Proxy::start(&before(&member));
    for is_upload in [true, false] {
        for (path, is_whole) in [
            ("/whole", true),
            ("/ended", true),
            ("/short", false),
            ("/unsized", false),
            ("/failed", true),
        ] {
            let name = format!("{path}, upload: {is_upload}");
            let mut peer = connect(&proxy);
            let method = if is_upload { "POST" } else { "GET" };
            let stream = peer.request(method, path, &[], !is_upload);
            if is_upload {
                peer.data(stream, b"some of it", false);
            }
            let response = peer.response(stream);
            assert_eq!(response.ended, is_whole, "{name}: {response:?}");
            assert!(is_whole || response.reset != Some(code::NO_ERROR), "{name}: {response:?}");
            let mut client = proxy.client();
            let length =
                if is_upload { "Content-Length: 100000\r\n\r\nsome of it" } else { "\r\n" };
            client.send(format!("{method} {path} HTTP/1.1\r\nHost: test\r\n{length}"));
            let response = client.response();
            assert_eq!(response.complete, is_whole, "{name}: {response:?}");
            assert!(!is_whole || response.text() == "hello", "{name}: {response:?}");
        }
    }
}

// Members that send no window updates

/// The number of bytes that a connection may carry without a window update.
const WINDOW: u64 = 65_535;

/// A member that sends no window updates on its first connection. It responds there with 403 when it has received the whole
/// window, and at once to requests without a body. On other connections it responds to each complete request.
fn miser() -> (Http2Member, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let member = Http2Member::new(&[], move |peer, number| {
        peer.holds_windows = number == 0;
        while let Some(stream) = peer.next_request() {
            if number > 0 {
                let size = peer.response(stream).body.len().to_string();
                peer.answer_with(stream, size.as_bytes())?;
                continue;
            }
            count.fetch_add(1, Ordering::AcqRel);
            if peer.streams[&stream].ended {
                peer.answer_with(stream, b"nothing")?;
                continue;
            }
            while peer.received < WINDOW && peer.pump() {}
            peer.send(&Frame::headers(stream, &[(b":status", b"403")], true));
        }
        Ok(())
    });
    (member, asked)
}

#[test]
fn an_upload_does_not_wait_for_a_window_that_a_former_one_has_shut() {
    let body = vec![b'x'; 200_000];
    for method in ["POST", "PUT"] {
        let (member, asked) = miser();
        let proxy = Proxy::start(&before(&member).http("body_timeout: 20s"));
        let mut peer = connect(&proxy);
        assert_eq!(peer.post("/first", &body).status(), 403);
        // Requests without a body do not need a window.
        let mut client = proxy.client();
        assert_eq!(client.get("/bare").assert_status(200).text(), "nothing");
        let stream = peer.request(method, "/second", &[], false);
        peer.body(stream, &body, true).expect("all of it");
        assert_eq!(peer.response(stream).assert_status(200).text(), "200000");
        client.send(format!(
            "{method} /third HTTP/1.1\r\nHost: test\r\nContent-Length: 200000\r\n\r\n"
        ));
        assert_eq!(client.send(&body).response().assert_status(200).text(), "200000");
        assert_eq!((member.connection_count(), asked.load(Ordering::Acquire)), (2, 2));
    }
}

#[test]
fn a_connection_that_rests_with_its_window_shut_is_closed() {
    let (member, _) = miser();
    let proxy = Proxy::start(&before(&member).pool("reuse: { idle_timeout: 1h }"));
    assert_eq!(connect(&proxy).post("/first", &[b'x'; 200_000]).status(), 403);
    eventually("it is closed", STEP_TIMEOUT, || member.open_connections() == 0);
    assert_eq!(proxy.metric("weir_member_connections_open", &[]), 0.0);
}

/// Uploads that wait because another one has consumed the window of the connection to the member.
struct Crowd {
    proxy: Proxy,
    first: Peer,
    first_stream: u32,
    peer: Peer,
    streams: Vec<u32>,
    clients: Vec<Client>,
}

/// The upload that has consumed the window, and four waiting ones, over both versions: with Content-Length, without it, with
/// trailers.
fn crowd(member: &Http2Member) -> Crowd {
    let proxy = Proxy::start(&before(member).http("body_timeout: 5s"));
    let mut first = connect(&proxy);
    let first_stream = first.request("POST", "/first", &[], false);
    first.body(first_stream, &[b'x'; 100_000], false).expect("sent");
    eventually("the window is used up", STEP_TIMEOUT, || {
        proxy.metric("weir_member_sent_bytes_total", &[]) > WINDOW as f64
    });
    let mut peer = connect(&proxy);
    let short = peer.request("POST", "/short", &[("content-length", "5")], false);
    peer.data(short, b"short", true);
    let long = peer.request("POST", "/long", &[], false);
    peer.body(long, &[b'y'; 100_000], false).expect("sent");
    peer.headers(long, &[("x-sum", "42")], true);
    let mut clients = [proxy.client(), proxy.client()];
    clients[0].send("POST /short HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nshort");
    clients[1].send("PUT /long HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
    // More bytes than the sockets hold.
    let mut stream = clients[1].stream().try_clone().expect("the same once more");
    std::thread::spawn(move || {
        let chunk = [&b"10000\r\n"[..], &[b'z'; 65_536], b"\r\n"].concat();
        let all = (0..100).try_for_each(|_| stream.write_all(&chunk));
        all.and_then(|()| stream.write_all(b"0\r\nX-Sum: 43\r\n\r\n"))
    });
    peer.settle();
    let clients = clients.into();
    Crowd { proxy, first, first_stream, peer, streams: vec![short, long], clients }
}

impl Crowd {
    fn assert_served(&mut self) {
        let expected = ["5 none", "100000 42", "5 none", "6553600 43"];
        let mut got: Vec<String> = self
            .streams
            .iter()
            .map(|stream| self.peer.response(*stream).assert_status(200).text())
            .collect();
        for client in &mut self.clients {
            got.push(client.response().assert_status(200).text());
        }
        assert_eq!(got, expected);
    }
}

/// Responds with the size of the body and the value of a trailer.
fn tell_size(peer: &mut Peer, stream: u32) -> std::io::Result<()> {
    let request = peer.response(stream);
    let sum = request.trailers.iter().find(|(name, _)| name == "x-sum");
    let sum = sum.map_or("none", |(_, value)| value.as_str());
    peer.answer_with(stream, format!("{} {sum}", request.body.len()).as_bytes())
}

#[test]
fn uploads_that_wait_for_a_window_go_on_when_it_opens() {
    let is_open = Arc::new(AtomicBool::new(false));
    let (gate, early) = (Arc::clone(&is_open), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&early);
    let member = Http2Member::new(&[], move |peer, _| {
        peer.holds_windows = true;
        while !gate.load(Ordering::Acquire) {
            peer.pump_for(Duration::from_millis(5));
            // weir may have opened a second connection without streams in the meantime.
            seen.fetch_max(peer.streams.len(), Ordering::AcqRel);
        }
        peer.release_windows();
        while let Some(stream) = peer.next_request() {
            tell_size(peer, stream)?;
        }
        Ok(())
    });
    let mut crowd = crowd(&member);
    eventually("the member has the first", STEP_TIMEOUT, || early.load(Ordering::Acquire) > 0);
    is_open.store(true, Ordering::Release);
    crowd.first.data(crowd.first_stream, b"", true);
    assert_eq!(crowd.first.response(crowd.first_stream).assert_status(200).text(), "100000 none");
    crowd.assert_served();
    assert_eq!(early.load(Ordering::Acquire), 1, "those that waited had sent nothing");
    assert!(member.connection_count() <= 2, "{} connections", member.connection_count());
}

#[test]
fn uploads_that_wait_for_a_window_that_stays_shut_move_to_another_connection() {
    let early = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&early);
    let member = Http2Member::new(&[], move |peer, number| {
        peer.holds_windows = number == 0;
        while let Some(stream) = peer.next_request() {
            if number == 0 {
                seen.fetch_add(1, Ordering::AcqRel);
            } else {
                tell_size(peer, stream)?;
            }
        }
        Ok(())
    });
    let mut crowd = crowd(&member);
    crowd.assert_served();
    eventually("the member has the first", STEP_TIMEOUT, || early.load(Ordering::Acquire) > 0);
    assert_eq!(early.load(Ordering::Acquire), 1, "those that moved had sent nothing");
    assert_eq!(crowd.first.streams.get(&crowd.first_stream).map(|it| it.status()), None);
    let failures = crowd.proxy.metric("weir_member_failures_total", &[]);
    assert_eq!((failures, crowd.proxy.metric("weir_pool_retries_total", &[])), (0.0, 0.0));
}

/// When the upload that has consumed the window ends, weir sends the others at once.
#[test]
fn uploads_that_wait_for_one_that_is_gone_move_to_another_connection() {
    let (member, _) = miser();
    let mut crowd = crowd(&member);
    // The member responds early, after it has received the whole window.
    assert_eq!(crowd.first.response(crowd.first_stream).status(), 403);
    for stream in crowd.streams {
        crowd.peer.response(stream).assert_status(200);
    }
    for mut client in crowd.clients {
        client.response().assert_status(200);
    }
}

// Data in many small frames

/// This number of DATA frames of one byte, and a frame that ends the stream.
fn bytes_of(stream: u32, count: usize) -> Vec<u8> {
    let mut out = Frame::new(kind::DATA, 0, stream, *b"x").bytes().repeat(count);
    Frame::new(kind::DATA, flag::END_STREAM, stream, []).write(&mut out);
    out
}

const COUNT: usize = 10_000;

#[test]
fn small_frames_of_a_request_go_on_as_one() {
    let old = Member::new(|exchange| {
        let size = exchange.request.body.len();
        exchange.answer(size.to_string())
    });
    let frames = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&frames);
    let new = Http2Member::new(&[], move |peer, _| {
        while let Some(stream) = peer.next_request() {
            let size = peer.response(stream).body.len().to_string();
            seen.store(peer.data_order.len(), Ordering::Release);
            peer.answer_with(stream, size.as_bytes())?;
        }
        Ok(())
    });
    for setup in [h2c(&[old.address()]), before(&new)] {
        let proxy = Proxy::start(&setup);
        let mut peer = connect(&proxy);
        let stream = peer.request("POST", "/", &[], false);
        peer.send_bytes(bytes_of(stream, COUNT)).expect("sent");
        assert_eq!(peer.response(stream).assert_status(200).text(), COUNT.to_string());
        let sent = proxy.metric("weir_member_sent_bytes_total", &[]) as usize;
        assert!(sent < COUNT * 3 / 2, "{sent} bytes for {COUNT}");
    }
    let frames = frames.load(Ordering::Acquire);
    assert!(frames < COUNT / 10, "{frames} frames");
}

#[test]
fn small_frames_of_a_response_go_on_as_one() {
    let member = Http2Member::new(&[], |peer, _| {
        while let Some(stream) = peer.next_request() {
            peer.send(&Frame::headers(stream, &[(b":status", b"200")], false));
            peer.send_bytes(bytes_of(stream, COUNT))?;
        }
        Ok(())
    });
    let proxy = Proxy::start(&before(&member));
    assert_eq!(proxy.client().get("/").assert_status(200).body.len(), COUNT);
    let sent = metric(&proxy, "sent_bytes_total") as usize;
    assert!(sent < COUNT * 3 / 2, "{sent} bytes for {COUNT}");
    let mut peer = connect(&proxy);
    assert_eq!(peer.get("/").assert_status(200).body.len(), COUNT);
    assert!(peer.data_order.len() < COUNT / 10, "{} frames", peer.data_order.len());
}

/// A body in frames of random sizes. Returns the frames and the body.
fn some_frames(random: &mut Random, stream: u32) -> (Vec<Vec<u8>>, Vec<u8>) {
    let (mut frames, mut body) = (Vec::new(), Vec::new());
    for _ in 0..random.below(30) {
        let length = [0, 1, 7, 900, 4_096, 4_097, 6_000][random.below(7)];
        let data: Vec<u8> = (0..length).map(|_| b'a' + random.below(26) as u8).collect();
        frames.push(Frame::new(kind::DATA, 0, stream, &*data).bytes());
        body.extend_from_slice(&data);
    }
    frames.push(match random.percent(50) {
        true => Frame::headers(stream, &[(b"x-sum", b"1")], true).bytes(),
        false => Frame::new(kind::DATA, flag::END_STREAM, stream, *b"end").bytes(),
    });
    if frames.last().is_some_and(|last| last.ends_with(b"end")) {
        body.extend_from_slice(b"end");
    }
    (frames, body)
}

#[test]
fn bodies_arrive_whole_however_they_are_cut_and_mixed() {
    const STREAMS: usize = 6;
    let old = Member::new(|exchange| {
        let body = std::mem::take(&mut exchange.request.body);
        exchange.answer(body)
    });
    let new = Http2Member::new(&[], |peer, number| {
        let mut random = Random::new(number as u64);
        while let Some(stream) = peer.next_request() {
            let body = peer.response(stream).body;
            peer.send(&Frame::headers(stream, &[(b":status", b"200")], false));
            let mut rest = &body[..];
            let mut out = Vec::new();
            while !rest.is_empty() {
                let (frame, tail) = rest.split_at(rest.len().min([1, 20, 5_000][random.below(3)]));
                Frame::new(kind::DATA, 0, stream, frame).write(&mut out);
                rest = tail;
            }
            Frame::new(kind::DATA, flag::END_STREAM, stream, []).write(&mut out);
            peer.send_bytes(out)?;
        }
        Ok(())
    });
    for setup in [h2c(&[old.address()]), before(&new)] {
        let proxy = Proxy::start(&setup);
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let mut peer = connect(&proxy);
            let mut bodies = Vec::new();
            let mut frames = Vec::new();
            for _ in 0..STREAMS {
                let stream = peer.request("POST", "/", &[], false);
                let (of_stream, body) = some_frames(&mut random, stream);
                bodies.push((stream, body));
                frames.push(of_stream.into_iter());
            }
            let mut out = Vec::new();
            while !frames.is_empty() {
                let place = random.below(frames.len());
                match frames[place].next() {
                    Some(frame) => out.extend_from_slice(&frame),
                    None => drop(frames.swap_remove(place)),
                }
            }
            peer.send_bytes(out).expect("sent");
            for (stream, body) in bodies {
                let response = peer.response(stream);
                assert_eq!(response.assert_status(200).body, body, "seed {seed}, stream {stream}");
            }
        }
    }
}

/// The member's timeout starts again when a waiting request continues.
#[test]
fn an_upload_that_has_waited_for_a_window_is_not_cut_for_that() {
    let member = Http2Member::new(&[], move |peer, _| {
        peer.holds_windows = true;
        // Long enough that the second request waits, and too short for a move to another connection.
        peer.pump_for(Duration::from_millis(600));
        peer.holds_windows = false;
        peer.release_windows();
        while let Some(stream) = peer.next_request() {
            tell_size(peer, stream)?;
        }
        Ok(())
    });
    let proxy = Proxy::start(&before(&member).http("body_timeout: 3s"));
    let mut first = connect(&proxy);
    let first_stream = first.request("POST", "/first", &[], false);
    first.body(first_stream, &[b'x'; 100_000], false).expect("sent");
    eventually("the window is used up", STEP_TIMEOUT, || {
        proxy.metric("weir_member_sent_bytes_total", &[]) > WINDOW as f64
    });
    let mut peer = connect(&proxy);
    let second = peer.request("POST", "/second", &[], false);
    let mut client = proxy.client();
    client.send("POST /third HTTP/1.1\r\nHost: test\r\nContent-Length: 400\r\n\r\n");
    for number in 0..40 {
        peer.data(second, &[b'y'; 10], number == 39);
        client.send([b'z'; 10]);
        peer.pump_for(Duration::from_millis(100));
        if number == 5 {
            first.data(first_stream, b"", true);
        }
    }
    assert_eq!(first.response(first_stream).assert_status(200).text(), "100000 none");
    assert_eq!(peer.response(second).assert_status(200).text(), "400 none");
    assert_eq!(client.response().assert_status(200).text(), "400 none");
    assert_eq!(proxy.metric("weir_member_failures_total", &[]), 0.0);
}

/// Data for a request that weir has rejected, in small frames and a long one, is returned to the window of the connection.
#[test]
fn uploads_that_are_refused_cost_no_window() {
    let member = hasty();
    let proxy = Proxy::start(&h2c(&[member.address()]).http("body_size_max: 50B"));
    let mut peer = connect(&proxy);
    let mut left = Vec::new();
    for _ in 0..60 {
        let stream = peer.new_stream();
        let lines = [(":method", "POST"), (":scheme", "http"), (":path", "/"), (":authority", "a")];
        let bytes = |text: &(&'static str, &'static str)| (text.0.as_bytes(), text.1.as_bytes());
        let lines: Vec<(&[u8], &[u8])> = lines.iter().map(bytes).collect();
        let data = |length: usize| Frame::new(kind::DATA, 0, stream, vec![b'x'; length]).bytes();
        let head = Frame::headers(stream, &lines, false).bytes();
        peer.spend(stream, 16_100);
        peer.send_bytes([head, data(100), data(16_000)].concat()).expect("sent");
        peer.response(stream).assert_status(413);
        peer.send(&Frame::reset(stream, code::CANCEL)).settle();
        left.push(peer.allowance_of_connection());
    }
    // The window is large, because weir sends large window updates.
    assert!(left.iter().all(|bytes| *bytes > 400_000), "{left:?}");
}

/// A client that does not read a complete response cannot continue its upload without end.
#[test]
fn an_upload_beside_a_response_that_is_not_taken_has_an_end() {
    let member = hasty();
    let proxy = Proxy::start(&h2c(&[member.address()]));
    let mut peer = Peer::connect_with(proxy.address(), &[(setting::INITIAL_WINDOW_SIZE, 1)]);
    peer.holds_windows = true;
    peer.pump_until("its settings", |peer| !peer.settings.is_empty());
    let stream = peer.request("POST", "/", &[], false);
    let mut sent = 0;
    while sent < 8 << 20 {
        if peer.allowance(stream) == 0 {
            peer.pump_for(Duration::from_millis(500));
        }
        let length = peer.allowance(stream).min(16_000);
        if length == 0 {
            break;
        }
        peer.data(stream, &vec![b'x'; length], false);
        sent += length;
    }
    assert!(sent < 4 << 20, "{sent} bytes");
}
