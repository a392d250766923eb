//! Probes against small servers, most of which fail as real members do.

mod dns;
mod grpc;
mod http;
mod icmp;
mod radius;
mod script;
mod services;
mod tcp;
mod udp;

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, pki_types::PrivateKeyDer};
use weir_config::snapshot::{
    Address, BodyMatch, DrainAnswer, HttpProbe, Monitor, MonitorKind, ProbeMethod, ProbeTls,
    TcpProbe,
};
use weir_core::monitor::Schedule;

use super::answer::BODY_SIZE_MAX;
use super::*;

fn monitor(kind: MonitorKind, timeout_ms: u64) -> Monitor {
    let (rise, fall, jitter_percent, up_delay_ms) = (1, 1, 0, 0);
    let schedule =
        Schedule { interval_ms: 1_000, timeout_ms, rise, fall, jitter_percent, up_delay_ms };
    Monitor { kind, schedule, port: None, is_reverse: false }
}

fn subject() -> Subject {
    Subject { pool: "web".into(), member: "app.example:80".into() }
}

/// A monitor that passes if the connection is accepted.
fn accepted() -> MonitorKind {
    MonitorKind::Tcp(TcpProbe::default())
}

fn http() -> HttpProbe {
    HttpProbe {
        method: ProbeMethod::Get,
        path: "/healthz".into(),
        host: None,
        fields: Vec::new(),
        credentials: None,
        body: Arc::default(),
        tls: None,
        expect_status: vec![(200, 299)],
        expect_body: None,
        drain_on: None,
    }
}

fn substring(text: &str) -> Option<BodyMatch> {
    Some(BodyMatch::Substring(text.as_bytes().into()))
}

/// A server that reads a request head, sends `answer`, and closes after `linger_ms`.
async fn server(answer: impl Into<Vec<u8>>, linger_ms: u64) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = answer.into();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut head = vec![0; 4_096];
                let mut length = 0;
                while !head[..length].ends_with(b"\r\n\r\n") {
                    match stream.read(&mut head[length..]).await {
                        Ok(read) if read > 0 => length += read,
                        _ => return,
                    }
                }
                let _ = stream.write_all(&answer).await;
                tokio::time::sleep(Duration::from_millis(linger_ms)).await;
            });
        }
    });
    Address::Socket(address)
}

async fn result(address: &Address, kind: MonitorKind) -> String {
    let probe = Probe::new(address, None, &Source::System, subject(), None, &monitor(kind, 300));
    told(probe.run(&TlsClients::new()).await)
}

fn told(result: Result<ProbeOutcome, Failure>) -> String {
    match result {
        Ok(ProbeOutcome::Passed) => "passed".into(),
        Ok(outcome) => format!("{outcome:?}"),
        Err(failure) => failure.to_string(),
    }
}

async fn http_result(answer: impl Into<Vec<u8>>, linger_ms: u64, probe: HttpProbe) -> String {
    result(&server(answer, linger_ms).await, MonitorKind::Http(probe)).await
}

#[tokio::test]
async fn answers_are_judged() {
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n";
    assert_eq!(http_result(ok, 0, http()).await, "passed");
    // The body is missing.
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n";
    let probe = HttpProbe { method: ProbeMethod::Head, ..http() };
    assert_eq!(http_result(head, 1_000, probe).await, "passed");
    let with_body = |text: &str| HttpProbe { expect_body: substring(text), ..http() };
    assert_eq!(http_result(ok, 0, with_body("ok")).await, "passed");
    assert_eq!(
        http_result(ok, 1_000, with_body("ok")).await,
        "passed",
        "the member keeps the connection"
    );
    assert_eq!(http_result(ok, 0, with_body("fine")).await, "the body is not as expected");
    let regex = regex::bytes::Regex::new("^o[jk]\n$").unwrap();
    let probe = HttpProbe { expect_body: Some(BodyMatch::Regex(regex)), ..http() };
    assert_eq!(http_result(ok, 0, probe).await, "passed");

    let unavailable = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(http_result(unavailable, 0, http()).await, "status 503");
    let probe = HttpProbe { expect_status: vec![(200, 200), (500, 503)], ..http() };
    assert_eq!(http_result(unavailable, 0, probe).await, "passed");
    let chunked =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n";
    assert_eq!(http_result(chunked, 0, with_body("ok")).await, "passed");
    let until_close = "HTTP/1.0 200 OK\r\n\r\nall is ok";
    assert_eq!(http_result(until_close, 0, with_body("ok")).await, "passed");
}

#[tokio::test]
async fn an_answer_may_ask_for_a_drain() {
    let asking = |status: Option<(u16, u16)>, body: Option<&str>| {
        let status = status.map(|range| vec![range]);
        let body = body.and_then(substring);
        HttpProbe { drain_on: Some(DrainAnswer { status, body }), ..http() }
    };
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nretiring";
    let unavailable = "HTTP/1.1 503 No\r\nContent-Length: 8\r\n\r\nretiring";
    let check = async |answer: &str, probe: HttpProbe, expected: &str| {
        assert_eq!(http_result(answer, 0, probe).await, expected);
    };
    check(unavailable, asking(Some((503, 503)), None), "Drain").await;
    check(unavailable, asking(Some((500, 599)), Some("retiring")), "Drain").await;
    check(unavailable, asking(Some((500, 599)), Some("broken")), "status 503").await;
    check(unavailable, asking(None, Some("retiring")), "Drain").await;
    check(ok, asking(None, Some("retiring")), "Drain").await;
    check(ok, asking(Some((503, 503)), None), "passed").await;
    check(ok, asking(None, Some("broken")), "passed").await;
    let strict = HttpProbe { expect_body: substring("ready"), ..asking(None, Some("broken")) };
    check(ok, strict, "the body is not as expected").await;
}

#[tokio::test]
async fn half_answers_fail() {
    let with_body = |text: &str| HttpProbe { expect_body: substring(text), ..http() };
    for (answer, linger_ms, probe, expected) in [
        ("", 0, http(), "connection closed (waiting for the response)"),
        ("HTTP/1.1 200", 0, http(), "connection closed (waiting for the response)"),
        ("", 1_000, http(), "no answer in 300ms (waiting for the response)"),
        (
            "HTTP/1.1 200 OK\r\nX-Slow: ",
            1_000,
            http(),
            "no answer in 300ms (waiting for the response)",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok",
            0,
            with_body("fine"),
            "connection closed (reading the body)",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
            1_000,
            with_body("ok"),
            "no answer in 300ms (reading the body)",
        ),
        // A wrong answer is an answer, also if the member keeps the connection open.
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok",
            10_000,
            with_body("fine"),
            "the body is not as expected",
        ),
        ("HTTP/1.1 503 Busy\r\nContent-Length: 9\r\n\r\n", 10_000, with_body("ok"), "status 503"),
        // A body that contains the text already is enough.
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", 10_000, with_body("ok"), "passed"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
            10_000,
            with_body("ok"),
            "passed",
        ),
    ] {
        assert_eq!(http_result(answer, linger_ms, probe).await, expected, "{answer:?}");
    }
    for answer in ["SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 2000 OK\r\n\r\n"] {
        let result = http_result(answer, 0, http()).await;
        assert!(result.starts_with("malformed response: "), "{result}");
    }
    let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(200_000));
    let result = http_result(endless, 1_000, http()).await;
    assert!(result.starts_with("malformed response: "), "{result}");
}

/// Only the first 64 KiB of a body count, and no more of an endless body is stored.
#[tokio::test]
async fn long_bodies_are_cut() {
    let body = |padding: usize| {
        let mut answer = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        answer.resize(answer.len() + padding, b'.');
        answer.extend_from_slice(b"ok");
        answer.resize(answer.len() + 1_000_000, b'.');
        answer
    };
    let probe = || HttpProbe { expect_body: substring("ok"), ..http() };
    assert_eq!(http_result(body(BODY_SIZE_MAX - 2), 0, probe()).await, "passed");
    assert_eq!(
        http_result(body(BODY_SIZE_MAX - 1), 0, probe()).await,
        "the body is not as expected"
    );
}

#[tokio::test]
async fn tcp_needs_the_connection_only() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::Socket(listener.local_addr().unwrap());
    assert_eq!(result(&address, accepted()).await, "passed");
    drop(listener);
    assert_eq!(result(&address, accepted()).await, "connection refused");
    assert_eq!(result(&address, MonitorKind::Http(http())).await, "connection refused");
}

#[tokio::test]
async fn unix_sockets_and_other_ports() {
    let path = std::env::temp_dir().join(format!("weir-probe-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let missing = Address::Unix(path.clone());
    assert_eq!(result(&missing, accepted()).await, "no such file");
    let listener = UnixListener::bind(&path).unwrap();
    assert_eq!(result(&missing, accepted()).await, "passed");
    drop(listener);
    std::fs::remove_file(&path).unwrap();

    let Address::Socket(healthy) = server("HTTP/1.1 204 No Content\r\n\r\n", 0).await else {
        unreachable!()
    };
    let member = Address::Socket("127.0.0.1:1".parse().unwrap());
    let other = Monitor { port: Some(healthy.port()), ..monitor(MonitorKind::Http(http()), 300) };
    assert!(
        Probe::new(&member, None, &Source::System, subject(), None, &other)
            .run(&TlsClients::new())
            .await
            .is_ok()
    );
}

#[test]
fn the_host_field() {
    let check = |address: &str, name: Option<&str>, host: Option<&str>, expected: &str| {
        let address = match address.strip_prefix("unix:") {
            Some(path) => Address::Unix(path.into()),
            None => Address::Socket(address.parse().unwrap()),
        };
        let settings = HttpProbe { host: host.map(Into::into), ..http() };
        let monitor = monitor(MonitorKind::Http(settings.clone()), 1);
        let probe = Probe::new(
            &address,
            name.map(Into::into).as_ref(),
            &Source::System,
            subject(),
            None,
            &monitor,
        );
        assert_eq!(probe.host_field(settings.host.as_deref(), false), expected);
    };
    check("127.0.0.1:80", None, None, "127.0.0.1");
    check("127.0.0.1:8080", None, None, "127.0.0.1:8080");
    check("[::1]:8080", None, None, "[::1]:8080");
    check("[::1]:80", None, None, "[::1]");
    check("127.0.0.1:8080", Some("app.example"), None, "app.example:8080");
    check("127.0.0.1:8080", Some("app.example"), Some("shop.example"), "shop.example");
    check("unix:/run/app.sock", None, None, "localhost");
}

/// A lack of resources on this host does not count against the member.
#[test]
fn local_failures_are_not_held_against_the_member() {
    for (code, conclusive) in [(111, true), (113, true), (24, false), (23, false), (99, false)] {
        let failure = Failure::connecting(io::Error::from_raw_os_error(code));
        assert_eq!(failure.is_conclusive(), conclusive, "{failure}");
    }
}

/// A TLS server on 127.0.0.1 with a certificate for these names. Also returns the authority that signed the certificate.
async fn tls_server(names: &[&str], expired: bool) -> (Address, RootCertStore) {
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    let authority_name = format!("authority of {}", names[0]);
    authority.distinguished_name.push(rcgen::DnType::CommonName, authority_name);
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority_certificate = authority.self_signed(&authority_key).unwrap();
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let key = rcgen::KeyPair::generate().unwrap();
    let mut server = certificate_for(names);
    if expired {
        server.not_before = rcgen::date_time_ymd(2000, 1, 1);
        server.not_after = rcgen::date_time_ymd(2001, 1, 1);
    }
    let certificate = server.signed_by(&key, &issuer).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(authority_certificate.der().clone()).unwrap();
    (serve_tls(&certificate, &key).await, roots)
}

/// A TLS server on 127.0.0.1 with a self-signed certificate for these names. Also returns roots that contain the
/// certificate.
async fn self_signed_tls_server(names: &[&str], is_ca: rcgen::IsCa) -> (Address, RootCertStore) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut server = certificate_for(names);
    server.is_ca = is_ca;
    let certificate = server.self_signed(&key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    (serve_tls(&certificate, &key).await, roots)
}

fn certificate_for(names: &[&str]) -> rcgen::CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    rcgen::CertificateParams::new(names).unwrap()
}

async fn serve_tls(certificate: &rcgen::Certificate, key: &rcgen::KeyPair) -> Address {
    let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let mut head = [0; 4_096];
                let _ = stream.read(&mut head).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
                let _ = stream.shutdown().await;
            });
        }
    });
    Address::Socket(address)
}

#[tokio::test]
async fn certificates_are_verified_or_not() {
    let trusted = |roots: &RootCertStore| TlsClients::with_roots(roots.clone());
    let check = async |address: &Address, tls: &TlsClients, host: &str, verify: bool| {
        let probe = HttpProbe {
            host: Some(host.into()),
            tls: Some(ProbeTls { verify, name: Some(host.into()), is_upgrade: false }),
            expect_body: substring("ok"),
            ..http()
        };
        let probe = monitor(MonitorKind::Http(probe), 5_000);
        told(Probe::new(address, None, &Source::System, subject(), None, &probe).run(tls).await)
    };
    let (address, roots) = tls_server(&["app.example", "127.0.0.1"], false).await;
    let tls = trusted(&roots);
    assert_eq!(check(&address, &tls, "app.example", true).await, "passed");
    assert_eq!(check(&address, &tls, "app.example:8443", true).await, "passed");
    assert_eq!(check(&address, &tls, "127.0.0.1", true).await, "passed");
    let other = "TLS: the certificate is not for this name";
    assert_eq!(check(&address, &tls, "other.example", true).await, other);
    assert_eq!(check(&address, &tls, "other.example", false).await, "passed");
    let (_, other_roots) = tls_server(&["x.example"], false).await;
    let unknown = "TLS: the certificate is not signed by a trusted authority";
    assert_eq!(check(&address, &trusted(&other_roots), "app.example", true).await, unknown);
    let (address, roots) =
        self_signed_tls_server(&["app.example"], rcgen::IsCa::ExplicitNoCa).await;
    assert_eq!(check(&address, &trusted(&roots), "app.example", true).await, "passed");
    assert_eq!(check(&address, &tls, "app.example", true).await, unknown);
    // `openssl req -x509` creates a certificate like this.
    let is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let (address, roots) = self_signed_tls_server(&["app.example"], is_ca).await;
    let authority = "TLS: the certificate is an authority's own, as self-signed ones often are: \
                     make it with basicConstraints=CA:FALSE and trust it, or set `verify: false`";
    assert_eq!(check(&address, &tls, "app.example", true).await, authority);
    assert_eq!(check(&address, &trusted(&roots), "app.example", true).await, authority);
    assert_eq!(check(&address, &tls, "app.example", false).await, "passed");
    let (address, roots) = tls_server(&["app.example"], true).await;
    let expired = "TLS: the certificate has expired";
    assert_eq!(check(&address, &trusted(&roots), "app.example", true).await, expired);
    assert_eq!(check(&address, &trusted(&roots), "app.example", false).await, "passed");
    let no_name = "TLS: not a name is not a host name";
    assert_eq!(check(&address, &trusted(&roots), "not a name", true).await, no_name);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plain = Address::Socket(listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"220 mail.example ESMTP\r\n").await.unwrap();
        let _ = stream.read(&mut [0; 1_024]).await;
    });
    let result = check(&plain, &tls, "app.example", true).await;
    assert!(result.starts_with("TLS: "), "{result}");
}

/// Monitors of type tcp have the same TLS settings as https monitors.
#[tokio::test]
async fn plain_conversations_over_tls() {
    let check = async |address: &Address, tls: &TlsClients, settings: ProbeTls| {
        let probe = TcpProbe {
            send: Some(b"state\n"[..].into()),
            receive: substring("200 OK"),
            drain_on: None,
            tls: Some(settings),
        };
        let probe = monitor(MonitorKind::Tcp(probe), 5_000);
        told(Probe::new(address, None, &Source::System, subject(), None, &probe).run(tls).await)
    };
    let (address, roots) = tls_server(&["app.example"], false).await;
    let tls = TlsClients::with_roots(roots);
    let named =
        |name: &str, verify| ProbeTls { verify, name: Some(name.into()), is_upgrade: false };
    assert_eq!(check(&address, &tls, named("app.example", true)).await, "passed");
    let other = "TLS: the certificate is not for this name";
    assert_eq!(check(&address, &tls, named("other.example", true)).await, other);
    // Without a configured name, the certificate must be valid for the member's address.
    assert_eq!(
        check(&address, &tls, ProbeTls { verify: true, name: None, is_upgrade: false }).await,
        other
    );
    assert_eq!(
        check(&address, &tls, ProbeTls { verify: false, name: None, is_upgrade: false }).await,
        "passed"
    );
    // An accepted connection is not enough if TLS is configured.
    let plain = server("", 1_000).await;
    let accepted = TcpProbe { tls: Some(named("app.example", true)), ..TcpProbe::default() };
    let failed = "no answer in 300ms (TLS handshake)";
    assert_eq!(result(&plain, MonitorKind::Tcp(accepted)).await, failed);
}
