//! Cost of a packet, by BPF_PROG_TEST_RUN: `bench/packet-nanoseconds` keeps it for a commit.

mod support;

use std::time::{Duration, Instant};

use support::bed::*;
use support::is_possible;
use support::packet::{Carried, Packet};
use weir_packet::plan::*;
use weir_packet::{Rung, TrialOptions};
use weir_testing::Random;

/// Trials of each case; the median counts.
const TRIALS: u16 = 20_000;
/// Numbers of simultaneous flows.
const FLOWS: [u32; 3] = [1 << 10, 1 << 16, 1 << 20];
/// Room for flows beyond those of a measurement.
const SPARE_FLOWS: u32 = 16_384;
const SEED: u64 = 7;
/// The number of packets that use cached routes.
const ROUTES_EACH: u32 = 100;
/// A listener of this host behind SYN cookies.
const OWN_LISTENER: &str = "10.0.1.1:80";

fn some_plan() -> Plan {
    let mut snat =
        with_member(server("snat", Protocol::Tcp, "192.0.2.3:80"), "10.0.2.10", Some(8080));
    snat.source = source_addresses("10.0.2.1", 1_024, 65_535);
    let servers = vec![
        with_member(server("tcp4", Protocol::Tcp, "192.0.2.1:80"), "10.0.2.10", Some(8080)),
        snat,
        with_member(server("tcp6", Protocol::Tcp, "[2001:db8::1]:80"), "fd00:2::10", Some(8080)),
    ];
    Plan { syn_cookies: vec![OWN_LISTENER.parse().expect("an address")], ..plan(servers) }
}

/// The time of one trial, which has a number. A trial runs on the previous one's output packet: only the first is translated, so
/// each is a call of its own.
fn trial(bed: &mut Bed, number: u32, packet: &Packet) -> Duration {
    // weir does this regularly.
    if number.is_multiple_of(ROUTES_EACH) {
        bed.path.get().watch_routes(Instant::now()).expect("routes");
    }
    let packet = packet.bytes();
    let options = TrialOptions { rung: bed.rung, packet: &packet, interface: "in0", repeat: 1 };
    bed.path.get().trial(&options).expect("a trial").time
}

/// Median of trials with these packets, which are numbered from 0.
fn nanoseconds(bed: &mut Bed, packet: impl Fn(u16) -> Packet) -> u128 {
    let numbers = 0..TRIALS;
    let mut times: Vec<_> =
        numbers.map(|number| trial(bed, u32::from(number), &packet(number))).collect();
    times.sort();
    times[times.len() / 2].as_nanos()
}

fn syn(source: &str, port: u16, target: &str) -> Packet {
    Packet { hardware: ADC_IN, ..Packet::tcp(source, port, target, 80, SYN) }
}

/// The flow with a number, of an IPv4 client.
fn datagram(flow: u32) -> Packet {
    let [_, first, second, port] = flow.to_be_bytes();
    let source = format!("198.18.{first}.{second}");
    let packet = Packet::udp(&source, 4_000 + u16::from(port), "192.0.2.1", 53);
    Packet { hardware: ADC_IN, ttl: 255, ..packet }
}

/// Flows at random: their entries are in no cache of the processor if they are many.
fn nanoseconds_of_flows(rung: Rung, flows: u32) -> u128 {
    let server = server("udp4", Protocol::Udp, "192.0.2.1:53");
    let plan = plan(vec![with_member(server, "10.0.2.10", Some(5_353))]);
    let mut bed = Bed::sized(rung, &plan, flows + SPARE_FLOWS);
    for flow in 0..flows {
        trial(&mut bed, flow, &datagram(flow));
    }
    let mut random = Random::new(SEED);
    let numbers: Vec<u32> =
        (0..TRIALS).map(|_| (random.next() % u64::from(flows)) as u32).collect();
    nanoseconds(&mut bed, |number| datagram(numbers[usize::from(number)]))
}

/// `cargo test -p weir-packet --test cost -- --ignored --nocapture`
#[test]
#[ignore = "it measures, which needs a quiet machine"]
fn nanoseconds_per_packet_with_many_flows() {
    if !is_possible() {
        return;
    }
    for rung in [Rung::Xdp, Rung::Tcx] {
        for flows in FLOWS {
            let time = nanoseconds_of_flows(rung, flows);
            println!("{}\ta packet of {flows} flows\t{time}", rung.name());
        }
    }
}

/// `cargo test -p weir-packet --test cost -- --ignored --nocapture`
#[test]
#[ignore = "it measures, which needs a quiet machine"]
fn nanoseconds_per_packet() {
    if !is_possible() {
        return;
    }
    on_both(&some_plan(), |bed| {
        let rung = bed.rung;
        let tell = |name: &str, time: u128| println!("{}\t{name}\t{time}", rung.name());
        for (name, source, target) in [
            ("a flow of IPv4", "198.51.100.7", "192.0.2.1"),
            ("a flow of IPv4, source translated", "198.51.100.7", "192.0.2.3"),
            ("a flow of IPv6", "2001:db8:9::7", "2001:db8::1"),
            ("not ours", "198.51.100.7", "192.0.2.9"),
        ] {
            let mut packet = syn(source, 4_001, target);
            bed.run("in0", &packet.bytes());
            if let Carried::Tcp { flags, .. } = &mut packet.carried {
                *flags = ACK;
            }
            packet.ttl = 255;
            tell(name, nanoseconds(bed, |_| packet.clone()));
        }
        for (name, target) in [
            ("a SYN that begins a flow", "192.0.2.1"),
            ("a SYN that begins a flow, source translated", "192.0.2.3"),
        ] {
            tell(name, nanoseconds(bed, |number| syn("198.51.100.8", 10_000 + number, target)));
        }
        if rung == Rung::Xdp {
            // The bed has moved this thread to its namespace.
            std::fs::write("/proc/sys/net/ipv4/tcp_syncookies", "2").expect("cookies");
            let _listener = std::net::TcpListener::bind(OWN_LISTENER).expect("an own address");
            let flood = |number| syn("198.51.100.9", 10_000 + number, "10.0.1.1");
            tell("a SYN that is answered with a cookie", nanoseconds(bed, flood));
            let answered = bed.count(weir_packet::Reason::SynCookie);
            assert_eq!(answered, u64::from(TRIALS));
        }
    });
}
