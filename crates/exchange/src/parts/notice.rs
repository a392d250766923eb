//! Messages of transactions for operators.

use crate::local::pool::{LocalMember, LocalPool};
use crate::parts::failure::Blame;
use crate::parts::inspected::Inspected;

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
    Inspected(&'a Inspected<'a>),
    /// A WebSocket was requested, and the member does not support it.
    NoTunnel(&'a LocalMember),
}
