//! One coding of a body.

use std::fmt;

use super::decoder::{DEFLATE_START_BYTES, Decoder};
use super::{Coding, InflateProblem};

/// Number of bytes decoded at a time.
const CHUNK_BYTES: usize = 16 << 10;
/// Memory of a decoder without tables and window, including its chunk.
const IDLE_BYTES: u64 = 128 << 10;
/// Maximum memory of tables per input byte: the shortest brotli tree has 12 bits and needs 1 KiB.
const TABLES_BYTES_PER_BYTE: u64 = 1 << 10;
/// Maximum memory of tables: brotli has up to 768 trees.
const TABLES_BYTES_MAX: u64 = 4 << 20;
/// The largest window, which brotli uses.
const WINDOW_BYTES_MAX: u64 = 16 << 20;

/// The decoder of one coding.
pub(super) struct Stage {
    coding: Coding,
    /// `None`: too few bytes have been received to choose the decoder.
    decoder: Option<Decoder>,
    /// Bytes received before the decoder was chosen.
    start: Vec<u8>,
    chunk: Vec<u8>,
    is_at_end: bool,
    pub taken_bytes: u64,
    pub given_bytes: u64,
}

impl fmt::Debug for Stage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Stage")
            .field("coding", &self.coding)
            .field("is_at_end", &self.is_at_end)
            .field("taken_bytes", &self.taken_bytes)
            .field("given_bytes", &self.given_bytes)
            .finish_non_exhaustive()
    }
}

/// Receiver of decoded bytes.
pub(super) type DecodedSink<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), InflateProblem>;

impl Stage {
    pub fn new(coding: Coding) -> Self {
        Self {
            coding,
            decoder: None,
            start: Vec::new(),
            chunk: Vec::new(),
            is_at_end: false,
            taken_bytes: 0,
            given_bytes: 0,
        }
    }

    /// Decodes input. The total output is at most `given_bytes_max` bytes.
    pub fn feed(
        &mut self,
        input: &[u8],
        given_bytes_max: u64,
        to: DecodedSink<'_>,
    ) -> Result<(), InflateProblem> {
        if self.decoder.is_some() {
            return self.decode(input, given_bytes_max, to);
        }
        if self.coding != Coding::Deflate {
            self.decoder = Some(Decoder::new(self.coding, b"")?);
            return self.decode(input, given_bytes_max, to);
        }
        self.start.extend_from_slice(input);
        if self.start.len() < DEFLATE_START_BYTES {
            return Ok(());
        }
        self.begin(given_bytes_max, to)
    }

    /// Ends the input.
    pub fn finish(
        &mut self,
        given_bytes_max: u64,
        to: DecodedSink<'_>,
    ) -> Result<(), InflateProblem> {
        if self.decoder.is_none() {
            self.begin(given_bytes_max, to)?;
        }
        if self.is_at_end { Ok(()) } else { Err(InflateProblem::Truncated) }
    }

    /// The upper bound of the memory.
    pub fn memory_bytes(&self) -> u64 {
        Self::memory_bytes_of(self.taken_bytes, self.given_bytes)
    }

    /// The upper bound of the memory behind so much input and output.
    pub fn memory_bytes_of(taken_bytes: u64, given_bytes: u64) -> u64 {
        let tables = taken_bytes.saturating_mul(TABLES_BYTES_PER_BYTE).min(TABLES_BYTES_MAX);
        IDLE_BYTES + tables + given_bytes.min(WINDOW_BYTES_MAX)
    }

    fn begin(&mut self, given_bytes_max: u64, to: DecodedSink<'_>) -> Result<(), InflateProblem> {
        let start = std::mem::take(&mut self.start);
        self.decoder = Some(Decoder::new(self.coding, &start)?);
        self.decode(&start, given_bytes_max, to)
    }

    fn decode(
        &mut self,
        mut input: &[u8],
        given_bytes_max: u64,
        to: DecodedSink<'_>,
    ) -> Result<(), InflateProblem> {
        self.taken_bytes += input.len() as u64;
        let Some(decoder) = &mut self.decoder else { return Ok(()) };
        self.chunk.resize(CHUNK_BYTES, 0);
        while !self.is_at_end {
            let step = decoder.step(input, &mut self.chunk)?;
            input = &input[step.taken..];
            self.is_at_end = step.is_end;
            self.given_bytes += step.written as u64;
            if self.given_bytes > given_bytes_max {
                return Err(InflateProblem::TooLong);
            }
            if step.written > 0 {
                to(&self.chunk[..step.written])?;
            }
            let is_stuck = step.taken == 0 && step.written == 0;
            if is_stuck && !input.is_empty() && !step.is_end {
                return Err(InflateProblem::Malformed);
            }
            if input.is_empty() && step.written < self.chunk.len() {
                return Ok(());
            }
        }
        if input.is_empty() { Ok(()) } else { Err(InflateProblem::Trailing) }
    }
}
