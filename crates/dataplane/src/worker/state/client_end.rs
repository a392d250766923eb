//! The ways to end a client connection.

/// How a client connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientEnd {
    /// In an orderly way. `may_send`: the client may still be sending. An immediate close would then cause a reset, which could destroy
    /// the last response.
    Orderly { may_send: bool },
    /// In an orderly way, with GOAWAY.
    Goaway,
    /// In the middle of a response. Data that was sent before still reaches the client. `must_reset`: after an orderly end, the client
    /// would take the truncated response for a complete one.
    Cut { must_reset: bool },
    /// At once, with GOAWAY.
    Stop,
    /// With a reset, at once. Data in transit is lost.
    Reset,
    /// At once.
    Close,
}

impl ClientEnd {
    /// An orderly end of a client that may still be sending.
    pub const ORDERLY: Self = Self::Orderly { may_send: true };
}
