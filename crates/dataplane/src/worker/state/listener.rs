//! A listening socket of a worker.

use std::rc::Rc;

use weir_event_loop::Token;
use weir_exchange::local::table::LocalServer;

use crate::worker::state::destination::Destination;

/// A listening socket of this worker.
pub struct Listener {
    pub token: Token,
    pub address: Destination,
    pub server: Rc<LocalServer>,
}
