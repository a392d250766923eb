//! Why an exchange has no stream.

/// Why an exchange has no stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostStream {
    /// The member's stream limit on the connection is reached.
    Full,
    /// The member does not support extended CONNECT.
    NoTunnel,
}
