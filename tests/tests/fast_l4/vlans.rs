//! Clients and members in VLANs. Where the kernel has no VLAN devices, `scripts/test-on-kernel` runs this on another one.

use std::process::Command;

use weir_testing::skip_though_strict;

use crate::network::{Network, at};
use crate::server;

/// Puts 10.77.5.2 of the client into VLAN 5, and 10.77.7.2 of the members into VLAN 7. False: the kernel has no VLAN devices.
fn add_vlans(network: &Network) -> bool {
    let adc = network.namespaces.name("adc");
    let words = "link add link clients name clients.5 type vlan id 5";
    let made = Command::new("ip").args(["-n", &adc]).args(words.split(' ')).output();
    if !made.expect("ip").status.success() {
        skip_though_strict("this kernel has no VLAN devices");
        return false;
    }
    network.shell(
        "adc",
        "ip link add link servers name servers.7 type vlan id 7; \
         ip addr add 10.77.5.1/24 dev clients.5; ip addr add 10.77.7.1/24 dev servers.7; \
         ip link set dev clients.5 up; ip link set dev servers.7 up; \
         ethtool -K clients rxvlan off txvlan off; ethtool -K servers rxvlan off txvlan off",
    );
    for (role, vlan, address) in [("client", 5, "10.77.5.2"), ("server", 7, "10.77.7.2")] {
        network.shell(
            role,
            &format!(
                "ip link add link link name link.{vlan} type vlan id {vlan}; \
                 ip addr add {address}/24 dev link.{vlan}; ip link set dev link.{vlan} up; \
                 ethtool -K link rxvlan off txvlan off"
            ),
        );
    }
    network.shell("client", "ip route add 10.77.9.5/32 via 10.77.5.1");
    true
}

#[test]
fn clients_and_members_have_their_own_vlans() {
    let Some(mut network) = Network::make() else { return };
    if !add_vlans(&network) {
        return;
    }
    let (untagged, tagged) = ("10.77.2.2:9000", "10.77.7.2:9000");
    network.serve(tagged);
    let servers =
        server("listen: [ 10.77.9.1:80, 10.77.9.5:80 ], pool: p, fast_l4: { source: auto }");
    let pools = format!("pools: {{ p: {{ members: [ {untagged}, \"{tagged}\" ] }} }}\n");
    let mut is_running = false;
    for (rungs, shown) in [("xdp", "xdp on clients, xdp on servers"), ("tcx", "tcx on ")] {
        network.configure(&format!(", rungs: [ {rungs} ]"), &format!("{servers}{pools}"));
        if is_running {
            network.reload()
        } else {
            network.start()
        }
        is_running = true;
        let status = network.server("a");
        assert!(status["rungs"].as_str().is_some_and(|it| it.contains(shown)), "{status:#}");
        // The second address is reached through the client's VLAN.
        for (address, client) in [("10.77.9.1:80", "10.77.1.2"), ("10.77.9.5:80", "10.77.5.2")] {
            let mut connections: Vec<_> = (0..24).map(|_| network.connect(address)).collect();
            for (member, source) in [(untagged, "10.77.2.1"), (tagged, "10.77.7.1")] {
                let mut its = connections.iter_mut().filter(|it| it.member == at(member));
                let connection = its.next().unwrap_or_else(|| panic!("{member} got nothing"));
                assert_eq!(
                    connection.source.ip().to_string(),
                    source,
                    "weir's address in the VLAN"
                );
                assert_eq!(connection.own().ip().to_string(), client);
                connection.echo();
            }
            // They are open still, so each has its flow.
            let flows = network.flows(&["--client", client]);
            let of_packets = |own: String| flows.iter().any(|flow| flow["client"] == own);
            let missing = connections.iter().find(|it| !of_packets(it.own().to_string()));
            assert!(missing.is_none(), "by packets, not by sockets: {flows:#?}");
        }
    }
}
