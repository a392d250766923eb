//! The time of one turn of an event loop.

/// Monotonic time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    now_us: u64,
    /// The same time: one division per turn.
    now_ms: u64,
}

impl Clock {
    /// A time in microseconds since an origin before the process.
    #[inline]
    pub fn at_us(now_us: u64) -> Self {
        Self { now_us, now_ms: now_us / 1_000 }
    }

    /// Microseconds since the origin.
    #[inline]
    pub fn now_us(self) -> u64 {
        self.now_us
    }

    /// Milliseconds since the same origin.
    #[inline]
    pub fn now_ms(self) -> u64 {
        self.now_ms
    }
}
