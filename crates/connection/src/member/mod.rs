//! Connections to members.

pub mod http2;
pub mod streams;
