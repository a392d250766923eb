//! Inspections by the web application firewall that take longer than a turn: they go on on another thread, and come back.
//!
//! An inspection on its way (a [`Job`]) owns all that it needs. The transaction keeps a [`Ticket`]. A transaction that ends
//! before its inspection is back leaves the settings behind ([`Left`]), so that the findings are logged and the memory counts
//! until then.

use std::collections::HashMap;
use std::rc::Rc;

use weir_waf::inspection::{Limit, Turn, Unfinished};

use crate::arena::ExchangeKey;
use crate::local::table::LocalServer;
use crate::parts::held::HeldBytes;
use crate::parts::inspected::Outcome;
use crate::parts::inspecting::Terms;
use crate::parts::job::{Job, Ticket, job};

/// What is left of a transaction that does not wait for its inspection.
pub struct Left {
    /// The virtual server.
    pub server: Rc<LocalServer>,
    /// The terms of the inspection.
    pub terms: Terms,
    /// Whether the rules have not got the whole body.
    pub is_cut: bool,
    /// The result that counts.
    pub ends: LeftEnd,
    /// The reserved memory.
    pub held: Vec<HeldBytes>,
}

/// The result that counts for a transaction that does not wait for its inspection.
pub enum LeftEnd {
    /// The verdict: the transaction has gone on, because rules only detect. With the limit that prevented one before, if any.
    Verdict(Ticket, Option<Limit>),
    /// The verdict on the request, or the limit that prevented it: the transaction has ended before its response was judged.
    OfRequest(Option<Limit>),
    /// This one, with the status of the answer.
    Outcome(Outcome, u16),
}

/// The inspections of a worker that are elsewhere.
pub struct Elsewhere {
    /// The turn of an inspection here. [`Turn::WHOLE`]: all are finished here.
    pub turn: Turn,
    last: u64,
    left: HashMap<u64, Left>,
}

impl Default for Elsewhere {
    fn default() -> Self {
        Self { turn: Turn::WHOLE, last: 0, left: HashMap::new() }
    }
}

impl Elsewhere {
    /// A job for an inspection, and the claim to it.
    pub fn begin(&mut self, exchange: ExchangeKey, unfinished: Unfinished) -> (Ticket, Box<Job>) {
        self.last += 1;
        job(self.last, exchange, unfinished)
    }

    /// A transaction no longer waits for its inspection.
    pub fn leave(&mut self, ticket: Ticket, left: Left) {
        self.left.insert(ticket.number, left);
    }

    /// As [`Self::leave`], for a transaction that goes on: the verdict is still wanted. `unjudged`: the limit that prevented one
    /// before.
    pub fn leave_for_the_log(
        &mut self,
        ticket: Ticket,
        unjudged: Option<Limit>,
        left: impl FnOnce(LeftEnd) -> Left,
    ) {
        self.left.insert(ticket.number, left(LeftEnd::Verdict(ticket, unjudged)));
    }

    /// An inspection is back. Returns what a transaction has left for it; `None`: its transaction waits, or all connections
    /// were closed since.
    pub fn end(&mut self, job: &Job) -> Option<Left> {
        self.left.remove(&job.number)
    }

    /// The number of inspections that no transaction waits for.
    pub fn left(&self) -> usize {
        self.left.len()
    }

    /// Drops what was left, because all connections are closed.
    pub fn forget(&mut self) {
        self.left.clear();
    }
}
