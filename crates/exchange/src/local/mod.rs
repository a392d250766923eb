//! A worker's view of the active configuration, and of a request's client.

pub mod client_address;
pub mod client_tls;
pub mod cookies;
pub mod forms;
pub mod gate;
pub mod key_limits;
pub mod location;
pub mod member;
pub mod own_mark;
pub mod pool;
pub mod pools;
pub mod stickiness;
pub mod surroundings;
pub mod table;
pub mod traffic;
#[cfg(test)]
mod traffic_simulation;
pub mod withheld_names;
