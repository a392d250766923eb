//! Where the members of a pool differ from those that it had before.

use std::ops::Range;

use super::Pool;

/// The differences between two lists of members, so that who takes the later list looks at these alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberChanges {
    /// The index of the pool.
    pub pool: usize,
    /// The differences, in order. Between two of them, and before the first and behind the last one, the lists are the same.
    differences: Vec<Difference>,
}

/// Members that are exchanged for others.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Difference {
    before: Range<usize>,
    after: Range<usize>,
}

/// A part of the later list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// These members of the former list.
    Same(Range<usize>),
    /// The members at `after` in place of those at `before`.
    Other {
        /// Places in the former list.
        before: Range<usize>,
        /// Places in the later list.
        after: Range<usize>,
    },
}

impl MemberChanges {
    /// The differences between two forms of a pool; `None`: their members are the same.
    pub fn between(pool: usize, before: &Pool, after: &Pool) -> Option<Self> {
        let (before, after) = (&before.members, &after.members);
        Self::of(pool, (before.len(), after.len()), |one, other| before[one] == after[other])
    }

    /// The differences between two lists of these lengths. `is_same` compares their items, by their places.
    pub(crate) fn of(
        pool: usize,
        (before, after): (usize, usize),
        is_same: impl Fn(usize, usize) -> bool,
    ) -> Option<Self> {
        let left =
            |one: usize, other: usize| before.saturating_sub(one).min(after.saturating_sub(other));
        let mut differences = Vec::new();
        let (mut one, mut other) = (0, 0);
        loop {
            while left(one, other) > 0 && is_same(one, other) {
                (one, other) = (one + 1, other + 1);
            }
            if left(one, other) == 0 && before - one == after - other {
                break;
            }
            // Mostly one member is changed, added or removed, and the lists go on as before.
            let is_same_at = |one: usize, other: usize| left(one, other) > 0 && is_same(one, other);
            let step = [(1, 1), (1, 0), (0, 1)]
                .into_iter()
                .find(|step| is_same_at(one + step.0, other + step.1));
            let (gone, new) = step.unwrap_or_else(|| {
                let most = left(one, other);
                let from_end = |it: &usize| is_same(before - 1 - it, after - 1 - it);
                let last = (0..most).take_while(from_end).count();
                (before - last - one, after - last - other)
            });
            differences.push(Difference { before: one..one + gone, after: other..other + new });
            (one, other) = (one + gone, other + new);
        }
        (!differences.is_empty()).then_some(Self { pool, differences })
    }

    /// The items of a former list that are not in the later one, or are others there.
    pub fn former<'l, T>(&'l self, before: &'l [T]) -> impl Iterator<Item = &'l T> + Clone {
        self.differences.iter().flat_map(|it| &before[it.before.clone()])
    }

    /// The items of a later list that are not in the former one, or were others there.
    pub fn new_ones<'l, T>(&'l self, after: &'l [T]) -> impl Iterator<Item = &'l T> + Clone {
        self.differences.iter().flat_map(|it| &after[it.after.clone()])
    }

    /// The places of [`Self::new_ones`].
    pub fn new_places(&self) -> Vec<Range<usize>> {
        self.differences.iter().map(|it| it.after.clone()).collect()
    }

    /// Whether each member has its place, and none is new: these changes are of settings alone.
    pub fn keep_places(&self, before: &Pool, after: &Pool) -> bool {
        self.are_alike(&before.members, &after.members, |one, other| one.address == other.address)
    }

    /// Whether no member has another place, and this holds for each former member and the one in its place.
    pub fn are_alike<T>(
        &self,
        before: &[T],
        after: &[T],
        is_alike: impl Fn(&T, &T) -> bool,
    ) -> bool {
        self.differences.iter().all(|it| {
            let mut both = before[it.before.clone()].iter().zip(&after[it.after.clone()]);
            it.before.len() == it.after.len() && both.all(|(one, other)| is_alike(one, other))
        })
    }

    /// The parts of the later list, in order. `before`: the length of the former one.
    pub(crate) fn parts(&self, before: usize) -> impl Iterator<Item = Part> {
        let ends = self.differences.iter().map(|it| it.before.end);
        let begins = self.differences.iter().map(|it| it.before.start);
        let same = std::iter::once(0).chain(ends).zip(begins.chain([before]));
        let same = same.map(|(from, to)| Part::Same(from..to));
        let mut other = self
            .differences
            .iter()
            .map(|it| Part::Other { before: it.before.clone(), after: it.after.clone() });
        same.flat_map(move |same| [Some(same), other.next()]).flatten()
    }

    /// A later list, of what is the same in the former one, and of what `new` makes: for each difference, the former items in
    /// its place, and the places of the later ones.
    pub fn applied<T: Clone>(
        &self,
        before: &[T],
        mut new: impl FnMut(&[T], Range<usize>, &mut Vec<T>),
    ) -> Vec<T> {
        let mut list = Vec::with_capacity(before.len() + self.differences.len());
        for part in self.parts(before.len()) {
            match part {
                Part::Same(places) => list.extend_from_slice(&before[places]),
                Part::Other { before: gone, after } => new(&before[gone], after, &mut list),
            }
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use weir_testing::Random;

    use super::*;

    fn changes(before: &[u8], after: &[u8]) -> Option<MemberChanges> {
        let is_same = |one: usize, other: usize| before[one] == after[other];
        MemberChanges::of(7, (before.len(), after.len()), is_same)
    }

    #[test]
    fn single_changes_are_told_apart() {
        let check = |before: &[u8], after: &[u8], former: &[u8], new: &[u8], keep: bool| {
            let found = changes(before, after).expect("a difference");
            let list = |items: Vec<&u8>| items.into_iter().copied().collect::<Vec<u8>>();
            assert_eq!(list(found.former(before).collect()), former);
            assert_eq!(list(found.new_ones(after).collect()), new);
            assert_eq!(found.are_alike(before, after, |_, _| true), keep);
        };
        check(&[1, 2, 3, 4], &[1, 2, 9, 4], &[3], &[9], true);
        check(&[1, 2, 3, 4], &[9, 2, 3, 8], &[1, 4], &[9, 8], true);
        // A member goes, and another one comes at the end.
        check(&[1, 2, 3, 4, 5], &[1, 3, 4, 5, 6], &[2], &[6], false);
        check(&[1, 2, 3], &[1, 2, 3, 4, 5], &[], &[4, 5], false);
        check(&[1, 2, 3], &[], &[1, 2, 3], &[], false);
        check(&[], &[1], &[], &[1], false);
        check(&[1, 2, 3, 4, 5, 6], &[1, 9, 9, 9, 6], &[2, 3, 4, 5], &[9, 9, 9], false);
    }

    #[test]
    fn the_later_list_is_made_of_the_former_one() {
        let mut random = Random::new(5);
        for _ in 0..5_000 {
            let [before, after]: [Vec<u8>; 2] = std::array::from_fn(|_| {
                (0..random.below(8)).map(|_| random.below(5) as u8).collect()
            });
            let Some(found) = changes(&before, &after) else {
                assert_eq!(before, after);
                continue;
            };
            assert_ne!(before, after);
            let applied = found.applied(&before, |_, places, list| {
                list.extend_from_slice(&after[places]);
            });
            assert_eq!(applied, after);
            assert_eq!(
                found.new_places().into_iter().flatten().count(),
                found.new_ones(&after).count()
            );
        }
    }
}
