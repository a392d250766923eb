//! Threads, draining and the sandbox of the data plane.

/// `data_plane:` of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataPlaneSettings {
    /// The number of worker threads; `None`: one thread per core that the process may use.
    pub workers: Option<u16>,
    /// Maximum time for open transactions of removed virtual servers, and of a process that stops.
    pub drain_timeout_ms: u64,
    /// Maximum share of a worker's descriptors for clients that UDP sessions use, in percent.
    pub udp_descriptors_percent: u8,
    /// Whether workers are denied access to files.
    pub sandbox: Sandbox,
    /// Maximum bytes that HTTP/2 clients can make one worker hold, beyond a part that each connection may hold.
    pub http2_memory_bytes: u64,
    /// Whether the response times of each member have a histogram, besides those of pools: `metrics:` of the file.
    pub member_histograms: bool,
}

/// Whether worker threads are denied access to files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sandbox {
    /// Access is denied if the kernel supports it.
    Auto,
    /// Access is always denied.
    On,
    /// Access is never denied.
    Off,
}

impl Sandbox {
    /// The word in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Off => "off",
        }
    }
}
