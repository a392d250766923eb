//! The data path: one thread per core, each with its own event loop, its own listeners and its own
//! idle member connections.

pub mod counters;
pub mod handle;
pub mod live;
