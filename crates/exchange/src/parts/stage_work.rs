//! What the stages of a request have to do, as decided with its head.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use weir_core::policy::Authenticator;
use weir_core::policy::subrequest::Mirror;
use weir_core::policy::subrequest::external::External;

use crate::arena::ExchangeKey;
use crate::local::pool::{LocalPool, Preference};
use crate::parts::deferred_work::DeferredWork;
use crate::parts::reply::Reply;
use crate::parts::stages::{Stage, Stages};
use crate::shared::logins::{Logins, Tag, Ticket};

/// What the stages of a request have to do, as decided with its head. A stage that has nothing here is not passed.
#[derive(Default)]
pub struct StageWork {
    /// Pending password checks.
    pub checks: Vec<PasswordCheck>,
    /// Services to ask, one after another, from the last to the first.
    pub asks: Vec<AuthorisationQuery>,
    /// The destinations of copies, which are sent after the checks.
    pub copies: Vec<CopyDestination>,
}

impl StageWork {
    /// Whether there is nothing to do.
    pub fn is_nothing(&self) -> bool {
        self.stages() == Stages::NONE
    }

    /// The stages that have something to do.
    pub fn stages(&self) -> Stages {
        let mut stages = Stages::NONE;
        stages.add_if(Stage::Login, !self.checks.is_empty());
        stages.add_if(Stage::Ask, !self.asks.is_empty());
        stages.add_if(Stage::Copy, !self.copies.is_empty());
        stages
    }

    /// Whether a check is pending, so that no decision takes effect yet.
    pub fn is_unchecked(&self) -> bool {
        !self.checks.is_empty() || !self.asks.is_empty()
    }

    /// The question to a service for which the request waits.
    pub fn query(&mut self) -> Option<&mut AuthorisationQuery> {
        self.asks.last_mut()
    }

    /// Another virtual server decides about the request: what is pending so far belongs to that of the listener.
    pub fn note_hand_over(&mut self) {
        self.asks.iter_mut().for_each(|asking| asking.is_of_entry = true);
    }

    /// Whether a check follows the inspection of the head.
    pub fn has_later_checks(&self) -> bool {
        !self.asks.is_empty()
    }

    /// Leaves out what follows the inspection of the head.
    pub fn leave_out_later(&mut self) {
        self.asks.clear();
        self.copies.clear();
    }

    /// Leaves out the checks.
    pub fn leave_out_checks(&mut self) {
        self.checks.clear();
        self.asks.clear();
    }

    /// The request has ended: drops what is left, and ends requests of weir's own for which it has waited.
    pub fn end(&mut self, deferred_work: &mut Vec<DeferredWork>) {
        self.checks.clear();
        self.copies.clear();
        for AuthorisationQuery { progress, .. } in self.asks.drain(..) {
            if let Progress::Asked(Some(child)) = progress {
                deferred_work.push(DeferredWork::Leave { child, is_late: false });
            }
        }
    }
}

impl fmt::Debug for StageWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { checks, asks, copies } = self;
        write!(f, "{} checks, {} services, {} copies", checks.len(), asks.len(), copies.len())
    }
}

/// The destination of a copy of the request.
pub struct CopyDestination {
    /// The action for which it is made.
    pub mirror: Arc<Mirror>,
    /// The pool that gets it.
    pub pool: Rc<LocalPool>,
    /// The preference for a member.
    pub preference: Preference,
}

/// A question to an authorisation service about the request.
pub struct AuthorisationQuery {
    /// The service.
    pub service: Arc<External>,
    /// The pool of the service.
    pub pool: Rc<LocalPool>,
    /// The preference for a member.
    pub preference: Preference,
    /// When the service was asked.
    pub begun_us: u64,
    /// When its timeout is checked next.
    pub look_us: u64,
    /// The service is asked for the virtual server of the listener, and another one decides about the request.
    pub is_of_entry: bool,
    /// The state of the question.
    pub progress: Progress,
}

/// The state of a question to a service.
pub enum Progress {
    /// Not asked yet; this is the request to send.
    Unasked(Vec<u8>),
    /// This request was sent; `None`: it has not begun.
    Asked(Option<ExchangeKey>),
    /// The answer; `None`: there was none.
    Answered(Option<Box<Reply>>),
}

impl AuthorisationQuery {
    /// Whether the service is to be asked, and the request for that has not begun.
    pub fn awaits_beginning(&self) -> bool {
        matches!(self.progress, Progress::Asked(None))
    }

    /// The request to the service has ended, with or without a response. `child`: its key; `None`: it could not begin. False:
    /// nothing waits for it.
    pub fn ended(&mut self, child: Option<ExchangeKey>, reply: Option<Box<Reply>>) -> bool {
        let is_awaited = matches!(self.progress, Progress::Asked(of) if of == child);
        if is_awaited {
            self.progress = Progress::Answered(reply.filter(|reply| reply.is_whole));
        }
        is_awaited
    }
}

impl fmt::Debug for AuthorisationQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").field("service", &self.service.name).finish_non_exhaustive()
    }
}

/// A pending password check.
#[derive(Debug)]
pub struct PasswordCheck {
    /// The authentication that requires it.
    pub by: Arc<Authenticator>,
    /// The tag of the user and password; `None`: there is no such user.
    pub tag: Option<Tag>,
    /// Returns the result of the check.
    pub ticket: Ticket,
    /// Where a successful login is stored.
    pub logins: Arc<Logins>,
}
