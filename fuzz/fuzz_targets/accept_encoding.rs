#![no_main]
//! Accept-Encoding: for any value from a client, the selected coding is offered and not refused by the client.

#[path = "../../crates/compression/tests/support/accept_encoding.rs"]
#[allow(dead_code, reason = "the values to start from are for the seeds")]
mod accept_encoding;

libfuzzer_sys::fuzz_target!(|field: &[u8]| accept_encoding::check(field));
