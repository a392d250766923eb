//! The admin listener from a client's view, over raw sockets.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use weir_config::snapshot::Snapshot;
use weir_dataplane::outside;
use weir_exchange::shared::live::LiveTable;

use super::*;
use crate::events::testing::Captured;
use crate::testing::{PATIENCE, observed_with};

async fn start(address: &Address) -> io::Result<(Admin, Arc<ObservedState>)> {
    let member = Address::Socket("127.0.0.1:9001".parse().unwrap());
    let observed = Arc::new(observed_with(&[member], 1));
    let (events, _) = Captured::new();
    Ok((Admin::start(address, Arc::clone(&observed), events).await?, observed))
}

fn any_port() -> Address {
    Address::Socket("127.0.0.1:0".parse().unwrap())
}

fn socket_of(admin: &Admin) -> SocketAddr {
    match admin.address() {
        Address::Socket(address) => *address,
        other => panic!("{other:?}"),
    }
}

/// Sends `request` and reads until the connection ends.
async fn exchange(admin: &Admin, request: &str) -> String {
    let mut stream = TcpStream::connect(socket_of(admin)).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A connection that is closed with unread bytes may be reset; data received before counts.
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("an end");
    String::from_utf8(answer).unwrap()
}

async fn ask(admin: &Admin, method: &str, path: &str) -> String {
    exchange(
        admin,
        &format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
    )
    .await
}

#[tokio::test]
async fn what_there_is() {
    let (admin, observed) = start(&any_port()).await.unwrap();
    let health = ask(&admin, "GET", "/health").await;
    assert!(
        health.starts_with("HTTP/1.1 200 OK\r\n") && health.ends_with("\r\n\r\nok\n"),
        "{health}"
    );
    let metrics = ask(&admin, "GET", "/metrics").await;
    assert!(
        metrics.contains("\r\ncontent-type: text/plain; version=0.0.4; charset=utf-8\r\n"),
        "{metrics}"
    );
    assert!(
        metrics.contains("\nweir_member_up{pool=\"web\",member=\"127.0.0.1:9001\"} 1\n"),
        "{metrics}"
    );
    let status = ask(&admin, "GET", "/v1/status").await;
    let (head, body) = status.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-type: application/json"), "{head}");
    assert!(!head.to_lowercase().contains("access-control"), "{head}");
    let status: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(status["pools"][0]["name"], "web");
    observed.draining.store(true, Relaxed);
    let health = ask(&admin, "GET", "/health").await;
    assert!(health.starts_with("HTTP/1.1 503 ") && health.ends_with("draining\n"), "{health}");
}

#[tokio::test]
async fn what_there_is_not() {
    let (admin, _) = start(&any_port()).await.unwrap();
    for path in [
        "/dashboard",
        "/dashboard/",
        "/metrics/",
        "/status",
        "/v1",
        "/v1/",
        "/v1/../status",
        "/%2e/v1/status",
    ] {
        let answer = ask(&admin, "GET", path).await;
        assert!(answer.starts_with("HTTP/1.1 404 ") && answer.contains(PATHS), "{path}: {answer}");
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        for path in ["/health", "/metrics", "/v1/status"] {
            let answer = ask(&admin, method, path).await;
            assert!(answer.starts_with("HTTP/1.1 405 "), "{method} {path}: {answer}");
            assert!(answer.contains("\r\nallow: GET,HEAD\r\n"), "{method} {path}: {answer}");
            let media_type = "\r\ncontent-type: application/problem+json\r\n";
            assert!(answer.contains(media_type), "{method} {path}: {answer}");
        }
    }
    let page = ask(&admin, "GET", "/").await;
    assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("default-src 'none'"), "{page}");
    let head = ask(&admin, "HEAD", "/v1/status").await;
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
}

#[tokio::test]
async fn requests_are_not_explained_over_tcp() {
    let (admin, _) = start(&any_port()).await.unwrap();
    let question = r#"{"url": "http://127.0.0.1:8080/"}"#;
    let request = format!(
        "POST /v1/explain HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{question}",
        question.len()
    );
    let answer = exchange(&admin, &request).await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    let answer = ask(&admin, "GET", "/v1/explain").await;
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
}

/// Requests that a page can send after DNS rebinding, and requests that it cannot.
#[tokio::test]
async fn over_tcp_only_known_names_are_answered() {
    let (admin, observed) = start(&any_port()).await.unwrap();
    let status = async |head: &str| {
        let answer = exchange(&admin, &format!("{head}Connection: close\r\n\r\n")).await;
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    let of_host =
        async |host: &str| status(&format!("GET /v1/status HTTP/1.1\r\nHost: {host}\r\n")).await;
    for host in ["127.0.0.1", "10.1.2.3:9900", "[::1]:9900", "localhost", "LOCALHOST.:80"] {
        assert_eq!(of_host(host).await, "200", "{host}");
    }
    for host in ["rebound.example", "localhost.example", "a.localhost", "127.0.0.1.example", "x"] {
        assert_eq!(of_host(host).await, "421", "{host}");
    }
    for host in ["", "a b", "::1", "127.0.0.1, rebound.example", "x:y"] {
        assert_eq!(of_host(host).await, "400", "{host:?}");
    }
    for (head, expected) in [
        ("GET /v1/status HTTP/1.1\r\n", "400"),
        ("GET /v1/status HTTP/1.0\r\n", "200"),
        ("GET /v1/status HTTP/1.0\r\nHost: rebound.example\r\n", "421"),
        ("GET /v1/status HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n", "400"),
        ("GET http://localhost/v1/status HTTP/1.1\r\nHost: localhost\r\n", "200"),
        ("GET http://rebound.example/v1/status HTTP/1.1\r\nHost: rebound.example\r\n", "421"),
        ("GET http://127.0.0.1/v1/status HTTP/1.1\r\nHost: rebound.example\r\n", "400"),
        ("GET /nothing HTTP/1.1\r\nHost: rebound.example\r\n", "421"),
        ("PUT /v1/pools/web/members/x/state HTTP/1.1\r\nHost: rebound.example\r\n", "421"),
    ] {
        assert_eq!(status(head).await, expected, "{head}");
    }

    let table = observed.table();
    let mut snapshot = Snapshot::clone(&table.snapshot);
    snapshot.admin.host_names = vec!["weir.example".into()];
    observed.set_table(Arc::new(LiveTable::build(Arc::new(snapshot), Some(&table), 1, &outside())));
    for host in ["weir.example", "Weir.Example.:9900", "127.0.0.1"] {
        assert_eq!(of_host(host).await, "200", "{host}");
    }
    assert_eq!(of_host("www.weir.example").await, "421");
}

#[tokio::test]
async fn a_refused_name_is_told_with_its_remedy() {
    let member = Address::Socket("127.0.0.1:9001".parse().unwrap());
    let (events, captured) = Captured::new();
    let observed = Arc::new(observed_with(&[member], 1));
    let admin = Admin::start(&any_port(), observed, events.clone()).await.unwrap();
    let request = "GET /v1/status HTTP/1.1\r\nHost: weir.example:9900\r\nConnection: close\r\n\r\n";
    for _ in 0..3 {
        let answer = exchange(&admin, request).await;
        assert!(answer.contains("admin: { host_names: [ weir.example ] }"), "{answer}");
    }
    assert_eq!(
        captured.lines(&events),
        ["warning admin listener was asked for by the name `weir.example` and refused: \
          if it is meant, put it into admin.host_names"]
    );
}

#[tokio::test]
async fn heads_are_bounded() {
    let (admin, _) = start(&any_port()).await.unwrap();
    let long = format!(
        "GET /health HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "x".repeat(HEAD_SIZE_MAX)
    );
    let many = format!(
        "GET /health HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
        "X: y\r\n".repeat(HEADERS_MAX)
    );
    for (request, status) in [(long, "431"), (many, "431"), ("nonsense\r\n\r\n".into(), "400")] {
        // After an answer of a route, too.
        let after = format!("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n{request}");
        for (request, before) in [(request, ""), (after, "ok\n")] {
            let answer = exchange(&admin, &request).await;
            let (earlier, refusal) = answer.split_at(answer.rfind("HTTP/1.1 ").expect("an answer"));
            assert!(earlier.ends_with(before), "{answer}");
            assert!(refusal.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
            let (head, body) = refusal.split_once("\r\n\r\n").expect("a head");
            assert!(head.contains("\r\ncontent-type: application/problem+json\r\n"), "{head}");
            assert!(head.contains(&format!("\r\ncontent-length: {}", body.len())), "{head}");
            assert_eq!(head.matches("content-length").count(), 1, "{head}");
            let problem: serde_json::Value = serde_json::from_str(body).expect("JSON");
            assert_eq!(problem["status"].to_string(), status, "{problem}");
            assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("head")));
        }
    }
}

#[tokio::test]
async fn slow_and_idle_clients_are_dropped() {
    let (admin, _) = start(&any_port()).await.unwrap();
    let start = std::time::Instant::now();
    let (half, silent, idle) = tokio::join!(
        exchange(&admin, "GET /health HTTP/1.1\r\nHost:"),
        exchange(&admin, ""),
        exchange(&admin, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    );
    assert!(half.is_empty() || half.starts_with("HTTP/1.1 408 "), "{half}");
    assert_eq!(silent, "");
    assert!(idle.ends_with("ok\n"), "{idle}");
    assert!(start.elapsed() >= HEAD_TIMEOUT, "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_source_that_holds_connections_does_not_keep_itself_out() {
    let (admin, observed) = start(&any_port()).await.unwrap();
    let mut held = Vec::new();
    for _ in 0..PER_SOURCE_MAX {
        held.push(TcpStream::connect(socket_of(&admin)).await.unwrap());
    }
    assert!(ask(&admin, "GET", "/health").await.ends_with("ok\n"));
    assert_eq!(observed.admin.turned_away.load(Relaxed), 0);
    assert_eq!(observed.admin.displaced.load(Relaxed), 1);
    let mut first = Vec::new();
    // It is closed or reset.
    let _ = tokio::time::timeout(PATIENCE, held[0].read_to_end(&mut first))
        .await
        .expect("the longest waiting connection has ended");
    assert!(first.is_empty());
    let next = held[1].try_read(&mut [0; 1]);
    let is_open = next.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
    assert!(is_open, "the one that waits longest gives way, and no other");
}

#[tokio::test]
async fn connections_are_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("admin.sock");
    let (_admin, observed) = start(&Address::Unix(path.clone())).await.unwrap();
    let begin = "POST /v1/reload HTTP/1.1\r\nHost: weir\r\nExpect: 100-continue\r\n\
                 Content-Type: application/json\r\nContent-Length: 2\r\n\r\n";
    let mut busy = Vec::new();
    for _ in 0..PER_SOURCE_MAX {
        let mut stream = UnixStream::connect(&path).await.unwrap();
        stream.write_all(begin.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 100");
        busy.push(stream);
    }
    let health = async || {
        let mut stream = UnixStream::connect(&path).await.unwrap();
        let request = b"GET /health HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n";
        let mut answer = String::new();
        // A connection that is turned away may be closed before the request is written.
        if stream.write_all(request).await.is_ok() {
            let _ = stream.read_to_string(&mut answer).await;
        }
        answer
    };
    assert_eq!(health().await, "", "the one too many");
    assert_eq!(observed.admin.turned_away.load(Relaxed), 1);
    busy.truncate(PER_SOURCE_MAX / 2);
    while health().await.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_stopped_listener_frees_its_address() {
    let (admin, _) = start(&any_port()).await.unwrap();
    let address = admin.address().clone();
    let error = start(&address).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    drop(admin);
    let begin = std::time::Instant::now();
    while start(&address).await.is_err() {
        assert!(begin.elapsed() < PATIENCE, "the address stays taken");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn unix_sockets_are_private_and_replaced_when_stale() {
    let directory = std::env::temp_dir().join(format!("weir-admin-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("admin.sock");
    let address = Address::Unix(path.clone());
    let (admin, _) = start(&address).await.unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut stream = UnixStream::connect(&path).await.unwrap();
    stream.write_all(b"GET /health HTTP/1.0\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("ok\n"), "{answer}");
    // No browser uses the unix socket, so any name is accepted.
    let mut stream = UnixStream::connect(&path).await.unwrap();
    stream
        .write_all(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let error = start(&address).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    drop(admin);
    assert!(!path.exists());

    // A stale socket is replaced; another file is not touched.
    drop(UnixListener::bind(&path).unwrap());
    let (admin, _) = start(&address).await.unwrap();
    drop(admin);
    std::fs::write(&path, "precious").unwrap();
    assert!(start(&address).await.is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1, "nothing else is left behind");
    std::fs::remove_dir_all(&directory).unwrap();
}

/// The head and the body of an answer of `/metrics` to these header lines.
async fn metrics_for(admin: &Admin, lines: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(socket_of(admin)).await.unwrap();
    let request =
        format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{lines}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head") + 4;
    let body = answer.split_off(end);
    (String::from_utf8(answer).unwrap(), body)
}

#[tokio::test]
async fn metrics_are_compressed_for_those_who_ask_for_it() {
    let (admin, _) = start(&any_port()).await.unwrap();
    for (lines, is_gzip) in [
        ("", false),
        ("Accept-Encoding: gzip\r\n", true),
        ("Accept-Encoding: deflate, gzip;q=0.5\r\n", true),
        ("accept-encoding: br\r\nAccept-Encoding: x-gzip\r\n", true),
        ("Accept-Encoding: *\r\n", true),
        ("Accept-Encoding: gzip;q=0\r\n", false),
        ("Accept-Encoding: gzip;q=0.4, identity;q=0.5\r\n", false),
        ("Accept-Encoding: gzip, gzip;q=0\r\n", false),
        ("Accept-Encoding: identity\r\n", false),
        ("Accept-Encoding: br, identity;q=0\r\n", false),
        ("Accept-Encoding: gzip;q=2\r\n", false),
    ] {
        let (head, body) = metrics_for(&admin, lines).await;
        assert!(head.contains("\r\nvary: Accept-Encoding\r\n"), "{head}");
        assert_eq!(head.contains("\r\ncontent-encoding: gzip\r\n"), is_gzip, "{lines}: {head}");
        let text = match is_gzip {
            true => weir_testing::decode("gzip", &body).0,
            false => body,
        };
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("\nweir_workers 1\n"), "{lines}: {text}");
    }
    let status = ask(&admin, "GET", "/v1/status").await;
    assert!(!status.contains("content-encoding"), "{status}");
}
