//! Bit output, lowest bit first (RFC 1951 section 3.1.1).

/// Bits that do not form a whole byte yet.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BitWriter {
    bits: u64,
    /// The number of bits; less than 8 between calls of [`Self::carry`].
    count: u32,
}

impl BitWriter {
    /// Appends the lowest `count` bits of `bits`; the others must be 0. At most 56 bits may be appended between two calls of
    /// [`Self::carry`].
    #[inline(always)]
    pub(super) fn push(&mut self, bits: u64, count: u32) {
        debug_assert!(self.count + count < 64 && bits >> count == 0);
        self.bits |= bits << self.count;
        self.count += count;
    }

    /// Writes whole bytes to `out` at `at`, and returns the position after them. `out` must have eight bytes there.
    #[inline(always)]
    pub(super) fn carry(&mut self, out: &mut [u8], at: usize) -> usize {
        if let Some(place) = out.get_mut(at..).and_then(|out| out.first_chunk_mut::<8>()) {
            *place = self.bits.to_le_bytes();
        }
        let bytes = self.count / 8;
        self.bits >>= 8 * bytes;
        self.count %= 8;
        at + bytes as usize
    }

    /// Appends bits, and outputs whole bytes to `out`.
    pub(super) fn write(&mut self, bits: u64, count: u32, out: &mut Vec<u8>) {
        self.push(bits, count);
        let bytes = self.count as usize / 8;
        out.extend_from_slice(&self.bits.to_le_bytes()[..bytes]);
        self.bits >>= 8 * bytes;
        self.count %= 8;
    }

    /// Fills the last byte with zeros.
    pub(super) fn align(&mut self, out: &mut Vec<u8>) {
        self.write(0, (8 - self.count) % 8, out);
    }
}
