#![no_main]
//! Attributes of RADIUS: those that a plain walk finds.

#[path = "../../crates/core/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|datagram: &[u8]| invariants::radius(datagram));
