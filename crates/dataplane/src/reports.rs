//! Reports of workers, over bounded channels. Workers never wait for them.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use weir_exchange::parts::failure::Blame;

/// The log that a line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    /// The access log.
    Access,
    /// The log of the web application firewall.
    Waf,
    /// The audit log, whose lines the control plane writes.
    Audit,
}

/// Finished lines of one log and one worker.
#[derive(Debug)]
pub struct LogBatch<L = Log> {
    /// The log.
    pub log: L,
    /// Whole lines, each ended by a line feed.
    pub bytes: Vec<u8>,
    /// How many.
    pub lines: u32,
}

/// Spans of traces, handled like a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spans;

/// Spans of one worker. A line is the field `spans` of OTLP's `ScopeSpans`, with one span.
pub type SpanBatch = LogBatch<Spans>;

/// Channels for log lines and spans of workers; workers never block on them.
#[derive(Debug, Clone)]
pub struct LogSenders {
    /// The access log.
    pub access: SyncSender<LogBatch>,
    /// The log of the web application firewall.
    pub waf: SyncSender<LogBatch>,
    /// Spans.
    pub spans: SyncSender<SpanBatch>,
}

/// An event that a worker reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Passive marking took a member out.
    MemberEjected {
        /// Pool.
        pool: Arc<str>,
        /// Member.
        member: Arc<str>,
        /// The duration of the ejection.
        eject_ms: u32,
        /// The last failure.
        why: Blame,
    },
    /// A line that a policy wrote, or why one failed.
    Policy {
        /// The line.
        text: String,
    },
    /// TLS to a member failed; at most one event per second and worker.
    MemberInsecure {
        /// Pool.
        pool: Arc<str>,
        /// Member.
        member: Arc<str>,
        /// Why.
        error: String,
    },
    /// A WebSocket was requested, and the HTTP/2 member has not announced support for it; at most one event per second
    /// and worker.
    MemberTakesNoTunnel {
        /// Pool.
        pool: Arc<str>,
        /// Member.
        member: Arc<str>,
    },
    /// This host cannot provide a socket; at most one event per second and worker.
    SocketFailed {
        /// Why.
        error: String,
    },
    /// A worker panicked; its connections are lost, it starts again.
    WorkerPanicked {
        /// The index of the worker.
        worker: usize,
        /// The panic's message.
        message: String,
    },
}
