//! Why an exchange has no stream.

/// Why an exchange has no stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostStream {
    /// The member takes no more of them on its connection.
    Full,
    /// The member takes no extended CONNECT.
    NoTunnel,
}
