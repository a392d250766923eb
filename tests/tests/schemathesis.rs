//! The admin API against its OpenAPI document, by schemathesis. `WEIR_SCHEMATHESIS` is the path of the program
//! (`pip install schemathesis`); without it the test is skipped.

use std::process::Command;

use weir_tests::proxy::weir_binary;
use weir_tests::{repository, tools};

/// Cases that are drawn for each operation.
const EXAMPLES: &str = "10";

#[test]
fn every_answer_is_documented() {
    let Some(schemathesis) = tools::suite("WEIR_SCHEMATHESIS") else { return };
    let mut command = Command::new(repository::root().join("scripts/check-api"));
    command.arg(weir_binary()).args(["--max-examples", EXAMPLES]);
    let output = tools::run(command.env("WEIR_SCHEMATHESIS", schemathesis));
    assert!(!output.contains("SKIPPED"), "{output}");
}
