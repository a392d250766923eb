//! Figures: quantities that are calculated from a measurement.

use super::Axis;
use crate::record::Point;

/// The assumed noise of repeatable counts, even if the rounds show less, because a restarted program has another memory
/// layout. See [`Figure::is_repeatable`].
pub const COUNTED_NOISE_SHARE: f64 = 0.01;

/// A quantity that follows from one measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Figure {
    /// Good transactions per second.
    Rate,
    /// Body bytes per second.
    Goodput,
    /// Median latency.
    LatencyP50,
    /// 99th percentile of latency.
    LatencyP99,
    /// Busy time of the product's cores per transaction, softirqs included.
    CpuPerRequest,
    /// CPU time of the product's own threads per transaction.
    OwnCpuPerRequest,
    /// CPU time of weir's worker threads per transaction.
    WorkersCpuPerRequest,
    /// CPU time of weir's other threads per transaction: control plane and log writing.
    OthersCpuPerRequest,
    /// Busy time of the product's cores per gigabyte of body data.
    CpuPerGigabyte,
    /// Busy share of the product's cores.
    CoreBusy,
    /// Transactions per second of busy time. Replaces requests per watt on a machine without energy counters.
    RequestsPerCpuSecond,
    /// TLS handshakes per second of busy time, with one request per connection.
    HandshakesPerCpuSecond,
    /// Body bytes of a response as transferred, that is after compression.
    ResponseBytes,
    /// Transactions per joule of the processor package.
    RequestsPerJoule,
    /// Resident memory of the product.
    Memory,
    /// Share of failed transactions.
    Lost,
    /// Packets per second that arrived at the servers.
    PacketRate,
    /// Busy time of the product's cores per arrived packet.
    CpuPerPacket,
    /// CPU time of all cores per transaction, less the CPU time of a direct connection without a product.
    AddedCpuPerRequest,
    /// CPU time of the product's cores per transaction, less the CPU time without the firewall.
    FirewallCpuPerRequest,
    /// CPU time of the product's cores per transaction without the firewall.
    UnguardedCpuPerRequest,
    /// Memory of many virtual servers with a firewall, less the memory of one.
    FirewallMemory,
    /// Time to load a firewall's rules.
    RulesLoadTime,
    /// User-space instructions per transaction.
    InstructionsPerRequest,
    /// System calls per transaction.
    SystemCallsPerRequest,
    /// Resident memory per idle client connection.
    MemoryPerConnection,
    /// Growth of resident memory over many transactions.
    MemoryGrowth,
}

/// The direction in which a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BetterDirection {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// The figure explains others and is not judged.
    Neither,
}

impl Figure {
    /// Every figure.
    pub const ALL: [Self; 27] = [
        Self::Rate,
        Self::Goodput,
        Self::LatencyP50,
        Self::LatencyP99,
        Self::CpuPerRequest,
        Self::OwnCpuPerRequest,
        Self::WorkersCpuPerRequest,
        Self::OthersCpuPerRequest,
        Self::CpuPerGigabyte,
        Self::CoreBusy,
        Self::RequestsPerCpuSecond,
        Self::HandshakesPerCpuSecond,
        Self::ResponseBytes,
        Self::RequestsPerJoule,
        Self::Memory,
        Self::InstructionsPerRequest,
        Self::SystemCallsPerRequest,
        Self::MemoryPerConnection,
        Self::MemoryGrowth,
        Self::Lost,
        Self::PacketRate,
        Self::CpuPerPacket,
        Self::AddedCpuPerRequest,
        Self::FirewallCpuPerRequest,
        Self::UnguardedCpuPerRequest,
        Self::FirewallMemory,
        Self::RulesLoadTime,
    ];

    /// The figure's name in charts and tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Rate => "requests per second",
            Self::Goodput => "goodput",
            Self::LatencyP50 => "median latency",
            Self::LatencyP99 => "P99 latency",
            Self::CpuPerRequest => "CPU per request, core busy",
            Self::OwnCpuPerRequest => "CPU per request, own threads",
            Self::WorkersCpuPerRequest => "CPU per request, worker threads",
            Self::OthersCpuPerRequest => "CPU per request, control plane and logs",
            Self::CpuPerGigabyte => "CPU per gigabyte, core busy",
            Self::CoreBusy => "core busy",
            Self::RequestsPerCpuSecond => "requests per CPU second",
            Self::HandshakesPerCpuSecond => "handshakes per CPU second",
            Self::ResponseBytes => "bytes per response",
            Self::RequestsPerJoule => "requests per joule",
            Self::Memory => "resident memory",
            Self::InstructionsPerRequest => "user instructions per request",
            Self::SystemCallsPerRequest => "system calls per request",
            Self::MemoryPerConnection => "memory per idle connection",
            Self::MemoryGrowth => "memory growth",
            Self::Lost => "lost answers",
            Self::PacketRate => "packets per second",
            Self::CpuPerPacket => "CPU per packet, core busy",
            Self::AddedCpuPerRequest => "CPU per request, added to the direct way",
            Self::FirewallCpuPerRequest => "CPU per request, added by the firewall",
            Self::UnguardedCpuPerRequest => "CPU per request without the firewall",
            Self::FirewallMemory => "memory that many virtual servers add",
            Self::RulesLoadTime => "time to load the rules",
        }
    }

    /// The unit of [`Self::of`], written after a value; empty for a count.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Rate | Self::RequestsPerCpuSecond | Self::HandshakesPerCpuSecond => "1/s",
            Self::Goodput => "Gbit/s",
            Self::LatencyP50 | Self::LatencyP99 | Self::RulesLoadTime => "ms",
            Self::CpuPerRequest
            | Self::OwnCpuPerRequest
            | Self::WorkersCpuPerRequest
            | Self::OthersCpuPerRequest
            | Self::AddedCpuPerRequest
            | Self::FirewallCpuPerRequest
            | Self::UnguardedCpuPerRequest => "µs",
            Self::CpuPerGigabyte => "ms/GB",
            Self::CoreBusy | Self::Lost => "%",
            Self::PacketRate => "Mpkt/s",
            Self::CpuPerPacket => "ns",
            Self::RequestsPerJoule => "1/J",
            Self::Memory | Self::FirewallMemory => "MiB",
            Self::InstructionsPerRequest | Self::SystemCallsPerRequest => "",
            Self::MemoryPerConnection | Self::ResponseBytes => "B",
            Self::MemoryGrowth => "KiB",
        }
    }

    /// Whether the same load gives the same value again, so that one round is enough to judge; see
    /// [`COUNTED_NOISE_SHARE`]. With many connections, the number of events per wait, and so of system calls, depends
    /// on time. Memory depends on earlier allocations.
    pub fn is_repeatable(self, axis: Axis, at: f64) -> bool {
        match self {
            Self::InstructionsPerRequest | Self::ResponseBytes => true,
            Self::SystemCallsPerRequest => axis == Axis::Connections && at == 1.0,
            _ => false,
        }
    }

    /// Whether the figure is a count and not a time: a run needs few rounds of it.
    pub fn is_counted(self) -> bool {
        matches!(
            self,
            Self::InstructionsPerRequest | Self::SystemCallsPerRequest | Self::MemoryPerConnection
        )
    }

    /// Whether the figure is a latency, which failed requests do not affect.
    pub fn is_latency(self) -> bool {
        matches!(self, Self::LatencyP50 | Self::LatencyP99)
    }

    /// The direction in which the figure is better.
    pub fn better(self) -> BetterDirection {
        match self {
            Self::Rate
            | Self::Goodput
            | Self::RequestsPerCpuSecond
            | Self::HandshakesPerCpuSecond
            | Self::RequestsPerJoule
            | Self::PacketRate => BetterDirection::Higher,
            Self::CoreBusy => BetterDirection::Neither,
            _ => BetterDirection::Lower,
        }
    }

    /// The figure of one measurement; `None` if it is unknown (no transaction counted, or no energy counter).
    pub fn of(self, point: &Point) -> Option<f64> {
        let (load, cost) = (&point.load, &point.cost);
        let (requests, bytes) = while_metered(point);
        let per_request = |seconds: f64| divided(seconds * 1e6, requests);
        let milliseconds = |us: u64| (load.latency_us.count > 0).then_some(us as f64 / 1e3);
        match self {
            Self::Rate => Some(load.requests_per_second),
            Self::Goodput => {
                let window = load.completed();
                divided(window.bytes as f64 * 8.0 / 1e9, window.elapsed_s)
            }
            Self::LatencyP50 => milliseconds(load.latency_us.p50),
            Self::LatencyP99 => milliseconds(load.latency_us.p99),
            Self::CpuPerRequest => per_request(cost.busy_s),
            Self::OwnCpuPerRequest => per_request(cost.process_s),
            Self::WorkersCpuPerRequest => per_request(cost.workers_s?),
            Self::OthersCpuPerRequest => per_request((cost.process_s - cost.workers_s?).max(0.0)),
            Self::CpuPerGigabyte => divided(cost.busy_s * 1e3, bytes / 1e9),
            Self::CoreBusy => divided(cost.busy_s * 100.0, cost.elapsed_s * cost.cores as f64),
            Self::RequestsPerCpuSecond | Self::HandshakesPerCpuSecond => {
                divided(requests, cost.busy_s)
            }
            Self::ResponseBytes => divided(load.bytes as f64, load.requests as f64),
            Self::RequestsPerJoule => cost.joules.and_then(|joules| divided(requests, joules)),
            Self::Lost => {
                let begun = load.requests as f64 + load.errors as f64;
                divided(load.errors as f64 * 100.0, begun)
            }
            Self::PacketRate => Some(load.requests_per_second / 1e6),
            Self::CpuPerPacket => divided(cost.busy_s * 1e9, requests),
            Self::AddedCpuPerRequest => {
                let all = per_request(cost.busy_s + cost.load_busy_s?)?;
                Some(all - cost.direct_s_per_request? * 1e6)
            }
            Self::FirewallCpuPerRequest => {
                Some(per_request(cost.busy_s)? - cost.unguarded_s_per_request? * 1e6)
            }
            Self::UnguardedCpuPerRequest => cost.unguarded_s_per_request.map(|cost| cost * 1e6),
            Self::FirewallMemory => {
                let steps = point.counts.firewall?;
                let more = steps.many_bytes.saturating_sub(steps.one_bytes);
                Some(more as f64 / (1024.0 * 1024.0))
            }
            Self::RulesLoadTime => Some(point.counts.firewall?.check_s * 1e3),
            Self::Memory => Some(cost.resident_bytes as f64 / (1024.0 * 1024.0)),
            Self::InstructionsPerRequest => point.counts.instructions?.per_request(),
            Self::SystemCallsPerRequest => point.counts.system_calls?.per_request(),
            Self::MemoryPerConnection => {
                let memory = point.counts.memory?;
                let held = memory.holding_bytes as f64 - memory.before_bytes as f64;
                divided(held, memory.connections as f64)
            }
            Self::MemoryGrowth => {
                let memory = point.counts.memory?;
                // Released memory counts as no growth.
                Some(memory.worn_bytes.saturating_sub(memory.warm_bytes) as f64 / 1024.0)
            }
        }
    }
}

/// Good responses and body bytes between the meter's two readings: those of the load's window, scaled to the meter's
/// time. The two times differ only by a delay.
fn while_metered(point: &Point) -> (f64, f64) {
    let window = point.load.completed();
    let windows = divided(point.cost.elapsed_s, window.elapsed_s).unwrap_or(1.0);
    (window.requests as f64 * windows, window.bytes as f64 * windows)
}

fn divided(value: f64, by: f64) -> Option<f64> {
    (by > 0.0).then(|| value / by)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Window;
    use crate::report::testing;

    /// The product used 1.5 s of CPU in the meter's 3 s: 0.5 s for each second of the window, in which 100 responses
    /// were complete. Later responses do not count.
    #[test]
    fn costs_are_told_by_what_was_complete_in_the_window() {
        let mut point = testing::run().tests[0].points[0].clone();
        (point.load.requests, point.load.bytes, point.load.elapsed_s) = (120, 120_000_000, 2.8);
        point.load.window = Some(Window { elapsed_s: 2.0, requests: 200, bytes: 200_000_000 });
        (point.cost.elapsed_s, point.cost.busy_s, point.cost.cores) = (3.0, 1.5, 1);
        point.cost.joules = Some(30.0);
        let check = |point: &Point, figure: Figure, expected: f64| {
            let found = figure.of(point).expect("a value");
            assert!((found / expected - 1.0).abs() < 1e-9, "{figure:?}: {found}, not {expected}");
        };
        check(&point, Figure::CpuPerRequest, 5_000.0);
        check(&point, Figure::CpuPerGigabyte, 5_000.0);
        check(&point, Figure::RequestsPerCpuSecond, 200.0);
        check(&point, Figure::RequestsPerJoule, 10.0);
        check(&point, Figure::CoreBusy, 50.0);
        check(&point, Figure::Goodput, 0.8);
        // All cores used 10,000 µs per response, and 7,000 µs without a product.
        (point.cost.load_busy_s, point.cost.direct_s_per_request) = (Some(1.5), Some(0.007));
        check(&point, Figure::AddedCpuPerRequest, 3_000.0);
        point.cost.unguarded_s_per_request = Some(0.002);
        check(&point, Figure::FirewallCpuPerRequest, 3_000.0);
        check(&point, Figure::UnguardedCpuPerRequest, 2_000.0);
        point.cost.workers_s = None;
        assert_eq!(Figure::WorkersCpuPerRequest.of(&point), None);
        (point.cost.process_s, point.cost.workers_s) = (1.5, Some(1.2));
        check(&point, Figure::WorkersCpuPerRequest, 4_000.0);
        check(&point, Figure::OthersCpuPerRequest, 1_000.0);
        // Records of earlier versions have no window: only the begun requests and the time until the last response.
        point.load.window = None;
        point.load.elapsed_s = 3.0;
        check(&point, Figure::CpuPerRequest, 12_500.0);
        check(&point, Figure::Goodput, 0.32);
    }
}
