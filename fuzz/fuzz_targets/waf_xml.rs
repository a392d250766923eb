#![no_main]
//! XML, cut anywhere: a byte for the cut, and the body.

#[path = "../../crates/waf/tests/invariants/mod.rs"]
mod invariants;

use weir_waf::body::Processor;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    invariants::bodies::check_input(Processor::Xml, b"", input);
});
