//! A short run of `change-load`, so that it remains usable: many changes of members under load, and a restart.

use std::process::Command;

use weir_tests::proxy::Kind;
use weir_tests::tools;

#[test]
fn seconds_of_changes() {
    if Kind::chosen() != Kind::Weir {
        return tools::skip("the stand-in has no API");
    }
    for shape in [["--members", "60", "--pools", "5"], ["--members", "200", "--pools", "1"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_change-load"));
        command.args(shape).args(["--rate", "60", "--together", "3", "--seconds", "3"]);
        print!("{}", tools::run(&mut command));
    }
}
