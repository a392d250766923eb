#![no_main]
//! A connection of HTTP/2, of either role: cut anywhere, it tells and answers the same.

#[path = "../../crates/http/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| invariants::h2::check_connection(input));
