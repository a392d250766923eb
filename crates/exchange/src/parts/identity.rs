//! The user of a request.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use weir_core::policy::Authenticator;

use crate::arena::ExchangeKey;
use crate::local::pool::{LocalPool, Preference};
use crate::parts::reply::Reply;
use crate::shared::logins::{Logins, Tag, Ticket};

/// The user of a request, kept for its response and its log line.
#[derive(Debug, Default)]
pub struct Identity {
    /// `request.user`; empty: no user was authenticated by name.
    pub user: Box<[u8]>,
    /// The user name at the virtual server of the listener, if another virtual server decides with users of its own.
    pub entered_as: Box<[u8]>,
    /// The time of the decision, in seconds since 1970: rules for the response evaluate tokens at the same time.
    pub unix_s: Option<u64>,
    /// Pending password checks.
    pub checks: Vec<PasswordCheck>,
    /// Services to ask, one after another, from the last to the first.
    pub asks: Vec<AuthorisationQuery>,
}

impl Identity {
    /// Whether a check is pending, so that no decision takes effect yet.
    pub fn is_unchecked(&self) -> bool {
        !self.checks.is_empty() || !self.asks.is_empty()
    }
}

/// A question to an authorisation service about the request.
pub struct AuthorisationQuery {
    /// The authentication that requires it.
    pub by: Arc<Authenticator>,
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
        f.debug_struct("Asking").field("by", &self.by.name).finish_non_exhaustive()
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
