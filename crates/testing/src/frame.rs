//! Frames of HTTP/2 as tests name them, sound or not; on purpose apart from the codec under test.

use crate::hpack::write_line;

/// The beginning of a client's connection (RFC 9113 section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Types of frames.
pub mod kind {
    /// Part of a body.
    pub const DATA: u8 = 0;
    /// A head, or trailers.
    pub const HEADERS: u8 = 1;
    /// A dependency; it has no effect any more.
    pub const PRIORITY: u8 = 2;
    /// The end of a stream.
    pub const RST_STREAM: u8 = 3;
    /// The settings of its sender.
    pub const SETTINGS: u8 = 4;
    /// Is answered.
    pub const PING: u8 = 6;
    /// No more streams.
    pub const GOAWAY: u8 = 7;
    /// More may be sent.
    pub const WINDOW_UPDATE: u8 = 8;
    /// More of a head.
    pub const CONTINUATION: u8 = 9;
}

/// Flags.
pub mod flag {
    /// Answers SETTINGS or PING.
    pub const ACK: u8 = 1;
    /// Nothing follows on the stream.
    pub const END_STREAM: u8 = 1;
    /// The head is whole.
    pub const END_HEADERS: u8 = 4;
    /// Padding is behind.
    pub const PADDED: u8 = 8;
    /// A dependency is before.
    pub const PRIORITY: u8 = 32;
}

/// Settings.
pub mod setting {
    /// Size of the HPACK table.
    pub const HEADER_TABLE_SIZE: u16 = 1;
    /// Streams at a time.
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    /// Window of each stream.
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    /// Extended CONNECT (RFC 8441).
    pub const ENABLE_CONNECT_PROTOCOL: u16 = 8;
}

/// Codes of RST_STREAM and GOAWAY.
pub mod code {
    /// In order.
    pub const NO_ERROR: u32 = 0;
    /// Against the standard.
    pub const PROTOCOL_ERROR: u32 = 1;
    /// Something broke.
    pub const INTERNAL_ERROR: u32 = 2;
    /// Nothing was done.
    pub const REFUSED_STREAM: u32 = 7;
    /// Not wanted any more.
    pub const CANCEL: u32 = 8;
    /// Too much.
    pub const ENHANCE_YOUR_CALM: u32 = 11;
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its type, of [`kind`].
    pub kind: u8,
    /// The flags, of [`flag`].
    pub flags: u8,
    /// The stream; 0: the connection.
    pub stream: u32,
    /// The data behind its header.
    pub payload: Vec<u8>,
}

impl Frame {
    /// A frame of these parts, sound or not.
    pub fn new(kind: u8, flags: u8, stream: u32, payload: impl Into<Vec<u8>>) -> Self {
        Self { kind, flags, stream, payload: payload.into() }
    }

    /// Appends it as it goes over the wire.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.payload.len() as u32).to_be_bytes()[1..]);
        out.extend_from_slice(&[self.kind, self.flags]);
        out.extend_from_slice(&self.stream.to_be_bytes());
        out.extend_from_slice(&self.payload);
    }

    /// It as it goes over the wire.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    /// WINDOW_UPDATE.
    pub fn window_update(stream: u32, increment: u32) -> Self {
        Self::new(kind::WINDOW_UPDATE, 0, stream, increment.to_be_bytes())
    }

    /// RST_STREAM.
    pub fn reset(stream: u32, code: u32) -> Self {
        Self::new(kind::RST_STREAM, 0, stream, code.to_be_bytes())
    }

    /// SETTINGS.
    pub fn settings(settings: &[(u16, u32)]) -> Self {
        let one = |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
        Self::new(kind::SETTINGS, 0, 0, settings.iter().flat_map(one).collect::<Vec<u8>>())
    }

    /// GOAWAY.
    pub fn goaway(last_stream: u32, code: u32) -> Self {
        let payload = [last_stream.to_be_bytes(), code.to_be_bytes()].concat();
        Self::new(kind::GOAWAY, 0, 0, payload)
    }

    /// HEADERS with a whole block.
    pub fn headers(stream: u32, lines: &[(&[u8], &[u8])], end: bool) -> Self {
        let mut block = Vec::new();
        lines.iter().for_each(|(name, value)| write_line(name, value, &mut block));
        let flags = flag::END_HEADERS | if end { flag::END_STREAM } else { 0 };
        Self::new(kind::HEADERS, flags, stream, block)
    }

    /// Four bytes of the payload as a number; 0 where there are not as many.
    pub fn word(&self, at: usize) -> u32 {
        let bytes = self.payload.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        u32::from_be_bytes(bytes.unwrap_or_default())
    }
}
