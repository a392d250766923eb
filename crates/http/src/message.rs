//! The version-neutral message: what a request or response head says, as ranges into the bytes
//! that were received.

/// Bytes `start..end` of the buffer that the head was parsed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes of `buffer` that this span names.
    pub fn of(self, buffer: &[u8]) -> &[u8] {
        &buffer[self.start as usize..self.end as usize]
    }
    /// Whether it names no byte.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
    /// Bytes named.
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }
}

/// A request method (RFC 9110 section 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// GET
    Get,
    /// HEAD
    Head,
    /// POST
    Post,
    /// PUT
    Put,
    /// DELETE
    Delete,
    /// OPTIONS
    Options,
    /// TRACE
    Trace,
    /// PATCH
    Patch,
    /// CONNECT
    Connect,
    /// Any other token.
    Other,
}

impl Method {
    /// Sending it twice has the effect of sending it once (RFC 9110 section 9.2.2).
    pub fn is_idempotent(self) -> bool {
        matches!(
            self,
            Self::Get | Self::Head | Self::Put | Self::Delete | Self::Options | Self::Trace
        )
    }
}

/// HTTP version of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

/// How the end of a body is found (RFC 9112 section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// No body.
    None,
    /// Exactly this many bytes.
    Length(u64),
    /// Chunks.
    Chunked,
    /// Until the connection ends; responses only.
    UntilClose,
}
