#![no_main]
//! Headers of QUIC: written again they are what was read, and a cut one is none.

#[path = "../../crates/core/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|datagram: &[u8]| invariants::quic(datagram));
