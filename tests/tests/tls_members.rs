//! Members over TLS: another weir with a TLS virtual server, and nginx.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::Sender;

use weir_tests::client::Client;
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{require, tls};

/// Another weir with TLS as the member. It may request client certificates.
fn secure(member: &Member, more: &str) -> Proxy {
    Proxy::start(&Setup::new(&[member.address()]).virtual_server(&tls::shop(more)))
}

/// A setup whose pool has this member and this `tls`.
fn before(secure: &Proxy, pool_tls: &str) -> Setup {
    Setup::new(&[secure.address()]).pool(&format!("tls: {{ {pool_tls} }}"))
}

fn trusted() -> String {
    format!("ca: {}, server_name: shop.example", tls::file("authorities.crt"))
}

fn handshakes(proxy: &Proxy, result: &str) -> f64 {
    let label = format!("\"{result}\"");
    proxy.metric("weir_virtual_server_tls_handshakes_total", &["\"main\"", &label])
}

#[test]
fn bodies_pass_both_ways_and_connections_are_kept() {
    let member = Member::new(|exchange| {
        let body = std::mem::take(&mut exchange.request.body);
        exchange.answer(body)
    });
    let inner = secure(&member, "");
    let outer = Proxy::start(&before(&inner, &trusted()));
    let body: Vec<u8> = (0..2_000_000_u32).map(|number| (number % 249) as u8).collect();
    let mut client = outer.client();
    for _ in 0..3 {
        let response = client.post("/", &body);
        response.assert_status(200);
        assert!(response.body == body);
        client.get("/").assert_status(200);
    }
    assert_eq!(handshakes(&inner, "full"), 1.0, "one connection for all");
}

#[test]
fn sessions_go_on_and_certificates_are_shown() {
    let member = Member::new(|exchange| {
        let subject = exchange.request.head.field("x-subject").unwrap_or("none").to_owned();
        exchange.answer(subject)
    });
    let asks = format!("client_certificates: {{ ca: {} }}", tls::file("authorities.crt"));
    let rule = "- then: [ { set_header: { X-Subject: \"${tls.client_certificate.subject}\" } } ]";
    let setup = Setup::new(&[member.address()])
        .virtual_server(&tls::shop(&asks))
        .virtual_server("policies: [ tell ]")
        .top(&format!("policies:\n  tell:\n    rules:\n      {rule}"));
    let inner = Proxy::start(&setup);
    let shown = format!("{}, certificate: {}", trusted(), tls::pair("client"));
    let outer = Proxy::start(&before(&inner, &shown).pool("reuse: { requests_max: 1 }"));
    let mut client = outer.client();
    for _ in 0..5 {
        assert_eq!(client.get("/").assert_status(200).text(), "CN=A client");
    }
    assert_eq!((handshakes(&inner, "full"), handshakes(&inner, "resumed")), (1.0, 4.0));
    let without = Proxy::start(&before(&inner, &trusted()));
    without.client().get("/").assert_status(502);
}

#[test]
fn a_member_that_cannot_be_verified_gets_nothing() {
    let member = Member::named("here");
    let inner = secure(&member, "");
    let file = tls::file("authorities.crt");
    for (pool_tls, status) in [
        (format!("ca: {file}, server_name: a.shop.example"), 200),
        (format!("ca: {file}, server_name: other.example"), 502),
        // Without `server_name`, the name is the member's address, which the certificate does not cover.
        (format!("ca: {file}"), 502),
        (format!("ca: {}, server_name: shop.example", tls::file("stranger.crt")), 502),
        ("verify: false".to_owned(), 200),
    ] {
        let mut outer = Proxy::start(&before(&inner, &pool_tls));
        outer.client().get("/").assert_status(status);
        if status == 502 {
            weir_tests::eventually("it is told why", weir_tests::STEP_TIMEOUT, || {
                outer.process().output().contains("its TLS failed: the certificate is not")
            });
            let failures = "weir_member_failures_total";
            assert!(outer.metric(failures, &["connect"]) > 0.0, "{pool_tls}");
        }
    }
    assert_eq!(member.request_count(), 2);
}

#[test]
fn a_reload_changes_how_members_are_spoken_to() {
    let member = Member::named("here");
    let inner = secure(&member, "");
    let setup = before(&inner, &trusted());
    let outer = Proxy::start(&setup);
    let mut client = outer.client();
    client.get("/").assert_status(200);
    // The pool's TLS settings do not change, so the connection remains.
    outer.reload_and_wait(&before(&inner, &trusted()).http("idle_timeout: 50s"));
    client.get("/").assert_status(200);
    assert_eq!(handshakes(&inner, "full"), 1.0);
    outer.reload_and_wait(&before(&inner, "verify: false"));
    client.get("/").assert_status(200);
    assert_eq!(handshakes(&inner, "full"), 2.0, "not over the connection of before");
    outer.reload_and_wait(&Setup::new(&[inner.address()]));
    // Without TLS, the member rejects the request.
    client.get("/").assert_status(400);
}

/// A member that accepts connections and does not respond to the handshake counts as unreachable after `connect_timeout`.
#[test]
fn a_member_that_is_silent_in_the_handshake_is_left() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let member = Member::named("here");
    let inner = secure(&member, "");
    let addresses = [silent.local_addr().expect("an address"), inner.address()];
    let setup = Setup::new(&addresses)
        .pool(&format!("tls: {{ {} }}", trusted()))
        .pool("connect_timeout: 2s");
    let outer = Proxy::start(&setup);
    let mut client = outer.client();
    for _ in 0..3 {
        client.get("/").assert_status(200);
    }
    assert!(outer.metric("weir_pool_retries_total", &[]) > 0.0);
    drop(silent);
}

/// A body through TLS on both sides, to a client that reads slowly.
#[test]
fn tls_to_both_sides() {
    require!("curl");
    let member = Member::named("here");
    let inner = secure(&member, "");
    let setup = before(&inner, &trusted()).virtual_server(&tls::shop(""));
    let outer = Proxy::start(&setup);
    assert_eq!(tls::get(outer.address(), "/", &["--limit-rate", "1M"]), "here");
    weir_tests::eventually("the connection is idle", weir_tests::STEP_TIMEOUT, || {
        outer.metric("weir_member_connections_idle", &[]) == 1.0
    });
}

/// weir sends the PROXY header before the handshake. Connections with a PROXY header are not shared.
#[test]
fn members_are_told_of_each_client_before_the_handshake() {
    let member = Member::new(|exchange| {
        let told = exchange.request.head.field("x-forwarded-for").unwrap_or("none").to_owned();
        exchange.answer(told)
    });
    let trusts = "client_address: { trust: [ 127.0.0.0/8 ], proxy_protocol: true, x_forwarded_for: replace }";
    let inner = Proxy::start(
        &Setup::new(&[member.address()]).virtual_server(&tls::shop("")).virtual_server(trusts),
    );
    let outer = Proxy::start(&before(&inner, &trusted()).pool("proxy_protocol: v2"));
    for host in [1, 2, 3, 2] {
        let mut client = Client::connect_from(outer.address(), [127, 0, 6, host].into());
        for _ in 0..2 {
            assert_eq!(client.get("/").assert_status(200).text(), format!("127.0.6.{host}"));
        }
    }
}

/// Size of the response, which distinguishes it from the bytes of a handshake.
const ANSWER_BYTES: usize = 10_000;

/// Relays a connection to `to`, and sends a part of another record directly after the response. Returns when the connection
/// has ended.
fn pass_with_surplus(
    listener: &TcpListener,
    to: SocketAddr,
    answered: &Sender<()>,
) -> std::io::Result<()> {
    let (mut proxy, _) = listener.accept()?;
    let mut member = TcpStream::connect(to)?;
    let (mut requests, mut to_member) = (proxy.try_clone()?, member.try_clone()?);
    let forward = std::thread::spawn(move || std::io::copy(&mut requests, &mut to_member));
    let (mut came, mut buffer) = (0, vec![0; 64 * 1_024]);
    while came < ANSWER_BYTES {
        let count = member.read(&mut buffer)?;
        came += count;
        if came < ANSWER_BYTES {
            proxy.write_all(&buffer[..count])?;
        } else {
            buffer.truncate(count);
        }
    }
    // The last bytes of the response have arrived. They are sent together with the start of another record.
    buffer.extend_from_slice(&[23, 3, 3, 0, 60, 1, 2, 3]);
    proxy.write_all(&buffer)?;
    let _ = answered.send(());
    // The thread may also end with an error.
    let _ = forward.join().expect("the thread that forwards");
    Ok(())
}

#[test]
fn a_connection_is_not_kept_with_part_of_a_record_behind_a_response() {
    let member = Member::new(|exchange| exchange.answer(vec![b'x'; ANSWER_BYTES]));
    let inner = secure(&member, "");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("its address");
    let to = inner.address();
    let (answered, answers) = std::sync::mpsc::channel();
    let between = std::thread::spawn(move || {
        for _ in 0..2 {
            pass_with_surplus(&listener, to, &answered).expect("a connection that is passed on");
        }
    });
    let setup = Setup::new(&[address]).pool(&format!("tls: {{ {} }}", trusted()));
    let outer = Proxy::start(&setup);
    for _ in 0..2 {
        let response = outer.client().get("/");
        response.assert_status(200);
        assert_eq!(response.body.len(), ANSWER_BYTES);
        answers.recv_timeout(weir_tests::STEP_TIMEOUT).expect("an answer on another connection");
    }
    assert_eq!(outer.metric("weir_pool_retries_total", &["\"members\""]), 0.0);
    drop(outer);
    between.join().expect("who stands between");
}
