//! Compression of responses: which, with what, how hard, and by whom.
//!
//! 1. A request comes: [`RequestTraits::read`] notes what its client takes. If its response may be compressed,
//!    [`entity_tags::restore_if_match`] sees to If-Match.
//! 2. A response head comes. [`entity_tags::is_unchanged`]: the client has its content, and [`make_unchanged`] says so.
//!    Else [`ResponseTraits::read`], [`decide`], and [`edit_response`] changes what the head says.
//! 3. [`Budget::level_for`] says how hard the encoder may try now; with no level at all the decision is
//!    [`Decision::Identity`] instead, with `vary`.
//! 4. A body that is there as a whole goes through [`Pool::encode_whole`], up to [`whole_bytes_max`], for which it may be
//!    worth waiting; [`Pool::hold`] bounds what waits. Any other goes through an encoder from
//!    [`Pool::take`], in slices of [`slice_bytes_max`], with the flushes that [`FlushWhen`] asks for. The time that it
//!    took is told to [`Budget::note`].
//! 5. The encoder goes back: [`Pool::give`].
//!
//! **Compression and secrets.** The length of what is compressed tells something of what is in it. A response over
//! TLS that has both a secret and what an attacker chose (BREACH) is safer uncompressed; which those are only
//! the operator knows, and so rules are given per policy.
//!
//! **Architecture invariant:** no I/O, no clock, no randomness; time is handed in. No unsafe code of our own: where
//! encoders are libraries, their interfaces are safe.
#![forbid(unsafe_code)]

mod budget;
mod coding;
mod edits;
mod eligibility;
pub mod encoder;
pub mod entity_tags;
mod negotiation;
mod pool;

pub use budget::{Budget, BudgetCounters, WINDOW_US};
pub use coding::{Coding, Level};
pub use edits::{edit_response, framing, make_unchanged};
pub use eligibility::{
    BadPattern, DEFAULT_TYPES, Decision, FlushWhen, MediaTypes, RequestTraits, ResponseTraits,
    Rules, decide, default_types,
};
pub use encoder::{
    CALL_TARGET_US, EncodeError, Encoder, Flush, memory_bytes_max, slice_bytes_max, whole_bytes_max,
};
pub use negotiation::{Choice, accept_encoding};
pub use pool::{Pool, PoolLimits, WHOLE_BYTES_MAX, WHOLE_MEMORY_BYTES_MAX};
