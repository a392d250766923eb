//! Round robin: members in turn, by weight, interleaved.
//!
//! Members of the same weight form a class and take turns by a cursor. Between classes time is cut
//! into slots, one per pick; a class with `m` members of weight `w` owns the fraction `m*w/T` of them,
//! where `T` is the sum of all weights. Which slot is whose follows the windows of proportionate
//! fairness (Baruah, Cohen, Plaxton, Varvel: "Proportionate progress", 1996): the k-th turn of a class
//! with rate `r` may come from slot `floor(k*T/r)` on and must have come by slot `ceil((k+1)*T/r)`; of
//! the turns that may come, the one that is due first does. After every number of picks each class
//! then has had its exact share, less or more than one turn, and a member less or more than two;
//! after `T` picks every member has had exactly its weight, and the calendar starts anew, so that no
//! number grows without bound.
//!
//! A member that the view does not admit loses its turn, which leaves the others' proportions as
//! they are. Only after [`TURNS_LOST_MAX`] lost turns does a pick go through the members one by one.
//!
//! | operation | cost |
//! |---|---|
//! | `new` | O(n log n) |
//! | `pick`, all weights equal | O(1) |
//! | `pick`, c different weights | O(log c), c <= 256 |
//! | `pick`, f of n members not admitted | the above times n/(n-f), at most [`TURNS_LOST_MAX`] times, then O(n) |
//! | `started`, `ended` | none |

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{View, clamp_weight};

/// Turns of members that are not admitted which one pick passes over before it goes through the
/// members one by one.
pub const TURNS_LOST_MAX: usize = 8;

/// Turns by which the seed moves the start of the calendar between classes, at most.
const SEED_TURNS_MAX: u64 = 64;

/// The state of round robin: whose turn it is.
#[derive(Debug, Clone)]
pub struct RoundRobin {
    /// Member indexes, grouped by weight.
    members: Box<[u32]>,
    classes: Box<[Class]>,
    calendar: Calendar,
    /// Where the next walk through all members starts, a position in `members`.
    walk: usize,
}

/// Members of one weight.
#[derive(Debug, Clone)]
struct Class {
    /// Positions in [`RoundRobin::members`].
    first: u32,
    end: u32,
    /// The position whose turn is next.
    cursor: u32,
}

impl Class {
    fn take_turn(&mut self) -> usize {
        let position = self.cursor;
        self.cursor = if position + 1 == self.end { self.first } else { position + 1 };
        position as usize
    }
}

impl RoundRobin {
    /// Round robin over `weights.len()` members; the seed selects the first.
    pub fn new(weights: &[u16], seed: u64) -> Self {
        let mut members: Vec<u32> = (0..weights.len() as u32).collect();
        members.sort_by_key(|&index| (Reverse(clamp_weight(weights[index as usize])), index));
        let mut classes = Vec::new();
        let mut rates = Vec::new();
        let mut first = 0;
        for group in members.chunk_by(|&a, &b| {
            clamp_weight(weights[a as usize]) == clamp_weight(weights[b as usize])
        }) {
            let length = group.len() as u32;
            let cursor = first + (seed % u64::from(length)) as u32;
            classes.push(Class { first, end: first + length, cursor });
            rates.push(u64::from(length) * u64::from(clamp_weight(weights[group[0] as usize])));
            first += length;
        }
        let calendar = Calendar::new(rates, seed);
        Self { members: members.into(), classes: classes.into(), calendar, walk: 0 }
    }

    /// See [`super::Balancer::pick`].
    pub fn pick(&mut self, view: &impl View) -> Option<usize> {
        if self.members.is_empty() {
            return None;
        }
        for _ in 0..=TURNS_LOST_MAX {
            let class = self.calendar.next();
            let member = self.members[self.classes[class].take_turn()] as usize;
            if view.admits(member) {
                return Some(member);
            }
        }
        self.walk(view)
    }

    /// The next admitted member, ignoring weights.
    #[cold]
    fn walk(&mut self, view: &impl View) -> Option<usize> {
        let (before, after) = self.members.split_at(self.walk);
        let found = after.iter().chain(before).position(|&member| view.admits(member as usize))?;
        let position = (self.walk + found) % self.members.len();
        self.walk = (position + 1) % self.members.len();
        Some(self.members[position] as usize)
    }
}

/// Which class has the next slot.
#[derive(Debug, Clone)]
struct Calendar {
    /// Slots per round that each class owns.
    rates: Box<[u64]>,
    /// Slots per round: the sum of the rates.
    total: u64,
    /// The slot to be given away next, below `total`.
    slot: u64,
    /// Turns that are permitted now; the one with the earliest deadline on top.
    open: BinaryHeap<Reverse<Turn>>,
    /// Turns that are not permitted yet; the one that is permitted first on top.
    waiting: BinaryHeap<Reverse<(u64, Turn)>>,
}

/// The `number`-th turn of a class in this round. Ordered by when it is due, then by how long it has
/// waited, which interleaves better than any order of the classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    due: u64,
    opens: u64,
    class: u32,
    number: u64,
}

impl Calendar {
    fn new(rates: Vec<u64>, seed: u64) -> Self {
        let total = rates.iter().sum();
        let (open, waiting) =
            (BinaryHeap::with_capacity(rates.len()), BinaryHeap::with_capacity(rates.len()));
        let mut calendar = Self { rates: rates.into(), total, slot: 0, open, waiting };
        if calendar.rates.len() > 1 {
            calendar.begin_round();
            for _ in 0..seed % SEED_TURNS_MAX.min(total) {
                calendar.next();
            }
        }
        calendar
    }

    /// The owner of the next slot.
    fn next(&mut self) -> usize {
        if self.rates.len() == 1 {
            return 0;
        }
        while let Some(&Reverse((opens, turn))) = self.waiting.peek()
            && opens <= self.slot
        {
            self.waiting.pop();
            self.open.push(Reverse(turn));
        }
        // The rates add up to the slots, so there is an open turn at each; otherwise class 0 would be as good as any.
        let turn = self.open.pop().unwrap_or_default().0;
        debug_assert!(turn.due > self.slot, "a turn came too late");
        self.slot += 1;
        if turn.number + 1 < self.rates[turn.class as usize] {
            self.enter(turn.class, turn.number + 1);
        }
        if self.slot == self.total {
            self.begin_round();
        }
        self.check_invariants();
        turn.class as usize
    }

    fn begin_round(&mut self) {
        self.slot = 0;
        self.open.clear();
        self.waiting.clear();
        for class in 0..self.rates.len() as u32 {
            self.enter(class, 0);
        }
    }

    fn enter(&mut self, class: u32, number: u64) {
        let rate = self.rates[class as usize];
        let opens = number * self.total / rate;
        let turn = Turn { due: ((number + 1) * self.total).div_ceil(rate), opens, class, number };
        if opens <= self.slot {
            self.open.push(Reverse(turn));
        } else {
            self.waiting.push(Reverse((opens, turn)));
        }
    }

    /// Every class that has turns left in this round has exactly one of them entered, and the turns
    /// taken so far are the slots given away.
    fn check_invariants(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        let turns =
            self.open.iter().map(|turn| turn.0).chain(self.waiting.iter().map(|turn| turn.0.1));
        let mut taken = self.rates.to_vec();
        let mut entered = 0;
        for turn in turns {
            assert!(turn.number < self.rates[turn.class as usize]);
            taken[turn.class as usize] = turn.number;
            entered += 1;
        }
        assert_eq!(taken.iter().sum::<u64>(), self.slot);
        assert!(entered <= self.rates.len());
        assert!(self.slot < self.total);
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulation::Table;
    use super::*;
    use weir_testing::Random;

    fn picks(weights: &[u16], seed: u64, count: usize) -> Vec<usize> {
        let table = Table::new(weights.len());
        let mut balancer = RoundRobin::new(weights, seed);
        (0..count).map(|_| balancer.pick(&table).unwrap()).collect()
    }

    #[test]
    fn order_of_small_pools() {
        let check = |weights: &[u16], seed, expected: &[usize]| {
            assert_eq!(picks(weights, seed, expected.len()), expected, "{weights:?} seed {seed}");
        };
        check(&[7], 0, &[0, 0, 0]);
        check(&[1, 1, 1], 0, &[0, 1, 2, 0, 1, 2]);
        check(&[4, 4, 4], 2, &[2, 0, 1, 2, 0, 1]);
        check(&[3, 1], 0, &[0, 0, 1, 0, 0, 0, 1, 0]);
        check(&[1, 2], 0, &[1, 0, 1, 1, 0, 1]);
        // A heavy member among ten light ones: every other turn, not five in a row.
        check(&[5, 1, 1, 1, 1, 1], 0, &[0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 1]);
        check(&[0, 0], 0, &[0, 1, 0, 1]);
    }

    #[test]
    fn no_members_no_pick() {
        assert_eq!(RoundRobin::new(&[], 5).pick(&Table::new(0)), None);
    }

    /// After every number of picks each member has had its share, give or take two turns, and exactly
    /// its weight after a whole round.
    #[test]
    fn shares_hold_at_every_moment() {
        for seed in 0..256 {
            let mut random = Random::new(seed);
            let members = 1 + random.below(40);
            let weights: Vec<u16> = match seed % 3 {
                0 => vec![1 + random.below(256) as u16; members],
                1 => (0..members).map(|_| 1 + random.below(4) as u16).collect(),
                _ => (0..members).map(|_| 1 + random.below(256) as u16).collect(),
            };
            let total: usize = weights.iter().map(|&weight| usize::from(weight)).sum();
            let mut counts = vec![0usize; members];
            for (number, member) in picks(&weights, seed, 3 * total).into_iter().enumerate() {
                counts[member] += 1;
                let share = (number + 1) as f64 * f64::from(weights[member]) / total as f64;
                let error = (counts[member] as f64 - share).abs();
                // The calendar of a seed begins inside a round: that adds one turn at most.
                assert!(error < 3.0, "seed {seed}: member {member} is off by {error}");
            }
            for (member, &count) in counts.iter().enumerate() {
                assert_eq!(count, 3 * usize::from(weights[member]), "seed {seed}, member {member}");
            }
        }
    }

    /// The same member comes twice in a row no more often than its share forces.
    #[test]
    fn turns_are_interleaved() {
        for seed in 0..256 {
            let mut random = Random::new(seed);
            let weights: Vec<u16> =
                (0..2 + random.below(20)).map(|_| 1 + random.below(32) as u16).collect();
            let total: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
            let sequence = picks(&weights, seed, 2_000);
            for run in sequence.chunk_by(|a, b| a == b) {
                let share = f64::from(weights[run[0]]) / total;
                let bound = 2.0 / (1.0 - share);
                assert!((run.len() as f64) < bound + 1.0, "seed {seed}: {} in a row", run.len());
            }
        }
    }

    #[test]
    fn members_not_admitted_are_passed_over() {
        let mut table = Table::new(4);
        table.refuse(1);
        let mut balancer = RoundRobin::new(&[1; 4], 0);
        let sequence: Vec<_> = (0..6).map(|_| balancer.pick(&table).unwrap()).collect();
        assert_eq!(sequence, [0, 2, 3, 0, 2, 3]);
        for index in 0..4 {
            table.refuse(index);
        }
        assert_eq!(balancer.pick(&table), None);
    }

    /// The share of a full member goes to the others in their proportions, not to its neighbour.
    #[test]
    fn proportions_hold_around_a_full_member() {
        let weights = [4, 4, 8, 2, 2];
        let mut table = Table::new(5);
        table.refuse(2);
        let mut balancer = RoundRobin::new(&weights, 3);
        let mut counts = [0usize; 5];
        for _ in 0..1_200 {
            counts[balancer.pick(&table).unwrap()] += 1;
        }
        for (index, expected) in [400usize, 400, 0, 200, 200].into_iter().enumerate() {
            assert!(counts[index].abs_diff(expected) <= 4, "{counts:?}");
        }
    }

    /// One free member among many is always found, at any index and with any weight.
    #[test]
    fn a_free_member_is_always_found() {
        for seed in 0..64 {
            let mut random = Random::new(seed);
            let weights: Vec<u16> = (0..200).map(|_| 1 + random.below(256) as u16).collect();
            let mut balancer = RoundRobin::new(&weights, seed);
            for _ in 0..50 {
                let mut table = Table::new(weights.len());
                let free = random.below(weights.len());
                (0..weights.len())
                    .filter(|&index| index != free)
                    .for_each(|index| table.refuse(index));
                assert_eq!(balancer.pick(&table), Some(free), "seed {seed}");
            }
        }
    }

    #[test]
    fn seeds_start_elsewhere() {
        let firsts: std::collections::HashSet<_> =
            (0..100).map(|seed| picks(&[1; 100], seed, 1)[0]).collect();
        assert_eq!(firsts.len(), 100);
        let firsts: std::collections::HashSet<_> =
            (0..64).map(|seed| picks(&[3, 2, 1, 9], seed, 1)[0]).collect();
        assert_eq!(firsts.len(), 4);
    }
}
