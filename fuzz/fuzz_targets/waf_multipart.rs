#![no_main]
//! Multipart bodies, cut anywhere: a byte for the cut, a line with the value of Content-Type, the body.

#[path = "../../crates/waf/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    invariants::bodies::check_multipart(input);
});
