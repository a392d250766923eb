//! HTTP/2 (RFC 9113).
mod error;
pub mod frame;
pub mod hpack;
mod limits;
mod priority;
mod settings;
pub use error::*;
