//! A browser with weir over TLS and HTTP/2. `WEIR_CHROMIUM` is the path of the program; without it the test is skipped.
//!
//! The page's script (`page.js`) fetches resources concurrently in each content coding of weir, sends and receives a large
//! body, aborts a response, receives events, uses a WebSocket, and reports its results.

use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use weir_tests::member::{Exchange, Member, Then};
use weir_tests::process::Process;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{STEP_TIMEOUT, eventually, tls, tools, websocket};

const PAGE: &str = "<!doctype html><title>A page</title><script src=\"/page.js\"></script>\n";
const SCRIPT: &str = include_str!("page.js");
/// The time within which the page must report its results.
const PAGE_TIMEOUT: Duration = Duration::from_secs(120);
/// The page, its script, four times one `/offer` and 34 texts, and at least ten requests of the other steps.
const REQUESTS_MIN: usize = 2 + 4 * 35 + 10;

/// Requests of the page to the test.
enum Asked {
    /// Configure only this content coding, and reply when it is active.
    Offer(String, Sender<()>),
    /// Accept the page's report.
    Seen(String),
}

#[test]
fn chromium() {
    let Some(program) = tools::suite("WEIR_CHROMIUM") else {
        return;
    };
    let (to_test, asked) = mpsc::channel();
    let heard = AtomicUsize::new(0);
    let member = Member::new(move |exchange| serve(exchange, &to_test, &heard));
    let mut proxy = Proxy::start(&setup(&member, "zstd"));

    let folder = TempDir::new("browser");
    let mut browser = start(&program, &proxy, &folder);
    let begun = Instant::now();
    let seen = loop {
        match asked.recv_timeout(PAGE_TIMEOUT.saturating_sub(begun.elapsed())) {
            Ok(Asked::Offer(coding, done)) => {
                proxy.reload_and_wait(&setup(&member, &coding));
                // If the page has timed out, its report shows that.
                let _ = done.send(());
            }
            Ok(Asked::Seen(text)) => break text,
            Err(RecvTimeoutError::Timeout) => panic!("nothing is seen: {}", browser.output()),
            Err(RecvTimeoutError::Disconnected) => unreachable!("the member has the other end"),
        }
    };
    browser.signal(Signal::TERM);
    browser.wait(STEP_TIMEOUT);

    let seen: Value = serde_json::from_str(&seen).unwrap_or_else(|error| panic!("{error}: {seen}"));
    println!("{seen:#}");
    let expected = json!({
        "zstd": "zstd",
        "brotli": "br",
        "gzip": "gzip",
        "echo": 3_000_000,
        "leave": true,
        "events": "1,2,3,4,5",
        "webSocket": "one,two,three 1000 true",
        "again": "zstd",
        "protocols": "h2",
    });
    assert_eq!(seen, expected);
    judge_log(&mut proxy);
}

/// Checks the access log: all requests used HTTP/2, over a few connections at most, and only aborted requests failed.
fn judge_log(proxy: &mut Proxy) {
    proxy.wait_for_open_connections("main", 0.0);
    let mut lines: Vec<Value> = Vec::new();
    eventually("the log has what came last", STEP_TIMEOUT, || {
        let output = proxy.process().output();
        lines = output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        lines.iter().any(|line| line["target"] == "/seen")
    });
    // The browser may open connections in advance and close them unused.
    let (lines, ahead): (Vec<Value>, _) =
        lines.into_iter().partition(|it| it["method"].is_string());
    assert!(ahead.iter().all(|line| line["termination"] == "tls_handshake"), "{ahead:?}");
    assert!(lines.len() >= REQUESTS_MIN, "{} requests", lines.len());
    let targets = |wanted: &dyn Fn(&Value) -> bool| -> Vec<String> {
        let found = lines.iter().filter(|line| wanted(line));
        found
            .map(|line| format!("{} {}", line["method"], line["target"]).replace('"', ""))
            .collect()
    };
    assert_eq!(targets(&|line| line["version"] != "HTTP/2.0"), [""; 0]);
    // Over HTTP/2 only an extended CONNECT opens a WebSocket. The log records it like the member's upgrade.
    let tunnels = targets(&|line| line["status"] == 101 || line["target"] == "/chat");
    assert_eq!(tunnels, ["GET /chat"], "{lines:?}");
    let left = targets(&|line| line["termination"] == "client_abort");
    assert_eq!(left, ["GET /endless", "GET /events"]);
    assert_eq!(targets(&|line| line["termination"] == "complete").len() + 2, lines.len());
    // A text has more than 10,000 bytes before compression.
    let is_long = |line: &Value| {
        let is_text = line["target"].as_str().is_some_and(|target| target.starts_with("/text/"));
        is_text && line["bytes_sent"].as_u64() > Some(3_000)
    };
    assert_eq!(targets(&is_long), [""; 0], "compressed");
    let metric = |name| proxy.metric(&format!("weir_virtual_server_{name}"), &["\"main\""]);
    assert!(metric("responses_compressed_total") >= 4.0 * 34.0);
    assert_eq!(metric("http2_errors_total") + metric("http2_floods_total"), 0.0);
    println!("{} requests, {} connections", lines.len(), metric("http2_connections_total"));
}

/// The configuration with one content coding.
fn setup(member: &Member, coding: &str) -> Setup {
    let others = ["zstd", "brotli", "gzip"].into_iter().filter(|it| *it != coding);
    let off: Vec<String> = others.map(|it| format!("{it}: off")).collect();
    Setup::new(&[member.address()])
        .virtual_server(&tls::shop(""))
        .virtual_server(&format!("compression: {{ {} }}", off.join(", ")))
        .access_log()
}

fn start(program: &Path, proxy: &Proxy, folder: &TempDir) -> Process {
    // The browser does not trust the authority. It accepts the certificate by the hash of its key.
    let hash = "openssl x509 -pubkey -noout -in \"$CERT\" | openssl pkey -pubin -outform der |
                openssl dgst -sha256 -binary | base64";
    let mut command = Command::new("sh");
    let hash = tools::run(command.args(["-c", hash]).env("CERT", tls::file("shop-ec.crt")));
    let data = format!("--user-data-dir={}", folder.path().join("data").display());
    let key = format!("--ignore-certificate-errors-spki-list={}", hash.trim());
    let rules = format!("--host-resolver-rules=MAP shop.example:443 {}", proxy.address());
    // Files that remain in the temporary folder are removed with it.
    let temporary = format!("TMPDIR={}", folder.path().display());
    let arguments = [
        &temporary,
        &*program.to_string_lossy(),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        &data,
        &key,
        &rules,
        "https://shop.example/",
    ];
    let env = tools::find("env").expect("env (coreutils)");
    Process::start(&env, &arguments, &folder.path().join("output.log"))
}

fn serve(
    exchange: &mut Exchange,
    to_test: &Sender<Asked>,
    heard: &AtomicUsize,
) -> io::Result<Then> {
    let target = exchange.request.target().to_owned();
    let (kind, rest) = target[1..].split_once('/').unwrap_or((&target[1..], ""));
    let gone = |_| io::Error::other("the test is over");
    match kind {
        "" => answer(exchange, "text/html", PAGE),
        "page.js" => answer(exchange, "text/javascript", SCRIPT),
        "text" => {
            let lines: Vec<String> =
                (0..500).map(|line| format!("line {line} of text {rest}")).collect();
            answer(exchange, "text/plain", &lines.join("\n"))
        }
        "offer" => {
            let (done, is_done) = mpsc::channel();
            to_test.send(Asked::Offer(rest.to_owned(), done)).map_err(gone)?;
            is_done.recv_timeout(STEP_TIMEOUT).map_err(io::Error::other)?;
            exchange.answer("")
        }
        "seen" => {
            let text = String::from_utf8_lossy(&exchange.request.body).into_owned();
            let then = exchange.answer("");
            to_test.send(Asked::Seen(text)).map_err(gone)?;
            then
        }
        "echo" => {
            let body = std::mem::take(&mut exchange.request.body);
            exchange.answer(body)
        }
        "endless" => {
            exchange.send("HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n")?;
            // Until weir closes.
            loop {
                exchange.send([0; 10_000])?;
            }
        }
        "events" => events(exchange, heard),
        "heard" => {
            heard.store(rest.parse().unwrap_or(0), Ordering::Release);
            exchange.answer("")
        }
        "chat" => websocket::serve(exchange),
        _ => exchange
            .send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            .map(|()| Then::KeepAlive),
    }
}

fn answer(exchange: &mut Exchange, kind: &str, text: &str) -> io::Result<Then> {
    let length = text.len();
    exchange.send(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{text}"
    ))?;
    Ok(Then::KeepAlive)
}

/// Sends each event when the client has received the previous one. The client disconnects after the last one.
fn events(exchange: &mut Exchange, heard: &AtomicUsize) -> io::Result<Then> {
    exchange.send(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
    )?;
    for number in 1..=5 {
        let event = format!("data: {number}\n\n");
        exchange.send(format!("{:x}\r\n{event}\r\n", event.len()))?;
        let deadline = Instant::now() + STEP_TIMEOUT;
        while heard.load(Ordering::Acquire) < number {
            if Instant::now() > deadline {
                return Ok(Then::Reset);
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
    // The client only closes.
    exchange.receive(&mut [0; 16])?;
    Ok(Then::Close)
}
