//! Random numbers for jitter, not for secrets.

use std::hash::{BuildHasher, RandomState};

/// A random number of 64 bits, which differs between calls and between processes.
pub fn random() -> u64 {
    // Each `RandomState` has different keys, derived from a seed of the operating system.
    RandomState::new().hash_one(0_u8)
}

#[cfg(test)]
mod tests {
    #[test]
    fn differs() {
        let numbers: std::collections::HashSet<u64> = (0..1_000).map(|_| super::random()).collect();
        assert_eq!(numbers.len(), 1_000);
    }
}
