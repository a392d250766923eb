#![no_main]
//! Rule files: any text is refused with positions of its errors, or its rules can be used.

#[path = "../../crates/waf/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Ok(text) = std::str::from_utf8(input) {
        invariants::rules::check(text);
    }
});
