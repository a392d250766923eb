//! Forwarding of bodies: ranges of the receive buffer become one vectored send.

use std::io::IoSlice;

use weir_exchange::parts::end::End;
use weir_exchange::parts::messages::Message;
use weir_exchange::parts::pieces::{PIECES_MAX, Pieces};
use weir_exchange::parts::scratch::Scratch;
use weir_http::h1::{CHUNK_HEADER_SIZE_MAX, LAST_CHUNK, write_chunk_header, write_trailers};
use weir_http::message::Framing;

/// Maximum number of data bytes that are copied behind the head, which is cheaper than more elements of a vectored send.
pub const COALESCE_BYTES: usize = 4096;

/// The bytes after the data of a body: the last chunk, with trailers if there are any; without chunks, none.
pub enum Tail {
    /// A tail without trailers.
    Plain(&'static [u8]),
    /// A last chunk with trailers.
    Trailers(Message),
}

impl Tail {
    /// The tail of a body with this framing and end.
    pub fn of(scratch: &mut Scratch, framing: Framing, end: End<'_>) -> Self {
        match (framing, end) {
            (Framing::Chunked, End::Data) => Self::Plain(LAST_CHUNK),
            (Framing::Chunked, End::Trailers(fields, text)) => {
                let mut trailers = scratch.take();
                write_trailers(fields, text, &mut trailers);
                Self::Trailers(trailers)
            }
            _ => Self::Plain(b""),
        }
    }

    /// The bytes of the tail.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Plain(bytes) => bytes,
            Self::Trailers(bytes) => bytes,
        }
    }

    /// Returns the buffer after sending.
    pub fn give_back(self, scratch: &mut Scratch) {
        if let Self::Trailers(bytes) = self {
            scratch.give(bytes);
        }
    }
}

/// Calls `send` with the contents of `out`, the pieces with the framing for the receiver, and `end` (the last chunk with
/// trailers, or nothing). Returns the number of bytes sent. `out` keeps its contents, and may get further bytes.
pub fn send(
    out: &mut Vec<u8>,
    framing: Framing,
    input: &[u8],
    pieces: &Pieces,
    end: &[u8],
    send: impl FnOnce(&[IoSlice<'_>]),
) -> usize {
    let chunked = framing == Framing::Chunked && pieces.data_bytes > 0;
    if chunked {
        let mut header = [0; CHUNK_HEADER_SIZE_MAX];
        out.extend_from_slice(write_chunk_header(pieces.data_bytes as u64, &mut header));
    }
    let data_end: &[u8] = if chunked { b"\r\n" } else { b"" };
    let ranges = pieces.ranges();
    if pieces.data_bytes <= COALESCE_BYTES {
        for (start, stop) in ranges {
            out.extend_from_slice(&input[start..stop]);
        }
        out.extend_from_slice(data_end);
        out.extend_from_slice(end);
        if !out.is_empty() {
            send(&[IoSlice::new(out)]);
        }
        return out.len();
    }
    let mut parts = [IoSlice::new(b""); PIECES_MAX + 3];
    let mut count = 0;
    let mut add = |bytes| {
        parts[count] = IoSlice::new(bytes);
        count += 1;
    };
    if !out.is_empty() {
        add(out);
    }
    for (start, stop) in ranges {
        add(&input[start..stop]);
    }
    if !data_end.is_empty() {
        add(data_end);
    }
    if !end.is_empty() {
        add(end);
    }
    send(&parts[..count]);
    parts[..count].iter().map(|part| part.len()).sum()
}
