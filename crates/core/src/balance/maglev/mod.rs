//! A consistent hash table over the members of a pool.
//!
//! Maglev hashing (Eisenbud et al.: "Maglev: a fast and reliable software network load balancer", NSDI 2016, section
//! 3.4): a table with a prime number of slots, each owned by a member. Each member has its own permutation of all
//! slots, which its name determines. The members take turns; each takes the next free slot of its permutation, until no
//! slot is free. The hash of a key selects a slot. When a member is added or removed, the permutations of the others
//! stay the same, so most slots keep their owner.
//!
//! Differences from the paper: the number of slots of a member is computed first, in proportion to its weight by
//! largest remainders, and it takes them evenly over the rounds; so shares are exact to one slot. Turns are in the
//! order of the names' hashes, so the order in the configuration does not matter. And a key can be hashed again if the
//! first member does not take the request.
//!
//! The table depends only on names and weights: every weir with the same pool has the same table. It is built once per
//! configuration, for all members in any state of health, and shared by all workers; its users check health (see
//! [`super::ByKey`]).
//!
//! **Sizes.** At least [`SLOTS_PER_MEMBER`] slots per member, so that the share of a member is at most 2% off: 65,537
//! up to 1,310 members (262 KB), 524,309 up to 10,486 (2.1 MB), 4,194,319 beyond (16.8 MB). There are only three sizes
//! because nearly all keys move when a pool grows from one size to the next. A member with a share below one slot,
//! because of its weight, may have no slot.
//!
//! **Disruption**, measured (the test `disruption_and_spread` prints it): the keys that move from one remaining member
//! to another when one of n members of equal weight leaves or joins, in addition to the 1/n that must move; and the
//! slots of a member.
//!
//! | n | one leaves | one joins | 1/n | slots each |
//! |---|---|---|---|---|
//! | 3 | 0.01% | 0.07% | 33% | 21,845 or 21,846 |
//! | 10 | 0.24% | 0.19% | 10% | 6,553 or 6,554 |
//! | 100 | 0.57% | 0.58% | 1% | 655 or 656 |
//! | 1,000 | 0.62% | 0.62% | 0.1% | 65 or 66 |
//! | 10,000 | 0.11% | 0.11% | 0.01% | 52 or 53 |
//!
//! **Time** (`cargo bench -p weir-core`, on a core of an AMD EPYC that also had other work): 2 ms to build for 1,000
//! members, 45 ms for 10,000; 13 ns and 28 ns for a pick.
//!
//! | operation | cost, n members, m slots |
//! |---|---|
//! | `new` | O(m log m) |
//! | `member` | O(1): one read |
//! | `slots` | O(1) |
//! | memory | 4 bytes per slot |

use super::clamp_weight;
use super::mix::mix;
use crate::keyed_hash::KeyedHash;

/// Numbers of slots: primes, the first above a power of two.
const SLOTS: [u32; 3] = [SLOTS_MIN, 524_309, 4_194_319];

/// Number of slots of the smallest table.
pub const SLOTS_MIN: u32 = 65_537;

/// Minimum number of slots per member; a pool gets the smallest table that has it.
pub const SLOTS_PER_MEMBER: u64 = 50;

/// Seeds of the two hashes of a name that determine its permutation. They are public: only the mapping from keys to
/// slots is secret, not the owners of slots.
const NAME_KEYS: [u128; 2] = [1, 2];

/// The difference between the words that are mixed for the attempts of one key: 2^64 divided by the golden ratio.
const ATTEMPT_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A member of the table.
#[derive(Debug, Clone, Copy)]
pub struct NamedMember<'a> {
    /// The stable name of a member, the same after reloads and on other weirs: its address as text.
    pub name: &'a str,
    /// The weight.
    pub weight: u16,
}

/// The mapping from keys to members.
#[derive(Debug, Clone)]
pub struct MaglevTable {
    /// For each slot, the index of its owner among the members that the table was built for.
    slots: Box<[u32]>,
    members: usize,
}

impl MaglevTable {
    /// The table of a pool with these members, healthy or not.
    pub fn new(members: &[NamedMember<'_>]) -> Self {
        let slots = if members.is_empty() {
            Box::default()
        } else {
            fill(members, slots_for(members.len()))
        };
        Self { slots, members: members.len() }
    }

    /// The member for an attempt of a key: its index among the table's members. The first attempt is 0. `None` if and
    /// only if there are no members.
    #[inline]
    pub fn member(&self, key: u64, attempt: u32) -> Option<u32> {
        let hash = mix(key.wrapping_add(u64::from(attempt).wrapping_mul(ATTEMPT_STEP)));
        let slot = (u128::from(hash) * self.slots.len() as u128) >> 64;
        self.slots.get(slot as usize).copied()
    }

    /// A table of the smallest size, [`SLOTS_MIN`] slots, for any number of members: for users that need tables of one
    /// size. With more members, shares are less exact.
    pub fn smallest(members: &[NamedMember<'_>]) -> Self {
        let slots = if members.is_empty() { Box::default() } else { fill(members, SLOTS_MIN) };
        Self { slots, members: members.len() }
    }

    /// For each slot, the index of its owner among the members that the table was built for. Empty without members.
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// The number of members that the table was built for.
    pub fn members(&self) -> usize {
        self.members
    }
}

/// The position of a member in its permutation of the slots.
struct Walk {
    member: u32,
    /// The next slot of the permutation.
    position: u32,
    /// The distance between two slots of the permutation; coprime to the number of slots, so it reaches all of them.
    skip: u32,
    /// The number of slots that the member gets in total.
    quota: u32,
    /// The number of slots that the member is due, in units of 1 / the number of rounds.
    owed: u32,
}

fn fill(members: &[NamedMember<'_>], size: u32) -> Box<[u32]> {
    let mut walks = walks(members, size);
    set_quotas(&mut walks, members, size);
    // One slot per round for a member of mean weight.
    let rounds = (size / members.len() as u32).max(1);
    let mut slots = vec![0; size as usize].into_boxed_slice();
    // Separate from the slots, so that it fits in the cache.
    let mut taken = vec![0u64; size.div_ceil(64) as usize];
    for _ in 0..rounds {
        for walk in &mut walks {
            walk.owed += walk.quota;
            while walk.owed >= rounds {
                walk.owed -= rounds;
                slots[walk.take(&mut taken, size)] = walk.member;
            }
        }
    }
    slots
}

fn slots_for(members: usize) -> u32 {
    let wanted = members as u64 * SLOTS_PER_MEMBER;
    let largest = SLOTS[SLOTS.len() - 1];
    SLOTS.into_iter().find(|&slots| u64::from(slots) >= wanted).unwrap_or(largest)
}

/// The members' permutations, in the order of their turns.
fn walks(members: &[NamedMember<'_>], size: u32) -> Vec<Walk> {
    let hashes = NAME_KEYS.map(|key| KeyedHash::new(key.to_le_bytes()));
    let mut order: Vec<([u64; 2], &str, u32)> = (0..)
        .zip(members)
        .map(|(member, named)| {
            let hash = |hash: KeyedHash| hash.bytes(named.name.as_bytes());
            (hashes.map(hash), named.name, member)
        })
        .collect();
    order.sort_unstable();
    let walk = |([first, second], _, member): ([u64; 2], &str, u32)| Walk {
        member,
        position: (first % u64::from(size)) as u32,
        skip: 1 + (second % u64::from(size - 1)) as u32,
        quota: 0,
        owed: 0,
    };
    order.into_iter().map(walk).collect()
}

/// Divides the slots in proportion to weight: each member gets the integer part of its share; the members with the
/// largest fractions get one more, until all slots are assigned.
fn set_quotas(walks: &mut [Walk], members: &[NamedMember<'_>], size: u32) {
    let weight = |walk: &Walk| u64::from(clamp_weight(members[walk.member as usize].weight));
    let total: u64 = walks.iter().map(weight).sum();
    let due = |walk: &Walk| weight(walk) * u64::from(size);
    let mut left = size;
    for walk in walks.iter_mut() {
        walk.quota = (due(walk) / total) as u32;
        left -= walk.quota;
    }
    let mut by_fraction: Vec<usize> = (0..walks.len()).collect();
    by_fraction.sort_by_key(|&turn| std::cmp::Reverse(due(&walks[turn]) % total));
    for &turn in by_fraction.iter().take(left as usize) {
        walks[turn].quota += 1;
    }
}

impl Walk {
    /// Takes the next free slot. There must be one.
    fn take(&mut self, taken: &mut [u64], size: u32) -> usize {
        loop {
            let slot = self.position as usize;
            self.position += self.skip;
            if self.position >= size {
                self.position -= size;
            }
            let (word, bit) = (slot / 64, 1 << (slot % 64));
            if taken[word] & bit == 0 {
                taken[word] |= bit;
                return slot;
            }
        }
    }
}

#[cfg(test)]
mod tests;
