//! The pool of a request, and the results of its attempts.

use std::rc::Rc;

use crate::local::pool::{LocalPool, Preference, TRIES_MAX};
use crate::parts::failure::MemberFailure;

/// A place at a member. Dropping it releases the place, so a request releases it however it ends, even by a panic.
pub struct Lease {
    /// The pool.
    pub pool: Rc<LocalPool>,
    /// The index of the member.
    pub member: u32,
}

impl Lease {
    /// A lease for a place that [`LocalPool::occupy`] has taken.
    pub fn of(pool: &Rc<LocalPool>, member: u32) -> Self {
        Self { pool: Rc::clone(pool), member }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.pool.release(self.member);
    }
}

/// Members that were tried. Most requests need one.
enum TriedMembers {
    None,
    One([u32; 1]),
    Several(Vec<u32>),
}

/// The pool of a request, and the results of its attempts.
pub struct Tries {
    /// The pool.
    pub pool: Rc<LocalPool>,
    /// The preference for a member.
    pub preference: Preference,
    tried: TriedMembers,
    /// weir looked for a member. It does not for a request that a rule answers or refuses.
    pub was_sought: bool,
    /// The number of attempts.
    pub count: u8,
    /// The reason why the last member did not serve the request.
    pub failure: Option<MemberFailure>,
    /// The request does not wait in the queue.
    pub never_waits: bool,
    /// A member has refused its stream as unread before.
    pub was_unread: bool,
}

impl Tries {
    /// Before the first attempt.
    pub fn new(pool: Rc<LocalPool>, preference: Preference) -> Self {
        Self {
            pool,
            preference,
            tried: TriedMembers::None,
            was_sought: false,
            count: 0,
            failure: None,
            never_waits: false,
            was_unread: false,
        }
    }

    /// Switches to another pool, in which no member was tried yet.
    pub fn begin_anew(&mut self, pool: &Rc<LocalPool>) {
        let was_sought = self.was_sought;
        *self = Self { was_sought, ..Self::new(Rc::clone(pool), Preference::Any) };
    }

    /// Counts that another member is tried.
    pub fn count_retry(&self) {
        let counters = &self.pool.counters;
        counters.retries.add(1);
        if self.failure.is_some() {
            counters.failures_retried.add(1);
        }
    }

    /// The members tried so far.
    pub fn tried(&self) -> &[u32] {
        match &self.tried {
            TriedMembers::None => &[],
            TriedMembers::One(member) => member,
            TriedMembers::Several(members) => members,
        }
    }

    /// Records an attempt with this member.
    pub fn note(&mut self, member: u32) {
        match &mut self.tried {
            TriedMembers::None => self.tried = TriedMembers::One([member]),
            TriedMembers::One([first]) => self.tried = TriedMembers::Several(vec![*first, member]),
            TriedMembers::Several(members) => members.push(member),
        }
        self.count += 1;
    }

    /// The number of further attempts that are permitted.
    pub fn left(&self) -> u8 {
        let allowed = (self.pool.settings().retries.max as usize + 1).min(TRIES_MAX);
        (allowed as u8).saturating_sub(self.count)
    }

    /// Begins to look for a member. False: no further attempt is permitted.
    pub fn seek(&mut self) -> bool {
        self.was_sought = true;
        self.left() > 0
    }

    /// The members tried so far and the preference, by their indexes in another view of the pool.
    pub fn in_view(&self, pool: &LocalPool) -> (Vec<u32>, Preference) {
        let moved = |member: u32| pool.member(&self.pool.members[member as usize].live.label);
        self.renumbered(moved)
    }

    /// Switches to the same pool of a new table. `moved`: the new index of a member.
    pub fn renumber(&mut self, moved: impl Fn(u32) -> Option<u32>) {
        let (tried, preference) = self.renumbered(moved);
        self.preference = preference;
        self.tried = TriedMembers::Several(tried);
    }

    fn renumbered(&self, moved: impl Fn(u32) -> Option<u32>) -> (Vec<u32>, Preference) {
        let preference = match self.preference {
            Preference::Member(member) => moved(member).map_or(Preference::Any, Preference::Member),
            other => other,
        };
        (self.tried().iter().filter_map(|member| moved(*member)).collect(), preference)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::environment::Environment;
    use crate::shared::live::LiveTable;

    fn pool_of_three() -> Rc<LocalPool> {
        let text = "virtual_servers: { v: { listen: \"127.0.0.1:8080\", pool: p } }\n\
            pools: { p: { members: [ 127.0.0.1:1, 127.0.0.1:2, 127.0.0.1:3 ] } }\n";
        let config = weir_config::parse("test.yaml", text).config.expect("a good configuration");
        let snapshot = Arc::new(config.snapshot(&weir_config::Resolutions::default()));
        let table = LiveTable::build(Arc::clone(&snapshot), None, 1, &Environment::known());
        Rc::new(LocalPool::new(&snapshot, 0, &table.pools[0], None, 0, 0))
    }

    #[test]
    fn nothing_was_tried_of_another_pool() {
        let mut tries = Tries::new(pool_of_three(), Preference::Member(1));
        let left = tries.left();
        tries.note(0);
        tries.note(1);
        tries.failure = Some(MemberFailure::Connect);
        let other = pool_of_three();
        tries.begin_anew(&other);
        assert!(Rc::ptr_eq(&tries.pool, &other));
        assert_eq!((tries.tried(), tries.preference), (&[][..], Preference::Any));
        assert_eq!((tries.left(), tries.count), (left, 0));
        assert_eq!(tries.failure, None, "an answer tells of this pool alone");
    }

    #[test]
    fn what_was_tried_is_known_by_the_numbers_of_the_table_in_force() {
        let mut tries = Tries::new(pool_of_three(), Preference::Member(2));
        for member in [0, 1, 2] {
            tries.note(member);
        }
        // The first member was removed, and the others have changed places.
        tries.renumber(|member| [None, Some(1), Some(0)][member as usize]);
        assert_eq!((tries.tried(), tries.preference), (&[1, 0][..], Preference::Member(0)));
        assert_eq!(tries.count, 3);
        tries.renumber(|member| (member == 1).then_some(0));
        assert_eq!((tries.tried(), tries.preference), (&[0][..], Preference::Any));
        let mut tries = Tries::new(pool_of_three(), Preference::Key(7));
        tries.renumber(|_| None);
        assert_eq!((tries.tried(), tries.preference), (&[][..], Preference::Key(7)));
    }
}
