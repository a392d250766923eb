//! What a transaction has whatever it is: the two connections that it is between, and what is known of it.

use std::rc::Rc;

use super::account::Account;
use super::attempt::Attempt;
use super::extras::Extras;
use crate::access_log::Termination;
use crate::arena::{ClientKey, ExchangeKey, StreamKey};
use crate::table::LocalServer;

/// The two connections that a transaction is between.
pub struct Ends {
    /// What the transaction is called.
    pub key: ExchangeKey,
    /// It has ended, and this is what becomes of its client connection.
    pub over: Option<After>,
    /// The client connection that it belongs to.
    pub client: ClientKey,
    /// The stream of that; `None`: it has the connection for itself (HTTP/1).
    pub stream: Option<StreamKey>,
    /// The member that it has now.
    pub attempt: Attempt,
    /// Where it came in.
    pub server: Rc<LocalServer>,
    /// What is remembered of it, where policies or persistence want that.
    pub extras: Option<Box<Extras>>,
    /// What is counted and logged of it.
    pub account: Account,
}

/// What becomes of the client connection of an exchange that has ended.
pub enum After {
    /// Somebody else sees to that.
    Nothing,
    /// The response is whole.
    Response(Outcome),
    /// It ends, with all that is on it.
    Cut {
        /// Why.
        termination: Termination,
        /// With a reset.
        must_reset: bool,
    },
}

/// How an exchange left its client connection.
pub struct Outcome {
    /// Both sides allow another request.
    pub keep_alive: bool,
    /// The whole request was read.
    pub request_done: bool,
    /// The client said that this was its last request.
    pub client_closes: bool,
}
