//! A listening socket of a worker.

use std::rc::Rc;

use weir_event_loop::Token;
use weir_exchange::local::table::LocalServer;

/// A listening socket of this worker.
pub struct Listener {
    pub token: Token,
    pub address: Rc<weir_config::snapshot::Address>,
    pub server: Rc<LocalServer>,
}
