//! Large bodies: no byte is lost or duplicated, and memory is constant while one side is slow.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use weir_tests::client::Client;
use weir_tests::member::{Exchange, Member, Then};
use weir_tests::pattern::{self, Checker};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::wire::Framing;

/// Default size of the large bodies.
const BODY_MIB: u64 = 64;
/// Allowed growth of weir's memory for a body of any size: the buffers of a few connections.
const GROWTH_BYTES_MAX: u64 = 8 * 1024 * 1024;
const BLOCK_BYTES: usize = 256 * 1024;

/// Time for which a slow side reads in small steps, without a stall.
const DRIP: Duration = Duration::from_secs(6);
const DRIP_BYTES_PER_SECOND: f64 = 150e3;

/// The size of the large bodies. `WEIR_TEST_BODY_MIB` sets it; 1024 and 10240 are usual for full tests.
fn body_size() -> u64 {
    let mib =
        std::env::var("WEIR_TEST_BODY_MIB").ok().map(|text| text.parse().expect("a number of MiB"));
    mib.unwrap_or(BODY_MIB) * 1024 * 1024
}

/// Sends the pattern, chunked or as it is.
fn send_pattern(stream: &mut impl Write, size: u64, chunked: bool) -> std::io::Result<()> {
    let mut block = vec![0; BLOCK_BYTES];
    let mut sent = 0;
    while sent < size {
        let count = (size - sent).min(BLOCK_BYTES as u64) as usize;
        pattern::fill(&mut block[..count], sent);
        if chunked {
            write!(stream, "{count:x}\r\n")?;
        }
        stream.write_all(&block[..count])?;
        if chunked {
            stream.write_all(b"\r\n")?;
        }
        sent += count as u64;
    }
    if chunked { stream.write_all(b"0\r\n\r\n") } else { Ok(()) }
}

/// Responds to `/length` and `/chunked` with the pattern, and to a POST with the checker's verdict about its body.
fn large(exchange: &mut Exchange) -> std::io::Result<Then> {
    if exchange.request.method() == "POST" {
        return take_upload(exchange, Duration::ZERO);
    }
    let chunked = exchange.request.target() == "/chunked";
    let framing = match chunked {
        true => "Transfer-Encoding: chunked".to_owned(),
        false => format!("Content-Length: {}", body_size()),
    };
    exchange.send(format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n"))?;
    send_pattern(exchange.stream(), body_size(), chunked)?;
    Ok(Then::KeepAlive)
}

/// Pauses, reads an upload, and responds with the checker's verdict.
fn take_upload(exchange: &mut Exchange, pause: Duration) -> std::io::Result<Then> {
    let mut checker = Checker::default();
    std::thread::sleep(pause);
    exchange.read_body(|bytes| checker.take(bytes))?;
    exchange.answer(checker.verdict())
}

#[test]
fn downloads_arrive_whole() {
    let member = Member::streaming(large);
    let proxy = Proxy::start(&Setup::new(&[member.address()]));
    let mut client = proxy.client();
    for path in ["/length", "/chunked", "/length"] {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        download(&mut client, Duration::ZERO).assert_whole(body_size());
    }
}

/// Reads the head of a response, pauses, and reads the body.
fn download(client: &mut Client, pause: Duration) -> Checker {
    let head = client.reader().head().expect("reading").expect("a response");
    assert!(head.start.contains(" 200 "), "{head:?}");
    std::thread::sleep(pause);
    let mut checker = Checker::default();
    let framing = head.framing().unwrap_or(Framing::UntilClose);
    client.reader().body(framing, |bytes| checker.take(bytes)).expect("the body");
    checker
}

/// Delays the first part of a body, so that it is read in small steps, too slowly for the kernel to accept more bytes from
/// weir.
fn drip(checker: &mut Checker) -> impl FnMut(&[u8]) {
    let started = Instant::now();
    move |bytes| {
        if started.elapsed() < DRIP {
            let seconds = bytes.len() as f64 / DRIP_BYTES_PER_SECOND;
            std::thread::sleep(Duration::from_secs_f64(seconds));
        }
        checker.take(bytes);
    }
}

#[test]
fn a_client_that_takes_little_at_a_time_keeps_its_place() {
    let member = Member::streaming(large);
    let setup = Setup::new(&[member.address()]).http("body_timeout: 2s");
    let proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    client.send("GET /length HTTP/1.1\r\nHost: test\r\n\r\n");
    client.reader().head().expect("reading").expect("a response");
    let mut checker = Checker::default();
    let body = client.reader().body(Framing::Length(body_size()), drip(&mut checker));
    body.expect("the body");
    checker.assert_whole(body_size());
    assert_eq!(proxy.metric("weir_virtual_server_timeouts_total", &[]), 0.0);
}

#[test]
fn a_member_that_takes_little_at_a_time_keeps_its_request() {
    let member = Member::streaming(|exchange| {
        let mut checker = Checker::default();
        exchange.read_body(drip(&mut checker))?;
        exchange.answer(checker.verdict())
    });
    // The kernel has received the last bytes long before the member reads them.
    for size_mib in [2, 64] {
        let setup =
            Setup::new(&[member.address()]).http("body_timeout: 4s").pool("response_timeout: 4s");
        let proxy = Proxy::start(&setup);
        let mut client = proxy.client();
        let size = size_mib * 1024 * 1024;
        client.send(format!("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {size}\r\n\r\n"));
        send_pattern(client.stream(), size, false).expect("sending the body");
        let response = client.response();
        assert_eq!(response.assert_status(200).text(), format!("{size} good bytes"));
    }
}

#[test]
fn a_client_that_takes_nothing_is_given_up() {
    let member = Member::streaming(large);
    let proxy = Proxy::start(&Setup::new(&[member.address()]).http("body_timeout: 1s"));
    let mut client = proxy.client();
    client.send("GET /length HTTP/1.1\r\nHost: test\r\n\r\n");
    let started = Instant::now();
    weir_tests::eventually("it is given up", weir_tests::STEP_TIMEOUT, || {
        proxy.metric("weir_virtual_server_timeouts_total", &["\"body\""]) == 1.0
    });
    let waited = started.elapsed();
    assert!(waited >= Duration::from_millis(900), "{waited:?}");
    proxy.wait_for_open_connections("main", 0.0);
}

#[test]
fn uploads_arrive_whole() {
    let member = Member::streaming(large);
    let proxy = Proxy::start(&Setup::new(&[member.address()]));
    let mut client = proxy.client();
    for chunked in [false, true, false] {
        upload(&mut client, chunked);
    }
}

fn upload(client: &mut Client, chunked: bool) {
    let framing = match chunked {
        true => "Transfer-Encoding: chunked".to_owned(),
        false => format!("Content-Length: {}", body_size()),
    };
    client.send(format!("POST / HTTP/1.1\r\nHost: test\r\n{framing}\r\n\r\n"));
    send_pattern(client.stream(), body_size(), chunked).expect("sending the body");
    assert_eq!(client.response().assert_status(200).text(), format!("{} good bytes", body_size()));
}

#[test]
fn a_slow_client_does_not_fill_the_proxy() {
    let member = Member::streaming(large);
    let mut proxy = Proxy::start(&Setup::new(&[member.address()]));
    proxy.client().send("GET /length HTTP/1.1\r\nHost: test\r\n\r\n");
    let before = proxy.process().resident_bytes();
    let address = proxy.address();
    let readers: Vec<_> = ["/length", "/chunked", "/length", "/chunked"]
        .into_iter()
        .map(|path| {
            std::thread::spawn(move || {
                let mut client = Client::connect(address);
                client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
                download(&mut client, Duration::from_secs(2)).assert_whole(body_size());
            })
        })
        .collect();
    assert_flat(&mut proxy, before, || readers.iter().all(std::thread::JoinHandle::is_finished));
    for reader in readers {
        reader.join().expect("a download");
    }
}

#[test]
fn a_slow_member_does_not_fill_the_proxy() {
    let member = Member::streaming(|exchange| take_upload(exchange, Duration::from_secs(2)));
    let mut proxy = Proxy::start(&Setup::new(&[member.address()]));
    let before = proxy.process().resident_bytes();
    let address = proxy.address();
    let writers: Vec<_> = [true, false, true, false]
        .into_iter()
        .map(|chunked| std::thread::spawn(move || upload(&mut Client::connect(address), chunked)))
        .collect();
    assert_flat(&mut proxy, before, || writers.iter().all(std::thread::JoinHandle::is_finished));
    for writer in writers {
        writer.join().expect("an upload");
    }
}

/// Checks weir's memory until `done` returns true.
fn assert_flat(proxy: &mut Proxy, before: u64, done: impl Fn() -> bool) {
    let started = Instant::now();
    let mut peak = before;
    while !done() {
        peak = peak.max(proxy.process().resident_bytes());
        assert!(started.elapsed() < Duration::from_secs(600), "the transfer stands still");
        std::thread::sleep(Duration::from_millis(20));
    }
    let growth = peak.saturating_sub(before);
    assert!(growth <= GROWTH_BYTES_MAX, "memory grew by {growth} bytes from {before}");
}

/// Clients that request bodies of many sizes and do not read. The kernel buffers about 100 to 200 KiB for the client of a
/// unix socket, and weir reads 64 KiB at a time. So for some of the sizes, the body ends exactly in the read after which the
/// client's socket is full.
struct NotReading {
    // Dropped in this order: the proxy before the folder of its socket.
    clients: Vec<(usize, Client)>,
    proxy: Proxy,
    member: Member,
    _directory: TempDir,
}

const NOT_READING_SIZE_STEP_BYTES: usize = 16 * 1024;
const NOT_READING_CLIENTS: usize = 40;
/// Number of blocks of `BLOCK_BYTES`: more than all buffers between a client and a member hold.
const UPLOAD_BLOCKS_MAX: usize = 1024;

impl NotReading {
    /// Starts the clients. Each requests `/size` followed by this suffix.
    fn start(suffix: &str, setup: impl FnOnce(Setup) -> Setup) -> Self {
        let directory = TempDir::new("socket");
        let socket = directory.path().join("clients");
        let member = Member::new(sized);
        let listening =
            Setup::new(&[member.address()]).also_listen(format!("unix:{}", socket.display()));
        let proxy = Proxy::start(&setup(listening));
        let sizes = (1..=NOT_READING_CLIENTS).map(|number| number * NOT_READING_SIZE_STEP_BYTES);
        let clients: Vec<(usize, Client)> = sizes
            .map(|size| {
                let mut client = Client::connect_unix(&socket);
                client.send(format!("GET /{size}{suffix} HTTP/1.1\r\nHost: test\r\n\r\n"));
                (size, client)
            })
            .collect();
        weir_tests::eventually("all have asked", weir_tests::STEP_TIMEOUT, || {
            member.request_count() == NOT_READING_CLIENTS
        });
        // The buffers have received all bytes for which they have space.
        std::thread::sleep(Duration::from_millis(300));
        Self { clients, proxy, member, _directory: directory }
    }

    /// Lets all clients read their responses.
    fn read(&mut self) {
        for (size, client) in &mut self.clients {
            assert_eq!(client.response().assert_status(200).body.len(), *size);
        }
    }
}

/// Responds to `/size`, and to `/size/chunked` in small chunks. `/next` has a delay.
fn sized(exchange: &mut Exchange) -> std::io::Result<Then> {
    const CHUNK_BYTES: usize = 64;
    let target = exchange.request.target().to_owned();
    if target == "/next" {
        std::thread::sleep(Duration::from_millis(300));
        return exchange.answer("next");
    }
    let (size, chunked) = match target[1..].strip_suffix("/chunked") {
        Some(size) => (size, true),
        None => (&target[1..], false),
    };
    let size: usize = size.parse().expect("a size");
    if !chunked {
        return exchange.answer(vec![b'x'; size]);
    }
    let chunk = format!("{CHUNK_BYTES:x}\r\n{}\r\n", "x".repeat(CHUNK_BYTES));
    let chunks = chunk.repeat(size / CHUNK_BYTES);
    exchange
        .send(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n"))?;
    Ok(Then::KeepAlive)
}

#[test]
fn a_member_connection_serves_again_after_a_client_that_was_slow_to_the_end() {
    let mut slow = NotReading::start("/chunked", |setup| setup.pool("response_timeout: 40s"));
    slow.read();
    // All at once, so that each request uses one of the idle connections.
    for (_, client) in &mut slow.clients {
        client.send("GET /next HTTP/1.1\r\nHost: test\r\n\r\n");
    }
    for (size, client) in &mut slow.clients {
        let response = client.response();
        assert_eq!(response.status, 200, "after {size} bytes: {response:?}");
    }
    assert_eq!(slow.member.connection_count(), NOT_READING_CLIENTS);
}

#[test]
fn a_head_that_begins_while_the_response_before_it_is_queued_may_end_later() {
    let mut slow = NotReading::start("", |setup| setup.http("header_timeout: 40s"));
    for (_, client) in &mut slow.clients {
        client.send("GET /next HTTP/1.1\r\nHo");
    }
    // weir has received the start of these heads before the responses continue.
    std::thread::sleep(Duration::from_millis(100));
    slow.read();
    // The responses are complete before the heads continue.
    std::thread::sleep(Duration::from_millis(100));
    for (_, client) in &mut slow.clients {
        client.send("st: test\r\n\r\n");
    }
    for (size, client) in &mut slow.clients {
        let response = client.response();
        assert_eq!(response.status, 200, "after {size} bytes: {response:?}");
    }
    assert_eq!(slow.proxy.metric("weir_virtual_server_timeouts_total", &[]), 0.0);
}

#[test]
fn a_member_that_refuses_an_upload_it_does_not_take_is_heard() {
    let refuses = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&refuses);
    let member = Member::streaming(move |exchange| {
        weir_tests::eventually("the upload stands still", weir_tests::STEP_TIMEOUT, || {
            told.load(Ordering::Acquire)
        });
        exchange.send(
            "HTTP/1.1 413 Content Too Large\r\nContent-Length: 8\r\nConnection: close\r\n\r\ntoo much",
        )?;
        // A close with this much unread input becomes a reset.
        Ok(Then::Close)
    });
    let mut proxy = Proxy::start(&Setup::new(&[member.address()]));
    let mut client = proxy.client();
    client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1000000000000\r\n\r\n");
    client.stream().set_write_timeout(Some(Duration::from_millis(300))).expect("a write timeout");
    let block = vec![b'x'; BLOCK_BYTES];
    let stands_still = (0..UPLOAD_BLOCKS_MAX).any(|_| client.try_send(&block).is_err());
    assert!(stands_still, "the proxy takes what the member does not");
    // weir detects the response and the reset at once, while it still has bytes for the member.
    proxy.process().stop();
    refuses.store(true, Ordering::Release);
    weir_tests::eventually("the member has closed", weir_tests::STEP_TIMEOUT, || {
        member.open_connections() == 0
    });
    proxy.process().signal(Signal::CONT);
    assert_eq!(client.response().assert_status(413).text(), "too much");
}
