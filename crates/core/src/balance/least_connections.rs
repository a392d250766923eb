//! Least connections: the member with the fewest occupied connections in proportion to its weight.
//!
//! All workers share the occupancy, and it changes at any time, so no worker can keep members in exact order. Up to
//! [`SCAN_MEMBERS_MAX`] members are all compared on every pick, which is exact at the time of the reads. More members
//! are kept in buckets by the load that this worker saw last: a list of members per load, and a bitmap of the lists
//! that are not empty. A pick takes the first member of the lowest bucket and reads its occupancy again. If it has
//! risen, the member moves to its new bucket, and the next candidate is taken, up to [`VERIFICATIONS_MAX`] times. Then
//! the pick reads [`REFRESHED_PER_PICK`] further members, in rotation.
//!
//! **Error bound.** The load of the picked member is read during the pick. A less loaded member can be missed only
//! - if it is in the same bucket: its load is at most 1/32 less (loads below 32/256 of a connection per weight are
//!   exact);
//! - if requests *of other workers* on it have ended since it was read: at most `n / REFRESHED_PER_PICK` picks of this
//!   worker ago, because this worker's own requests are counted at once; or
//! - if [`VERIFICATIONS_MAX`] candidates in a row had risen: then the least loaded of these is picked.
//!
//! Ties are broken in rotation: within a bucket, the member that came first is picked first, and a member that moves to
//! another bucket goes to its end. So idle members share evenly, whatever their weights.
//!
//! A candidate that the view does not admit is parked outside the buckets, until the refresh or the end of one of this
//! worker's own requests finds that it is admitted again. When no candidate is left, all members are compared, so a
//! pick fails only if no member is admitted.
//!
//! | operation | cost |
//! |---|---|
//! | `new` | O(n) |
//! | `pick`, n <= [`SCAN_MEMBERS_MAX`] | O(n) reads |
//! | `pick`, more | O(1): at most [`VERIFICATIONS_MAX`] + [`REFRESHED_PER_PICK`] reads, plus one read per member parked by it |
//! | `pick`, no candidate in the buckets | O(n) reads |
//! | `started`, `ended` | O(1), no read |
//! | memory | n <= [`SCAN_MEMBERS_MAX`]: 2 bytes per member; else 16 bytes per member and 10 KiB |

use super::{View, WEIGHT_MAX, clamp_weight};

/// Up to this many members are compared on every pick.
pub const SCAN_MEMBERS_MAX: usize = 8;

/// Number of candidates that a pick reads again before it takes the best of them.
pub const VERIFICATIONS_MAX: usize = 4;

/// Number of members that each pick reads besides its candidates.
pub const REFRESHED_PER_PICK: usize = 2;

/// Least connections over a fixed set of members.
#[derive(Debug, Clone)]
pub struct LeastConnections {
    order: Order,
}

/// The storage of the members.
#[derive(Debug, Clone)]
enum Order {
    Few(Scan),
    Many(Box<Buckets>),
}

impl LeastConnections {
    /// Least connections over `weights.len()` members; the seed determines the order of equals.
    pub fn new(weights: &[u16], seed: u64) -> Self {
        let first = seed.checked_rem(weights.len() as u64).unwrap_or(0) as usize;
        let order = if weights.len() <= SCAN_MEMBERS_MAX {
            let weights = weights.iter().map(|&weight| clamp_weight(weight)).collect();
            Order::Few(Scan { weights, first })
        } else {
            Order::Many(Box::new(Buckets::new(weights, first)))
        };
        Self { order }
    }

    /// See [`super::Balancer::pick`]. It is not inlined: its constants would cost other methods too.
    #[inline(never)]
    pub fn pick(&mut self, view: &impl View) -> Option<usize> {
        match &mut self.order {
            Order::Few(scan) => scan.pick(view),
            Order::Many(buckets) => buckets.pick(view),
        }
    }

    /// See [`super::Balancer::started`].
    pub fn started(&mut self, index: usize) {
        if let Order::Many(buckets) = &mut self.order {
            let occupancy = buckets.members[index].occupancy.saturating_add(1);
            buckets.observe(index, occupancy);
        }
    }

    /// See [`super::Balancer::ended`].
    pub fn ended(&mut self, index: usize) {
        if let Order::Many(buckets) = &mut self.order {
            let occupancy = buckets.members[index].occupancy.saturating_sub(1);
            buckets.observe(index, occupancy);
        }
    }
}

/// Few members: all are compared.
#[derive(Debug, Clone)]
struct Scan {
    weights: Box<[u16]>,
    /// The member that wins ties.
    first: usize,
}

impl Scan {
    /// The least loaded member that is admitted; among equals the first from `self.first` on.
    fn pick(&mut self, view: &impl View) -> Option<usize> {
        let mut picked = None;
        // More than any load: occupancy is compared in proportion to weight, by cross-multiplication.
        let (mut least, mut least_weight) = (u64::from(u32::MAX) + 1, 1);
        let mut index = self.first;
        for _ in 0..self.weights.len() {
            let (occupancy, weight) =
                (u64::from(view.occupancy(index)), u64::from(self.weights[index]));
            let next = if index + 1 == self.weights.len() { 0 } else { index + 1 };
            if occupancy * least_weight < least * weight && view.admits(index) {
                picked = Some(index);
                self.first = next;
                if occupancy == 0 {
                    break;
                }
                (least, least_weight) = (occupancy, weight);
            }
            index = next;
        }
        picked
    }
}

/// Number of bits after the leading one that determine a load's bucket: buckets are at most 1/32 wide.
const PRECISION_BITS: u32 = 5;

/// Each load below this has its own bucket.
const EXACT_LOADS: u64 = 1 << PRECISION_BITS;

/// Bits of the largest load: `u32::MAX * WEIGHT_MAX`.
const LOAD_BITS: u32 = u32::BITS + WEIGHT_MAX.ilog2();

/// One bucket for each load below [`EXACT_LOADS`], then `EXACT_LOADS` for each power of two.
const BUCKETS: usize = ((LOAD_BITS - PRECISION_BITS + 1) as usize) << PRECISION_BITS;

/// Words of the bitmap of buckets that are not empty.
const BITMAP_WORDS: usize = BUCKETS / 64;

const _: () = assert!(BUCKETS.is_multiple_of(64) && BITMAP_WORDS <= 64);
const _: () = assert!(bucket_of(u32::MAX, 1) < BUCKETS);

/// The bucket of a load: in order of `occupancy / weight`, at most 1/32 wide.
const fn bucket_of(occupancy: u32, weight: u16) -> usize {
    let load = occupancy as u64 * WEIGHT_MAX as u64 / weight as u64;
    if load < EXACT_LOADS {
        return load as usize;
    }
    let shift = load.ilog2() - PRECISION_BITS;
    ((shift as usize) << PRECISION_BITS) + (load >> shift) as usize
}

/// Many members: kept in buckets by the load that was seen last.
#[derive(Debug, Clone)]
struct Buckets {
    members: Box<[MemberSnapshot]>,
    /// The circular lists of the buckets: one link per member, then one link per bucket, at which its list begins and
    /// ends.
    links: Box<[Link]>,
    /// Bit `b % 64` of word `b / 64`: bucket `b` is not empty.
    bitmap: [u64; BITMAP_WORDS],
    /// Bit `w`: word `w` of the bitmap is not 0.
    summary: u64,
    /// The next member to read, in rotation.
    refresh: usize,
}

/// A member as this worker saw it last.
#[derive(Debug, Clone)]
struct MemberSnapshot {
    occupancy: u32,
    weight: u16,
    /// The bucket that holds it, or [`PARKED`].
    bucket: u16,
}

/// Neighbours in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Link {
    previous: u32,
    next: u32,
}

/// The bucket of members that were not admitted when they were candidates.
const PARKED: u16 = u16::MAX;

const _: () = assert!(BUCKETS < PARKED as usize);

impl Buckets {
    fn new(weights: &[u16], first: usize) -> Self {
        let seen = |&weight: &u16| MemberSnapshot {
            occupancy: 0,
            weight: clamp_weight(weight),
            bucket: PARKED,
        };
        let alone = |node: u32| Link { previous: node, next: node };
        let mut buckets = Self {
            members: weights.iter().map(seen).collect(),
            links: (0..(weights.len() + BUCKETS) as u32).map(alone).collect(),
            bitmap: [0; BITMAP_WORDS],
            summary: 0,
            refresh: first,
        };
        for index in (first..weights.len()).chain(0..first) {
            buckets.link(index, 0);
        }
        buckets
    }

    fn pick(&mut self, view: &impl View) -> Option<usize> {
        let picked = self.candidate(view).or_else(|| self.scan(view));
        for _ in 0..REFRESHED_PER_PICK {
            let index = self.refresh;
            self.refresh = if index + 1 == self.members.len() { 0 } else { index + 1 };
            // A parked member returns only here and in `ended`.
            if self.members[index].bucket != PARKED || view.admits(index) {
                self.observe(index, view.occupancy(index));
            }
        }
        self.check_invariants();
        picked
    }

    /// The first admitted member of the lowest bucket whose load has not risen since it was seen.
    fn candidate(&mut self, view: &impl View) -> Option<usize> {
        let mut best: Option<usize> = None;
        let mut verified = 0;
        while let Some(index) = self.lowest() {
            if !view.admits(index) {
                self.unlink(index);
                continue;
            }
            let before = self.members[index].bucket;
            self.observe(index, view.occupancy(index));
            let now = self.members[index].bucket;
            if now <= before {
                return Some(index);
            }
            if best.is_none_or(|other| now < self.members[other].bucket) {
                best = Some(index);
            }
            verified += 1;
            if verified == VERIFICATIONS_MAX {
                return best;
            }
        }
        best
    }

    /// The least loaded of all members, if no member in the buckets is admitted.
    #[cold]
    fn scan(&mut self, view: &impl View) -> Option<usize> {
        let members = &self.members;
        let load = |index: usize| bucket_of(view.occupancy(index), members[index].weight);
        let index = (0..members.len())
            .filter(|&index| view.admits(index))
            .min_by_key(|&index| load(index))?;
        self.observe(index, view.occupancy(index));
        Some(index)
    }

    /// Records a member's occupancy, and moves it to the bucket of that load.
    fn observe(&mut self, index: usize, occupancy: u32) {
        let member = &mut self.members[index];
        if member.occupancy == occupancy && member.bucket != PARKED {
            return;
        }
        member.occupancy = occupancy;
        let bucket = bucket_of(occupancy, member.weight);
        if usize::from(member.bucket) != bucket {
            self.unlink(index);
            self.link(index, bucket);
        }
    }

    /// The first member of the lowest bucket.
    fn lowest(&self) -> Option<usize> {
        let word = self.summary.trailing_zeros() as usize;
        let bits = *self.bitmap.get(word)?;
        let bucket = word * 64 + bits.trailing_zeros() as usize;
        Some(self.links[self.members.len() + bucket].next as usize)
    }

    /// Removes a member from its list; it is parked then.
    fn unlink(&mut self, index: usize) {
        let bucket = usize::from(std::mem::replace(&mut self.members[index].bucket, PARKED));
        if bucket == usize::from(PARKED) {
            return;
        }
        let Link { previous, next } = self.links[index];
        self.links[previous as usize].next = next;
        self.links[next as usize].previous = previous;
        if previous == next {
            // Both neighbours are the link of the list itself, so the list is now empty.
            self.bitmap[bucket / 64] &= !(1 << (bucket % 64));
            if self.bitmap[bucket / 64] == 0 {
                self.summary &= !(1 << (bucket / 64));
            }
        }
    }

    /// Appends a member that is in no list to the list of a bucket.
    fn link(&mut self, index: usize, bucket: usize) {
        let list = self.members.len() + bucket;
        let last = std::mem::replace(&mut self.links[list].previous, index as u32);
        self.links[last as usize].next = index as u32;
        self.links[index] = Link { previous: last, next: list as u32 };
        self.members[index].bucket = bucket as u16;
        self.bitmap[bucket / 64] |= 1 << (bucket % 64);
        self.summary |= 1 << (bucket / 64);
    }

    /// Each member is parked or in exactly the list of its load; lists are linked both ways; the
    /// bitmaps mark the lists that are not empty.
    fn check_invariants(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        let mut listed = 0;
        let marked = |bucket: &usize| self.bitmap[bucket / 64] >> (bucket % 64) & 1 == 1;
        let words = (0..BITMAP_WORDS).filter(|&word| self.bitmap[word] != 0);
        for bucket in words.flat_map(|word| word * 64..(word + 1) * 64).filter(marked) {
            let list = self.members.len() + bucket;
            let (mut previous, mut node) = (list, self.links[list].next as usize);
            assert_ne!(node, list, "bucket {bucket} is marked and empty");
            while node != list {
                let member = &self.members[node];
                assert_eq!(usize::from(member.bucket), bucket);
                assert_eq!(bucket_of(member.occupancy, member.weight), bucket);
                assert_eq!(self.links[node].previous as usize, previous);
                (previous, node) = (node, self.links[node].next as usize);
                listed += 1;
            }
            assert_eq!(self.links[list].previous as usize, previous);
        }
        for (word, bits) in self.bitmap.iter().enumerate() {
            assert_eq!(self.summary >> word & 1 == 1, *bits != 0, "summary of word {word}");
        }
        let parked = self.members.iter().filter(|member| member.bucket == PARKED).count();
        assert_eq!(listed + parked, self.members.len());
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulation::Table;
    use super::*;
    use weir_testing::Random;

    #[test]
    fn buckets_follow_the_load() {
        assert_eq!(bucket_of(0, 7), 0);
        assert_eq!(bucket_of(1, 256), 1);
        assert_eq!(bucket_of(31, 256), 31);
        assert_eq!(bucket_of(32, 256), 32);
        assert_eq!(bucket_of(3, 3), bucket_of(1, 1));
        let mut random = Random::new(1);
        for _ in 0..100_000 {
            let mut load =
                || (random.next() as u32 >> random.below(32), 1 + random.below(256) as u16);
            let ((a, a_weight), (b, b_weight)) = (load(), load());
            let (a_bucket, b_bucket) = (bucket_of(a, a_weight), bucket_of(b, b_weight));
            let less = u64::from(a) * u64::from(b_weight) <= u64::from(b) * u64::from(a_weight);
            if less {
                assert!(a_bucket <= b_bucket, "{a}/{a_weight} {b}/{b_weight}");
            }
            if a_bucket == b_bucket {
                let (a, b) =
                    (f64::from(a) / f64::from(a_weight), f64::from(b) / f64::from(b_weight));
                assert!((a - b).abs() <= a.max(b) / 32.0 + 1.0 / 256.0, "{a} {b}");
            }
        }
    }

    /// Idle members take turns, whatever their number and weights.
    #[test]
    fn idle_members_share_evenly() {
        for members in [1, 2, 3, 8, 9, 17, 100] {
            let weights: Vec<u16> = (0..members).map(|index| 1 + index as u16 % 3).collect();
            let mut table = Table::new(members);
            let mut balancer = LeastConnections::new(&weights, 5);
            let mut counts = vec![0; members];
            for _ in 0..10 * members {
                let index = balancer.pick(&table).unwrap();
                counts[index] += 1;
                table.start(index);
                balancer.started(index);
                table.end(index);
                balancer.ended(index);
            }
            assert_eq!(counts, vec![10; members]);
        }
    }

    /// Requests that do not end are spread in proportion to weight.
    #[test]
    fn occupancy_follows_weight() {
        for seed in 0..64 {
            let mut random = Random::new(seed);
            let members = 2 + random.below(60);
            let weights: Vec<u16> = (0..members).map(|_| 1 + random.below(10) as u16).collect();
            let total: u32 = weights.iter().map(|&weight| u32::from(weight)).sum();
            let mut table = Table::new(members);
            let mut balancer = LeastConnections::new(&weights, seed);
            for _ in 0..20 * total {
                let index = balancer.pick(&table).unwrap();
                table.start(index);
                balancer.started(index);
            }
            for (index, &weight) in weights.iter().enumerate() {
                let (occupancy, share) = (table.occupancy(index), 20 * u32::from(weight));
                // One bucket is 1/32 of a load of 20 wide, and a request cannot be split.
                let bound = u32::from(weight) + 1;
                assert!(occupancy.abs_diff(share) <= bound, "seed {seed}: {occupancy} of {share}");
            }
        }
    }

    #[test]
    fn members_not_admitted_are_passed_over_and_come_back() {
        for members in [3, 8, 9, 40] {
            let mut table = Table::new(members);
            (1..members).for_each(|index| table.refuse(index));
            let mut balancer = LeastConnections::new(&vec![1; members], 0);
            for _ in 0..5 {
                assert_eq!(balancer.pick(&table), Some(0));
                table.start(0);
                balancer.started(0);
            }
            table.refuse(0);
            assert_eq!(balancer.pick(&table), None);
            table.admit(2);
            assert_eq!(balancer.pick(&table), Some(2));
            (0..members).for_each(|index| table.admit(index));
            let mut seen = vec![false; members];
            for _ in 0..2 * members {
                let index = balancer.pick(&table).unwrap();
                table.start(index);
                balancer.started(index);
                seen[index] = true;
            }
            assert_eq!(seen.iter().filter(|&&seen| !seen).count(), usize::from(!seen[0]));
        }
    }

    #[test]
    fn no_members_no_pick() {
        assert_eq!(LeastConnections::new(&[], 9).pick(&Table::new(0)), None);
    }
}
