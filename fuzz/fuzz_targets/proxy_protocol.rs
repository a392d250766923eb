#![no_main]
//! PROXY headers: a header that is split anywhere gives the same result, and a written header can be parsed.

#[path = "../../crates/http/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| invariants::proxy_protocol::check(input));
