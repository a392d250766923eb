//! A request that one virtual server hands over to another, and the data that goes along.
//!
//! The other virtual server decides from the beginning. Of earlier decisions, only the data here is kept.

use std::rc::Rc;

use weir_core::policy::Lines;
use weir_http::edits::{FieldEdits, FieldNames};
use weir_http::message::RequestHead;

use crate::local::key_limits::LimitPlace;
use crate::local::table::LocalServer;
use crate::parts::request_decisions::RequestDecisions;
use crate::parts::stage_work::StageWork;

/// The result of a virtual server's decisions.
pub enum DecidedOrHandedOver {
    /// The request continues here.
    Decided(RequestDecisions),
    /// Another virtual server decides.
    HandedOver(Box<HandedOver>),
}

/// A request that is handed over to a virtual server.
pub struct HandedOver {
    /// The virtual server that decides.
    pub to: Rc<LocalServer>,
    /// The request with the changes of rules; `None`: unchanged.
    pub rewritten: Option<Box<RewrittenHead>>,
    /// The data that goes along.
    pub carried: Box<HandOverContext>,
}

/// A request after changes by rules.
pub struct RewrittenHead {
    /// The head.
    pub head: RequestHead,
    /// The text that the head refers to.
    pub text: Vec<u8>,
}

/// Data from the virtual servers that a request has passed.
#[derive(Default)]
pub struct HandOverContext {
    /// These virtual servers, in order.
    pub passed: Vec<Rc<LocalServer>>,
    /// Fields for the response.
    pub response: FieldEdits,
    /// The rules that were followed.
    pub followed: Vec<u32>,
    /// Marks for the access log.
    pub marks: Lines,
    /// Fields that were changed in the head, so they must not appear in trailers.
    pub names: FieldNames,
    /// The host and port that the client requested, if rules have changed them; else empty.
    pub asked_for: Vec<u8>,
    /// Its places under limits.
    pub limit_places: Vec<LimitPlace>,
    /// The request is delayed until then; 0: not delayed.
    pub not_before_us: u64,
    /// What stages have to do.
    pub stage_work: StageWork,
    /// The user name; empty: not authenticated by name.
    pub user: Box<[u8]>,
}

impl HandOverContext {
    /// The virtual server of the listener.
    pub fn entered_at(&self) -> Option<&Rc<LocalServer>> {
        self.passed.first()
    }

    /// The marks so far, followed by later ones.
    pub fn marks_with(&mut self, later: &Lines) -> Lines {
        let mut marks = std::mem::take(&mut self.marks);
        later.iter().for_each(|mark| marks.push(|out| out.extend_from_slice(mark)));
        marks
    }
}
