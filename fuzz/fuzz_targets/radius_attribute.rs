#![no_main]
//! RADIUS attributes: the reader finds the same as a simple walk.

#[path = "../../crates/core/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|datagram: &[u8]| invariants::radius(datagram));
