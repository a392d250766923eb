//! Messages of transactions for operators.

use crate::local::member::LocalMember;
use crate::local::pool::LocalPool;
use crate::parts::failure::Blame;
use crate::parts::inspection_report::InspectionReport;
use crate::parts::request_context::RequestContext;
use crate::parts::request_trace::{Record, RequestTrace};
use crate::parts::transaction_ends::TransactionEnds;
use crate::termination::Termination;

/// Messages of transactions for operators.
pub enum Notice<'a> {
    /// A line written by a policy.
    PolicyLine(&'a [u8]),
    /// A policy has changed a request so that it cannot be sent.
    Unsendable {
        /// The virtual server.
        server: &'a str,
        /// The error.
        why: &'a str,
    },
    /// A member was ejected after too many failures.
    Ejected {
        /// The pool.
        pool: &'a LocalPool,
        /// The member.
        member: &'a LocalMember,
        /// The end of the ejection.
        until_ms: u64,
        /// The last failure.
        why: Blame,
    },
    /// A request was inspected, and the outcome must be logged.
    Inspected(Box<InspectionReport>),
    /// A transaction with recorded spans has ended.
    Traced {
        /// Its connections.
        ends: &'a TransactionEnds,
        /// The decision about it.
        context: &'a RequestContext,
        /// Its trace.
        traced: &'a RequestTrace,
        /// Its record.
        record: &'a Record,
        /// How it ended.
        why: Termination,
    },
    /// A WebSocket was requested, and the member does not support WebSockets.
    NoTunnel(&'a LocalMember),
}
