//! A request that one virtual server hands to another, and what goes with it.
//!
//! The other decides about it anew. So what was decided before is taken apart here: what is here goes with it, all else is
//! gone.

use std::rc::Rc;

use weir_core::policy::Lines;
use weir_http::edits::{FieldEdits, FieldNames};
use weir_http::message::RequestHead;

use crate::local::key_limits::LimitPlace;
use crate::local::table::LocalServer;
use crate::parts::considered::Considered;
use crate::parts::pending::Pending;

/// What a virtual server makes of a request.
pub enum Course {
    /// It is decided.
    Decided(Considered),
    /// Another decides.
    HandedOver(Box<HandedOver>),
}

/// A request that is handed to a virtual server.
pub struct HandedOver {
    /// Which decides about it.
    pub to: Rc<LocalServer>,
    /// The request with the changes that rules have made; `None`: there are none.
    pub rewritten: Option<Box<Rewritten>>,
    /// What goes with it.
    pub brought: Box<Brought>,
}

/// A request as rules have made it.
pub struct Rewritten {
    /// Its head.
    pub head: RequestHead,
    /// What the head's spans are of.
    pub text: Vec<u8>,
}

/// What a request brings from the virtual servers that it passed.
#[derive(Default)]
pub struct Brought {
    /// These, in their order.
    pub passed: Vec<Rc<LocalServer>>,
    /// Fields for the response.
    pub response: FieldEdits,
    /// Rules that were followed.
    pub followed: Vec<u32>,
    /// Marks for the access log.
    pub marks: Lines,
    /// Fields that were changed in its head, and may not come in its trailers.
    pub names: FieldNames,
    /// Host and port that its client asked for, if rules have changed them; else empty.
    pub asked_for: Vec<u8>,
    /// Places that it has under limits.
    pub limit_places: Vec<LimitPlace>,
    /// It is held back until then; 0: it is not.
    pub not_before_us: u64,
    /// What it has to wait for.
    pub pending: Pending,
    /// Who it is from, by name; empty: nobody was let in by name.
    pub user: Box<[u8]>,
}

impl Brought {
    /// Where it came in.
    pub fn entered_at(&self) -> Option<&Rc<LocalServer>> {
        self.passed.first()
    }

    /// The marks, and those that were made after them.
    pub fn marks_with(&mut self, later: &Lines) -> Lines {
        let mut marks = std::mem::take(&mut self.marks);
        later.iter().for_each(|mark| marks.push(|out| out.extend_from_slice(mark)));
        marks
    }
}
