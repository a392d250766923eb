//! Application protocols that a session may require.

use std::fmt;

/// An application protocol (RFC 7301).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/2 (RFC 9113 section 3.2).
    Http2,
}

impl Protocol {
    /// The identifier in ALPN.
    pub(crate) fn identifier(self) -> &'static [u8] {
        match self {
            Self::Http2 => b"h2",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http2 => f.write_str("HTTP/2"),
        }
    }
}
