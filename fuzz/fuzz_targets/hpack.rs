#![no_main]
//! Header blocks of HTTP/2, and the messages in them.

#[path = "../../crates/http/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| invariants::h2::check_blocks(input));
