#![no_main]
//! Inspection of a request with a fixed rule file, with and without precomputed decisions.

#[path = "../../crates/waf/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    invariants::requests::check(input);
});
