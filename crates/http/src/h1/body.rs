//! Bodies on the wire (RFC 9112 sections 6 and 7.1).

use std::fmt;

use super::CONTENT_LENGTH_MAX;
use crate::chars::{hex_value, is_token_byte};
use crate::flaws::{Flaw, Flaws};
use crate::message::Framing;

/// Maximum number of hexadecimal digits of a chunk size, including leading zeros.
pub const CHUNK_SIZE_DIGITS_MAX: u8 = 16;

/// Maximum size of the extensions of one chunk, in bytes.
pub const CHUNK_EXTENSION_SIZE_MAX: u16 = 256;

/// Maximum size of all chunk extensions of a body beyond the number of its data bytes. The allowance grows with the data
/// because signed uploads have an extension on every chunk; it stops bodies that consist only of extensions.
pub const CHUNK_EXTENSIONS_TOTAL_SIZE_MAX: u64 = 16 * 1024;

/// Finds the data in the bytes of a body, and its end.
#[derive(Debug, Clone)]
pub struct BodyDecoder {
    state: State,
    /// Remaining bytes of the body (Length) or of the current chunk.
    remaining: u64,
    /// Sum of the chunk sizes so far.
    total: u64,
    extensions_total: u64,
    extension: u16,
    digits: u8,
    size_max: u64,
    /// Tolerated flaws.
    taken: Flaws,
    /// Flaws that were found and not reported yet.
    found: Flaws,
    told: Flaws,
}

/// The state, one per kind of the next byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Done,
    TooLarge,
    Length,
    UntilClose,
    Size,
    /// After a size, where spaces are tolerated. For the strict decoder any byte is an error here.
    SizeSpace,
    /// After `;`: the first byte of a name.
    ExtensionNameStart,
    ExtensionName,
    /// After `=`.
    ExtensionValueStart,
    ExtensionValue,
    Quoted,
    QuotedPair,
    /// After the closing quote.
    QuotedEnd,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// After the last chunk's line.
    TrailerStart,
    /// After a CR at the start of the trailer section.
    TrailerLf,
    /// The caller reads the trailer section.
    Trailers,
}

/// The decoder's result for its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyStep {
    /// `input[start..end]`, which is not empty, is data; everything before `end` is consumed.
    Data {
        /// First byte of data.
        start: usize,
        /// One past the last.
        end: usize,
    },
    /// All of the input is consumed, and the body continues after it.
    NeedMore {
        /// Length of the input.
        consumed: usize,
    },
    /// The trailer section starts at `consumed`, and is not empty. The caller collects it, calls
    /// [`parse_trailers`](super::parse_trailers) and then [`BodyDecoder::trailers_done`].
    Trailers {
        /// The start of the trailer section.
        consumed: usize,
    },
    /// The body has ended; another message follows `consumed`.
    End {
        /// The end of the body.
        consumed: usize,
    },
}

/// The reason why a body is refused. The body cannot be resynchronised: the connection must be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyError {
    /// More data than the limit.
    TooLarge,
    /// The chunk size is not a hexadecimal number, or has whitespace around it.
    ChunkSize,
    /// A chunk size, or the sum of chunk sizes, is too large.
    ChunkSizeOverflow,
    /// A malformed chunk extension.
    ChunkExtension,
    /// Chunk extensions that are too long, individually or in total.
    ChunkExtensionTooLong,
    /// No CR LF at the end of a chunk's line or data.
    ChunkEnd,
}

impl BodyError {
    /// The status of the response, if the body came from the client.
    pub fn status(self) -> u16 {
        if self == Self::TooLarge { 413 } else { 400 }
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::TooLarge => "body too large",
            Self::ChunkSize => "malformed chunk size",
            Self::ChunkSizeOverflow => "chunk size too large",
            Self::ChunkExtension => "malformed chunk extension",
            Self::ChunkExtensionTooLong => "chunk extensions too long",
            Self::ChunkEnd => "chunk does not end in CR LF",
        })
    }
}

impl std::error::Error for BodyError {}

impl BodyDecoder {
    /// A decoder for one body of at most `size_max` bytes.
    pub fn new(framing: Framing, size_max: Option<u64>) -> Self {
        let size_max = size_max.unwrap_or(u64::MAX);
        let (state, remaining) = match framing {
            Framing::None | Framing::Length(0) => (State::Done, 0),
            Framing::Length(length) if length > size_max => (State::TooLarge, 0),
            Framing::Length(length) => (State::Length, length),
            Framing::Chunked => (State::Size, 0),
            Framing::UntilClose => (State::UntilClose, 0),
        };
        Self {
            state,
            remaining,
            total: 0,
            extensions_total: 0,
            extension: 0,
            digits: 0,
            size_max,
            taken: Flaws::NONE,
            found: Flaws::NONE,
            told: Flaws::NONE,
        }
    }

    /// A decoder for the body of a member's response, which tolerates the flaws `taken`.
    pub fn of_member(framing: Framing, taken: Flaws) -> Self {
        Self { taken, ..Self::new(framing, None) }
    }

    /// Adds flaws that were found in the head before the body or in the trailers.
    pub fn note_flaws(&mut self, flaws: Flaws) {
        self.found.add_all(flaws);
    }

    /// The flaws that were found since the last call, each reported only once.
    pub fn new_flaws(&mut self) -> Flaws {
        let new = std::mem::take(&mut self.found).without(self.told);
        self.told.add_all(new);
        new
    }

    /// Whether the body has ended, its trailer section included.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether an end of the connection at this point is the proper end of the body and not a truncation.
    pub fn may_end_at_eof(&self) -> bool {
        matches!(self.state, State::Done | State::UntilClose)
    }

    /// The trailer section that [`BodyStep::Trailers`] announced has been parsed.
    pub fn trailers_done(&mut self) {
        debug_assert_eq!(self.state, State::Trailers);
        self.state = State::Done;
    }

    /// Decodes `input`, which starts with the first byte not consumed so far. Must be called again
    /// with the rest until the step is not [`BodyStep::Data`].
    pub fn decode(&mut self, input: &[u8]) -> Result<BodyStep, BodyError> {
        match self.state {
            State::Done => Ok(BodyStep::End { consumed: 0 }),
            State::TooLarge => Err(BodyError::TooLarge),
            State::Trailers => Ok(BodyStep::Trailers { consumed: 0 }),
            _ if input.is_empty() => Ok(BodyStep::NeedMore { consumed: 0 }),
            State::Length => Ok(self.take_data(input, 0, State::Done)),
            State::UntilClose => self.take_until_close(input),
            _ => self.decode_chunked(input),
        }
    }

    /// Takes the rest of a body of known length, if all of it has arrived. Returns its size, which is at least one byte.
    #[inline]
    pub fn take_rest(&mut self, input: &[u8]) -> Option<usize> {
        if self.state != State::Length || (input.len() as u64) < self.remaining {
            return None;
        }
        self.state = State::Done;
        Some(std::mem::take(&mut self.remaining) as usize)
    }

    fn take_data(&mut self, input: &[u8], start: usize, then: State) -> BodyStep {
        let available = (input.len() - start) as u64;
        let taken = available.min(self.remaining);
        self.remaining -= taken;
        if self.remaining == 0 {
            self.state = then;
        }
        BodyStep::Data { start, end: start + taken as usize }
    }

    fn take_until_close(&mut self, input: &[u8]) -> Result<BodyStep, BodyError> {
        self.total = self.total.saturating_add(input.len() as u64);
        if self.total > self.size_max {
            self.state = State::TooLarge;
            return Err(BodyError::TooLarge);
        }
        Ok(BodyStep::Data { start: 0, end: input.len() })
    }

    fn decode_chunked(&mut self, input: &[u8]) -> Result<BodyStep, BodyError> {
        for (at, byte) in input.iter().enumerate() {
            match self.state {
                State::Data => return Ok(self.take_data(input, at, State::DataCr)),
                State::TrailerStart if *byte != b'\r' => return Ok(self.begin_trailers(at)),
                state => match self.next(state, *byte) {
                    Ok(next) => self.state = next,
                    Err(error) => return self.decode_leniently(input, at, error),
                },
            }
            if self.state == State::Done {
                return Ok(BodyStep::End { consumed: at + 1 });
            }
        }
        Ok(BodyStep::NeedMore { consumed: input.len() })
    }

    fn begin_trailers(&mut self, at: usize) -> BodyStep {
        self.state = State::Trailers;
        BodyStep::Trailers { consumed: at }
    }

    /// [`decode_chunked`](Self::decode_chunked) from the byte at `first`, which is an error; this and further errors may be
    /// tolerated.
    #[cold]
    #[inline(never)]
    fn decode_leniently(
        &mut self,
        input: &[u8],
        first: usize,
        error: BodyError,
    ) -> Result<BodyStep, BodyError> {
        self.state = self.overlook(self.state, input[first], error)?;
        for (at, byte) in input.iter().enumerate().skip(first + 1) {
            match self.state {
                State::Data => return Ok(self.take_data(input, at, State::DataCr)),
                State::TrailerStart if *byte != b'\r' => return Ok(self.begin_trailers(at)),
                state => {
                    let next = self.next(state, *byte);
                    self.state = next.or_else(|error| self.overlook(state, *byte, error))?;
                }
            }
            if self.state == State::Done {
                return Ok(BodyStep::End { consumed: at + 1 });
            }
        }
        Ok(BodyStep::NeedMore { consumed: input.len() })
    }

    /// The state after a byte of framing.
    #[inline(always)]
    fn next(&mut self, state: State, byte: u8) -> Result<State, BodyError> {
        match (state, byte) {
            (State::Size, _) => self.size_byte(byte),
            (State::SizeLf, b'\n') => self.chunk_starts(),
            (State::DataCr, b'\r') => Ok(State::DataLf),
            (State::DataLf, b'\n') => {
                self.digits = 0;
                Ok(State::Size)
            }
            (State::TrailerStart, b'\r') => Ok(State::TrailerLf),
            (State::TrailerLf, b'\n') => Ok(State::Done),
            (State::SizeLf | State::DataCr | State::DataLf | State::TrailerLf, _) => {
                Err(BodyError::ChunkEnd)
            }
            _ => self.extension_byte(state, byte),
        }
    }

    #[inline(always)]
    fn size_byte(&mut self, byte: u8) -> Result<State, BodyError> {
        if let Some(digit) = hex_value(byte) {
            if self.digits == CHUNK_SIZE_DIGITS_MAX {
                return Err(BodyError::ChunkSizeOverflow);
            }
            self.digits += 1;
            // Sixteen digits fill 64 bits.
            self.remaining = self.remaining << 4 | u64::from(digit);
            return Ok(State::Size);
        }
        match byte {
            _ if self.digits == 0 => Err(BodyError::ChunkSize),
            b'\r' => Ok(State::SizeLf),
            b';' => {
                self.extension = 0;
                self.count_extension_byte()?;
                Ok(State::ExtensionNameStart)
            }
            _ => Err(BodyError::ChunkSize),
        }
    }

    /// The state after a byte that is an error, if the error is tolerated. All leniency about chunks is here: the rest of
    /// the decoder is strict.
    fn overlook(&mut self, state: State, byte: u8, error: BodyError) -> Result<State, BodyError> {
        let is_behind_size = match state {
            State::SizeSpace => true,
            State::Size => self.digits > 0 && error == BodyError::ChunkSize,
            _ => false,
        };
        let ends_line = is_behind_size
            || state == State::DataCr
            || matches!(state, State::ExtensionName | State::ExtensionValue | State::QuotedEnd);
        match byte {
            b'\n' if ends_line && self.taken.have(Flaw::BareLineFeed) => {
                self.found.add(Flaw::BareLineFeed);
                if state != State::DataCr {
                    return self.chunk_starts();
                }
                self.digits = 0;
                Ok(State::Size)
            }
            b' ' | b'\t' if is_behind_size && self.taken.have(Flaw::ChunkSizeSpace) => {
                self.found.add(Flaw::ChunkSizeSpace);
                if state == State::Size {
                    self.extension = 0;
                }
                // Nothing else bounds the number of spaces.
                self.count_extension_byte()?;
                Ok(State::SizeSpace)
            }
            b'\r' if state == State::SizeSpace => Ok(State::SizeLf),
            b';' if state == State::SizeSpace => {
                self.count_extension_byte()?;
                Ok(State::ExtensionNameStart)
            }
            _ if state == State::SizeSpace => Err(BodyError::ChunkSize),
            _ => Err(error),
        }
    }

    /// `*( ";" chunk-ext-name [ "=" ( token / quoted-string ) ] )`. The whitespace that the grammar
    /// lets recipients tolerate is refused: no sender needs it, and readers differ about it.
    fn extension_byte(&mut self, state: State, byte: u8) -> Result<State, BodyError> {
        let next = match (state, byte) {
            (State::ExtensionName | State::ExtensionValue | State::QuotedEnd, b'\r') => {
                return Ok(State::SizeLf);
            }
            (State::ExtensionName | State::ExtensionValue | State::QuotedEnd, b';') => {
                State::ExtensionNameStart
            }
            (State::ExtensionName, b'=') => State::ExtensionValueStart,
            (State::ExtensionValueStart, b'"') => State::Quoted,
            (State::ExtensionNameStart | State::ExtensionName, _) if is_token_byte(byte) => {
                State::ExtensionName
            }
            (State::ExtensionValueStart | State::ExtensionValue, _) if is_token_byte(byte) => {
                State::ExtensionValue
            }
            (State::Quoted, b'"') => State::QuotedEnd,
            (State::Quoted, b'\\') => State::QuotedPair,
            (State::Quoted | State::QuotedPair, _) if byte == b'\t' || !byte.is_ascii_control() => {
                State::Quoted
            }
            _ => return Err(BodyError::ChunkExtension),
        };
        self.count_extension_byte()?;
        Ok(next)
    }

    fn count_extension_byte(&mut self) -> Result<(), BodyError> {
        self.extension += 1;
        self.extensions_total += 1;
        let allowed = CHUNK_EXTENSIONS_TOTAL_SIZE_MAX.saturating_add(self.total);
        if self.extension > CHUNK_EXTENSION_SIZE_MAX || self.extensions_total > allowed {
            return Err(BodyError::ChunkExtensionTooLong);
        }
        Ok(())
    }

    /// A chunk's line has ended.
    #[inline(always)]
    fn chunk_starts(&mut self) -> Result<State, BodyError> {
        if self.remaining == 0 {
            return Ok(State::TrailerStart);
        }
        self.total = self
            .total
            .checked_add(self.remaining)
            .filter(|total| *total <= CONTENT_LENGTH_MAX)
            .ok_or(BodyError::ChunkSizeOverflow)?;
        if self.total > self.size_max {
            return Err(BodyError::TooLarge);
        }
        Ok(State::Data)
    }
}
