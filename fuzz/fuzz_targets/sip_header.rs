#![no_main]
//! SIP header fields: a field is found only before the empty line, and equally by its long and its short name.

#[path = "../../crates/core/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|datagram: &[u8]| invariants::sip(datagram));
