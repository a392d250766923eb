#![no_main]
//! Values within values.

#[path = "../../crates/waf/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    invariants::nested::check(input);
});
