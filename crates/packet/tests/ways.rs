//! Routes that programs cache for a moment, and conditions that prevent it. By BPF_PROG_TEST_RUN.

mod support;

use std::time::Instant;

use support::bed::*;
use support::is_possible;
use support::net::{STEP_MAX, until};
use support::packet::Packet;
use weir_packet::plan::*;

/// The flows of these tests.
fn one_plan() -> Plan {
    plan(vec![with_member(server("one", Protocol::Udp, "192.0.2.1:53"), "10.0.2.10", Some(53))])
}

/// Sends a packet of a client. Returns the last byte of its neighbour's address.
fn neighbour_of(bed: &mut Bed, client: &str) -> u8 {
    let (verdict, frame) = bed.run("in0", &Packet::udp(client, 4_001, "192.0.2.1", 53).bytes());
    assert_eq!(verdict, bed.redirect(), "{:?}", bed.counted());
    frame[5]
}

fn set_neighbour(bed: &Bed, address: &str, last: u8) {
    bed.ip(&format!(
        "neigh replace {address} lladdr 02:00:00:00:05:{last:02x} dev out0 nud permanent"
    ));
}

#[test]
fn a_way_is_kept_for_a_moment_and_no_longer() {
    if !is_possible() {
        return;
    }
    on_both(&one_plan(), |bed| {
        let began = Instant::now();
        let mut last = 1;
        // The neighbour has changed when the packet arrives; how long ago depends on the scheduler.
        loop {
            let before = neighbour_of(bed, "198.51.100.7");
            assert_eq!(before, last);
            last = last % 100 + 1;
            set_neighbour(bed, "10.0.2.10", last);
            let seen = neighbour_of(bed, "198.51.100.7");
            until("the change is seen", || neighbour_of(bed, "198.51.100.7") == last);
            if seen == before {
                return;
            }
            assert!(began.elapsed() < STEP_MAX, "no way was kept");
        }
    });
}

#[test]
fn what_is_too_long_for_a_way_that_is_kept_is_too_long() {
    if !is_possible() {
        return;
    }
    on_both(&one_plan(), |bed| {
        bed.ip("link set out0 mtu 1000");
        let mut packet = Packet::udp("198.51.100.7", 4_001, "192.0.2.1", 53);
        let redirect = bed.redirect();
        for (bytes, answers) in [(100, 0), (972, 0), (973, 1), (972, 1)] {
            packet.payload = vec![7; bytes];
            // A packet that is too big is answered to the device it came from.
            assert_eq!(bed.run("in0", &packet.bytes()).0, redirect, "{:?}", bed.counted());
            assert_eq!(bed.count(weir_packet::Reason::TooBigAnswered), answers, "{bytes}");
        }
    });
}

/// The dependency that each of these changes adds to routes, and how to undo it.
const CHANGES: &[(&str, &str)] = &[
    ("rule add from 203.0.113.0/24 lookup 77", "rule del from 203.0.113.0/24 lookup 77"),
    ("rule add iif in0 lookup 77", "rule del iif in0 lookup 77"),
    ("rule add tos 0x10 lookup 77", "rule del tos 0x10 lookup 77"),
    ("route add 10.9.0.0/16 nexthop via 10.0.2.10 nexthop via 10.0.2.12", "route del 10.9.0.0/16"),
];

#[test]
fn ways_are_kept_only_where_they_depend_on_destinations_alone() {
    if !is_possible() {
        return;
    }
    let mut bed = Bed::new(weir_packet::Rung::Xdp, &one_plan());
    bed.neighbours(&["10.0.2.12"]);
    bed.ip("route add 10.8.0.0/16 via 10.0.2.12");
    let mut now = Instant::now();
    for (change, back) in CHANGES {
        assert!(bed.path.get().watch_routes(now).expect("routes"), "before {change}");
        bed.ip(change);
        assert!(!bed.path.get().watch_routes(now).expect("routes"), "{change}");
        bed.ip(back);
        // Routes are not read again so soon.
        assert!(!bed.path.get().watch_routes(now).expect("routes"), "{change}");
        now += STEP_MAX;
    }
    // State that exists before it begins to watch.
    let mut other = support::Path::open();
    assert!(other.get().watch_routes(now).expect("routes"));
    bed.ip("rule add fwmark 1 lookup 77");
    let mut other = support::Path::open();
    assert!(!other.get().watch_routes(now).expect("routes"));
}

#[test]
fn a_rule_sends_a_client_s_packets_another_way_at_once() {
    if !is_possible() {
        return;
    }
    on_both(&one_plan(), |bed| {
        bed.ip("neigh add 10.0.2.12 lladdr 02:00:00:00:05:0c dev out0 nud permanent");
        bed.ip("route add default via 10.0.2.12 table 77");
        for client in ["198.51.100.7", "203.0.113.7"] {
            assert_eq!(neighbour_of(bed, client), 1);
        }
        bed.ip("rule add from 203.0.113.0/24 lookup 77");
        for _ in 0..10 {
            assert_eq!(neighbour_of(bed, "198.51.100.7"), 1);
            assert_eq!(neighbour_of(bed, "203.0.113.7"), 12);
        }
    });
}
