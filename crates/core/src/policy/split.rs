//! The distribution of requests to pools by weights.

/// Pools and their weights, in the order of the file.
#[derive(Debug)]
pub struct Split(Box<[(u32, u32)]>);

impl Split {
    /// A split from pools' indexes in the snapshot and their weights.
    pub fn new(pools: impl IntoIterator<Item = (u32, u32)>) -> Self {
        Self(pools.into_iter().collect())
    }

    /// The pools, including those with weight 0.
    pub fn pools(&self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|(pool, _)| *pool as usize)
    }

    /// The pool at this position (of 2^64) among the pools that `is_usable` accepts; among all pools, if it accepts no pool
    /// with a weight. After a change of weights, as few positions as possible change their pool.
    pub fn at(&self, place: u64, is_usable: impl Fn(usize) -> bool) -> usize {
        let sum = |is_in: &dyn Fn(usize) -> bool| -> u64 {
            let weights = self.0.iter().filter(|(pool, _)| is_in(*pool as usize));
            weights.map(|(_, weight)| u64::from(*weight)).sum()
        };
        let all = |_: usize| true;
        let is_in: &dyn Fn(usize) -> bool = if sum(&is_usable) > 0 { &is_usable } else { &all };
        let total = sum(is_in);
        let mut left = ((u128::from(place) * u128::from(total)) >> 64) as u64;
        let mut last = self.0.first().map_or(0, |(pool, _)| *pool as usize);
        for &(pool, weight) in self.0.iter().filter(|(pool, _)| is_in(*pool as usize)) {
            if weight == 0 {
                continue;
            }
            last = pool as usize;
            if left < u64::from(weight) {
                break;
            }
            left -= u64::from(weight);
        }
        last
    }
}

/// Spreads a key evenly over all positions. Otherwise a pool would get only some of the keys, and use its members unevenly,
/// because members are chosen by the same key.
pub fn place_of(key: u64) -> u64 {
    // The end of SplitMix64 (Steele, Lea and Flood, 2014).
    let mut mixed = key ^ 0x5350_4c49_5430_3031;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::{Split, place_of};

    const ALL: fn(usize) -> bool = |_| true;

    #[test]
    fn shares_are_those_of_the_weights() {
        let split = Split::new([(3, 95), (7, 5), (9, 0)]);
        let mut counts = [0; 10];
        for key in 0..100_000 {
            counts[split.at(place_of(key), ALL)] += 1;
        }
        assert_eq!(counts[3] + counts[7], 100_000);
        assert!((4_700..5_300).contains(&counts[7]), "{counts:?}");
        for (place, pool) in
            [(0, 3), (u64::MAX, 7), (u64::MAX / 100 * 94, 3), (u64::MAX / 100 * 96, 7)]
        {
            assert_eq!(split.at(place, ALL), pool, "{place}");
        }
    }

    #[test]
    fn who_is_out_has_no_share_unless_all_are() {
        let split = Split::new([(0, 50), (1, 50), (2, 0)]);
        for place in [0, u64::MAX / 4, u64::MAX] {
            assert_eq!(split.at(place, |pool| pool != 0), 1);
            assert_eq!(split.at(place, |pool| pool == 0), 0);
            assert_eq!(split.at(place, |pool| pool == 2), split.at(place, ALL), "2 has no weight");
        }
    }

    #[test]
    fn a_larger_share_moves_only_that_much() {
        let (before, after) = (Split::new([(0, 95), (1, 5)]), Split::new([(0, 90), (1, 10)]));
        let mut moved = 0;
        for key in 0..100_000 {
            match (before.at(place_of(key), ALL), after.at(place_of(key), ALL)) {
                (0, 1) => moved += 1,
                (was, is) => assert_eq!(was, is),
            }
        }
        assert!((4_700..5_300).contains(&moved), "{moved}");
    }
}
