//! What the tests of several crates make their cases of: numbers and bodies that a seed determines, decoders.
//!
//! Nothing but tests and benchmarks depends on it.
#![forbid(unsafe_code)]

pub mod bodies;
mod decode;
mod random;

pub use decode::decode;
pub use random::Random;
