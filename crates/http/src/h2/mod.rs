//! HTTP/2 (RFC 9113).
mod connection;
mod error;
pub mod frame;
pub mod hpack;
mod limits;
mod priority;
mod settings;
mod streams;
mod window;
pub use connection::*;
pub use error::*;
pub use limits::*;
pub use priority::Priority;
pub use settings::PeerSettings;
pub use streams::Answer;
