//! `type: fast_l4` and `packet_path`: their meaning, and refused values.

use weir_config::snapshot::Address;
use weir_config::snapshot::packet::{Delivery, Fallback, PacketServer, PacketSource, Packets, Ttl};
use weir_config::{Resolutions, Severity, parse};

const POOL: &str = "pools: { p: { members: [ 10.0.0.2:80 ] } }\n";

fn file(server: &str, rest: &str) -> String {
    format!("virtual_servers:\n  a: {{ type: fast_l4, {server} }}\n{rest}")
}

#[track_caller]
fn packets(text: &str) -> Packets {
    let loaded = parse("weir.yaml", text);
    assert_eq!(loaded.diagnostics, [], "{text}");
    let config = loaded.config.expect("a sound configuration");
    config.snapshot(&Resolutions::default()).packets.clone().expect("packets")
}

#[track_caller]
fn server(lines: &str) -> PacketServer {
    let packets = packets(&file(&format!("listen: 10.0.0.1:80, pool: p, {lines}"), POOL));
    PacketServer::clone(&packets.servers[0])
}

/// The findings of a file, each with its place.
#[track_caller]
fn check(text: &str, severity: Severity, expected: &[&str]) {
    let loaded = parse("weir.yaml", text);
    let said: Vec<String> = loaded
        .diagnostics
        .iter()
        .map(|it| format!("{} -> {}", it.message, it.suggestion.as_deref().unwrap_or_default()))
        .collect();
    assert_eq!(said.len(), expected.len(), "{text}{said:#?}");
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.contains(expected), "{expected}\nis not in\n{said}");
    }
    assert!(loaded.diagnostics.iter().all(|it| it.severity == severity), "{text}");
    assert_eq!(loaded.config.is_none(), severity == Severity::Error && !expected.is_empty());
}

#[track_caller]
fn refused(server: &str, rest: &str, expected: &str) {
    check(&file(server, rest), Severity::Error, &[expected]);
}

#[test]
fn defaults_are_those_of_fast_l4_elsewhere() {
    let server = server("");
    assert_eq!(server.delivery, Delivery::Translate);
    assert_eq!(server.source, PacketSource::Client);
    assert_eq!((server.idle_timeout_ms, server.mss_max, server.tos), (300_000, None, None));
    assert_eq!(server.ttl, Ttl::Decrement);
    assert!(server.resets_on_timeout && server.resets_on_member_down);
    assert!(!server.loose_initiation && !server.keeps_port);
    assert!(server.remarks.is_empty(), "{:?}", server.remarks);
}

#[test]
fn destinations_and_protocols() {
    let shown = |listen: &str, protocol: &str| -> String {
        let lines = format!("listen: {listen}, protocol: {protocol}, forward: route");
        let packets = packets(&file(&lines, ""));
        let destinations = packets.servers[0].destinations.iter().map(ToString::to_string);
        format!("{} {}", packets.servers[0].protocol, destinations.collect::<Vec<_>>().join(" "))
    };
    assert_eq!(shown("\"10.0.0.0/24:*\"", "any"), "any 10.0.0.0/24:*");
    assert_eq!(shown("\"10.0.0.1:*\"", "47"), "47 10.0.0.1:*");
    assert_eq!(shown("10.0.0.1:80-81", "17"), "udp 10.0.0.1:80 10.0.0.1:81");
    assert_eq!(
        shown("[ \"[2001:db8::]/64:443\", 0.0.0.0/0:53 ]", "6"),
        "tcp [2001:db8::]/64:443 0.0.0.0/0:53"
    );
}

#[test]
fn destinations_that_cannot_be() {
    let no_port = "write `*` in place of the port";
    refused("listen: 10.0.0.1:80, protocol: any, forward: route", "", no_port);
    refused("listen: 10.0.0.1:80, protocol: 47, forward: route", "", no_port);
    refused(
        "listen: unix:/run/a, forward: route",
        "",
        "packets cannot be addressed to a unix socket",
    );
    refused("listen: 0.0.0.0:80, forward: route", "", "write \"0.0.0.0/0:80\"");
    refused("listen: 10.0.0.1:0, forward: route", "", "for any port write `*`");
    refused("listen: 10.0.0.1:1-2000, forward: route", "", "at most 1024 are possible");
    refused("listen: [ 10.0.0.1:80, 10.0.0.1:80-81 ], forward: route", "", "is used twice");
    // An address with a listening socket belongs to no other.
    let http = "  b: { listen: 10.0.0.1:80, pool: p }\n";
    let taken = format!("{http}{POOL}");
    refused(
        "listen: 10.0.0.1:80, pool: p",
        &taken,
        "`10.0.0.1:80` is used twice: in line 2 by virtual server `a`",
    );
    let text =
        format!("virtual_servers: {{ b: {{ listen: \"10.0.0.0/24:80\", pool: p }} }}\n{POOL}");
    check(&text, Severity::Error, &["sockets listen on an address and its ports"]);
    // TCP and UDP do not conflict.
    let both =
        format!("  b: {{ type: fast_l4, listen: 10.0.0.1:80, protocol: udp, pool: p }}\n{POOL}");
    assert_eq!(packets(&file("listen: 10.0.0.1:80, pool: p", &both)).servers.len(), 2);
}

#[test]
fn what_becomes_of_packets() {
    assert_eq!(server("fast_l4: { dsr: true }").delivery, Delivery::DirectReturn);
    assert_eq!(server("fast_l4: { translate_address: false }").delivery, Delivery::NextHop);
    let listen = "listen: 10.0.0.1:80";
    let refused = |lines: &str, expected: &str| {
        self::refused(&format!("{listen}, {lines}"), POOL, expected);
    };
    refused("pool: p, fast_l4: { dsr: true, translate_address: true }", "with `dsr: true`");
    refused("forward: route, fast_l4: { translate_address: true }", "with `forward: route`");
    refused("forward: route, fast_l4: { dsr: true }", "`dsr` needs a pool");
    refused("forward: route, pool: p", "`forward` and `pool`");
    refused("pool: p, fast_l4: { dsr: true, source: auto }", "whose address they must see");
    refused("forward: route, fast_l4: { source: auto }", "needs a pool");
    refused(
        "pool: p, fast_l4: { source: \"2001:db8::1\" }",
        "no address of the family of `10.0.0.1:80`",
    );
    refused("pool: p, fast_l4: { source: [ 10.0.0.9, 10.0.0.9 ] }", "is listed twice");
    for (word, meant) in
        [("false", "off"), ("client", "off"), ("automap", "auto"), ("true", "auto")]
    {
        refused(
            &format!("pool: p, fast_l4: {{ source: {word} }}"),
            &format!("did you mean `{meant}`?"),
        );
    }
    refused("pool: p, fast_l4: { source: lan }", "`off`, `auto`, an IP address");
    for list in ["[]", "[ auto ]", "{ addresses: [] }"] {
        // One error, although no address is left.
        refused(
            &format!("pool: p, fast_l4: {{ source: {list} }}"),
            "`virtual_servers.a.fast_l4.source",
        );
    }
    for address in ["0.1.2.3", "255.255.255.255", "224.0.0.1", "\"::\""] {
        refused(
            &format!("pool: p, fast_l4: {{ source: {address} }}"),
            "packets cannot come from this address",
        );
    }
    refused("pool: p, protocol: 0", "write any");
    refused("pool: p, protocol: GRE", "write 47");
    refused("pool: p, protocol: sctp", "write 132");
    refused(
        "pool: p, fast_l4: { ttl: 0 }",
        "must be `decrement`, `keep` or a number from 1 to 255",
    );
    refused("pool: p, fast_l4: nope", "fast_l4 profile `nope` is not defined");
    refused("", "lacks `pool`");
    for key in
        ["tls: {}", "limits: {}", "http: {}", "tcp: {}", "free_bind: true", "interfaces: [ eth0 ]"]
    {
        let (name, _) = key.split_once(':').expect("a key");
        refused(
            &format!("pool: p, {key}"),
            &format!("`{name}` does not apply to a virtual server of type fast_l4"),
        );
    }
    for key in ["forward: route", "protocol: udp", "fast_l4: {}"] {
        let (name, _) = key.split_once(':').expect("a key");
        let text = format!("virtual_servers: {{ b: {{ {listen}, pool: p, {key} }} }}\n{POOL}");
        check(
            &text,
            Severity::Error,
            &[&format!("`{name}` does not apply to a virtual server of type http")],
        );
    }
}

#[test]
fn each_core_has_a_share_of_the_ports() {
    let of = |last: u16| {
        format!(
            "listen: 10.0.0.1:80, pool: p, fast_l4: {{ source: {{ addresses: 10.0.0.9, ports: 2000-{last} }} }}"
        )
    };
    refused(&of(3_022), POOL, "`ports` has 1023 ports: at least 1024 are needed");
    assert_eq!(packets(&file(&of(3_023), POOL)).servers.len(), 1);
}

#[test]
fn there_is_no_more_than_the_tables_hold() {
    let server = |number: usize, listen: &str| {
        format!("  s{number}: {{ type: fast_l4, pool: p, listen: {listen} }}\n")
    };
    let servers = |count: usize, listen: &dyn Fn(usize) -> String| {
        let servers: String = (0..count).map(|number| server(number, &listen(number))).collect();
        format!("virtual_servers:\n{servers}{POOL}")
    };
    let address = |number: usize| format!("10.{}.{}.1", number / 250, number % 250);
    let single = |number: usize| format!("{}:80", address(number));
    assert_eq!(packets(&servers(4_096, &single)).servers.len(), 4_096);
    check(
        &servers(4_097, &single),
        Severity::Error,
        &["there are 4097 virtual servers of type fast_l4"],
    );
    let wide = |number: usize| format!("{}:1000-2023", address(number));
    check(
        &servers(65, &wide),
        Severity::Error,
        &["there are 66560 addresses and ports of type fast_l4"],
    );
}

#[test]
fn keys_of_tcp_have_no_effect_on_datagrams() {
    let of = |protocol: &str, keys: &str| {
        file(
            &format!("listen: '10.0.0.1:53', protocol: {protocol}, pool: p, fast_l4: {keys}"),
            POOL,
        )
    };
    let keys =
        "{ mss_max: 1400, reset_on_timeout: false, idle_timeout: 3s, loose_initiation: true }";
    let expected = ["loose_initiation", "mss_max", "reset_on_timeout"]
        .map(|key| format!("`{key}` is about TCP, and has no effect on protocol udp -> remove it"));
    let text = of("udp", keys);
    let mut said: Vec<String> = parse("weir.yaml", &text)
        .diagnostics
        .iter()
        .map(|it| format!("{} -> {}", it.message, it.suggestion.as_deref().unwrap_or_default()))
        .collect();
    said.sort();
    assert_eq!(said, expected);
    check(&of("tcp", keys), Severity::Warning, &[]);
    // A profile may also belong to another virtual server.
    let profiles = "profiles: { fast_l4: { slow: { handshake_timeout: 3s, mss_max: 1400 } } }\n";
    let text = format!("{}{profiles}", of("udp", "slow"));
    assert_eq!(
        packets(&text).servers[0].remarks.join("; "),
        "`handshake_timeout`, `mss_max` of the profile slow are about TCP, without effect on protocol udp"
    );
}

#[test]
fn pools_of_packets() {
    let refused = |pool: &str, expected: &str| {
        let pools = format!("pools: {{ p: {{ {pool} }} }}\n");
        self::refused("listen: 10.0.0.1:80, pool: p", &pools, expected);
    };
    refused(
        "members: [ \"[2001:db8::2]:80\" ]",
        "cannot get to `[2001:db8::2]:80` of the pool `p`",
    );
    let both = "listen: [ 10.0.0.1:80, \"[2001:db8::1]:80\" ], pool: p";
    let pool = |members: &str| format!("pools: {{ p: {{ members: [ {members} ] }} }}\n");
    self::refused(
        both,
        &pool("10.0.0.2:80"),
        "packets to `[2001:db8::1]:80` find no member of its address family in the pool `p`",
    );
    for members in ["10.0.0.2:80, \"[2001:db8::2]:80\"", "members.example:80"] {
        assert_eq!(packets(&file(both, &pool(members))).servers.len(), 1);
    }
    refused("members: [ unix:/run/a ]", "cannot get to `unix:/run/a`");
    refused("members: [ 10.0.0.2:80 ], proxy_protocol: v2", "is about connections");
    refused(
        "members: [ 10.0.0.1:80 ]",
        "virtual server `a` listens on `10.0.0.1:80`, which a member of its pool `p` has",
    );
    let of = |pool: &str| {
        let pools = format!("pools: {{ p: {{ {pool} }} }}\n");
        packets(&file("listen: 10.0.0.1:80, pool: p", &pools)).servers[0].remarks.join("; ")
    };
    assert_eq!(of("members: [ 10.0.0.2 ]"), "");
    assert_eq!(
        of("members: [ 10.0.0.2 ], balance: least_connections, queue: {}, slow_start: 3s"),
        "flows are spread over pool p by a hash of their ends and by weight, not by its `balance`; \
         `queue`, `slow_start` of pool p have no effect on packets"
    );
}

#[test]
fn ports_of_members_without_an_effect_are_told() {
    let of = |listen: &str, members: &str, keys: &str| {
        let pools = format!("pools: {{ p: {{ members: [ {members} ] }} }}\n");
        let lines = format!("listen: \"10.0.0.1:{listen}\", pool: p, fast_l4: {{ {keys} }}");
        packets(&file(&lines, &pools)).servers[0].remarks.join("; ")
    };
    assert_eq!(
        of("80-81", "10.0.0.2:81, 10.0.0.3:8080", "dsr: true"),
        "packets keep the port of their destination (`dsr: true`): port 8080 of members of pool p has no effect"
    );
    let both = "10.0.0.2:8080, 10.0.0.3:8081";
    assert_eq!(
        of("*", both, "translate_port: false"),
        "packets keep the port of their destination (`translate_port: false`): the ports of members of pool p have no effect"
    );
    let routers = of("80", both, "translate_address: false");
    assert!(routers.contains("`translate_address: false`"), "{routers}");
    assert_eq!(of("80-81", "10.0.0.2:81, 10.0.0.3", "dsr: true"), "");
    assert_eq!(of("80", "10.0.0.3:8080", ""), "");
}

#[test]
fn persistence_is_by_whole_addresses() {
    let full = "prefix_v4: 32, prefix_v6: 128";
    let kept = server(&format!("persistence: {{ type: source_address, timeout: 1m, {full} }}"));
    assert_eq!(kept.persistence_ms, Some(60_000));
    let lines = "listen: 10.0.0.1:80, pool: p, persistence:";
    refused(&format!("{lines} {{ type: cookie }}"), POOL, "needs the source address");
    refused(
        &format!("{lines} {{ type: source_address, prefix_v4: 24 }}"),
        POOL,
        "needs whole addresses",
    );
}

#[test]
fn sockets_take_the_place_of_what_they_can() {
    let falls = |server: PacketServer| match server.fallback {
        Fallback::Proxy { server, remarks } => Ok((server.listen.len(), remarks.join("; "))),
        Fallback::None(why) => Err(why.to_string()),
    };
    let (listeners, remarks) =
        falls(server("fast_l4: { mss_max: 1400, tos: 8 }")).expect("sockets");
    assert_eq!(listeners, 1);
    assert!(remarks.contains("in place of the client's"), "{remarks}");
    assert!(remarks.ends_with("`mss_max`, `tos` have no effect with sockets"), "{remarks}");
    for (lines, why) in [
        ("fast_l4: { dsr: true }", "answer clients directly"),
        ("fast_l4: { translate_address: false }", "routers"),
        ("fast_l4: { translate_port: false }", "members' ports"),
    ] {
        let found = falls(server(lines)).expect_err(lines);
        assert!(found.contains(why), "{lines}: {found}");
    }
    let Fallback::Proxy { server: sessions, .. } = server("protocol: udp").fallback else {
        panic!("sockets serve udp");
    };
    assert!(
        matches!(sessions.listen[0].address, Address::Udp(_))
            && sessions.service.sessions().is_some()
    );
    // Whom packets would not let in, sockets do not let in either.
    let listed = "allowed_clients: [ 10.0.0.0/8, \"2001:db8::/32\" ]";
    let few = server(listed);
    let prefixes: Vec<String> = few
        .clients
        .iter()
        .flat_map(|all| all.iter())
        .map(|it| format!("{}/{}", it.address, it.length))
        .collect();
    assert_eq!(prefixes, ["10.0.0.0/8", "2001:db8::/32"]);
    assert!(server("").clients.is_none());
    let Fallback::Proxy { server: relay, .. } = few.fallback else { panic!("sockets serve tcp") };
    assert_eq!(relay.connection_policies.names().collect::<Vec<_>>(), ["virtual_servers.a"]);
    let udp = server(&format!("protocol: udp, {listed}"));
    let Fallback::Proxy { server: sessions, .. } = udp.fallback else { panic!("of udp") };
    let allowed = sessions.service.sessions().and_then(|it| it.clients.clone()).expect("a list");
    assert!(allowed.contains("10.1.1.1".parse().unwrap()));
    assert!(!allowed.contains("11.1.1.1".parse().unwrap()));
    let any = packets(&file("listen: \"10.0.0.1:*\", protocol: any, pool: p", POOL));
    assert!(
        matches!(&any.servers[0].fallback, Fallback::None(why) if why.contains("only for protocols tcp and udp"))
    );
    let text = file("listen: 10.0.0.1:80, pool: p", POOL);
    let mut fallen = packets(&text);
    let proxies = fallen.fall("a test");
    assert_eq!((proxies.len(), fallen.servers.len()), (1, 0));
    assert!(proxies[0].service.is_tcp() && fallen.fallen[0].unserved.is_none());
    let mut without = packets(&format!("packet_path: {{ rungs: [ xdp, tcx ] }}\n{text}"));
    assert!(without.fall("a test").is_empty() && without.fallen[0].unserved.is_some());
}

#[test]
fn how_packets_are_had() {
    let http = format!("  b: {{ listen: 10.0.0.9:80, pool: p }}\n{POOL}");
    let with = |path: &str| {
        format!("packet_path: {{ {path} }}\n{}", file("listen: 10.0.0.1:80, pool: p", &http))
    };
    let path = packets(&with(
        "interfaces: [ eth0 ], deny: [ 10.0.0.0/8 ], connections_per_second_per_source: 5",
    ))
    .path;
    assert_eq!(path.interfaces.as_ref().map(Vec::len), Some(1));
    assert_eq!(path.rate.map(|rate| (rate.per_second, rate.burst)), Some((5, 5)));
    assert!(path.guards() && !path.is_kept_at_exit);
    let refused = |path: &str, expected: &str| check(&with(path), Severity::Error, &[expected]);
    refused("rungs: [ tcx, xdp ]", "tried in the order");
    refused("rungs: [ xdp, xdp ]", "tried in the order");
    refused("interfaces: [ eth0, eth0 ]", "`eth0` is listed twice");
    refused("interfaces: [ a-name-that-is-long ]", "the name of a network interface");
    refused("name: a.b", "letters, digits, `-` and `_`");
    refused("flows_max: 1", "a whole number from 1024");
    refused("rungs: [ tcx ], syn_cookies: 10.0.0.9:80", "`syn_cookies` needs the rung `xdp`");
    refused("syn_cookies: 0.0.0.0:80", "is not one address and port");
    let warned = |path: &str, expected: &str| check(&with(path), Severity::Warning, &[expected]);
    warned("allow: [ 10.0.0.1 ]", "no effect without `deny`");
    warned("burst: 5", "no effect without `connections_per_second_per_source`");
    refused("syn_cookies: 10.0.0.1:80", "belongs to virtual server `a` of type fast_l4");
    let deny = "packet_path:\n  deny:\n    - 10.0.0.9\n    - 10.0.0.9\n    - 10.0.0.9\n";
    let text = format!("{deny}{}", file("listen: 10.0.0.1:80, pool: p", POOL));
    let twice = "`10.0.0.9` is listed twice: first in line 3 -> keep one";
    check(&text, Severity::Warning, &[twice, twice]);
    warned(
        "deny: [ 10.0.0.0/8 ], allow: [ 10.0.0.0/8 ]",
        "first in line 1 under `deny`; `allow` decides -> remove one of them",
    );
    warned("syn_cookies: 10.9.9.9:80", "no virtual server listens on `10.9.9.9:80`");
    let http = format!("virtual_servers: {{ b: {{ listen: 10.0.0.1:80, pool: p }} }}\n{POOL}");
    let text = format!("packet_path: {{ flows_max: 4096 }}\n{http}");
    check(&text, Severity::Warning, &["`packet_path` has no effect"]);
    // A guard needs no virtual server of the packet path.
    assert!(packets(&format!("packet_path: {{ deny: [ 10.0.0.9 ] }}\n{http}")).servers.is_empty());
}
