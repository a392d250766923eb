//! Number of instructions that the kernel's verifier examines before it accepts a program. It gives
//! up after a million, and the time delays weir's start.

mod support;

use support::{Path, is_possible};

/// Half of the verifier's limit. Linux 6.18 examines 255,457 for XDP.
const WALKED_MAX: u32 = 500_000;

#[test]
fn the_verifier_does_not_walk_far() {
    if !is_possible() {
        return;
    }
    let _path = Path::open();
    let mut seen = 0;
    for program in aya::programs::loaded_programs().filter_map(Result::ok) {
        let Some(name) = program.name_as_str().filter(|name| name.starts_with("weirgate_")) else {
            continue;
        };
        let Some(walked) = program.verified_instruction_count() else { continue };
        println!(
            "{name}: {walked} instructions walked, {} in the program",
            program.size_translated().unwrap_or(0) / 8
        );
        assert!(walked <= WALKED_MAX, "{name}: {walked}");
        seen += 1;
    }
    assert!(seen >= 2, "both programs are there");
}
