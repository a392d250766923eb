//! HTTP requests as members receive them.

use std::sync::Mutex;

use weir_config::snapshot::{Credentials, Secret};

use super::*;

/// A server that records the head and the body of requests, and answers with 200.
async fn listener(body_bytes: usize) -> (Address, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = Vec::new();
            let is_whole = |bytes: &[u8]| {
                let end = memchr::memmem::find(bytes, b"\r\n\r\n");
                end.is_some_and(|end| bytes.len() >= end + 4 + body_bytes)
            };
            while !is_whole(&bytes) && stream.read_buf(&mut bytes).await.unwrap() > 0 {}
            *kept.lock().unwrap() = String::from_utf8(bytes).unwrap();
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        }
    });
    (Address::Socket(address), asked)
}

fn field(name: &str, value: &str) -> (Arc<str>, Secret) {
    (name.into(), Secret::new(value))
}

#[tokio::test]
async fn requests_are_as_configured() {
    let check = async |probe: HttpProbe, line: &str, fields: &[&str], absent: &[&str]| {
        let (address, asked) = listener(probe.body.len()).await;
        let body = String::from_utf8(probe.body.to_vec()).unwrap();
        assert_eq!(result(&address, MonitorKind::Http(probe)).await, "passed");
        let asked = asked.lock().unwrap().clone();
        let (head, came) = asked.split_once("\r\n\r\n").unwrap();
        assert_eq!((head.lines().next(), came), (Some(line), &*body));
        let head = head.to_ascii_lowercase();
        for field in fields {
            assert!(head.lines().any(|line| line == field.to_ascii_lowercase()), "{field}: {head}");
        }
        for field in absent {
            assert!(!head.contains(&field.to_ascii_lowercase()), "{field}: {head}");
        }
    };
    let own = concat!("User-Agent: weir/", env!("CARGO_PKG_VERSION"), " (monitor)");
    let usual = ["Connection: close", own, "Accept: */*"];
    let absent = ["Authorization", "Content-Length"];
    check(http(), "GET /healthz HTTP/1.1", &usual, &absent).await;
    let probe = HttpProbe {
        fields: vec![field("user-agent", "probe"), field("X-Tenant", "a"), field("X-Tenant", "b")],
        host: Some("shop.example".into()),
        ..http()
    };
    let fields = ["Host: shop.example", "User-Agent: probe", "X-Tenant: a", "X-Tenant: b"];
    check(probe, "GET /healthz HTTP/1.1", &fields, &[own]).await;
    let probe = HttpProbe {
        method: ProbeMethod::Post,
        path: "/query?deep=1".into(),
        fields: vec![field("Content-Type", "application/json")],
        body: b"{\"query\":\"{ up }\"}"[..].into(),
        ..http()
    };
    let fields = ["Content-Type: application/json", "Content-Length: 18"];
    check(probe, "POST /query?deep=1 HTTP/1.1", &fields, &["Transfer-Encoding"]).await;
    // The example of RFC 7617 section 2.
    let credentials = Credentials { user: "Aladdin".into(), password: Secret::new("open sesame") };
    let probe = HttpProbe { credentials: Some(credentials), ..http() };
    let fields = ["Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="];
    check(probe, "GET /healthz HTTP/1.1", &fields, &[]).await;
}
