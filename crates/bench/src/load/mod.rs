//! The load generator.

mod outcome;
mod plan;

pub use outcome::{ErrorKind, Latency, Outcome};
pub use plan::{CONNECTIONS_PER_THREAD_MAX, Expectation, Extent, Plan, Target};
