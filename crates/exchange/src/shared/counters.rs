//! Per-core counters, summed when read.
//!
//! Each worker writes its own cache lines with plain relaxed stores: no read-modify-write on a
//! shared line, ever. Readers see each counter at most one event late.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_http::flaws::{Flaw, Flaws};

/// One number that only one thread writes and any thread reads.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `amount`; only the owning worker may call it.
    #[inline]
    pub fn add(&self, amount: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(amount), Relaxed);
    }

    /// Subtracts `amount` (gauges); only the owning worker may call it.
    #[inline]
    pub fn subtract(&self, amount: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_sub(amount), Relaxed);
    }

    /// The value now.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// One block of counters per worker, each on cache lines of its own.
#[derive(Debug)]
pub struct PerWorker<T>(Box<[Arc<Padded<T>>]>);

/// The block of one worker, kept by that worker.
#[derive(Debug)]
pub struct Own<T>(Arc<Padded<T>>);

impl<T> Deref for Own<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0.0
    }
}

/// 128 bytes: two lines, because adjacent-line prefetch makes pairs of them ping-pong.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded<T>(T);

impl<T: Block> PerWorker<T> {
    /// Zeroed blocks for this many workers.
    pub fn new(workers: usize) -> Self {
        Self((0..workers).map(|_| Arc::new(Padded(T::default()))).collect())
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.0.len()
    }

    /// The block that worker `index` writes.
    #[inline]
    pub fn of(&self, index: usize) -> &T {
        &self.0[index].0
    }

    /// The counters of one worker, for that worker to keep.
    pub fn own(&self, index: usize) -> Own<T> {
        Own(Arc::clone(&self.0[index]))
    }

    /// Sum over all workers.
    pub fn totals(&self) -> T::Totals {
        let mut totals = T::Totals::default();
        for block in &self.0 {
            block.0.add_to(&mut totals);
        }
        totals
    }
}

/// A set of counters and the plain numbers that it sums up to.
pub trait Block: Default {
    /// The same fields as plain numbers.
    type Totals: Default;
    /// Adds the current values.
    fn add_to(&self, totals: &mut Self::Totals);
}

/// Declares a block and its totals in one go, so that no counter is forgotten on either side.
macro_rules! counters {
    ($(#[$doc:meta])* $block:ident => $totals:ident {
        $($(#[$field_doc:meta])* $field:ident,)*
        $(;histograms $($(#[$histogram_doc:meta])* $histogram:ident,)*)?
    }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub struct $block {
            $($(#[$field_doc])* pub $field: Counter,)*
            $($($(#[$histogram_doc])* pub $histogram: Histogram,)*)?
        }
        $(#[$doc])*
        #[derive(Debug, Default, Clone)]
        pub struct $totals {
            $($(#[$field_doc])* pub $field: u64,)*
            $($($(#[$histogram_doc])* pub $histogram: HistogramTotals,)*)?
        }
        impl Block for $block {
            type Totals = $totals;
            fn add_to(&self, totals: &mut $totals) {
                $(totals.$field = totals.$field.wrapping_add(self.$field.get());)*
                $($(self.$histogram.add_to(&mut totals.$histogram);)*)?
            }
        }
    };
}

counters! {
    /// Totals of one virtual server.
    VirtualServerCounters => VirtualServerTotals {
        /// Client connections accepted.
        connections_accepted,
        /// Client connections open now.
        connections_open,
        /// Client connections answered 503 and closed at `limits.connections`.
        connections_refused,
        /// Requests whose head was complete and well-formed.
        requests,
        /// Requests under way now.
        requests_active,
        /// Requests refused for their form (400, 414, 431, 501, 505, …).
        requests_malformed,
        /// Requests refused for a path that servers read differently (400).
        requests_path_refused,
        /// Clients dropped because a request head was not complete in `header_timeout`.
        header_timeouts,
        /// Clients dropped because a body made no progress in `body_timeout`.
        body_timeouts,
        /// Clients that went away before their response was complete.
        client_aborts,
        /// Connections that became tunnels (101).
        tunnels,
        /// Client connections that speak HTTP/2.
        http2_connections,
        /// Of those, connections ended by a protocol error.
        http2_errors,
        /// Of those, connections ended because too many streams were reset, refused or written to after their end.
        http2_floods_streams,
        /// HTTP/2 connections ended because of too many frames without benefit.
        http2_floods_frames,
        /// HTTP/2 connections ended because of header blocks that do not end or are too large.
        http2_floods_headers,
        /// TLS handshakes done in full.
        handshakes_full,
        /// TLS handshakes that went on with an earlier session.
        handshakes_resumed,
        /// Failed TLS handshakes.
        handshakes_failed,
        /// Client connections closed at `tls.handshakes_max`.
        handshakes_limited,
        /// Client connections closed at a limit on new ones, of `limits` or of a rule.
        connections_limited,
        /// Client connections that policies closed or reset.
        connections_ended_by_policy,
        /// Requests refused by a limit on their rate.
        requests_limited,
        /// Requests without valid credentials.
        requests_unauthenticated,
        /// Requests that a service was asked about, and let in.
        authorisations_allowed,
        /// Requests that a service refused.
        authorisations_denied,
        /// Requests for which a service could not be asked, or did not answer.
        authorisations_failed,
        /// Copies of requests that a member has answered.
        mirrors_answered,
        /// Copies that failed.
        mirrors_failed,
        /// Copies that were dropped: too many were open, or the body was not kept.
        mirrors_dropped,
        /// Requests refused because too many passwords waited to be checked.
        password_checks_refused,
        /// Requests held back by a limit on their rate.
        requests_delayed,
        /// Requests that policies answered, closed or reset.
        requests_ended_by_policy,
        /// Requests that rules handed to another virtual server, which counts them.
        requests_handed_over,
        /// Responses that a policy replaced by its own answer.
        responses_replaced,
        /// Requests that a policy rewrote into something that cannot be sent.
        rewrites_failed,
        /// Requests that the web application firewall has judged, or could not judge.
        waf_inspected,
        /// Of those, requests that were blocked because of rules.
        waf_blocked,
        /// Of those, requests that would have been blocked.
        waf_detected,
        /// Of those, requests that could not be judged.
        waf_unjudged,
        /// Requests whose client was kept at its member.
        persistence_kept,
        /// Requests whose client was known and moved to another member.
        persistence_moved,
        /// Responses in whose bodies text was looked for, to be replaced.
        bodies_rewritten,
        /// Bodies that stayed unchanged because they were encoded.
        bodies_encoded,
        /// Bodies that stayed unchanged because they were partial content.
        bodies_part,
        /// Bodies that stayed unchanged because they were too long, as a whole or from some place on.
        bodies_too_long,
        /// Responses that were compressed.
        responses_compressed,
        /// Bytes of bodies before they were compressed.
        compression_bytes_in,
        /// Bytes after compression.
        compression_bytes_out,
        /// Responses sent, by class, including weir's own.
        responses_1xx,
        /// 2xx.
        responses_2xx,
        /// 3xx.
        responses_3xx,
        /// 4xx.
        responses_4xx,
        /// 5xx.
        responses_5xx,
        /// Relayed connections that both ends ended.
        relays_complete,
        /// Relayed connections that the client broke, or that it left before they began.
        relays_client_abort,
        /// Relayed connections that the member broke.
        relays_member_abort,
        /// Relayed connections that were idle for too long.
        relays_idle_timeout,
        /// Connections that no member could take.
        relays_no_member,
        /// Connections whose members could not be reached.
        relays_member_connect,
        /// Connections whose wait for a member timed out.
        relays_queue_timeout,
        /// Connections whose required first data did not arrive in time.
        relays_hello_timeout,
        /// Connections that began with something else than they have to.
        relays_client_malformed,
        /// Connections whose server name leads to no pool.
        relays_unknown_server_name,
        /// Relayed connections that were cut because they drained for too long.
        relays_stopped,
        /// Datagrams that came from clients.
        datagrams_received,
        /// Datagrams that went to clients.
        datagrams_sent,
        /// Datagrams of clients for which there was no session: above a limit, or no member.
        datagrams_refused,
        /// Answers that were dropped at `amplification_max`.
        answers_dropped,
        /// Bytes read from clients.
        bytes_received,
        /// Bytes accepted by clients' sockets.
        bytes_sent,
        ;histograms
        /// From the complete request head to the last byte of the response handed to the socket.
        request_duration,
        /// The time from a request to a service until its response, or until the response is no longer needed.
        authorisation_duration,
    }
}

counters! {
    /// Totals of one rule of a policy.
    RuleCounters => RuleTotals {
        /// Requests and responses that it was followed for.
        followed,
    }
}

counters! {
    /// Totals of one pool.
    PoolCounters => PoolTotals {
        /// Requests that were tried on a further member.
        retries,
        /// Requests answered 503 because no member could take them.
        no_member,
        /// Requests that wait in its queue now.
        queue_length,
        /// Requests that ever waited in its queue.
        queued,
        /// Requests that waited in its queue until their time was over.
        queue_timeouts,
    }
}

counters! {
    /// Totals of one member.
    MemberCounters => MemberTotals {
        /// Requests sent to it.
        requests,
        /// Requests under way on it now.
        requests_active,
        /// Connections opened to it.
        connections_opened,
        /// Connections open to it now, idle ones included.
        connections_open,
        /// Idle connections kept for reuse now.
        connections_idle,
        /// Connections that could not be opened (refused, unreachable, timed out).
        connect_failures,
        /// Responses that were malformed, cut short or did not come in time.
        response_failures,
        /// Responses that were taken though they gave their length more than once.
        flawed_repeated_content_length,
        /// Though they gave a length beside chunks.
        flawed_both_framings,
        /// Though spaces stood behind the size of a chunk.
        flawed_chunk_size_spaces,
        /// Though lines ended in LF alone.
        flawed_bare_line_feeds,
        /// Though a control character was in a value.
        flawed_control_characters,
        /// Though their status is above 599.
        flawed_unknown_status,
        /// Times that passive marking ejected it.
        ejections,
        /// Responses, by class.
        responses_1xx,
        /// 2xx.
        responses_2xx,
        /// 3xx.
        responses_3xx,
        /// 4xx.
        responses_4xx,
        /// 5xx.
        responses_5xx,
        /// Bytes read from it.
        bytes_received,
        /// Bytes accepted by its sockets.
        bytes_sent,
        ;histograms
        /// From the request handed to the socket to the response head.
        response_duration,
    }
}

impl MemberCounters {
    /// Counts the tolerated flaws of a response, once per kind.
    pub fn count_flaws(&self, flaws: Flaws) {
        for flaw in flaws.iter() {
            let counter = match flaw {
                Flaw::RepeatedContentLength => &self.flawed_repeated_content_length,
                Flaw::BothFramings => &self.flawed_both_framings,
                Flaw::ChunkSizeSpace => &self.flawed_chunk_size_spaces,
                Flaw::BareLineFeed => &self.flawed_bare_line_feeds,
                Flaw::ControlCharacter => &self.flawed_control_characters,
                Flaw::UnknownStatus => &self.flawed_unknown_status,
            };
            counter.add(1);
        }
    }
}

counters! {
    /// Totals of the worker threads.
    WorkerCounters => WorkerTotals {
        /// Access log lines dropped because the log could not take them in time.
        log_lines_dropped,
        /// Lines of the web application firewall's log that were dropped.
        waf_log_lines_dropped,
        /// Lines of policies that did not reach the event log in time.
        policy_lines_dropped,
        /// Connections that this host could not accept or open: no descriptor, port or memory left.
        socket_failures,
        /// Client connections accepted.
        connections,
        /// Client connections that only have to take or say the last, and are closed then.
        connections_leaving,
        /// Member connections of HTTP/2 that have said their last, and whose member has not ended yet.
        member_connections_leaving,
        /// Bytes that encoders and collected bodies take at most now.
        compression_memory_bytes,
        /// Responses compressed at a lower level than configured, because CPU time was short.
        compression_reduced,
        /// Responses not compressed because CPU time was short.
        compression_skipped,
        /// Bytes of tunnels that went from socket to socket by a pipe.
        bytes_spliced,
        /// Datagrams that the kernel had no room for, or did not take.
        datagrams_lost,
        /// Turns of the event loop.
        loop_turns,
        /// Panics caught; each cost the connections of its worker.
        panics,
    }
}

/// Upper bounds of the latency buckets in microseconds: OpenTelemetry's for HTTP, with finer ones
/// below, where an ADC lives. The last bucket has no bound.
pub const LATENCY_BOUNDS_US: [u64; 20] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 75_000, 100_000, 250_000, 500_000,
    750_000, 1_000_000, 2_500_000, 5_000_000, 7_500_000, 10_000_000, 30_000_000,
];

/// A latency histogram over [`LATENCY_BOUNDS_US`].
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [Counter; LATENCY_BOUNDS_US.len() + 1],
    sum_us: Counter,
}

/// The plain numbers of a [`Histogram`]; buckets are not cumulative.
#[derive(Debug, Default, Clone)]
pub struct HistogramTotals {
    /// Events per bucket; the last has no upper bound.
    pub buckets: [u64; LATENCY_BOUNDS_US.len() + 1],
    /// Sum of all recorded durations.
    pub sum_us: u64,
}

impl Histogram {
    /// Counts one duration.
    #[inline]
    pub fn record(&self, duration_us: u64) {
        let index = LATENCY_BOUNDS_US.iter().position(|&bound| duration_us <= bound);
        self.buckets[index.unwrap_or(LATENCY_BOUNDS_US.len())].add(1);
        self.sum_us.add(duration_us);
    }

    fn add_to(&self, totals: &mut HistogramTotals) {
        for (total, bucket) in totals.buckets.iter_mut().zip(&self.buckets) {
            *total = total.wrapping_add(bucket.get());
        }
        totals.sum_us = totals.sum_us.wrapping_add(self.sum_us.get());
    }
}

impl HistogramTotals {
    /// Events in all buckets.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// Adds one to the counter of a status' class.
#[macro_export]
macro_rules! count_status {
    ($block:expr, $status:expr) => {
        match $status / 100 {
            1 => $block.responses_1xx.add(1),
            2 => $block.responses_2xx.add(1),
            3 => $block.responses_3xx.add(1),
            4 => $block.responses_4xx.add(1),
            _ => $block.responses_5xx.add(1),
        }
    };
}
pub use count_status;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_sum_the_workers() {
        let blocks: PerWorker<VirtualServerCounters> = PerWorker::new(3);
        blocks.of(0).requests.add(2);
        blocks.of(2).requests.add(3);
        blocks.of(1).request_duration.record(100);
        blocks.of(1).request_duration.record(101);
        blocks.of(2).request_duration.record(u64::from(u32::MAX));
        let totals = blocks.totals();
        assert_eq!(totals.requests, 5);
        assert_eq!(totals.request_duration.buckets[0], 1);
        assert_eq!(totals.request_duration.buckets[1], 1);
        assert_eq!(totals.request_duration.buckets[LATENCY_BOUNDS_US.len()], 1);
        assert_eq!(totals.request_duration.count(), 3);
    }
}
