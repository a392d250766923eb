//! Inspections by the web application firewall that take longer than a turn: they go on on another thread, and come back.
//!
//! An inspection on its way (an [`InspectionJob`]) owns all that it needs. The transaction keeps a [`Ticket`]. A transaction that ends
//! before its inspection is back leaves the settings behind ([`UnawaitedInspection`]), so that the findings are logged and the memory counts
//! until then.

use std::collections::HashMap;
use std::rc::Rc;

use weir_waf::inspection::{Limit, Turn, UnfinishedInspection};

use crate::arena::ExchangeKey;
use crate::local::table::LocalServer;
use crate::parts::held_memory::HeldBytes;
use crate::parts::inspection::Terms;
use crate::parts::inspection_job::{InspectionJob, Ticket, job};
use crate::parts::inspection_report::InspectionOutcome;

/// What is left of a transaction that does not wait for its inspection.
pub struct UnawaitedInspection {
    /// The virtual server.
    pub server: Rc<LocalServer>,
    /// The terms of the inspection.
    pub terms: Terms,
    /// Whether the rules have not got the whole body.
    pub is_cut: bool,
    /// The result that counts.
    pub ends: UnawaitedResult,
    /// The reserved memory.
    pub held: Vec<HeldBytes>,
}

/// The result that counts for a transaction that does not wait for its inspection.
pub enum UnawaitedResult {
    /// The verdict: the transaction has gone on, because rules only detect. With the limit that prevented one before, if any.
    Verdict(Ticket, Option<Limit>),
    /// The verdict on the request, or the limit that prevented it: the transaction has ended before its response was judged.
    OfRequest(Option<Limit>),
    /// This one, with the status of the answer.
    Outcome(InspectionOutcome, u16),
}

/// The inspections of a worker that are elsewhere.
pub struct OffloadedInspections {
    /// The turn of an inspection here. [`Turn::WHOLE`]: all are finished here.
    pub turn: Turn,
    last: u64,
    left: HashMap<u64, UnawaitedInspection>,
}

impl Default for OffloadedInspections {
    fn default() -> Self {
        Self { turn: Turn::WHOLE, last: 0, left: HashMap::new() }
    }
}

impl OffloadedInspections {
    /// A job for an inspection, and the claim to it.
    pub fn begin(
        &mut self,
        exchange: ExchangeKey,
        unfinished: UnfinishedInspection,
    ) -> (Ticket, Box<InspectionJob>) {
        self.last += 1;
        job(self.last, exchange, unfinished)
    }

    /// A transaction no longer waits for its inspection.
    pub fn leave(&mut self, ticket: Ticket, left: UnawaitedInspection) {
        self.left.insert(ticket.number, left);
    }

    /// As [`Self::leave`], for a transaction that goes on: the verdict is still wanted. `unjudged`: the limit that prevented one
    /// before.
    pub fn keep_for_log(
        &mut self,
        ticket: Ticket,
        unjudged: Option<Limit>,
        left: impl FnOnce(UnawaitedResult) -> UnawaitedInspection,
    ) {
        self.left.insert(ticket.number, left(UnawaitedResult::Verdict(ticket, unjudged)));
    }

    /// An inspection is back. Returns what a transaction has left for it; `None`: its transaction waits, or all connections
    /// were closed since.
    pub fn end(&mut self, job: &InspectionJob) -> Option<UnawaitedInspection> {
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
