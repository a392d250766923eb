//! The reason why an exchange gets no stream.

/// The reason why an exchange gets no stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostStream {
    /// The connection accepts no more streams.
    Full,
    /// The member does not support extended CONNECT.
    NoTunnel,
}
