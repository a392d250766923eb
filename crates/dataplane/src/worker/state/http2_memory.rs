//! The memory that clients with HTTP/2 make a worker hold: data of responses that they do not read, and of requests that
//! members do not take, and heads of requests under way. A few bytes of a client can bind a hundred responses, and a byte of a
//! compressed head can stand for 4 KiB, so all connections of a worker share a budget.
//!
//! Each connection may hold [`FREE_BYTES`] beside it, as a connection with HTTP/1 may. If the budget is used up, the
//! connection that holds most loses it, and first one whose client reads nothing. Clients that read are spared until twice the
//! budget is used.

use weir_exchange::parts::peak::Peak;
use weir_exchange::shared::counters::{Own, WorkerCounters};

use crate::worker::agenda::{Agenda, Task};

/// A client that has taken nothing for this time reads nothing.
const STILL_MS: u64 = 1_000;
/// So many bytes that leave windows are a sign that the client reads: not every byte is.
const TAKEN_BYTES_MIN: usize = 1024;
/// What a connection holds beside the budget: about one read of a member, as with HTTP/1.
const FREE_BYTES: u64 = 64 * 1024;
/// What each head may take beside the budget: about as much as its exchange needs in any case.
const HEAD_FREE_BYTES: usize = 2 * 1024;
/// Memory of connections counts as released for the system if it was at least this much.
const RELEASED_BYTES_MIN: u64 = 8 << 20;
/// Interval between looks at all connections while none of them may lose its memory.
const LOOK_MS: u64 = 100;

/// The budget of a worker.
pub struct Http2Memory {
    counted: Own<WorkerCounters>,
    /// The budget.
    bytes_max: u64,
    /// The bytes that are held.
    bytes: u64,
    /// No connection is looked for before this time.
    look_ms: u64,
    /// Notices when much of it is released.
    peak: Peak,
}

impl Http2Memory {
    /// A budget of which nothing is used.
    pub fn new(counted: Own<WorkerCounters>, bytes_max: u64) -> Self {
        Self { counted, bytes_max, bytes: 0, look_ms: 0, peak: Peak::default() }
    }

    /// Sets the budget.
    pub fn set_max(&mut self, agenda: &mut Agenda, bytes_max: u64) {
        self.bytes_max = bytes_max;
        self.bound(agenda);
    }

    fn bound(&self, agenda: &mut Agenda) {
        if self.bytes > self.bytes_max {
            agenda.add_once(Task::BoundMemory);
        }
    }

    /// Counts what a connection holds now.
    pub fn count(&mut self, agenda: &mut Agenda, held: &mut ConnectionMemory, bytes: u64) {
        let counted = bytes.saturating_sub(FREE_BYTES);
        let before = std::mem::replace(&mut held.counted, counted);
        if counted != before {
            self.change(before, counted);
            self.bound(agenda);
        }
    }

    /// A connection is gone, with all that it held.
    pub fn forget(&mut self, held: &ConnectionMemory) {
        if held.counted > 0 {
            self.change(held.counted, 0);
        }
    }

    /// All connections are gone.
    pub fn forget_all(&mut self) {
        self.change(self.bytes, 0);
    }

    /// The bytes that are held beyond what is free.
    #[cfg(feature = "simulation")]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn change(&mut self, before: u64, after: u64) {
        let all_before = self.bytes;
        self.bytes = (self.bytes + after).saturating_sub(before);
        let is_released = self.peak.is_released((all_before, self.bytes), RELEASED_BYTES_MIN);
        self.counted.memory_releases.add(u64::from(is_released));
        self.counted.http2_memory_bytes.add(after);
        self.counted.http2_memory_bytes.subtract(before);
    }

    /// Whether connections have to be looked for that end because they hold too much.
    pub fn begin_look(&self, agenda: &mut Agenda, now_ms: u64) -> bool {
        self.bound(agenda);
        self.bytes > self.bytes_max && (self.is_far_exceeded() || now_ms >= self.look_ms)
    }

    /// Whether a connection ends because all hold too much. `is_still`: its client reads nothing.
    pub fn ends(&self, is_still: bool) -> bool {
        self.bytes > self.bytes_max && (is_still || self.is_far_exceeded())
    }

    /// The next look is in a while.
    pub fn end_look(&mut self, now_ms: u64) {
        if self.bytes > self.bytes_max {
            self.look_ms = now_ms + LOOK_MS;
        }
    }

    fn is_far_exceeded(&self) -> bool {
        self.bytes > self.bytes_max.saturating_mul(2)
    }
}

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
