#![no_main]
//! An encoded body, cut anywhere: a byte for the codings, one for the cut, and the body.

#[path = "../../crates/waf/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    invariants::encoded::check(input);
});
