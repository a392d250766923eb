//! The data path: one thread per core, each with its own event loop, its own listeners and its own
//! idle member connections.

mod binding;
mod endpoint;
pub mod handle;
pub mod inherited_sockets;
mod inspection_queue;
mod inspectors;
mod owners;
mod panics;
mod password_threads;
mod removed_listeners;
#[cfg(test)]
mod sample_inspections;
pub mod sessions;
#[cfg(feature = "simulation")]
pub mod simulation;
mod thread;
mod worker;
pub mod worker_sessions;

use weir_event_loop::{clock, random};
use weir_exchange::environment::Environment;

/// The clock and the random numbers of this host, for a live table.
pub fn outside() -> Environment {
    Environment { clock: clock::now(), fill_randomly: random::fill }
}
