#![no_main]
//! `traceparent`: parsed values are parts of the input, and survive a round trip.

#[path = "../../crates/http/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|value: &[u8]| invariants::trace_context::check(value));
