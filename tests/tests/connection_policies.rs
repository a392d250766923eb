//! `connection_policies`: weir accepts or refuses a connection before the TLS handshake and before any request.

use std::io::{self, Read};
use std::net::SocketAddr;

use weir_tests::client::Client;
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::stream::{StreamMember, client_hello};
use weir_tests::{STEP_TIMEOUT, eventually, require, tls};

/// A virtual server with these rules in `connection_policies`, with the strategy `all_match`.
fn ruled(members: &[SocketAddr], rules: &str) -> Setup {
    Setup::new(members)
        .virtual_server("connection_policies: [ gate ]")
        .top(&format!("policies: {{ gate: {{ strategy: all_match, rules: [ {rules} ] }} }}"))
        .access_log()
}

/// A condition that is true for this address.
fn is_from(host: u8) -> String {
    format!("cidr(\"127.0.9.{host}/32\").containsIP(client.ip)")
}

fn connect(proxy: &Proxy, host: u8) -> io::Result<Client> {
    Client::try_connect_from(proxy.address(), [127, 0, 9, host].into())
}

/// The response to a client that sent these bytes; `None`: a reset. A reset may arrive before the client's connect call has
/// returned.
#[track_caller]
fn told(client: io::Result<Client>, sent: &[u8]) -> Option<Vec<u8>> {
    let mut rest = Vec::new();
    let end = client.and_then(|mut client| {
        client.try_send(sent)?;
        client.stream().read_to_end(&mut rest)
    });
    match end {
        Ok(_) => Some(rest),
        Err(error) => {
            let kinds = [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
            assert!(kinds.contains(&error.kind()), "{error}, after {rest:?}");
            assert_eq!(rest, b"", "nothing comes before a reset");
            None
        }
    }
}

#[track_caller]
fn logged(proxy: &mut Proxy, texts: &[&str]) {
    eventually(&format!("a line has {texts:?}"), STEP_TIMEOUT, || {
        let output = proxy.process().output();
        output.lines().any(|line| texts.iter().all(|text| line.contains(text)))
    });
}

const ENDED: &str = "weir_virtual_server_connections_ended_by_policy_total";
const HANDSHAKES: &str = "weir_virtual_server_tls_handshakes_total";

#[test]
fn clients_are_let_in_by_address_before_a_request() {
    let member = Member::new(|exchange| exchange.answer("in"));
    let rules = format!(
        "{{ name: closed, when: '{}', then: [ {{ log: \"no ${{client.ip}}\" }}, close ] }}, \
         {{ name: cut, when: '{}', then: [ reset ] }}",
        is_from(1),
        is_from(2)
    );
    let mut proxy = Proxy::start(&ruled(&[member.address()], &rules));
    assert_eq!(told(connect(&proxy, 1), b"").as_deref(), Some(&b""[..]));
    assert_eq!(told(connect(&proxy, 2), b""), None);
    assert_eq!(connect(&proxy, 3).expect("a connection").get("/").text(), "in");
    assert_eq!(proxy.metric(ENDED, &["\"main\""]), 2.0);
    assert_eq!(proxy.metric("weir_virtual_server_requests_total", &["\"main\""]), 1.0);
    logged(&mut proxy, &["127.0.9.1:", "gate/closed", "\"termination\":\"policy\""]);
    logged(&mut proxy, &["127.0.9.2:", "gate/cut", "\"termination\":\"policy\""]);
    logged(&mut proxy, &["no 127.0.9.1"]);
    let followed = "weir_policy_rule_followed_total";
    assert_eq!(proxy.metric(followed, &["\"gate\"", "\"cut\""]), 1.0);
    proxy.wait_for_open_connections("main", 0.0);
}

#[test]
fn the_proxy_protocol_says_who_it_is() {
    let member = Member::new(|exchange| exchange.answer("in"));
    let rules = "{ when: 'cidr(\"198.51.100.7/32\").containsIP(client.ip)', then: [ reset ] }";
    let setup = ruled(&[member.address()], rules)
        .virtual_server("client_address: { trust: [ 127.0.0.1 ], proxy_protocol: true }");
    let mut proxy = Proxy::start(&setup);
    let ask = |host: &str| {
        let head = format!(
            "PROXY TCP4 {host} 127.0.0.1 12345 80\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        );
        told(Client::try_connect(proxy.address()), head.as_bytes())
    };
    assert_eq!(ask("198.51.100.7"), None);
    assert!(ask("198.51.100.8").is_some_and(|answer| answer.ends_with(b"in")));
    logged(&mut proxy, &["\"client\":\"198.51.100.7:12345\"", "\"termination\":\"policy\""]);
}

/// A virtual server of this type that allows these clients.
fn allowing(member: SocketAddr, kind: &str, clients: &str) -> Setup {
    Setup::new(&[member])
        .virtual_server(&format!("type: {kind}"))
        .virtual_server(&format!("allowed_clients: [ {clients} ]"))
        .access_log()
}

#[test]
fn only_clients_of_the_listed_networks_connect() {
    let member = Member::new(|exchange| exchange.answer("in"));
    for kind in ["http", "tcp"] {
        let setup = |clients: &str| allowing(member.address(), kind, clients);
        let mut proxy = Proxy::start(&setup("127.0.9.2/31, 127.0.0.1"));
        let mut second = connect(&proxy, 2).expect("a connection");
        assert_eq!(second.get("/").text(), "in");
        assert_eq!(connect(&proxy, 3).expect("a connection").get("/").text(), "in");
        assert_eq!(told(connect(&proxy, 4), b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), None, "{kind}");
        assert_eq!(told(connect(&proxy, 1), b""), None, "{kind}");
        assert_eq!(proxy.metric(ENDED, &["\"main\""]), 2.0);
        let rule = "virtual_servers.main/allowed_clients";
        logged(&mut proxy, &["127.0.9.4:", rule, "\"termination\":\"policy\""]);
        proxy.reload_and_wait(&setup("127.0.9.4, 127.0.0.1"));
        assert_eq!(second.get("/").text(), "in", "it was let in");
        assert_eq!(told(connect(&proxy, 2), b""), None, "{kind}");
        assert_eq!(connect(&proxy, 4).expect("a connection").get("/").text(), "in");
    }
}

#[test]
fn clients_that_are_not_allowed_get_no_handshake_and_no_other_policy() {
    require!("curl");
    let member = Member::new(|exchange| exchange.answer("in"));
    let rules = "{ name: all, then: [ { log: \"seen ${client.ip}\" } ] }";
    let setup = ruled(&[member.address()], rules)
        .virtual_server(&tls::shop(""))
        .virtual_server("allowed_clients: [ 127.0.0.1 ]");
    let mut proxy = Proxy::start(&setup);
    assert_eq!(told(connect(&proxy, 4), &client_hello(Some("shop.example"), 0)), None);
    assert_eq!(tls::get(proxy.address(), "/", &[]), "in");
    logged(&mut proxy, &["seen 127.0.0.1"]);
    assert!(!proxy.process().output().contains("seen 127.0.9.4"));
}

#[test]
fn the_proxied_address_is_the_one_that_is_allowed() {
    let member = Member::new(|exchange| exchange.answer("in"));
    for kind in ["http", "tcp"] {
        let setup = allowing(member.address(), kind, "198.51.100.0/24")
            .virtual_server("client_address: { trust: [ 127.0.0.1 ], proxy_protocol: true }");
        let proxy = Proxy::start(&setup);
        let request = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 198.51.100.9\r\n\r\n";
        let ask = |header: &str| {
            let sent = format!("{header}\r\n{request}");
            told(Client::try_connect(proxy.address()), sent.as_bytes())
        };
        let mut allowed = proxy.client();
        allowed.send(format!("PROXY TCP4 198.51.100.7 127.0.0.1 12345 80\r\n{request}"));
        assert_eq!(allowed.response().text(), "in", "{kind}");
        assert_eq!(ask("PROXY TCP4 203.0.113.7 127.0.0.1 12345 80"), None, "{kind}");
        // A header that names nobody is from the proxy itself, which is not listed.
        assert_eq!(ask("PROXY UNKNOWN"), None, "{kind}");
        // A client that is not a trusted proxy is judged by its own address.
        assert_eq!(told(connect(&proxy, 1), b"PROXY TCP4 198.51.100.7 127.0.0.1 1 80\r\n"), None);
    }
}

#[test]
fn clients_are_let_in_by_name_before_the_handshake() {
    require!("curl");
    let member = Member::new(|exchange| exchange.answer("in"));
    let rules = format!(
        "{{ name: name, when: 'tls.sni != \"shop.example\"', then: [ close ] }}, \
         {{ name: address, when: 'tls.sni == \"shop.example\" && {}', then: [ reset ] }}",
        is_from(4)
    );
    let setup = ruled(&[member.address()], &rules).virtual_server(&tls::shop(""));
    let mut proxy = Proxy::start(&setup);
    assert_eq!(tls::get(proxy.address(), "/", &[]), "in");
    let full = proxy.metric(HANDSHAKES, &["full"]);
    // The client receives neither handshake bytes nor an alert.
    for name in [Some("other.example"), None] {
        let got = told(connect(&proxy, 3), &client_hello(name, 0));
        assert_eq!(got.as_deref(), Some(&b""[..]), "{name:?}");
    }
    assert_eq!(told(connect(&proxy, 4), &client_hello(Some("shop.example"), 0)), None);
    assert_eq!(proxy.metric(HANDSHAKES, &["full"]), full);
    assert_eq!(proxy.metric(ENDED, &["\"main\""]), 3.0);
    logged(
        &mut proxy,
        &["\"server_name\":\"other.example\"", "gate/name", "\"termination\":\"policy\""],
    );
    logged(&mut proxy, &["127.0.9.4:", "gate/address", "\"server_name\":\"shop.example\""]);
}

#[test]
fn connections_are_counted_before_the_handshake() {
    let member = StreamMember::echo("in");
    let rules =
        format!("{{ when: '{}', then: [ {{ rate_limit: {{ connections: 2 }} }} ] }}", is_from(5));
    let setup = ruled(&[member.address()], &rules)
        .virtual_server("type: tcp")
        .virtual_server(&tls::shop(""));
    let mut proxy = Proxy::start(&setup);
    // An accepted connection counts against the limit while it waits for its client's first message. Workers accept
    // connections in any order, so it is unknown which one is the third.
    let mut held: Vec<Client> = Vec::new();
    let limited = "weir_virtual_server_connections_limited_total";
    eventually("a third is one too many", STEP_TIMEOUT, || {
        let mut client = connect(&proxy, 5).expect("a connection");
        client
            .stream()
            .set_read_timeout(Some(std::time::Duration::from_millis(300)))
            .expect("a time");
        let is_refused = matches!(client.stream().read(&mut [0; 1]), Ok(0));
        held.push(client);
        is_refused
    });
    assert!(held.len() > 2, "two are let in: {}", held.len());
    assert!(proxy.metric(limited, &["\"main\""]) >= 1.0);
    logged(&mut proxy, &["127.0.9.5:", "gate/1", "\"termination\":\"rate_limit\""]);
    // The rule does not match other clients.
    let mut other = connect(&proxy, 6).expect("a connection");
    other.send("x");
    let mut alert = Vec::new();
    other.stream().read_to_end(&mut alert).expect("an end");
    assert_eq!(alert.first(), Some(&21), "it came to its handshake");
    // The limit has room again when the connections have ended.
    drop(held);
    eventually("a place is free", STEP_TIMEOUT, || {
        let answer = told(connect(&proxy, 5), b"x");
        answer.is_some_and(|answer| answer.first() == Some(&21))
    });
}

#[test]
fn http_may_do_nothing_but_refuse() {
    let setup =
        ruled(&["127.0.0.1:1".parse().expect("an address")], "{ name: all, then: [ reset ] }");
    let mut proxy = Proxy::start(&setup.without_pool());
    assert_eq!(told(connect(&proxy, 1), b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), None);
    logged(&mut proxy, &["127.0.9.1:", "gate/all", "\"termination\":\"policy\""]);
    assert_eq!(proxy.metric("weir_virtual_server_requests_total", &["\"main\""]), 0.0);
}

#[test]
fn a_reload_lets_others_in_and_touches_nobody() {
    let member = Member::new(|exchange| exchange.answer("in"));
    let setup = |host| {
        ruled(&[member.address()], &format!("{{ when: '{}', then: [ reset ] }}", is_from(host)))
    };
    let proxy = Proxy::start(&setup(8));
    let mut seventh = connect(&proxy, 7).expect("a connection");
    assert_eq!(seventh.get("/").text(), "in");
    assert_eq!(told(connect(&proxy, 8), b""), None);
    proxy.reload_and_wait(&setup(7));
    assert_eq!(seventh.get("/").text(), "in", "it was let in");
    assert_eq!(told(connect(&proxy, 7), b""), None);
    assert_eq!(connect(&proxy, 8).expect("a connection").get("/").text(), "in");
}
