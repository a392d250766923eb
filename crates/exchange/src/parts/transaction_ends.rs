//! The common part of all transactions: the two connections, and facts about them.

use std::rc::Rc;

use crate::arena::ExchangeKey;
use crate::local::table::LocalServer;
use crate::parts::account::Account;
use crate::parts::caller::Caller;
use crate::parts::phase::Phase;
use crate::parts::request_context::RequestContext;
use crate::parts::tries::Tries;
use crate::termination::Termination;

/// The client connection and the member connection of a transaction, and facts about them.
pub struct TransactionEnds {
    /// The key of the transaction.
    pub key: ExchangeKey,
    /// `Some`: the transaction has ended, and the client connection goes to this state.
    pub over: Option<NextClientState>,
    /// On whose behalf it works.
    pub caller: Caller,
    /// Reading from the member is paused until the client has taken the response so far.
    pub is_member_stopped: bool,
    /// The pool, and results of attempts.
    pub tries: Tries,
    /// How far it is.
    pub phase: Phase,
    /// The virtual server that decides about the transaction.
    pub server: Rc<LocalServer>,
    /// Data that policies or persistence need later.
    pub context: Option<Box<RequestContext>>,
    /// Counters and log data.
    pub account: Account,
}

impl TransactionEnds {
    /// Whether the transaction has ended.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.over.is_some()
    }
}

/// The next state of the client connection after an exchange.
pub enum NextClientState {
    /// Other code handles the connection.
    Nothing,
    /// The response is complete.
    Response(KeepAliveFacts),
    /// The exchange has become a tunnel.
    Tunnel {
        /// The member has ended its sending side.
        has_member_ended: bool,
    },
    /// The transaction was a request of weir's own: its caller gets the reply.
    Subrequest,
    /// The tunnel is complete in both directions: the client connection ends, unless it is shared.
    Whole,
    /// Data is missing: the client connection ends, unless it is shared.
    Broken {
        /// Whether it ends with a reset.
        must_reset: bool,
    },
    /// The client is gone or was given up: its connection ends at once, unless it is shared.
    Gone {
        /// Whether it ends with a reset.
        must_reset: bool,
    },
    /// The whole client connection ends.
    Cut {
        /// The termination reason.
        termination: Termination,
        /// Whether it ends with a reset.
        must_reset: bool,
    },
}

/// The state of the client connection after an exchange.
pub struct KeepAliveFacts {
    /// Whether both sides permit another request.
    pub keep_alive: bool,
    /// Whether the whole request was read.
    pub request_done: bool,
    /// Whether the client announced its last request.
    pub client_closes: bool,
}

/// Data that a window has let out.
pub struct LetOut {
    /// The number of bytes.
    pub data_bytes: usize,
    /// Whether more is queued.
    pub is_behind: bool,
}
