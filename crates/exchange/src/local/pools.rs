//! A worker's pools in force, by their indexes in the snapshot.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use crate::local::pool::LocalPool;
use crate::shared::live::LivePool;

/// All pools of a table.
pub type Pools = Rc<[Rc<PoolInForce>]>;

/// One pool with the members that it has now. Other members replace the view of it, between two events: what is under way
/// keeps the view that it began with.
pub struct PoolInForce {
    live: Arc<LivePool>,
    view: RefCell<Rc<LocalPool>>,
    /// The fingerprint of the configuration with its present members, the same cell for all pools.
    content: Rc<Cell<u64>>,
}

impl PoolInForce {
    /// A pool with its first members. `content`: the fingerprint of the configuration, shared by all pools.
    pub fn new(view: LocalPool, content: &Rc<Cell<u64>>) -> Rc<Self> {
        let view = Rc::new(view);
        view.put_in_force();
        let (live, content) = (Arc::clone(&view.live), Rc::clone(content));
        Rc::new(Self { live, view: RefCell::new(view), content })
    }

    /// The pool with its present members.
    #[inline]
    pub fn now(&self) -> Rc<LocalPool> {
        Rc::clone(&self.view.borrow())
    }

    /// State shared with other workers, which stays when members change.
    pub fn live(&self) -> &Arc<LivePool> {
        &self.live
    }

    /// The fingerprint of the configuration with the present members of all pools.
    pub fn content(&self) -> u64 {
        self.content.get()
    }

    /// Replaces the view. Returns the previous one.
    pub(super) fn put(&self, view: LocalPool) -> Rc<LocalPool> {
        debug_assert!(Arc::ptr_eq(&self.live, &view.live), "other members of the same pool");
        let view = Rc::new(view);
        view.put_in_force();
        self.view.replace(view)
    }
}

impl fmt::Debug for PoolInForce {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PoolInForce").field("name", &self.live.name).finish_non_exhaustive()
    }
}
