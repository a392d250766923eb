//! Random packets compared with a model, and their checksums with Scapy's.

mod support;

use std::io::Write as _;
use std::process::{Command, Stdio};

use support::bed::*;
use support::is_possible;
use support::packet::{Carried, Packet};
use weir_packet::Rung;
use weir_packet::plan::*;
use weir_testing::Random;

/// Random fields of one flow.
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

/// Runs random packets and compares each with the model; returns the output frames.
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
        // Two sources of a protocol without ports look the same to the member: the second needs an
        // address of its own.
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

/// Reads frames as lines of hexadecimal digits, and lets Scapy recompute their checksums.
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
        return weir_testing::skip("no Python here has scapy (python3-scapy)");
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
