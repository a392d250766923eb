//! The open requests of a user.

/// A request under way.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// When it was to be sent.
    pub intended_us: u64,
    /// When it was.
    pub sent_us: u64,
    /// Which target.
    pub target: u32,
    /// Whether it belongs to the measurement.
    pub is_measured: bool,
    /// Whether it is the last on its connection.
    pub is_last: bool,
}
