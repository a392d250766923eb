//! Large bodies: no byte lost or doubled, and flat memory while one side is slow.

use std::io::Write;
use std::time::{Duration, Instant};

use weir_tests::client::Client;
use weir_tests::member::{Exchange, Member, Then};
use weir_tests::pattern::{self, Checker};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::wire::Framing;

/// Size of the large bodies unless the environment says otherwise.
const BODY_MIB: u64 = 64;
/// Growth of the proxy's memory that a body of any size may cause: buffers of a few connections.
const GROWTH_BYTES_MAX: u64 = 8 * 1024 * 1024;
const BLOCK_BYTES: usize = 256 * 1024;

/// `WEIR_TEST_BODY_MIB` sets the size; the closing test of an issue uses 1024 or 10240.
fn body_size() -> u64 {
    let mib = std::env::var("WEIR_TEST_BODY_MIB")
        .ok()
        .map(|text| text.parse().expect("a number of MiB"));
    mib.unwrap_or(BODY_MIB) * 1024 * 1024
}

/// Sends the pattern, as chunks or plain.
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
    if chunked {
        stream.write_all(b"0\r\n\r\n")
    } else {
        Ok(())
    }
}

/// Answers `/length` and `/chunked` with the pattern, and a POST with what was wrong about its body.
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

/// Reads an upload, resting for `pause` at its start, and answers with its size.
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

/// Reads a response's body, resting for `pause` after its head.
fn download(client: &mut Client, pause: Duration) -> Checker {
    let head = client
        .reader()
        .head()
        .expect("reading")
        .expect("a response");
    assert!(head.start.contains(" 200 "), "{head:?}");
    std::thread::sleep(pause);
    let mut checker = Checker::default();
    let framing = head.framing().unwrap_or(Framing::UntilClose);
    client
        .reader()
        .body(framing, |bytes| checker.take(bytes))
        .expect("the body");
    checker
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
    client.send(format!(
        "POST / HTTP/1.1\r\nHost: test\r\n{framing}\r\n\r\n"
    ));
    send_pattern(client.stream(), body_size(), chunked).expect("sending the body");
    assert_eq!(
        client.response().assert_status(200).text(),
        format!("{} good bytes", body_size())
    );
}

#[test]
fn a_slow_client_does_not_fill_the_proxy() {
    let member = Member::streaming(large);
    let mut proxy = Proxy::start(&Setup::new(&[member.address()]));
    proxy
        .client()
        .send("GET /length HTTP/1.1\r\nHost: test\r\n\r\n");
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
    assert_flat(&mut proxy, before, || {
        readers.iter().all(std::thread::JoinHandle::is_finished)
    });
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
    assert_flat(&mut proxy, before, || {
        writers.iter().all(std::thread::JoinHandle::is_finished)
    });
    for writer in writers {
        writer.join().expect("an upload");
    }
}

/// Watches the proxy's memory until `done`.
fn assert_flat(proxy: &mut Proxy, before: u64, done: impl Fn() -> bool) {
    let started = Instant::now();
    let mut peak = before;
    while !done() {
        peak = peak.max(proxy.process().resident_bytes());
        assert!(
            started.elapsed() < Duration::from_secs(600),
            "the transfer stands still"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let growth = peak.saturating_sub(before);
    assert!(
        growth <= GROWTH_BYTES_MAX,
        "memory grew by {growth} bytes from {before}"
    );
}
