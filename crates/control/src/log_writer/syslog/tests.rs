use std::io::Read as _;
use std::net::TcpListener;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};
use weir_config::snapshot::{PoolTls, SyslogTls};
use weir_tls::client::{ClientSettings, client_config};

use super::*;
use crate::testing::PATIENCE;

fn settings(server: SyslogServer) -> Syslog {
    Syslog { server, facility: 16, tag: "weir".into() }
}

fn batch(log: Log, text: &str) -> LogBatch {
    LogBatch { log, bytes: text.as_bytes().to_vec(), lines: text.lines().count() as u32 }
}

/// The parts of a message: its priority, its six other fields, and the line.
fn read(message: &str) -> (&str, Vec<&str>, &str) {
    let (priority, rest) =
        message.strip_prefix('<').and_then(|it| it.split_once('>')).expect(message);
    let words: Vec<_> = rest.splitn(8, ' ').collect();
    let [ref head @ .., line] = words[..] else { panic!("{message}") };
    (priority, head.to_vec(), line)
}

#[track_caller]
fn check(message: &str, priority: &str, kind: &str, line: &str) {
    let (its_priority, head, its_line) = read(message);
    assert_eq!((its_priority, its_line), (priority, line), "{message}");
    let [version, time, host, tag, process, its_kind, data] = head[..] else { panic!("{message}") };
    assert_eq!((version, tag, its_kind, data), ("1", "weir", kind, "-"), "{message}");
    assert!(time.len() == "2026-11-26T10:00:00.000Z".len() && time.ends_with('Z'), "{message}");
    assert!(!host.is_empty());
    assert_eq!(process, std::process::id().to_string());
}

#[test]
fn each_line_is_a_datagram() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let address = server.local_addr().unwrap().to_string();
    let mut sender = Sender::new(&settings(SyslogServer::Udp(address)));
    let sent = sender.send(&batch(Log::Access, "{\"a\":\"b c\"}\nsecond\n"));
    assert_eq!((sent.lines, sent.error.is_none()), (2, true));
    assert_eq!(sender.send(&batch(Log::Waf, "third\n")).lines, 1);
    let mut buffer = [0; 2048];
    for (priority, kind, line) in
        [("134", "access", "{\"a\":\"b c\"}"), ("134", "access", "second"), ("132", "waf", "third")]
    {
        let length = server.recv(&mut buffer).unwrap();
        check(std::str::from_utf8(&buffer[..length]).unwrap(), priority, kind, line);
    }
}

#[test]
fn a_line_that_no_datagram_holds_is_lost_alone() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    let mut sender = Sender::new(&settings(SyslogServer::Udp(address)));
    let text = format!("first\n{}\nlast\n", "x".repeat(70_000));
    let sent = sender.send(&batch(Log::Access, &text));
    assert_eq!((sent.lines, sent.error.is_some()), (2, true));
}

#[test]
fn a_unix_socket_may_come_later_and_may_be_made_anew() {
    let path = std::env::temp_dir().join(format!("weir-syslog-{}", std::process::id()));
    let server = settings(SyslogServer::Unix(path.clone()));
    let mut early = Sender::new(&server);
    assert!(early.why_away().is_some());
    let sent = early.send(&batch(Log::Access, "lost\n"));
    assert_eq!((sent.lines, sent.error.is_some()), (0, true));
    let bound = UnixDatagram::bind(&path).unwrap();
    assert!(early.why_away().is_none());
    let begin = Instant::now();
    while early.send(&batch(Log::Access, "later\n")).lines == 0 {
        assert!(begin.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut sender = Sender::new(&server);
    assert_eq!(sender.send(&batch(Log::Access, "one\n")).lines, 1);
    drop(bound);
    std::fs::remove_file(&path).unwrap();
    let anew = UnixDatagram::bind(&path).unwrap();
    anew.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(sender.send(&batch(Log::Access, "two\n")).lines, 1);
    let mut buffer = [0; 2048];
    let length = anew.recv(&mut buffer).unwrap();
    check(std::str::from_utf8(&buffer[..length]).unwrap(), "134", "access", "two");
    std::fs::remove_file(&path).unwrap();
    let sent = sender.send(&batch(Log::Access, "three\n"));
    // The socket still works for its owner, although its file was removed.
    assert_eq!(sent.lines, 1);
    drop(anew);
    let sent = sender.send(&batch(Log::Access, "four\n"));
    assert_eq!((sent.lines, sent.error.is_some()), (0, true));
}

/// The messages of a connection, separated by their lengths.
fn counted(mut text: &str) -> Vec<&str> {
    let mut messages = Vec::new();
    while let Some((length, rest)) = text.split_once(' ') {
        let (message, rest) = rest.split_at(length.parse().expect("a length"));
        messages.push(message);
        text = rest;
    }
    assert_eq!(text, "");
    messages
}

#[test]
fn a_connection_counts_messages_and_is_opened_again() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    let mut sender = Sender::new(&settings(SyslogServer::Tcp(address)));
    for round in 0..2 {
        let sent = sender.send(&batch(Log::Access, "one\ntwo\n"));
        assert_eq!((sent.lines, sent.error.is_none()), (2, true), "{round}");
        let (mut connection, _) = server.accept().unwrap();
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut text = Vec::new();
        let mut buffer = [0; 1024];
        while !text.ends_with(b"two") {
            let length = connection.read(&mut buffer).unwrap();
            assert_ne!(length, 0);
            text.extend_from_slice(&buffer[..length]);
        }
        let text = String::from_utf8(text).unwrap();
        let messages = counted(&text);
        assert_eq!(messages.len(), 2);
        check(messages[0], "134", "access", "one");
        check(messages[1], "134", "access", "two");
        // The server closes the connection, so the next batch needs a new one.
        drop(connection);
        let start = Instant::now();
        while !sender.connection.as_mut().is_none_or(Connection::is_closed) {
            assert!(start.elapsed() < PATIENCE);
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_server_that_is_away_is_not_asked_at_each_batch() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    drop(server);
    let mut sender = Sender::new(&settings(SyslogServer::Tcp(address)));
    let sent = sender.send(&batch(Log::Access, "one\n"));
    assert_eq!((sent.lines, sent.error.is_some()), (0, true));
    let until = sender.not_before.expect("a time");
    let sent = sender.send(&batch(Log::Access, "two\n"));
    assert_eq!((sent.lines, sender.not_before), (0, Some(until)), "it was not tried");
    assert!(sent.error.unwrap().to_string().contains("tried again later"));
}

/// The server accepts connections, but no data.
#[test]
fn a_server_that_takes_nothing_is_not_asked_at_each_batch() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    let broken = || {
        let stream = TcpStream::connect(&address).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        Some(Connection::Tcp(stream))
    };
    let mut sender = Sender::new(&settings(SyslogServer::Tcp(address.clone())));
    for expected in [RETRY_AFTER_MIN * 2, RETRY_AFTER_MIN * 4] {
        sender.connection = broken();
        // A time in `not_before` prevents a second attempt.
        sender.not_before = Some(Instant::now());
        let sent = sender.send(&batch(Log::Access, "one\n"));
        assert_eq!((sent.lines, sent.error.is_some()), (0, true));
        assert_eq!(sender.retry_after, expected);
        let until = sender.not_before.expect("a time");
        let sent = sender.send(&batch(Log::Access, "two\n"));
        assert_eq!((sent.lines, sender.not_before), (0, Some(until)), "it was not tried");
        assert!(sent.error.unwrap().to_string().contains("tried again later"));
    }
    // Accepted messages end the pauses.
    sender.not_before = Some(Instant::now());
    assert_eq!(sender.send(&batch(Log::Access, "three\n")).lines, 1);
    assert_eq!((sender.not_before, sender.retry_after), (None, RETRY_AFTER_MIN));
    // After a single broken connection, another one is opened at once.
    sender.connection = broken();
    assert_eq!(sender.send(&batch(Log::Access, "four\n")).lines, 1);
}

/// A certificate for this name, and a server configuration with it.
fn certified(name: &str) -> (CertificateDer<'static>, Arc<ServerConfig>) {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate =
        rcgen::CertificateParams::new(vec![name.into()]).unwrap().self_signed(&key).unwrap();
    let der = certificate.der().clone();
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = builder.with_no_client_auth().with_single_cert(vec![der.clone()], key).unwrap();
    (der, Arc::new(config))
}

fn over_tls(server: String, name: &str, trusted: &CertificateDer<'static>) -> SyslogServer {
    let authorities = Some(vec![trusted.clone()]);
    let settings = ClientSettings { authorities, identity: None, alpn: Vec::new() };
    let config = client_config(&settings).unwrap();
    let tls = Arc::new(PoolTls { config, server_name: None, made_from: Vec::new() });
    SyslogServer::Tls(SyslogTls { server, name: name.into(), tls })
}

/// Accepts a connection, and reads until the text ends with `end`.
fn read_encrypted(
    server: &TcpListener,
    config: &Arc<ServerConfig>,
    end: &str,
) -> (String, StreamOwned<ServerConnection, TcpStream>) {
    let (stream, _) = server.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let connection = ServerConnection::new(Arc::clone(config)).unwrap();
    let mut stream = StreamOwned::new(connection, stream);
    let (mut text, mut buffer) = (Vec::new(), [0; 1024]);
    while !text.ends_with(end.as_bytes()) {
        match stream.read(&mut buffer) {
            Ok(length) if length > 0 => text.extend_from_slice(&buffer[..length]),
            end => panic!("{end:?} after {text:?}"),
        }
    }
    (String::from_utf8(text).unwrap(), stream)
}

#[test]
fn messages_go_within_tls_and_the_connection_is_opened_again() {
    let (certificate, config) = certified("logs.example");
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    let settings = settings(over_tls(address, "logs.example", &certificate));
    let (done, is_done) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut texts = Vec::new();
        for _ in 0..2 {
            let (text, stream) = read_encrypted(&server, &config, "two");
            texts.push(text);
            // The first connection is closed with close_notify, the second one without.
            if texts.len() == 1 {
                let mut stream = stream;
                stream.conn.send_close_notify();
                stream.conn.complete_io(&mut stream.sock).unwrap();
            }
            done.send(()).unwrap();
        }
        texts
    });
    let mut sender = Sender::new(&settings);
    for _ in 0..2 {
        let sent = sender.send(&batch(Log::Access, "one\ntwo\n"));
        assert_eq!((sent.lines, sent.error.map(|error| error.to_string())), (2, None));
        is_done.recv_timeout(PATIENCE).unwrap();
        let start = Instant::now();
        while !sender.connection.as_mut().is_none_or(Connection::is_closed) {
            assert!(start.elapsed() < PATIENCE);
            std::thread::yield_now();
        }
    }
    for text in reader.join().unwrap() {
        let messages = counted(&text);
        assert_eq!(messages.len(), 2, "{text}");
        check(messages[1], "134", "access", "two");
    }
}

#[test]
fn a_server_with_another_name_or_without_tls_gets_nothing() {
    let (certificate, config) = certified("other.example");
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let mut connection = ServerConnection::new(config).unwrap();
        assert!(connection.complete_io(&mut stream).is_err());
        drop(stream);
        // The second connection does not use TLS.
        let (mut stream, _) = server.accept().unwrap();
        std::io::Write::write_all(&mut stream, b"hello\n").unwrap();
        let mut got = Vec::new();
        let _ = stream.read_to_end(&mut got);
        String::from_utf8_lossy(&got).into_owned()
    });
    let error_of = |expected: &str| {
        let mut sender =
            Sender::new(&settings(over_tls(address.clone(), "logs.example", &certificate)));
        // A time in `not_before` prevents a second attempt.
        sender.not_before = Some(Instant::now());
        let sent = sender.send(&batch(Log::Access, "one\n"));
        let error = sent.error.expect("an error").to_string();
        assert!(sent.lines == 0 && error.contains(expected), "{error}");
    };
    error_of("the certificate is not for this name");
    error_of("corrupt message");
    assert!(!reader.join().unwrap().contains("one"));
}

#[test]
fn a_server_that_shakes_hands_byte_by_byte_is_given_up() {
    let (certificate, _) = certified("logs.example");
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    let SyslogServer::Tls(settings) = over_tls(address, "logs.example", &certificate) else {
        panic!("it is over TLS")
    };
    let writer = std::thread::spawn({
        let server = server.try_clone().unwrap();
        move || {
            let (mut stream, _) = server.accept().unwrap();
            // The header of a record with a handshake message, and then its bytes, until the peer stops reading.
            let start = Instant::now();
            let record = [22, 3, 3, 0x3f, 0xff, 2, 0, 0x3f, 0xf0].into_iter();
            for byte in record.chain(std::iter::repeat(3)) {
                if start.elapsed() > PATIENCE || stream.write_all(&[byte]).is_err() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    });
    let stream = connect(&settings.server).unwrap();
    let opened = SyslogTlsConnection::open(stream, &settings, Duration::from_millis(200));
    let error = opened.err().expect("an error").to_string();
    assert_eq!(error, "the server did not answer in time");
    writer.join().unwrap();
}
