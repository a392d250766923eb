//! What the tests of several crates make their cases of: numbers and bodies that a seed determines, decoders and encoders,
//! HTTP/2 apart from the codec under test, and the way in which a test is skipped.
//!
//! Nothing but tests and benchmarks depends on it.
#![forbid(unsafe_code)]

pub mod bodies;
mod decode;
mod encode;
pub mod frame;
pub mod hpack;
mod random;
mod skip;

pub use decode::decode;
pub use encode::encode;
pub use random::Random;
pub use skip::{skip, skip_without_data};
