//! Random numbers.

/// A random number below `below` for one call in the expressions. The same seed gives the same number for this call, and
/// independent numbers for other calls.
pub(super) fn draw(seed: u64, call: u32, below: u32) -> i64 {
    // The increment and the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
    let mut mixed = seed.wrapping_add(u64::from(call).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    // The upper bits of a product are as evenly distributed as its factor.
    ((u128::from(mixed) * u128::from(below)) >> 64) as i64
}

#[cfg(test)]
mod tests {
    use super::draw;

    #[test]
    fn numbers_are_even_and_independent() {
        let mut counts = [[0u32; 10]; 10];
        for seed in 0..100_000 {
            let [one, other] = [1, 2].map(|call| draw(seed, call, 10) as usize);
            counts[one][other] += 1;
        }
        for count in counts.into_iter().flatten() {
            assert!((850..1_150).contains(&count), "{counts:?}");
        }
        assert_eq!(draw(7, 1, 1), 0);
        assert_eq!(draw(7, 1, 1_000), draw(7, 1, 1_000));
    }
}
