//! Virtual servers of `type: fast_l4`: the running program, with the kernel's own TCP at both ends.

mod iperf;
mod keys;
mod ladder;
mod lifetime;
mod load;
mod network;
mod vlans;

use network::{FIRST, Network, SECOND, at};
use weir_tests::{STEP_TIMEOUT, eventually};

const POOL: &str = "pools: { p: { members: [ 10.77.2.2:9000, 10.77.2.3:9000 ] } }\n";

fn server(lines: &str) -> String {
    format!("virtual_servers: {{ a: {{ type: fast_l4, {lines} }} }}\n")
}

#[test]
fn both_addresses_are_translated_and_counted() {
    let Some(mut network) = Network::make() else { return };
    let server = server("listen: 10.77.9.1:80, pool: p, fast_l4: { source: auto }");
    network.configure("", &format!("{server}{POOL}"));
    network.start();
    let mut members = Vec::new();
    for _ in 0..32 {
        let mut connection = network.connect("10.77.9.1:80");
        assert_eq!(
            connection.source.ip(),
            at("10.77.2.1:0").ip(),
            "the member sees weir's address"
        );
        connection.echo();
        members.push(connection);
    }
    for member in [FIRST, SECOND] {
        assert!(members.iter().any(|it| it.member == at(member)), "{member} got nothing");
    }
    let client = members[0].own();
    let flows = network.flows(&["--virtual-server", "a"]);
    assert_eq!(flows.len(), 32);
    let of_first = flows.iter().find(|flow| flow["client"] == client.to_string());
    let of_first = of_first.expect("the flow of the first");
    assert_eq!(of_first["destination"], "10.77.9.1:80");
    assert_eq!(of_first["member"], members[0].member.to_string());
    assert_eq!(of_first["source"], members[0].source.to_string());
    assert_eq!(of_first["state"], "open");
    let to_second = members.iter().filter(|it| it.member == at(SECOND)).count();
    assert_eq!(network.flows(&["--member", SECOND]).len(), to_second);
    assert_eq!(network.flows(&["--member", "10.77.2.3"]).len(), to_second);
    assert_eq!(network.flows(&["--client", "10.77.1.9"]).len(), 0);
    eventually("the flows are counted", STEP_TIMEOUT, || {
        let status = network.server("a");
        status["counters"]["flows"] == 32
            && status["members"].as_array().is_some_and(|all| {
                all.iter().any(|it| it["address"] == SECOND && it["flows"] == to_second)
            })
    });
    let status = network.server("a");
    assert_eq!(status["served_by"], "packets");
    assert_eq!(status["rungs"], "xdp on clients, xdp on servers", "{status}");
    assert!(status["counters"]["bytes_out"].as_u64() > Some(32 * 60), "{status}");
    // The command ends the connections of one member. Both ends are notified.
    let ended = network.command(&["l4", "end", "--member", SECOND]);
    assert!(ended.starts_with(&format!("{to_second} flow")), "{ended}");
    for connection in &mut members {
        let goes_on = connection.try_echo().is_ok();
        assert_eq!(goes_on, connection.member == at(FIRST), "{}", connection.member);
    }
    network.end();
    assert!(!network.has_pins(), "nothing is left");
}

#[test]
fn the_client_is_seen_and_any_port_is_kept() {
    let Some(mut network) = Network::make() else { return };
    network.serve("10.77.2.2:7001");
    let server = server("listen: \"10.77.9.1:*\", pool: p");
    network.configure("", &format!("{server}pools: {{ p: {{ members: [ 10.77.2.2 ] }} }}\n"));
    network.start();
    for port in [9_000, 7_001] {
        let mut connection = network.connect(&format!("10.77.9.1:{port}"));
        assert_eq!(connection.member, at(&format!("10.77.2.2:{port}")));
        assert_eq!(connection.source, connection.own(), "the member sees the client");
        connection.echo();
    }
}

#[test]
fn a_network_is_forwarded_by_the_routing_table() {
    let Some(mut network) = Network::make() else { return };
    network.configure("", &server("listen: \"10.77.2.0/24:*\", protocol: any, forward: route"));
    network.start();
    let mut connection = network.connect(SECOND);
    assert_eq!(connection.source, connection.own());
    connection.echo();
    eventually("the packets are counted", STEP_TIMEOUT, || {
        network.server("a")["counters"]["packets_out"].as_u64() > Some(2)
    });
    assert_eq!(network.echo_datagram("10.77.2.2:5000"), "a datagram");
    let protocols: Vec<_> = network.flows(&[]).iter().map(|it| it["protocol"].clone()).collect();
    assert!(protocols.contains(&17.into()) && protocols.contains(&6.into()), "{protocols:?}");
}

#[test]
fn what_leaves_goes_to_routers_and_this_host_keeps_its_own() {
    let Some(mut network) = Network::make() else { return };
    // An address behind the router.
    network.shell("server", "ip addr add 10.77.9.1/32 dev lo");
    network.serve("10.77.9.1:9000");
    network.serve("10.77.2.2:9100");
    let servers = "virtual_servers:\n  \
        out: { type: fast_l4, listen: \"0.0.0.0/0:*\", protocol: any, pool: r, fast_l4: { translate_address: false } }\n  \
        own: { type: tcp, listen: 10.77.1.1:80, pool: p }\n";
    let monitor = "monitors: [ { type: tcp, port: 9100, interval: 200ms } ]";
    let pools = format!(
        "pools: {{ r: {{ members: [ 10.77.2.2 ], {monitor} }}, p: {{ members: [ {FIRST} ] }} }}\n"
    );
    network.configure("", &format!("{servers}{pools}"));
    network.start();
    let mut connection = network.connect("10.77.9.1:9000");
    assert_eq!((connection.member, connection.source), (at("10.77.9.1:9000"), connection.own()));
    connection.echo();
    // Connections to sockets of this host, and its own connections (relay and monitor), are not affected.
    let mut own = network.connect("10.77.1.1:80");
    assert_eq!(own.member, at(FIRST));
    own.echo();
    let passes = || network.status()["pools"][0]["members"][0]["monitors"][0]["passes"].as_u64();
    let before = passes();
    eventually("the monitor goes on", STEP_TIMEOUT, || passes() > before.map(|it| it + 3));
    assert_eq!(
        network.status()["packet_path"]["virtual_servers"].as_array().map(Vec::len),
        Some(1)
    );
}

#[test]
fn members_answer_directly() {
    let Some(mut network) = Network::make() else { return };
    network.shell("server", "ip addr add 10.77.9.1/32 dev lo");
    network.serve("10.77.9.1:9000");
    let server = server("listen: 10.77.9.1:9000, pool: p, fast_l4: { dsr: true }");
    network.configure("", &format!("{server}pools: {{ p: {{ members: [ 10.77.2.2:9000 ] }} }}\n"));
    network.start();
    let mut connection = network.connect("10.77.9.1:9000");
    assert_eq!(connection.member, at("10.77.9.1:9000"));
    assert_eq!(connection.source, connection.own());
    connection.echo();
    eventually("the client's half is counted", STEP_TIMEOUT, || {
        let counters = network.server("a")["counters"].clone();
        counters["packets_in"].as_u64() > Some(3) && counters["packets_out"] == 0
    });
}

#[test]
fn sources_are_denied_allowed_and_limited() {
    let Some(mut network) = Network::make() else { return };
    let rest = format!("{}{POOL}", server("listen: 10.77.9.1:80, pool: p"));
    network.configure(", deny: [ 10.77.1.0/24 ]", &rest);
    network.start();
    assert!(network.try_connect("10.77.9.1:80").is_none(), "a denied source got through");
    eventually("it is counted", STEP_TIMEOUT, || {
        network.status()["packet_path"]["not_forwarded"]["denied"].as_u64() > Some(0)
    });
    network.configure(", deny: [ 10.77.1.0/24 ], allow: [ 10.77.1.2 ]", &rest);
    network.reload();
    network.connect("10.77.9.1:80").echo();
    network.configure(", connections_per_second_per_source: 1, burst: 3", &rest);
    network.reload();
    let got_through = (0..6).filter(|_| network.try_connect("10.77.9.1:80").is_some()).count();
    assert!(got_through >= 3, "{got_through} of 6");
    eventually("what was too much is counted", STEP_TIMEOUT, || {
        network.status()["packet_path"]["not_forwarded"]["source_rate"].as_u64() > Some(0)
    });
}

#[test]
fn clients_that_are_not_listed_begin_no_flow() {
    let Some(mut network) = Network::make() else { return };
    let rest = |clients: &str| {
        let keys = format!("listen: 10.77.9.1:80, pool: p, allowed_clients: [ {clients} ]");
        format!("{}{POOL}", server(&keys))
    };
    network.configure("", &rest("10.77.2.0/24, \"::/0\""));
    network.start();
    assert!(network.try_connect("10.77.9.1:80").is_none(), "another source got through");
    eventually("it is counted", STEP_TIMEOUT, || {
        network.status()["packet_path"]["not_forwarded"]["client_not_allowed"].as_u64() > Some(0)
    });
    network.configure("", &rest("10.77.1.2"));
    network.reload();
    network.connect("10.77.9.1:80").echo();
}
