//! Packet in, packet out: both programs by BPF_PROG_TEST_RUN, checked against packets whose
//! checksums are computed from scratch.

mod support;

use support::bed::*;
use support::packet::{Carried, Packet};
use support::{Path, is_possible};
use weir_packet::plan::*;
use weir_packet::{Reason, Rung};

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
fn a_member_sees_its_own_of_the_source_addresses() {
    if !is_possible() {
        return;
    }
    let mut one = server("one", Protocol::Any, "192.0.2.1:*");
    let addresses = ["10.0.2.1", "10.0.2.2", "10.0.2.3"];
    let source = |address: &&str| SourceAddress {
        address: address.parse().unwrap(),
        port_first: 20_000,
        port_last: 20_099,
    };
    one.source = Source::Addresses(addresses.iter().map(source).collect());
    for (member, own) in
        [("10.0.2.10", Some("10.0.2.2")), ("10.0.2.11", Some("10.0.2.3")), ("10.0.2.12", None)]
    {
        let mut member = Member::new(member.parse().unwrap(), None);
        member.source = own.map(|own| own.parse().unwrap());
        one.members.push(member);
    }
    on_both(&plan(vec![one]), |bed| {
        bed.neighbours(&["10.0.2.11", "10.0.2.12"]);
        let mut seen = std::collections::BTreeSet::new();
        for port in 1..=90 {
            for packet in [
                Packet::udp("198.51.100.7", port, "192.0.2.1", 81),
                Packet::new(
                    "198.51.100.7",
                    "192.0.2.1",
                    Carried::Icmp { kind: 8, code: 0, word: u32::from(port) << 16 },
                ),
                Packet::new(&format!("198.51.100.{port}"), "192.0.2.1", Carried::Other(47)),
            ] {
                let (verdict, out) = bed.run("in0", &packet.bytes());
                // A protocol without ports has only addresses, and one flow.
                if verdict == bed.redirect() {
                    seen.insert((out[33], out[29]));
                }
            }
        }
        let expected = [(10, 2), (11, 3), (12, 1), (12, 2), (12, 3)];
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected, "{:?}", bed.counted());
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
    let mut six = with_member(server("six", Protocol::Tcp, "[2001:db8::1]:80"), "fd00:2::10", None);
    six.delivery = Delivery::DirectReturn;
    on_both(&plan(vec![direct, hop, route, six]), |bed| {
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
        expect(Packet::tcp("2001:db8:9::7", 4001, "2001:db8::1", 80, SYN), 63, 0);
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
            4
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

/// The header after the fragment header is only in the first fragment; the others repeat its type
/// (RFC 8200, 4.5).
#[test]
fn fragments_of_ipv6_follow_a_first_with_more_headers() {
    if !is_possible() {
        return;
    }
    let plan = plan(vec![with_member(
        server("v6", Protocol::Udp, "[2001:db8::1]:53"),
        "fd00:2::10",
        Some(5353),
    )]);
    // No-op options before the datagram.
    let with_options = |inner: &Packet| {
        let mut packet = Packet { carried: Carried::Other(60), df: false, id: 78, ..inner.clone() };
        packet.payload = [&[17, 0, 1, 4, 0, 0, 0, 0], &inner.segment()[..]].concat();
        packet.fragments(56)
    };
    on_both(&plan, |bed| {
        let mut packet = Packet::udp("2001:db8:9::7", 4001, "2001:db8::1", 53);
        packet.payload = (0..100).collect();
        let mut out = Packet { hardware: TO_MEMBER, ttl: 63, ..packet.clone() };
        out.target = "fd00:2::10".parse().unwrap();
        out.ports().1 = 5353;
        for (part, part_out) in with_options(&packet).iter().zip(&with_options(&out)) {
            bed.becomes("in0", part, part_out);
        }
    });
}

/// Whose header is too short is not read as ports.
#[test]
fn icmp_errors_about_no_packet_are_left_alone() {
    if !is_possible() {
        return;
    }
    let one = with_member(server("one", Protocol::Tcp, "192.0.2.1:80"), "10.0.2.10", Some(48));
    on_both(&plan(vec![one]), |bed| {
        let syn = Packet::tcp("198.51.100.7", 0x4000, "192.0.2.1", 80, SYN);
        assert_eq!(bed.run("in0", &syn.bytes()).0, bed.redirect());
        let icmp = Carried::Icmp { kind: 3, code: 3, word: 0 };
        let mut error = Packet::new("10.9.9.9", "198.51.100.7", icmp);
        error.hardware = TO_MEMBER;
        error.hardware.rotate_left(6);
        error.payload = Packet { target: "10.0.2.10".parse().unwrap(), ..syn }.datagram();
        // Its first four bytes are the client's port and the member's.
        error.payload[..4].copy_from_slice(&[0x40, 0, 0, 48]);
        bed.is_stopped("out0", &error.bytes(), Reason::IcmpWithoutFlow);
    });
}

/// A host that fragments must be told about packets that are too big.
#[test]
fn icmp_errors_about_fragments_are_translated_inside() {
    if !is_possible() {
        return;
    }
    let plan = plan(vec![
        with_member(server("v4", Protocol::Udp, "192.0.2.1:53"), "10.0.2.10", Some(5353)),
        with_member(server("v6", Protocol::Udp, "[2001:db8::1]:53"), "fd00:2::10", Some(5353)),
    ]);
    on_both(&plan, |bed| {
        for (packet, member, router) in [
            (Packet::udp("198.51.100.7", 4001, "192.0.2.1", 53), "10.0.2.10", "10.9.9.9"),
            (Packet::udp("2001:db8:9::7", 4001, "2001:db8::1", 53), "fd00:2::10", "fd00:9::9"),
        ] {
            let packet = Packet { payload: (0..100).collect(), df: false, ..packet };
            let target = member.parse().unwrap();
            let mut sent = Packet { hardware: TO_MEMBER, ttl: 63, target, ..packet.clone() };
            sent.ports().1 = 5353;
            bed.becomes("in0", &packet.fragments(48)[0], &sent.fragments(48)[0]);
            let is_v4 = packet.source.is_ipv4();
            let (kind, code) = if is_v4 { (3, 4) } else { (2, 0) };
            let about =
                |packet: &Packet, number: usize| packet.fragments(48)[number][14..].to_vec();
            let mut error = Packet::new(router, router, Carried::Icmp { kind, code, word: 1280 });
            error.target = packet.source;
            error.payload = about(&sent, 0);
            let mut out = Packet { hardware: TO_CLIENT, ttl: 63, ..error.clone() };
            out.payload = about(&Packet { ttl: 63, ..packet.clone() }, 0);
            bed.becomes("out0", &error.bytes(), &out.bytes());
            // The flow of another fragment is not known.
            error.hardware = TO_MEMBER;
            error.hardware.rotate_left(6);
            error.payload = about(&sent, 1);
            bed.is_stopped("out0", &error.bytes(), Reason::IcmpWithoutFlow);
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
                    // As the client sent it, except for the hop count.
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
fn prefixes_are_of_one_family() {
    if !is_possible() {
        return;
    }
    let all = |address: &str| Prefix { address: address.parse().unwrap(), length: 0 };
    let any = |destination| {
        let mut any = server(destination, Protocol::Tcp, destination);
        any.delivery = Delivery::Route;
        any
    };
    let v4 = Packet { hardware: ADC_IN, ..Packet::tcp("198.51.100.7", 4001, "10.0.2.10", 22, SYN) };
    let v6 =
        Packet { hardware: ADC_IN, ..Packet::tcp("2001:db8:9::7", 4001, "fd00:2::10", 22, SYN) };
    on_both(&plan(vec![any("[::]/0:*")]), |bed| {
        bed.is_stopped("in0", &v4.bytes(), Reason::NotOurs);
        assert_eq!(bed.run("in0", &v6.bytes()).0, bed.redirect());
    });
    on_both(&plan(vec![any("0.0.0.0/0:*")]), |bed| {
        bed.is_stopped("in0", &v6.bytes(), Reason::NotOurs);
        assert_eq!(bed.run("in0", &v4.bytes()).0, bed.redirect());
        // An IPv6 packet with IPv4-mapped addresses belongs to no IPv4 flow.
        let mut mapped = v6.clone();
        mapped.source = "::ffff:198.51.100.7".parse().unwrap();
        mapped.target = "::ffff:10.0.2.10".parse().unwrap();
        bed.is_stopped("in0", &mapped.bytes(), Reason::Unparsed);
    });
    let deny = |address| Plan { deny: vec![all(address)], ..Plan::default() };
    on_both(&deny("::"), |bed| {
        bed.is_stopped("in0", &v4.bytes(), Reason::NotOurs);
        bed.is_stopped("in0", &v6.bytes(), Reason::Denied);
        // The plan after the next finds no remains of this one.
        bed.path.get().apply(&Plan::default()).unwrap();
        bed.path.get().apply(&deny("0.0.0.0")).unwrap();
        bed.is_stopped("in0", &v4.bytes(), Reason::Denied);
        bed.is_stopped("in0", &v6.bytes(), Reason::NotOurs);
    });
}

/// Echo request and reply, a segment without a flow, a reset and a datagram to the addresses of the bed's `in0`.
fn for_this_host() -> Vec<Packet> {
    let mut packets = Vec::new();
    for (client, own, echoes) in
        [("198.51.100.7", "10.0.1.1", [8, 0]), ("2001:db8:9::7", "fd00:1::1", [128, 129])]
    {
        for flags in [SYN, ACK, RST, RST | ACK] {
            packets.push(Packet::tcp(client, 4001, own, 22, flags));
        }
        for kind in echoes {
            packets.push(Packet::new(client, own, Carried::Icmp { kind, code: 0, word: 1 }));
        }
        packets.push(Packet::udp(client, 53, own, 4001));
        packets.push(Packet { ttl: 1, ..Packet::udp(client, 53, own, 4001) });
    }
    packets.into_iter().map(|packet| Packet { hardware: ADC_IN, ..packet }).collect()
}

#[test]
fn what_passes_needs_no_flow() {
    if !is_possible() {
        return;
    }
    let all = |destination| {
        let mut all = server(destination, Protocol::Any, destination);
        all.delivery = Delivery::Route;
        all
    };
    let mut own = server("own", Protocol::Any, "10.0.1.1:*");
    own.destinations.extend(server("own", Protocol::Any, "[fd00:1::1]:*").destinations);
    own.delivery = Delivery::Pass;
    let mut plan = plan(vec![all("0.0.0.0/0:*"), all("[::]/0:*"), own]);
    plan.new_flows_per_source = Some(Rate { per_second: 1, burst: 1 });
    for forwarding in ["1", "0"] {
        on_both(&plan, |bed| {
            for file in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
                std::fs::write(format!("/proc/sys/net/{file}"), forwarding).unwrap();
            }
            for packet in for_this_host() {
                bed.is_stopped("in0", &packet.bytes(), Reason::NotOurs);
            }
            let filter = weir_packet::FlowFilter { flows_max: 9, ..Default::default() };
            assert!(bed.path.get().flows(&filter).unwrap().is_empty());
        });
    }
    plan.new_flows_per_source = None;
    let mut bed = Bed::new(Rung::Xdp, &plan);
    drop(std::mem::replace(&mut bed.path, {
        let mut options = support::options(&format!("weir-packet-{}-pass", std::process::id()));
        options.flows_max = 100;
        Path::with(options)
    }));
    bed.path.attach(&["in0", "out0"], Rung::Xdp);
    bed.path.get().apply(&plan).unwrap();
    for port in 1..=300 {
        let packet = Packet::udp("198.51.100.7", port, "10.0.2.10", 53);
        bed.run("in0", &Packet { hardware: ADC_IN, ..packet }.bytes());
    }
    assert!(bed.count(Reason::FlowsFull) > 0);
    for packet in for_this_host() {
        bed.is_stopped("in0", &packet.bytes(), Reason::NotOurs);
    }
}

#[test]
fn a_handshake_ends_with_the_clients_answer() {
    if !is_possible() {
        return;
    }
    let one = with_member(server("one", Protocol::Tcp, "192.0.2.1:80"), "10.0.2.10", Some(80));
    on_both(&plan(vec![one]), |bed| {
        let tcp = |port, flags| Packet {
            hardware: ADC_IN,
            ..Packet::tcp("198.51.100.7", port, "192.0.2.1", 80, flags)
        };
        for port in [1, 2] {
            let answer = Packet::tcp("10.0.2.10", 80, "198.51.100.7", port, SYN | ACK);
            let syn = tcp(port, SYN).bytes();
            for _ in 0..9 {
                assert_eq!(bed.run("in0", &syn).0, bed.redirect());
            }
            let answer = Packet { hardware: ADC_IN, ..answer }.bytes();
            assert_eq!(bed.run("out0", &answer).0, bed.redirect());
        }
        assert_eq!(bed.run("in0", &tcp(2, ACK).bytes()).0, bed.redirect());
        let later = weir_packet::now() + std::time::Duration::from_secs(11);
        let ended = bed.path.get().sweep(later).unwrap().ended;
        let clients: Vec<u16> = ended.iter().map(|ended| ended.flow.client.port).collect();
        assert_eq!(clients, [1], "its SYN alone has come");
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
    assert_eq!(sent, 100);
    assert_eq!(bed.count(Reason::FlowsFull), 200);
    assert_eq!(bed.run("in0", &frame(1)).0, XDP_REDIRECT, "those that are there go on");
}

/// Both families, and so many flows that some are in their second bucket. User space finds each by its key, as the program
/// entered it.
#[test]
fn flows_are_found_by_both_sides() {
    const FLOWS: u16 = 3_000;
    if !is_possible() {
        return;
    }
    let servers =
        [("four", "192.0.2.1:53", "10.0.2.10"), ("six", "[2001:db8::1]:53", "fd00:2::10")];
    let servers = servers.map(|(name, listen, member)| {
        with_member(server(name, Protocol::Udp, listen), member, Some(5_353))
    });
    let mut bed = Bed::sized(Rung::Xdp, &plan(servers.to_vec()), 2 * u32::from(FLOWS) * 4 / 3);
    let datagram = |is_v6, number: u16| {
        let packet = if is_v6 {
            let source = format!("2001:db8:9::{:x}", number % 7);
            Packet::udp(&source, number, "2001:db8::1", 53)
        } else {
            let source = format!("198.51.100.{}", number % 7);
            Packet::udp(&source, number, "192.0.2.1", 53)
        };
        Packet { hardware: ADC_IN, ..packet }.bytes()
    };
    let all = weir_packet::FlowFilter { flows_max: usize::MAX, ..Default::default() };
    // The table is as good after all its flows have ended as before.
    for _ in 0..3 {
        for number in 1..=FLOWS {
            for is_v6 in [false, true] {
                let (verdict, _) = bed.run("in0", &datagram(is_v6, number));
                assert_eq!(verdict, XDP_REDIRECT, "a quarter of the table is free");
            }
        }
        let flows = bed.path.get().flows(&all).expect("flows");
        assert_eq!(flows.len(), 2 * usize::from(FLOWS));
        for flow in &flows {
            let ended = bed.path.get().end_flow(flow).expect("ending a flow");
            assert_eq!(ended.map(|ended| ended.flow.client), Some(flow.client));
            assert!(bed.path.get().end_flow(flow).expect("a look").is_none(), "it is gone");
        }
        assert!(bed.path.get().flows(&all).expect("flows").is_empty());
    }
    assert_eq!(bed.count(Reason::FlowsFull), 0);
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
