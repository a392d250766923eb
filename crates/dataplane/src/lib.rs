//! The data path: one thread per core, each with its own event loop, its own listeners and its own
//! idle member connections.

mod access_log;
mod arena;
mod client_address;
mod client_tls;
pub mod counters;
mod endpoint;
pub mod error_text;
pub mod handle;
pub mod live;
mod location;
mod pool;
pub mod reports;
mod server_tls;
pub mod shared_table;
#[cfg(feature = "simulation")]
pub mod simulation;
pub mod sticky;
mod table;
mod thread;
mod traffic;
#[cfg(test)]
mod traffic_simulation;
mod worker;
