//! Positions of body data within a receive buffer.

use weir_http::h1::{BodyDecoder, BodyError, BodyStep};

/// Ranges of data that go out together; more chunks than that in one read make a further send.
pub const PIECES_MAX: usize = 16;

/// The data found in one stretch of input.
pub struct Pieces {
    ranges: [(u32, u32); PIECES_MAX],
    count: usize,
    /// Bytes of data in all ranges.
    pub data_bytes: usize,
    /// Bytes of the input that were looked at.
    pub consumed: usize,
    /// The kind of data after them.
    pub next: Next,
}

impl Pieces {
    /// None yet.
    pub fn none() -> Self {
        let ranges = [(0, 0); PIECES_MAX];
        Self { ranges, count: 0, data_bytes: 0, consumed: 0, next: Next::Again }
    }

    /// A whole buffer of this many bytes; nothing follows.
    pub fn whole(data_bytes: usize) -> Self {
        let mut ranges = [(0, 0); PIECES_MAX];
        ranges[0] = (0, data_bytes as u32);
        let count = usize::from(data_bytes > 0);
        Self { ranges, count, data_bytes, consumed: data_bytes, next: Next::Done }
    }

    /// A whole buffer of this many bytes; more may follow.
    pub fn part(data_bytes: usize) -> Self {
        Self { next: Next::More, ..Self::whole(data_bytes) }
    }

    /// A whole buffer of this many bytes, made from data with this end.
    pub fn made(data_bytes: usize, next: Next) -> Self {
        Self { next, ..Self::whole(data_bytes) }
    }

    /// Where the pieces begin and end.
    #[inline]
    pub fn ranges(&self) -> impl Iterator<Item = (usize, usize)> + Clone {
        self.ranges[..self.count].iter().map(|&(start, end)| (start as usize, end as usize))
    }

    /// The data, piece by piece.
    pub fn of<'a>(&self, input: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.ranges().map(|(start, end)| &input[start..end])
    }
}

/// The kind of data after the pieces.
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
#[inline]
pub fn gather(
    decoder: &mut BodyDecoder,
    input: &[u8],
    pieces: &mut Pieces,
) -> Result<(), BodyError> {
    // Most bodies are short, have a length, and come as a whole.
    let Some(bytes) = decoder.take_rest(input) else {
        return gather_parts(decoder, input, pieces);
    };
    pieces.ranges[0] = (0, bytes as u32);
    (pieces.count, pieces.data_bytes, pieces.consumed) = (1, bytes, bytes);
    pieces.next = Next::Done;
    Ok(())
}

fn gather_parts(
    decoder: &mut BodyDecoder,
    input: &[u8],
    pieces: &mut Pieces,
) -> Result<(), BodyError> {
    while pieces.count < PIECES_MAX {
        let at = pieces.consumed;
        let (consumed, next) = match decoder.decode(&input[at..])? {
            BodyStep::Data { start, end } => {
                pieces.ranges[pieces.count] = ((at + start) as u32, (at + end) as u32);
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
