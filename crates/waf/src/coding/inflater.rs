//! All codings of a body, the outermost first.

use super::stage::{Decoded, Stage};
use super::{Coding, InflateProblem};

/// How many times as long as what has come of a body it may become. Telemetry and logs shrink to a fiftieth at best.
pub const INFLATION_MAX: u64 = 200;
/// So much a body may become, however little has come.
const INFLATED_BYTES_FREE: u64 = 64 << 10;
/// Bytes that are taken at a time, so that it matters little how a body is cut.
const PIECE_BYTES: usize = 1 << 10;

/// Inflates a body as it comes.
#[derive(Debug)]
pub struct Inflater {
    stages: Vec<Stage>,
    bytes_max: u64,
    taken_bytes: u64,
}

impl Inflater {
    /// For codings in the order in which they were applied. No coding may make more than `bytes_max` bytes.
    pub fn new(codings: &[Coding], bytes_max: u64) -> Self {
        let stages = codings.iter().rev().map(|coding| Stage::new(*coding)).collect();
        Self { stages, bytes_max, taken_bytes: 0 }
    }

    /// Takes the next bytes. Behind a problem there is nothing more to be had of it.
    pub fn feed(&mut self, input: &[u8], to: &mut dyn FnMut(&[u8])) -> Result<(), InflateProblem> {
        for piece in input.chunks(PIECE_BYTES) {
            self.taken_bytes += piece.len() as u64;
            let given_max = self.given_bytes_max();
            push(&mut self.stages, piece, given_max, to).map_err(|it| self.of_length(it))?;
        }
        Ok(())
    }

    /// Takes the end. A body without a byte has no coding that could be wrong.
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

    /// Memory that it takes, at most; what it has given away not counted.
    pub fn memory_bytes(&self) -> u64 {
        self.stages.iter().map(Stage::memory_bytes).sum()
    }

    /// Bytes that it has taken and made so far, in all codings but the innermost: those it has given away.
    pub fn work_bytes(&self) -> u64 {
        self.stages.iter().map(|stage| stage.taken_bytes).sum()
    }

    fn given_bytes_max(&self) -> u64 {
        let by_length = self.taken_bytes.saturating_mul(INFLATION_MAX).max(INFLATED_BYTES_FREE);
        self.bytes_max.min(by_length)
    }

    /// Which of both limits it was.
    fn of_length(&self, problem: InflateProblem) -> InflateProblem {
        let is_bomb = self.given_bytes_max() < self.bytes_max;
        if problem == InflateProblem::TooLong && is_bomb { InflateProblem::Bomb } else { problem }
    }
}

/// Sends bytes through the codings that are left.
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
    let inward: Decoded<'_> = &mut |bytes| push(inner, bytes, given_bytes_max, to);
    outer.feed(bytes, given_bytes_max, inward)
}
