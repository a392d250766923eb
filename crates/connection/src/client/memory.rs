//! The memory that the connection of a client with HTTP/2 makes a worker hold.

/// A client that has taken nothing for this time reads nothing.
const STILL_MS: u64 = 1_000;
/// So many bytes that leave windows are a sign that the client reads: not every byte is.
const TAKEN_BYTES_MIN: usize = 1024;
/// What each head may take beside the budget: about as much as its exchange needs in any case.
const HEAD_FREE_BYTES: usize = 2 * 1024;

/// What the connection of a client holds.
#[derive(Debug, Default)]
pub struct ConnectionMemory {
    /// The capacity of the data of responses that waits for windows, and the heads and trailers of requests whose exchanges have
    /// not ended, without the free part of each.
    pub bytes: usize,
    /// The part in the budget of the worker.
    pub counted: u64,
    /// The time when the client last took data of responses that had waited.
    taken_ms: Option<u64>,
    /// Bytes that it has taken since.
    taken_bytes: usize,
}

impl ConnectionMemory {
    /// Counts a request's head, or its trailers, which have at most the size of a head: they stay in memory until the exchange ends.
    /// Returns what counts.
    pub fn count_head(&mut self, text: &[u8]) -> u32 {
        let counted = text.len().saturating_sub(HEAD_FREE_BYTES);
        self.bytes += counted;
        counted as u32
    }

    /// Windows have let out so many bytes that had waited.
    pub fn note_taken(&mut self, bytes: usize, now_ms: u64) {
        self.taken_bytes += bytes;
        if self.taken_bytes >= TAKEN_BYTES_MIN {
            (self.taken_ms, self.taken_bytes) = (Some(now_ms), 0);
        }
    }

    /// The client has taken all that was queued on its socket.
    pub fn note_drained(&mut self, now_ms: u64) {
        self.taken_ms = Some(now_ms);
    }

    /// Whether the client reads nothing.
    pub fn is_still(&self, now_ms: u64) -> bool {
        self.taken_ms.is_none_or(|taken_ms| taken_ms + STILL_MS <= now_ms)
    }
}
