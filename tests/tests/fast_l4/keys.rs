//! The effect of single configuration keys for members and clients.

use std::net::UdpSocket;

use weir_tests::{STEP_TIMEOUT, eventually, tools};

use crate::network::{FIRST, Network, at};
use crate::{POOL, server};

#[test]
fn members_see_addresses_and_ports_of_a_list() {
    let Some(mut network) = Network::make() else { return };
    for own in ["10.77.2.50/32", "10.77.2.51/32"] {
        network.shell("adc", &format!("ip addr add {own} dev servers"));
    }
    let source = "{ addresses: [ 10.77.2.50, 10.77.2.51 ], ports: 20000-21999 }";
    let server = server(&format!("listen: 10.77.9.1:80, pool: p, fast_l4: {{ source: {source} }}"));
    network.configure("", &format!("{server}{POOL}"));
    network.start();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..24 {
        let mut connection = network.connect("10.77.9.1:80");
        connection.echo();
        assert!((20_000..22_000).contains(&connection.source.port()), "{}", connection.source);
        seen.insert(connection.source.ip().to_string());
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["10.77.2.50", "10.77.2.51"]);
}

#[test]
fn each_member_sees_the_address_of_the_interface_that_it_is_reached_by() {
    let Some(mut network) = Network::make() else { return };
    let other = network.namespaces.name("server");
    network.shell(
        "adc",
        &format!(
            "ip link add more type veth peer name more netns {other}; ip addr add 10.77.3.1/24 dev more; ip link set dev more up"
        ),
    );
    network.shell(
        "server",
        "ip addr add 10.77.3.2/24 dev more; ip link set dev more up; ethtool -K more gro on tx off",
    );
    network.serve("10.77.3.2:9000");
    let server = server("listen: 10.77.9.1:80, pool: p, fast_l4: { source: auto }");
    let pool = format!("pools: {{ p: {{ members: [ {FIRST}, 10.77.3.2:9000 ] }} }}\n");
    // The table has room for all flows that start before weir looks up the route again.
    network.configure_flows(65_536, "", &format!("{server}{pool}"));
    network.start();
    let seen = |network: &Network| -> std::collections::BTreeSet<(String, String)> {
        let ends = |_| {
            let mut connection = network.connect("10.77.9.1:80");
            connection.echo();
            (connection.member.ip().to_string(), connection.source.ip().to_string())
        };
        (0..32).map(ends).collect()
    };
    let pair = |member: &str, source: &str| (member.to_owned(), source.to_owned());
    let own = |source| [pair("10.77.2.2", "10.77.2.1"), pair("10.77.3.2", source)].into();
    assert_eq!(seen(&network), own("10.77.3.1"));
    // The loop below succeeds only with the new route, and accepts the old one until then.
    network.shell(
        "adc",
        "ip addr add 10.77.3.9/24 dev more; ip route replace 10.77.3.0/24 dev more src 10.77.3.9",
    );
    eventually("the route is looked up again", STEP_TIMEOUT, || seen(&network) == own("10.77.3.9"));
}

#[test]
fn what_was_open_before_goes_on_with_loose_initiation_alone() {
    for (loose, goes_on) in [("true", true), ("false", false)] {
        let Some(mut network) = Network::make() else { return };
        // This connection uses the kernel's own forwarding.
        let mut before = network.connect(FIRST);
        before.echo();
        let server = server(&format!(
            "listen: \"10.77.2.0/24:*\", protocol: any, forward: route, fast_l4: {{ loose_initiation: {loose}, closing_timeout: 1s }}"
        ));
        network.configure("", &server);
        network.start();
        if !goes_on {
            before.wait_at_most(std::time::Duration::from_millis(500));
        }
        assert_eq!(before.try_echo().is_ok(), goes_on, "loose_initiation: {loose}");
        let flows = network.flows(&["--client", "10.77.1.2"]);
        assert_eq!(flows.len(), usize::from(goes_on), "{flows:?}");
        if goes_on {
            // When both ends close, the flow is removed soon.
            drop(before);
            eventually("the flow is over", STEP_TIMEOUT, || network.flows(&[]).is_empty());
        }
    }
}

#[test]
fn one_source_keeps_its_member() {
    let Some(mut network) = Network::make() else { return };
    let rest =
        |persistence: &str| server(&format!("listen: 10.77.9.1:80, pool: p{persistence}")) + POOL;
    let members = |network: &Network| {
        let members = (0..32).map(|_| network.connect("10.77.9.1:80").member);
        members.collect::<std::collections::BTreeSet<_>>().len()
    };
    network.configure("", &rest(""));
    network.start();
    assert_eq!(members(&network), 2);
    network.configure(
        "",
        &rest(", persistence: { type: source_address, prefix_v4: 32, prefix_v6: 128 }"),
    );
    network.reload();
    assert_eq!(members(&network), 1);
}

#[test]
fn segments_are_as_large_as_mss_max() {
    let Some(mut network) = Network::make() else { return };
    let server = server("listen: 10.77.9.1:80, pool: p, fast_l4: { source: auto, mss_max: 1000 }");
    network.configure("", &format!("{server}{POOL}"));
    network.start();
    let connection = network.connect("10.77.9.1:80");
    for role in ["client", "server"] {
        let sockets = network.namespaces.output(role, "ss -tin state established");
        // The MSS without the 12 bytes of the timestamp option.
        assert!(sockets.contains(" mss:988 "), "{role}: {sockets}");
    }
    drop(connection);
}

/// A Python script that echoes one packet of an experimental IP protocol (253).
const UNNAMED: &str = r#"
import socket
own = socket.socket(socket.AF_INET, socket.SOCK_RAW, 253)
own.bind(("10.77.2.2", 0))
print("ready", flush=True)
packet, sender = own.recvfrom(100)
own.sendto(packet[20:], sender)
"#;

/// A Python script that sends a packet of that protocol to the virtual address, and prints the source of the response.
const ASKING: &str = r#"
import socket
own = socket.socket(socket.AF_INET, socket.SOCK_RAW, 253)
own.settimeout(5)
own.sendto(b"anything", ("10.77.9.1", 0))
packet, sender = own.recvfrom(100)
print(packet[20:].decode(), sender[0])
"#;

#[test]
fn every_protocol_goes_to_a_member() {
    if !tools::present("python3") {
        return;
    }
    let Some(mut network) = Network::make() else { return };
    let server = server("listen: \"10.77.9.1:*\", protocol: any, pool: p");
    network.configure("", &format!("{server}pools: {{ p: {{ members: [ 10.77.2.2 ] }} }}\n"));
    network.start();
    network.connect("10.77.9.1:9000").echo();
    let member = network.start_in("server", &["python3", "-c", UNNAMED]);
    eventually("the member is there", STEP_TIMEOUT, || member.output().contains("ready"));
    let answer = network.namespaces.output("client", &format!("python3 -c '{ASKING}'"));
    assert_eq!(answer, "anything 10.77.9.1\n");
}

/// A Python script that prints TTL and TOS of the first datagram, and echoes it.
const TOLD: &str = r#"
import socket
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.bind(("10.77.2.2", 5300))
own.setsockopt(socket.IPPROTO_IP, 12, 1) # IP_RECVTTL
own.setsockopt(socket.IPPROTO_IP, 13, 1) # IP_RECVTOS
data, ancillary, _, sender = own.recvmsg(100, 200)
told = {kind: value[0] for _, kind, value in ancillary}
print(told[socket.IP_TTL], told[socket.IP_TOS], flush=True)
own.sendto(data, sender)
"#;

#[test]
fn ttl_and_tos_are_as_the_profile_says() {
    if !tools::present("python3") {
        return;
    }
    for (ttl, expected) in [("50", "50 184"), ("keep", "64 184"), ("decrement", "63 184")] {
        let Some(mut network) = Network::make() else { return };
        let server = server(&format!(
            "listen: 10.77.9.1:53, protocol: udp, pool: d, fast_l4: {{ source: auto, tos: 184, ttl: {ttl} }}"
        ));
        network
            .configure("", &format!("{server}pools: {{ d: {{ members: [ 10.77.2.2:5300 ] }} }}\n"));
        network.start();
        let member = network.start_in("server", &["python3", "-c", TOLD]);
        let client =
            network.namespaces.within("client", || UdpSocket::bind("10.77.1.2:0").expect("a port"));
        client.set_read_timeout(Some(std::time::Duration::from_millis(100))).expect("a timeout");
        eventually("the member answers", STEP_TIMEOUT, || {
            client.send_to(b"one", at("10.77.9.1:53")).expect("sending");
            client.recv(&mut [0; 10]).is_ok()
        });
        assert_eq!(member.output().trim(), expected, "ttl: {ttl}");
    }
}

#[test]
fn one_virtual_server_has_both_families() {
    let Some(mut network) = Network::make() else { return };
    network.add_ipv6();
    network.serve("[2001:db8:2::2]:9000");
    let server = server(
        "listen: [ 10.77.9.1:80, \"[2001:db8:9::1]:80\" ], pool: p, fast_l4: { source: auto }",
    );
    let pool = "pools: { p: { members: [ 10.77.2.2:9000, \"[2001:db8:2::2]:9000\" ] } }\n";
    network.configure("", &format!("{server}{pool}"));
    network.start();
    let mut connections = Vec::new();
    for _ in 0..8 {
        for (to, source) in [("10.77.9.1:80", "10.77.2.1"), ("[2001:db8:9::1]:80", "2001:db8:2::1")]
        {
            let mut connection = network.connect(to);
            connection.echo();
            assert_eq!(connection.source.ip().to_string(), source);
            connections.push(connection);
        }
    }
    assert_eq!(network.flows(&["--virtual-server", "a"]).len(), 16);
    eventually("both families are counted as one", STEP_TIMEOUT, || {
        network.server("a")["counters"]["flows"] == 16
    });
    // The drained and restored member has the other address family.
    for state in ["drain", "reset"] {
        network.command(&["member", "p", "[2001:db8:2::2]:9000", state]);
        network.connect("10.77.9.1:80").echo();
        connections.iter_mut().for_each(|it| it.echo());
    }
    eventually("the other is there again", STEP_TIMEOUT, || {
        network.try_connect("[2001:db8:9::1]:80").is_some()
    });
}

#[test]
fn a_member_that_comes_takes_its_share_and_no_more() {
    let Some(mut network) = Network::make() else { return };
    let members: Vec<String> =
        (0..8).map(|number| format!("10.77.2.2:{}", 7_000 + number)).collect();
    members.iter().for_each(|member| network.serve(member));
    let server = server("listen: 10.77.9.1:80, pool: p, fast_l4: { closing_timeout: 1s }");
    let file = |members: &[String]| {
        format!("{server}pools: {{ p: {{ members: [ {} ] }} }}\n", members.join(", "))
    };
    network.configure("", &file(&members[..7]));
    network.start();
    // Both calls use the same client ports.
    let owners = |network: &Network| -> Vec<std::net::SocketAddr> {
        let connect =
            |port| network.connect_from(&format!("10.77.1.2:{port}"), "10.77.9.1:80").member;
        (40_000..40_400).map(connect).collect()
    };
    let before = owners(&network);
    network.command(&["l4", "end", "--virtual-server", "a"]);
    network.configure("", &file(&members));
    network.reload();
    let after = owners(&network);
    let moved = before.iter().zip(&after).filter(|(before, after)| before != after).count();
    let taken = after.iter().filter(|it| **it == at("10.77.2.2:7007")).count();
    println!("{moved} of 400 flows have another member, {taken} of them the new one");
    // The expected share is 1/8, plus the random deviation of 400 flows, plus at most 1%.
    assert!((25..=85).contains(&taken), "{taken}");
    assert!(moved - taken <= 4, "{moved} moved, {taken} to the new one");
}
