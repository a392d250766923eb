#![no_main]
//! RADIUS attributes: the parser finds the same attributes as a simple search.

#[path = "../../crates/core/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|datagram: &[u8]| invariants::radius(datagram));
