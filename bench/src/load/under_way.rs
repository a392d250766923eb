//! The open requests of a user.

/// An open request.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// Due time.
    pub intended_us: u64,
    /// Time of sending.
    pub sent_us: u64,
    /// Index of the target.
    pub target: u32,
    /// Whether it belongs to the measurement.
    pub is_measured: bool,
    /// Whether it is the last request on its connection.
    pub is_last: bool,
}
