//! TLS forwarded without decryption. The ClientHello selects the member.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use weir_tests::client::Client;
use weir_tests::nginx::Nginx;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::stream::{StreamMember, client_hello, divided, echo};
use weir_tests::{STEP_TIMEOUT, eventually, require, tls, tools};

/// A member that echoes, with its name before the first byte.
fn passive(name: &'static str) -> StreamMember {
    StreamMember::new(move |mut stream| {
        let mut first = [0; 1];
        if stream.read(&mut first)? == 1 {
            stream.write_all(name.as_bytes())?;
            stream.write_all(&first)?;
        }
        echo(&mut stream)
    })
}

/// A setup with one pool for `shop.example` and its subdomains, and another for `mail.example`.
fn by_name(rest: SocketAddr, shop: &str, mail: &str) -> Setup {
    Setup::new(&[rest])
        .virtual_server("type: tcp")
        .virtual_server(
            "by_server_name: [ { names: [ shop.example, \"*.shop.example\" ], pool: shop }, \
             { names: [ mail.example ], pool: mail } ]",
        )
        .access_log()
        .also_pool(&format!("shop: {{ members: [ \"{shop}\" ] }}"))
        .also_pool(&format!("mail: {{ members: [ \"{mail}\" ] }}"))
}

struct Bed {
    proxy: Proxy,
    rest: StreamMember,
    shop: StreamMember,
    mail: StreamMember,
}

impl Bed {
    fn start(change: impl FnOnce(Setup) -> Setup) -> Self {
        let (rest, shop, mail) = (passive("rest "), passive("shop "), passive("mail "));
        let addresses = [&shop, &mail].map(|member| member.address().to_string());
        let setup = change(by_name(rest.address(), &addresses[0], &addresses[1]));
        Self { proxy: Proxy::start(&setup), rest, shop, mail }
    }

    /// Sends pieces. Panics unless the reply is the member's name and all pieces.
    #[track_caller]
    fn check(&self, pieces: &[&[u8]], member: &str) {
        let mut client = self.proxy.client();
        for (index, piece) in pieces.iter().enumerate() {
            if index > 0 {
                std::thread::sleep(Duration::from_millis(2));
            }
            client.send(piece);
        }
        client.finish();
        let got = client.reader().rest();
        let expected = [format!("{member} ").as_bytes(), &pieces.concat()].concat();
        assert!(got == expected, "{} bytes, {:?}", got.len(), got.get(..5));
    }

    fn connections(&self) -> usize {
        [&self.rest, &self.shop, &self.mail].map(StreamMember::connection_count).iter().sum()
    }

    fn ended(&self, termination: &str) -> f64 {
        let label = format!("termination=\"{termination}\"");
        self.proxy.metric("weir_virtual_server_relayed_connections_total", &[&label])
    }
}

#[test]
fn names_lead_to_pools_and_nothing_is_changed() {
    let bed = Bed::start(|setup| setup);
    for (name, member) in [
        (Some("shop.example"), "shop"),
        (Some("SHOP.example."), "shop"),
        (Some("shop.example:443"), "shop"),
        (Some("Mail.Example.:8443"), "mail"),
        (Some("shop.example:https"), "rest"),
        (Some("www.shop.example"), "shop"),
        (Some("a.www.shop.example"), "rest"),
        (Some("mail.example"), "mail"),
        (Some("www.mail.example"), "rest"),
        (Some("example"), "rest"),
        (Some("not a name"), "rest"),
        (None, "rest"),
    ] {
        for padding in [0, 1_700, 15_000] {
            bed.check(&[&client_hello(name, padding), b"and what comes behind it"], member);
        }
    }
    let hello = client_hello(Some("mail.example"), 20_000 - 9_000);
    // In segments of one byte, and divided into several records.
    let bytes: Vec<&[u8]> = hello[..300].chunks(1).chain([&hello[300..]]).collect();
    bed.check(&bytes, "mail");
    let records = divided(&hello, 400);
    bed.check(&[&records], "mail");
    let parts: Vec<&[u8]> = records.chunks(1_000).collect();
    bed.check(&parts, "mail");
    eventually("it is logged", STEP_TIMEOUT, || {
        bed.connections() > 0 && bed.ended("complete") > 20.0
    });
}

#[test]
fn what_is_no_client_hello_goes_to_the_pool_for_the_rest() {
    let bed = Bed::start(|setup| setup);
    let hello = client_hello(Some("shop.example"), 0);
    let many_records = divided(&client_hello(Some("shop.example"), 200), 1);
    for garbage in [
        &b"SSH-2.0-OpenSSH_9.9\r\n"[..],
        b"\x00",
        b"\x16\x03\x01\x00\x02\x02\x00", // a ServerHello
        b"\x16\x03\x01\x00\x00",
        &[0x16, 3, 1, 0xff, 0xff],
        &[&b"\x17\x03\x03\x00\x01x"[..], &hello].concat(),
        &many_records,
    ] {
        bed.check(&[garbage], "rest");
    }
}

#[test]
fn strict_servers_refuse_with_an_alert() {
    let mut bed = Bed::start(Setup::without_pool);
    bed.check(&[&client_hello(Some("shop.example"), 0)], "shop");
    let before = bed.connections();
    let refused = |bed: &Bed, bytes: &[u8], expected: &[u8]| {
        let mut client = bed.proxy.client();
        client.send(bytes);
        let mut got = Vec::new();
        // Without an alert, weir resets the connection.
        let end = client.stream().read_to_end(&mut got);
        assert_eq!((&*got, end.is_ok()), (expected, !expected.is_empty()), "{bytes:?}");
    };
    let alert = |code: u8| [21, 3, 3, 0, 2, 2, code];
    for name in [Some("other.example"), Some("a.b.shop.example"), None] {
        refused(&bed, &client_hello(name, 0), &alert(112));
    }
    refused(&bed, b"\x16\x03\x01\x00\x02\x02\x00", &alert(10));
    refused(&bed, b"GET / HTTP/1.1\r\n\r\n", b"");
    assert_eq!(bed.connections(), before);
    assert_eq!((bed.ended("unknown_server_name"), bed.ended("client_malformed")), (3.0, 2.0));
    eventually("it is logged", STEP_TIMEOUT, || {
        let output = bed.proxy.process().output();
        let mut lines = output.lines();
        lines.any(|line| {
            line.contains("\"server_name\":\"other.example\"")
                && line.contains("\"termination\":\"unknown_server_name\"")
        })
    });
}

#[test]
fn who_is_slow_with_the_hello_is_closed() {
    let mut bed = Bed::start(|setup| setup.virtual_server("tcp: { hello_timeout: 1s }"));
    let before = bed.connections();
    let hello = client_hello(Some("shop.example"), 0);
    let started = Instant::now();
    let mut client = bed.proxy.client();
    for byte in hello.chunks(1) {
        if client.try_send(byte).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(40));
    }
    assert!(client.try_send(b"x").is_err() || client.reader().rest().is_empty());
    let took = started.elapsed();
    assert!(took > Duration::from_millis(900), "{took:?}");
    let mut silent = bed.proxy.client();
    assert!(silent.reader().rest().is_empty());
    assert_eq!(bed.connections(), before);
    assert_eq!(bed.ended("hello_timeout"), 2.0);
    // A client that disconnects does not count as a timeout.
    let mut client = bed.proxy.client();
    client.send(&hello[..20]).finish();
    assert!(client.reader().rest().is_empty());
    assert_eq!(bed.ended("client_abort"), 1.0);
    eventually("it is logged", STEP_TIMEOUT, || {
        let output = bed.proxy.process().output();
        output.contains("\"termination\":\"hello_timeout\"") && output.contains("client_abort")
    });
}

#[test]
fn hellos_that_are_not_whole_cost_little() {
    let mut bed = Bed::start(|setup| setup.virtual_server("limits: { connections: 1000 }"));
    let before = bed.proxy.process().resident_bytes();
    let hello = client_hello(Some("shop.example"), 16_000);
    let clients: Vec<Client> = (0..100)
        .map(|_| {
            let mut client = bed.proxy.client();
            client.send(&hello[..hello.len() - 1]);
            client
        })
        .collect();
    eventually("they are given up", STEP_TIMEOUT, || bed.ended("hello_timeout") >= 100.0);
    let grown = bed.proxy.process().resident_bytes().saturating_sub(before);
    assert!(grown < 16 << 20, "{grown} bytes");
    drop(clients);
    bed.check(&[&hello], "shop");
}

#[test]
fn real_clients_reach_real_members() {
    require!("curl", "openssl", "nginx");
    let (rest, shop, mail) = (Nginx::start("rest"), Nginx::start("shop"), Nginx::start("mail"));
    let socket = |nginx: &Nginx| format!("unix:{}", nginx.tls_socket().display());
    let setup = by_name(rest.address(), &socket(&shop), &socket(&mail))
        .virtual_server("limits: { per_key: [ { connections: 100 } ] }");
    let mut proxy = Proxy::start(&setup);
    for (name, answer) in [
        ("shop.example", "shop shop.example\n"),
        ("a.shop.example", "shop a.shop.example\n"),
        ("mail.example", "mail mail.example\n"),
    ] {
        // The certificate is the member's own. It is valid only for the shop's names.
        let insecure = if name.contains("shop") { "-sS" } else { "-k" };
        let mut curl = tls::curl(proxy.address(), name);
        let url = format!("https://{name}/");
        assert_eq!(tools::run(curl.args([insecure, &url])), answer);
    }
    let text = tls::s_client_text(proxy.address(), &[], b"GET / HTTP/1.0\r\n\r\n");
    assert!(text.contains("shop shop.example"), "{text}");
    assert!(text.contains("Verify return code: 0 (ok)"), "{text}");
    // Other names select a member without TLS.
    proxy.client().get("/name").assert_status(200);
    proxy.reload_and_wait(&setup.clone().without_pool());
    let text = tls::s_client_text(proxy.address(), &["-servername", "none.example"], b"");
    assert!(text.contains("unrecognized name"), "{text}");
    let text = tls::s_client_text(proxy.address(), &["-noservername"], b"");
    assert!(!text.contains("BEGIN CERTIFICATE"), "{text}");
    eventually("names are logged", STEP_TIMEOUT, || {
        proxy.process().output().contains("\"server_name\":\"none.example\"")
    });
}

/// With `tls`, the name also selects the pool, and weir decrypts.
#[test]
fn names_lead_to_pools_where_tls_ends_here() {
    require!("openssl");
    let [rest, shop, mail] = ["rest ", "shop ", "mail "].map(StreamMember::line);
    let setup = by_name(rest.address(), &shop.address().to_string(), &mail.address().to_string());
    let proxy = Proxy::start(&setup.virtual_server(&tls::shop("")));
    names_lead_to_pools(&proxy);
    // With TLS settings of one name, and with limits.
    let settings = "by_name: [ { names: [ shop.example ], profile: own } ]";
    let own =
        format!("profiles: {{ tls: {{ own: {{ certificates: [ {} ] }} }} }}", tls::pair("shop-ec"));
    let setup = by_name(rest.address(), &shop.address().to_string(), &mail.address().to_string());
    let setup = setup.virtual_server(&tls::shop(settings)).top(&own);
    names_lead_to_pools(&Proxy::start(&setup));
    let limits = "limits: { per_key: [ { connections: 100 } ] }";
    names_lead_to_pools(&Proxy::start(&setup.virtual_server(limits)));
}

#[track_caller]
fn names_lead_to_pools(proxy: &Proxy) {
    for (name, member) in [("shop.example", "shop"), ("mail.example", "mail"), ("x", "rest")] {
        let arguments = ["-quiet", "-servername", name];
        let text = tls::s_client_text(proxy.address(), &arguments, b"hello there\n");
        assert!(text.contains(&format!("{member} hello there")), "{name}: {text}");
    }
}

#[test]
fn clients_with_the_proxy_protocol_and_names() {
    let bed = Bed::start(|setup| {
        setup.virtual_server("client_address: { trust: [ 127.0.0.1 ], proxy_protocol: true }")
    });
    let header = &b"PROXY TCP4 198.51.100.7 127.0.0.1 12345 443\r\n"[..];
    let hello = client_hello(Some("mail.example"), 10);
    let mut client = bed.proxy.client();
    client.send([header, &hello[..50]].concat());
    std::thread::sleep(Duration::from_millis(20));
    client.send(&hello[50..]).finish();
    let expected = [b"mail ", &hello[..]].concat();
    assert_eq!(client.reader().rest(), expected);
}
