#![no_main]
//! An HTTP/2 connection of either role: input that is split anywhere gives the same events and output.

#[path = "../../crates/http/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| invariants::h2::check_connection(input));
