//! The rows of a document's tables. Each has one figure of a test, at one setting.

use crate::catalogue::Figure;

/// One row of the table.
#[derive(Debug)]
pub struct Row {
    /// The first cell, for readers who do not know the test.
    pub label: &'static str,
    /// The test.
    pub test: &'static str,
    /// The figure. In the ramp, the rate stands for the knee.
    pub figure: Figure,
    /// The setting; 0 if the test has none.
    pub at: f64,
}

const fn row(label: &'static str, test: &'static str, figure: Figure, at: f64) -> Row {
    Row { label, test, figure, at }
}

use Figure::{
    AddedCpuPerRequest, CpuPerGigabyte, CpuPerPacket, CpuPerRequest, FirewallCpuPerRequest,
    Goodput, HandshakesPerCpuSecond, InstructionsPerRequest, LatencyP99, MemoryPerConnection,
    OthersCpuPerRequest, Rate, RequestsPerCpuSecond, ResponseBytes, SystemCallsPerRequest,
    WorkersCpuPerRequest,
};

const VOLUME_BYTES: f64 = 30.0 * 1024.0;

/// The rows of the brief table: test, figure and setting of an entry in [`ROWS`].
pub const BRIEF: [(&str, Figure, f64); 6] = [
    ("l7-requests", CpuPerRequest, 0.0),
    ("l7-throughput", Goodput, 0.0),
    ("ssl-tps", HandshakesPerCpuSecond, 0.0),
    ("http2", CpuPerRequest, 0.0),
    ("l4-packets", CpuPerPacket, 1.0),
    ("waf-get", FirewallCpuPerRequest, 0.0),
];

/// The rows of the summary, in order.
pub const ROWS: &[Row] = &[
    row(
        "CPU per request: 128 B, 10 requests per connection, closed loop",
        "l7-requests",
        CpuPerRequest,
        0.0,
    ),
    row(
        "CPU per request: 128 B, half of them to another pool by suffix",
        "l7-uri",
        CpuPerRequest,
        0.0,
    ),
    row("CPU per request: 128 B, a connection each", "l7-connections", CpuPerRequest, 0.0),
    row(
        "requests per CPU second at one rate for all",
        "requests-per-cpu-second",
        RequestsPerCpuSecond,
        0.0,
    ),
    row("goodput: 128 KB objects", "l7-throughput", Goodput, 0.0),
    row("CPU per gigabyte: 128 KB objects", "l7-throughput", CpuPerGigabyte, 0.0),
    row("CPU per request: 8 KB, 12,000 kept connections", "basic-l7", CpuPerRequest, 12e3),
    row("CPU per request: 8 KB, 96,000 kept connections", "basic-l7", CpuPerRequest, 96e3),
    row("P99: 30 KB, 100 requests/s", "p99-idle", LatencyP99, VOLUME_BYTES),
    row("P99: 30 KB, 95% of what the slowest sustains", "p99-stressed", LatencyP99, VOLUME_BYTES),
    row("highest rate kept with a P99 below 10 ms", "ramp", Rate, 0.0),
    row(
        "CPU per request: URLs to pools, paths rewritten, client's address, persistence",
        "advanced-l7",
        CpuPerRequest,
        0.0,
    ),
    row("CPU per request: cookie persistence", "cookie-persistence", CpuPerRequest, 0.0),
    row(
        "CPU of the data path per request: access log, metrics scraped, dashboard open",
        "observed",
        WorkersCpuPerRequest,
        0.0,
    ),
    row(
        "CPU of the data path per request: the same, all requests recorded",
        "observed",
        WorkersCpuPerRequest,
        1.0,
    ),
    row(
        "CPU of the control plane and logs per request: the first of these",
        "observed",
        OthersCpuPerRequest,
        0.0,
    ),
    row(
        "full TLS handshakes per second of CPU time: RSA-2048, TLS 1.3",
        "ssl-tps",
        HandshakesPerCpuSecond,
        0.0,
    ),
    row(
        "full TLS handshakes per second of CPU time: RSA-2048, TLS 1.2",
        "ssl-tps",
        HandshakesPerCpuSecond,
        1.0,
    ),
    row(
        "full TLS handshakes per second of CPU time: P-256, TLS 1.3",
        "ssl-tps",
        HandshakesPerCpuSecond,
        2.0,
    ),
    row(
        "full TLS handshakes per second of CPU time: P-256, TLS 1.2",
        "ssl-tps",
        HandshakesPerCpuSecond,
        3.0,
    ),
    row(
        "resumed TLS handshakes per second of CPU time: TLS 1.3",
        "ssl-tps-resumed",
        HandshakesPerCpuSecond,
        0.0,
    ),
    row(
        "resumed TLS handshakes per second of CPU time: TLS 1.2",
        "ssl-tps-resumed",
        HandshakesPerCpuSecond,
        1.0,
    ),
    row("CPU per gigabyte: 128 KB objects over TLS 1.3", "ssl-bulk", CpuPerGigabyte, 0.0),
    row(
        "CPU per request: 1 B over TLS 1.3, 95% of what the slowest sustains",
        "https-p99-stressed",
        CpuPerRequest,
        1.0,
    ),
    row(
        "CPU per request: 30 KB over TLS 1.3, 95% of what the slowest sustains",
        "https-p99-stressed",
        CpuPerRequest,
        VOLUME_BYTES,
    ),
    row(
        "CPU per request: 128 B, HTTP/2 over TLS, 8 connections with 100 streams each",
        "http2",
        CpuPerRequest,
        0.0,
    ),
    row("CPU per response: 128 KB of HTML, gzip level 5", "compression", CpuPerRequest, 0.0),
    row("bytes of that response", "compression", ResponseBytes, 0.0),
    row(
        "CPU per response: 128 KB of HTML, gzip, the fastest level",
        "compression",
        CpuPerRequest,
        1.0,
    ),
    row("L4: CPU per connection of 128 B, relayed", "l4-connections", CpuPerRequest, 0.0),
    row("L4: CPU per gigabyte, 128 KB objects, relayed", "l4-throughput", CpuPerGigabyte, 0.0),
    row("L4: CPU per gigabyte, 512 KB a connection, relayed", "l4-512k", CpuPerGigabyte, 0.0),
    row("L4: CPU per connection of 128 B, by packets", "fast-l4", AddedCpuPerRequest, 0.0),
    row("L4: CPU per object of 128 KB, by packets", "fast-l4", AddedCpuPerRequest, 1.0),
    row("L4: CPU per connection of 512 KB, by packets", "fast-l4", AddedCpuPerRequest, 2.0),
    row("UDP: CPU per query, each from a port of its own", "udp-queries", CpuPerRequest, 0.0),
    row("UDP: CPU per query of 64 flows", "udp-queries", CpuPerRequest, 1.0),
    row("CPU per packet: 1,024 flows, XDP", "l4-packets", CpuPerPacket, 0.0),
    row("CPU per packet: 65,536 flows, XDP", "l4-packets", CpuPerPacket, 1.0),
    row("CPU per packet: 1,048,576 flows, XDP", "l4-packets", CpuPerPacket, 2.0),
    row("CPU per packet: 1,024 flows, tcx", "l4-packets", CpuPerPacket, 3.0),
    row("CPU per packet: 65,536 flows, tcx", "l4-packets", CpuPerPacket, 4.0),
    row(
        "CPU per request that the WAF adds: GET with a query",
        "waf-get",
        FirewallCpuPerRequest,
        0.0,
    ),
    row(
        "CPU per request that the WAF adds: form of 1 KB",
        "waf-form-1k",
        FirewallCpuPerRequest,
        0.0,
    ),
    row(
        "CPU per request that the WAF adds: form of 8 KB",
        "waf-form-8k",
        FirewallCpuPerRequest,
        0.0,
    ),
    row(
        "CPU per request that the WAF adds: 8 KB of JSON",
        "waf-json-8k",
        FirewallCpuPerRequest,
        0.0,
    ),
    row("user instructions per request", "instructions", InstructionsPerRequest, 0.0),
    row("user instructions per request: 10,000 rules", "growth", InstructionsPerRequest, 7.0),
    row("system calls per request, one at a time", "system-calls", SystemCallsPerRequest, 1.0),
    row("memory per idle connection, at 10,000", "idle-memory", MemoryPerConnection, 0.0),
    row("memory per idle connection of TLS 1.3", "https-idle-memory", MemoryPerConnection, 0.0),
];
