#![no_main]
//! Request heads: a head that is split anywhere gives the same result, and the forwarded head has the same meaning.

#[path = "../../crates/http/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| invariants::request::check(input));
