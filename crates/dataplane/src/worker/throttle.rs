//! Events of one kind that may come in any number are told now and then.

/// At most one event of a kind is told in this time.
const INTERVAL_MS: u64 = 1_000;

/// When an event of one kind may be told again.
#[derive(Debug, Default)]
pub struct Throttle {
    next_ms: u64,
}

impl Throttle {
    /// Whether one may be told now; it is, then.
    pub fn is_due(&mut self, now_ms: u64) -> bool {
        let is_due = now_ms >= self.next_ms;
        if is_due {
            self.next_ms = now_ms + INTERVAL_MS;
        }
        is_due
    }
}
