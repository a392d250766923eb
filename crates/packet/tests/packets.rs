//! Packet in, packet out: both programs by BPF_PROG_TEST_RUN, against packets whose checksums are computed from scratch.

mod support;

use support::packet::{Carried, Hardware, Packet};
use support::{Namespace, Path, is_possible};
use weir_packet::plan::*;
use weir_packet::{Reason, Rung, TrialOptions};

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
    namespace: Namespace,
    path: Path,
    rung: Rung,
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
        Self { namespace, path, rung }
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
