#![no_main]
//! `traceparent`: what is read is in the value, and is written so that it is read again.

#[path = "../../crates/http/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|value: &[u8]| invariants::trace_context::check(value));
