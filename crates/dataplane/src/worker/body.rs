//! Passing a body on: ranges of what was received become one vectored send.

use std::io::IoSlice;

use weir_http::h1::{
    BodyDecoder, BodyError, BodyStep, CHUNK_HEADER_SIZE_MAX, LAST_CHUNK, write_chunk_header,
    write_trailers,
};
use weir_http::message::Framing;

use crate::worker::transaction::end::End;

/// Ranges of data that go out together; more chunks than that in one read make a further send.
const PIECES_MAX: usize = 16;
/// Up to this size a copy behind the head is cheaper than a further range for the kernel to walk.
pub const COALESCE_BYTES: usize = 4096;

/// The data found in one stretch of input.
pub struct Pieces {
    ranges: [(usize, usize); PIECES_MAX],
    count: usize,
    /// Bytes of data in all ranges.
    pub data_bytes: usize,
    /// Bytes of the input that were looked at.
    pub consumed: usize,
    /// What comes after them.
    pub next: Next,
}

impl Pieces {
    /// None yet.
    pub fn none() -> Self {
        let ranges = [(0, 0); PIECES_MAX];
        Self { ranges, count: 0, data_bytes: 0, consumed: 0, next: Next::Again }
    }

    /// All of a buffer with so many bytes; nothing comes after them.
    pub fn whole(data_bytes: usize) -> Self {
        let mut ranges = [(0, 0); PIECES_MAX];
        ranges[0] = (0, data_bytes);
        let count = usize::from(data_bytes > 0);
        Self { ranges, count, data_bytes, consumed: data_bytes, next: Next::Done }
    }

    /// All of a buffer with so many bytes; more may come at some time.
    pub fn part(data_bytes: usize) -> Self {
        Self { next: Next::More, ..Self::whole(data_bytes) }
    }

    /// The data, piece by piece.
    pub fn of<'a>(&self, input: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.ranges[..self.count].iter().map(|&(start, end)| &input[start..end])
    }
}

/// What follows the pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The input had more ranges than fit; call again with the rest.
    Again,
    /// More of the body, when it arrives.
    More,
    /// A trailer section.
    Trailers,
    /// Nothing: the body is whole.
    Done,
}

/// Finds the data in `input`, from its start on; `pieces` are [`Pieces::none`]. They are large enough not to be moved.
pub fn gather(
    decoder: &mut BodyDecoder,
    input: &[u8],
    pieces: &mut Pieces,
) -> Result<(), BodyError> {
    while pieces.count < PIECES_MAX {
        let at = pieces.consumed;
        let (consumed, next) = match decoder.decode(&input[at..])? {
            BodyStep::Data { start, end } => {
                pieces.ranges[pieces.count] = (at + start, at + end);
                pieces.count += 1;
                pieces.data_bytes += end - start;
                pieces.consumed += end;
                continue;
            }
            BodyStep::NeedMore { consumed } => (consumed, Next::More),
            BodyStep::Trailers { consumed } => (consumed, Next::Trailers),
            BodyStep::End { consumed } => (consumed, Next::Done),
        };
        pieces.consumed += consumed;
        pieces.next = next;
        break;
    }
    Ok(())
}

/// What follows the last data of a body: the last chunk, with trailers where there are such, or nothing.
pub fn end_of_chunks<'t>(framing: Framing, end: End<'_>, trailers: &'t mut Vec<u8>) -> &'t [u8] {
    match (framing, end) {
        (Framing::Chunked, End::Data) => LAST_CHUNK,
        (Framing::Chunked, End::Trailers(fields, text)) => {
            write_trailers(fields, text, trailers);
            trailers
        }
        _ => b"",
    }
}

/// Gives `send` what `out` holds, then the pieces framed for the receiver, then `end` (the last chunk with
/// its trailers, or nothing). Returns the bytes sent; `out` is left with those sent from it.
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
    let ranges = &pieces.ranges[..pieces.count];
    if pieces.data_bytes <= COALESCE_BYTES {
        for &(start, stop) in ranges {
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
    for &(start, stop) in ranges {
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
