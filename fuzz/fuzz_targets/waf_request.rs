#![no_main]
//! A request through a fixed rule file, with and without decisions made in advance.

#[path = "../../crates/waf/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    invariants::requests::check(input);
});
