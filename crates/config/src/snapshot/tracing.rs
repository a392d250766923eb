//! `tracing` of the file and of a virtual server.

use std::sync::Arc;

use weir_core::expression::AddressSet;

use super::{HttpUrl, PoolTls, Secret};

/// Trace settings of a virtual server.
#[derive(Debug, Clone)]
pub struct Tracing {
    /// The share of new traces that are sampled, in parts of [`Tracing::WHOLE`].
    pub sample: u32,
    /// Peers whose `traceparent` is continued.
    pub trust: AddressSet,
}

impl Tracing {
    /// The share that means all traces: shares are in thousandths of a percent.
    pub const WHOLE: u32 = 100_000;

    /// Whether a new trace is sampled, decided by the lower 7 bytes of its id, which are random.
    pub fn samples(&self, trace_id: u128) -> bool {
        const PLACES: u128 = 1 << 56;
        (trace_id % PLACES) * u128::from(Self::WHOLE) < u128::from(self.sample) * PLACES
    }
}

/// The collector, and how spans are exported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceExport {
    /// The collector.
    pub url: HttpUrl,
    /// TLS settings for an `https` collector.
    pub tls: Option<PoolTls>,
    /// Additional header fields of each export request.
    pub headers: Vec<(Arc<str>, Secret)>,
    /// `service.name` of all spans.
    pub service_name: Arc<str>,
    /// Timeout of an export request.
    pub timeout_ms: u64,
    /// Maximum time that a span waits for others before export.
    pub interval_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_traces_is_recorded() {
        let lower = (1_u128 << 56) - 1;
        for (sample, trace_id, expected) in [
            (100_000, lower, true),
            (100_000, u128::MAX, true),
            (50_000, lower / 2, true),
            (50_000, lower / 2 + 1, false),
            (1, 0, true),
            (1, lower / 100_000, true),
            (1, lower / 100_000 + 1, false),
            // The upper bytes have no effect on sampling.
            (1, 7 << 56, true),
            (99_999, u128::MAX, false),
        ] {
            let tracing = Tracing { sample, trust: AddressSet::default() };
            assert_eq!(tracing.samples(trace_id), expected, "{sample} {trace_id:x}");
        }
    }
}
