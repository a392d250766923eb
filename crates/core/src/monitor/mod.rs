//! Health of a member: what its monitors and its traffic say.

/// When a monitor probes and how many results change its mind. Durations in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// From the start of one probe to the start of the next.
    pub interval_ms: u64,
    /// A probe without an answer by then has failed.
    pub timeout_ms: u64,
    /// Consecutive passes that bring a member up again.
    pub rise: u32,
    /// Consecutive failures that take a member down.
    pub fall: u32,
    /// Each interval is shortened or lengthened by up to this many percent, so that probes spread.
    pub jitter_percent: u8,
}

/// Passive marking: what traffic itself says of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassiveSettings {
    /// Consecutive failures (no connection, 5xx, malformed response) that eject the member.
    pub failures: u16,
    /// The failures must fall into this time.
    pub window_ms: u32,
    /// How long the member gets no traffic.
    pub eject_ms: u32,
}

/// What the monitors of one member say together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Health {
    /// Monitored, and no probe has passed yet: no traffic.
    Pending = 0,
    /// Takes traffic.
    Up = 1,
    /// Takes none.
    Down = 2,
}
