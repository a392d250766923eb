//! The man pages, as a formatter reads them.

use std::process::Command;

use weir_tests::proxy::weir_binary;
use weir_tests::temp::TempDir;
use weir_tests::{require, tools};

#[test]
fn a_formatter_warns_of_nothing() {
    require!("mandoc");
    let folder = TempDir::new("man");
    let mut man = Command::new(weir_binary());
    man.args(["man", "--into"]).arg(folder.path()).env("SOURCE_DATE_EPOCH", "1700000000");
    tools::run(&mut man);
    let pages: Vec<_> = std::fs::read_dir(folder.path())
        .expect("the folder")
        .map(|page| page.expect("a page").path())
        .collect();
    assert!(pages.len() > 30, "{pages:?}");
    let mut lint = Command::new("mandoc");
    let output = lint.args(["-T", "lint", "-W", "warning"]).args(&pages).output();
    let output = output.expect("mandoc runs");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.is_empty(), "{told}");
    let page = folder.path().join("weir-check.1");
    let text = tools::run(Command::new("mandoc").args(["-T", "ascii"]).arg(page));
    assert!(text.contains("November 14, 2023") || text.contains("2023-11-14"), "{text}");
}
