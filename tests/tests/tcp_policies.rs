//! Policies of virtual servers of `type: tcp`: admission, selection of the pool, and limits.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::SocketAddr;

use weir_tests::client::Client;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::stream::{StreamMember, client_hello, echo};
use weir_tests::{STEP_TIMEOUT, eventually, require, tls};

/// A member that sends its name before the first received byte, and echoes.
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

/// A relay with a policy that has these rules and the strategy `all_match`.
fn ruled(members: &[SocketAddr], rules: &str) -> Setup {
    Setup::new(members)
        .virtual_server("type: tcp")
        .virtual_server("policies: [ doors ]")
        .top(&format!("policies: {{ doors: {{ strategy: all_match, rules: [ {rules} ] }} }}"))
        .access_log()
}

fn connect(proxy: &Proxy, host: u8) -> Client {
    Client::connect_from(proxy.address(), [127, 0, 9, host].into())
}

/// The end of a connection that has no member.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Closed,
    Reset,
}

#[track_caller]
fn end(client: &mut Client) -> Ended {
    let mut rest = Vec::new();
    let ended = match client.stream().read_to_end(&mut rest) {
        Ok(_) => Ended::Closed,
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ended::Reset,
        Err(error) => panic!("{error}, after {rest:?}"),
    };
    assert_eq!(rest, b"", "nothing comes before the end");
    ended
}

/// The end of a connection from this host. A reset may arrive before the connect call has returned.
#[track_caller]
fn end_from(proxy: &Proxy, host: u8) -> Ended {
    let source = [127, 0, 9, host].into();
    Client::try_connect_from(proxy.address(), source)
        .map_or(Ended::Reset, |mut client| end(&mut client))
}

/// The first bytes from the member.
#[track_caller]
fn read(client: &mut Client, length: usize) -> String {
    let mut got = vec![0; length];
    client.stream().read_exact(&mut got).expect("bytes of the member");
    String::from_utf8_lossy(&got).into_owned()
}

/// The member's first bytes for a client with this name in its ClientHello.
#[track_caller]
fn asked(proxy: &Proxy, name: Option<&str>, length: usize) -> String {
    let mut client = proxy.client();
    client.send(client_hello(name, 0));
    read(&mut client, length)
}

#[track_caller]
fn logged(proxy: &mut Proxy, texts: &[&str]) {
    eventually(&format!("a line has {texts:?}"), STEP_TIMEOUT, || {
        let output = proxy.process().output();
        output.lines().any(|line| texts.iter().all(|text| line.contains(text)))
    });
}

#[test]
fn addresses_are_let_in_or_not() {
    // The member sends first, so weir must not wait for the client's bytes.
    let member = StreamMember::echo("hello");
    let rules = "{ name: closed, when: 'cidr(\"127.0.9.1/32\").containsIP(client.ip)', then: [ { log: \"no ${client.ip}\" }, { trace: denied }, close ] }, \
                 { name: cut, when: 'cidr(\"127.0.9.2/31\").containsIP(client.ip)', then: [ reset ] }, \
                 { name: others, then: [ { trace: welcome } ] }";
    let mut proxy = Proxy::start(&ruled(&[member.address()], rules));
    let before = member.connection_count();
    assert_eq!(end_from(&proxy, 1), Ended::Closed);
    assert_eq!(end_from(&proxy, 2), Ended::Reset);
    assert_eq!(end_from(&proxy, 3), Ended::Reset);
    let ended = "weir_virtual_server_connections_ended_by_policy_total";
    assert_eq!(proxy.metric(ended, &["\"main\""]), 3.0);
    let mut client = connect(&proxy, 4);
    assert_eq!(read(&mut client, 5), "hello");
    client.finish();
    assert!(member.connection_count() > before);
    drop(client);
    let denied =
        ["127.0.9.1:", "\"marks\":[\"denied\"]", "doors/closed", "\"termination\":\"policy\""];
    logged(&mut proxy, &denied);
    logged(&mut proxy, &["127.0.9.2:", "doors/cut", "\"termination\":\"policy\""]);
    logged(&mut proxy, &["127.0.9.4:", "\"marks\":[\"welcome\"]", "\"termination\":\"complete\""]);
    logged(&mut proxy, &["no 127.0.9.1"]);
    assert_eq!(proxy.metric("weir_virtual_server_requests_ended_by_policy_total", &[]), 0.0);
    let rule = "weir_policy_rule_followed_total";
    assert_eq!(proxy.metric(rule, &["\"doors\"", "\"cut\""]), 2.0);
}

#[test]
fn names_and_addresses_lead_to_pools() {
    let (main, shop, guests) = (passive("main "), passive("shop "), passive("guest"));
    let rules = "{ when: 'cidr(\"127.0.9.5/32\").containsIP(client.ip)', then: [ { pool: guests } ] }, \
                 { when: 'tls.sni == \"shop.example\"', then: [ { pool: shop } ] }, \
                 { when: 'tls.sni == \"old.example\"', then: [ reset ] }";
    let setup = ruled(&[main.address()], rules)
        .virtual_server("tcp: { hello_timeout: 2s }")
        .also_pool(&format!("shop: {{ members: [ \"{}\" ] }}", shop.address()))
        .also_pool(&format!("guests: {{ members: [ \"{}\" ] }}", guests.address()));
    let mut proxy = Proxy::start(&setup);
    for (name, member) in [
        (Some("shop.example"), "shop "),
        (Some("SHOP.example."), "shop "),
        (Some("www.shop.example"), "main "),
        (None, "main "),
    ] {
        assert_eq!(asked(&proxy, name, 5), member, "{name:?}");
    }
    let mut plain = proxy.client();
    plain.send("EHLO there\r\n");
    assert_eq!(read(&mut plain, 17), "main EHLO there\r\n", "what is no TLS has no name");
    let mut client = proxy.client();
    client.send(client_hello(Some("old.example"), 0));
    assert_eq!(end(&mut client), Ended::Reset);
    logged(&mut proxy, &["\"server_name\":\"old.example\"", "\"termination\":\"policy\""]);
    let mut client = connect(&proxy, 5);
    client.send("x");
    assert_eq!(read(&mut client, 6), "guestx");
    // A silent client has no name. The timeout of the ClientHello ends its connection.
    let mut silent = proxy.client();
    assert_eq!(end(&mut silent), Ended::Reset);
    logged(&mut proxy, &["\"termination\":\"hello_timeout\""]);
}

#[test]
fn names_of_the_table_come_before_policies() {
    let (shop, other) = (passive("shop "), passive("other"));
    let rules = "{ when: 'tls.sni == \"b.example\"', then: [ { pool: other } ] }";
    let setup = ruled(&[shop.address()], rules)
        .without_pool()
        .virtual_server("by_server_name: [ { names: [ a.example, b.example ], pool: shop } ]")
        .also_pool(&format!("shop: {{ members: [ \"{}\" ] }}", shop.address()))
        .also_pool(&format!("other: {{ members: [ \"{}\" ] }}", other.address()));
    let proxy = Proxy::start(&setup);
    assert_eq!(asked(&proxy, Some("a.example"), 5), "shop ");
    assert_eq!(asked(&proxy, Some("b.example"), 5), "other");
    let mut client = proxy.client();
    client.send(client_hello(Some("c.example"), 0));
    let mut told = Vec::new();
    client.stream().read_to_end(&mut told).expect("an end");
    assert_eq!(told, [21, 3, 3, 0, 2, 2, 112], "the alert unrecognized_name");
}

/// weir waits for the server name even without policies and `by_server_name`, if the name selects the member.
#[test]
fn names_pick_members() {
    let members = [passive("a"), passive("b"), passive("c"), passive("d")];
    let addresses = members.each_ref().map(StreamMember::address);
    let relay = || Setup::new(&addresses).virtual_server("type: tcp");
    for (setup, is_balanced) in [
        (relay().pool("balance: { hash: tls.sni }"), false),
        (relay().virtual_server("persistence: { type: hash, of: \"${tls.sni}\" }"), false),
        (relay().virtual_server("persistence: { type: learned, of: \"${tls.sni}\" }"), false),
        (relay(), true),
    ] {
        let proxy = Proxy::start(&setup);
        let reached = |name: &str| -> BTreeSet<String> {
            (0..4).map(|_| asked(&proxy, Some(name), 1)).collect()
        };
        let of_names: Vec<BTreeSet<String>> =
            (0..8).map(|number| reached(&format!("shop-{number}.example"))).collect();
        let is_kept = of_names.iter().all(|reached| reached.len() == 1);
        assert_eq!(is_kept, !is_balanced, "{of_names:?}: {setup:?}");
        let all: BTreeSet<&String> = of_names.iter().flatten().collect();
        assert!(all.len() > 1, "{of_names:?}: {setup:?}");
    }
}

#[test]
fn limits_of_rules_hold_for_what_is_open() {
    let member = StreamMember::echo("in");
    let rules = "{ when: 'cidr(\"127.0.9.8/30\").containsIP(client.ip)', then: [ { rate_limit: { connections: 2 } } ] }";
    let mut proxy = Proxy::start(&ruled(&[member.address()], rules));
    let mut held: Vec<Client> = (0..2)
        .map(|_| {
            let mut client = connect(&proxy, 8);
            assert_eq!(read(&mut client, 2), "in");
            client
        })
        .collect();
    let mut third = connect(&proxy, 8);
    assert_eq!(end(&mut third), Ended::Closed);
    logged(&mut proxy, &["127.0.9.8:", "\"termination\":\"rate_limit\""]);
    assert_eq!(proxy.metric("weir_virtual_server_connections_limited_total", &["\"main\""]), 1.0);
    // Each client has its own limit, and the rule does not match the last client.
    for host in [9, 20, 20, 20] {
        let mut client = connect(&proxy, host);
        assert_eq!(read(&mut client, 2), "in");
        held.push(client);
    }
    // The limit has room again when a connection has ended.
    let mut first = held.remove(0);
    first.finish();
    assert_eq!(first.reader().rest(), b"");
    eventually("a place is free", STEP_TIMEOUT, || {
        let mut client = connect(&proxy, 8);
        let mut got = [0; 2];
        client.stream().read_exact(&mut got).is_ok_and(|()| got == *b"in")
    });
}

#[test]
fn rates_of_rules_count_by_any_key() {
    let member = passive("in");
    let rules =
        "{ then: [ { rate_limit: { key: \"${tls.sni}\", connections_per_second: 2/h } } ] }";
    let proxy = Proxy::start(&ruled(&[member.address()], rules));
    for name in ["a.example", "b.example"] {
        for _ in 0..2 {
            assert_eq!(asked(&proxy, Some(name), 2), "in");
        }
        let mut client = proxy.client();
        client.send(client_hello(Some(name), 0));
        assert_ne!(client.stream().read(&mut [0; 1]).ok(), Some(1), "{name}");
    }
    // Without a name there is no key, so the limit does not apply.
    for _ in 0..4 {
        assert_eq!(asked(&proxy, None, 2), "in");
    }
}

#[test]
fn a_virtual_server_may_do_nothing_but_refuse() {
    let setup =
        ruled(&["127.0.0.1:1".parse().expect("an address")], "{ name: all, then: [ reset ] }");
    let mut proxy = Proxy::start(&setup.without_pool());
    assert_eq!(end_from(&proxy, 1), Ended::Reset);
    logged(&mut proxy, &["doors/all", "\"termination\":\"policy\""]);
    assert!(!proxy.process().output().contains("\"termination\":\"no_member\""));
    let status: serde_json::Value =
        serde_json::from_str(&proxy.admin_get("/v1/status")).expect("JSON");
    assert_eq!(status["virtual_servers"][0]["pools"], serde_json::json!([]), "{status}");
}

#[test]
fn what_no_rule_gives_to_a_pool_gets_none() {
    let member = StreamMember::echo("in");
    let rules =
        "{ when: 'cidr(\"127.0.9.30/32\").containsIP(client.ip)', then: [ { pool: few } ] }";
    let setup = ruled(&[member.address()], rules)
        .without_pool()
        .also_pool(&format!("few: {{ members: [ \"{}\" ] }}", member.address()));
    let mut proxy = Proxy::start(&setup);
    assert_eq!(read(&mut connect(&proxy, 30), 2), "in");
    assert_eq!(end_from(&proxy, 31), Ended::Reset);
    logged(&mut proxy, &["127.0.9.31:", "\"termination\":\"no_member\""]);
}

#[test]
fn rules_read_the_handshake_where_tls_ends() {
    require!("openssl");
    let member = StreamMember::line("220 plain: ");
    let rules = "{ when: 'tls.version == \"1.2\"', then: [ close ] }, \
                 { when: 'tls.sni == \"shop.example\"', then: [ { trace: \"${tls.version}\" } ] }";
    let setup = ruled(&[member.address()], rules).virtual_server(&tls::shop(""));
    let mut proxy = Proxy::start(&setup);
    let text = tls::s_client_text(proxy.address(), &["-quiet", "-tls1_3"], b"EHLO there\r\n");
    assert!(text.contains("220 plain: EHLO there"), "{text}");
    logged(&mut proxy, &["\"marks\":[\"1.3\"]", "\"server_name\":\"shop.example\""]);
    let text = tls::s_client_text(proxy.address(), &["-quiet", "-tls1_2"], b"EHLO there\r\n");
    assert!(!text.contains("220 plain"), "{text}");
    logged(&mut proxy, &["\"tls_version\":\"1.2\"", "\"termination\":\"policy\""]);
}
