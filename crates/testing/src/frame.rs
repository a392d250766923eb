//! HTTP/2 frames for tests, valid or not, independent of the codec under test.

use crate::hpack::write_line;

/// The client's connection preface (RFC 9113 section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Types of frames.
pub mod kind {
    /// Part of a body.
    pub const DATA: u8 = 0;
    /// A head, or trailers.
    pub const HEADERS: u8 = 1;
    /// A stream's priority; deprecated, without effect.
    pub const PRIORITY: u8 = 2;
    /// The end of a stream.
    pub const RST_STREAM: u8 = 3;
    /// The settings of its sender.
    pub const SETTINGS: u8 = 4;
    /// Expects a PING with ACK in return.
    pub const PING: u8 = 6;
    /// The sender accepts no more streams.
    pub const GOAWAY: u8 = 7;
    /// Increases the sender's window.
    pub const WINDOW_UPDATE: u8 = 8;
    /// Continues a HEADERS frame.
    pub const CONTINUATION: u8 = 9;
}

/// Flags.
pub mod flag {
    /// Acknowledges SETTINGS or PING.
    pub const ACK: u8 = 1;
    /// The last frame on the stream.
    pub const END_STREAM: u8 = 1;
    /// The header block is complete.
    pub const END_HEADERS: u8 = 4;
    /// The payload has padding.
    pub const PADDED: u8 = 8;
    /// The payload begins with a priority.
    pub const PRIORITY: u8 = 32;
}

/// Settings.
pub mod setting {
    /// Maximum size of the HPACK table.
    pub const HEADER_TABLE_SIZE: u16 = 1;
    /// Maximum number of concurrent streams.
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    /// Initial window of each stream.
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    /// Extended CONNECT (RFC 8441).
    pub const ENABLE_CONNECT_PROTOCOL: u16 = 8;
}

/// Codes of RST_STREAM and GOAWAY.
pub mod code {
    /// No error.
    pub const NO_ERROR: u32 = 0;
    /// The peer violated the protocol.
    pub const PROTOCOL_ERROR: u32 = 1;
    /// An internal error.
    pub const INTERNAL_ERROR: u32 = 2;
    /// The stream was not processed.
    pub const REFUSED_STREAM: u32 = 7;
    /// The stream is not needed.
    pub const CANCEL: u32 = 8;
    /// The peer causes too much load.
    pub const ENHANCE_YOUR_CALM: u32 = 11;
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The type, see [`kind`].
    pub kind: u8,
    /// The flags, see [`flag`].
    pub flags: u8,
    /// The stream; 0 for the connection.
    pub stream: u32,
    /// The data after the frame header.
    pub payload: Vec<u8>,
}

impl Frame {
    /// A frame with these parts, valid or not.
    pub fn new(kind: u8, flags: u8, stream: u32, payload: impl Into<Vec<u8>>) -> Self {
        Self { kind, flags, stream, payload: payload.into() }
    }

    /// Appends the frame's bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.payload.len() as u32).to_be_bytes()[1..]);
        out.extend_from_slice(&[self.kind, self.flags]);
        out.extend_from_slice(&self.stream.to_be_bytes());
        out.extend_from_slice(&self.payload);
    }

    /// The frame's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    /// A WINDOW_UPDATE frame.
    pub fn window_update(stream: u32, increment: u32) -> Self {
        Self::new(kind::WINDOW_UPDATE, 0, stream, increment.to_be_bytes())
    }

    /// A RST_STREAM frame.
    pub fn reset(stream: u32, code: u32) -> Self {
        Self::new(kind::RST_STREAM, 0, stream, code.to_be_bytes())
    }

    /// A SETTINGS frame.
    pub fn settings(settings: &[(u16, u32)]) -> Self {
        let one = |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
        Self::new(kind::SETTINGS, 0, 0, settings.iter().flat_map(one).collect::<Vec<u8>>())
    }

    /// A GOAWAY frame.
    pub fn goaway(last_stream: u32, code: u32) -> Self {
        let payload = [last_stream.to_be_bytes(), code.to_be_bytes()].concat();
        Self::new(kind::GOAWAY, 0, 0, payload)
    }

    /// A HEADERS frame with a complete header block.
    pub fn headers(stream: u32, lines: &[(&[u8], &[u8])], end: bool) -> Self {
        let mut block = Vec::new();
        lines.iter().for_each(|(name, value)| write_line(name, value, &mut block));
        let flags = flag::END_HEADERS | if end { flag::END_STREAM } else { 0 };
        Self::new(kind::HEADERS, flags, stream, block)
    }

    /// Four bytes of the payload as a number; 0 if the payload is too short.
    pub fn word(&self, at: usize) -> u32 {
        let bytes = self.payload.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        u32::from_be_bytes(bytes.unwrap_or_default())
    }
}
