#![no_main]
//! Transformations: each writes no more than allowed; the first bytes choose a few that run in
//! sequence.

#[path = "../../crates/waf/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    invariants::texts::check_transformations(input);
});
