//! Unpredictable numbers.

use std::hash::{BuildHasher, RandomState};

/// Generates unpredictable bytes, for keys.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    fill(&mut bytes);
    bytes
}

/// An unpredictable number.
pub fn number() -> u64 {
    u64::from_ne_bytes(bytes())
}

/// Fills the buffer with unpredictable bytes.
pub fn fill(bytes: &mut [u8]) {
    // Each `RandomState` has its own keys, which derive from the system's random numbers.
    let state = RandomState::new();
    for (index, part) in bytes.chunks_mut(size_of::<u64>()).enumerate() {
        part.copy_from_slice(&word(&state, index).to_ne_bytes()[..part.len()]);
    }
}

#[cfg(not(feature = "simulation"))]
fn word(state: &RandomState, index: usize) -> u64 {
    state.hash_one(index)
}

/// In the simulation, the numbers derive from its seed.
#[cfg(feature = "simulation")]
fn word(state: &RandomState, index: usize) -> u64 {
    crate::memory::random_word().unwrap_or_else(|| state.hash_one(index))
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_differ() {
        let numbers: std::collections::HashSet<u64> = (0..1_000).map(|_| super::number()).collect();
        assert_eq!(numbers.len(), 1_000);
    }
}
