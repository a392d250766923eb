//! Random two: draws two members by weight and picks the less loaded one.
//!
//! The power of two choices (Mitzenmacher: "The power of two choices in randomized load balancing", 2001): the most
//! loaded of n members is about log log n above the mean; with single draws it is log n / log log n above the mean. A
//! pick reads two occupancies, whatever the number of members. Cores that see the same loads do not all pick the same
//! member.
//!
//! Loads are compared in proportion to weight; of equal loads, the member drawn first wins, so idle members share by
//! weight. A duplicate or not admitted member is replaced by another draw, up to [`DRAWS_MAX`] draws in total. If the
//! draws found only one admitted member, it is picked; if they found none, the least loaded of all admitted members is
//! picked.
//!
//! | operation | cost |
//! |---|---|
//! | `new` | O(n) |
//! | `pick` | at most [`DRAWS_MAX`] draws, two reads of occupancy |
//! | `pick`, no drawn member admitted | O(n) reads more |
//! | `started`, `ended` | none |
//! | memory | 10 bytes per member |

use super::draw::Draw;
use super::{View, clamp_weight};

/// Maximum number of draws per pick; then the pick decides among the drawn members.
pub const DRAWS_MAX: usize = 8;

/// Random two over a fixed set of members.
#[derive(Debug, Clone)]
pub struct RandomTwo {
    weights: Box<[u16]>,
    draw: Draw,
}

impl RandomTwo {
    /// Random two over `weights.len()` members; the seed determines the draws.
    pub fn new(weights: &[u16], seed: u64) -> Self {
        let draw = Draw::new(weights, seed);
        Self { weights: weights.iter().map(|&weight| clamp_weight(weight)).collect(), draw }
    }

    /// See [`super::Balancer::pick`]. It is not inlined: its constants would cost other methods too.
    #[inline(never)]
    pub fn pick(&mut self, view: &impl View) -> Option<usize> {
        if self.weights.len() < 2 {
            return (0..self.weights.len()).find(|&index| view.admits(index));
        }
        let mut drawn = None;
        for _ in 0..DRAWS_MAX {
            let index = self.draw.next();
            match drawn {
                _ if drawn == Some(index) || !view.admits(index) => {}
                None => drawn = Some(index),
                Some(first) => return Some(self.less_loaded(first, index, view)),
            }
        }
        drawn.or_else(|| self.scan(view))
    }

    /// The least loaded of all admitted members; of equal loads, the first one from a drawn member on.
    #[cold]
    fn scan(&mut self, view: &impl View) -> Option<usize> {
        let first = self.draw.next();
        (first..self.weights.len())
            .chain(0..first)
            .filter(|&index| view.admits(index))
            .reduce(|best, index| self.less_loaded(best, index, view))
    }

    fn less_loaded(&self, first: usize, second: usize, view: &impl View) -> usize {
        // In proportion to weight, by cross-multiplication.
        let load = |index: usize, other: usize| {
            u64::from(view.occupancy(index)) * u64::from(self.weights[other])
        };
        if load(second, first) < load(first, second) { second } else { first }
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulation::Table;
    use super::*;

    #[test]
    fn few_members() {
        assert_eq!(RandomTwo::new(&[], 1).pick(&Table::new(0)), None);
        let mut table = Table::new(1);
        let mut one = RandomTwo::new(&[5], 1);
        assert_eq!(one.pick(&table), Some(0));
        table.refuse(0);
        assert_eq!(one.pick(&table), None);
    }

    #[test]
    fn idle_members_share_by_weight() {
        let weights = [1, 2, 3, 10, 4];
        let table = Table::new(5);
        let mut balancer = RandomTwo::new(&weights, 3);
        let mut counts = [0u32; 5];
        (0..20_000).for_each(|_| counts[balancer.pick(&table).unwrap()] += 1);
        for (count, weight) in counts.iter().zip(weights) {
            assert!(count.abs_diff(u32::from(weight) * 1_000) < 300, "{counts:?}");
        }
    }

    #[test]
    fn the_less_loaded_is_taken() {
        let mut table = Table::new(2);
        (0..5).for_each(|_| table.start(0));
        (0..9).for_each(|_| table.start(1));
        // 5 at weight 1 is more than 9 at weight 2.
        let mut balancer = RandomTwo::new(&[1, 2], 7);
        let picks: Vec<_> = (0..100).map(|_| balancer.pick(&table).unwrap()).collect();
        // A second draw may not find the other member.
        assert!(picks.iter().filter(|&&pick| pick == 1).count() >= 98, "{picks:?}");
    }

    #[test]
    fn a_free_member_is_always_found() {
        let mut table = Table::new(500);
        let mut balancer = RandomTwo::new(&[3; 500], 7);
        (0..500).for_each(|index| table.refuse(index));
        assert_eq!(balancer.pick(&table), None);
        for free in 0..500 {
            table.admit(free);
            assert_eq!(balancer.pick(&table), Some(free));
            table.refuse(free);
        }
    }
}
