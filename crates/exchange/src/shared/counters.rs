//! Counters per worker, summed when they are read.
//!
//! Each worker writes its own cache lines with plain relaxed stores, so there is no read-modify-write on a
//! shared line. A reader sees each counter at most one event late.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_http::flaws::{Flaw, Flaws};

/// A number that one thread writes and any thread reads.
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

    /// The current value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// One block of counters per worker, each on its own cache lines.
#[derive(Debug)]
pub struct PerWorker<T>(Box<[Arc<CachePadded<T>>]>);

/// The block of one worker, kept by that worker.
#[derive(Debug)]
pub struct Own<T>(Arc<CachePadded<T>>);

impl<T> Deref for Own<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0.0
    }
}

/// 128 bytes, two cache lines: the prefetcher fetches adjacent lines in pairs, which would cause false sharing.
#[derive(Debug, Default)]
#[repr(align(128))]
struct CachePadded<T>(T);

impl<T: Block> PerWorker<T> {
    /// Zeroed blocks for this many workers.
    pub fn new(workers: usize) -> Self {
        Self((0..workers).map(|_| Arc::new(CachePadded(T::default()))).collect())
    }

    /// The number of workers.
    pub fn workers(&self) -> usize {
        self.0.len()
    }

    /// The block of worker `index`.
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

/// A set of counters, and their sums as plain numbers.
pub trait Block: Default {
    /// The same fields as plain numbers.
    type Totals: Default;
    /// Adds the current values.
    fn add_to(&self, totals: &mut Self::Totals);
}

/// Declares a block together with its totals, so that both have the same counters.
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
        /// Client connections that got 503 and were closed because of `limits.connections`.
        connections_refused,
        /// Requests whose head was complete and well-formed.
        requests,
        /// Requests in progress.
        requests_active,
        /// Requests refused because they were malformed or exceeded a limit (400, 414, 431, 501, 505, …).
        requests_malformed,
        /// Requests refused for a path that servers read differently (400).
        requests_path_refused,
        /// Clients disconnected because a request head was not complete within `header_timeout`.
        header_timeouts,
        /// Clients disconnected because a body made no progress within `body_timeout`.
        body_timeouts,
        /// Clients that disconnected before their response was complete.
        client_aborts,
        /// Connections that became tunnels (101).
        tunnels,
        /// HTTP/2 client connections.
        http2_connections,
        /// HTTP/2 connections ended by a protocol error.
        http2_errors,
        /// HTTP/2 connections ended because too many streams were reset, refused or written to after their end.
        http2_floods_streams,
        /// HTTP/2 connections ended because of too many useless frames.
        http2_floods_frames,
        /// HTTP/2 connections ended because of header blocks that were unfinished or too large.
        http2_floods_headers,
        /// HTTP/2 client connections closed because they held too much memory.
        http2_floods_memory,
        /// Full TLS handshakes.
        handshakes_full,
        /// Resumed TLS handshakes.
        handshakes_resumed,
        /// Failed TLS handshakes.
        handshakes_failed,
        /// Client connections closed at `tls.handshakes_max`.
        handshakes_limited,
        /// Client connections closed by a limit on new connections, of `limits` or of a rule.
        connections_limited,
        /// Client connections that policies closed or reset.
        connections_ended_by_policy,
        /// Requests refused by a rate limit.
        requests_limited,
        /// Requests without valid credentials.
        requests_unauthenticated,
        /// Requests that an authorisation service allowed.
        authorisations_allowed,
        /// Requests that an authorisation service denied.
        authorisations_denied,
        /// Requests for which an authorisation service could not be asked, or did not answer.
        authorisations_failed,
        /// Copies of requests that a member has answered.
        mirrors_answered,
        /// Copies that failed.
        mirrors_failed,
        /// Copies that were dropped: too many were open, or the body was not kept.
        mirrors_dropped,
        /// Requests refused because the queue of password checks was full.
        password_checks_refused,
        /// Requests delayed by a rate limit.
        requests_delayed,
        /// Requests that policies answered, closed or reset.
        requests_ended_by_policy,
        /// Requests that rules handed over to another virtual server, which counts them too.
        requests_handed_over,
        /// Responses that a policy replaced by its own answer.
        responses_replaced,
        /// Requests that a policy rewrote into something that cannot be sent.
        rewrites_failed,
        /// Requests inspected by the web application firewall, with or without a verdict.
        waf_inspected,
        /// Inspected requests that were blocked by rules.
        waf_blocked,
        /// Inspected requests that would have been blocked.
        waf_detected,
        /// Inspected requests without a verdict.
        waf_unjudged,
        /// Requests that persistence kept at their client's member.
        persistence_kept,
        /// Requests of known clients that moved to another member.
        persistence_moved,
        /// Responses whose bodies were searched for text to replace.
        bodies_rewritten,
        /// Bodies that stayed unchanged because they were encoded.
        bodies_encoded,
        /// Bodies that stayed unchanged because they were partial content.
        bodies_part,
        /// Bodies that stayed unchanged, entirely or from some position, because they were too long.
        bodies_too_long,
        /// Responses that were compressed.
        responses_compressed,
        /// Bytes of bodies before compression.
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
        /// Of these: responses of request rules and of the firewall, which are meant.
        responses_5xx_meant,
        /// Responses with another status that stayed incomplete because of their member, and tunnels that it ended at
        /// once, without a byte.
        responses_cut,
        /// Relayed connections that both sides ended in order.
        relays_complete,
        /// Relayed connections that the client broke, or that it closed before they began.
        relays_client_abort,
        /// Relayed connections that the member broke.
        relays_member_abort,
        /// Relayed connections that were idle for too long.
        relays_idle_timeout,
        /// Relayed connections for which no member was available.
        relays_no_member,
        /// Relayed connections whose members could not be reached.
        relays_member_connect,
        /// Relayed connections whose wait for a member timed out.
        relays_queue_timeout,
        /// Relayed connections whose required first data did not arrive in time.
        relays_hello_timeout,
        /// Relayed connections whose first data was malformed.
        relays_client_malformed,
        /// Relayed connections with a server name for which no pool is configured.
        relays_unknown_server_name,
        /// Relayed connections reset because their member went out of service.
        relays_member_down,
        /// Relayed connections and sessions ended by an operator.
        relays_operator,
        /// Relayed connections that were cut because draining took too long.
        relays_stopped,
        /// Of all that have ended: relayed connections that the member ended at once, without a byte.
        relays_unserved,
        /// Datagrams received from clients.
        datagrams_received,
        /// Datagrams sent to clients.
        datagrams_sent,
        /// Datagrams of clients without a session, because of a limit or because no member was available.
        datagrams_refused,
        /// Answers that were dropped because of `amplification_max`.
        answers_dropped,
        /// Bytes read from clients.
        bytes_received,
        /// Bytes accepted by clients' sockets.
        bytes_sent,
        ;histograms
        /// Time from the complete request head until the last byte of the response was handed to the socket.
        request_duration,
        /// The time from a request to a service until its response, or until the response is no longer needed.
        authorisation_duration,
    }
}

impl VirtualServerCounters {
    /// Requests that failed: answered 5xx other than on purpose, or with an incomplete response.
    pub fn failed_requests(&self) -> u64 {
        failed(self.responses_5xx.get(), self.responses_5xx_meant.get(), self.responses_cut.get())
    }
}

impl VirtualServerTotals {
    /// As [`VirtualServerCounters::failed_requests`].
    pub fn failed_requests(&self) -> u64 {
        failed(self.responses_5xx, self.responses_5xx_meant, self.responses_cut)
    }
}

fn failed(answered: u64, meant: u64, cut: u64) -> u64 {
    // Another thread counts meanwhile.
    answered.saturating_sub(meant).wrapping_add(cut)
}

counters! {
    /// Totals of one rule of a policy.
    RuleCounters => RuleTotals {
        /// Requests and responses for which the rule was followed.
        followed,
    }
}

counters! {
    /// Totals of one pool.
    PoolCounters => PoolTotals {
        /// Retries on another member.
        retries,
        /// Failed attempts after which another member was tried.
        failures_retried,
        /// Requests that got 503 because no member was available.
        no_member,
        /// Attempts without a connection for a reason that is not the member's: this host had no socket for it, or the member's
        /// queue of connections was full.
        unconnected,
        /// Requests that currently wait in the pool's queue.
        queue_length,
        /// Requests that have waited in the pool's queue.
        queued,
        /// Requests whose wait in the pool's queue timed out.
        queue_timeouts,
        ;histograms
        /// Time from the request handed to a member's socket until the response head.
        response_duration,
    }
}

counters! {
    /// Totals of one member.
    MemberCounters => MemberTotals {
        /// Requests sent to the member.
        requests,
        /// Requests in progress at the member.
        requests_active,
        /// Connections opened to the member.
        connections_opened,
        /// Connections currently open to the member, including idle ones.
        connections_open,
        /// Idle connections currently kept for reuse.
        connections_idle,
        /// Connections that could not be opened (refused, unreachable, timed out).
        connect_failures,
        /// Responses that were malformed, truncated or too late, and tunnels and relayed connections that were ended at once,
        /// without a byte.
        response_failures,
        /// Responses accepted although they have more than one Content-Length.
        flawed_repeated_content_length,
        /// Responses accepted although they have both Content-Length and chunks.
        flawed_both_framings,
        /// Responses accepted although spaces follow a chunk size.
        flawed_chunk_size_spaces,
        /// Responses accepted although lines end in LF alone.
        flawed_bare_line_feeds,
        /// Responses accepted although a field value contains a control character.
        flawed_control_characters,
        /// Responses accepted although their status is above 599.
        flawed_unknown_status,
        /// Responses accepted although they name the coding `chunked` more than once.
        flawed_repeated_chunked,
        /// The number of ejections by passive health checks.
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
        /// Bytes read from the member.
        bytes_received,
        /// Bytes accepted by the member's sockets.
        bytes_sent,
    }
}

counters! {
    /// Response times of one member; only where the configuration asks for them.
    MemberTimes => MemberTimesTotals {
        ;histograms
        /// Time from the request handed to the socket until the response head.
        response_duration,
    }
}

/// The counters of a pool that belong to one worker.
#[derive(Debug)]
pub struct OwnPoolCounters {
    pool: Own<PoolCounters>,
    /// Response times, one per member; empty: those of members are not counted.
    times: Box<[Own<MemberTimes>]>,
}

impl OwnPoolCounters {
    /// The counters of a pool, and response times of its members.
    pub fn new(pool: Own<PoolCounters>, times: Box<[Own<MemberTimes>]>) -> Self {
        Self { pool, times }
    }

    /// Counts the response time of a member.
    #[inline(always)]
    pub fn count_response_time(&self, member: u32, duration_us: u64) {
        self.pool.response_duration.record(duration_us);
        if let Some(times) = self.times.get(member as usize) {
            times.response_duration.record(duration_us);
        }
    }
}

impl Deref for OwnPoolCounters {
    type Target = PoolCounters;

    #[inline]
    fn deref(&self) -> &PoolCounters {
        &self.pool
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
                Flaw::RepeatedChunked => &self.flawed_repeated_chunked,
            };
            counter.add(1);
        }
    }
}

counters! {
    /// Totals of the worker threads.
    WorkerCounters => WorkerTotals {
        /// Access log lines dropped because the log was too slow.
        log_lines_dropped,
        /// Lines of the web application firewall's log that were dropped.
        waf_log_lines_dropped,
        /// Spans that were dropped because the exporter could not take them in time.
        spans_dropped,
        /// Lines of policies that were dropped because the event log was too slow.
        policy_lines_dropped,
        /// Connections that this host could not accept or open, for lack of descriptors, ports or memory.
        socket_failures,
        /// Client connections accepted.
        connections,
        /// Client connections that are closing: they only finish sending or receiving.
        connections_leaving,
        /// HTTP/2 member connections that are closing: weir has ended its side, and the member has not.
        member_connections_leaving,
        /// Bytes that HTTP/2 clients make the worker hold, beyond the free part of each connection.
        http2_memory_bytes,
        /// Bytes of bodies that are held for the web application firewall.
        waf_held_bytes,
        /// Inspections of more than a turn that went to the threads for them at once.
        waf_inspections_moved,
        /// Those that their worker kept at first, because the queue was full or there was no thread.
        waf_inspections_kept,
        /// Those of either kind that are not back.
        waf_inspections_away,
        /// Those of either kind that came back without a verdict, because they panicked.
        waf_inspections_lost,
        /// The number of times that much memory was released at once.
        memory_releases,
        /// Upper bound of the memory that encoders and collected bodies use now.
        compression_memory_bytes,
        /// Responses compressed at a lower level than configured, because CPU time was short.
        compression_reduced,
        /// Responses not compressed because CPU time was short.
        compression_skipped,
        /// Bytes of tunnels that were spliced from socket to socket through a pipe.
        bytes_spliced,
        /// Datagrams that were lost because the kernel had no room for them or refused them.
        datagrams_lost,
        /// Sockets of UDP sessions that are open now.
        udp_sockets,
        /// Maximum of `udp_sockets`; 0: there is no UDP listener.
        udp_sockets_max,
        /// Datagrams refused because UDP sessions use their whole share of descriptors.
        udp_share_exceeded,
        /// Turns of the event loop.
        loop_turns,
        /// Caught panics. Each one closes all connections of its worker.
        panics,
    }
}

/// Upper bounds of the latency buckets in microseconds: OpenTelemetry's for HTTP, and finer ones
/// below, for fast responses. The last bucket has no bound.
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

/// Increments the counter of a status class.
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
