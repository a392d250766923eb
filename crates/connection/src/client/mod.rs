//! Connections of clients.

pub mod http1;
pub mod http2;
pub mod memory;
pub mod pending;
pub mod streams;
