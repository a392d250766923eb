//! Spreading the bits of a word.

/// Spreads any change of a word over all of it: the finaliser of SplitMix64 (Steele, Lea, Flood: "Fast
/// splittable pseudorandom number generators", 2014). Different words give different results.
pub(super) fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixing_is_one_to_one_on_a_sample() {
        let mixed: std::collections::HashSet<u64> = (0..100_000).map(mix).collect();
        assert_eq!(mixed.len(), 100_000);
    }
}
