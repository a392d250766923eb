//! Invalid input, by BPF_PROG_TEST_RUN: forged ends of flows, frames for others, VLAN tags, the last ports, packets
//! that are too big.

mod support;

use support::bed::*;
use support::is_possible;
use support::packet::{Carried, Packet};
use weir_packet::plan::*;
use weir_packet::{Reason, Rung};

/// A segment with sequence numbers other than those of [`Packet::tcp`].
fn segment(mut packet: Packet, sequence: u32, acknowledged: u32) -> Vec<u8> {
    if let Carried::Tcp { sequence: its, acknowledged: acked, .. } = &mut packet.carried {
        (*its, *acked) = (sequence, acknowledged);
    }
    packet.payload.clear();
    packet.bytes()
}

/// The state of the first flow.
fn state(bed: &mut Bed) -> weir_packet::FlowState {
    let filter = weir_packet::FlowFilter { flows_max: 9, ..Default::default() };
    bed.path.get().flows(&filter).unwrap()[0].state
}

#[test]
fn only_an_expected_reset_ends_a_flow_and_only_if_nothing_follows() {
    if !is_possible() {
        return;
    }
    let one = with_member(server("one", Protocol::Tcp, "192.0.2.1:80"), "10.0.2.10", Some(80));
    on_both(&plan(vec![one]), |bed| {
        use weir_packet::FlowState::{Closing, Open};
        let up = |flags| Packet::tcp("198.51.100.7", 4001, "192.0.2.1", 80, flags);
        let down = |flags| Packet::tcp("10.0.2.10", 80, "198.51.100.7", 4001, flags);
        let send = |bed: &mut Bed, device: &str, bytes: Vec<u8>| {
            assert_eq!(bed.run(device, &bytes).0, bed.redirect(), "{:?}", bed.counted());
        };
        send(bed, "in0", segment(up(SYN), 1_000, 0));
        send(bed, "out0", segment(down(SYN | ACK), 5_000, 1_001));
        send(bed, "in0", segment(up(ACK), 1_001, 5_001));
        assert_eq!(state(bed), Open);
        // Forged: their senders do not know the sequence numbers.
        for sequence in [0, 1_000, 1_002, 0x8000_0000] {
            send(bed, "in0", segment(up(RST), sequence, 0));
            send(bed, "out0", segment(down(RST | ACK), sequence, 77));
            assert_eq!(state(bed), Open, "{sequence}");
        }
        for (device, packet) in [("in0", up(FIN | ACK)), ("out0", down(FIN | ACK))] {
            send(bed, device, segment(packet, 0x4000_0000, 0));
        }
        assert_eq!(state(bed), Open);
        let later = weir_packet::now() + std::time::Duration::from_secs(60);
        assert!(bed.path.get().sweep(later).unwrap().ended.is_empty());
        // One that fits, followed by more data: of the sender itself, or of the other side a little
        // later.
        send(bed, "in0", segment(up(RST), 1_001, 0));
        assert_eq!(state(bed), Closing);
        send(bed, "in0", segment(up(ACK), 1_001, 5_001));
        assert_eq!(state(bed), Open);
        send(bed, "out0", segment(down(RST), 5_001, 0));
        assert_eq!(state(bed), Closing);
        std::thread::sleep(std::time::Duration::from_millis(20));
        send(bed, "in0", segment(up(ACK), 1_001, 5_001));
        assert_eq!(state(bed), Open);
        // The same for a FIN followed by data.
        for (device, packet, sequence) in
            [("in0", up(FIN | ACK), 1_001), ("out0", down(FIN | ACK), 5_001)]
        {
            send(bed, device, segment(packet, sequence, 5_001));
        }
        assert_eq!(state(bed), Closing);
        let mut more = up(ACK);
        more.payload = vec![0; 100];
        if let Carried::Tcp { sequence, acknowledged, .. } = &mut more.carried {
            (*sequence, *acknowledged) = (1_002, 5_002);
        }
        send(bed, "in0", more.bytes());
        assert_eq!(state(bed), Open);
        // A reset in answer has the number that its sender received last.
        send(bed, "out0", segment(down(ACK), 5_002, 1_050));
        send(bed, "in0", segment(up(RST), 1_050, 0));
        assert_eq!(state(bed), Closing);
        let ended = bed.path.get().sweep(later).unwrap().ended;
        assert_eq!((ended.len(), ended[0].why), (1, weir_packet::EndedFor::Closed));
    });
}

/// A client has reused a port whose last connection had no visible end. Its numbers are lower than
/// those.
#[test]
fn a_connection_that_takes_an_old_one_s_ports_ends_by_its_own_numbers() {
    if !is_possible() {
        return;
    }
    let one = with_member(server("one", Protocol::Tcp, "192.0.2.1:80"), "10.0.2.10", Some(80));
    on_both(&plan(vec![one]), |bed| {
        let up = |flags| Packet::tcp("198.51.100.7", 4001, "192.0.2.1", 80, flags);
        let down = |flags| Packet::tcp("10.0.2.10", 80, "198.51.100.7", 4001, flags);
        // Of the first connection only the client has ended its side.
        let (first, second) = ((0x7000_0000, 0x6000_0000), (0x1000, 0x2000));
        for (client, member) in [first, second] {
            let mut send = |device: &str, bytes: Vec<u8>| {
                assert_eq!(bed.run(device, &bytes).0, bed.redirect(), "{:?}", bed.counted());
            };
            send("in0", segment(up(SYN), client, 0));
            send("out0", segment(down(SYN | ACK), member, client + 1));
            send("in0", segment(up(ACK), client + 1, member + 1));
            if (client, member) == first {
                send("in0", segment(up(FIN | ACK), client + 1, member + 1));
                continue;
            }
            send("out0", segment(down(FIN | ACK), member + 1, client + 1));
            // The client's end belonged to the former connection.
            assert_eq!(state(bed), weir_packet::FlowState::Open);
            let bytes = segment(up(FIN | ACK), client + 1, member + 2);
            assert_eq!(bed.run("in0", &bytes).0, bed.redirect());
            assert_eq!(state(bed), weir_packet::FlowState::Closing);
        }
    });
}

/// Both ends of an open connection: the client's next number is 1,001, and the member's 5,301.
const OPENED: [(&str, u8, u32, u32); 4] = [
    ("in0", SYN, 1_000, 0),
    ("out0", SYN | ACK, 5_000, 1_001),
    ("in0", ACK, 1_001, 5_001),
    ("out0", ACK, 5_301, 1_001),
];

/// Segments of [`OPENED`], and those after it: the side, its flags, its number and its
/// acknowledgement.
#[track_caller]
fn send(bed: &mut Bed, segments: &[(&str, u8, u32, u32)]) {
    for (device, flags, sequence, acknowledged) in segments {
        let packet = match *device {
            "in0" => Packet::tcp("198.51.100.7", 4001, "192.0.2.1", 80, *flags),
            _ => Packet::tcp("10.0.2.10", 80, "198.51.100.7", 4001, *flags),
        };
        let bytes = segment(packet, *sequence, *acknowledged);
        assert_eq!(bed.run(device, &bytes).0, bed.redirect(), "{:?}", bed.counted());
    }
}

/// A burst lost on its way here moves the numbers far from those seen last. The acknowledgements
/// distinguish it from forged segments.
#[test]
fn an_end_after_a_lost_burst_is_seen() {
    if !is_possible() {
        return;
    }
    let one = with_member(server("one", Protocol::Tcp, "192.0.2.1:80"), "10.0.2.10", Some(80));
    on_both(&plan(vec![one]), |bed| {
        send(bed, &OPENED);
        send(bed, &[("out0", FIN | ACK, 5_301, 1_001), ("in0", FIN | ACK, 201_001, 5_101)]);
        assert_eq!(state(bed), weir_packet::FlowState::Closing);
        // The lost data is sent again.
        send(bed, &[("in0", ACK, 1_001, 5_302)]);
        assert_eq!(state(bed), weir_packet::FlowState::Closing);
    });
}

#[test]
fn forged_numbers_lead_the_way_for_no_end() {
    if !is_possible() {
        return;
    }
    let one = with_member(server("one", Protocol::Tcp, "192.0.2.1:80"), "10.0.2.10", Some(80));
    on_both(&plan(vec![one]), |bed| {
        send(bed, &OPENED);
        for (flags, far) in [(RST, 0x2000_0000), (FIN | ACK, 0x3000_0000)] {
            // Data acknowledged before, and data never sent.
            for acknowledged in [0, 5_000, 5_302] {
                send(bed, &[("in0", ACK, far, acknowledged), ("in0", flags, far, acknowledged)]);
                send(bed, &[("out0", ACK, far, far), ("out0", flags, far, far)]);
                send(bed, &[("in0", RST, far, 0)]);
                assert_eq!(state(bed), weir_packet::FlowState::Open, "{flags} {acknowledged}");
            }
        }
        // Outside any window.
        send(bed, &[("in0", FIN | ACK, 0x5000_0000, 5_301), ("out0", FIN | ACK, 5_301, 1_001)]);
        assert_eq!(state(bed), weir_packet::FlowState::Open);
    });
}

#[test]
fn a_forged_syn_leads_the_way_for_no_reset() {
    if !is_possible() {
        return;
    }
    let one = with_member(server("one", Protocol::Tcp, "192.0.2.1:80"), "10.0.2.10", Some(80));
    on_both(&plan(vec![one]), |bed| {
        send(bed, &OPENED);
        // With the receiver's reply to it (RFC 5961, 4.2).
        send(bed, &[("in0", SYN, 0x2000_0000, 0), ("out0", ACK, 5_301, 1_001)]);
        send(bed, &[("in0", RST, 0x2000_0001, 0)]);
        assert_eq!(state(bed), weir_packet::FlowState::Open);
    });
}

#[test]
fn later_fragments_say_nothing_of_a_connection() {
    if !is_possible() {
        return;
    }
    let one = with_member(server("one", Protocol::Tcp, "192.0.2.1:80"), "10.0.2.10", Some(80));
    on_both(&plan(vec![one]), |bed| {
        let tcp = |sequence: u32, flags| {
            let mut packet = Packet::tcp("198.51.100.7", 4001, "192.0.2.1", 80, flags);
            if let Carried::Tcp { sequence: its, .. } = &mut packet.carried {
                *its = sequence;
            }
            packet
        };
        let mut large = tcp(0xffff_f001, ACK);
        large.payload = vec![1; 900];
        let [first, later] = large.fragments(600);
        for bytes in [segment(tcp(0, SYN), 0xffff_f000, 0), first, later] {
            assert_eq!(bed.run("in0", &bytes).0, bed.redirect(), "{:?}", bed.counted());
        }
        // Where the first fragment ends.
        let reset = segment(tcp(0, RST), 0xffff_f001 + 580, 0);
        assert_eq!(bed.run("in0", &reset).0, bed.redirect());
        assert_eq!(state(bed), weir_packet::FlowState::Closing);
    });
}

#[test]
fn frames_for_other_hardware_are_left_alone() {
    if !is_possible() {
        return;
    }
    let mut plan = plan(vec![with_member(
        server("one", Protocol::Tcp, "192.0.2.1:80"),
        "10.0.2.10",
        Some(80),
    )]);
    plan.deny = vec![Prefix { address: "203.0.113.0".parse().unwrap(), length: 24 }];
    on_both(&plan, |bed| {
        let mut syn = Packet::tcp("198.51.100.7", 4001, "192.0.2.1", 80, SYN);
        assert_eq!(bed.run("in0", &syn.bytes()).0, bed.redirect());
        syn.ports().0 = 4002;
        syn.hardware[5] = 1;
        bed.is_stopped("in0", &syn.bytes(), Reason::OtherHardware);
        // Neither is an existing flow.
        syn.ports().0 = 4001;
        bed.is_stopped("in0", &syn.bytes(), Reason::OtherHardware);
        // Broadcast: none of ours, but `deny` applies.
        syn.hardware[..6].copy_from_slice(&[255; 6]);
        bed.is_stopped("in0", &syn.bytes(), Reason::NotIp);
        syn.source = "203.0.113.9".parse().unwrap();
        bed.is_stopped("in0", &syn.bytes(), Reason::Denied);
    });
}

/// The frame with these tags: of their protocols, and their numbers.
fn tagged(packet: &Packet, tags: &[(u16, u16)]) -> Vec<u8> {
    let plain = packet.bytes();
    let mut bytes = plain[..12].to_vec();
    for (protocol, tag) in tags {
        bytes.extend_from_slice(&protocol.to_be_bytes());
        bytes.extend_from_slice(&tag.to_be_bytes());
    }
    bytes.extend_from_slice(&plain[12..]);
    bytes
}

#[test]
fn tags_are_known_or_left_alone_and_hide_nobody_from_deny() {
    if !is_possible() {
        return;
    }
    const Q: u16 = 0x8100;
    const AD: u16 = 0x88a8;
    let mut plan = plan(vec![with_member(
        server("one", Protocol::Tcp, "192.0.2.1:80"),
        "10.0.2.10",
        Some(80),
    )]);
    let prefix = |address: &str, length| Prefix { address: address.parse().unwrap(), length };
    plan.deny = vec![prefix("203.0.113.0", 24), prefix("2001:db8:bad::", 48)];
    let good = Packet::tcp("198.51.100.7", 4001, "192.0.2.1", 80, SYN);
    let denied = [
        Packet::tcp("203.0.113.1", 4001, "192.0.2.1", 80, SYN),
        Packet::tcp("203.0.113.1", 4001, "10.0.1.1", 22, ACK),
        Packet::tcp("2001:db8:bad::1", 4001, "fd00:1::1", 22, SYN),
    ];
    let stacks: [&[(u16, u16)]; 6] = [
        &[(Q, 7)],
        &[(AD, 7)],
        &[(AD, 7), (Q, 8)],
        &[(Q, 7), (Q, 8)],
        &[(Q, 0), (Q, 8)],
        // The number 0 with a priority.
        &[(Q, 0xe000)],
    ];
    on_both(&plan, |bed| {
        for tags in stacks {
            for packet in &denied {
                bed.is_stopped("in0", &tagged(packet, tags), Reason::Denied);
            }
        }
        for tags in &stacks[..5] {
            let before = bed.count(Reason::NotOurs);
            let (verdict, _) = bed.run("in0", &tagged(&good, tags));
            assert_eq!(verdict, if bed.rung == Rung::Xdp { XDP_PASS } else { TCX_NEXT });
            assert_eq!(bed.count(Reason::NotOurs) - before, 1);
        }
        // A tag with only a priority is removed; at tcx the kernel has removed it already, which a
        // trial leaves out.
        if bed.rung == Rung::Tcx {
            return;
        }
        let mut out = Packet { hardware: TO_MEMBER, ttl: 63, ..good.clone() };
        out.target = "10.0.2.10".parse().unwrap();
        bed.becomes("in0", &tagged(&good, &[(Q, 0xe000)]), &out.bytes());
        // Three tags are more than the programs parse.
        bed.is_stopped("in0", &tagged(&denied[0], &[(AD, 1), (Q, 2), (Q, 3)]), Reason::NotIp);
        let cut = tagged(&good, &[(Q, 7)]);
        bed.is_stopped("in0", &cut[..16], Reason::Unparsed);
    });
}

#[test]
fn the_last_ports_are_found() {
    if !is_possible() {
        return;
    }
    let mut one = with_member(server("one", Protocol::Udp, "192.0.2.1:53"), "10.0.2.10", Some(53));
    one.source = source_addresses("10.0.2.1", 2_000, 2_063);
    on_both(&plan(vec![one]), |bed| {
        let sent = |bed: &mut Bed, port: u16| {
            let packet = Packet::udp("198.51.100.7", port, "192.0.2.1", 53);
            bed.run("in0", &packet.bytes()).0 == bed.redirect()
        };
        let all = (1..=64).filter(|port| sent(bed, *port)).count();
        assert_eq!(all, 64, "{:?}", bed.counted());
        assert!(!sent(bed, 65));
        assert_eq!(bed.count(Reason::SourcePortsExhausted), 1);
        // One port is free, anywhere: a client that retries gets it within a few attempts.
        let filter = weir_packet::FlowFilter { flows_max: 99, ..Default::default() };
        let flows = bed.path.get().flows(&filter).unwrap();
        bed.path.get().end_flow(&flows[40]).unwrap().expect("it was there");
        let tries = (1..=16).find(|_| sent(bed, 65)).expect("the free port");
        assert!(tries <= 8, "{tries}");
    });
}

#[test]
fn too_big_is_answered_on_both_rungs() {
    if !is_possible() {
        return;
    }
    let one = with_member(server("one", Protocol::Any, "192.0.2.1:*"), "10.0.2.10", None);
    let six = with_member(server("six", Protocol::Any, "[2001:db8::1]:*"), "fd00:2::10", None);
    on_both(&plan(vec![one, six]), |bed| {
        let shell = |words: &str| {
            let done = std::process::Command::new("ip").args(words.split_whitespace()).status();
            assert!(done.unwrap().success(), "{words}");
        };
        shell("route replace 10.0.2.0/24 dev out0 mtu lock 1300");
        shell("-6 route del fd00:2::/64 dev out0");
        shell("-6 route add fd00:2::/64 dev out0 mtu lock 1300");
        for (first, df) in [
            (Packet::tcp("198.51.100.7", 4001, "192.0.2.1", 80, SYN), true),
            (Packet::udp("198.51.100.7", 4001, "192.0.2.1", 80), true),
            (Packet::udp("198.51.100.7", 4002, "192.0.2.1", 80), false),
            (Packet::tcp("2001:db8:9::7", 4001, "2001:db8::1", 80, SYN), true),
            (Packet::udp("2001:db8:9::7", 4001, "2001:db8::1", 80), true),
        ] {
            let mut big = Packet { df, ..first };
            big.payload = vec![3; 1_400];
            let before = bed.count(Reason::TooBigAnswered);
            let (verdict, out) = bed.run("in0", &big.bytes());
            assert_eq!(verdict, bed.redirect(), "{:?}: {:?}", bed.rung, bed.counted());
            assert_eq!(bed.count(Reason::TooBigAnswered), before + 1);
            let is_v4 = big.source.is_ipv4();
            let mut answer = Packet::new(
                "192.0.2.1",
                "198.51.100.7",
                Carried::Icmp {
                    kind: if is_v4 { 3 } else { 2 },
                    code: if is_v4 { 4 } else { 0 },
                    word: 1_300,
                },
            );
            (answer.source, answer.target) = (big.target, big.source);
            answer.hardware = TO_CLIENT;
            answer.payload = big.datagram()[..64].to_vec();
            let expected = answer.bytes();
            // But for the header, whose fields are its own.
            let header = if is_v4 { 34 } else { 54 };
            assert_eq!(hex(&out[header..]), hex(&expected[header..]), "{:?}", bed.rung);
            assert_eq!(out[..12], expected[..12]);
        }
        // A fragment other than the first gets no error.
        let mut big = Packet::udp("198.51.100.7", 4003, "192.0.2.1", 80);
        big.payload = vec![3; 2_800];
        let [first, later] = big.fragments(1_000);
        assert_eq!(bed.run("in0", &first).0, bed.redirect());
        bed.is_stopped("in0", &later, Reason::TooBig);
        // A sender that sends nothing else does not get an error each time.
        let mut many = Packet::udp("198.51.100.7", 4_001, "192.0.2.1", 80);
        many.payload = vec![3; 1_400];
        let (answered, began) = (bed.count(Reason::TooBigAnswered), std::time::Instant::now());
        for _ in 0..5_000 {
            bed.run("in0", &many.bytes());
        }
        let answered = bed.count(Reason::TooBigAnswered) - answered;
        let cores = std::thread::available_parallelism().unwrap().get() as u64;
        let due = began.elapsed().as_millis() as u64;
        assert!(answered >= 100, "{answered}");
        assert!(answered <= cores * (200 + due + 10), "{answered} in {due} ms");
        assert!(bed.count(Reason::TooBig) > 1, "{:?}", bed.counted());
    });
}

/// The kernel passes packets longer than the header's length field allows (BIG TCP): the field is
/// 0.
#[test]
fn what_is_too_long_for_its_header_is_counted_whole() {
    if !is_possible() {
        return;
    }
    let servers = [("v4", "192.0.2.1:80", "10.0.2.10"), ("v6", "[2001:db8::1]:80", "fd00:2::10")];
    let servers = servers
        .map(|(name, at, member)| with_member(server(name, Protocol::Tcp, at), member, Some(80)));
    let mut bed = Bed::new(Rung::Tcx, &plan(servers.into()));
    for (number, source, target, length_at) in
        [(0, "198.51.100.7", "192.0.2.1", 16), (1, "2001:db8:9::7", "2001:db8::1", 18)]
    {
        let up =
            |flags| Packet { hardware: ADC_IN, ..Packet::tcp(source, 4_001, target, 80, flags) };
        let begins = up(SYN).bytes();
        assert_eq!(bed.run("in0", &begins).0, TCX_REDIRECT, "{:?}", bed.counted());
        let mut more = Packet { payload: vec![1; 700], ..up(ACK) }.bytes();
        more[length_at..length_at + 2].fill(0);
        assert_eq!(bed.run("in0", &more).0, TCX_REDIRECT, "{:?}", bed.counted());
        let bytes = bed.path.get().server_totals().unwrap()[number].1.bytes_in;
        assert_eq!(bytes, (begins.len() + more.len() - 2 * 14) as u64);
    }
}

/// A member remembers a connection that it has closed for a minute (TIME-WAIT), and may refuse a new one from its port.
#[test]
fn a_port_rests_while_others_of_the_same_member_are_free() {
    if !is_possible() {
        return;
    }
    let servers = [("one", "192.0.2.1:80", "10.0.2.10"), ("two", "192.0.2.2:80", "10.0.2.11")];
    let servers = servers.map(|(name, at, member)| {
        let mut server = with_member(server(name, Protocol::Tcp, at), member, Some(80));
        server.source = source_addresses("10.0.2.1", 20_000, 20_099);
        server
    });
    let mut bed = Bed::new(Rung::Tcx, &plan(servers.into()));
    // Each core takes ports in turn.
    let mut only_one = rustix::thread::CpuSet::new();
    only_one.set(rustix::thread::sched_getcpu());
    rustix::thread::sched_setaffinity(None, &only_one).expect("one core");
    let mut of_first = Vec::new();
    for number in 0..80 {
        let target = if number % 4 == 0 { "192.0.2.1" } else { "192.0.2.2" };
        let syn = Packet::tcp("198.51.100.7", 4_000 + number, target, 80, SYN);
        let (verdict, out) = bed.run("in0", &Packet { hardware: ADC_IN, ..syn }.bytes());
        // The second's neighbour is unknown, and nothing else is requested from it.
        if number % 4 == 0 {
            assert_eq!(verdict, TCX_REDIRECT, "{:?}", bed.counted());
            of_first.push(ports_of(&out).0);
        }
    }
    let first = of_first[0];
    let in_turn: Vec<u16> =
        (0..20).map(|number| 20_000 + (first - 20_000 + number) % 100).collect();
    assert_eq!(of_first, in_turn);
}

#[test]
fn flows_begin_only_from_the_clients_of_a_virtual_server() {
    if !is_possible() {
        return;
    }
    let prefix = |address: &str, length| Prefix { address: address.parse().unwrap(), length };
    let listed = |name, protocol, destination, member, clients: Vec<Prefix>| VirtualServer {
        clients: Some(clients),
        ..with_member(server(name, protocol, destination), member, None)
    };
    let few = listed(
        "few",
        Protocol::Tcp,
        "192.0.2.1:80",
        "10.0.2.10",
        vec![prefix("198.51.100.0", 25), prefix("2001:db8:9::", 48)],
    );
    let six = listed(
        "few",
        Protocol::Udp,
        "[2001:db8::1]:53",
        "fd00:2::10",
        vec![prefix("0.0.0.0", 0), prefix("2001:db8:9::", 48)],
    );
    let nobody = listed("nobody", Protocol::Udp, "192.0.2.1:53", "10.0.2.10", vec![]);
    let all = with_member(server("all", Protocol::Tcp, "192.0.2.1:81"), "10.0.2.10", None);
    let mut planned = plan(vec![few, six, nobody, all]);
    on_both(&planned, |bed| {
        let redirect = bed.redirect();
        let passes = |bed: &mut Bed, packet: &Packet| {
            let mut packet = packet.clone();
            packet.hardware = ADC_IN;
            assert_eq!(bed.run("in0", &packet.bytes()).0, redirect, "{:?}", bed.counted());
        };
        let stopped = |bed: &mut Bed, packet: &Packet| {
            let mut packet = packet.clone();
            packet.hardware = ADC_IN;
            bed.is_stopped("in0", &packet.bytes(), Reason::ClientNotAllowed);
        };
        let (inside, outside) = ("198.51.100.7", "198.51.100.200");
        passes(bed, &Packet::tcp(inside, 4001, "192.0.2.1", 80, SYN));
        stopped(bed, &Packet::tcp(outside, 4001, "192.0.2.1", 80, SYN));
        stopped(bed, &Packet::tcp(outside, 4001, "192.0.2.1", 80, ACK));
        passes(bed, &Packet::tcp(outside, 4001, "192.0.2.1", 81, SYN));
        stopped(bed, &Packet::udp(inside, 4001, "192.0.2.1", 53));
        passes(bed, &Packet::udp("2001:db8:9::7", 4001, "2001:db8::1", 53));
        // A prefix of the other family is of nobody here, although IPv4 is mapped into IPv6.
        stopped(bed, &Packet::udp("2001:db8:a::7", 4001, "2001:db8::1", 53));
        // A flow goes on when its client is no longer listed, and begins no other.
        let mut narrower = planned.clone();
        narrower.virtual_servers[0].clients = Some(vec![prefix("203.0.113.0", 24)]);
        for _ in 0..2 {
            // Twice: each plan replaces what the one before the last has left.
            bed.path.get().apply(&narrower).unwrap();
            passes(bed, &Packet::tcp(inside, 4001, "192.0.2.1", 80, ACK));
            stopped(bed, &Packet::tcp(inside, 4002, "192.0.2.1", 80, SYN));
            passes(bed, &Packet::tcp("203.0.113.9", 4001, "192.0.2.1", 80, SYN));
        }
        narrower.virtual_servers[0].clients = None;
        bed.path.get().apply(&narrower).unwrap();
        passes(bed, &Packet::tcp(outside, 4003, "192.0.2.1", 80, SYN));
    });
    planned.virtual_servers[0].clients = Some(vec![prefix("198.51.100.0", 33)]);
    assert!(weir_packet::check(&planned).is_err());
}
