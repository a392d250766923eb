//! Reports of workers, sent through bounded channels. Workers never wait for these channels.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use weir_exchange::parts::failure::Blame;

/// The log of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    /// The access log.
    Access,
    /// The log of the web application firewall.
    Waf,
    /// The audit log, whose lines the control plane writes.
    Audit,
}

/// Complete lines of one log from one worker.
#[derive(Debug)]
pub struct LogBatch<L = Log> {
    /// The log.
    pub log: L,
    /// Whole lines, each with a line feed at the end.
    pub bytes: Vec<u8>,
    /// The number of lines.
    pub lines: u32,
}

/// Spans of traces, handled like a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spans;

/// Spans of one worker. Each line is the field `spans` of OTLP's `ScopeSpans` with one span.
pub type SpanBatch = LogBatch<Spans>;

/// The channels for log lines and spans of workers, which never wait for these channels.
#[derive(Debug, Clone)]
pub struct LogSenders {
    /// The access log.
    pub access: SyncSender<LogBatch>,
    /// The log of the web application firewall.
    pub waf: SyncSender<LogBatch>,
    /// Spans.
    pub spans: SyncSender<SpanBatch>,
}

/// An event reported by a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A member was ejected because of failures.
    MemberEjected {
        /// The pool.
        pool: Arc<str>,
        /// The member.
        member: Arc<str>,
        /// The duration of the ejection in milliseconds.
        eject_ms: u32,
        /// The last failure.
        why: Blame,
    },
    /// A log line of a policy, or the error of a policy.
    Policy {
        /// The line.
        text: String,
    },
    /// TLS to a member failed. At most one event per second and worker.
    MemberInsecure {
        /// The pool.
        pool: Arc<str>,
        /// The member.
        member: Arc<str>,
        /// The error.
        error: String,
    },
    /// A WebSocket was requested, but the HTTP/2 member has not announced support for extended CONNECT. At most one event
    /// per second and worker.
    MemberTakesNoTunnel {
        /// The pool.
        pool: Arc<str>,
        /// The member.
        member: Arc<str>,
    },
    /// This host cannot provide a socket. At most one event per second and worker.
    SocketFailed {
        /// The error.
        error: String,
    },
    /// UDP sessions are refused. At most one event per second and worker.
    UdpShareUsed {
        /// The descriptors of the worker that sessions may use, which all do.
        max: usize,
    },
    /// A worker panicked. Its connections are lost, and it continues.
    WorkerPanicked {
        /// The index of the worker.
        worker: usize,
        /// The message and the place of the panic.
        message: String,
    },
    /// An inspection of the web application firewall panicked on its worker. Its request has no verdict.
    InspectionPanicked {
        /// The index of the worker.
        worker: usize,
        /// The message and the place of the panic.
        message: String,
    },
}
