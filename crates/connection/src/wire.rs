//! What a connection asks of its socket, and of the memory that connections share.

use std::io::IoSlice;

/// Empty buffers for reuse.
pub trait Buffers {
    /// An empty buffer.
    fn take(&mut self) -> Vec<u8>;

    /// Takes a buffer back. Its contents are dropped.
    fn give(&mut self, buffer: Vec<u8>);
}

/// The socket of one connection, as its protocol sees it: where bytes go, the time, and memory to gather bytes in.
pub trait Wire: Buffers {
    /// Sends `parts` in order. What the peer does not take at once is queued; a failure is reported later.
    fn send(&mut self, parts: &[IoSlice<'_>]);

    /// As [`Self::send`], for the last bytes of the connection: the caller ends it within the same call.
    fn send_last(&mut self, parts: &[IoSlice<'_>]);

    /// The time, in milliseconds of the monotonic clock.
    fn now_ms(&self) -> u64;
}
