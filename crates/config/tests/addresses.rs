//! Addresses of virtual servers, of members without a port, and of the sources of connections.

use std::net::IpAddr;

use weir_config::snapshot::{ListenerOptions, Snapshot, Source, ranges};
use weir_config::{Resolutions, parse};

fn file(server: &str, pool: &str) -> String {
    format!("virtual_servers:\n  a:\n{server}    pool: p\npools:\n  p:\n{pool}")
}

fn tcp(listen: &str, pool: &str) -> String {
    file(&format!("    listen: {listen}\n    type: tcp\n"), pool)
}

fn snapshot(text: &str) -> Snapshot {
    let loaded = parse("weir.yaml", text);
    assert_eq!(loaded.diagnostics, [], "{text}");
    loaded.config.expect("a sound configuration").snapshot(&Resolutions::default())
}

/// The findings of a file that contain these words in this order.
#[track_caller]
fn refused(text: &str, expected: &[&str]) {
    let loaded = parse("weir.yaml", text);
    let said: Vec<String> = loaded
        .diagnostics
        .iter()
        .map(|it| {
            let place =
                it.position.map_or_else(String::new, |at| format!("{}:{}", at.line, at.column));
            format!("{place} {} -> {}", it.message, it.suggestion.as_deref().unwrap_or_default())
        })
        .collect();
    assert_eq!(said.len(), expected.len(), "{text}{said:#?}");
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.contains(expected), "{expected}\nis not in\n{said}");
    }
    assert!(loaded.config.is_none(), "{text}");
}

const PLAIN: &str = "    members: [ 10.0.0.1:80 ]\n";

#[test]
fn ranges_of_ports_are_as_many_addresses() {
    let shown = |listen: &str| -> Vec<String> {
        let snapshot = snapshot(&tcp(listen, PLAIN));
        snapshot.virtual_servers[0].listen.iter().map(ToString::to_string).collect()
    };
    assert_eq!(shown("10.0.0.9:8000-8002"), ["10.0.0.9:8000", "10.0.0.9:8001", "10.0.0.9:8002"]);
    assert_eq!(shown("10.0.0.9:8000-8000"), ["10.0.0.9:8000"]);
    assert_eq!(
        shown("[ \"[::1]:65534-65535\", 10.0.0.9:1, unix:/run/a-b:1-2 ]"),
        ["[::1]:65534", "[::1]:65535", "10.0.0.9:1", "unix:/run/a-b:1-2"]
    );
    assert_eq!(shown("10.0.0.9:1000-2023").len(), 1024);
}

#[test]
fn ranges_that_cannot_be_are_refused() {
    let check = |listen: &str, expected: &[&str]| refused(&tcp(listen, PLAIN), expected);
    check("10.0.0.9:8100-8000", &["the range ends before it begins -> write 8000-8100"]);
    check("10.0.0.9:0-10", &["\"0\" is not a port: a number from 1 to 65535"]);
    check("10.0.0.9:80-", &["\"\" is not a port"]);
    check("10.0.0.9:80-90000", &["\"90000\" is not a port"]);
    check(
        "10.0.0.9:1-1025",
        &["`listen` has 1025 ports, at most 1024 are possible -> listen on fewer"],
    );
    check(
        "[ 10.0.0.9:1-1024, 10.0.0.8:1 ]",
        &["3:13 `listen` has 1025 ports, at most 1024 are possible"],
    );
    check("[ 10.0.0.9:8000-8010, 10.0.0.9:8005 ]", &["`10.0.0.9:8005` is used twice: in line 3"]);
    check("[ 10.0.0.9:8005, 10.0.0.9:8000-8010 ]", &["`10.0.0.9:8005` is used twice: in line 3"]);
    check("[ 10.0.0.9:8005-8010, 10.0.0.9:8000-8010 ]", &["`10.0.0.9:8005` is used twice"]);
    check(
        "[ 0.0.0.0:8000-8010, 10.0.0.9:8005-8020 ]",
        &["`10.0.0.9:8005` and `0.0.0.0:8005` of virtual server `a` in line 3 overlap"],
    );
    check("10.0.0.1:79-81", &["listens on `10.0.0.1:80`, which a member of its pool `p` has"]);
    let two = "virtual_servers:\n  a: { listen: 10.0.0.9:80-90, pool: p }\n  b: { listen: 10.0.0.9:85-95, pool: p }\n\
               pools: { p: { members: [ 10.0.0.1:80 ] } }\n";
    refused(two, &["3:16 `10.0.0.9:85` is used twice: in line 2 by virtual server `a`"]);
}

#[test]
fn how_a_virtual_server_listens() {
    let with = |listen: &str, keys: &str| file(&format!("    listen: {listen}\n{keys}"), PLAIN);
    let keys = "    free_bind: true\n    defer_accept: 1500ms\n";
    let listening = snapshot(&with("10.0.0.9:80", keys)).virtual_servers[0].listening;
    assert_eq!(listening, ListenerOptions { free_bind: true, defer_accept_s: Some(2) });
    assert_eq!(
        snapshot(&with("10.0.0.9:80", "")).virtual_servers[0].listening,
        ListenerOptions::default()
    );
    refused(
        &with("[ 0.0.0.0:80, unix:/run/a ]", "    free_bind: true\n"),
        &["4:16 `free_bind` has no effect: every listener is for all addresses, or a unix socket"],
    );
    refused(
        &with("unix:/run/a", "    defer_accept: 1s\n"),
        &["4:19 `defer_accept` has no effect on a unix socket"],
    );
    refused(&with("10.0.0.9:80", "    defer_accept: 100ms\n"), &["a duration from 1s to 60s"]);
}

#[test]
fn an_address_may_be_listened_on_once_by_each_interface() {
    let two = |one: &str, other: &str| {
        format!(
            "virtual_servers:\n  a: {{ listen: {one}, pool: p }}\n  b: {{ listen: {other}, pool: p }}\n\
             pools: {{ p: {{ members: [ 10.0.0.1:80 ] }} }}\n"
        )
    };
    let on = |listen: &str, interfaces: &str| format!("{listen}, interfaces: [ {interfaces} ]");
    let shown = |text: &str| -> Vec<String> {
        let servers = snapshot(text).virtual_servers.clone().into_iter();
        servers.flat_map(|server| ranges(&server.listen)).collect()
    };
    assert_eq!(
        shown(&two(&on("10.0.0.9:80-81", "eth0, eth0.7"), &on("10.0.0.9:80", "eth1"))),
        ["10.0.0.9:80-81 on eth0", "10.0.0.9:80-81 on eth0.7", "10.0.0.9:80 on eth1"]
    );
    assert_eq!(
        shown(&two(&on("0.0.0.0:80", "eth0"), &on("10.0.0.9:80", "eth1"))),
        ["0.0.0.0:80 on eth0", "10.0.0.9:80 on eth1"]
    );
    // Packets of this host to itself do not arrive through it.
    assert_eq!(shown(&two(&on("10.0.0.1:80", "eth0"), "10.0.0.9:80")).len(), 2);
    let check = |one: &str, other: &str, expected: &str| refused(&two(one, other), &[expected]);
    let taken = "`10.0.0.9:80` is used twice: in line 2 by virtual server `a`";
    check(&on("10.0.0.9:80", "eth0"), &on("10.0.0.9:80", "eth1, eth0"), taken);
    check(&on("10.0.0.9:80", "eth0"), "10.0.0.9:80", taken);
    check("10.0.0.9:80", &on("10.0.0.9:80", "eth0"), taken);
    let overlap = "`0.0.0.0:80` takes its port on every address";
    check(&on("0.0.0.0:80", "eth0"), &on("10.0.0.9:80", "eth1, eth0"), overlap);
    check(&on("10.0.0.9:80", "eth0"), "0.0.0.0:80", overlap);
    check(&on("10.0.0.9:80", "eth0, eth0"), "10.0.0.8:80", "`eth0` is listed twice");
    check(&on("10.0.0.9:80", "\"a b\""), "10.0.0.8:80", "the name of a network interface");
    check(&on("10.0.0.9:80", ""), "10.0.0.8:80", "`virtual_servers.a.interfaces` is empty");
    check(&on("10.0.0.1:80", "eth0, lo"), "10.0.0.9:80", "which a member of its pool `p` has");
    check(
        &on("10.0.0.9:1-600", "eth0, eth1"),
        "10.0.0.8:80",
        "`listen` has 1200 ports, at most 1024 are possible",
    );
    check(&on("unix:/run/a", "eth0"), "10.0.0.9:80", "`interfaces` has no effect on a unix socket");
}

#[test]
fn members_without_a_port_keep_the_clients() {
    let pool = "    members: [ 10.0.0.1, \"[fd00::1]\", \"fd00::2\", { address: 10.0.0.1:81 }, App.example ]\n";
    let config = parse("weir.yaml", &tcp("10.0.0.9:80", pool)).config.expect("a sound one");
    let mut resolutions = Resolutions::new();
    resolutions.insert("app.example".into(), vec![IpAddr::from([10, 0, 0, 7])]);
    let snapshot = config.snapshot(&resolutions);
    let members = &snapshot.pools[0].members;
    let labels: Vec<&str> = members.iter().map(|member| &*member.label).collect();
    assert_eq!(labels, ["10.0.0.1", "fd00::1", "fd00::2", "10.0.0.1:81", "10.0.0.7"]);
    let without: Vec<bool> = members.iter().map(|it| it.address.is_without_port()).collect();
    assert_eq!(without, [true, true, true, false, true]);
    refused(
        &tcp("10.0.0.9:80", "    members: [ 10.0.0.1, 10.0.0.1 ]\n"),
        &["`10.0.0.1` is a member of pool `p` twice"],
    );
    refused(
        &tcp("10.0.0.1:80", "    members: [ 10.0.0.1 ]\n"),
        &["listens on `10.0.0.1:80`, which a member of its pool `p` has: requests would go round"],
    );
    let with_http = tcp("10.0.0.9:80", "    members: [ \"fd00::2\" ]\n")
        .replace("pools:", "  b: { listen: 10.0.0.9:81, pool: p }\npools:");
    refused(
        &with_http,
        &[
            "9:16 `fd00::2` has no port: only members of pools that virtual servers of type tcp or udp alone use keep the client's -> write [fd00::2]:8080",
        ],
    );
    refused(
        &tcp(
            "10.0.0.9:80",
            "    members: [ 10.0.0.1 ]\n    monitors: [ { type: tcp }, { type: tcp, port: 80 } ]\n",
        ),
        &[
            "9:17 this monitor has no port to probe: the member `10.0.0.1` has none -> add `port` to the monitor",
        ],
    );
    refused(
        &tcp("unix:/run/a", "    members: [ 10.0.0.1 ]\n"),
        &[
            "clients of `unix:/run/a` have no port, and the member `10.0.0.1` of the pool `p` keeps the client's",
        ],
    );
    refused(&tcp("10.0.0.9:80", "    members: [ example ]\n"), &["must be an address"]);
    refused(
        &tcp("10.0.0.9:80", "    members: [ 0.0.0.0 ]\n"),
        &["connections cannot go to all addresses -> for this host write 127.0.0.1"],
    );
}

#[test]
fn sources() {
    let source = |keys: &str| {
        let pool = format!("{PLAIN}    source: {keys}\n");
        snapshot(&tcp("10.0.0.9:80", &pool)).pools[0].source.clone()
    };
    let own = |keys: &str| {
        let source = source(keys);
        let own = source.addresses().expect("addresses");
        let shown: Vec<String> = own.addresses.iter().map(ToString::to_string).collect();
        (shown.join(" "), own.ports)
    };
    assert_eq!(own("10.0.0.2"), ("10.0.0.2".into(), None));
    assert_eq!(own("[ 10.0.0.2, \"::1\" ]"), ("10.0.0.2 ::1".into(), None));
    assert_eq!(
        own("{ addresses: 10.0.0.2, ports: 40000-40010 }"),
        ("10.0.0.2".into(), Some((40_000, 40_010)))
    );
    assert_eq!(source("client"), Source::Client);
}

#[test]
fn sources_that_cannot_be_are_refused() {
    let check = |keys: &str, expected: &[&str]| {
        let pool = format!("{PLAIN}    source: {keys}\n");
        refused(&tcp("10.0.0.9:80", &pool), expected);
    };
    check("[ 10.0.0.2, 10.0.0.2 ]", &["`10.0.0.2` is listed twice: first in line 9 -> keep one"]);
    check(
        "[ \"::1\", \"::2\" ]",
        &["`10.0.0.1:80` cannot be reached from the pool's source addresses, such as ::1"],
    );
    check("{ ports: 40000-40010 }", &["lacks `addresses`"]);
    check(
        "{ addresses: 10.0.0.2, ports: 40010-40000 }",
        &["the range ends before it begins -> write 40000-40010"],
    );
    check(
        "{ addresses: 10.0.0.2, ports: 40000 }",
        &["must be a range of ports such as 40000-49999"],
    );
    check("{ addresses: client }", &["an IP address without a port"]);
    let many: Vec<String> = (0..65).map(|last| format!("10.1.0.{last}")).collect();
    check(
        &format!("[ {} ]", many.join(", ")),
        &["`source` has 65 addresses, at most 64 are possible"],
    );
    let http = |listen: &str, keys: &str| {
        file(&format!("    listen: {listen}\n"), &format!("{PLAIN}    source: client\n{keys}"))
    };
    refused(
        &http("10.0.0.9:80", "    http2: true\n"),
        &["`http2` cannot be used with `source: client`"],
    );
    refused(
        &http("unix:/run/a", ""),
        &["clients of `unix:/run/a` have no address that the pool `p` could connect from"],
    );
}

/// The order of members depends on the changes that have led to them.
#[test]
fn the_fingerprint_of_a_configuration_does_not_depend_on_the_order_of_members() {
    let of = |p: &str, q: &str| {
        let text = format!(
            "virtual_servers: {{ a: {{ listen: 127.0.0.1:80, pool: p }}, b: {{ listen: 127.0.0.1:81, pool: q }} }}\n\
             pools: {{ p: {{ members: [ {p} ] }}, q: {{ members: [ {q} ] }} }}\n"
        );
        snapshot(&text).resolved.content
    };
    let first = of("10.0.0.1:80, 10.0.0.2:80", "10.0.0.3:80");
    assert_eq!(of("10.0.0.2:80, 10.0.0.1:80", "10.0.0.3:80"), first);
    for (p, q) in [
        ("10.0.0.1:80", "10.0.0.3:80"),
        ("10.0.0.1:80, 10.0.0.2:81", "10.0.0.3:80"),
        ("10.0.0.1:80, 10.0.0.3:80", "10.0.0.2:80"),
        ("10.0.0.1:80", "10.0.0.2:80, 10.0.0.3:80"),
    ] {
        assert_ne!(of(p, q), first, "{p}; {q}");
    }
}
