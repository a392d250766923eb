//! `tracing`, of the file and of a virtual server.

use crate::decode::Spanned;
use crate::raw::tls::PoolTls;
use crate::scalar::{Duration, MINUTE, SECOND, Text};
use crate::shapes::{ByField, FilePath, Network, SecretText, Share, TracesUrl};

section! {
    /// Where traces go: an OpenTelemetry collector. `tracing` of a virtual server says which requests are traced.
    Exporting at "tracing" {
        /// The URL of the collector, for OTLP over HTTP with protobuf: `http://` or `https://`. Without a path: `/v1/traces`.
        required otlp: TracesUrl;
        /// For `https`: trusted authorities and a client certificate. The collector's certificate must match the host of the URL, or `server_name`.
        optional tls: PoolTls;
        /// Further fields of each request to the collector. Put secrets into `headers_file`.
        optional headers: ByField<SecretText>;
        /// A file with further fields: one line `Name: value` for each.
        optional headers_file: FilePath;
        /// `service.name` of all spans.
        default service_name: Text = Text("weir".into());
        /// The time for a request to the collector.
        default timeout: Duration<100, MINUTE> = Duration(10 * SECOND);
        /// The longest time that a span waits for others, to be sent with them.
        default interval: Duration<100, MINUTE> = Duration(2 * SECOND);
    }
    later []
}

section! {
    /// Which requests are traced.
    Tracing at "virtual_servers.NAME.tracing" {
        /// The share of new traces that are recorded and sent: from 0.001% to 100%. A trace that a trusted client continues is recorded if its `traceparent` says so.
        default sample: Share = Share(1_000);
        /// Addresses and networks whose `traceparent` and `tracestate` weir continues. From all others weir replaces `traceparent`, and removes `tracestate`. Default: `client_address.trust`.
        optional trust: Vec<Spanned<Network>>;
    }
    later []
}
