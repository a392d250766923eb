//! A short run of the soak test, so that it remains usable.

use std::process::Command;

use weir_tests::proxy::Kind;
use weir_tests::tools;

#[test]
fn ten_seconds_of_soak() {
    if Kind::chosen() != Kind::Weir {
        return tools::skip("the soak reloads, which the stand-in does not");
    }
    print!("{}", tools::run(Command::new(env!("CARGO_BIN_EXE_soak")).args(["--seconds", "10"])));
}
