#![no_main]
//! Headers of the PROXY protocol: cut anywhere they come to the same, written they read back.

#[path = "../../crates/http/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| invariants::proxy_protocol::check(input));
