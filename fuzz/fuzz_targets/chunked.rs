#![no_main]
//! Chunked bodies with trailer sections, and trailer sections alone.

#[path = "../../crates/http/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    invariants::body::check_chunked(input);
    invariants::body::check_trailers(input);
});
