//! Connections that one side breaks off or ends early: a partial message never looks complete, and complete messages before
//! it still arrive.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, mpsc};

use weir_tests::client::Client;
use weir_tests::member::{Exchange, Member, Then};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::stream::{StreamMember, reset};
use weir_tests::{STEP_TIMEOUT, eventually, tls};

/// Number of rounds, because it depends on microseconds which side detects a reset first.
const ROUNDS: usize = 40;
const UPLOAD_BYTES: usize = 300_000;
/// More than the kernel buffers for a client that does not read, but less than the buffers of both kernels together.
const WHOLE_BYTES: usize = 500_000;

/// Sends bytes, waits for the first byte of the upload, and resets the connection.
fn breaks_off(mut stream: TcpStream, hello_bytes: usize, says: &[u8]) -> io::Result<()> {
    stream.read_exact(&mut vec![0; hello_bytes])?;
    stream.write_all(says)?;
    stream.read_exact(&mut [0; 1])?;
    reset(stream);
    Ok(())
}

/// Two setups: with the member itself, and with the member behind a proxy with TLS.
fn plain_and_secure(member: &StreamMember) -> [(Setup, Option<Proxy>); 2] {
    let plain = Setup::new(&[member.address()]);
    let relay = plain.clone().virtual_server("type: tcp").virtual_server(&tls::shop(""));
    let relay = Proxy::start(&relay);
    let trusted =
        format!("tls: {{ ca: {}, server_name: shop.example }}", tls::file("authorities.crt"));
    let secure = Setup::new(&[relay.address()]).pool(&trusted);
    [(plain, None), (secure, Some(relay))]
}

/// Sends as many bytes as the socket accepts without waiting.
fn upload(client: &mut Client) {
    client.stream().set_nonblocking(true).expect("a socket");
    // A reset during the write is no error here: the client still reads its response.
    let _ = client.stream().write(&vec![b'x'; UPLOAD_BYTES]);
    client.stream().set_nonblocking(false).expect("a socket");
}

#[test]
fn a_member_that_breaks_off_while_it_is_written_to_leaves_a_cut_response() {
    const HEAD: &str = "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 900000\r\n\r\n";
    let member = StreamMember::new(|stream| {
        breaks_off(stream, HEAD.len(), b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\npart")
    });
    for (setup, _relay) in plain_and_secure(&member) {
        let proxy = Proxy::start(&setup);
        for round in 0..ROUNDS {
            let mut client = proxy.client();
            client.send(HEAD);
            let begun = client.stream().read(&mut [0; 4096]).expect("the response begins");
            assert!(begun > 0);
            upload(&mut client);
            let rest = client.reader().rest();
            let rest = String::from_utf8_lossy(&rest);
            assert!(!rest.ends_with("0\r\n\r\n"), "round {round}: called whole");
        }
    }
}

#[test]
fn a_relayed_member_that_breaks_off_while_it_is_written_to_is_a_reset() {
    let member = StreamMember::new(|stream| breaks_off(stream, 5, b"world"));
    for (setup, _relay) in plain_and_secure(&member) {
        let proxy = Proxy::start(&setup.virtual_server("type: tcp"));
        for round in 0..ROUNDS {
            let mut client = proxy.client();
            client.send("hello");
            client.stream().read_exact(&mut [0; 5]).expect("what the member says");
            upload(&mut client);
            let end = client.stream().read(&mut [0; 1]).map_err(|error| error.kind());
            assert_eq!(end, Err(io::ErrorKind::ConnectionReset), "round {round}");
        }
    }
}

/// A request after `GET /whole` on the same connection, whose response is cut.
struct Cut {
    name: &'static str,
    version: &'static str,
    path: &'static str,
    /// The bytes that the member sends before it breaks off. Empty: the member does not receive the request.
    says: &'static str,
    termination: &'static str,
}

const CUTS: [Cut; 4] = [
    Cut {
        name: "with a length",
        version: "HTTP/1.1",
        path: "/",
        says: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        termination: "member_abort",
    },
    Cut {
        name: "up to the end",
        version: "HTTP/1.0",
        path: "/",
        says: "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf",
        termination: "member_abort",
    },
    Cut {
        name: "reset by a rule",
        version: "HTTP/1.1",
        path: "/reset",
        says: "",
        termination: "policy",
    },
    Cut {
        name: "closed by a rule",
        version: "HTTP/1.1",
        path: "/close",
        says: "",
        termination: "policy",
    },
];

const RULES: &str = "policies: { test: { rules: [ \
    { when: 'request.path == \"/reset\"', then: [ reset ] }, \
    { when: 'request.path == \"/close\"', then: [ close ] } ] } }";

#[test]
fn what_is_cut_takes_no_whole_response_before_it() {
    for Cut { name, version, path, says, termination } in CUTS {
        let (breaks, is_to_break) = mpsc::channel::<()>();
        let is_to_break = Mutex::new(is_to_break);
        let member = Member::new(move |exchange| {
            if exchange.request.target() == "/whole" {
                return exchange.answer(vec![b'w'; WHOLE_BYTES]);
            }
            exchange.send(says)?;
            let _ = is_to_break.lock().expect("one at a time").recv_timeout(STEP_TIMEOUT);
            Ok(Then::Reset)
        });
        let setup = Setup::new(&[member.address()]).virtual_server("policies: [ test ]").top(RULES);
        let mut proxy = Proxy::start(&setup.access_log());
        let mut client = proxy.client();
        for path in ["/whole", path] {
            let fields = "Host: test\r\nConnection: keep-alive";
            client.send(format!("GET {path} {version}\r\n{fields}\r\n\r\n"));
        }
        // A close with unread bytes becomes a reset.
        upload(&mut client);
        if !says.is_empty() {
            // More than the whole response with its head of about 80 bytes.
            let is_passed_on = (WHOLE_BYTES + 100) as f64;
            eventually("what the member says is passed on", STEP_TIMEOUT, || {
                proxy.metric("weir_virtual_server_sent_bytes_total", &[]) > is_passed_on
            });
            breaks.send(()).expect("the member");
        }
        let text = format!("\"termination\":\"{termination}\"");
        eventually("it is cut", STEP_TIMEOUT, || proxy.process().output().contains(&text));
        let whole = client.response();
        assert_eq!((whole.status, whole.complete), (200, true), "{name}");
        assert_eq!(whole.body.len(), WHOLE_BYTES, "{name}");
        if let Ok(cut) = client.try_response(false) {
            assert!(!cut.complete, "{name}: {cut:?}");
        }
        drop(client);
        eventually("the connection is forgotten", STEP_TIMEOUT, || {
            proxy.metric("weir_connections_leaving", &[]) == 0.0
        });
    }
}

#[test]
fn what_a_relayed_member_said_before_it_broke_off_gets_through() {
    let (breaks, is_to_break) = mpsc::channel::<()>();
    let is_to_break = Mutex::new(is_to_break);
    let member = StreamMember::new(move |mut stream| {
        stream.read_exact(&mut [0; 5])?;
        stream.write_all(&vec![b'w'; WHOLE_BYTES])?;
        let _ = is_to_break.lock().expect("one at a time").recv_timeout(STEP_TIMEOUT);
        reset(stream);
        Ok(())
    });
    let setup = Setup::new(&[member.address()]).virtual_server("type: tcp").access_log();
    let mut proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    client.send("hello");
    eventually("all of it is passed on", STEP_TIMEOUT, || {
        proxy.metric("weir_virtual_server_sent_bytes_total", &[]) == WHOLE_BYTES as f64
    });
    breaks.send(()).expect("the member");
    let text = "\"termination\":\"member_abort\"";
    eventually("it breaks off", STEP_TIMEOUT, || proxy.process().output().contains(text));
    let mut got = Vec::new();
    let end = client.stream().read_to_end(&mut got).map_err(|error| error.kind());
    assert_eq!((end, got.len()), (Err(io::ErrorKind::ConnectionReset), WHOLE_BYTES));
}

/// Uploads that are rejected early: by the member with 403, and by weir with 413.
fn early_answers() -> [(u16, Member, Setup); 2] {
    let refuses = |exchange: &mut Exchange| {
        exchange
            .send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")?;
        // A close with this much unread input becomes a reset.
        Ok(Then::Close)
    };
    let [member, unasked] = [Member::streaming(refuses), Member::streaming(refuses)];
    let setup = Setup::new(&[member.address()]);
    let limited = Setup::new(&[unasked.address()]).http("body_size_max: 1MiB");
    [(403, member, setup), (413, unasked, limited)]
}

#[test]
fn who_reads_only_behind_a_long_upload_gets_its_early_answer() {
    for (status, _member, setup) in early_answers() {
        let proxy = Proxy::start(&setup);
        for megabytes in [3, 3, 30, 30] {
            let mut client = proxy.client();
            let bytes = megabytes * 1_000_000;
            client
                .send(format!("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {bytes}\r\n\r\n"));
            for _ in 0..megabytes * 10 {
                let sent = client.try_send(vec![b'x'; 100_000]);
                assert!(sent.is_ok(), "{status}, {megabytes} MB: {sent:?}");
            }
            let response = client.response();
            assert_eq!((response.status, response.complete), (status, true), "{megabytes} MB");
            // The kernels buffer some megabytes for a member that does not read, so a shorter upload may be complete.
            if megabytes == 30 {
                assert!(response.head.has_token("connection", "close"), "{:?}", response.head);
                client.assert_closed();
            }
        }
    }
}
