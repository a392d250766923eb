//! The packet path: eBPF programs that balance and translate packets in the kernel, and what loads and steers them.
//!
//! Two programs do the same to each packet, with the same maps: one for XDP, in the driver, and one for tcx, right
//! above it. A [`plan::Plan`] says what; [`PacketPath`] is its handle.

mod apply;
mod attach;
mod batch;
mod check;
mod error;
mod layout;
mod maps;
mod path;
mod pins;
pub mod plan;
mod reason;
mod report;
mod reset;
mod roster;
mod sweep;

pub use error::Error;
pub use path::{
    FLOWS_MAX, Options, PacketPath, RungsAllowed, SWEEP_ENTRIES_MAX, Trial, TrialOptions, now,
};
pub use pins::detach_leftovers;
pub use reason::{Reason, Verdict};
pub use report::{
    Applied, Attachment, End, Ended, EndedFor, Flow, FlowFilter, FlowState, ReasonCount, Refused,
    Rung, Sweep, Totals,
};
pub use reset::Resetter;
