//! The time of a connection, which events of a stream prolong.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use super::CONNECTION_TIME_MAX;

/// The time of a connection. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Lifetime(Arc<Mutex<Instant>>);

impl Lifetime {
    /// The time of a connection that begins.
    pub(super) fn begin() -> Self {
        Self(Arc::new(Mutex::new(Instant::now() + CONNECTION_TIME_MAX)))
    }

    /// The client takes what it is sent: its time begins again.
    pub(super) fn prolong(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            Instant::now() + CONNECTION_TIME_MAX;
    }

    /// Returns when the time is over.
    pub(super) async fn over(&self) {
        loop {
            let until = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }
}
