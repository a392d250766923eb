//! Bodies of any size. Each byte depends on its position, so that lost, repeated or swapped bytes are detected.

use std::sync::OnceLock;

/// Length after which the pattern repeats: a prime, so that it is not aligned with any buffer size.
const PERIOD_BYTES: usize = 1_048_573;

/// One period of pseudo-random bytes (SplitMix64), the same in every run.
fn period() -> &'static [u8] {
    static PERIOD: OnceLock<Vec<u8>> = OnceLock::new();
    PERIOD.get_or_init(|| {
        let mut state = 0_u64;
        let mut bytes = Vec::with_capacity(PERIOD_BYTES + 8);
        while bytes.len() < PERIOD_BYTES {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            bytes.extend((mixed ^ (mixed >> 31)).to_le_bytes());
        }
        bytes.truncate(PERIOD_BYTES);
        bytes
    })
}

/// The pattern from `offset` on, up to the end of a period.
fn from(offset: u64) -> &'static [u8] {
    &period()[(offset % PERIOD_BYTES as u64) as usize..]
}

/// Fills `buffer` with the pattern from `offset` on.
pub fn fill(buffer: &mut [u8], offset: u64) {
    let mut filled = 0;
    while filled < buffer.len() {
        let part = from(offset + filled as u64);
        let count = part.len().min(buffer.len() - filled);
        buffer[filled..filled + count].copy_from_slice(&part[..count]);
        filled += count;
    }
}

/// Checks received bytes against the pattern.
#[derive(Debug, Default)]
pub struct Checker {
    offset: u64,
    wrong_before: Option<u64>,
}

impl Checker {
    /// A checker that expects the pattern from `offset` on, as if all bytes before had been received.
    #[must_use]
    pub fn beginning_at(offset: u64) -> Self {
        Self { offset, wrong_before: None }
    }

    /// Checks the next bytes.
    pub fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let part = from(self.offset);
            let count = part.len().min(bytes.len());
            self.offset += count as u64;
            if self.wrong_before.is_none() && part[..count] != bytes[..count] {
                self.wrong_before = Some(self.offset);
            }
            bytes = &bytes[count..];
        }
    }

    /// Panics unless exactly `size` bytes arrived, all of them correct.
    #[track_caller]
    pub fn assert_whole(&self, size: u64) {
        assert_eq!(self.verdict(), format!("{size} good bytes"));
    }

    /// `N good bytes`, or the range that contains the first wrong byte.
    pub fn verdict(&self) -> String {
        match self.wrong_before {
            None => format!("{} good bytes", self.offset),
            Some(offset) => format!("wrong bytes before {offset}, {} received", self.offset),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checker_tells_a_repeated_piece_from_the_pattern() {
        let mut bytes = vec![0; 3_000_000];
        fill(&mut bytes, 0);
        let mut checker = Checker::default();
        checker.take(&bytes[..600]);
        checker.take(&bytes[600..]);
        checker.assert_whole(3_000_000);

        let mut checker = Checker::default();
        checker.take(&bytes[..600]);
        checker.take(&bytes[592..700]);
        assert_eq!(checker.wrong_before, Some(708));
    }
}
