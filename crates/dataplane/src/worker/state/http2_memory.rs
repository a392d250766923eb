//! The memory that clients with HTTP/2 make a worker hold: data of responses that they do not read, and of requests that
//! members do not take, and heads of requests under way. A few bytes of a client can bind a hundred responses, and a byte of a
//! compressed head can stand for 4 KiB, so all connections of a worker share a budget.
//!
//! Each connection may hold [`FREE_BYTES`] beside it, as a connection with HTTP/1 may. If the budget is used up, the
//! connection that holds most loses it, and first one whose client reads nothing. Clients that read are spared until twice the
//! budget is used.

use weir_connection::client::memory::ConnectionMemory;
use weir_exchange::parts::peak::Peak;
use weir_exchange::shared::counters::{Own, WorkerCounters};

use crate::worker::agenda::{Agenda, Task};

/// What a connection holds beside the budget: about one read of a member, as with HTTP/1.
const FREE_BYTES: u64 = 64 * 1024;
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
