#![no_main]
//! Encoded bodies, split anywhere. The input is a byte for the codings, a byte for the split, and the body.

#[path = "../../crates/waf/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    invariants::encoded::check(input);
});
