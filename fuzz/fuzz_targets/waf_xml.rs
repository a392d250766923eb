#![no_main]
//! XML bodies, split anywhere. The input is a byte for the split, and the body.

#[path = "../../crates/waf/tests/invariants/mod.rs"]
mod invariants;

use weir_waf::body::Processor;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    invariants::bodies::check_input(Processor::Xml, b"", input);
});
