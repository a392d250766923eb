//! What transactions tell people.

use crate::local::pool::{LocalMember, LocalPool};
use crate::parts::failure::Blame;
use crate::parts::inspected::Inspected;

/// What transactions tell people.
pub enum Notice<'a> {
    /// A line that a policy wrote.
    PolicyLine(&'a [u8]),
    /// What a policy made of a request cannot be sent.
    Unsendable {
        /// The virtual server.
        server: &'a str,
        /// What is wrong with it.
        why: &'a str,
    },
    /// A member has failed too often, and is out until then.
    Ejected {
        /// Its pool.
        pool: &'a LocalPool,
        /// The member.
        member: &'a LocalMember,
        /// Until when.
        until_ms: u64,
        /// What it failed by, the last time.
        why: Blame,
    },
    /// A request was inspected, and there is something to tell of it.
    Inspected(&'a Inspected<'a>),
    /// A WebSocket was asked for, and the member does not take such.
    NoTunnel(&'a LocalMember),
}
