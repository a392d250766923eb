//! Drawing members at random by weight, in constant time.
//!
//! The alias method (Walker 1974; Vose: "A linear algorithm for generating random numbers with a given
//! distribution", 1991): as many columns as members, each as high as the mean weight and shared by at
//! most two members. A draw takes a column and tosses a coin for the owner; both come from one number
//! of a SplitMix64 sequence whose seed is handed in. Shares are exact to 2^-32.

use super::clamp_weight;
use super::mix::mix;

/// The increment of SplitMix64: 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A sequence of members.
#[derive(Debug, Clone)]
pub struct Draw {
    state: u64,
    columns: Box<[Column]>,
}

/// A column of the alias table: its own member up to `height`, and another member above.
#[derive(Debug, Clone, Copy)]
struct Column {
    /// In 2^-32 of a column.
    height: u32,
    other: u32,
}

impl Draw {
    /// Draws from `weights.len()` members; O(n).
    pub fn new(weights: &[u16], seed: u64) -> Self {
        let members = weights.len() as u64;
        let weight = |index: u32| u64::from(clamp_weight(weights[index as usize]));
        let total: u64 = (0..members as u32).map(weight).sum();
        // In units such that a column holds `total`.
        let mut left: Vec<u64> = (0..members as u32).map(|index| weight(index) * members).collect();
        let mut columns: Box<[Column]> =
            (0..members as u32).map(|index| Column { height: u32::MAX, other: index }).collect();
        let (mut low, mut high): (Vec<u32>, Vec<u32>) =
            (0..members as u32).partition(|&index| left[index as usize] < total);
        while let (Some(&short), Some(&tall)) = (low.last(), high.last()) {
            low.pop();
            let filled = left[short as usize];
            let height = (u128::from(filled) << 32) / u128::from(total);
            columns[short as usize] = Column { height: height as u32, other: tall };
            left[tall as usize] -= total - filled;
            if left[tall as usize] < total {
                high.pop();
                low.push(tall);
            }
        }
        Self { state: seed, columns }
    }

    /// The next member.
    ///
    /// # Panics
    /// If there is no member.
    pub fn next(&mut self) -> usize {
        let random = self.random();
        let column = (((random >> 32) * self.columns.len() as u64) >> 32) as usize;
        let Column { height, other } = self.columns[column];
        if (random as u32) < height { column } else { other as usize }
    }

    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_testing::Random;

    #[test]
    fn members_come_by_weight() {
        for seed in 0..32 {
            let mut random = Random::new(seed);
            let members = 1 + random.below(40);
            let weights: Vec<u16> = match seed % 3 {
                0 => vec![7; members],
                1 => (0..members).map(|_| 1 + random.below(4) as u16).collect(),
                _ => (0..members).map(|_| random.below(300) as u16).collect(),
            };
            let total: f64 = weights.iter().map(|&weight| f64::from(clamp_weight(weight))).sum();
            let mut draw = Draw::new(&weights, seed);
            let draws = 20_000;
            let mut counts = vec![0u32; members];
            (0..draws).for_each(|_| counts[draw.next()] += 1);
            for (&count, &weight) in counts.iter().zip(&weights) {
                let share = f64::from(clamp_weight(weight)) / total;
                let expected = share * f64::from(draws);
                let deviation = (expected * (1.0 - share)).sqrt();
                let error = (f64::from(count) - expected).abs();
                assert!(error <= 5.0 * deviation + 1.0, "seed {seed}: {count} of {expected}");
            }
        }
    }

    /// The heights add up to the weights.
    #[test]
    fn columns_hold_the_exact_shares() {
        let weights = [1, 256, 3, 17, 17, 80, 2];
        let draw = Draw::new(&weights, 0);
        let mut shares = [0.0; 7];
        for (index, column) in draw.columns.iter().enumerate() {
            let own = f64::from(column.height) / 4_294_967_296.0;
            shares[index] += own;
            shares[column.other as usize] += 1.0 - own;
        }
        for (share, weight) in shares.iter().zip(weights) {
            let expected = 7.0 * f64::from(weight) / 376.0;
            assert!((share - expected).abs() < 1e-6, "{share} {expected}");
        }
    }
}
