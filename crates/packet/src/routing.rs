//! Detects whether IPv4 routes depend only on the destination. Then programs cache routes briefly and do not
//! look them up for each packet. Rules may select by any property, and of several paths of a route the kernel selects one by
//! all properties of a packet.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::error::{Error, kernel};
use crate::netlink::{self, Notice};

/// Maximum number of change messages that are read at a time.
const PARTS_MAX: usize = 64;
/// If routes depend on more, all of them are read again at the earliest after this time...
const READ_INTERVAL: Duration = Duration::from_secs(1);
/// ...and after this multiple of the time that reading takes.
const READ_REST: u32 = 39;

/// Watches rules and routes.
#[derive(Debug, Default)]
pub struct Routing {
    notices: Option<OwnedFd>,
    is_plain: bool,
    /// Something has changed since the last complete reading that may have made the routes plain.
    has_changed: bool,
    read_at: Option<Instant>,
}

impl Routing {
    /// Whether the route depends only on the destination, by all changes so far.
    pub fn look(&mut self, now: Instant) -> Result<bool, Error> {
        let fail = |error: Errno| kernel("watching routes", error.to_string());
        let notices = match &self.notices {
            Some(notices) => notices,
            None => {
                // Set before reading: changes meanwhile are reported.
                self.has_changed = true;
                self.notices.insert(netlink::route_notices().map_err(fail)?)
            }
        };
        let mut parts = 0;
        loop {
            if parts == PARTS_MAX {
                // The rest is read the next time; until then the answer is unknown.
                return Ok(false);
            }
            parts += 1;
            match netlink::read_notices(notices) {
                Ok(None) => break,
                Ok(Some(told)) => {
                    self.is_plain &= !told.contains(&Notice::DependsOnMore);
                    self.has_changed |= told.iter().any(|it| *it != Notice::Plain);
                }
                // There were more messages than the socket holds.
                Err(Errno::NOBUFS) => (self.is_plain, self.has_changed) = (false, true),
                Err(error) => {
                    self.forget();
                    return Err(fail(error));
                }
            }
        }
        if !self.is_plain && self.has_changed && self.read_at.is_none_or(|at| now >= at) {
            let began = Instant::now();
            let read = netlink::are_routes_plain();
            self.read_at = Some(now + (began.elapsed() * READ_REST).max(READ_INTERVAL));
            self.is_plain = read.map_err(fail)?;
            self.has_changed = false;
        }
        Ok(self.is_plain)
    }

    /// Makes the next call read all routes.
    fn forget(&mut self) {
        *self = Self { read_at: self.read_at, ..Self::default() };
    }
}
