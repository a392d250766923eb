//! Frames (RFC 9113 sections 4 and 6): headers, codes, and the checks that need only the frame header. All functions append
//! to the caller's buffer.

use super::error::Misbehaviour;
use super::error_code::ErrorCode;

/// Bytes of a frame header.
pub const FRAME_HEADER_SIZE: usize = 9;

/// The place of the flags in a frame header.
pub(super) const FLAGS_AT: usize = 4;

/// The client connection preface (RFC 9113 section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The largest stream id.
pub const STREAM_ID_MAX: u32 = 0x7fff_ffff;

/// The largest window (RFC 9113 section 6.9.1).
pub const WINDOW_SIZE_MAX: u32 = 0x7fff_ffff;

/// The initial maximum payload, and the minimum of SETTINGS_MAX_FRAME_SIZE.
pub const FRAME_SIZE_DEFAULT: u32 = 16_384;

/// The maximum of SETTINGS_MAX_FRAME_SIZE.
pub const FRAME_SIZE_MAX: u32 = 0x00ff_ffff;

/// Bytes of the priority fields in HEADERS, and of the payload of PRIORITY.
pub(super) const PRIORITY_SIZE: usize = 5;

/// Frame types.
pub mod kind {
    /// DATA
    pub const DATA: u8 = 0x0;
    /// HEADERS
    pub const HEADERS: u8 = 0x1;
    /// PRIORITY
    pub const PRIORITY: u8 = 0x2;
    /// RST_STREAM
    pub const RST_STREAM: u8 = 0x3;
    /// SETTINGS
    pub const SETTINGS: u8 = 0x4;
    /// PUSH_PROMISE
    pub const PUSH_PROMISE: u8 = 0x5;
    /// PING
    pub const PING: u8 = 0x6;
    /// GOAWAY
    pub const GOAWAY: u8 = 0x7;
    /// WINDOW_UPDATE
    pub const WINDOW_UPDATE: u8 = 0x8;
    /// CONTINUATION
    pub const CONTINUATION: u8 = 0x9;
    /// PRIORITY_UPDATE (RFC 9218)
    pub const PRIORITY_UPDATE: u8 = 0x10;
}

/// Frame flags.
pub mod flag {
    /// SETTINGS and PING: an acknowledgement.
    pub const ACK: u8 = 0x1;
    /// DATA and HEADERS: the last frame of the sender on this stream.
    pub const END_STREAM: u8 = 0x1;
    /// HEADERS and CONTINUATION: the end of the header block.
    pub const END_HEADERS: u8 = 0x4;
    /// DATA and HEADERS: the frame has padding.
    pub const PADDED: u8 = 0x8;
    /// HEADERS: priority fields precede the block.
    pub const PRIORITY: u8 = 0x20;
}

/// A frame header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// The length of the payload in bytes.
    pub length: u32,
    /// The type: a constant of [`kind`], or an unknown type.
    pub kind: u8,
    /// The flags, see [`flag`].
    pub flags: u8,
    /// The stream id without the reserved bit; 0 for the connection.
    pub stream: u32,
}

impl FrameHeader {
    /// Reads a frame header.
    pub fn read(bytes: &[u8; FRAME_HEADER_SIZE]) -> Self {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = *bytes;
        Self {
            length: u32::from_be_bytes([0, l0, l1, l2]),
            kind,
            flags,
            stream: u32::from_be_bytes([s0, s1, s2, s3]) & STREAM_ID_MAX,
        }
    }

    /// Appends the frame header.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
    }

    /// The header in its encoded form.
    pub fn bytes(&self) -> [u8; FRAME_HEADER_SIZE] {
        debug_assert!(self.length <= FRAME_SIZE_MAX && self.stream <= STREAM_ID_MAX);
        let [_, l0, l1, l2] = self.length.to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [l0, l1, l2, self.kind, self.flags, s0, s1, s2, s3]
    }

    /// Whether a flag is set.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Checks the length and the stream id, without the state of the connection (section 6). [`Severity::Stream`]: the error
    /// concerns only the stream.
    pub(super) fn check(&self, frame_size_max: u32) -> Result<(), (Severity, Misbehaviour)> {
        let connection = |error| Err((Severity::Connection, error));
        let on_stream = self.stream != 0;
        if self.length > frame_size_max {
            // Section 4.2 permits a stream error for some of these frames. A peer that ignores the maximum frame size loses
            // its connection.
            return connection(Misbehaviour::FrameTooLarge);
        }
        let length = self.length as usize;
        match self.kind {
            kind::DATA | kind::HEADERS | kind::CONTINUATION if !on_stream => {
                connection(Misbehaviour::StreamZero)
            }
            kind::DATA if self.has(flag::PADDED) && length == 0 => {
                connection(Misbehaviour::FrameSize)
            }
            kind::HEADERS if length < self.headers_prefix_size() => {
                connection(Misbehaviour::FrameSize)
            }
            kind::PRIORITY | kind::RST_STREAM if !on_stream => connection(Misbehaviour::StreamZero),
            kind::PRIORITY if length != PRIORITY_SIZE => {
                Err((Severity::Stream, Misbehaviour::FrameSize))
            }
            kind::RST_STREAM | kind::WINDOW_UPDATE if length != 4 => {
                connection(Misbehaviour::FrameSize)
            }
            kind::SETTINGS | kind::PING | kind::GOAWAY | kind::PRIORITY_UPDATE if on_stream => {
                connection(Misbehaviour::StreamNotZero)
            }
            kind::SETTINGS if !length.is_multiple_of(6) || (self.has(flag::ACK) && length != 0) => {
                connection(Misbehaviour::FrameSize)
            }
            kind::PING if length != 8 => connection(Misbehaviour::FrameSize),
            kind::GOAWAY if length < 8 => connection(Misbehaviour::FrameSize),
            kind::PRIORITY_UPDATE if length < 4 => connection(Misbehaviour::FrameSize),
            kind::PUSH_PROMISE => connection(Misbehaviour::PushPromise),
            _ => Ok(()),
        }
    }

    /// Bytes before the block fragment of HEADERS.
    pub(super) fn headers_prefix_size(&self) -> usize {
        usize::from(self.has(flag::PADDED))
            + if self.has(flag::PRIORITY) { PRIORITY_SIZE } else { 0 }
    }
}

/// The scope of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    /// The error ends one stream.
    Stream,
    /// The error ends the connection.
    Connection,
}

/// The number in four bytes, without its highest bit.
pub(super) fn read_u31(bytes: &[u8]) -> u32 {
    read_u32(bytes) & STREAM_ID_MAX
}

/// The number in the first four bytes; 0 when there are fewer.
pub(super) fn read_u32(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// Appends RST_STREAM.
pub fn write_reset(stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
    FrameHeader { length: 4, kind: kind::RST_STREAM, flags: 0, stream }.write(out);
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Appends WINDOW_UPDATE; stream 0 is the connection.
pub fn write_window_update(stream: u32, increment: u32, out: &mut Vec<u8>) {
    debug_assert!((1..=WINDOW_SIZE_MAX).contains(&increment));
    FrameHeader { length: 4, kind: kind::WINDOW_UPDATE, flags: 0, stream }.write(out);
    out.extend_from_slice(&increment.to_be_bytes());
}

/// Appends PING or its acknowledgement.
pub fn write_ping(payload: [u8; 8], is_ack: bool, out: &mut Vec<u8>) {
    let flags = if is_ack { flag::ACK } else { 0 };
    FrameHeader { length: 8, kind: kind::PING, flags, stream: 0 }.write(out);
    out.extend_from_slice(&payload);
}

/// Appends GOAWAY, with a text for debugging.
pub fn write_goaway(last_stream: u32, code: ErrorCode, text: &str, out: &mut Vec<u8>) {
    let length = 8 + text.len() as u32;
    FrameHeader { length, kind: kind::GOAWAY, flags: 0, stream: 0 }.write(out);
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back() {
        let header = FrameHeader { length: 0x01_0203, kind: 9, flags: 5, stream: 0x7fff_fffe };
        let mut out = Vec::new();
        header.write(&mut out);
        assert_eq!(out, [1, 2, 3, 9, 5, 0x7f, 0xff, 0xff, 0xfe]);
        out[5] |= 0x80;
        assert_eq!(FrameHeader::read(out.first_chunk().expect("nine")), header, "reserved bit");
    }

    #[test]
    fn lengths_and_streams() {
        use Misbehaviour::{FrameSize, FrameTooLarge, PushPromise, StreamNotZero, StreamZero};
        let connection = |error| Err((Severity::Connection, error));
        let stream = |error| Err((Severity::Stream, error));
        for (kind, length, flags, id, expected) in [
            (kind::DATA, 0, 0, 1, Ok(())),
            (kind::DATA, 0, 0, 0, connection(StreamZero)),
            (kind::DATA, 0, flag::PADDED, 1, connection(FrameSize)),
            (kind::DATA, 16_385, 0, 1, connection(FrameTooLarge)),
            (kind::HEADERS, 0, 0, 1, Ok(())),
            (kind::HEADERS, 0, 0, 0, connection(StreamZero)),
            (kind::HEADERS, 5, flag::PADDED | flag::PRIORITY, 1, connection(FrameSize)),
            (kind::HEADERS, 6, flag::PADDED | flag::PRIORITY, 1, Ok(())),
            (kind::HEADERS, 16_385, 0, 1, connection(FrameTooLarge)),
            (kind::PRIORITY, 5, 0, 1, Ok(())),
            (kind::PRIORITY, 5, 0, 0, connection(StreamZero)),
            (kind::PRIORITY, 4, 0, 1, stream(FrameSize)),
            (kind::RST_STREAM, 4, 0, 1, Ok(())),
            (kind::RST_STREAM, 4, 0, 0, connection(StreamZero)),
            (kind::RST_STREAM, 3, 0, 1, connection(FrameSize)),
            (kind::SETTINGS, 12, 0, 0, Ok(())),
            (kind::SETTINGS, 0, flag::ACK, 0, Ok(())),
            (kind::SETTINGS, 6, flag::ACK, 0, connection(FrameSize)),
            (kind::SETTINGS, 5, 0, 0, connection(FrameSize)),
            (kind::SETTINGS, 6, 0, 1, connection(StreamNotZero)),
            (kind::PUSH_PROMISE, 4, 0, 1, connection(PushPromise)),
            (kind::PING, 8, 0, 0, Ok(())),
            (kind::PING, 8, 0, 1, connection(StreamNotZero)),
            (kind::PING, 7, 0, 0, connection(FrameSize)),
            (kind::GOAWAY, 8, 0, 0, Ok(())),
            (kind::GOAWAY, 7, 0, 0, connection(FrameSize)),
            (kind::GOAWAY, 8, 0, 1, connection(StreamNotZero)),
            (kind::WINDOW_UPDATE, 4, 0, 0, Ok(())),
            (kind::WINDOW_UPDATE, 3, 0, 1, connection(FrameSize)),
            (kind::CONTINUATION, 0, 0, 0, connection(StreamZero)),
            (kind::PRIORITY_UPDATE, 4, 0, 0, Ok(())),
            (kind::PRIORITY_UPDATE, 4, 0, 1, connection(StreamNotZero)),
            (kind::PRIORITY_UPDATE, 3, 0, 0, connection(FrameSize)),
            (0xbb, 16_384, 0xff, 0, Ok(())),
            (0xbb, 16_385, 0xff, 0, connection(FrameTooLarge)),
        ] {
            let header = FrameHeader { length, kind, flags, stream: id };
            assert_eq!(header.check(FRAME_SIZE_DEFAULT), expected, "{header:?}");
        }
    }
}
