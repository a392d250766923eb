//! The open streams of the process, and how many there may be.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use weir_api::events::StreamEndReason;
use weir_config::snapshot::Role;

use super::connections::Source;
use super::problem::Problem;

/// Maximum number of streams on all listeners. It leaves connections for other requests.
pub const STREAMS_MAX: usize = 16;

/// Most simultaneous streams of one source, so that others have streams, too.
pub const STREAMS_PER_SOURCE_MAX: usize = STREAMS_MAX / 2;

/// Most simultaneous streams of all callers that may only read. On loopback, anybody on this host is one. One source cannot
/// use up all of them.
pub const STREAMS_OF_READERS_MAX: usize = STREAMS_PER_SOURCE_MAX + STREAMS_MAX / 8;

/// Most simultaneous streams of all callers without the role admin.
pub const STREAMS_OF_OPERATORS_MAX: usize = STREAMS_MAX - STREAMS_MAX / 4;

/// Most simultaneous streams of callers with this role or a lesser one.
fn of_role_max(role: Option<Role>) -> usize {
    match role {
        None | Some(Role::Read) => STREAMS_OF_READERS_MAX,
        Some(Role::Operate) => STREAMS_OF_OPERATORS_MAX,
        Some(Role::Admin) => STREAMS_MAX,
    }
}

/// Maximum wait until a client has received the last event.
pub(super) const END_TIMEOUT: Duration = Duration::from_secs(1);

/// All streams of the process.
#[derive(Debug)]
pub struct Streams {
    permits: Arc<Semaphore>,
    /// The source of each open stream, and the role of its caller.
    open: Arc<Mutex<Vec<OpenStream>>>,
    end: watch::Sender<Option<StreamEndReason>>,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(STREAMS_MAX)),
            open: Arc::default(),
            end: watch::Sender::new(None),
        }
    }
}

impl Streams {
    /// Becomes the reason for the end of all streams.
    pub(super) fn ending(&self) -> watch::Receiver<Option<StreamEndReason>> {
        self.end.subscribe()
    }

    /// Ends all streams, including future ones. [`Self::ended`] waits for them.
    pub(crate) fn end(&self, reason: StreamEndReason) {
        self.end.send_replace(Some(reason));
    }

    /// Waits until all clients have received the last event, or the maximum wait is over.
    pub(crate) async fn ended(&self) {
        let all = u32::try_from(STREAMS_MAX).unwrap_or(u32::MAX);
        // The process ends in either case.
        let _ = tokio::time::timeout(END_TIMEOUT, self.permits.acquire_many(all)).await;
    }

    /// The number of streams that there may still be.
    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        self.permits.available_permits()
    }

    pub(super) fn begin(&self, source: Source, role: Option<Role>) -> Result<Permit, Problem> {
        let full = |whose: &str, most: usize| {
            let detail = format_args!("{most} streams{whose} are open already");
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
                .help("close one, or try again later")
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // Callers with lesser rights do not keep others of their address out.
        let of_source = open.iter().filter(|opened| opened.0 == source && opened.1 >= role);
        let of_source = of_source.count();
        if of_source >= STREAMS_PER_SOURCE_MAX {
            let whose = match source {
                Source::Network(_) => " of your address",
                Source::Process(..) => " of your process",
            };
            return Err(full(whose, STREAMS_PER_SOURCE_MAX));
        }
        let of_role = open.iter().filter(|(_, other)| *other <= role).count();
        if of_role >= of_role_max(role) {
            let whose = match role {
                Some(Role::Admin) => "",
                _ => " of callers with your rights",
            };
            return Err(full(whose, of_role_max(role)));
        }
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        let permit = permit.map_err(|_| full("", STREAMS_MAX))?;
        open.push((source, role));
        Ok(Permit { _permit: permit, opened: (source, role), open: Arc::clone(&self.open) })
    }
}

/// An open stream: its source, and the role of its caller.
type OpenStream = (Source, Option<Role>);

/// The right to a stream. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct Permit {
    _permit: OwnedSemaphorePermit,
    opened: OpenStream,
    open: Arc<Mutex<Vec<OpenStream>>>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = open.iter().position(|other| *other == self.opened) {
            open.swap_remove(place);
        }
    }
}
