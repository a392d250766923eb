//! Reports of workers, over bounded channels. Workers never wait for them.

use std::sync::Arc;

use weir_exchange::parts::failure::Blame;

/// Which log lines are of.
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
pub struct LogBatch {
    /// The log.
    pub log: Log,
    /// Whole lines, each ended by a line feed.
    pub bytes: Vec<u8>,
    /// How many.
    pub lines: u32,
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
