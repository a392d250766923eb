//! The packet path: eBPF programs that balance and translate packets in the kernel, and what loads and steers them.
//!
//! Two programs do the same to each packet, with the same maps: one for XDP, in the driver, and one for tcx, right
//! above it. A [`plan::Plan`] says what; [`PacketPath`] is its handle.

mod error;
mod path;
pub mod plan;
mod reason;
mod report;

pub use error::Error;
pub use path::{
    Options, PacketPath, Resetter, RungsAllowed, SWEEP_ENTRIES_MAX, Trial, TrialOptions,
    detach_leftovers, now,
};
pub use reason::{Reason, Verdict};
pub use report::{
    Applied, Attachment, End, Ended, EndedFor, Flow, FlowFilter, FlowState, ReasonCount, Refused,
    Rung, Sweep, Totals,
};
