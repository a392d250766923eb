//! By key: the request's key selects the member, as long as the member takes requests.
//!
//! The [`MaglevTable`] of a pool contains all of its members, not only eligible ones, so a member that goes down moves
//! only its own keys, and gets them back when it returns. If a member does not take a request (it is not eligible, is
//! full, or was tried already), the key is hashed again, for up to [`CANDIDATES_MAX`] candidates; then all members are
//! checked in order, beginning at one that the key determines. The result depends only on the key, the table and the
//! admitted members, so it is the same on every core and on every weir with the same configuration.
//!
//! Weights count as configured: a slow start would move keys, so it has no effect.
//!
//! | operation | cost, n members in the table |
//! |---|---|
//! | `new` | O(n) |
//! | `pick` | O(1): n/e candidates on average when e are admitted, at most [`CANDIDATES_MAX`] |
//! | `pick`, no candidate admitted | O(n) more; with half of the members down, 1 pick in 65,536 |
//! | `started`, `ended` | none |
//! | memory | 4 bytes per member; the table is shared |

use std::sync::Arc;

use super::{MaglevTable, View};

/// Number of members selected by hashes before all members are checked in order.
pub const CANDIDATES_MAX: u32 = 16;

/// Marks a member that is not eligible.
const NOWHERE: u32 = u32::MAX;

/// Picks by key over a fixed set of eligible members.
#[derive(Debug, Clone)]
pub struct ByKey {
    table: Arc<MaglevTable>,
    /// For each member of the table its index among the eligible, or [`NOWHERE`].
    indexes: Box<[u32]>,
}

impl ByKey {
    /// See [`super::Balancer::by_key`].
    ///
    /// # Panics
    /// If an eligible place is not below the number of members of the table.
    pub fn new(table: Arc<MaglevTable>, eligible: &[u32]) -> Self {
        let mut indexes = vec![NOWHERE; table.members()].into_boxed_slice();
        for (index, &member) in (0..).zip(eligible) {
            indexes[member as usize] = index;
        }
        Self { table, indexes }
    }

    /// See [`super::Balancer::pick`]. It is not inlined: its constants would cost other methods too.
    #[inline(never)]
    pub fn pick(&self, view: &impl View, key: u64) -> Option<usize> {
        let admitted = |member: usize| {
            let index = self.indexes[member];
            (index != NOWHERE && view.admits(index as usize)).then_some(index as usize)
        };
        (0..CANDIDATES_MAX)
            .map_while(|attempt| self.table.member(key, attempt))
            .find_map(|member| admitted(member as usize))
            .or_else(|| {
                let first = self.table.member(key, CANDIDATES_MAX)? as usize;
                (first..self.indexes.len()).chain(0..first).find_map(admitted)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::super::NamedMember;
    use super::super::simulation::Table;
    use super::*;
    use weir_testing::Random;

    fn table(members: usize) -> Arc<MaglevTable> {
        let names: Vec<String> = (0..members).map(|member| format!("10.0.0.{member}:80")).collect();
        let named: Vec<NamedMember> =
            names.iter().map(|name| NamedMember { name, weight: 1 }).collect();
        Arc::new(MaglevTable::new(&named))
    }

    fn everyone(members: usize) -> Vec<u32> {
        (0..members as u32).collect()
    }

    #[test]
    fn no_members_no_pick() {
        assert_eq!(ByKey::new(table(0), &[]).pick(&Table::new(0), 5), None);
        assert_eq!(ByKey::new(table(3), &[]).pick(&Table::new(0), 5), None);
    }

    #[test]
    fn a_free_member_is_always_found() {
        let mut view = Table::new(300);
        let balancer = ByKey::new(table(300), &everyone(300));
        (0..300).for_each(|index| view.refuse(index));
        assert_eq!(balancer.pick(&view, 1), None);
        for free in 0..300 {
            view.admit(free);
            assert_eq!(balancer.pick(&view, free as u64 * 77), Some(free));
            view.refuse(free);
        }
    }

    /// When members go down and return, the same index among the eligible members names the same member.
    #[test]
    fn only_the_keys_of_a_member_that_is_down_move_and_they_return() {
        for seed in 0..16 {
            let mut random = Random::new(seed);
            let members = 2 + random.below(30);
            let table = table(members);
            let view = Table::new(members);
            let all = everyone(members);
            let owners = |eligible: &[u32]| -> Vec<u32> {
                let balancer = ByKey::new(Arc::clone(&table), eligible);
                (0..2_000).map(|key| eligible[balancer.pick(&view, key).unwrap()]).collect()
            };
            let before = owners(&all);
            let mut eligible = all.clone();
            let mut current = before.clone();
            for _ in 0..members - 1 {
                let gone = eligible.remove(random.below(eligible.len()));
                let after = owners(&eligible);
                for (was, is) in current.iter().zip(&after) {
                    assert!(was == is || *was == gone, "seed {seed}: {was} -> {is}, {gone} gone");
                }
                current = after;
            }
            assert_eq!(owners(&all), before, "seed {seed}");
        }
    }

    /// The keys of a member that is down are distributed over all others.
    #[test]
    fn the_keys_of_a_member_that_is_down_spread() {
        let members = 10;
        let balancer = ByKey::new(table(members), &everyone(members));
        let mut view = Table::new(members);
        let keys: Vec<u64> =
            (0..50_000).filter(|&key| balancer.pick(&view, key) == Some(4)).collect();
        view.refuse(4);
        let mut counts = [0usize; 10];
        keys.iter().for_each(|&key| counts[balancer.pick(&view, key).unwrap()] += 1);
        let mean = keys.len() / 9;
        for (member, &count) in counts.iter().enumerate().filter(|&(member, _)| member != 4) {
            assert!(count.abs_diff(mean) < mean / 4, "{member}: {count} of {mean}");
        }
    }
}
