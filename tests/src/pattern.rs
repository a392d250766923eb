//! Bodies of any size whose every byte tells where it belongs, so that a lost, repeated or swapped one shows.

/// Fills `buffer` with the pattern from `offset` on.
pub fn fill(buffer: &mut [u8], offset: u64) {
    for (index, byte) in buffer.iter_mut().enumerate() {
        *byte = at(offset + index as u64);
    }
}

/// The pattern's byte at `offset`: a mix whose period is far beyond any buffer's size.
pub fn at(offset: u64) -> u8 {
    let mixed = (offset >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed.to_be_bytes()[(offset & 7) as usize]
}

/// Checks bytes as they come.
#[derive(Debug, Default)]
pub struct Checker {
    offset: u64,
    wrong_at: Option<u64>,
}

impl Checker {
    /// Takes the next bytes.
    pub fn take(&mut self, bytes: &[u8]) {
        if self.wrong_at.is_none() {
            let start = self.offset;
            let wrong = (start..)
                .zip(bytes)
                .find(|&(offset, &byte)| byte != at(offset));
            self.wrong_at = wrong.map(|(offset, _)| offset);
        }
        self.offset += bytes.len() as u64;
    }

    /// Panics unless exactly `size` bytes came, each the right one.
    #[track_caller]
    pub fn assert_whole(&self, size: u64) {
        assert_eq!(
            self.wrong_at, None,
            "first wrong byte of {} received",
            self.offset
        );
        assert_eq!(self.offset, size, "bytes received");
    }

    /// Bytes taken so far.
    pub fn received(&self) -> u64 {
        self.offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checker_tells_a_repeated_chunk_from_the_pattern() {
        let mut bytes = vec![0; 1000];
        fill(&mut bytes, 0);
        let mut checker = Checker::default();
        checker.take(&bytes[..600]);
        checker.take(&bytes[600..]);
        checker.assert_whole(1000);

        let mut checker = Checker::default();
        checker.take(&bytes[..600]);
        checker.take(&bytes[592..]);
        assert!(
            checker
                .wrong_at
                .is_some_and(|offset| (600..616).contains(&offset))
        );
    }
}
