#![no_main]
//! SIP header fields: found before the empty line, the same by the long and the short name.

#[path = "../../crates/core/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|datagram: &[u8]| invariants::sip(datagram));
