#![no_main]
//! HTTP/2 header blocks, and the messages in them.

#[path = "../../crates/http/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| invariants::h2::check_blocks(input));
