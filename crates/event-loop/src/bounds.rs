//! How much of something a socket gets before others have their turn.

/// Bytes read at once, and so the most that is queued for a peer that does not take them.
pub const READ_BUFFER_BYTES: usize = 64 * 1024;
/// The buffer of a tunnel before it is known to be bulk: 16 KB with the head of a response, and a little.
pub const TUNNEL_READ_BYTES: usize = 20 * 1024;
/// Buffer for reads. On a secure socket, it also has earlier data: part of a record, or of a long handshake.
pub const SCRATCH_BYTES: usize = 2 * READ_BUFFER_BYTES;
/// Reads of one socket in a row, before others get their turn.
pub const READS_IN_A_ROW_MAX: u32 = 4;
/// Bytes that a pipe is to have room for, the best first, of whole pages: a segment of a network takes a page's place,
/// so fewer fit in.
pub const PIPE_SIZES: [usize; 3] = [1024 * 1024, 512 * 1024, 256 * 1024];
/// Bytes that are put into a pipe at once, and so the most that waits in one.
pub const FILL_BYTES_MAX: usize = 512 * 1024;
/// A smaller pipe costs more calls than it saves. The kernel gives small pipes to users that have many.
pub const PIPE_BYTES_MIN: usize = 64 * 1024;
/// Connections accepted from one listener in a row.
pub const ACCEPTS_IN_A_ROW_MAX: u32 = 64;
/// Maximum number of connections accepted from a listener before it closes; the kernel resets further ones.
pub const ACCEPTS_BEFORE_CLOSE_MAX: u32 = 1_024;
/// How long accepting rests when the process has no descriptor left.
pub const ACCEPT_REST_MS: u64 = 100;

/// The amounts from which bytes count as bulk.
#[derive(Debug, Clone, Copy)]
pub struct Bulk {
    /// A read of this size has filled the buffer.
    pub read_bytes: usize,
    /// Maximum number of bytes that are moved into a pipe at once.
    pub fill_bytes_max: usize,
    /// Fewer at once are few.
    pub short_bytes: usize,
}
