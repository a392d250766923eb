//! Packet in, packet out: both programs by BPF_PROG_TEST_RUN, against packets whose checksums are computed from scratch.

mod support;

use std::io::Write as _;
use std::process::{Command, Stdio};

use support::packet::{Carried, Hardware, Packet};
use support::{Namespace, Path, is_possible};
use weir_packet::plan::*;
use weir_packet::{Reason, Rung, TrialOptions};
use weir_testing::Random;

const SYN: u8 = 2;
const ACK: u8 = 16;

const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;
const XDP_REDIRECT: u32 = 4;
const TCX_NEXT: u32 = u32::MAX;
const TCX_DROP: u32 = 2;
const TCX_REDIRECT: u32 = 7;

const ADC_IN: Hardware = [2, 0, 0, 0, 0xa, 0, 2, 0, 0, 0, 0xc, 0];
/// From the two devices to a neighbour behind them.
const TO_MEMBER: Hardware = [2, 0, 0, 0, 0x5, 1, 2, 0, 0, 0, 0xb, 0];
const TO_CLIENT: Hardware = [2, 0, 0, 0, 0xc, 0, 2, 0, 0, 0, 0xa, 0];

/// A namespace with two devices: `in0` toward clients, `out0` toward members; neighbours are known for good.
struct Bed {
    path: Path,
    rung: Rung,
    /// Gone last.
    _namespace: Namespace,
}

impl Bed {
    fn new(rung: Rung, plan: &Plan) -> Self {
        let namespace = Namespace::new("adc");
        namespace.ip("link add in0 address 02:00:00:00:0a:00 type veth peer name in1");
        namespace.ip("link add out0 address 02:00:00:00:0b:00 type veth peer name out1");
        for device in ["in0", "in1", "out0", "out1"] {
            namespace.ip(&format!("link set {device} up"));
        }
        namespace.set(&["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"]);
        namespace.ip("addr add 10.0.1.1/24 dev in0");
        namespace.ip("addr add 10.0.2.1/24 dev out0");
        namespace.ip("addr add fd00:1::1/64 dev in0 nodad");
        namespace.ip("addr add fd00:2::1/64 dev out0 nodad");
        namespace.ip("route add default via 10.0.1.2");
        namespace.ip("-6 route add default via fd00:1::2");
        for (address, hardware, device) in [
            ("10.0.1.2", "02:00:00:00:0c:00", "in0"),
            ("fd00:1::2", "02:00:00:00:0c:00", "in0"),
            ("10.0.2.10", "02:00:00:00:05:01", "out0"),
            ("fd00:2::10", "02:00:00:00:05:01", "out0"),
        ] {
            namespace
                .ip(&format!("neigh add {address} lladdr {hardware} dev {device} nud permanent"));
        }
        namespace.enter();
        let mut path = Path::open();
        path.attach(&["in0", "out0"], rung);
        path.get().apply(plan).expect("the plan");
        Self { path, rung, _namespace: namespace }
    }

    /// Runs a frame; its verdict and what became of it.
    fn run(&mut self, interface: &str, packet: &[u8]) -> (u32, Vec<u8>) {
        let options = TrialOptions { rung: self.rung, packet, interface, repeat: 1 };
        let trial = self.path.get().trial(&options).expect("a trial");
        (trial.verdict, trial.packet)
    }

    /// Expects a packet to be sent as another one.
    #[track_caller]
    fn becomes(&mut self, interface: &str, packet: &[u8], expected: &[u8]) {
        let (verdict, out) = self.run(interface, packet);
        assert_eq!(verdict, self.redirect(), "{:?}: {:?}", self.rung, self.counted());
        assert_eq!(hex(&out), hex(expected), "{:?}", self.rung);
    }

    #[track_caller]
    fn is_stopped(&mut self, interface: &str, packet: &[u8], reason: Reason) {
        let before = self.count(reason);
        let (verdict, out) = self.run(interface, packet);
        let is_passed = reason.verdict() == weir_packet::Verdict::Passed;
        let expected = match (self.rung, is_passed) {
            (Rung::Xdp, true) => XDP_PASS,
            (Rung::Xdp, false) => XDP_DROP,
            (Rung::Tcx, true) => TCX_NEXT,
            (Rung::Tcx, false) => TCX_DROP,
        };
        assert_eq!(verdict, expected, "{:?}: {:?}", self.rung, self.counted());
        assert_eq!(hex(&out), hex(packet), "it is as it was");
        assert_eq!(self.count(reason), before + 1, "{:?}: {:?}", self.rung, self.counted());
    }

    fn redirect(&self) -> u32 {
        if self.rung == Rung::Xdp { XDP_REDIRECT } else { TCX_REDIRECT }
    }

    fn count(&self, reason: Reason) -> u64 {
        let counts = self.path.read().reasons().expect("reasons");
        counts.iter().find(|it| it.reason == reason).expect("it is there").packets
    }

    fn counted(&self) -> Vec<(Reason, u64)> {
        let counts = self.path.read().reasons().expect("reasons");
        counts.iter().filter(|it| it.packets > 0).map(|it| (it.reason, it.packets)).collect()
    }
}

fn hex(bytes: &[u8]) -> String {
    let lines = bytes
        .chunks(16)
        .map(|line| line.iter().map(|byte| format!("{byte:02x} ")).collect::<String>());
    lines.collect::<Vec<_>>().join("\n")
}

fn server(name: &str, protocol: Protocol, destination: &str) -> VirtualServer {
    let (address, port) = destination.rsplit_once(':').expect("an address and a port");
    let (address, length) = match address.split_once('/') {
        Some((address, length)) => (address, Some(length.parse().expect("a length"))),
        None => (address, None),
    };
    let address = address.trim_matches(['[', ']']).parse().expect("an address");
    let mut prefix = Prefix::host(address);
    prefix.length = length.unwrap_or(prefix.length);
    VirtualServer::new(name, protocol, vec![Destination { prefix, port: port.parse().ok() }])
}

fn with_member(mut server: VirtualServer, address: &str, port: Option<u16>) -> VirtualServer {
    server.members.push(Member::new(address.parse().expect("an address"), port));
    server
}

fn plan(virtual_servers: Vec<VirtualServer>) -> Plan {
    Plan { virtual_servers, ..Plan::default() }
}

/// Runs a test on both rungs, each in a namespace of its own.
fn on_both(plan: &Plan, run: impl Fn(&mut Bed)) {
    for rung in [Rung::Xdp, Rung::Tcx] {
        run(&mut Bed::new(rung, plan));
    }
}

#[test]
fn addresses_and_ports_are_translated_both_ways() {
    if !is_possible() {
        return;
    }
    let plan = plan(vec![
        with_member(server("tcp4", Protocol::Tcp, "192.0.2.1:80"), "10.0.2.10", Some(8080)),
        with_member(server("udp4", Protocol::Udp, "192.0.2.1:53"), "10.0.2.10", Some(5353)),
        with_member(server("tcp6", Protocol::Tcp, "[2001:db8::1]:80"), "fd00:2::10", Some(8080)),
        with_member(server("udp6", Protocol::Udp, "[2001:db8::1]:53"), "fd00:2::10", Some(5353)),
    ]);
    let cases = [
        (Packet::tcp("198.51.100.7", 4001, "192.0.2.1", 80, SYN), "10.0.2.10", 8080),
        (Packet::udp("198.51.100.7", 4001, "192.0.2.1", 53), "10.0.2.10", 5353),
        (Packet::tcp("2001:db8:9::7", 4001, "2001:db8::1", 80, SYN), "fd00:2::10", 8080),
        (Packet::udp("2001:db8:9::7", 4001, "2001:db8::1", 53), "fd00:2::10", 5353),
    ];
    on_both(&plan, |bed| {
        for (mut packet, member, port) in cases.clone() {
            packet.hardware = ADC_IN;
            packet.tos = 0x2b;
            let client = packet.source;
            let mut out = Packet {
                hardware: TO_MEMBER,
                ttl: 63,
                target: member.parse().unwrap(),
                ..packet.clone()
            };
            out.ports().1 = port;
            bed.becomes("in0", &packet.bytes(), &out.bytes());
            let mut answer = Packet {
                hardware: ADC_IN,
                source: out.target,
                target: client,
                ttl: 60,
                ..packet.clone()
            };
            *answer.ports() = (port, 4001);
            if let Carried::Tcp { flags, .. } = &mut answer.carried {
                *flags = SYN | ACK;
            }
            let mut back =
                Packet { hardware: TO_CLIENT, ttl: 59, source: packet.target, ..answer.clone() };
            *back.ports() = (packet.ports().1, 4001);
            bed.becomes("out0", &answer.bytes(), &back.bytes());
        }
        let totals = bed.path.get().server_totals().unwrap();
        assert_eq!(totals.iter().map(|it| it.1.flows).collect::<Vec<_>>(), [1; 4]);
        assert_eq!(totals[0].1.packets_in, 1);
        assert_eq!(totals[0].1.bytes_out, 48);
    });
}

fn source_addresses(address: &str, first: u16, last: u16) -> Source {
    Source::Addresses(vec![SourceAddress {
        address: address.parse().unwrap(),
        port_first: first,
        port_last: last,
    }])
}

fn ports_of(frame: &[u8]) -> (u16, u16) {
    halves(frame, 0)
}

/// Two halves of a word behind the IP header.
fn halves(frame: &[u8], offset: usize) -> (u16, u16) {
    let at = offset + if frame[12] == 8 { 34 } else { 54 };
    (
        u16::from_be_bytes([frame[at], frame[at + 1]]),
        u16::from_be_bytes([frame[at + 2], frame[at + 3]]),
    )
}

#[test]
fn sources_are_translated() {
    if !is_possible() {
        return;
    }
    let mut v4 = with_member(server("v4", Protocol::Any, "192.0.2.1:*"), "10.0.2.10", None);
    v4.source = source_addresses("10.0.2.1", 20_000, 20_099);
    let mut v6 = with_member(server("v6", Protocol::Any, "[2001:db8::1]:*"), "fd00:2::10", None);
    v6.source = source_addresses("fd00:2::1", 20_000, 20_099);
    on_both(&plan(vec![v4, v6]), |bed| {
        let echo = |kind| Carried::Icmp { kind, code: 0, word: 0x1234_0001 };
        for (packet, ours, member) in [
            (Packet::tcp("198.51.100.7", 4001, "192.0.2.1", 81, SYN), "10.0.2.1", "10.0.2.10"),
            (Packet::udp("198.51.100.7", 4001, "192.0.2.1", 81), "10.0.2.1", "10.0.2.10"),
            (Packet::new("198.51.100.7", "192.0.2.1", echo(8)), "10.0.2.1", "10.0.2.10"),
            (Packet::new("198.51.100.7", "192.0.2.1", Carried::Other(47)), "10.0.2.1", "10.0.2.10"),
            (Packet::tcp("2001:db8:9::7", 4001, "2001:db8::1", 81, SYN), "fd00:2::1", "fd00:2::10"),
            (Packet::new("2001:db8:9::7", "2001:db8::1", echo(128)), "fd00:2::1", "fd00:2::10"),
            (
                Packet::new("2001:db8:9::7", "2001:db8::1", Carried::Other(47)),
                "fd00:2::1",
                "fd00:2::10",
            ),
        ] {
            let packet = Packet { hardware: ADC_IN, ..packet };
            let (_, out) = bed.run("in0", &packet.bytes());
            let mut expected = Packet { hardware: TO_MEMBER, ttl: 63, ..packet.clone() };
            expected.source = ours.parse().unwrap();
            expected.target = member.parse().unwrap();
            let (source_port, identifier) = (ports_of(&out).0, halves(&out, 4).0);
            let mut answer = Packet {
                hardware: ADC_IN,
                source: expected.target,
                target: expected.source,
                ..packet.clone()
            };
            let mut back = Packet {
                hardware: TO_CLIENT,
                ttl: 63,
                source: packet.target,
                target: packet.source,
                ..packet.clone()
            };
            match &mut expected.carried {
                Carried::Icmp { word, kind, .. } => {
                    assert!((20_000..=20_099).contains(&identifier), "{identifier}");
                    *word = u32::from(identifier) << 16 | 1;
                    let kind = if *kind == 8 { 0 } else { 129 };
                    answer.carried = Carried::Icmp { kind, code: 0, word: *word };
                    back.carried = echo(kind);
                }
                Carried::Other(_) => {}
                _ => {
                    assert!((20_000..=20_099).contains(&source_port), "{source_port}");
                    *expected.ports() = (source_port, 81);
                    *answer.ports() = (81, source_port);
                    *back.ports() = (81, 4001);
                }
            }
            assert_eq!(hex(&out), hex(&expected.bytes()), "{:?} {:?}", bed.rung, bed.counted());
            bed.becomes("out0", &answer.bytes(), &back.bytes());
        }
    });
}

#[test]
fn ports_run_out_and_are_counted() {
    if !is_possible() {
        return;
    }
    let mut one = with_member(server("one", Protocol::Udp, "192.0.2.1:53"), "10.0.2.10", Some(53));
    let cpus = std::thread::available_parallelism().unwrap().get() as u16;
    one.source = source_addresses("10.0.2.1", 20_000, 20_000 + 2 * cpus - 1);
    on_both(&plan(vec![one]), |bed| {
        let frame = |port| {
            Packet { hardware: ADC_IN, ..Packet::udp("198.51.100.7", port, "192.0.2.1", 53) }
                .bytes()
        };
        let sent =
            (1..100).filter(|port| bed.run("in0", &frame(*port)).0 == bed.redirect()).count();
        assert!((2..=2 * usize::from(cpus)).contains(&sent), "{sent}");
        assert_eq!(bed.count(Reason::SourcePortsExhausted), 99 - sent as u64);
    });
}

#[test]
fn destinations_stay_where_the_next_hop_is_chosen() {
    if !is_possible() {
        return;
    }
    let mut direct =
        with_member(server("direct", Protocol::Tcp, "192.0.2.1:80"), "10.0.2.10", None);
    direct.delivery = Delivery::DirectReturn;
    direct.ttl = Ttl::Keep;
    let mut hop = with_member(server("hop", Protocol::Any, "203.0.113.0/24:*"), "10.0.2.10", None);
    hop.delivery = Delivery::NextHop;
    let mut route = server("route", Protocol::Any, "10.0.2.0/24:*");
    route.delivery = Delivery::Route;
    route.loose_initiation = true;
    route.tos = Some(0x48);
    route.ttl = Ttl::Set(9);
    on_both(&plan(vec![direct, hop, route]), |bed| {
        let tcp = |target, flags| Packet {
            hardware: ADC_IN,
            tos: 1,
            ..Packet::tcp("198.51.100.7", 4001, target, 80, flags)
        };
        let mut expect = |packet: Packet, ttl, tos| {
            let out = Packet { hardware: TO_MEMBER, ttl, tos, ..packet.clone() };
            bed.becomes("in0", &packet.bytes(), &out.bytes());
        };
        expect(tcp("192.0.2.1", SYN), 64, 1);
        expect(tcp("192.0.2.1", ACK), 64, 1);
        expect(tcp("203.0.113.77", SYN), 63, 1);
        expect(tcp("10.0.2.10", ACK), 9, 0x49);
        let back = Packet {
            hardware: ADC_IN,
            ..Packet::tcp("203.0.113.77", 80, "198.51.100.7", 4001, SYN | ACK)
        };
        bed.becomes(
            "out0",
            &back.bytes(),
            &Packet { hardware: TO_CLIENT, ttl: 63, ..back }.bytes(),
        );
        bed.is_stopped("in0", &tcp("203.0.113.78", ACK).bytes(), Reason::NotSyn);
        assert_eq!(
            bed.path
                .get()
                .flows(&weir_packet::FlowFilter { flows_max: 9, ..Default::default() })
                .unwrap()
                .len(),
            3
        );
    });
}

#[test]
fn fragments_follow_their_first() {
    if !is_possible() {
        return;
    }
    let plan = plan(vec![
        with_member(server("v4", Protocol::Udp, "192.0.2.1:53"), "10.0.2.10", Some(5353)),
        with_member(server("v6", Protocol::Udp, "[2001:db8::1]:53"), "fd00:2::10", Some(5353)),
    ]);
    on_both(&plan, |bed| {
        for (packet, member) in [
            (Packet::udp("198.51.100.7", 4001, "192.0.2.1", 53), "10.0.2.10"),
            (Packet::udp("2001:db8:9::7", 4001, "2001:db8::1", 53), "fd00:2::10"),
        ] {
            let payload = (0..100).collect();
            let packet = Packet { hardware: ADC_IN, payload, id: 77, df: false, ..packet };
            let mut whole = Packet {
                hardware: TO_MEMBER,
                ttl: 63,
                target: member.parse().unwrap(),
                ..packet.clone()
            };
            whole.ports().1 = 5353;
            let [first, second] = packet.fragments(48);
            bed.is_stopped("in0", &second, Reason::FragmentWithoutFirst);
            let [first_out, second_out] = whole.fragments(48);
            bed.becomes("in0", &first, &first_out);
            bed.becomes("in0", &second, &second_out);
        }
    });
}

#[test]
fn icmp_errors_are_translated_inside() {
    if !is_possible() {
        return;
    }
    let plan = plan(vec![
        with_member(server("v4", Protocol::Tcp, "192.0.2.1:80"), "10.0.2.10", Some(8080)),
        with_member(server("u4", Protocol::Udp, "192.0.2.1:53"), "10.0.2.10", Some(5353)),
        with_member(server("v6", Protocol::Tcp, "[2001:db8::1]:80"), "fd00:2::10", Some(8080)),
    ]);
    on_both(&plan, |bed| {
        for (packet, member, port, router) in [
            (
                Packet::tcp("198.51.100.7", 4001, "192.0.2.1", 80, SYN),
                "10.0.2.10",
                8080,
                "10.9.9.9",
            ),
            (Packet::udp("198.51.100.7", 4001, "192.0.2.1", 53), "10.0.2.10", 5353, "10.9.9.9"),
            (
                Packet::tcp("2001:db8:9::7", 4001, "2001:db8::1", 80, SYN),
                "fd00:2::10",
                8080,
                "fd00:9::9",
            ),
        ] {
            let packet = Packet { hardware: ADC_IN, ..packet };
            let mut sent = Packet {
                hardware: TO_MEMBER,
                ttl: 63,
                target: member.parse().unwrap(),
                ..packet.clone()
            };
            sent.ports().1 = port;
            bed.becomes("in0", &packet.bytes(), &sent.bytes());
            let (kind, code) = if packet.source.is_ipv4() { (3, 3) } else { (1, 4) };
            // The member's own error comes from the virtual address, a router's from the router.
            for (from, seen) in [(member, packet.target), (router, router.parse().unwrap())] {
                for quoted in [28, 1000] {
                    let about = |datagram: Vec<u8>| {
                        let header = if packet.source.is_ipv4() { 20 } else { 40 };
                        let quoted = if quoted == 28 { header + 8 } else { datagram.len() };
                        datagram[..quoted].to_vec()
                    };
                    let mut error =
                        Packet::new(from, "198.51.100.7", Carried::Icmp { kind, code, word: 0 });
                    error.target = packet.source;
                    error.hardware = ADC_IN;
                    error.payload = about(sent.datagram());
                    let mut out =
                        Packet { hardware: TO_CLIENT, ttl: 63, source: seen, ..error.clone() };
                    // As the client sent it, but for the hop that it has gone.
                    out.payload = about(Packet { ttl: 63, ..packet.clone() }.datagram());
                    bed.becomes("out0", &error.bytes(), &out.bytes());
                }
            }
        }
        let other = Packet::tcp("10.0.2.10", 1, "10.0.1.9", 2, SYN).datagram();
        let mut stray =
            Packet::new("10.0.2.10", "10.0.2.10", Carried::Icmp { kind: 3, code: 3, word: 0 });
        stray.payload = other;
        bed.is_stopped("in0", &stray.bytes(), Reason::IcmpWithoutFlow);
    });
}

#[test]
fn what_is_not_forwarded_is_counted() {
    if !is_possible() {
        return;
    }
    let mut full = plan(vec![
        with_member(server("v4", Protocol::Tcp, "192.0.2.1:80"), "10.0.2.10", Some(8080)),
        server("empty", Protocol::Tcp, "192.0.2.2:80"),
    ]);
    full.deny = vec![Prefix { address: "203.0.113.0".parse().unwrap(), length: 24 }];
    full.allow = vec![Prefix { address: "203.0.113.128".parse().unwrap(), length: 25 }];
    full.new_flows_per_source = Some(Rate { per_second: 1, burst: 3 });
    on_both(&full, |bed| {
        let tcp = |source, target, flags| Packet {
            hardware: ADC_IN,
            ..Packet::tcp(source, 4001, target, 80, flags)
        };
        let client = "198.51.100.7";
        bed.is_stopped("in0", &tcp(client, "192.0.2.9", SYN).bytes(), Reason::NotOurs);
        bed.is_stopped("in0", &tcp(client, "192.0.2.1", ACK).bytes(), Reason::NotSyn);
        bed.is_stopped("in0", &tcp(client, "192.0.2.2", SYN).bytes(), Reason::NoMember);
        bed.is_stopped("in0", &tcp("203.0.113.1", "192.0.2.1", SYN).bytes(), Reason::Denied);
        bed.is_stopped("in0", &tcp("203.0.113.1", "10.0.1.1", ACK).bytes(), Reason::Denied);
        let allowed = tcp("203.0.113.200", "192.0.2.1", SYN);
        assert_eq!(bed.run("in0", &allowed.bytes()).0, bed.redirect());
        let cut = tcp(client, "192.0.2.1", SYN).bytes();
        bed.is_stopped("in0", &cut[..40], Reason::Unparsed);
        bed.is_stopped(
            "in0",
            &Packet { ttl: 1, ..tcp(client, "192.0.2.1", SYN) }.bytes(),
            Reason::TtlExceeded,
        );
        bed.is_stopped(
            "in0",
            &Packet { options: vec![131, 3, 4, 0], ..tcp(client, "192.0.2.1", SYN) }.bytes(),
            Reason::SourceRoute,
        );
        let mut arp = cut.clone();
        arp[12..14].copy_from_slice(&[8, 6]);
        bed.is_stopped("in0", &arp, Reason::NotIp);
        for port in [1, 2] {
            let mut packet = tcp(client, "192.0.2.1", SYN);
            packet.ports().0 = port;
            assert_eq!(bed.run("in0", &packet.bytes()).0, bed.redirect());
        }
        let mut packet = tcp(client, "192.0.2.1", SYN);
        packet.ports().0 = 3;
        bed.is_stopped("in0", &packet.bytes(), Reason::SourceRate);
    });
}

#[test]
fn members_drain_and_go_down() {
    if !is_possible() {
        return;
    }
    let mut both =
        with_member(server("both", Protocol::Tcp, "192.0.2.1:80"), "10.0.2.10", Some(8080));
    both = with_member(both, "10.0.2.10", Some(8081));
    on_both(&plan(vec![both]), |bed| {
        let frame = |source: u16, flags| {
            Packet {
                hardware: ADC_IN,
                ..Packet::tcp("198.51.100.7", source, "192.0.2.1", 80, flags)
            }
            .bytes()
        };
        let member = |port| MemberName {
            virtual_server: "both".into(),
            address: "10.0.2.10".parse().unwrap(),
            port: Some(port),
        };
        let chosen: Vec<u16> =
            (1..200).map(|port| ports_of(&bed.run("in0", &frame(port, SYN)).1).1).collect();
        let first = chosen.iter().filter(|port| **port == 8080).count();
        assert!((60..140).contains(&first), "{first}");
        bed.path.get().set_member(&member(8080), MemberState::Draining).unwrap();
        for port in 1..200 {
            let (_, out) = bed.run("in0", &frame(port, ACK));
            assert_eq!(ports_of(&out).1, chosen[usize::from(port) - 1], "flows stay");
            assert_eq!(ports_of(&bed.run("in0", &frame(port + 1000, SYN)).1).1, 8081);
        }
        bed.path.get().set_member(&member(8080), MemberState::Down).unwrap();
        let port = 1 + chosen.iter().position(|port| *port == 8080).unwrap() as u16;
        bed.is_stopped("in0", &frame(port, ACK), Reason::MemberDown);
        assert_eq!(ports_of(&bed.run("in0", &frame(port, SYN)).1).1, 8081);
        let sweep = bed.path.get().sweep(weir_packet::now()).unwrap();
        assert!(sweep.whole);
        assert_eq!(sweep.ended.len(), first - 1);
        assert!(sweep.ended.iter().all(|ended| ended.why == weir_packet::EndedFor::MemberDown));
        let sweep =
            bed.path.get().sweep(weir_packet::now() + std::time::Duration::from_secs(11)).unwrap();
        assert!(!sweep.ended.is_empty(), "nobody has answered");
        assert!(
            sweep
                .ended
                .iter()
                .all(|ended| ended.why == weir_packet::EndedFor::Idle && !ended.reset)
        );
        bed.path.get().set_member(&member(8081), MemberState::Down).unwrap();
        bed.is_stopped("in0", &frame(9, SYN), Reason::NoMember);
        bed.path.get().set_member(&member(8080), MemberState::Up).unwrap();
        assert_eq!(ports_of(&bed.run("in0", &frame(9, SYN)).1).1, 8080);
    });
}

#[test]
fn a_full_table_drops_what_is_new() {
    if !is_possible() {
        return;
    }
    let one = plan(vec![with_member(
        server("one", Protocol::Udp, "192.0.2.1:53"),
        "10.0.2.10",
        Some(53),
    )]);
    let mut bed = Bed::new(Rung::Xdp, &one);
    drop(std::mem::replace(&mut bed.path, {
        let mut options = support::options(&format!("weir-packet-{}-full", std::process::id()));
        options.flows_max = 100;
        Path::with(options)
    }));
    bed.path.attach(&["in0", "out0"], Rung::Xdp);
    bed.path.get().apply(&one).unwrap();
    let frame = |port| {
        Packet { hardware: ADC_IN, ..Packet::udp("198.51.100.7", port, "192.0.2.1", 53) }.bytes()
    };
    let sent = (1..=300).filter(|port| bed.run("in0", &frame(*port)).0 == XDP_REDIRECT).count();
    assert!((90..=110).contains(&sent), "{sent}");
    assert_eq!(bed.count(Reason::FlowsFull), 300 - sent as u64);
    assert_eq!(bed.run("in0", &frame(1)).0, XDP_REDIRECT, "those that are there go on");
}

#[test]
fn a_large_segment_size_is_lowered() {
    if !is_possible() {
        return;
    }
    let mut one =
        with_member(server("one", Protocol::Tcp, "192.0.2.1:80"), "10.0.2.10", Some(8080));
    one.mss_max = Some(1200);
    on_both(&plan(vec![one]), |bed| {
        for (source, options, lowered) in [
            (1, vec![2, 4, 5, 180], vec![2, 4, 4, 176]),
            (2, vec![1, 2, 4, 5, 180, 1, 1, 0], vec![1, 2, 4, 4, 176, 1, 1, 0]),
            (3, vec![2, 4, 4, 0], vec![2, 4, 4, 0]),
        ] {
            let carried = |ports, options| Carried::Tcp {
                ports,
                sequence: 7,
                acknowledged: 0,
                flags: SYN,
                options,
            };
            let packet = Packet {
                hardware: ADC_IN,
                ..Packet::new("198.51.100.7", "192.0.2.1", carried((source, 80), options))
            };
            let out = Packet {
                hardware: TO_MEMBER,
                ttl: 63,
                target: "10.0.2.10".parse().unwrap(),
                carried: carried((source, 8080), lowered),
                ..packet.clone()
            };
            bed.becomes("in0", &packet.bytes(), &out.bytes());
        }
    });
}

/// One flow's fields, by chance.
fn some_packet(random: &mut Random, number: u32) -> Packet {
    let is_v4 = random.percent(50);
    let (source, target) = if is_v4 {
        (
            format!("198.{}.{}.{}", 18 + number % 2, random.below(256), 1 + random.below(254)),
            "192.0.2.1",
        )
    } else {
        (
            format!("2001:db8:9:{:x}::{:x}", random.below(65_536), 1 + random.below(65_535)),
            "2001:db8::1",
        )
    };
    let ports = (1 + random.below(65_535) as u16, 1 + random.below(65_535) as u16);
    let word = random.next() as u32;
    let carried = match random.below(4) {
        0 => {
            let options = vec![1; 4 * random.below(11)];
            Carried::Tcp {
                ports,
                sequence: random.next() as u32,
                acknowledged: word,
                flags: SYN,
                options,
            }
        }
        1 => Carried::Udp { ports, has_checksum: !is_v4 || random.percent(80) },
        2 => Carried::Icmp { kind: if is_v4 { 8 } else { 128 }, code: 0, word: word | 0x0001_0000 },
        _ => Carried::Other([47, 50, 132, 200][random.below(4)]),
    };
    let mut packet = Packet { hardware: ADC_IN, ..Packet::new(&source, target, carried) };
    packet.ttl = 2 + random.below(254) as u8;
    packet.tos = random.next() as u8;
    packet.id = random.next() as u32;
    packet.df = random.percent(50);
    packet.payload = (0..random.below(1200)).map(|_| random.next() as u8).collect();
    if random.percent(20) {
        (packet.options, packet.extension) = if is_v4 {
            (vec![1; 4 * (1 + random.below(10))], 0)
        } else {
            // Hop-by-hop or destination options that are all padding.
            let next = match packet.carried {
                Carried::Tcp { .. } => 6,
                Carried::Udp { .. } => 17,
                Carried::Icmp { .. } => 58,
                Carried::Other(number) => number,
            };
            (vec![next, 0, 1, 4, 0, 0, 0, 0], [0, 60][random.below(2)])
        };
    }
    packet
}

/// Runs random packets, with the model's word for each; the frames that came out.
fn random_packets(rung: Rung, seed: u64, packets: u32) -> Vec<Vec<u8>> {
    let mut v4 = with_member(server("v4", Protocol::Any, "192.0.2.1:*"), "10.0.2.10", None);
    v4.source = source_addresses("10.0.2.1", 1_024, 65_535);
    let mut v6 = with_member(server("v6", Protocol::Any, "[2001:db8::1]:*"), "fd00:2::10", None);
    v6.tos = Some(0xb8);
    let mut bed = Bed::new(rung, &plan(vec![v4, v6]));
    let mut random = Random::new(seed);
    let mut frames = Vec::new();
    for number in 0..packets {
        let packet = some_packet(&mut random, number);
        let (verdict, out) = bed.run("in0", &packet.bytes());
        // Two sources of a protocol without ports look the same to the member: the second has no address to itself.
        if verdict != bed.redirect() && matches!(packet.carried, Carried::Other(_)) {
            continue;
        }
        assert_eq!(
            verdict,
            bed.redirect(),
            "seed {seed}, packet {number}: {packet:?}: {:?}",
            bed.counted()
        );
        let mut expected = Packet { hardware: TO_MEMBER, ttl: packet.ttl - 1, ..packet.clone() };
        if packet.source.is_ipv4() {
            (expected.source, expected.target) =
                ("10.0.2.1".parse().unwrap(), "10.0.2.10".parse().unwrap());
            let header = packet.options.len();
            match &mut expected.carried {
                Carried::Icmp { word, .. } => {
                    *word = u32::from(halves(&out, header + 4).0) << 16 | (*word & 0xffff)
                }
                Carried::Other(_) => {}
                _ => expected.ports().0 = halves(&out, header).0,
            }
        } else {
            expected.target = "fd00:2::10".parse().unwrap();
            expected.tos = 0xb8 | (packet.tos & 3);
        }
        assert_eq!(hex(&out), hex(&expected.bytes()), "seed {seed}, packet {number}: {packet:?}");
        frames.push(out);
    }
    frames
}

#[test]
fn random_packets_are_as_the_model_says() {
    if !is_possible() {
        return;
    }
    for rung in [Rung::Xdp, Rung::Tcx] {
        let frames = random_packets(rung, 17, 10_000);
        assert!(frames.len() > 8_000, "{}", frames.len());
    }
}

/// Reads frames as lines of hexadecimal digits, and has Scapy compute their checksums anew.
const SCAPY: &str = r#"
import sys
from scapy.all import Ether, IP, IPv6, TCP, UDP, ICMP, Raw, ICMPv6EchoRequest
wrong = 0
for number, line in enumerate(sys.stdin):
    frame = bytes.fromhex(line.strip())
    packet = Ether(frame)
    protocol = packet[IP].proto if IP in packet else 0
    if protocol in (47, 50, 132, 200):
        carrier = packet[IP]
    else:
        carrier = next((packet[kind] for kind in (TCP, UDP, ICMP, ICMPv6EchoRequest) if kind in packet), None)
    if carrier is None:
        continue
    # What is carried is bytes, whatever the port makes Scapy think.
    body = carrier.payload.original
    carrier.remove_payload()
    if carrier.name == 'ICMPv6 Echo Request':
        carrier.data = frame[len(frame) - len(carrier.data):] if carrier.data else b''
    elif body:
        carrier.add_payload(Raw(body))
    if IP in packet:
        del packet[IP].chksum
    if carrier.name in ('TCP', 'ICMP') or carrier.name == 'UDP' and carrier.chksum:
        del carrier.chksum
    if carrier.name == 'ICMPv6 Echo Request':
        del carrier.cksum
    if bytes(packet) != frame:
        wrong += 1
        print(number, carrier.name, frame.hex()[:160], bytes(packet).hex()[:160])
print('wrong', wrong)
"#;

#[test]
fn checksums_are_as_scapy_computes_them() {
    if !is_possible() {
        return;
    }
    let has_scapy = |python: &&str| {
        Command::new(python)
            .args(["-c", "import scapy"])
            .output()
            .is_ok_and(|it| it.status.success())
    };
    let Some(python) = ["/usr/bin/python3", "python3"].into_iter().find(has_scapy) else {
        println!(
            "SKIPPED checksums_are_as_scapy_computes_them: this Python has no scapy (python3-scapy)"
        );
        return;
    };
    let frames = random_packets(Rung::Xdp, 18, 10_000);
    let lines: String = frames
        .iter()
        .map(|frame| frame.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n")
        .collect();
    let mut child = Command::new(python)
        .args(["-c", SCAPY])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("python");
    let mut input = child.stdin.take().expect("a pipe");
    let writing = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().expect("its end");
    writing.join().expect("no panic").expect("written");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.trim(), "wrong 0");
}

/// `cargo test -p weir-packet --test packets --release -- --ignored --nocapture`: nanoseconds per packet, on this machine.
#[test]
#[ignore = "it measures; it asserts nothing"]
fn nanoseconds_per_packet() {
    if !is_possible() {
        return;
    }
    let mut snat =
        with_member(server("snat", Protocol::Tcp, "192.0.2.3:80"), "10.0.2.10", Some(8080));
    snat.source = source_addresses("10.0.2.1", 20_000, 40_000);
    let plan = plan(vec![
        with_member(server("tcp4", Protocol::Tcp, "192.0.2.1:80"), "10.0.2.10", Some(8080)),
        snat,
        with_member(server("tcp6", Protocol::Tcp, "[2001:db8::1]:80"), "fd00:2::10", Some(8080)),
    ]);
    on_both(&plan, |bed| {
        for (name, first) in [
            ("IPv4", Packet::tcp("198.51.100.7", 4001, "192.0.2.1", 80, SYN)),
            ("IPv4, source translated", Packet::tcp("198.51.100.7", 4001, "192.0.2.3", 80, SYN)),
            ("IPv6", Packet::tcp("2001:db8:9::7", 4001, "2001:db8::1", 80, SYN)),
            ("not ours", Packet::tcp("198.51.100.7", 4001, "192.0.2.9", 80, SYN)),
        ] {
            let mut packet = Packet { hardware: ADC_IN, ..first };
            bed.run("in0", &packet.bytes());
            if let Carried::Tcp { flags, .. } = &mut packet.carried {
                *flags = ACK;
            }
            packet.ttl = 255;
            // A trial runs on what the one before has made of the packet: only the first is translated, so each is a call of its own,
            // unless the packet comes back as it was.
            let options = TrialOptions {
                rung: bed.rung,
                packet: &packet.bytes(),
                interface: "in0",
                repeat: 1,
            };
            let mut times: Vec<_> =
                (0..20_000).map(|_| bed.path.get().trial(&options).unwrap().time).collect();
            times.sort();
            println!("{} {name}: {} ns", bed.rung.name(), times[times.len() / 2].as_nanos());
        }
    });
}
