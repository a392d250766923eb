//! Who a request is from, as far as that was asked.

use std::sync::Arc;

use weir_core::policy::Authenticator;

use crate::shared::logins::{Logins, Tag, Ticket};

/// Who a request is from, remembered for its response and its log line.
#[derive(Debug, Default)]
pub struct Identity {
    /// `request.user`; empty: nobody was let in by name.
    pub user: Box<[u8]>,
    /// When it was looked at, in seconds since 1970: rules for the response find its token as those for the request did.
    pub unix_s: Option<u64>,
    /// Passwords that are checked; it waits for that.
    pub checks: Vec<Checking>,
}

/// A password that is checked.
#[derive(Debug)]
pub struct Checking {
    /// What asks for it.
    pub by: Arc<Authenticator>,
    /// What stands for it and its user; `None`: there is no such user.
    pub tag: Option<Tag>,
    /// Tells what has come of it.
    pub ticket: Ticket,
    /// Where it is remembered.
    pub logins: Arc<Logins>,
}
