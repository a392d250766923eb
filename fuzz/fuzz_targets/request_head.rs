#![no_main]
//! Request heads: cut anywhere they come to the same, what is sent on says the same.

#[path = "../../crates/http/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| invariants::request::check(input));
