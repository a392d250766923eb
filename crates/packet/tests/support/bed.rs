//! One namespace with a device towards clients and one towards members, whose neighbours are known;
//! packets pass through it by BPF_PROG_TEST_RUN.

use std::time::Instant;

use weir_packet::plan::*;
use weir_packet::{Reason, Rung, TrialOptions};

use super::packet::Hardware;
use super::{FLOWS_MAX, Namespace, Path};

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const ACK: u8 = 16;

pub const XDP_DROP: u32 = 1;
pub const XDP_PASS: u32 = 2;
pub const XDP_REDIRECT: u32 = 4;
pub const TCX_NEXT: u32 = u32::MAX;
pub const TCX_DROP: u32 = 2;
pub const TCX_REDIRECT: u32 = 7;

pub const ADC_IN: Hardware = [2, 0, 0, 0, 0xa, 0, 2, 0, 0, 0, 0xc, 0];
/// From the two devices to a neighbour behind them.
pub const TO_MEMBER: Hardware = [2, 0, 0, 0, 0x5, 1, 2, 0, 0, 0, 0xb, 0];
pub const TO_CLIENT: Hardware = [2, 0, 0, 0, 0xc, 0, 2, 0, 0, 0, 0xa, 0];

/// A namespace with two devices: `in0` towards clients, `out0` towards members; neighbour entries
/// are permanent.
pub struct Bed {
    pub path: Path,
    pub rung: Rung,
    /// Dropped last.
    namespace: Namespace,
}

impl Bed {
    pub fn new(rung: Rung, plan: &Plan) -> Self {
        Self::sized(rung, plan, FLOWS_MAX)
    }

    /// A bed with room for this many flows.
    pub fn sized(rung: Rung, plan: &Plan, flows_max: u32) -> Self {
        let namespace = Namespace::new("adc");
        namespace.ip("link add in0 address 02:00:00:00:0a:00 type veth peer name in1");
        namespace.ip("link add out0 address 02:00:00:00:0b:00 type veth peer name out1");
        for device in ["in0", "in1", "out0", "out1"] {
            namespace.ip(&format!("link set {device} up"));
        }
        // A veth transmits XDP frames only to a peer that accepts them.
        for peer in ["in1", "out1"] {
            namespace.run(&format!("ethtool -K {peer} gro on"));
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
        let mut path = Path::sized(flows_max);
        path.attach(&["in0", "out0"], rung);
        path.get().apply(plan).expect("the plan");
        Self { path, rung, namespace }
    }

    /// `ip` with these arguments, in the namespace.
    #[track_caller]
    pub fn ip(&self, words: &str) {
        self.namespace.ip(words);
    }

    /// More members whose hardware address is known.
    pub fn neighbours(&self, addresses: &[&str]) {
        for address in addresses {
            self.namespace.ip(&format!(
                "neigh add {address} lladdr 02:00:00:00:05:01 dev out0 nud permanent"
            ));
        }
    }

    /// Runs a frame; returns its verdict and the output frame.
    pub fn run(&mut self, interface: &str, packet: &[u8]) -> (u32, Vec<u8>) {
        let mut packet = packet.to_vec();
        // Packets are written as for the first device.
        if interface == "out0" && packet[..6] == ADC_IN[..6] {
            packet[..6].copy_from_slice(&TO_MEMBER[6..]);
        }
        // As weir does regularly: routes are cached if possible.
        self.path.get().watch_routes(Instant::now()).expect("routes");
        let options = TrialOptions { rung: self.rung, packet: &packet, interface, repeat: 1 };
        let trial = self.path.get().trial(&options).expect("a trial");
        (trial.verdict, trial.packet)
    }

    /// Expects a packet to be sent as another one.
    #[track_caller]
    pub fn becomes(&mut self, interface: &str, packet: &[u8], expected: &[u8]) {
        let (verdict, out) = self.run(interface, packet);
        assert_eq!(verdict, self.redirect(), "{:?}: {:?}", self.rung, self.counted());
        assert_eq!(hex(&out), hex(expected), "{:?}", self.rung);
    }

    #[track_caller]
    pub fn is_stopped(&mut self, interface: &str, packet: &[u8], reason: Reason) {
        let before = self.count(reason);
        let (verdict, out) = self.run(interface, packet);
        let is_passed = reason.verdict() == weir_packet::PacketVerdict::Passed;
        let expected = match (self.rung, is_passed) {
            (Rung::Xdp, true) => XDP_PASS,
            (Rung::Xdp, false) => XDP_DROP,
            (Rung::Tcx, true) => TCX_NEXT,
            (Rung::Tcx, false) => TCX_DROP,
        };
        assert_eq!(verdict, expected, "{:?}: {:?}", self.rung, self.counted());
        assert_eq!(hex(&out[6..]), hex(&packet[6..]), "it is as it was");
        assert_eq!(self.count(reason), before + 1, "{:?}: {:?}", self.rung, self.counted());
    }

    pub fn redirect(&self) -> u32 {
        if self.rung == Rung::Xdp { XDP_REDIRECT } else { TCX_REDIRECT }
    }

    pub fn count(&self, reason: Reason) -> u64 {
        let counts = self.path.read().reasons().expect("reasons");
        counts.iter().find(|it| it.reason == reason).expect("it is there").packets
    }

    pub fn counted(&self) -> Vec<(Reason, u64)> {
        let counts = self.path.read().reasons().expect("reasons");
        counts.iter().filter(|it| it.packets > 0).map(|it| (it.reason, it.packets)).collect()
    }
}

pub fn hex(bytes: &[u8]) -> String {
    let lines = bytes
        .chunks(16)
        .map(|line| line.iter().map(|byte| format!("{byte:02x} ")).collect::<String>());
    lines.collect::<Vec<_>>().join("\n")
}

pub fn server(name: &str, protocol: Protocol, destination: &str) -> VirtualServer {
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

pub fn with_member(mut server: VirtualServer, address: &str, port: Option<u16>) -> VirtualServer {
    server.members.push(Member::new(address.parse().expect("an address"), port));
    server
}

pub fn plan(virtual_servers: Vec<VirtualServer>) -> Plan {
    Plan { virtual_servers, ..Plan::default() }
}

/// Runs a test on both rungs, each in a namespace of its own.
pub fn on_both(plan: &Plan, run: impl Fn(&mut Bed)) {
    for rung in [Rung::Xdp, Rung::Tcx] {
        run(&mut Bed::new(rung, plan));
    }
}

pub fn source_addresses(address: &str, first: u16, last: u16) -> Source {
    Source::Addresses(vec![SourceAddress {
        address: address.parse().unwrap(),
        port_first: first,
        port_last: last,
    }])
}

pub fn ports_of(frame: &[u8]) -> (u16, u16) {
    halves(frame, 0)
}

/// The two 16-bit halves of a word behind the IP header.
pub fn halves(frame: &[u8], offset: usize) -> (u16, u16) {
    let at = offset + if frame[12] == 8 { 34 } else { 54 };
    (
        u16::from_be_bytes([frame[at], frame[at + 1]]),
        u16::from_be_bytes([frame[at + 2], frame[at + 3]]),
    )
}
