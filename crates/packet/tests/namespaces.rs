//! The kernel's own TCP and UDP at both ends: client – adc – server, each a network namespace.

mod support;

use std::io::Read;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use support::net::*;
use support::{Path, is_possible};
use weir_packet::plan::*;
use weir_packet::{EndedFor, FlowFilter, FlowState, Reason, Resetter, Rung, now};

#[test]
fn connections_are_translated_on_both_rungs() {
    if !is_possible() {
        return;
    }
    for mtu in [1500, 9000] {
        let net = Net::new(mtu);
        let mut path = Path::open();
        let _v4 = net.tcp_server("10.0.2.10:8080");
        let _v6 = net.tcp_server("[fd00:2::10]:8080");
        let v4 = one_server(Protocol::Tcp, "192.0.2.1:80", "10.0.2.10", Some(8080));
        let v6 = VirtualServer {
            name: "six".into(),
            ..one_server(Protocol::Tcp, "[2001:db8::1]:80", "fd00:2::10", Some(8080))
        };
        for rung in [Rung::Xdp, Rung::Tcx] {
            path.attach(&["a0", "a1"], rung);
            path.get()
                .apply(&Plan { virtual_servers: vec![v4.clone(), v6.clone()], ..Plan::default() })
                .unwrap();
            for address in ["192.0.2.1:80", "[2001:db8::1]:80"] {
                let (mut stream, seen) = net.served(address);
                assert_eq!(seen, stream.local_addr().unwrap(), "the member sees the client");
                echo(&mut stream, 4_000_000);
                for _ in 0..100 {
                    let (mut stream, _) = net.served(address);
                    echo(&mut stream, 100);
                }
            }
        }
        let totals = path.read().server_totals().unwrap();
        assert!(
            totals.iter().all(|(_, it)| it.flows == 202 && it.bytes_out > 8_000_000),
            "{totals:?}"
        );
    }
}

#[test]
fn source_translation_needs_no_route_back() {
    if !is_possible() {
        return;
    }
    let net = Net::new(1500);
    net.server.ip("route del default");
    let mut path = Path::open();
    let _server = net.tcp_server("10.0.2.10:8080");
    let mut one = one_server(Protocol::Tcp, "192.0.2.1:80", "10.0.2.10", Some(8080));
    automap(&mut one, "10.0.2.1");
    path.get().apply(&plan(one)).unwrap();
    for rung in [Rung::Xdp, Rung::Tcx] {
        path.attach(&["a0", "a1"], rung);
        let (mut stream, seen) = net.served("192.0.2.1:80");
        assert_eq!(seen.ip(), "10.0.2.1".parse::<IpAddr>().unwrap());
        assert!((50_000..60_000).contains(&seen.port()));
        echo(&mut stream, 1_000_000);
    }
}

#[test]
fn one_arm_goes_out_where_it_came_in() {
    if !is_possible() {
        return;
    }
    // Client and member behind the same device.
    let net = Net::new(1500);
    net.client.ip("addr add 10.0.1.10/24 dev c0");
    let _server = Server::start(&net.client, "10.0.1.10:8080".parse().unwrap(), &net.client.name);
    let mut path = Path::open();
    let mut one = one_server(Protocol::Tcp, "192.0.2.1:80", "10.0.1.10", Some(8080));
    automap(&mut one, "10.0.1.1");
    path.get().apply(&plan(one)).unwrap();
    for rung in [Rung::Xdp, Rung::Tcx] {
        path.attach(&["a0"], rung);
        let (mut stream, seen) = net.served("192.0.2.1:80");
        assert_eq!(seen.ip(), "10.0.1.1".parse::<IpAddr>().unwrap());
        echo(&mut stream, 1_000_000);
    }
}

#[test]
fn members_answer_directly() {
    if !is_possible() {
        return;
    }
    let net = Net::new(1500);
    net.server.ip("addr add 192.0.2.1/32 dev lo");
    let _server = net.tcp_server("192.0.2.1:80");
    let mut path = Path::open();
    let mut one = one_server(Protocol::Tcp, "192.0.2.1:80", "10.0.2.10", None);
    one.delivery = Delivery::DirectReturn;
    path.get().apply(&plan(one)).unwrap();
    for rung in [Rung::Xdp, Rung::Tcx] {
        path.attach(&["a0", "a1"], rung);
        let (mut stream, seen) = net.served("192.0.2.1:80");
        assert_eq!(seen, stream.local_addr().unwrap());
        echo(&mut stream, 1_000_000);
        let flows =
            path.get().flows(&FlowFilter { flows_max: 10, ..FlowFilter::default() }).unwrap();
        assert!(flows.iter().all(|flow| flow.packets_out == 0 && flow.packets_in > 5), "{flows:?}");
        assert_eq!(flows.len(), if rung == Rung::Xdp { 1 } else { 2 });
    }
}

/// An echo request that is answered.
#[track_caller]
fn ping(net: &Net, address: &str) {
    use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto};
    net.client.within(|| {
        std::fs::write("/proc/sys/net/ipv4/ping_group_range", "0 2147483647")
            .expect("permitting it")
    });
    let socket = net.client.within(|| {
        rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, Some(ipproto::ICMP)).unwrap()
    });
    let target = SocketAddr::new(address.parse().unwrap(), 0);
    rustix::net::sendto(&socket, &[8, 0, 0, 0, 0, 0, 0, 1, b'w'], SendFlags::empty(), &target)
        .expect("sending");
    let socket = UdpSocket::from(socket);
    socket.set_read_timeout(Some(STEP_MAX)).unwrap();
    let mut buffer = [0; 64];
    let (bytes, from) = socket.recv_from(&mut buffer).expect("the answer");
    assert_eq!((bytes, buffer[0], from.ip()), (9, 0, target.ip()));
}

#[test]
fn any_port_any_protocol_and_forwarding() {
    if !is_possible() {
        return;
    }
    let net = Net::new(1500);
    let mut path = Path::open();
    let prefix = |address: &str, length| Prefix { address: address.parse().unwrap(), length };
    let any = |name, prefix| {
        VirtualServer::new(name, Protocol::Any, vec![Destination { prefix, port: None }])
    };
    let mut pool = any("pool", prefix("192.0.2.0", 24));
    pool.members.push(Member::new("10.0.2.10".parse().unwrap(), None));
    let forward =
        VirtualServer { delivery: Delivery::Route, ..any("forward", prefix("10.0.2.0", 24)) };
    path.get().apply(&Plan { virtual_servers: vec![pool, forward], ..Plan::default() }).unwrap();
    let _tcp = net.tcp_server("10.0.2.10:8123");
    let udp = net.server.within(|| UdpSocket::bind("10.0.2.10:8124").unwrap());
    udp.set_read_timeout(Some(STEP_MAX)).unwrap();
    for rung in [Rung::Xdp, Rung::Tcx] {
        path.attach(&["a0", "a1"], rung);
        for address in ["192.0.2.77", "10.0.2.10"] {
            let (mut stream, _) = net.served(&format!("{address}:8123"));
            echo(&mut stream, 100_000);
            let client = net.client.within(|| UdpSocket::bind("10.0.1.2:0").unwrap());
            client.set_read_timeout(Some(STEP_MAX)).unwrap();
            for bytes in [1, 1400, 5000] {
                // The last one comes in fragments.
                client.send_to(&vec![7; bytes], format!("{address}:8124")).unwrap();
                let mut buffer = [0; 9000];
                let (got, peer) = udp.recv_from(&mut buffer).expect("the datagram");
                assert_eq!(got, bytes);
                udp.send_to(&buffer[..got], peer).unwrap();
                let (got, from) = client.recv_from(&mut buffer).expect("its echo");
                assert_eq!((got, from.to_string()), (bytes, format!("{address}:8124")));
            }
            ping(&net, address);
        }
    }
}

#[test]
fn flows_outlive_the_process_and_its_programs() {
    if !is_possible() {
        return;
    }
    let net = Net::new(1500);
    let _server = net.tcp_server("10.0.2.10:8080");
    let mut path = Path::open();
    let mut one = one_server(Protocol::Tcp, "192.0.2.1:80", "10.0.2.10", Some(8080));
    one.members.push(Member::new("10.0.2.11".parse().unwrap(), Some(8080)));
    let mut one = plan(one);
    one.virtual_servers[0].members[1].state = MemberState::Down;
    for rung in [Rung::Xdp, Rung::Tcx] {
        path.attach(&["a0", "a1"], rung);
        path.get().apply(&one).unwrap();
        let (mut stream, _) = net.served("192.0.2.1:80");
        for _ in 0..3 {
            path.restart();
            echo(&mut stream, 100_000);
            path.attach(&["a0", "a1"], rung);
            path.get().apply(&one).unwrap();
            echo(&mut stream, 100_000);
        }
        let totals = path.read().server_totals().unwrap();
        assert!(totals[0].1.bytes_in > 600_000, "counters go on: {totals:?}");
        // The member drains and leaves the plan: its flow stays.
        let mut other = one.clone();
        other.virtual_servers[0].members.remove(0);
        other.virtual_servers[0].members[0].state = MemberState::Up;
        let applied = path.get().apply(&other).unwrap();
        assert_eq!(applied.removed_members.len(), 1);
        echo(&mut stream, 100_000);
        // Without its virtual server it is ended, and both ends are notified.
        let mut resetter = Resetter::open().unwrap();
        assert_eq!(path.get().apply(&Plan::default()).unwrap().removed_virtual_servers, ["one"]);
        let ended = path.get().sweep(now()).unwrap().ended;
        assert_eq!(
            ended.iter().filter(|it| it.why == EndedFor::Removed && it.reset).count(),
            1,
            "{ended:?}"
        );
        for ended in &ended {
            resetter.reset(ended).unwrap();
        }
        let error = stream.read(&mut [0]).expect_err("a reset");
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
}

#[test]
fn what_rests_is_reset() {
    if !is_possible() {
        return;
    }
    let net = Net::new(1500);
    let _server = net.tcp_server("10.0.2.10:8080");
    let mut path = Path::open();
    let mut one = one_server(Protocol::Tcp, "192.0.2.1:80", "10.0.2.10", Some(8080));
    automap(&mut one, "10.0.2.1");
    one.timeouts.idle = Duration::from_secs(30);
    path.get().apply(&plan(one)).unwrap();
    path.attach(&["a0", "a1"], Rung::Xdp);
    let mut resetter = Resetter::open().unwrap();
    let (mut stream, seen) = net.served("192.0.2.1:80");
    echo(&mut stream, 1000);
    let filter = FlowFilter {
        client: Some("10.0.1.2".parse().unwrap()),
        flows_max: 10,
        ..FlowFilter::default()
    };
    // Until the last acknowledgement has passed.
    until("quiet", || net.server.run("ss -Htin sport = :8080").contains("unacked").eq(&false));
    let flows = path.get().flows(&filter).unwrap();
    assert_eq!((flows.len(), flows[0].state), (1, FlowState::Open));
    assert_eq!(flows[0].source.port, seen.port());
    assert!(path.get().sweep(now() + Duration::from_secs(29)).unwrap().ended.is_empty());
    let ended = path.get().sweep(now() + Duration::from_secs(32)).unwrap().ended;
    assert_eq!((ended.len(), ended[0].why, ended[0].reset), (1, EndedFor::Idle, true));
    assert_eq!(resetter.reset(&ended[0]).unwrap(), 2);
    let error = stream.read(&mut [0]).expect_err("a reset");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    until("the member is reset, too", || {
        net.server.run("ss -Htn state established sport = :8080").is_empty()
    });
    // A flow closed by both ends is forgotten soon.
    let (stream, _) = net.served("192.0.2.1:80");
    drop(stream);
    until("closed", || {
        path.get().flows(&filter).unwrap().iter().all(|flow| flow.state == FlowState::Closing)
    });
    let ended = path.get().sweep(now() + Duration::from_secs(6)).unwrap().ended;
    assert_eq!((ended.len(), ended[0].why, ended[0].reset), (1, EndedFor::Closed, false));
    // A command ends one.
    let (mut stream, _) = net.served("192.0.2.1:80");
    let flow = path.get().flows(&filter).unwrap().remove(0);
    let ended = path.get().end_flow(&flow).unwrap().expect("it was there");
    assert!(path.get().end_flow(&flow).unwrap().is_none());
    resetter.reset(&ended).unwrap();
    assert_eq!(
        stream.read(&mut [0]).expect_err("a reset").kind(),
        std::io::ErrorKind::ConnectionReset
    );
}

/// The segments that TCP of this namespace has sent again.
fn retransmitted(namespace: &support::Namespace) -> u64 {
    let counters = namespace.run("cat /proc/net/snmp");
    let mut lines = counters.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let [names, values] = [lines.next(), lines.next()].map(|line| line.expect("a line of TCP"));
    let position = names.split(' ').position(|name| name == "RetransSegs").expect("the counter");
    values.split(' ').nth(position).and_then(|value| value.parse().ok()).expect("a number")
}

#[test]
fn unresolved_neighbours_lose_no_packet() {
    if !is_possible() {
        return;
    }
    let net = Net::new(1500);
    let mut path = Path::open();
    let _server = net.tcp_server("10.0.2.10:8080");
    path.get()
        .apply(&plan(one_server(Protocol::Tcp, "192.0.2.1:80", "10.0.2.10", Some(8080))))
        .unwrap();
    for rung in [Rung::Xdp, Rung::Tcx] {
        path.attach(&["a0", "a1"], rung);
        net.adc.ip("neigh flush dev a1");
        let before = retransmitted(&net.client);
        let (mut stream, _) = net.served("192.0.2.1:80");
        assert_eq!(retransmitted(&net.client), before, "a SYN was lost");
        echo(&mut stream, 1000);
    }
    assert!(count(&path, Reason::NeighbourUnresolved) >= 1);
}

#[test]
fn tags_are_put_in_and_taken_out() {
    if !is_possible() {
        return;
    }
    let net = Net::new(1500);
    // Members in a VLAN, clients not; the reply crosses in the other direction.
    let made = std::process::Command::new("ip")
        .args([
            "-n",
            &net.adc.name,
            "link",
            "add",
            "link",
            "a1",
            "name",
            "a1.7",
            "type",
            "vlan",
            "id",
            "7",
        ])
        .output()
        .unwrap();
    if !made.status.success() {
        return weir_testing::skip_though_strict("this kernel has no VLAN devices");
    }
    net.server.ip("link add link s0 name s0.7 type vlan id 7");
    net.adc.ip("addr add 10.0.7.1/24 dev a1.7");
    net.server.ip("addr add 10.0.7.10/24 dev s0.7");
    net.adc.ip("link set a1.7 up");
    net.server.ip("link set s0.7 up");
    // The server takes tags as the wire has them.
    net.server.run("ethtool -K s0 rxvlan off txvlan off");
    net.adc.run("ethtool -K a1 rxvlan off txvlan off");
    let mut path = Path::open();
    let _server = net.tcp_server("10.0.7.10:8080");
    let mut one = one_server(Protocol::Tcp, "192.0.2.1:80", "10.0.7.10", Some(8080));
    automap(&mut one, "10.0.7.1");
    path.get().apply(&plan(one)).unwrap();
    path.attach(&["a0", "a1"], Rung::Xdp);
    let (mut stream, _) = net.served("192.0.2.1:80");
    echo(&mut stream, 1_000_000);
    let passed = count(&path, Reason::OtherDevice) + count(&path, Reason::NeighbourUnresolved);
    assert!(passed < 20, "XDP sends them itself: {passed}");
    drop(stream);
    // At the second rung the VLAN's device is an interface like any other.
    path.attach(&["a0", "a1.7"], Rung::Tcx);
    let (mut stream, _) = net.served("192.0.2.1:80");
    echo(&mut stream, 1_000_000);
}

#[test]
fn nothing_is_left_behind() {
    if !is_possible() {
        return;
    }
    let net = Net::new(1500);
    let mut path = Path::open();
    path.attach(&["a0", "a1"], Rung::Xdp);
    let folder = path.options.pins.join(&path.options.name);
    let attached = |net: &Net| net.adc.run("ip link show dev a0").contains("prog/xdp");
    assert!(attached(&net));
    // Simulates a crash.
    path.path.take().unwrap().release();
    assert!(attached(&net), "it stays");
    assert!(folder.exists());
    let pins = path.options.pins.clone();
    assert_eq!(weir_packet::detach_leftovers(&pins, None).unwrap(), ["test"]);
    until("detached", || !attached(&net));
    assert!(!folder.exists());
    assert!(weir_packet::detach_leftovers(&pins, None).unwrap().is_empty());
    // An interface that is no longer listed is released.
    path.path = Some(weir_packet::PacketPath::open(&path.options).unwrap());
    path.attach(&["a0", "a1"], Rung::Xdp);
    path.attach(&["a1"], Rung::Xdp);
    until("detached", || !attached(&net));
}

#[test]
fn syns_are_answered_with_cookies() {
    if !is_possible() {
        return;
    }
    let net = Net::new(1500);
    net.adc.set(&["net.ipv4.tcp_syncookies=2"]);
    let _server = Server::start(&net.adc, "10.0.1.1:80".parse().unwrap(), &net.adc.name);
    let mut path = Path::open();
    path.get()
        .apply(&Plan { syn_cookies: vec!["10.0.1.1:80".parse().unwrap()], ..Plan::default() })
        .unwrap();
    path.attach(&["a0"], Rung::Xdp);
    for connection in 1..=200 {
        let (mut stream, _) = net.served("10.0.1.1:80");
        echo(&mut stream, 100);
        assert!(count(&path, Reason::SynCookie) >= connection, "{:?}", path.read().reasons());
    }
}
