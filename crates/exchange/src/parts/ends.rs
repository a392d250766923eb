//! The common part of all transactions: their two connections and facts about them.

use std::rc::Rc;

use crate::arena::{ClientKey, ExchangeKey, StreamKey};
use crate::local::table::LocalServer;
use crate::parts::account::Account;
use crate::parts::attempt::Attempt;
use crate::parts::parked::Parked;
use crate::parts::remembered::Remembered;
use crate::parts::tries::Tries;
use crate::termination::Termination;

/// The two connections that a transaction is between.
pub struct Ends {
    /// Its key.
    pub key: ExchangeKey,
    /// It has ended; this is the next state of its client connection.
    pub over: Option<After>,
    /// The client connection that it belongs to.
    pub client: ClientKey,
    /// The stream of that; `None`: it has the connection for itself (HTTP/1).
    pub stream: Option<StreamKey>,
    /// The member is paused until the client has taken the response so far.
    pub is_member_stopped: bool,
    /// Where it may go, and the results of attempts.
    pub tries: Tries,
    /// What it waits for while it has no member.
    pub parked: Parked,
    /// The member that it has now.
    pub attempt: Attempt,
    /// Where it came in.
    pub server: Rc<LocalServer>,
    /// Data that policies or persistence need later.
    pub remembered: Option<Box<Remembered>>,
    /// Counters and log data.
    pub account: Account,
}

/// The next state of the client connection after an exchange.
pub enum After {
    /// Other code handles the connection.
    Nothing,
    /// The response is whole.
    Response(Outcome),
    /// The exchange has become a tunnel.
    Tunnel {
        /// The member sends nothing more.
        has_member_ended: bool,
    },
    /// It was a request of weir's own.
    Aside,
    /// All that passes both ways is whole: the connection ends, if it was its own.
    Whole,
    /// Something is missing: the connection ends, if it was its own.
    Broken {
        /// With a reset.
        must_reset: bool,
    },
    /// The client is gone or given up: the connection ends at once, if it was its own.
    Gone {
        /// With a reset.
        must_reset: bool,
    },
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

/// Data that a window has released.
pub struct LetOut {
    /// So many bytes.
    pub data_bytes: usize,
    /// More waits.
    pub is_behind: bool,
}
