//! Files and overlays: any bytes are refused, or result in a configuration that is merged into one file.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/sources/tests/invariants/mod.rs"]
mod invariants;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(input) = std::str::from_utf8(bytes) {
        invariants::overlay(input);
    }
});
