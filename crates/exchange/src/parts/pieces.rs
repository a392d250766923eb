//! Positions of body data within a receive buffer.

use weir_http::h1::{BodyDecoder, BodyError, BodyStep};

/// Maximum number of ranges per send; more chunks in one read need several sends.
pub const PIECES_MAX: usize = 16;

/// The body data found in a part of the input.
pub struct Pieces {
    ranges: [(u32, u32); PIECES_MAX],
    count: usize,
    /// The size of all ranges.
    pub data_bytes: usize,
    /// The number of input bytes that were parsed.
    pub consumed: usize,
    /// The next step after the data.
    pub next: AfterData,
}

impl Pieces {
    /// Without data.
    pub fn none() -> Self {
        let ranges = [(0, 0); PIECES_MAX];
        Self { ranges, count: 0, data_bytes: 0, consumed: 0, next: AfterData::Again }
    }

    /// A whole buffer of this size; nothing follows.
    pub fn whole(data_bytes: usize) -> Self {
        let mut ranges = [(0, 0); PIECES_MAX];
        ranges[0] = (0, data_bytes as u32);
        let count = usize::from(data_bytes > 0);
        Self { ranges, count, data_bytes, consumed: data_bytes, next: AfterData::Done }
    }

    /// A whole buffer of this size; more may follow.
    pub fn part(data_bytes: usize) -> Self {
        Self { next: AfterData::More, ..Self::whole(data_bytes) }
    }

    /// A whole buffer of this size, transformed from data that `next` follows.
    pub fn made(data_bytes: usize, next: AfterData) -> Self {
        Self { next, ..Self::whole(data_bytes) }
    }

    /// The ranges.
    #[inline]
    pub fn ranges(&self) -> impl Iterator<Item = (usize, usize)> + Clone {
        self.ranges[..self.count].iter().map(|&(start, end)| (start as usize, end as usize))
    }

    /// The data of each range.
    pub fn of<'a>(&self, input: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.ranges().map(|(start, end)| &input[start..end])
    }
}

/// The next step after the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterData {
    /// More ranges than fit in one call; call again with the rest.
    Again,
    /// More of the body, which has not arrived yet.
    More,
    /// A trailer section.
    Trailers,
    /// Nothing: the body is complete.
    Done,
}

/// Finds the data in `input`. `pieces` must be [`Pieces::none`]; it is passed by reference because it is large.
#[inline]
pub fn gather(
    decoder: &mut BodyDecoder,
    input: &[u8],
    pieces: &mut Pieces,
) -> Result<(), BodyError> {
    // The common case: a short body with Content-Length that has arrived completely.
    let Some(bytes) = decoder.take_rest(input) else {
        return gather_parts(decoder, input, pieces);
    };
    pieces.ranges[0] = (0, bytes as u32);
    (pieces.count, pieces.data_bytes, pieces.consumed) = (1, bytes, bytes);
    pieces.next = AfterData::Done;
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
            BodyStep::NeedMore { consumed } => (consumed, AfterData::More),
            BodyStep::Trailers { consumed } => (consumed, AfterData::Trailers),
            BodyStep::End { consumed } => (consumed, AfterData::Done),
        };
        pieces.consumed += consumed;
        pieces.next = next;
        break;
    }
    Ok(())
}
