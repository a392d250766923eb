//! The data path: one thread per core, each with its own event loop, its own listeners and its own
//! idle member connections.

mod access_log;
mod binding;
mod departed_listeners;
mod endpoint;
pub mod handle;
pub mod inherited;
mod json;
mod log_batch;
mod owners;
mod password_threads;
pub mod protobuf;
pub mod records;
pub mod redaction;
pub mod reports;
pub mod sessions;
mod side_logs;
#[cfg(feature = "simulation")]
pub mod simulation;
mod spans;
mod thread;
mod waf_log;
mod worker;
pub mod worker_sessions;

use weir_event_loop::{clock, random};
use weir_exchange::outside::Outside;

/// The clock and the random numbers of this host, for a live table.
pub fn outside() -> Outside {
    Outside { clock: clock::now(), fill_randomly: random::fill }
}
