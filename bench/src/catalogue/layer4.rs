//! The tests of layer 4, named after the figures of the reports.

use super::Figure::{
    AddedCpuPerRequest, CoreBusy, CpuPerGigabyte, CpuPerPacket, CpuPerRequest, Goodput, LatencyP99,
    Lost, OwnCpuPerRequest, PacketRate, Rate,
};
use super::{Axis, Chapter, IP_FORWARD, Measure, NFTABLES, Picture, Test, goal};

/// Object size and requests per connection: a setting of `l4-envelope`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Length of the object.
    pub bytes: u64,
    /// Requests on a connection before it is closed.
    pub requests_per_connection: u64,
}

const SIZES: [u64; 5] = [128, 5_120, 16_384, 32_768, 131_072];
const REQUESTS: [u64; 3] = [1, 10, 100];

/// The cases of `l4-envelope`, in order.
pub const SHAPES: [Shape; SIZES.len() * REQUESTS.len()] = {
    let mut shapes = [Shape { bytes: 0, requests_per_connection: 0 }; SIZES.len() * REQUESTS.len()];
    let mut place = 0;
    while place < shapes.len() {
        shapes[place] = Shape {
            bytes: SIZES[place % SIZES.len()],
            requests_per_connection: REQUESTS[place / SIZES.len()],
        };
        place += 1;
    }
    shapes
};

/// Names of [`SHAPES`].
const SHAPE_CASES: &[&str] = &[
    "128 B × 1",
    "5 KB × 1",
    "16 KB × 1",
    "32 KB × 1",
    "128 KB × 1",
    "128 B × 10",
    "5 KB × 10",
    "16 KB × 10",
    "32 KB × 10",
    "128 KB × 10",
    "128 B × 100",
    "5 KB × 100",
    "16 KB × 100",
    "32 KB × 100",
    "128 KB × 100",
];
const _: () = assert!(SHAPE_CASES.len() == SHAPES.len());

/// The shape of a setting; `None` if the test has no shapes.
pub fn shape_of(test: &str, at: f64) -> Option<Shape> {
    (test == ENVELOPE.name).then(|| SHAPES.get(at as usize).copied()).flatten()
}

/// The cases of the test `udp-queries`.
pub const UDP_CASES: &[&str] = &["a flow for each query", "64 flows"];

/// The cases of the test `l4-packets`.
pub const PACKET_CASES: &[&str] = &[
    "1,024 flows",
    "65,536 flows",
    "1,048,576 flows",
    "1,024 flows, weir at tcx",
    "65,536 flows, weir at tcx",
];

/// The cases of the test `fast-l4`.
pub const FAST_CASES: &[&str] = &["128 B × 1", "128 KB × 100", "512 KB × 1"];

/// The shapes of [`FAST_CASES`].
pub const FAST_SHAPES: [Shape; FAST_CASES.len()] = [
    Shape { bytes: 128, requests_per_connection: 1 },
    Shape { bytes: 128 * 1_024, requests_per_connection: 100 },
    Shape { bytes: 512 * 1_024, requests_per_connection: 1 },
];

/// F5's report of 2013.
const F5_2013: &str = "F5's comparative report, 2013";

pub(super) const CONNECTIONS: Test = Test {
    name: "l4-connections",
    chapter: Chapter::Layer4,
    title: "L4 connections per second",
    summary: "TCP connections relayed whole: 128-byte objects, a connection for every request, as fast as answered. \
              The server closes first, everybody waits for the end.",
    after: F5_2013,
    axis: Axis::Single,
    picture: Picture::Bars,
    figures: &[Rate, CpuPerRequest, OwnCpuPerRequest, CoreBusy],
    judged: &[Rate, CpuPerRequest],
    goals: &[goal(CpuPerRequest, 0.0, Measure::RatioToBest(&["nginx", "haproxy"]), 0.8)],
};

pub(super) const THROUGHPUT: Test = Test {
    name: "l4-throughput",
    chapter: Chapter::Layer4,
    title: "L4 throughput",
    summary: "TCP connections relayed whole: 128 KB objects, 100 requests per connection, as fast as answered.",
    after: F5_2013,
    axis: Axis::Single,
    picture: Picture::Bars,
    figures: &[Goodput, CpuPerGigabyte, CoreBusy],
    judged: &[Goodput, CpuPerGigabyte],
    goals: &[goal(CpuPerGigabyte, 0.0, Measure::RatioToBest(&["nginx", "haproxy"]), 0.95)],
};

pub(super) const ENVELOPE: Test = Test {
    name: "l4-envelope",
    chapter: Chapter::Layer4,
    title: "L4 performance envelope",
    summary: "Requests per second against goodput over objects of 128 B, 5 KB, 16 KB, 32 KB and 128 KB, with 1, 10 and \
              100 requests per connection, as fast as answered, connections relayed whole. Further up and to the \
              right is better.",
    after: F5_2013,
    axis: Axis::Cases(SHAPE_CASES),
    picture: Picture::Envelope,
    figures: &[Rate, Goodput, CpuPerRequest, CoreBusy],
    judged: &[Rate, CpuPerRequest],
    goals: &[],
};

pub(super) const TRANSACTION_512K: Test = Test {
    name: "l4-512k",
    chapter: Chapter::Layer4,
    title: "L4 throughput, one 512 KB transaction per connection",
    summary: "Each TCP connection is opened by a full handshake, carries one HTTP transaction of 512 KB and is closed \
              gracefully; connections relayed whole, as fast as answered, with the goodput over time.",
    after: "F5 BIG-IP VE 13.1, 2018",
    axis: Axis::Single,
    picture: Picture::OverTime,
    figures: &[Goodput, CpuPerGigabyte, Rate, CoreBusy],
    judged: &[Goodput, CpuPerGigabyte],
    goals: &[goal(CpuPerGigabyte, 0.0, Measure::RatioToBest(&["nginx", "haproxy"]), 0.95)],
};

pub(super) const UDP_QUERIES: Test = Test {
    name: "udp-queries",
    chapter: Chapter::Layer4,
    title: "UDP queries per second",
    summary: "Queries of 48 bytes, answers of 128, 64 under way at a time, as fast as answered: each query from a port \
              of its own, so that every one is a session; and all from 64 flows that stay. A query without an answer \
              within a second is lost.",
    after: "our own",
    axis: Axis::Cases(UDP_CASES),
    picture: Picture::Bars,
    figures: &[Rate, CpuPerRequest, OwnCpuPerRequest, LatencyP99, Lost, CoreBusy],
    judged: &[Rate, CpuPerRequest],
    goals: &[
        goal(CpuPerRequest, 0.0, Measure::RatioTo("nginx"), 0.6),
        goal(CpuPerRequest, 1.0, Measure::RatioTo("nginx"), 0.6),
    ],
};

pub(super) const PACKETS: Test = Test {
    name: "l4-packets",
    chapter: Chapter::Layer4,
    title: "L4 packets per second",
    summary: "UDP packets of 60 bytes from very many flows to one virtual server, at one rate for all (XDP live frames, some \
              230,000 a second, 64 at a time), in network namespaces; the servers' side counts and drops what arrives. CPU per packet \
              is the busy time of the product's core, the generator's and the servers' work being elsewhere. Plain IP \
              forwarding, which changes no address, stands beside for scale. Weir's program stands in the device's driver \
              (xdp), and in the last two cases right above it (tcx).",
    after: "F5 BIG-IP VE 13.1, 2018, and the papers on XDP",
    axis: Axis::Cases(PACKET_CASES),
    picture: Picture::Bars,
    figures: &[CpuPerPacket, PacketRate, CoreBusy],
    judged: &[CpuPerPacket],
    goals: &[
        goal(CpuPerPacket, 0.0, Measure::RatioTo(NFTABLES), 0.4),
        goal(CpuPerPacket, 1.0, Measure::RatioTo(NFTABLES), 0.4),
        goal(CpuPerPacket, 2.0, Measure::RatioTo(NFTABLES), 0.4),
        goal(CpuPerPacket, 3.0, Measure::RatioTo(IP_FORWARD), 1.3),
        goal(CpuPerPacket, 4.0, Measure::RatioTo(IP_FORWARD), 1.3),
    ],
};

pub(super) const FAST_L4: Test = Test {
    name: "fast-l4",
    chapter: Chapter::Layer4,
    title: "L4 connections per second and throughput, by packets",
    summary: "The loads of l4-connections, l4-throughput and l4-512k over virtual links between network namespaces, as \
              fast as answered. Weir has type: fast_l4, at tcx, and the kernel forwards packets; the others relay \
              connections. Packets are worked on wherever they are sent, so what counts is what all cores take for a \
              request, less what they take right before when clients and servers are joined directly.",
    after: "F5's comparative report, 2013, and F5 BIG-IP VE 13.1, 2018",
    axis: Axis::Cases(FAST_CASES),
    picture: Picture::Bars,
    figures: &[Rate, Goodput, AddedCpuPerRequest, OwnCpuPerRequest, CoreBusy],
    judged: &[AddedCpuPerRequest],
    goals: &[
        goal(AddedCpuPerRequest, 0.0, Measure::RatioTo("haproxy"), 0.2),
        goal(AddedCpuPerRequest, 1.0, Measure::RatioTo("haproxy"), 0.5),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_as_they_are_called() {
        for (shape, name) in SHAPES.iter().zip(SHAPE_CASES) {
            let size = crate::report::text::bytes(shape.bytes as f64);
            assert_eq!(format!("{size} × {}", shape.requests_per_connection), **name);
        }
        for (shape, name) in FAST_SHAPES.iter().zip(FAST_CASES) {
            let size = crate::report::text::bytes(shape.bytes as f64);
            assert_eq!(format!("{size} × {}", shape.requests_per_connection), **name);
        }
        assert_eq!(shape_of("l4-envelope", 14.0), SHAPES.last().copied());
        assert_eq!(shape_of("l4-envelope", 15.0), None);
        assert_eq!(shape_of("envelope", 0.0), None);
    }
}
