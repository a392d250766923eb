//! Compression of responses: selection, codings, levels, encoders.
//!
//! 1. A request arrives: [`RequestTraits::read`] stores the codings that its client accepts. If its response may be
//!    compressed, [`entity_tags::restore_if_match`] adjusts If-Match.
//! 2. A response head arrives. [`entity_tags::is_unchanged`]: if the client has the content, [`make_unchanged`] makes it a
//!    304. Else [`ResponseTraits::read`], [`decide`], and [`edit_response`] changes the head.
//! 3. [`Budget::level_for`] returns the current level; without a level the decision is [`Decision::Identity`] instead,
//!    with `vary`.
//! 4. A complete body goes through [`Pool::encode_whole`], up to [`whole_bytes_max`], for which it may wait;
//!    [`Pool::hold`] bounds waiting data. Any other body goes through an encoder from [`Pool::take`], in slices of
//!    [`slice_bytes_max`], with the flushes of [`FlushWhen`]. [`Budget::note`] gets the time that it took.
//! 5. The encoder goes back: [`Pool::give`].
//!
//! **Compression and secrets.** The length of compressed data reveals something about its contents. A TLS response with
//! both a secret and text chosen by an attacker (BREACH) is safer uncompressed. Only the operator knows these
//! responses, so policies can switch compression off.
//!
//! **Architecture invariant:** no I/O, no clock, no randomness; time is an argument. No unsafe code in this crate; the
//! interfaces of encoder libraries are safe.
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
pub use pool::{HeldBytes, Pool, PoolLimits, WHOLE_BYTES_MAX, WHOLE_MEMORY_BYTES_MAX};
