#![no_main]
//! Multipart bodies, split anywhere. The input is a byte for the split, a line with the value of Content-Type, and the body.

#[path = "../../crates/waf/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    invariants::bodies::check_multipart(input);
});
