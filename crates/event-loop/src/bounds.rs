//! Limits on the work per socket and turn, and sizes of buffers and pipes.

/// Size of a read in bytes, and so the most data that one read can add to the queue of a slow peer.
pub const READ_BUFFER_BYTES: usize = 64 * 1024;
/// Size of a read from a tunnel that is not bulk data yet: 16 KiB, plus room for the head of a response.
pub const TUNNEL_READ_BYTES: usize = 20 * 1024;
/// Size of the buffer for reads. On a TLS socket, it also holds earlier data: part of a record, or of a long handshake
/// message.
pub const SCRATCH_BYTES: usize = 2 * READ_BUFFER_BYTES;
/// Maximum number of consecutive reads from one socket per turn.
pub const READS_IN_A_ROW_MAX: u32 = 4;
/// Requested sizes of a pipe in bytes, in order of preference. The kernel stores each network segment in its own page, so a
/// pipe holds less data than its size.
pub const PIPE_SIZES: [usize; 3] = [1024 * 1024, 512 * 1024, 256 * 1024];
/// Maximum number of bytes that are moved into a pipe at once, and so the maximum content of a pipe.
pub const FILL_BYTES_MAX: usize = 512 * 1024;
/// Minimum size of a pipe: a smaller one costs more system calls than it saves. The kernel limits the size for users with
/// many pipes.
pub const PIPE_BYTES_MIN: usize = 64 * 1024;
/// Maximum number of consecutive accepts from one listener per turn.
pub const ACCEPTS_IN_A_ROW_MAX: u32 = 64;
/// Maximum number of connections accepted from a listener before it closes. The kernel resets the remaining ones.
pub const ACCEPTS_BEFORE_CLOSE_MAX: u32 = 1_024;
/// Pause of a listener after a failed accept, for example when the process has no free descriptor.
pub const ACCEPT_REST_MS: u64 = 100;

/// Thresholds for bulk data.
#[derive(Debug, Clone, Copy)]
pub struct Bulk {
    /// A read of this size has filled the buffer, so the data is bulk.
    pub read_bytes: usize,
    /// Maximum number of bytes that are moved into a pipe at once.
    pub fill_bytes_max: usize,
    /// A move of fewer bytes is short.
    pub short_bytes: usize,
}
