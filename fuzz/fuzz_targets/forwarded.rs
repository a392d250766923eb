#![no_main]
//! X-Forwarded-For and Forwarded fields: no content is attributed to a proxy that has not written it.

#[path = "../../crates/http/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|field: &[u8]| invariants::forwarded::check(field));
