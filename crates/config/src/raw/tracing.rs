//! `tracing`, of the file and of a virtual server.

use crate::decode::Spanned;
use crate::raw::tls::PoolTls;
use crate::scalar::{Duration, MINUTE, SECOND, Text};
use crate::shapes::{ByField, FilePath, Network, SecretText, Share, TracesUrl};

section! {
    /// The target of traces: an OpenTelemetry collector. `virtual_servers.NAME.tracing` selects the traced requests.
    Exporting at "tracing" {
        /// The URL of the collector, for OTLP over HTTP with protobuf: `http://` or `https://`. Default path: `/v1/traces`.
        required otlp: TracesUrl;
        /// For `https`: trusted authorities and a client certificate. The collector's certificate must match the host of the URL, or `server_name`.
        optional tls: PoolTls;
        /// Additional headers of the requests to the collector. Put secrets into `headers_file`.
        optional headers: ByField<SecretText>;
        /// A file with additional headers, one `Name: value` per line.
        optional headers_file: FilePath;
        /// `service.name` of all spans.
        default service_name: Text = Text("weir".into());
        /// Maximum time for a request to the collector.
        default timeout: Duration<100, MINUTE> = Duration(10 * SECOND);
        /// Maximum time that weir collects spans before it sends them as a batch.
        default interval: Duration<100, MINUTE> = Duration(2 * SECOND);
    }
    later []
}

section! {
    /// Tracing of requests.
    Tracing at "virtual_servers.NAME.tracing" {
        /// The share of new traces that are recorded and sent. For a `traceparent` from an address in `trust`, its sampled flag decides instead.
        default sample: Share = Share(1_000);
        /// Addresses and networks whose traces weir continues (`traceparent`, `tracestate`). In requests from other addresses, weir replaces `traceparent` and removes `tracestate`. Default: `client_address.trust`.
        optional trust: Vec<Spanned<Network>>;
    }
    later []
}
