#![no_main]
//! QUIC headers: written again they equal the input, and a cut header is invalid.

#[path = "../../crates/core/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|datagram: &[u8]| invariants::quic(datagram));
