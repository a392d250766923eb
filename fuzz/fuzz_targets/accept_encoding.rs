#![no_main]
//! Accept-Encoding: whatever a client sends, it gets what is on offer and what it did not refuse.

#[path = "../../crates/compression/tests/support/accept_encoding.rs"]
#[allow(dead_code, reason = "the values to start from are for the seeds")]
mod accept_encoding;

libfuzzer_sys::fuzz_target!(|field: &[u8]| accept_encoding::check(field));
