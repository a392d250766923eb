//! The client work of a soak.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use weir_tests::client::Client;
use weir_tests::pattern::{self, Checker};
use weir_tests::websocket::WebSocket;
use weir_tests::wire::Framing;

use crate::faults::{DOWNLOAD_BYTES, Faults};

const UPLOAD_BYTES: usize = 1024 * 1024;
const BLOCK_BYTES: usize = 32 * 1024;
/// Texts of unexplained errors kept per kind.
const UNEXPLAINED_KEPT_MAX: usize = 10;

/// One kind of work, with its number of threads and its function.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The name in the report.
    pub name: &'static str,
    /// The number of threads that repeat it.
    pub threads: usize,
    piece: fn(SocketAddr, &Faults) -> Result<(), Failure>,
}

/// All kinds of work.
pub const KINDS: &[Kind] = &[
    Kind { name: "keep-alive", threads: 3, piece: keep_alive },
    Kind { name: "new connection", threads: 1, piece: new_connection },
    Kind { name: "upload", threads: 1, piece: upload_plain },
    Kind { name: "chunked upload", threads: 1, piece: upload_chunked },
    Kind { name: "aborted upload", threads: 1, piece: aborted_upload },
    Kind { name: "download", threads: 1, piece: download },
    Kind { name: "slow download", threads: 2, piece: slow_download },
    Kind { name: "aborted download", threads: 1, piece: aborted_download },
    Kind { name: "slow head", threads: 2, piece: slow_head },
    Kind { name: "WebSocket", threads: 2, piece: web_socket },
];

/// The reason for a failed run of the work, and the start time of that run.
#[derive(Debug)]
pub struct Failure {
    what: String,
    since: Instant,
}

fn failure(since: Instant) -> impl Fn(io::Error) -> Failure {
    move |error| Failure { what: error.to_string(), since }
}

fn wrong(since: Instant, what: impl Into<String>) -> Failure {
    Failure { what: what.into(), since }
}

/// The results of one kind of work.
#[derive(Debug, Default)]
pub struct Outcomes {
    good: AtomicUsize,
    explained: AtomicUsize,
    unexplained: AtomicUsize,
    texts: Mutex<Vec<String>>,
}

impl Outcomes {
    fn count(&self, result: Result<(), Failure>, faults: &Faults) {
        let Err(failure) = result else {
            self.good.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if faults.explain(failure.since) {
            self.explained.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.unexplained.fetch_add(1, Ordering::Relaxed);
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        if texts.len() < UNEXPLAINED_KEPT_MAX {
            texts.push(failure.what);
        }
    }

    /// The number of successful runs.
    pub fn good(&self) -> usize {
        self.good.load(Ordering::Relaxed)
    }

    /// The texts of the first errors that no fault explains.
    pub fn unexplained(&self) -> Vec<String> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// `good/explained/unexplained`.
    pub fn summary(&self) -> String {
        let [good, explained, unexplained] = [&self.good, &self.explained, &self.unexplained]
            .map(|count| count.load(Ordering::Relaxed));
        format!("{good}/{explained}/{unexplained}")
    }
}

/// Repeats one kind of work until the soak is over.
pub fn repeat(kind: Kind, address: SocketAddr, faults: &Faults, outcomes: &Outcomes) {
    while !faults.stopped() {
        outcomes.count((kind.piece)(address, faults), faults);
        thread::sleep(Duration::from_millis(5));
    }
}

fn connect(address: SocketAddr) -> Result<(Client, Instant), Failure> {
    let since = Instant::now();
    Client::try_connect(address).map(|client| (client, since)).map_err(failure(since))
}

fn get(client: &mut Client, close: bool) -> Result<(), Failure> {
    let since = Instant::now();
    let connection = if close { "Connection: close\r\n" } else { "" };
    let request = format!("GET / HTTP/1.1\r\nHost: test\r\n{connection}\r\n");
    let response = client
        .try_send(request)
        .and_then(|()| client.try_response(false))
        .map_err(failure(since))?;
    if response.status != 200 || !response.complete || response.body != b"ok" {
        return Err(wrong(since, format!("{:?} {:?}", response.head, response.text())));
    }
    Ok(())
}

fn keep_alive(address: SocketAddr, faults: &Faults) -> Result<(), Failure> {
    let (mut client, _) = connect(address)?;
    for _ in 0..200 {
        if faults.stopped() {
            break;
        }
        get(&mut client, false)?;
        thread::sleep(Duration::from_millis(3));
    }
    Ok(())
}

fn new_connection(address: SocketAddr, _: &Faults) -> Result<(), Failure> {
    get(&mut connect(address)?.0, true)
}

fn upload(address: SocketAddr, framing: Framing) -> Result<(), Failure> {
    let (mut client, since) = connect(address)?;
    send_upload(&mut client, framing, UPLOAD_BYTES)
        .or_else(|error| match error.kind() {
            // An early response closes the connection. It is read below.
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(()),
            _ => Err(error),
        })
        .map_err(failure(since))?;
    let response = client.try_response(false).map_err(failure(since))?;
    let expected = format!("{UPLOAD_BYTES} good bytes");
    if response.status != 200 || response.text() != expected {
        return Err(wrong(since, format!("{:?} {:?}", response.head, response.text())));
    }
    Ok(())
}

fn send_upload(client: &mut Client, framing: Framing, bytes: usize) -> io::Result<()> {
    let field = match framing {
        Framing::Chunked => "Transfer-Encoding: chunked".to_owned(),
        _ => format!("Content-Length: {UPLOAD_BYTES}"),
    };
    client.try_send(format!("POST /upload HTTP/1.1\r\nHost: test\r\n{field}\r\n\r\n"))?;
    let mut block = vec![0; BLOCK_BYTES];
    for offset in (0..bytes).step_by(BLOCK_BYTES) {
        pattern::fill(&mut block, offset as u64);
        if framing == Framing::Chunked {
            write!(client.stream(), "{BLOCK_BYTES:x}\r\n")?;
        }
        client.try_send(&block)?;
        if framing == Framing::Chunked {
            client.try_send("\r\n")?;
        }
    }
    if framing == Framing::Chunked && bytes == UPLOAD_BYTES {
        client.try_send("0\r\n\r\n")
    } else {
        Ok(())
    }
}

fn upload_plain(address: SocketAddr, _: &Faults) -> Result<(), Failure> {
    upload(address, Framing::Length(UPLOAD_BYTES as u64))
}

fn upload_chunked(address: SocketAddr, _: &Faults) -> Result<(), Failure> {
    upload(address, Framing::Chunked)
}

fn aborted_upload(address: SocketAddr, _: &Faults) -> Result<(), Failure> {
    let (mut client, since) = connect(address)?;
    send_upload(&mut client, Framing::Chunked, UPLOAD_BYTES / 2).map_err(failure(since))?;
    client.reset();
    Ok(())
}

/// Reads a download in pieces with pauses.
fn read_download(address: SocketAddr, pause: Duration) -> Result<(), Failure> {
    let (mut client, since) = connect(address)?;
    let mut checker = Checker::default();
    let result = (|| {
        client.try_send("GET /download HTTP/1.1\r\nHost: test\r\n\r\n")?;
        let head = client.reader().head()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if !head.start.contains(" 200 ") {
            return Err(io::Error::other(head.start));
        }
        for _ in 0..DOWNLOAD_BYTES / BLOCK_BYTES as u64 {
            client
                .reader()
                .body(Framing::Length(BLOCK_BYTES as u64), |bytes| checker.take(bytes))?;
            thread::sleep(pause);
        }
        Ok(())
    })();
    result.map_err(failure(since))?;
    let expected = format!("{DOWNLOAD_BYTES} good bytes");
    if checker.verdict() == expected { Ok(()) } else { Err(wrong(since, checker.verdict())) }
}

fn download(address: SocketAddr, _: &Faults) -> Result<(), Failure> {
    read_download(address, Duration::ZERO)
}

fn slow_download(address: SocketAddr, _: &Faults) -> Result<(), Failure> {
    read_download(address, Duration::from_millis(15))
}

fn aborted_download(address: SocketAddr, _: &Faults) -> Result<(), Failure> {
    let (mut client, since) = connect(address)?;
    client.try_send("GET /download HTTP/1.1\r\nHost: test\r\n\r\n").map_err(failure(since))?;
    client.reader().head().map_err(failure(since))?;
    client.reset();
    Ok(())
}

fn slow_head(address: SocketAddr, faults: &Faults) -> Result<(), Failure> {
    let (mut client, since) = connect(address)?;
    // Longer than the header timeout.
    for byte in "GET / HTTP/1.1\r\nX-Slow: 012345678901234567890123456789".bytes().cycle().take(400)
    {
        if faults.stopped() || client.try_send([byte]).is_err() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Err(wrong(since, "a head that never ends was put up with"))
}

fn web_socket(address: SocketAddr, faults: &Faults) -> Result<(), Failure> {
    let since = Instant::now();
    let mut socket = WebSocket::try_connect(address).map_err(failure(since))?;
    for number in 0..150 {
        if faults.stopped() {
            break;
        }
        let text = format!("message {number}");
        let answer = socket.echo(&text).map_err(failure(since))?;
        if answer != text {
            return Err(wrong(since, format!("{answer:?} for {text:?}")));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
