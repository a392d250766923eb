//! Options of the packet path.

use std::path::PathBuf;

/// Maximum number of flows.
pub const FLOWS_MAX: u32 = 1 << 24;

/// Options of the packet path. Tables keep their size while they are pinned; if the options have another size,
/// [`PacketPath::open`](crate::PacketPath::open) creates new tables, and flows are lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Distinguishes several packet paths on one host: letters, digits, `-` and `_`, up to 64. The maps are pinned in a
    /// folder of this name.
    pub name: String,
    /// The common folder, on a BPF file system.
    pub pins: PathBuf,
    /// Maximum number of flows in both directions, 1 to [`FLOWS_MAX`].
    pub flows_max: u32,
    /// Maximum number of each of: flows of [`crate::plan::Delivery::DirectReturn`], clients with persistence, sources with a
    /// rate, and fragmented packets; 256 to [`FLOWS_MAX`]. The oldest are dropped.
    pub remembered_max: u32,
}

/// The permitted rungs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RungsAllowed {
    /// Native XDP.
    pub xdp: bool,
    /// tcx. The same program is also attached below XDP, for packets that XDP passes on.
    pub tcx: bool,
}

impl Options {
    /// Default options: 262,144 flows, under `/sys/fs/bpf/weirgate`.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            pins: PathBuf::from("/sys/fs/bpf/weirgate"),
            flows_max: 1 << 18,
            remembered_max: 1 << 16,
        }
    }
}
