#![no_main]
//! Transformations: each writes no more than the permitted number of bytes. The first bytes select the transformations that
//! run in sequence.

#[path = "../../crates/waf/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    invariants::texts::check_transformations(input);
});
