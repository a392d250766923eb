//! The catalogue: name, purpose and figures of each test of the report, and the vendor report that it follows.
//!
//! Runner, report and comparison use this list. The code that runs the tests is in `run/`.

mod figure;
mod layer4;
mod observation;
mod waf;

pub use figure::{BetterDirection, COUNTED_NOISE_SHARE, Figure};
pub use layer4::{FAST_CASES, FAST_SHAPES, PACKET_CASES, SHAPES, Shape, UDP_CASES, shape_of};
pub use observation::{OBSERVED, OBSERVED_CASES};
pub use waf::WAF_CASES;

/// The varied setting of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// No setting is varied.
    Single,
    /// Concurrent connections.
    Connections,
    /// Bytes of the requested object.
    ObjectBytes,
    /// Offered requests per second.
    OfferedRate,
    /// Named cases, by index.
    Cases(&'static [&'static str]),
}

/// The chart of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Picture {
    /// Bars, one per product, with the spread of the rounds.
    Bars,
    /// Lines over the axis, one per product, with the spread of the rounds.
    Lines,
    /// Rate against goodput, one line per product through its object sizes.
    Envelope,
    /// Bars, and a chart of latency by percentile.
    Percentiles,
    /// Bars, and a chart of goodput over time.
    OverTime,
}

/// A chapter of the report. Its tests are consecutive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chapter {
    /// HTTP/1.1 without TLS.
    Layer7,
    /// TCP connections, datagrams and packets, whose content is not parsed.
    Layer4,
    /// TLS.
    Tls,
    /// HTTP/2.
    Http2,
    /// Compression.
    Compression,
    /// Web application firewalls.
    Firewall,
    /// Counts instead of times.
    Counted,
}

impl Chapter {
    /// The chapter's heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Layer7 => "Layer 7",
            Self::Layer4 => "Layer 4",
            Self::Tls => "TLS",
            Self::Http2 => "HTTP/2",
            Self::Compression => "Compression",
            Self::Firewall => "Web application firewall",
            Self::Counted => "Counted, not timed",
        }
    }
}

/// One test of the report.
#[derive(Debug, Clone, Copy)]
pub struct Test {
    /// Name on the command line and in the record.
    pub name: &'static str,
    /// The test's chapter in the report.
    pub chapter: Chapter,
    /// The heading.
    pub title: &'static str,
    /// The procedure, and hints for the reader of the report.
    pub summary: &'static str,
    /// The vendor reports that the test follows.
    pub after: &'static str,
    /// The varied setting.
    pub axis: Axis,
    /// The chart.
    pub picture: Picture,
    /// The figures, the most important first. Each gets a chart.
    pub figures: &'static [Figure],
    /// The figures by which products are judged.
    pub judged: &'static [Figure],
    /// Goals for weir.
    pub goals: &'static [Goal],
}

/// A goal for weir in a test.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    /// The figure.
    pub figure: Figure,
    /// The setting; 0 if the test varies nothing.
    pub at: f64,
    /// The quantity that is compared with the bound.
    pub measure: Measure,
    /// The bound: a minimum if higher is better, otherwise a maximum.
    pub bound: f64,
}

/// The quantity that a goal bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measure {
    /// Weir's value.
    Value,
    /// Weir's value divided by that product's value.
    RatioTo(&'static str),
    /// Weir's value divided by the best value of these products; with an empty list, of all peers.
    RatioToBest(&'static [&'static str]),
    /// Weir's value minus that product's value.
    ExcessOver(&'static str),
    /// Weir's value divided by weir's value at that setting.
    RatioToSetting(f64),
    /// Weir's value divided by that product's value at that setting.
    RatioToOther(&'static str, f64),
}

/// A test of the vendor reports that needs a missing feature.
#[derive(Debug, Clone, Copy)]
pub struct PendingTest {
    /// The name of the test.
    pub name: &'static str,
    /// The heading.
    pub title: &'static str,
    /// The missing prerequisite.
    pub waits_for: &'static str,
}

/// The cases of the test `growth`: few and many, in pairs.
pub const GROWTH_CASES: &[&str] = &[
    "24 virtual servers",
    "1,000 virtual servers",
    "2 members, round robin",
    "1,000 members, round robin",
    "2 members, least connections",
    "1,000 members, least connections",
    "10 rules",
    "10,000 rules",
];

/// The cases of the test `queue`.
pub const QUEUE_CASES: &[&str] =
    &["100% of what the members take", "200% of what the members take"];

/// The cases of the test `ssl-tps`.
pub const SSL_CASES: &[&str] =
    &["TLS 1.3, RSA-2048", "TLS 1.2, RSA-2048", "TLS 1.3, P-256", "TLS 1.2, P-256"];

/// The cases of the test `ssl-tps-resumed`.
pub const RESUMED_CASES: &[&str] = &["TLS 1.3", "TLS 1.2"];

/// The cases of the test `http2`.
pub const HTTP2_CASES: &[&str] = &["over TLS", "without TLS"];

/// The cases of the test `compression`.
pub const COMPRESSION_CASES: &[&str] = &["level 5", "the fastest level"];

/// The cases of the test `feature-instructions`.
pub const FEATURE_CASES: &[&str] = &["plain", "URI inspected", "advanced L7", "cookie persistence"];

/// Prefix of the reason of an omission that waits for a missing feature of weir.
pub const PENDING_PREFIX: &str = "pending: ";

/// Yardsticks, measured beside weir and its peers. The report shows their costs, but does not judge weir by them.
pub const YARDSTICKS: [&str; 4] = [RELAY, PLAIN_WEIR, SIGNATURES, IP_FORWARD];
/// A byte relay without HTTP: its costs are the kernel's costs.
pub const RELAY: &str = "relay";
/// Weir without the tested feature, with the same requests.
pub const PLAIN_WEIR: &str = "weir-plain";
/// Bare signatures with weir's TLS library, without the rest of a handshake.
pub const SIGNATURES: &str = "signatures";

/// The kernel's forwarding without address translation: the minimum cost of a packet for a product on the kernel's
/// stack.
pub const IP_FORWARD: &str = "ip-forward";
/// The kernel's address translation with nftables: a peer only in the test of packets.
pub const NFTABLES: &str = "nftables";

/// nginx with ModSecurity 3: a peer only in the tests of web application firewalls.
pub const NGINX_MODSECURITY: &str = "nginx-modsecurity";
/// A proxy with Coraza 3: a peer only in the tests of web application firewalls.
pub const CORAZA: &str = "coraza";

/// The suffix of a peer's second row.
pub const SECOND: &str = "-2";

/// The product's name without the suffix of its second row: `nginx` for `nginx` and `nginx-2`.
pub fn maker(name: &str) -> &str {
    name.strip_suffix(SECOND).unwrap_or(name)
}

/// Whether the product is a yardstick.
pub fn is_yardstick(name: &str) -> bool {
    YARDSTICKS.contains(&name)
}

const fn goal(figure: Figure, at: f64, measure: Measure, bound: f64) -> Goal {
    Goal { figure, at, measure, bound }
}

/// CPU per request of 128-byte objects, with 10 requests per connection and with unlimited ones.
const CPU_PER_REQUEST_GOALS: &[Goal] = &[
    goal(CpuPerRequest, 0.0, Measure::RatioToBest(&["nginx", "haproxy"]), 0.8),
    goal(CpuPerRequest, 0.0, Measure::RatioTo("envoy"), 0.4),
    goal(CpuPerRequest, 0.0, Measure::RatioTo(RELAY), 1.2),
];

/// CPU per request with a feature, compared with peers that have the feature and with weir without it.
const FEATURE_GOALS: &[Goal] = &[
    goal(CpuPerRequest, 0.0, Measure::RatioToBest(&["nginx", "haproxy"]), 0.8),
    goal(CpuPerRequest, 0.0, Measure::RatioTo(PLAIN_WEIR), 1.1),
];

use Figure::{
    CoreBusy, CpuPerGigabyte, CpuPerRequest, Goodput, HandshakesPerCpuSecond,
    InstructionsPerRequest, LatencyP50, LatencyP99, Memory, MemoryGrowth, MemoryPerConnection,
    OwnCpuPerRequest, Rate, RequestsPerCpuSecond, RequestsPerJoule, ResponseBytes,
    SystemCallsPerRequest,
};

/// The tests, in the order of the report.
pub const TESTS: &[Test] = &[
    Test {
        name: "basic-l7",
        chapter: Chapter::Layer7,
        title: "Basic L7: latency and goodput as connections grow",
        summary: "24 virtual servers, round robin, connections multiplexed, 8,192-byte objects, the same \
                  rate offered to every product over more and more keep-alive connections. Good: flat lines. A product \
                  of one process ends where this machine's limit of descriptors per process does.",
        after: "Citrix NetScaler MPX 17000 and F5 BIG-IP 8800, 2009",
        axis: Axis::Connections,
        picture: Picture::Lines,
        figures: &[LatencyP99, LatencyP50, CpuPerRequest, OwnCpuPerRequest, Goodput, Memory],
        judged: &[LatencyP99, CpuPerRequest],
        goals: &[],
    },
    Test {
        name: "l7-requests",
        chapter: Chapter::Layer7,
        title: "L7 requests per second",
        summary: "128-byte objects, 10 requests per connection, as fast as answered. Where the load's \
                  core was the limit and not the product's, the rate is not judged and CPU per request decides.",
        after: "F5's comparative report, 2013",
        axis: Axis::Single,
        picture: Picture::Bars,
        figures: &[Rate, CpuPerRequest, OwnCpuPerRequest, CoreBusy],
        judged: &[Rate, CpuPerRequest],
        goals: CPU_PER_REQUEST_GOALS,
    },
    Test {
        name: "l7-uri",
        chapter: Chapter::Layer7,
        title: "L7 requests per second with URI inspection",
        summary: "As above, and half of the requests are for .png, which goes to another pool.",
        after: "F5's comparative report, 2013",
        axis: Axis::Single,
        picture: Picture::Bars,
        figures: &[Rate, CpuPerRequest, OwnCpuPerRequest, CoreBusy],
        judged: &[Rate, CpuPerRequest],
        goals: FEATURE_GOALS,
    },
    Test {
        name: "l7-connections",
        chapter: Chapter::Layer7,
        title: "L7 connections per second",
        summary: "128-byte objects, a new connection for every request, as fast as answered.",
        after: "F5's comparative report, 2013",
        axis: Axis::Single,
        picture: Picture::Bars,
        figures: &[Rate, CpuPerRequest, OwnCpuPerRequest, CoreBusy],
        judged: &[Rate, CpuPerRequest],
        goals: &[],
    },
    Test {
        name: "l7-throughput",
        chapter: Chapter::Layer7,
        title: "L7 throughput",
        summary: "128 KB objects, 100 requests per connection, as fast as answered.",
        after: "F5's comparative report, 2013",
        axis: Axis::Single,
        picture: Picture::Bars,
        figures: &[Goodput, CpuPerGigabyte, CoreBusy],
        judged: &[Goodput, CpuPerGigabyte],
        goals: &[goal(CpuPerGigabyte, 0.0, Measure::RatioToBest(&["nginx", "haproxy"]), 0.9)],
    },
    Test {
        name: "envelope",
        chapter: Chapter::Layer7,
        title: "Performance envelope",
        summary: "Requests per second against goodput over objects of 128 B, 5 KB, 16 KB, 32 KB and 128 KB, \
                  10 requests per connection, as fast as answered. Further up and to the right is better.",
        after: "F5's comparative report, 2013",
        axis: Axis::ObjectBytes,
        picture: Picture::Envelope,
        figures: &[Rate, Goodput, CpuPerRequest, CoreBusy],
        judged: &[Rate, CpuPerRequest],
        goals: &[],
    },
    Test {
        name: "object-sizes",
        chapter: Chapter::Layer7,
        title: "Object sizes",
        summary: "Objects of 2 to 64 KB over a fixed number of keep-alive connections, the same rate offered \
                  to every product.",
        after: "Citrix NetScaler MPX 17000 and F5 BIG-IP 8800, 2009",
        axis: Axis::ObjectBytes,
        picture: Picture::Lines,
        figures: &[CpuPerRequest, LatencyP99, LatencyP50, Goodput],
        judged: &[CpuPerRequest, LatencyP99],
        goals: &[],
    },
    Test {
        name: "p99-idle",
        chapter: Chapter::Layer7,
        title: "P99 latency, idle",
        summary: "100 requests per second, 30 KB (volume) and 1 B (transaction): what the product adds when \
                  nothing queues.",
        after: "Citrix ADC VPX 13.0 and F5 BIG-IP VE 15.1, 2020",
        axis: Axis::ObjectBytes,
        picture: Picture::Percentiles,
        figures: &[LatencyP99, LatencyP50],
        judged: &[LatencyP99, LatencyP50],
        goals: &[],
    },
    Test {
        name: "p99-stressed",
        chapter: Chapter::Layer7,
        title: "P99 latency, stressed",
        summary: "95% of the load that the slowest product sustains, the same to all, 30 KB (volume) and 1 B \
                  (transaction).",
        after: "Citrix ADC VPX 13.0 and F5 BIG-IP VE 15.1, 2020",
        axis: Axis::ObjectBytes,
        picture: Picture::Percentiles,
        figures: &[LatencyP99, LatencyP50, CpuPerRequest],
        judged: &[LatencyP99, CpuPerRequest],
        goals: &[],
    },
    Test {
        name: "p99-near-limit",
        chapter: Chapter::Layer7,
        title: "P99 latency near the limit",
        summary: "95% of what the slower of weir and its best peer sustains, less where a look found that one of \
                  them does not keep it, 30 KB (volume) and 1 B (transaction); a product that sustains less is \
                  not asked.",
        after: "our own: the stressed test above is set by the slowest product, which may leave the others idle",
        axis: Axis::ObjectBytes,
        picture: Picture::Percentiles,
        figures: &[LatencyP99, LatencyP50, CpuPerRequest],
        judged: &[LatencyP99, CpuPerRequest],
        goals: &[
            goal(LatencyP99, 1.0, Measure::RatioToBest(&[]), 0.7),
            goal(LatencyP99, 30.0 * 1024.0, Measure::RatioToBest(&[]), 0.7),
        ],
    },
    Test {
        name: "ramp",
        chapter: Chapter::Layer7,
        title: "From idle to past saturation",
        summary: "Offered rate rises in steps (open loop: latency counts from the intended send time). The \
                  knee is the last step that a product kept with a P99 below 10 ms, before the first that it \
                  did not.",
        after: "the method of Ixia IxLoad and Spirent Avalanche",
        axis: Axis::OfferedRate,
        picture: Picture::Lines,
        figures: &[LatencyP99, LatencyP50, Rate, CoreBusy],
        judged: &[LatencyP99],
        goals: &[],
    },
    Test {
        name: "cpu-65",
        chapter: Chapter::Layer7,
        title: "Transactions at 65% CPU",
        summary: "The highest rate at which the product's core is at most 65% busy, 128-byte objects on \
                  keep-alive connections: looked for downwards from what the product can do.",
        after: "Citrix ADC VPX 13.0 and F5 BIG-IP VE 15.1, 2020",
        axis: Axis::Single,
        picture: Picture::Bars,
        figures: &[Rate, CoreBusy],
        judged: &[Rate],
        goals: &[],
    },
    Test {
        name: "requests-per-cpu-second",
        chapter: Chapter::Layer7,
        title: "Requests per CPU second",
        summary: "Transactions per second of busy time at one rate for all, 65% of what the slowest product \
                  sustains: requests per watt on a machine without a meter. 128-byte objects on keep-alive \
                  connections.",
        after: "F5's comparative report, 2013",
        axis: Axis::Single,
        picture: Picture::Bars,
        figures: &[RequestsPerCpuSecond, RequestsPerJoule, CpuPerRequest, CoreBusy],
        judged: &[RequestsPerCpuSecond],
        goals: CPU_PER_REQUEST_GOALS,
    },
    Test {
        name: "advanced-l7",
        chapter: Chapter::Layer7,
        title: "Advanced L7",
        summary: "Content switching by URL (a quarter of the requests to another pool), rewriting of half of the \
                  requests, client-IP insertion on all, source-address persistence; one rate for all, 65% of \
                  what the slowest sustains.",
        after: "Citrix NetScaler MPX 17000 and F5 BIG-IP 8800, 2009",
        axis: Axis::Single,
        picture: Picture::Bars,
        figures: &[CpuPerRequest, OwnCpuPerRequest, LatencyP99, CoreBusy],
        judged: &[CpuPerRequest, LatencyP99],
        goals: FEATURE_GOALS,
    },
    Test {
        name: "cookie-persistence",
        chapter: Chapter::Layer7,
        title: "Cookie persistence",
        summary: "Clients bring the cookie that the product gave them, and get the member that it stands for; \
                  one rate for all, 65% of what the slowest sustains.",
        after: "Citrix NetScaler MPX 17000 and F5 BIG-IP 8800, 2009",
        axis: Axis::Single,
        picture: Picture::Bars,
        figures: &[CpuPerRequest, OwnCpuPerRequest, LatencyP99, CoreBusy],
        judged: &[CpuPerRequest, LatencyP99],
        goals: FEATURE_GOALS,
    },
    Test {
        name: "queue",
        chapter: Chapter::Layer7,
        title: "A queue for members that are full",
        summary: "8 members that take 10 ms for an answer and 4 requests at a time: 3,200 per second, by Little's law. \
                  Offered are as many and twice as many; what is too much waits. Good: as many answers with \
                  twice the load.",
        after: "our own: surge protection of NetScaler, request queuing of BIG-IP",
        axis: Axis::Cases(QUEUE_CASES),
        picture: Picture::Bars,
        figures: &[Rate, LatencyP99, CpuPerRequest],
        judged: &[Rate],
        goals: &[goal(Rate, 1.0, Measure::RatioToSetting(0.0), 0.95)],
    },
    observation::TEST,
    layer4::CONNECTIONS,
    layer4::THROUGHPUT,
    layer4::ENVELOPE,
    layer4::TRANSACTION_512K,
    layer4::UDP_QUERIES,
    layer4::FAST_L4,
    layer4::PACKETS,
    Test {
        name: "ssl-tps",
        chapter: Chapter::Tls,
        title: "SSL transactions per second",
        summary: "A connection, a full handshake and a 128-byte object per transaction, as fast as answered: \
                  AES-256-GCM, X25519, no session resumed. Beside the products stand the bare signatures of the \
                  library that weir makes handshakes with: nobody who uses it can have more.",
        after: "F5's comparative report, 2013",
        axis: Axis::Cases(SSL_CASES),
        picture: Picture::Bars,
        figures: &[HandshakesPerCpuSecond, Rate, CpuPerRequest, CoreBusy],
        judged: &[HandshakesPerCpuSecond, Rate],
        goals: &[
            goal(HandshakesPerCpuSecond, 0.0, Measure::RatioToBest(&[]), 1.3),
            goal(HandshakesPerCpuSecond, 1.0, Measure::RatioToBest(&[]), 1.3),
            goal(HandshakesPerCpuSecond, 2.0, Measure::RatioToBest(&[]), 1.3),
            goal(HandshakesPerCpuSecond, 3.0, Measure::RatioToBest(&[]), 1.3),
        ],
    },
    Test {
        name: "ssl-tps-resumed",
        chapter: Chapter::Tls,
        title: "SSL transactions per second, sessions resumed",
        summary: "As above, and every client goes on with the session that its ticket holds: of TLS 1.3 with a \
                  new key exchange, of TLS 1.2 without.",
        after: "F5's comparative report, 2013",
        axis: Axis::Cases(RESUMED_CASES),
        picture: Picture::Bars,
        figures: &[HandshakesPerCpuSecond, Rate, CpuPerRequest, CoreBusy],
        judged: &[HandshakesPerCpuSecond, Rate],
        goals: &[
            goal(HandshakesPerCpuSecond, 0.0, Measure::RatioToBest(&[]), 1.3),
            goal(HandshakesPerCpuSecond, 1.0, Measure::RatioToBest(&[]), 1.3),
        ],
    },
    Test {
        name: "ssl-bulk",
        chapter: Chapter::Tls,
        title: "SSL bulk throughput",
        summary: "128 KB objects, 100 requests per connection, TLS 1.3 with AES-256-GCM, as fast as answered.",
        after: "F5's comparative report, 2013",
        axis: Axis::Single,
        picture: Picture::Bars,
        figures: &[Goodput, CpuPerGigabyte, CoreBusy],
        judged: &[Goodput, CpuPerGigabyte],
        goals: &[goal(CpuPerGigabyte, 0.0, Measure::RatioToBest(&[]), 0.7)],
    },
    Test {
        name: "ssl-envelope",
        chapter: Chapter::Tls,
        title: "Performance envelope over TLS",
        summary: "Requests per second against goodput over objects of 128 B, 5 KB, 16 KB, 32 KB and 128 KB, \
                  100 requests per connection, TLS 1.3, as fast as answered. Further up and to the right is better.",
        after: "F5's comparative report, 2013",
        axis: Axis::ObjectBytes,
        picture: Picture::Envelope,
        figures: &[Rate, Goodput, CpuPerRequest, CoreBusy],
        judged: &[Rate, CpuPerRequest],
        goals: &[],
    },
    Test {
        name: "https-p99-idle",
        chapter: Chapter::Tls,
        title: "P99 latency over TLS, idle",
        summary: "100 requests per second on keep-alive connections of TLS 1.3, 30 KB (volume) and 1 B (transaction).",
        after: "Citrix ADC VPX 13.0 and F5 BIG-IP VE 15.1, 2020",
        axis: Axis::ObjectBytes,
        picture: Picture::Percentiles,
        figures: &[LatencyP99, LatencyP50],
        judged: &[LatencyP99, LatencyP50],
        goals: &[],
    },
    Test {
        name: "https-p99-stressed",
        chapter: Chapter::Tls,
        title: "P99 latency and CPU over TLS, stressed",
        summary: "95% of the load that the slowest product sustains, the same to all, 30 KB (volume) and 1 B \
                  (transaction), on keep-alive connections of TLS 1.3.",
        after: "Citrix ADC VPX 13.0 and F5 BIG-IP VE 15.1, 2020",
        axis: Axis::ObjectBytes,
        picture: Picture::Percentiles,
        figures: &[LatencyP99, LatencyP50, CpuPerRequest],
        judged: &[LatencyP99, CpuPerRequest],
        goals: &[
            goal(CpuPerRequest, 1.0, Measure::RatioTo("nginx"), 0.75),
            goal(CpuPerRequest, 30.0 * 1024.0, Measure::RatioTo("nginx"), 0.75),
        ],
    },
    Test {
        name: "http2",
        chapter: Chapter::Http2,
        title: "HTTP/2 requests per second",
        summary: "128-byte objects over 8 connections with 100 streams each, as fast as answered; members speak \
                  HTTP/1.1. Over TLS 1.3 (ALPN h2) and without TLS (prior knowledge).",
        after: "our own",
        axis: Axis::Cases(HTTP2_CASES),
        picture: Picture::Bars,
        figures: &[Rate, CpuPerRequest, OwnCpuPerRequest, CoreBusy],
        judged: &[Rate, CpuPerRequest],
        goals: &[
            goal(CpuPerRequest, 0.0, Measure::RatioTo("nginx"), 0.7),
            goal(CpuPerRequest, 0.0, Measure::RatioTo("envoy"), 0.4),
        ],
    },
    Test {
        name: "compression",
        chapter: Chapter::Compression,
        title: "Compression",
        summary: "HTML of 128 KB that is 75% compressible, as gzip, at level 5 and at the fastest level of each \
                  product; one rate for all, 65% of what the slowest sustains. HAProxy's library has one level. \
                  What is in every response is verified by the checksum that comes with it.",
        after: "Citrix NetScaler MPX 17000 and F5 BIG-IP 8800, 2009",
        axis: Axis::Cases(COMPRESSION_CASES),
        picture: Picture::Bars,
        figures: &[CpuPerRequest, ResponseBytes, OwnCpuPerRequest, LatencyP99, CoreBusy],
        judged: &[CpuPerRequest, ResponseBytes, LatencyP99],
        goals: &[
            goal(CpuPerRequest, 0.0, Measure::RatioTo("nginx"), 0.5),
            goal(ResponseBytes, 0.0, Measure::RatioTo("nginx"), 1.02),
            goal(CpuPerRequest, 1.0, Measure::RatioToOther("nginx", 0.0), 0.2),
        ],
    },
    Test {
        name: "compression-connections",
        chapter: Chapter::Compression,
        title: "Compression with all cores busy, as connections grow",
        summary: "The same at level 5, as fast as answered, over more and more keep-alive connections: P99 when the \
                  product's core is full. weir takes lower levels when it runs out of time, down to 1; what that costs \
                  stands in the bytes per response.",
        after: "Citrix NetScaler MPX 17000 and F5 BIG-IP 8800, 2009",
        axis: Axis::Connections,
        picture: Picture::Lines,
        figures: &[LatencyP99, LatencyP50, Rate, ResponseBytes, CpuPerRequest, CoreBusy],
        judged: &[LatencyP99, Rate],
        goals: &[],
    },
    waf::GET,
    waf::FORM_1K,
    waf::FORM_8K,
    waf::JSON_8K,
    waf::IDLE,
    waf::STRESSED,
    waf::MEMORY,
    Test {
        name: "feature-instructions",
        chapter: Chapter::Counted,
        title: "User instructions per request, by feature",
        summary: "As in the test below, plainly and with what the three tests above ask for: what a feature adds, \
                  without the noise of time.",
        after: "our own",
        axis: Axis::Cases(FEATURE_CASES),
        picture: Picture::Bars,
        figures: &[InstructionsPerRequest],
        judged: &[InstructionsPerRequest],
        goals: &[
            goal(InstructionsPerRequest, 1.0, Measure::RatioToSetting(0.0), 1.10),
            goal(InstructionsPerRequest, 2.0, Measure::RatioToSetting(0.0), 1.10),
            goal(InstructionsPerRequest, 3.0, Measure::RatioToSetting(0.0), 1.10),
        ],
    },
    Test {
        name: "instructions",
        chapter: Chapter::Counted,
        title: "User instructions per request",
        summary: "Instructions that the product executes in user space, counted by callgrind, one request \
                  after the other; the difference of a short and a long load, so that starting and ending \
                  cancel. What the kernel does for the product is not in it.",
        after: "our own",
        axis: Axis::Single,
        picture: Picture::Bars,
        figures: &[InstructionsPerRequest],
        judged: &[InstructionsPerRequest],
        goals: &[
            goal(InstructionsPerRequest, 0.0, Measure::RatioTo("nginx"), 0.4),
            goal(InstructionsPerRequest, 0.0, Measure::RatioTo("haproxy"), 0.3),
        ],
    },
    Test {
        name: "system-calls",
        chapter: Chapter::Counted,
        title: "System calls per request",
        summary: "Counted by perf, with one connection (one request at a time) and with 64 that ask as fast \
                  as answered, where a product may serve several of them with one wait for events.",
        after: "our own",
        axis: Axis::Connections,
        picture: Picture::Bars,
        figures: &[SystemCallsPerRequest],
        judged: &[SystemCallsPerRequest],
        goals: &[goal(SystemCallsPerRequest, 1.0, Measure::ExcessOver(RELAY), 0.2)],
    },
    Test {
        name: "idle-memory",
        chapter: Chapter::Counted,
        title: "Memory of idle connections, and its growth",
        summary: "Resident memory per client connection while 10,000 rest after one request each; all of it \
                  when a million further requests were made, and how much those added.",
        after: "our own",
        axis: Axis::Single,
        picture: Picture::Bars,
        figures: &[MemoryPerConnection, Memory, MemoryGrowth],
        judged: &[MemoryPerConnection],
        goals: &[
            goal(MemoryPerConnection, 0.0, Measure::Value, 1_024.0),
            goal(MemoryGrowth, 0.0, Measure::Value, 256.0),
        ],
    },
    Test {
        name: "https-idle-memory",
        chapter: Chapter::Counted,
        title: "Memory of idle TLS connections",
        summary: "As above, over TLS 1.3.",
        after: "our own",
        axis: Axis::Single,
        picture: Picture::Bars,
        figures: &[MemoryPerConnection, Memory, MemoryGrowth],
        judged: &[MemoryPerConnection],
        goals: &[goal(MemoryPerConnection, 0.0, Measure::Value, 8_192.0)],
    },
    Test {
        name: "growth",
        chapter: Chapter::Counted,
        title: "Instructions as virtual servers, members and rules grow",
        summary: "weir's own user instructions per request with few and with many virtual servers, members and \
                  rules on hosts and prefixes of paths: what a large configuration costs every request.",
        after: "our own",
        axis: Axis::Cases(GROWTH_CASES),
        picture: Picture::Bars,
        figures: &[InstructionsPerRequest],
        judged: &[],
        goals: &[
            goal(InstructionsPerRequest, 1.0, Measure::RatioToSetting(0.0), 1.05),
            goal(InstructionsPerRequest, 3.0, Measure::RatioToSetting(2.0), 1.05),
            goal(InstructionsPerRequest, 5.0, Measure::RatioToSetting(4.0), 1.05),
            goal(InstructionsPerRequest, 7.0, Measure::RatioToSetting(6.0), 1.2),
        ],
    },
];

/// Tests of the vendor reports that need a missing feature.
pub const PENDING: &[PendingTest] = &[];

/// The test with that name.
pub fn test(name: &str) -> Option<&'static Test> {
    TESTS.iter().find(|test| test.name == name)
}
