//! How the packet path is made.

use std::path::PathBuf;

/// Flows that there may be at most.
pub const FLOWS_MAX: u32 = 1 << 24;

/// How the packet path is made. Tables keep the size that they were made with while they are pinned; with another size
/// in the options, [`PacketPath::open`](crate::PacketPath::open) makes new ones and flows are lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Tells several on one host apart: letters, digits, `-` and `_`, up to 64. Its maps are pinned in a folder of this
    /// name.
    pub name: String,
    /// Folder of all, on a BPF file system.
    pub pins: PathBuf,
    /// Flows in both directions that there may be, 1 to [`FLOWS_MAX`].
    pub flows_max: u32,
    /// Flows of [`crate::plan::Delivery::DirectReturn`], clients with persistence, sources with a rate, and fragmented
    /// packets, that are remembered of each, 256 to [`FLOWS_MAX`]; the oldest are forgotten.
    pub remembered_max: u32,
}

/// Which rungs may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RungsAllowed {
    /// Native XDP.
    pub xdp: bool,
    /// tcx. The same program is also attached below XDP, for packets that XDP passes on.
    pub tcx: bool,
}

impl Options {
    /// A million flows, under `/sys/fs/bpf/weirgate`.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            pins: PathBuf::from("/sys/fs/bpf/weirgate"),
            flows_max: 1 << 20,
            remembered_max: 1 << 16,
        }
    }
}
