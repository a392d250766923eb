//! The defects that the simulation must find are patches. Each patch applies to the current code.

use std::process::Command;

use weir_tests::repository;

/// Minimum number of defects.
const DEFECTS_MIN: usize = 25;

#[test]
fn defects_of_the_simulation_apply() {
    let patches = repository::files("patch");
    assert!(patches.len() >= DEFECTS_MIN, "there were more than these: {patches:?}");
    let findings: Vec<String> = patches.iter().filter_map(|patch| refusal(patch)).collect();
    repository::expect_none(&findings);
}

/// The reason why a patch does not apply; `None`: it applies.
fn refusal(patch: &str) -> Option<String> {
    let output = Command::new("git")
        .args(["apply", "--check", patch])
        .current_dir(repository::root())
        .output()
        .expect("git runs");
    let why = String::from_utf8_lossy(&output.stderr);
    (!output.status.success()).then(|| format!("{patch}: make it anew: {}", why.trim()))
}
