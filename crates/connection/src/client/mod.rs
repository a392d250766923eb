//! Connections of clients.

pub mod http2;
pub mod memory;
pub mod pending;
pub mod streams;
