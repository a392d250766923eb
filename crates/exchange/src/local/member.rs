//! A worker's view of members: this worker's idle connections to them, and its counters.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use crate::arena::ConnectionKey;
use crate::shared::counters::{MemberCounters, Own};
use crate::shared::live::LiveMember;

/// A worker's view of one member. It lasts while successive snapshots contain the member.
pub struct LocalMember {
    /// State shared with other workers.
    pub live: Arc<LiveMember>,
    /// Counters of this worker.
    pub counters: Own<MemberCounters>,
    /// Keys of this worker's idle connections, in order of use.
    pub idle: RefCell<Vec<ConnectionKey>>,
    /// Keys of this worker's idle connections that belong to one client each.
    pub bound: RefCell<Vec<ConnectionKey>>,
    /// Keys of this worker's HTTP/2 connections, including busy ones.
    pub multiplexed: RefCell<Vec<ConnectionKey>>,
    /// The number of concurrent streams that the member permitted on its latest HTTP/2 connection.
    pub streams_max: Cell<u32>,
    /// The member is in no snapshot any more, so connections to it are not kept.
    pub retired: Cell<bool>,
}

impl LocalMember {
    fn new(live: &Arc<LiveMember>, worker: usize) -> Rc<Self> {
        Rc::new(Self {
            live: Arc::clone(live),
            counters: live.counters.own(worker),
            idle: RefCell::default(),
            bound: RefCell::default(),
            multiplexed: RefCell::default(),
            streams_max: Cell::new(u32::MAX),
            retired: Cell::new(false),
        })
    }

    fn is_of(self: &Rc<Self>, live: &Arc<LiveMember>) -> bool {
        Arc::ptr_eq(&self.live, live)
    }
}

/// A worker's views of the members of a pool, in the order of the snapshot. Copies share them.
#[derive(Clone)]
pub struct MemberViews(Rc<[Rc<LocalMember>]>);

impl MemberViews {
    /// The views of these members. Those in `before` are kept, with their idle connections.
    pub fn of(members: &[Arc<LiveMember>], before: &[Rc<LocalMember>], worker: usize) -> Self {
        // Most changes are of few members: the others are at the same place, counted from one of the ends.
        let is_same = |(local, live): &(&Rc<LocalMember>, &Arc<LiveMember>)| local.is_of(live);
        let first = before.iter().zip(members).take_while(is_same).count();
        let left = before.len().min(members.len()) - first;
        let ends = before.iter().rev().zip(members.iter().rev()).take(left);
        let last = ends.take_while(is_same).count();
        let moved: HashMap<*const LiveMember, &Rc<LocalMember>> = before
            [first..before.len() - last]
            .iter()
            .map(|local| (Arc::as_ptr(&local.live), local))
            .collect();
        let one = |live: &Arc<LiveMember>| match moved.get(&Arc::as_ptr(live)) {
            Some(&local) => Rc::clone(local),
            None => LocalMember::new(live, worker),
        };
        let mut views = Vec::with_capacity(members.len());
        views.extend(before[..first].iter().cloned());
        views.extend(members[first..members.len() - last].iter().map(one));
        views.extend(before[before.len() - last..].iter().cloned());
        Self(views.into())
    }

    /// The members that are not in `now`.
    pub fn gone(&self, now: &Self) -> Vec<Rc<LocalMember>> {
        if Rc::ptr_eq(&self.0, &now.0) {
            return Vec::new();
        }
        let is_same = |(one, other): &(&Rc<LocalMember>, &Rc<LocalMember>)| Rc::ptr_eq(one, other);
        let first = self.iter().zip(now).take_while(is_same).count();
        let kept: HashSet<*const LocalMember> = now[first..].iter().map(Rc::as_ptr).collect();
        let gone = self[first..].iter().filter(|member| !kept.contains(&Rc::as_ptr(member)));
        gone.cloned().collect()
    }
}

impl Deref for MemberViews {
    type Target = [Rc<LocalMember>];

    #[inline]
    fn deref(&self) -> &[Rc<LocalMember>] {
        &self.0
    }
}

impl<'a> IntoIterator for &'a MemberViews {
    type Item = &'a Rc<LocalMember>;
    type IntoIter = std::slice::Iter<'a, Rc<LocalMember>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
