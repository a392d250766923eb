//! Helpers for the tests of several crates: random numbers, bodies and configurations from a seed, decoders and encoders, an
//! HTTP/2 implementation that is independent of the codec under test, CPU time of work, and skipping of tests.
//!
//! Only tests and benchmarks depend on this crate.
#![forbid(unsafe_code)]

pub mod bodies;
pub mod configurations;
mod cpu_time;
mod decode;
mod encode;
pub mod frame;
pub mod hpack;
mod random;
mod skip;

pub use cpu_time::cpu_time_of;
pub use decode::decode;
pub use encode::encode;
pub use random::Random;
pub use skip::{skip, skip_though_strict};
