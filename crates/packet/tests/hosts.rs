//! Behaviour of hosts and neighbours: packets too big, drivers without XDP transmit, new hardware
//! addresses, tags, signals. The kernel's own TCP and UDP at both ends.

mod support;

use std::io::{Read, Write};
use std::net::UdpSocket;
use std::time::Duration;

use support::net::*;
use support::{Path, is_possible};
use weir_packet::plan::*;
use weir_packet::{FlowFilter, Reason, Rung, now};

#[test]
fn too_big_is_told() {
    if !is_possible() {
        return;
    }
    // Complete checksums, or those left to a device; through a device with XDP transmit, or one
    // without: packets for it are handled one rung lower.
    for (rung, client_sums, sends) in [
        (Rung::Xdp, "off", true),
        (Rung::Xdp, "off", false),
        (Rung::Tcx, "off", true),
        (Rung::Tcx, "on", true),
    ] {
        let net = Net::new(1500);
        net.client.run(&format!("ethtool -K c0 tx {client_sums}"));
        net.adc.run("ethtool -K a0 tx off");
        if !sends {
            net.client.run("ethtool -K c0 gro off");
        }
        // The path to the members has a smaller MTU than both ends know.
        net.adc.ip("route replace 10.0.2.0/24 dev a1 mtu lock 1300");
        net.adc.ip("-6 route del fd00:2::/64 dev a1");
        net.adc.ip("-6 route add fd00:2::/64 dev a1 mtu lock 1300");
        let mut path = Path::open();
        let _v4 = net.tcp_server("10.0.2.10:8080");
        let _v6 = net.tcp_server("[fd00:2::10]:8080");
        let v4 = one_server(Protocol::Tcp, "192.0.2.1:80", "10.0.2.10", Some(8080));
        let v6 = VirtualServer {
            name: "six".into(),
            ..one_server(Protocol::Tcp, "[2001:db8::1]:80", "fd00:2::10", Some(8080))
        };
        let udp = VirtualServer {
            name: "udp".into(),
            ..one_server(Protocol::Udp, "192.0.2.1:53", "10.0.2.10", Some(53))
        };
        path.get().apply(&Plan { virtual_servers: vec![v4, v6, udp], ..Plan::default() }).unwrap();
        let attached = path.attach(&["a0", "a1"], rung);
        assert_eq!(attached[0].sends_for_xdp, rung == Rung::Xdp && sends);
        for address in ["192.0.2.1:80", "[2001:db8::1]:80"] {
            let before = count(&path, Reason::TooBigAnswered);
            let (mut stream, _) = net.served(address);
            echo(&mut stream, 200_000);
            assert!(count(&path, Reason::TooBigAnswered) > before, "{rung:?} {sends} {address}");
        }
        sender_makes_fragments(&net, &path);
    }
}

/// A listener of this host behind a device without XDP transmit: the kernel answers SYNs itself.
#[test]
fn cookies_need_a_device_that_sends_for_xdp() {
    if !is_possible() {
        return;
    }
    let net = Net::new(1500);
    net.adc.set(&["net.ipv4.tcp_syncookies=2"]);
    let listener = net.adc.within(|| std::net::TcpListener::bind("[::]:80").unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"here");
        }
    });
    let listens = ["10.0.1.1:80", "[fd00:1::1]:80"];
    let syn_cookies = listens.iter().map(|address| address.parse().unwrap()).collect();
    let mut path = Path::open();
    path.get().apply(&Plan { syn_cookies, ..Plan::default() }).unwrap();
    for sends in [false, true] {
        net.client.run(&format!("ethtool -K c0 gro {}", if sends { "on" } else { "off" }));
        assert_eq!(path.attach(&["a0", "a1"], Rung::Xdp)[0].sends_for_xdp, sends);
        for address in listens {
            let before = count(&path, Reason::SynCookie);
            let mut stream = net.connect(address).unwrap();
            stream.read_exact(&mut [0; 4]).unwrap();
            assert_eq!(count(&path, Reason::SynCookie) > before, sends, "{address}");
        }
    }
}

/// A sender that allows fragmentation fragments once it has been notified.
fn sender_makes_fragments(net: &Net, path: &Path) {
    let member = net.server.within(|| UdpSocket::bind("10.0.2.10:53").unwrap());
    member.set_read_timeout(Some(STEP_MAX)).unwrap();
    net.client.set(&["net.ipv4.ip_no_pmtu_disc=1"]);
    let client = net.client.within(|| UdpSocket::bind("10.0.1.2:0").unwrap());
    // The MTU that TCP has learnt is not known here.
    net.client.ip("route flush cache");
    let before = count(path, Reason::TooBigAnswered);
    let datagram = [7; 1_400];
    client.send_to(&datagram, "192.0.2.1:53").unwrap();
    until("it is told", || count(path, Reason::TooBigAnswered) > before);
    until("its route knows", || net.client.run("ip route get 192.0.2.1").contains(" mtu "));
    client.send_to(&datagram, "192.0.2.1:53").unwrap();
    let mut buffer = [0; 2_000];
    assert_eq!(member.recv(&mut buffer).unwrap(), datagram.len());
}

/// The verifier gives up when a signal is pending, and weir receives signals while it loads: from
/// an operator, or of a child that ended.
#[test]
fn programs_are_loaded_though_signals_come() {
    if !is_possible() {
        return;
    }
    // It is stopped and continued, less and less often.
    let line = format!(
        "for rest in 0.005 0.01 0.02 0.04 0.08 0.2 0.4; do kill -STOP {0}; sleep 0.005; kill -CONT {0}; sleep $rest; done",
        std::process::id()
    );
    let mut sending =
        std::process::Command::new("sh").args(["-c", &line]).spawn().expect("a shell");
    let options = support::options(&format!("weir-packet-{}-signals", std::process::id()));
    let opened = weir_packet::PacketPath::open(&options);
    assert!(sending.wait().expect("its end").success());
    opened.unwrap().detach().unwrap();
    std::fs::remove_dir(&options.pins).unwrap();
}

#[test]
fn what_a_driver_does_not_send_for_xdp_is_sent_one_rung_lower() {
    if !is_possible() {
        return;
    }
    let net = Net::new(1500);
    // Neither XDP nor GRO: its peer passes it no XDP frames.
    net.server.run("ethtool -K s0 gro off");
    let mut path = Path::open();
    let _server = net.tcp_server("10.0.2.10:8080");
    path.get()
        .apply(&plan(one_server(Protocol::Tcp, "192.0.2.1:80", "10.0.2.10", Some(8080))))
        .unwrap();
    let names = ["a0".to_owned(), "a1".to_owned()];
    let sends = |path: &mut Path| -> Vec<bool> {
        let attached = path.attach(&["a0", "a1"], Rung::Xdp);
        attached.iter().map(|it| it.sends_for_xdp).collect()
    };
    assert_eq!(sends(&mut path), [true, false]);
    let (mut stream, _) = net.served("192.0.2.1:80");
    echo(&mut stream, 100_000);
    assert!(count(&path, Reason::OtherDevice) > 10);
    let seen = weir_packet::look(&names);
    net.server.run("ethtool -K s0 gro on");
    assert_ne!(weir_packet::look(&names), seen);
    assert_eq!(sends(&mut path), [true, true]);
    let before = count(&path, Reason::OtherDevice);
    echo(&mut stream, 100_000);
    assert_eq!(count(&path, Reason::OtherDevice), before);
    // A changed hardware address must be learned too.
    let seen = weir_packet::look(&names);
    net.adc.ip("link set a0 address 02:00:00:00:77:01");
    assert_ne!(weir_packet::look(&names), seen);
    path.attach(&["a0", "a1"], Rung::Xdp);
    net.client.ip("neigh flush dev c0");
    let before = count(&path, Reason::OtherHardware);
    echo(&mut stream, 100_000);
    assert_eq!(count(&path, Reason::OtherHardware), before);
}

#[test]
fn a_member_that_changes_its_hardware_address_is_found_again() {
    if !is_possible() {
        return;
    }
    for rung in [Rung::Xdp, Rung::Tcx] {
        let net = Net::new(1500);
        // Settings that would take longer otherwise.
        for (name, value) in [("delay_first_probe_time", 1), ("retrans_time_ms", 200)] {
            net.adc.set(&[&format!("net.ipv4.neigh.a1.{name}={value}")]);
        }
        let mut path = Path::open();
        let _server = net.tcp_server("10.0.2.10:8080");
        path.get()
            .apply(&plan(one_server(Protocol::Tcp, "192.0.2.1:80", "10.0.2.10", Some(8080))))
            .unwrap();
        path.attach(&["a0", "a1"], rung);
        let (mut stream, _) = net.served("192.0.2.1:80");
        echo(&mut stream, 1_000);
        let shown = || net.adc.run("ip neigh show 10.0.2.10 dev a1");
        // No packet reveals it: the host does not ask either, because its neighbour entry is
        // permanent.
        let own = net.adc.run("cat /sys/class/net/a1/address");
        let before = net.server.run("cat /sys/class/net/s0/address");
        net.server
            .ip(&format!("neigh replace 10.0.2.1 lladdr {} dev s0 nud permanent", own.trim()));
        net.server.ip("link set s0 address 02:00:00:00:99:01");
        net.server
            .ip(&format!("neigh replace 10.0.2.1 lladdr {} dev s0 nud permanent", own.trim()));
        // The state of a stale neighbour.
        net.adc.ip(&format!("neigh replace 10.0.2.10 lladdr {} dev a1 nud stale", before.trim()));
        stream.set_read_timeout(Some(Duration::from_millis(1500))).unwrap();
        stream.write_all(b"lost").unwrap();
        assert!(stream.read_exact(&mut [0; 4]).is_err(), "nobody has found it yet: {}", shown());
        assert!(path.read().confirm_neighbours().unwrap() > 0);
        stream.set_read_timeout(Some(STEP_MAX)).unwrap();
        stream.read_exact(&mut [0; 4]).expect("it is found");
        assert!(shown().contains("02:00:00:00:99:01"), "{}", shown());
    }
}

#[test]
fn only_neighbours_that_packets_go_to_are_confirmed() {
    if !is_possible() {
        return;
    }
    let net = Net::new(1500);
    // Besides the device with the programs: devices towards members and their routers, and an
    // unused one.
    for (number, device) in [(3, "toward"), (4, "router"), (5, "beside"), (6, "six")] {
        net.adc.ip(&format!("link add {device} type veth peer name {device}1"));
        for half in [device.to_owned(), format!("{device}1")] {
            net.adc.ip(&format!("link set {half} up"));
        }
        net.adc.ip(&format!("addr add 10.0.{number}.1/24 dev {device}"));
        net.adc.ip(&format!("-6 addr add fd00:{number}::1/64 dev {device} nodad"));
    }
    net.adc.ip("route add 10.0.9.0/24 nexthop via 10.0.3.9 nexthop via 10.0.4.9");
    net.adc.ip("-6 route add fd00:9::/64 via fd00:6::9");
    let rest = || {
        for (device, address) in [
            ("a0", "10.0.1.9"),
            ("toward", "10.0.3.9"),
            ("router", "10.0.4.9"),
            ("beside", "10.0.5.9"),
            ("six", "fd00:6::9"),
        ] {
            net.adc.ip(&format!(
                "neigh replace {address} lladdr 02:00:00:00:99:09 dev {device} nud stale"
            ));
        }
    };
    let stale = || -> Vec<String> {
        let shown = net.adc.run("ip neigh show nud stale");
        let words = |line: &str| line.split_whitespace().next().map(str::to_owned);
        let all = shown.lines().filter_map(words).filter(|it| !it.starts_with("fe80"));
        all.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    };
    let mut path = Path::open();
    path.attach(&["a0"], Rung::Tcx);
    let four = one_server(Protocol::Tcp, "192.0.2.1:80", "10.0.3.9", Some(80));
    let mut both = four.clone();
    both.members.push(Member::new("10.0.9.1".parse().unwrap(), None));
    let six = one_server(Protocol::Tcp, "[2001:db8::1]:80", "fd00:9::1", Some(80));
    let six = VirtualServer { name: "six".into(), ..six };
    let prefix = Prefix { address: "0.0.0.0".parse().unwrap(), length: 0 };
    let everything = vec![Destination { prefix, port: None }];
    let mut forward = VirtualServer::new("forward", Protocol::Any, everything);
    forward.delivery = Delivery::Route;
    for (virtual_servers, left) in [
        (vec![], &["10.0.3.9", "10.0.4.9", "10.0.5.9", "fd00:6::9"][..]),
        (vec![four], &["10.0.4.9", "10.0.5.9", "fd00:6::9"]),
        (vec![both.clone()], &["10.0.5.9", "fd00:6::9"]),
        (vec![both, six], &["10.0.5.9"]),
        // Packets that follow the routing table may go anywhere.
        (vec![forward], &[]),
    ] {
        path.get().apply(&Plan { virtual_servers, ..Plan::default() }).unwrap();
        rest();
        path.read().confirm_neighbours().unwrap();
        assert_eq!(stale(), left);
    }
}

#[test]
fn what_goes_by_the_routing_table_outlasts_its_virtual_server() {
    if !is_possible() {
        return;
    }
    let net = Net::new(1500);
    let mut path = Path::open();
    let _server = net.tcp_server("10.0.2.10:8080");
    let prefix = Prefix { address: "10.0.2.0".parse().unwrap(), length: 24 };
    let mut forward =
        VirtualServer::new("forward", Protocol::Any, vec![Destination { prefix, port: None }]);
    forward.delivery = Delivery::Route;
    path.get().apply(&plan(forward.clone())).unwrap();
    path.attach(&["a0", "a1"], Rung::Xdp);
    let (mut stream, _) = net.served("10.0.2.10:8080");
    path.get().sweep(now()).unwrap();
    assert_eq!(path.get().flows_to_members(), 0, "nobody has to wait for it");
    // While weir drains, new flows belong to the kernel.
    forward.delivery = Delivery::Pass;
    path.get().apply(&plan(forward)).unwrap();
    echo(&mut stream, 100_000);
    let (mut second, _) = net.served("10.0.2.10:8080");
    let all = FlowFilter { flows_max: 9, ..FlowFilter::default() };
    assert_eq!(path.get().flows(&all).unwrap().len(), 1);
    path.get().apply(&Plan::default()).unwrap();
    echo(&mut stream, 100_000);
    let ended = path.get().sweep(now()).unwrap().ended;
    assert_eq!((ended.len(), ended[0].reset), (1, false));
    for stream in [&mut stream, &mut second] {
        echo(stream, 100_000);
    }
}

/// Sends a frame of hexadecimal digits through a device, unchanged.
const SEND: &str = "import socket, sys\n\
    own = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\n\
    own.bind((sys.argv[1], 0))\n\
    own.send(bytes.fromhex(sys.argv[2]))";

fn send_frame(net: &Net, device: &str, frame: &[u8]) {
    let digits: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
    support::succeed(net.client.command("python3 -c").args([SEND, device, &digits]));
}

#[test]
fn a_tag_that_only_bears_a_priority_is_none_and_others_hide_nobody() {
    if !is_possible() {
        return;
    }
    if std::process::Command::new("python3").arg("-V").output().is_err() {
        return weir_testing::skip("python3 is not installed");
    }
    let net = Net::new(1500);
    let receiver = net.adc.run("cat /sys/class/net/a0/address");
    let receiver: Vec<u8> =
        receiver.trim().split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    let member = net.server.within(|| UdpSocket::bind("10.0.2.10:53").unwrap());
    member.set_read_timeout(Some(STEP_MAX)).unwrap();
    let mut path = Path::open();
    let mut plan = plan(one_server(Protocol::Udp, "192.0.2.1:53", "10.0.2.10", Some(53)));
    plan.deny = vec![Prefix { address: "203.0.113.0".parse().unwrap(), length: 24 }];
    path.get().apply(&plan).unwrap();
    let frame = |source: &str, tag: u16| {
        let mut packet = support::packet::Packet::udp(source, 4_000, "192.0.2.1", 53);
        packet.hardware[..6].copy_from_slice(&receiver);
        packet.tag = Some(tag);
        packet.bytes()
    };
    for rung in [Rung::Xdp, Rung::Tcx] {
        path.attach(&["a0", "a1"], rung);
        // A frame with an 802.1ad tag belongs to others, with any number. Frames sent after it show that it was
        // processed.
        let mut provider = frame("10.0.1.3", 0xa000);
        provider[12..14].copy_from_slice(&0x88a8u16.to_be_bytes());
        send_frame(&net, "c0", &provider);
        let before = count(&path, Reason::Denied);
        send_frame(&net, "c0", &frame("203.0.113.9", 0));
        until("it is denied", || count(&path, Reason::Denied) == before + 1);
        let client = Some("10.0.1.3".parse().unwrap());
        let filter = FlowFilter { client, flows_max: 9, ..FlowFilter::default() };
        assert_eq!(path.get().flows(&filter).unwrap().len(), 0, "{rung:?}");
        send_frame(&net, "c0", &frame("10.0.1.2", 0xa000));
        let mut buffer = [0; 64];
        let (length, from) = member.recv_from(&mut buffer).expect("the datagram");
        assert_eq!(
            (&buffer[..length], from.to_string().as_str()),
            (&b"weirgate"[..], "10.0.1.2:4000")
        );
        for tag in [0, 7] {
            let before = count(&path, Reason::Denied);
            send_frame(&net, "c0", &frame("203.0.113.9", tag));
            until("it is denied", || count(&path, Reason::Denied) == before + 1);
        }
    }
}
