//! Inputs from outside: time and random bytes.

use weir_core::clock::Clock;

/// Inputs from outside.
#[derive(Debug, Clone, Copy)]
pub struct Environment {
    /// The current time.
    pub clock: Clock,
    /// Fills the buffer with unpredictable bytes, for secret keys.
    pub fill_randomly: fn(&mut [u8]),
}

impl Environment {
    /// Unpredictable bytes.
    pub fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.fill_randomly)(&mut bytes);
        bytes
    }

    /// For tests: the time is constant, and the bytes are predictable.
    #[cfg(test)]
    pub fn known() -> Self {
        Self { clock: Clock::at_us(1_000_000_000), fill_randomly: |bytes| bytes.fill(7) }
    }
}
