//! The user of a request.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use weir_core::policy::Authenticator;

use crate::arena::ExchangeKey;
use crate::local::pool::{LocalPool, Preference};
use crate::parts::aside::Reply;
use crate::shared::logins::{Logins, Tag, Ticket};

/// The user of a request, kept for its response and its log line.
#[derive(Debug, Default)]
pub struct Identity {
    /// `request.user`; empty: no user was authenticated by name.
    pub user: Box<[u8]>,
    /// Who it was from where it came in, if another virtual server decides about it, whose rules do not go by that.
    pub entered_as: Box<[u8]>,
    /// When it was looked at, in seconds since 1970: rules for the response find its token as those for the request did.
    pub unix_s: Option<u64>,
    /// Passwords that are checked; it waits for that.
    pub checks: Vec<Checking>,
    /// Services that are asked, one after another, the last first; it waits for that, too.
    pub asks: Vec<Asking>,
}

impl Identity {
    /// Whether nothing that was decided takes effect yet.
    pub fn is_unchecked(&self) -> bool {
        !self.checks.is_empty() || !self.asks.is_empty()
    }
}

/// A service that decides about the request.
pub struct Asking {
    /// The authentication that requires it.
    pub by: Arc<Authenticator>,
    /// Where the service is.
    pub pool: Rc<LocalPool>,
    /// At which of its members.
    pub preference: Preference,
    /// When it was asked.
    pub begun_us: u64,
    /// When the time is looked at next.
    pub look_us: u64,
    /// It is asked for the virtual server where the request came in, and another decides about that.
    pub is_of_entry: bool,
    /// How far that is.
    pub progress: Progress,
}

/// How far the question to a service is.
pub enum Progress {
    /// This is to be asked.
    Unasked(Vec<u8>),
    /// By this request; `None`: it has yet to begin.
    Asked(Option<ExchangeKey>),
    /// This was answered; `None`: nothing was.
    Answered(Option<Box<Reply>>),
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").field("by", &self.by.name).finish_non_exhaustive()
    }
}

/// A password that is checked.
#[derive(Debug)]
pub struct Checking {
    /// The authentication that requires it.
    pub by: Arc<Authenticator>,
    /// The tag of the user and password; `None`: there is no such user.
    pub tag: Option<Tag>,
    /// Returns the result of the check.
    pub ticket: Ticket,
    /// Where it is remembered.
    pub logins: Arc<Logins>,
}
