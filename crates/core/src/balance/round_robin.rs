//! Round robin: members take turns, interleaved by weight.
//!
//! Members of the same weight form a class; a cursor selects the next of them. Between classes, time is divided into
//! slots, one per pick. A class with `m` members of weight `w` owns the fraction `m*w/T` of the slots; `T` is the sum
//! of all weights. The owner of each slot follows the windows of proportionate fairness (Baruah, Cohen, Plaxton,
//! Varvel: "Proportionate progress", 1996): turn k of a class with rate `r` is permitted from slot `floor(k*T/r)` on
//! and is due by slot `ceil((k+1)*T/r)`; each slot goes to the permitted turn that is due first. So after any number of
//! picks, each class is less than one turn away from its exact share, and each member less than two. After `T` picks,
//! every member has had exactly its weight, and the calendar starts again, so no number grows without bound.
//!
//! A member that the view does not admit loses its turn; the proportions of the others do not change. After
//! [`TURNS_LOST_MAX`] lost turns, a pick checks the members one by one.
//!
//! | operation | cost |
//! |---|---|
//! | `new` | O(n + c log c) |
//! | `pick`, all weights equal | O(1) |
//! | `pick`, c different weights | O(log c), c <= 256 |
//! | `pick`, f of n members not admitted | the above times n/(n-f), at most [`TURNS_LOST_MAX`] times, then O(n) |
//! | `started`, `ended` | none |

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{View, WEIGHT_MAX, clamp_weight};

/// Maximum number of lost turns per pick, before the pick checks the members one by one.
pub const TURNS_LOST_MAX: usize = 8;

/// Maximum number of turns by which the seed moves the start of the calendar of classes.
const SEED_TURNS_MAX: u64 = 64;

/// The state of round robin.
#[derive(Debug, Clone)]
pub struct RoundRobin {
    /// Member indexes, grouped by weight.
    members: Box<[u32]>,
    classes: Box<[Class]>,
    calendar: Calendar,
    /// The position in `members` at which the next check of all members begins.
    walk: usize,
}

/// Members of one weight.
#[derive(Debug, Clone)]
struct Class {
    /// Positions in [`RoundRobin::members`].
    first: u32,
    end: u32,
    /// The position of the member whose turn is next.
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
        let members = by_weight(weights);
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

/// The indexes of members by weight, the heaviest first, and those of one weight in their order.
fn by_weight(weights: &[u16]) -> Vec<u32> {
    // There are few weights, so counting is faster than sorting.
    let class = |weight: &u16| usize::from(WEIGHT_MAX - clamp_weight(*weight));
    let mut next = [0_u32; WEIGHT_MAX as usize + 1];
    weights.iter().for_each(|weight| next[class(weight) + 1] += 1);
    for class in 1..next.len() {
        next[class] += next[class - 1];
    }
    let mut members = vec![0; weights.len()];
    for (index, weight) in (0..).zip(weights) {
        let place = &mut next[class(weight)];
        members[*place as usize] = index;
        *place += 1;
    }
    members
}

/// Assigns slots to classes.
#[derive(Debug, Clone)]
struct Calendar {
    /// Slots per round that each class owns.
    rates: Box<[u64]>,
    /// Slots per round: the sum of the rates.
    total: u64,
    /// The next slot to assign; below `total`.
    slot: u64,
    /// Turns that are permitted now; the one with the earliest deadline on top.
    open: BinaryHeap<Reverse<Turn>>,
    /// Turns that are not permitted yet; the one that is permitted first on top.
    waiting: BinaryHeap<Reverse<(u64, Turn)>>,
}

/// Turn `number` of a class in this round. Ordered by deadline, then by the time since it was permitted, which
/// interleaves better than any order of the classes.
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
        // The rates add up to the number of slots, so each slot has a permitted turn; otherwise, class 0 serves as well
        // as any.
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

    /// Every class with turns left in this round has exactly one turn in the heaps, and the number of turns taken
    /// equals the number of assigned slots.
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
        // A heavy member among light ones: its turns alternate with theirs, instead of five in a row.
        check(&[5, 1, 1, 1, 1, 1], 0, &[0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 1]);
        check(&[0, 0], 0, &[0, 1, 0, 1]);
    }

    #[test]
    fn no_members_no_pick() {
        assert_eq!(RoundRobin::new(&[], 5).pick(&Table::new(0)), None);
    }

    /// After any number of picks, each member is at most two turns away from its share, and has exactly its weight
    /// after a whole round.
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
                // The calendar of a seed begins within a round, which adds at most one turn.
                assert!(error < 3.0, "seed {seed}: member {member} is off by {error}");
            }
            for (member, &count) in counts.iter().enumerate() {
                assert_eq!(count, 3 * usize::from(weights[member]), "seed {seed}, member {member}");
            }
        }
    }

    /// A member is picked twice in a row no more often than its share requires.
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

    /// The share of a full member goes to the others in proportion, not to its neighbour.
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

    /// A free member among many is always found, at any index and with any weight.
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
