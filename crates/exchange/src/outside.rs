//! What decisions need and cannot make: time, and bytes that nobody can tell in advance.

use weir_core::clock::Clock;

/// What decisions need and cannot make.
#[derive(Debug, Clone, Copy)]
pub struct Outside {
    /// The time of this moment.
    pub clock: Clock,
    /// Fills with bytes that nobody can tell in advance: what keys are made of.
    pub fill_randomly: fn(&mut [u8]),
}

impl Outside {
    /// Such bytes.
    pub fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.fill_randomly)(&mut bytes);
        bytes
    }

    /// For tests: time stands, and bytes can be told.
    #[cfg(test)]
    pub fn known() -> Self {
        Self { clock: Clock::at_us(1_000_000_000), fill_randomly: |bytes| bytes.fill(7) }
    }
}
