//! Upgrades under load lose no request and no connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use weir_tests::client::Client;
use weir_tests::datagrams::{DatagramClient, DatagramMember};
use weir_tests::http2::Peer;
use weir_tests::load::{Load, Plan};
use weir_tests::member::{Exchange, Member, Then};
use weir_tests::ports::Lease;
use weir_tests::proxy::Setup;
use weir_tests::websocket::{self, WebSocket};

use crate::Line;

/// A piece of the long download.
const PIECE: &[u8] = &[b'x'; 1_024];

/// The number of upgrades.
fn upgrades() -> usize {
    std::env::var("WEIR_UPGRADES").ok().and_then(|text| text.parse().ok()).unwrap_or(2)
}

/// A member that sends `/download` in pieces until `ends` is set, echoes messages of WebSockets, and responds to other
/// requests at once.
fn member(ends: &Arc<AtomicBool>) -> Member {
    let ends = Arc::clone(ends);
    Member::new(move |exchange: &mut Exchange| {
        if exchange.request.target().starts_with("/chat") {
            return websocket::serve(exchange);
        }
        if !exchange.request.target().starts_with("/download") {
            return exchange.answer("hello");
        }
        exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        while !ends.load(Relaxed) {
            exchange.send(format!("{:x}\r\n", PIECE.len()))?;
            exchange.send(PIECE)?;
            exchange.send("\r\n")?;
            thread::sleep(Duration::from_millis(5));
        }
        exchange.send("0\r\n\r\n")?;
        Ok(Then::KeepAlive)
    })
}

/// A thread that runs until `ends` is set. It returns the number of successes, or the first failure.
type Worker = JoinHandle<Result<usize, String>>;

fn websocket(address: SocketAddr, ends: &Arc<AtomicBool>) -> Worker {
    let ends = Arc::clone(ends);
    let mut socket = WebSocket::connect(address);
    thread::spawn(move || {
        let mut echoed = 0;
        while !ends.load(Relaxed) {
            let answer = socket.echo("hello").map_err(|error| format!("WebSocket: {error}"))?;
            assert_eq!(answer, "hello");
            echoed += 1;
            thread::sleep(Duration::from_millis(10));
        }
        Ok(echoed)
    })
}

fn download(address: SocketAddr) -> Worker {
    let mut client = Client::connect(address);
    client.send("GET /download HTTP/1.1\r\nHost: test\r\n\r\n");
    thread::spawn(move || {
        let response = client.try_response(false).map_err(|error| format!("download: {error}"))?;
        match response.complete && response.status == 200 {
            true => Ok(response.body.len()),
            false => Err(format!("download: {:?}", response.head)),
        }
    })
}

/// Sends requests over HTTP/2. After GOAWAY it opens a new connection, and waits for the responses on the old one.
fn streams(address: SocketAddr, ends: &Arc<AtomicBool>) -> Worker {
    let ends = Arc::clone(ends);
    thread::spawn(move || {
        let mut answered = 0;
        while !ends.load(Relaxed) {
            let peer = Peer::try_connect(address, &[]);
            let mut peer = peer.map_err(|error| format!("HTTP/2: {error}"))?;
            while !ends.load(Relaxed) && peer.goaways.is_empty() {
                let asked: Vec<u32> = (0..3).map(|_| peer.request("GET", "/", &[], true)).collect();
                for stream in asked {
                    let message = peer.response(stream);
                    let is_refused = peer.goaways.last().is_some_and(|(last, _)| *last < stream);
                    if is_refused {
                        continue;
                    }
                    if !message.ended || message.status() != 200 {
                        let goaways = &peer.goaways;
                        return Err(format!("stream {stream}: {message:?} {goaways:?}"));
                    }
                    answered += 1;
                }
                thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(answered)
    })
}

/// The same download on a stream of HTTP/2: it outlives the GOAWAY of its connection.
fn download_on_a_stream(address: SocketAddr) -> Worker {
    let mut peer = Peer::connect(address);
    let stream = peer.request("GET", "/download", &[], true);
    thread::spawn(move || {
        let message = peer.response(stream);
        match message.ended
            && message.status() == 200
            && message.body.len().is_multiple_of(PIECE.len())
        {
            true => Ok(message.body.len()),
            false => Err(format!("download on a stream: {:?} {:?}", message.head, message.reset)),
        }
    })
}

#[test]
fn nothing_fails_and_nothing_is_cut() {
    let ends = Arc::new(AtomicBool::new(false));
    let member = member(&ends);
    let setup = Setup::new(&[member.address()]).http("http2: true");
    let mut line = Line::start(&setup.top("data_plane: { workers: 2 }"));
    let address = line.proxy.address();
    let pause = Duration::from_millis(1);
    let plan = |requests| Plan { connections: 4, pause, requests_per_connection: requests };
    let loads = [Load::start(address, "/", plan(None)), Load::start(address, "/", plan(Some(3)))];
    let mut workers: Vec<Worker> = (0..4).map(|_| websocket(address, &ends)).collect();
    workers.extend((0..2).map(|_| streams(address, &ends)));
    workers.push(download(address));
    workers.push(download_on_a_stream(address));
    let first = line.proxy.process().pid();
    for _ in 0..upgrades() {
        line.upgrade();
        // The new connections belong to the new process.
        workers.push(websocket(address, &ends));
        workers.push(download(address));
        workers.push(download_on_a_stream(address));
    }
    loads.iter().for_each(|load| load.wait_for_good(100));
    ends.store(true, Relaxed);
    let long = workers.len();
    for worker in workers {
        let done = worker.join().expect("a thread of the load");
        assert!(done.as_ref().is_ok_and(|count| *count > 0), "{done:?}");
    }
    let mut requests = 0;
    for load in loads {
        let tally = load.stop();
        assert_eq!(tally.failed(), 0, "{tally:?}");
        requests += tally.good;
    }
    let upgrades = upgrades();
    println!("{upgrades} upgrades: {requests} requests, 0 failed; {long} long connections, 0 cut");
    // The old process ends with its last client.
    assert_ne!(line.serving(), first);
    assert!(line.proxy.process().wait(weir_tests::STEP_TIMEOUT).success());
}

/// The drain time of the test of deadlines.
const DRAIN_TIME: Duration = Duration::from_secs(2);

#[test]
fn what_lasts_longer_than_the_drain_time_is_cut_at_its_end_and_not_before() {
    let ends = Arc::new(AtomicBool::new(false));
    let member = member(&ends);
    let setup = Setup::new(&[member.address()]).http("http2: true");
    let drain_timeout = DRAIN_TIME.as_secs();
    let mut line =
        Line::start(&setup.top(&format!("data_plane: {{ drain_timeout: {drain_timeout}s }}")));
    let address = line.proxy.address();
    let begin = [websocket(address, &ends), download(address), download_on_a_stream(address)];
    let started = Instant::now();
    line.upgrade();
    for worker in begin {
        let done = worker.join().expect("a thread of the load");
        let lasted = started.elapsed();
        assert!(done.is_err(), "{done:?}");
        assert!(lasted >= DRAIN_TIME, "{done:?} after {lasted:?}");
    }
    assert!(line.proxy.process().wait(weir_tests::STEP_TIMEOUT).success());
    // What began in the new process lasts.
    let after = websocket(address, &ends);
    thread::sleep(DRAIN_TIME);
    ends.store(true, Relaxed);
    let done = after.join().expect("a thread of the load");
    assert!(done.as_ref().is_ok_and(|count| *count > 0), "{done:?}");
}

#[test]
fn datagrams_are_answered_by_the_new_process() {
    let member = DatagramMember::echo("one");
    let listen = Lease::new();
    let setup = Setup::new(&[])
        .member(&listen.address().to_string())
        .also_pool(&format!("dns: {{ members: [ {} ] }}", member.address()))
        .also_virtual_server(&format!(
            "dns: {{ listen: \"{}\", type: udp, pool: dns }}",
            listen.address()
        ));
    let mut line = Line::start(&setup.top("data_plane: { workers: 2 }"));
    let clients: Vec<_> = (0..8).map(|_| DatagramClient::of(listen.address())).collect();
    let ask_all = |text: &str| {
        for client in &clients {
            assert_eq!(client.ask(text), format!("one {text}"));
        }
    };
    ask_all("before");
    line.upgrade();
    // The same clients have new sessions, and each datagram gets one reply.
    ask_all("after");
    ask_all("again");
    for client in &clients {
        assert_eq!(client.receive_within(Duration::from_millis(20)), None);
    }
    let sessions = line.proxy.metric("weir_virtual_server_connections_total", &["\"dns\""]);
    assert_eq!(sessions, clients.len() as f64, "the new process has its own");
}
