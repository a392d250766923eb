//! PEM files: no panic, and each begin of a block that a lenient reader finds is a block, or the file is refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_tls::pem::blocks;

const BEGIN: &[u8] = b"-----BEGIN ";

fuzz_target!(|input: &[u8]| {
    let Ok(found) = blocks(input) else { return };
    let lines = input.split(|byte| matches!(byte, b'\n' | b'\r'));
    let begun = lines.filter(|line| line.trim_ascii_start().starts_with(BEGIN)).count();
    assert_eq!(found.len(), begun);
});
