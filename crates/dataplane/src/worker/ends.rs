//! The two connections that a transaction is between.

use super::attempt::Attempt;
use crate::access_log::Termination;
use crate::arena::{ClientKey, ExchangeKey, StreamKey};

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
}

impl Ends {
    /// Those of a new transaction, which has no member.
    pub fn new(key: ExchangeKey, client: ClientKey, stream: Option<StreamKey>) -> Self {
        Self { key, over: None, client, stream, attempt: Attempt::default() }
    }
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
