//! Programs that a scenario needs, and that a machine may lack.

use std::path::PathBuf;
use std::process::Command;

pub use weir_testing::skip;

/// Ends the test early with a message if a program is missing.
///
/// `./test` installs all programs. A bare `cargo test` on a machine without them still passes.
/// With `WEIR_TEST_STRICT` set, a missing program is a failure.
#[macro_export]
macro_rules! require {
    ($($program:expr),+ $(,)?) => {
        $(if !$crate::tools::present($program) {
            return;
        })+
    };
}

/// Whether the program is in the search path. Prints the reason for a skip otherwise.
pub fn present(program: &str) -> bool {
    let found = find(program).is_some();
    if !found {
        skip(&format!("{program} is not installed"));
    }
    found
}

/// The path of a program. The search includes folders of administration programs, even if PATH lacks them.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

/// Runs a program to its end and returns its output; panics if it fails.
#[track_caller]
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{text}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// The path in an environment variable. Prints the reason for a skip if it is not set.
pub fn suite(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    match path {
        None => eprintln!("SKIPPED: {variable} does not name the suite"),
        Some(ref path) => assert!(path.exists(), "{variable}: {} does not exist", path.display()),
    }
    path
}
