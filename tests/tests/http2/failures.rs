//! HTTP/2 clients: slow, failing and disconnecting ones, reloads and shutdown.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use weir_tests::http2::{Frame, Peer, code, flag, kind, setting};
use weir_tests::member::{Member, Then};
use weir_tests::pattern::Checker;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually, require, tools};

use super::{connect, h2c, metric, sized, start};

// Slow, failing and disconnecting clients

#[test]
fn what_is_over_in_one_breath_reaches_no_member() {
    let member = sized();
    let proxy = start(&member);
    let mut peer = connect(&proxy);
    let lines: [(&[u8], &[u8]); 4] = [
        (b":method", b"GET"),
        (b":scheme", b"http"),
        (b":path", b"/over"),
        (b":authority", b"test"),
    ];
    let mut out = Vec::new();
    for wrong in [None, Some(Frame::reset(0, code::CANCEL)), Some(Frame::window_update(0, 0))] {
        for _ in 0..20 {
            let stream = peer.new_stream();
            Frame::headers(stream, &lines, true).write(&mut out);
            if let Some(mut frame) = wrong.clone() {
                frame.stream = stream;
                frame.write(&mut out);
            }
        }
    }
    peer.send_bytes(out).expect("sent");
    for number in 0..20 {
        peer.response(1 + 2 * number).assert_status(200);
    }
    peer.get("/5").assert_status(200);
    assert_eq!(member.request_count(), 21, "those that are wanted");
    assert_eq!(metric(&proxy, "requests_active"), 0.0);
}

#[test]
fn a_slow_reader_holds_its_own_stream_alone_and_little_memory() {
    const GROWTH_BYTES_MAX: u64 = 8 * 1024 * 1024;
    let member = sized();
    let mut proxy = Proxy::start(&h2c(&[&member]).http("body_timeout: 3s").access_log());
    let mut peer = connect(&proxy);
    peer.get("/0");
    let before = proxy.process().resident_bytes();
    // Each stream has a window of 1 KiB that is never updated. The connection's window remains open.
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
    // The client continues to read one stream slowly: for longer than the timeout, and much more often.
    let going = slow[0];
    for _ in 0..12 {
        peer.pump_for(Duration::from_millis(300));
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
    let proxy = Proxy::start(&h2c(&[&member]).http("idle_timeout: 1500ms"));
    let mut peer = connect(&proxy);
    peer.get("/").assert_status(200);
    let begun = Instant::now();
    assert_eq!(peer.rest(), Some((1, code::NO_ERROR)));
    assert!(begun.elapsed() >= Duration::from_millis(1_400), "{:?}", begun.elapsed());
    // The timeout also applies without any request. PING is not a request.
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
    // A partial preface has the timeout of a head.
    let mut client = proxy.client();
    client.send("PRI * HTTP/2.0\r\n\r\nSM");
    client.response().assert_status(408);
    // A head without its last CONTINUATION frame.
    let mut peer = connect(&proxy);
    peer.send(&Frame::new(kind::HEADERS, flag::END_STREAM, 1, []));
    assert_eq!(peer.rest().map(|(_, code)| code), Some(code::NO_ERROR));
    assert_eq!(proxy.metric("weir_virtual_server_timeouts_total", &["\"head\""]), 5.0);
}

#[test]
fn frames_that_are_always_cut_somewhere_are_no_slow_head() {
    let member = Member::named("here");
    let proxy = Proxy::start(&h2c(&[&member]).http("header_timeout: 2s"));
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
    // The client must send no window updates between the halves of a frame.
    peer.holds_windows = true;
    // Each write contains the end of one head and the start of the next. Together they take longer than the timeout.
    peer.send_bytes(&head(1)[..20]).expect("sent");
    for stream in (1..20).step_by(2) {
        peer.pump_for(Duration::from_millis(250));
        let bytes = [&head(stream)[20..], &head(stream + 2)[..20]].concat();
        peer.send_bytes(bytes).expect("sent");
        let response = peer.response(stream);
        assert_eq!(response.status(), 200, "{stream}: {response:?}, {:?}", peer.goaways);
    }
}

// Reloads and shutdown

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
    // The client sends this request as if it had not received GOAWAY yet.
    let late = peer.new_stream();
    let lines = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "test")];
    peer.headers(late, &lines, true);
    let late = peer.response(late);
    assert!(late.status() == 200 || late.status() == 0, "{late:?}");
    peer.response(slow).assert_status(200);
    let last = peer.rest().expect("GOAWAY");
    assert!(last.1 == code::NO_ERROR && last.0 >= slow, "{last:?}");
    // A request up to the last stream in GOAWAY is served.
    assert_eq!(late.status() == 200, last.0 > slow, "{last:?}, {late:?}");
    assert_eq!(idle.rest(), Some((0, code::NO_ERROR)));
    // Some clients take a PING behind GOAWAY for an error.
    assert_eq!((idle.pings, idle.goaways.first()), (0, Some(&(0x7fff_ffff, code::NO_ERROR))));
    assert!(proxy.process().wait(STEP_TIMEOUT).success());
}

/// Sends requests over one connection after another, several streams at a time, until `stop` is set. It replaces a
/// connection after GOAWAY. Returns the number of responses, and the requests without a response up to the last stream in
/// GOAWAY.
fn ask_on(address: SocketAddr, stop: &AtomicBool, all_good: &AtomicUsize) -> (usize, Vec<String>) {
    let (mut good, mut failed) = (0, Vec::new());
    'connections: while !stop.load(Ordering::Acquire) {
        let Ok(mut peer) = Peer::try_connect(address, &[]) else { continue };
        // The kernel may have queued the connection at a listener that was closed before it accepted.
        while peer.settings.is_empty() {
            if !peer.pump() {
                continue 'connections;
            }
        }
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
                    all_good.fetch_add(1, Ordering::AcqRel);
                } else if stream <= last && peer.goaways.last() != Some(&(0x7fff_ffff, 0)) {
                    failed.push(format!("{stream}: {response:?}, {:?}", peer.goaways));
                }
            }
            if !failed.is_empty() {
                return (good, failed);
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
    let (stop, all_good) = (AtomicBool::new(false), AtomicUsize::new(0));
    let address = proxy.address();
    std::thread::scope(|scope| {
        let loads: Vec<_> =
            (0..3).map(|_| scope.spawn(|| ask_on(address, &stop, &all_good))).collect();
        let wait_for_more = || {
            let least = all_good.load(Ordering::Acquire) + 48;
            eventually("requests are answered", STEP_TIMEOUT, || {
                all_good.load(Ordering::Acquire) >= least
            });
        };
        for seconds in 21..25 {
            wait_for_more();
            proxy.reload_and_wait(&setup(&format!("idle_timeout: {seconds}s")));
        }
        wait_for_more();
        proxy.process().signal(Signal::TERM);
        proxy.process().wait(STEP_TIMEOUT);
        stop.store(true, Ordering::Release);
        for load in loads {
            let (good, failed) = load.join().expect("a load");
            assert!(failed.is_empty(), "{good} good, {failed:?}");
            assert!(good > 0, "each load is served");
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
    // The open connection continues, or GOAWAY arrives before a request is lost.
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

#[test]
fn a_member_that_hangs_is_given_up_while_its_client_does_not_read() {
    let member = Member::new(|exchange| match exchange.request.target() {
        "/never" => {
            std::thread::sleep(Duration::from_secs(30));
            Ok(Then::Close)
        }
        "/big" => exchange.answer(vec![b'x'; 64 << 20]),
        _ => {
            std::thread::sleep(Duration::from_millis(200));
            exchange.answer("slow")
        }
    });
    let setup = h2c(&[&member]).pool("response_timeout: 4s").http("body_timeout: 60s");
    let setup = setup.top("data_plane: { workers: 1 }");
    let proxy = Proxy::start(&setup);
    let window = (setting::INITIAL_WINDOW_SIZE, 0x7fff_ffff);
    let mut peer = Peer::connect_with(proxy.address(), &[window]);
    peer.drops_data = true;
    peer.send(&Frame::window_update(0, 0x7f00_0000));
    // Opens two reusable connections to the member.
    for slow in [(); 2].map(|()| peer.request("GET", "/slow", &[], true)) {
        peer.response(slow).assert_status(200);
    }
    let big = peer.request("GET", "/big", &[], true);
    peer.response_head(big);
    let sent = || proxy.metric("weir_virtual_server_sent_bytes_total", &["\"main\""]);
    // The download stalls when all buffers are full.
    let mut before = -1.0;
    eventually("no more goes out", STEP_TIMEOUT, || {
        std::thread::sleep(Duration::from_millis(50));
        std::mem::replace(&mut before, sent()) == before
    });
    let never = peer.request("GET", "/never", &[], true);
    eventually("it is given up", STEP_TIMEOUT, || {
        proxy.metric("weir_virtual_server_requests_active", &[]) == 1.0
            && member.request_count() == 4
    });
    peer.response(never).assert_status(504);
    assert!(peer.response(big).assert_status(200).ended);
}

#[test]
fn a_member_that_hangs_is_given_up_while_others_are_busy() {
    let member = Member::new(|exchange| match exchange.request.target() {
        "/never" => {
            std::thread::sleep(weir_tests::STEP_TIMEOUT);
            Ok(Then::Close)
        }
        _ => exchange.answer(vec![b'x'; 4 << 20]),
    });
    let setup = h2c(&[&member]).pool("response_timeout: 3s").top("data_plane: { workers: 1 }");
    let proxy = Proxy::start(&setup);
    let mut peer = connect(&proxy);
    let never = peer.request("GET", "/never", &[], true);
    // Its time goes on while others are served.
    while !peer.streams.get(&never).is_some_and(|it| it.ended) {
        peer.get("/big").assert_status(200);
    }
    peer.response(never).assert_status(504);
}

/// weir replaces the member's 200 by 304, because the client has the current version. The client's stream ends before the
/// member's response.
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
