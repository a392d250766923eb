#![no_main]
//! QUIC headers: a parsed header can be written again as it was, and a truncated header is invalid.

#[path = "../../crates/core/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|datagram: &[u8]| invariants::quic(datagram));
