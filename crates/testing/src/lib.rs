//! What the tests of several crates make their cases of: numbers and bodies that a seed determines.
//!
//! Nothing but tests and benchmarks depends on it, and it depends on nothing.
#![forbid(unsafe_code)]

pub mod bodies;
mod random;

pub use random::Random;
