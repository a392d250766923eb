//! The decisions about a request.

use weir_core::policy::Decision;

use crate::local::pool::Preference;
use crate::parts::request_context::RequestContext;

/// The decisions about a request.
pub struct RequestDecisions {
    /// Index of the pool; the exchange begins there even if it ends at once.
    pub pool: usize,
    /// The preference for a member.
    pub preference: Preference,
    /// The request is delayed until then; 0: not delayed.
    pub not_before_us: u64,
    /// The number for its id; 0: not needed yet, or already taken.
    pub request_number: u64,
    /// Data for the response.
    pub context: Option<Box<RequestContext>>,
    /// Why the request ends without a member; `None`: it does not.
    pub ending: Option<EndWithoutMember>,
}

/// How a request ends without a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndWithoutMember {
    /// As the policies decided: see [`Decision::end`].
    Policy,
    /// As the web application firewall decided: see [`crate::parts::inspection::Block`].
    Blocked,
    /// With 429.
    Limited {
        /// Seconds until a request is permitted.
        retry_after_s: u64,
    },
    /// With 503: the queue of password checks is full.
    Overloaded,
    /// With the text of a challenge: see [`weir_tls::challenges`].
    Challenge,
    /// With 421: the connection's handshake was for another name.
    Misdirected,
    /// The connection closes.
    Closed,
    /// With 500: a policy has changed the request so that it cannot be sent.
    Failed,
}

/// What stages need to know of a request that was delayed, or whose end was decided with its head.
pub struct DelayedDecision {
    /// Until when `Stage::Delay` waits; 0: it does not wait, or has waited.
    pub not_before_us: u64,
    /// How the request ends at `Stage::End`.
    pub end: Option<(EndWithoutMember, Box<Decision>)>,
}
