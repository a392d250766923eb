//! Where a request may go, and what came of trying.

use std::rc::Rc;

use crate::local::pool::{LocalPool, TRIES_MAX, Wish};
use crate::transaction::exchange::MemberFailure;

/// A place at a member. It is given back when this is dropped, so that whatever ends a request, be it a panic, gives it
/// back.
pub struct Lease {
    /// The pool.
    pub pool: Rc<LocalPool>,
    /// Which of its members.
    pub member: u32,
}

impl Lease {
    /// A place that [`LocalPool::occupy`] has taken.
    pub fn of(pool: &Rc<LocalPool>, member: u32) -> Self {
        Self { pool: Rc::clone(pool), member }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.pool.release(self.member);
    }
}

/// Where a request may go, and what came of trying.
pub struct Tries {
    /// Where it may go.
    pub pool: Rc<LocalPool>,
    /// Which member it shall get.
    pub wish: Wish,
    /// Members that it was given.
    tried: [u32; TRIES_MAX],
    tried_count: u8,
    /// How often it got a member.
    pub count: u8,
    /// Why the last member that was tried did not serve it.
    pub failure: Option<MemberFailure>,
    /// A member has said of its stream that it did not read it.
    pub was_unread: bool,
}

impl Tries {
    /// None yet.
    pub fn new(pool: Rc<LocalPool>, wish: Wish) -> Self {
        Self {
            pool,
            wish,
            tried: [0; TRIES_MAX],
            tried_count: 0,
            count: 0,
            failure: None,
            was_unread: false,
        }
    }

    /// The members tried so far.
    pub fn tried(&self) -> &[u32] {
        &self.tried[..self.tried_count as usize]
    }

    /// It gets this member now.
    pub fn note(&mut self, member: u32) {
        self.tried[self.tried_count as usize] = member;
        self.tried_count += 1;
        self.count += 1;
    }

    /// How many further ones there may be.
    pub fn left(&self) -> u8 {
        let allowed = (self.pool.settings().retries as usize + 1).min(TRIES_MAX);
        (allowed as u8).saturating_sub(self.count)
    }

    /// Goes by another table's pool: members that were tried are those which are called the same there.
    pub fn renumber(&mut self, moved: impl Fn(u32) -> Option<u32>) {
        if let Wish::Member(member) = self.wish {
            self.wish = moved(member).map_or(Wish::Any, Wish::Member);
        }
        let tried: Vec<u32> = self.tried().iter().filter_map(|member| moved(*member)).collect();
        self.tried[..tried.len()].copy_from_slice(&tried);
        self.tried_count = tried.len() as u8;
    }
}
