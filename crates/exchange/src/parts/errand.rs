//! Work to do after the current call has returned.

use std::fmt;
use std::rc::Rc;

use crate::arena::{ClientKey, ExchangeKey};
use crate::local::pool::{LocalPool, Preference};
use crate::local::table::LocalServer;
use crate::parts::traced::Traced;

/// Work to do after the current call has returned.
pub enum Errand {
    /// A client may send on, and has sent something already.
    Client(ClientKey),
    /// A request of weir's own begins.
    Begin(Box<Order>),
    /// A request of weir's own ends: its response is no longer needed.
    Leave {
        /// Which.
        aside: ExchangeKey,
        /// Its member has taken too long.
        is_late: bool,
    },
}

/// A request of weir's own that is to begin.
pub struct Order {
    /// The request that waits for the response; `None`: none does.
    pub parent: Option<ExchangeKey>,
    /// Where that came in.
    pub server: Rc<LocalServer>,
    /// Where it goes.
    pub pool: Rc<LocalPool>,
    /// To which of the members.
    pub preference: Preference,
    /// Its head, as a client would send it.
    pub text: Vec<u8>,
    /// Its body, regardless of the head; `None`: it has none.
    pub body: Option<Vec<u8>>,
    /// The trace that it belongs to.
    pub traced: Option<Box<Traced>>,
}

/// Where copies of a request go.
#[derive(Default)]
pub struct Mirrors(pub Vec<(Rc<LocalPool>, Preference)>);

impl fmt::Debug for Mirrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} copies", self.0.len())
    }
}
