//! Connections to members.

pub mod events;
pub mod http1;
pub mod http2;
pub mod streams;
