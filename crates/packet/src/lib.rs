//! The packet path: eBPF programs that balance and translate packets in the kernel, and their loader and control.
//!
//! Two programs with the same behaviour and the same maps process packets: one for XDP, in the driver, and one for tcx,
//! right above it. A [`plan::Plan`] is their configuration; [`PacketPath`] is the handle.
//!
//! Requirements: x86-64, Linux 6.6 for tcx and its links (tested with 6.8, 6.12, 6.18 and 7.3), root or CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON and,
//! for resets, CAP_NET_RAW; forwarding switched on at the interfaces where packets arrive (`net.ipv4.ip_forward`,
//! `net.ipv6.conf.all.forwarding`). Changes to the host: programs at the named interfaces, and files under the folder
//! of pins.
//!
//! Only XDP changes VLAN tags and answers SYNs with cookies. Devices that are not attached by XDP get their packets
//! by tcx.
//! Members on this host itself cannot be reached.

mod apply;
mod attach;
mod batch;
mod bpf;
mod check;
mod due;
mod error;
mod layout;
mod maps;
mod netlink;
mod options;
mod path;
mod pins;
pub mod plan;
mod reason;
mod report;
mod reset;
mod roster;
mod routing;
mod shared;
mod sweep;
mod table;
mod take;
mod unpin;

pub use attach::{InterfaceState, index_of, look};
pub use check::check;
pub use error::Error;
pub use options::{FLOWS_MAX, Options, RungsAllowed};
pub use path::{PacketPath, ROUTES_HOLD, SWEEP_ENTRIES_MAX, Trial, TrialOptions, now};
pub use pins::detach_leftovers;
pub use reason::{PacketVerdict, Reason};
pub use report::{
    ApplyReport, Attachment, End, EndedFlow, EndedFor, Flow, FlowFilter, FlowState, ReasonCount,
    RefusedRung, Rung, Shortage, Sweep, Totals,
};
pub use reset::Resetter;
