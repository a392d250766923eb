//! The deadline of a connection. Each event of a stream that the client accepts extends it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use super::CONNECTION_TIME_MAX;

/// The deadline of a connection. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Lifetime(Arc<Mutex<Instant>>);

impl Lifetime {
    /// The deadline of a new connection.
    pub(super) fn begin() -> Self {
        Self(Arc::new(Mutex::new(Instant::now() + CONNECTION_TIME_MAX)))
    }

    /// Restarts the time, because the client accepts data.
    pub(super) fn prolong(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            Instant::now() + CONNECTION_TIME_MAX;
    }

    /// Waits for the deadline.
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
