//! Least response time: the member that will probably answer a request first.
//!
//! The cost of a request on a member comes from [`super::ResponseTime`], which all cores share: the recent response
//! time, times the number of open requests plus one. A member of weight `w` counts as `w` times as fast. Costs become
//! equal, so the number of open requests on a member is in inverse proportion to its response time, and its share of
//! the requests to the square of the response time: a member that is half as fast gets a quarter.
//!
//! Up to [`SCAN_MEMBERS_MAX`] members are all compared on every pick. With more members, [`SAMPLES`] are compared: the
//! next one in rotation, so that each is read once in n picks, and others drawn at random by weight. The power of two
//! choices (see [`super::RandomTwo`]) makes this nearly as good as comparing all members. It also prevents cores that
//! see the same costs from all picking the same member.
//!
//! A drawn member that is not admitted is replaced by another draw, up to [`DRAWS_MAX`] draws. If no compared member is
//! admitted, all are compared.
//!
//! | operation | cost |
//! |---|---|
//! | `new` | O(n) |
//! | `pick`, n <= [`SCAN_MEMBERS_MAX`] | n reads |
//! | `pick`, more | at most [`DRAWS_MAX`] draws, [`SAMPLES`] reads of costs |
//! | `pick`, no examined member admitted | O(n) reads more |
//! | `started`, `ended` | none |
//! | memory | n <= [`SCAN_MEMBERS_MAX`]: 2 bytes per member; else 10 bytes |

use super::draw::Draw;
use super::{View, WEIGHT_MAX, clamp_weight};

/// Up to this many members are compared on every pick.
pub const SCAN_MEMBERS_MAX: usize = 8;

/// With more members than [`SCAN_MEMBERS_MAX`], this many are compared.
pub const SAMPLES: usize = 4;

/// Maximum number of draws per pick; then the pick decides among the drawn members.
pub const DRAWS_MAX: usize = 8;

/// Least response time over a fixed set of members.
#[derive(Debug, Clone)]
pub struct LeastResponseTime {
    weights: Box<[u16]>,
    /// The member that is compared first and wins ties.
    first: usize,
    /// Set only with more than [`SCAN_MEMBERS_MAX`] members.
    draw: Option<Draw>,
}

/// The cheapest member so far.
#[derive(Default)]
struct CheapestMember {
    cost: u64,
    index: Option<usize>,
}

impl LeastResponseTime {
    /// Least response time over `weights.len()` members; the seed determines the draws, and the order of equals.
    pub fn new(weights: &[u16], seed: u64) -> Self {
        let first = seed.checked_rem(weights.len() as u64).unwrap_or(0) as usize;
        let draw = (weights.len() > SCAN_MEMBERS_MAX).then(|| Draw::new(weights, seed));
        Self { weights: weights.iter().map(|&weight| clamp_weight(weight)).collect(), first, draw }
    }

    /// See [`super::Balancer::pick`]. It is not inlined: its constants would cost other methods too.
    #[inline(never)]
    pub fn pick(&mut self, view: &impl View) -> Option<usize> {
        let Some(draw) = &mut self.draw else {
            let picked = self.cheapest(view);
            if let Some(index) = picked {
                self.first = self.after(index);
            }
            return picked;
        };
        let mut best = CheapestMember::default();
        let mut compared = usize::from(best.compare(self.first, &self.weights, view));
        for _ in 0..DRAWS_MAX {
            if compared == SAMPLES {
                break;
            }
            compared += usize::from(best.compare(draw.next(), &self.weights, view));
        }
        self.first = self.after(self.first);
        best.index.or_else(|| self.cheapest(view))
    }

    /// The cheapest of all members.
    fn cheapest(&self, view: &impl View) -> Option<usize> {
        let mut best = CheapestMember::default();
        for index in (self.first..self.weights.len()).chain(0..self.first) {
            best.compare(index, &self.weights, view);
        }
        best.index
    }

    fn after(&self, index: usize) -> usize {
        if index + 1 == self.weights.len() { 0 } else { index + 1 }
    }
}

impl CheapestMember {
    /// Compares a member; returns whether it is admitted.
    fn compare(&mut self, index: usize, weights: &[u16], view: &impl View) -> bool {
        if !view.admits(index) {
            return false;
        }
        let scaled = view.cost(index).saturating_mul(u64::from(WEIGHT_MAX));
        let cost = scaled / u64::from(weights[index]);
        if self.index.is_none() || cost < self.cost {
            *self = Self { cost, index: Some(index) };
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulation::Table;
    use super::*;

    /// Without response times, the method equals least connections.
    #[test]
    fn equally_fast_members_share_evenly() {
        for members in [1, 2, 8] {
            let mut table = Table::new(members);
            let mut balancer = LeastResponseTime::new(&vec![1; members], 5);
            for _ in 0..10 * members {
                table.start(balancer.pick(&table).unwrap());
            }
            assert!((0..members).all(|index| table.occupancy(index) == 10));
        }
        let mut table = Table::new(100);
        let mut balancer = LeastResponseTime::new(&[1; 100], 5);
        for _ in 0..10 * 100 {
            table.start(balancer.pick(&table).unwrap());
        }
        assert!((0..100).all(|index| (8..=12).contains(&table.occupancy(index))));
    }

    #[test]
    fn occupancy_follows_weight() {
        for weights in [vec![1, 2, 5], [1, 2, 5, 2].repeat(10)] {
            let mut table = Table::new(weights.len());
            let mut balancer = LeastResponseTime::new(&weights, 1);
            let total: u32 = weights.iter().map(|&weight| u32::from(weight)).sum();
            for _ in 0..20 * total {
                table.start(balancer.pick(&table).unwrap());
            }
            for (index, &weight) in weights.iter().enumerate() {
                let share = 20 * u32::from(weight);
                assert!(table.occupancy(index).abs_diff(share) <= share / 5, "{weights:?}");
            }
        }
    }

    #[test]
    fn no_members_no_pick() {
        assert_eq!(LeastResponseTime::new(&[], 9).pick(&Table::new(0)), None);
    }

    #[test]
    fn a_free_member_is_always_found() {
        for members in [3, 200] {
            let mut table = Table::new(members);
            let mut balancer = LeastResponseTime::new(&vec![3; members], 7);
            (0..members).for_each(|index| table.refuse(index));
            assert_eq!(balancer.pick(&table), None);
            for free in 0..members {
                table.admit(free);
                assert_eq!(balancer.pick(&table), Some(free));
                table.refuse(free);
            }
        }
    }
}
