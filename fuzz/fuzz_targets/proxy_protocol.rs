#![no_main]
//! Headers of the PROXY protocol: cut anywhere they give the same result, and a written header
//! reads back.

#[path = "../../crates/http/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| invariants::proxy_protocol::check(input));
