//! The decoding of all codings of a body, the outermost first.

use super::stage::{DecodedSink, Stage};
use super::{Coding, InflateProblem};

/// Maximum ratio of the decoded length to the received length. Telemetry and logs are compressed to a fiftieth at best.
pub const INFLATION_MAX: u64 = 200;
/// The decoded length that is always allowed, regardless of the received length.
const INFLATED_BYTES_FREE: u64 = 64 << 10;
/// Number of bytes processed at a time. Small pieces keep the result nearly independent of how the body is split.
const PIECE_BYTES: usize = 1 << 10;

/// The largest decoded length of a body with this received length, unless the limit of [`Inflater::new`] is lower.
pub fn inflated_bytes_max(received_bytes: u64) -> u64 {
    received_bytes.saturating_mul(INFLATION_MAX).max(INFLATED_BYTES_FREE)
}

/// The upper bound of the memory for decoding a body of this length, with the decoded body. `bytes_max`: as in
/// [`Inflater::new`].
pub fn memory_bytes_max(codings: &[Coding], received_bytes: u64, bytes_max: u64) -> u64 {
    let given_bytes = inflated_bytes_max(received_bytes).min(bytes_max);
    let mut taken_bytes = received_bytes;
    let mut memory_bytes = 0_u64;
    for _ in codings {
        memory_bytes += Stage::memory_bytes_of(taken_bytes, given_bytes);
        taken_bytes = given_bytes;
    }
    if codings.is_empty() { 0 } else { memory_bytes.saturating_add(given_bytes) }
}

/// An incremental decoder of a body.
#[derive(Debug)]
pub struct Inflater {
    stages: Vec<Stage>,
    bytes_max: u64,
    taken_bytes: u64,
}

impl Inflater {
    /// A decoder for these codings, listed in the order in which they were applied. No coding may produce more than
    /// `bytes_max` bytes.
    pub fn new(codings: &[Coding], bytes_max: u64) -> Self {
        let stages = codings.iter().rev().map(|coding| Stage::new(*coding)).collect();
        Self { stages, bytes_max, taken_bytes: 0 }
    }

    /// Decodes the next piece. After a problem, there is no more output.
    pub fn feed(&mut self, input: &[u8], to: &mut dyn FnMut(&[u8])) -> Result<(), InflateProblem> {
        for piece in input.chunks(PIECE_BYTES) {
            self.taken_bytes += piece.len() as u64;
            let given_max = self.given_bytes_max();
            push(&mut self.stages, piece, given_max, to).map_err(|it| self.of_length(it))?;
        }
        Ok(())
    }

    /// Ends the body. An empty body is valid in any coding.
    pub fn finish(&mut self, to: &mut dyn FnMut(&[u8])) -> Result<(), InflateProblem> {
        if self.taken_bytes == 0 {
            return Ok(());
        }
        let given_max = self.given_bytes_max();
        for at in 0..self.stages.len() {
            let (before, inner) = self.stages.split_at_mut(at + 1);
            let outer = before.last_mut().ok_or(InflateProblem::Malformed)?;
            let mut inward = |bytes: &[u8]| push(inner, bytes, given_max, to);
            outer.finish(given_max, &mut inward).map_err(|it| self.of_length(it))?;
        }
        Ok(())
    }

    /// The upper bound of the decoders' memory, without the output.
    pub fn memory_bytes(&self) -> u64 {
        self.stages.iter().map(Stage::memory_bytes).sum()
    }

    /// The number of bytes that all codings have consumed so far. It includes the output of all codings except the last.
    pub fn work_bytes(&self) -> u64 {
        self.stages.iter().map(|stage| stage.taken_bytes).sum()
    }

    fn given_bytes_max(&self) -> u64 {
        self.bytes_max.min(inflated_bytes_max(self.taken_bytes))
    }

    /// Replaces [`InflateProblem::TooLong`] by [`InflateProblem::Bomb`] if the ratio was the exceeded limit.
    fn of_length(&self, problem: InflateProblem) -> InflateProblem {
        let is_bomb = self.given_bytes_max() < self.bytes_max;
        if problem == InflateProblem::TooLong && is_bomb { InflateProblem::Bomb } else { problem }
    }
}

/// Passes bytes through the remaining codings.
fn push(
    stages: &mut [Stage],
    bytes: &[u8],
    given_bytes_max: u64,
    to: &mut dyn FnMut(&[u8]),
) -> Result<(), InflateProblem> {
    let Some((outer, inner)) = stages.split_first_mut() else {
        to(bytes);
        return Ok(());
    };
    let inward: DecodedSink<'_> = &mut |bytes| push(inner, bytes, given_bytes_max, to);
    outer.feed(bytes, given_bytes_max, inward)
}
