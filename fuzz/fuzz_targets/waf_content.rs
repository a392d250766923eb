#![no_main]
//! What a body is by its bytes: binary formats, encodings, gRPC calls. The input is a byte for the type, a byte for a cut, and
//! the body.

#[path = "../../crates/waf/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    invariants::content::check(input);
});
