//! Passes facts about the build to the program, for `weir --version` and the record of a benchmark.
//!
//! A development build ignores the commit: otherwise each commit would cause a new build of the program, and only programs
//! built with `--release` are measured.

use std::fs;
use std::path::Path;
use std::process::Command;

const ROOT: &str = "../..";
/// The paths of the sources: if they have changes, the program differs from the commit's.
const SOURCES: [&str; 3] = ["crates", "Cargo.toml", "Cargo.lock"];
const TLS_LIBRARIES: [&str; 2] = ["rustls", "aws-lc-rs"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={ROOT}/Cargo.lock");
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = if is_release { commit() } else { "unknown (a build for development)".to_owned() };
    println!("cargo::rustc-env=WEIR_COMMIT={commit}");
    println!("cargo::rustc-env=WEIR_TLS={}", tls_libraries());
}

/// The commit, and whether the sources differ from it. Without the git history, the commit is unknown.
fn commit() -> String {
    let Some(commit) = git(&["rev-parse", "HEAD"]) else {
        return "unknown (no git history)".to_owned();
    };
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]).unwrap_or_default();
    for file in ["HEAD", "packed-refs", &branch] {
        let path = git(&["rev-parse", "--git-path", file]).map(|path| Path::new(ROOT).join(path));
        // A path that does not exist would cause a build each time.
        if let Some(path) = path.filter(|path| path.is_file()) {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    for source in SOURCES {
        println!("cargo::rerun-if-changed={ROOT}/{source}");
    }
    let mut status = vec!["status", "--porcelain", "--untracked-files=no", "--"];
    status.extend(SOURCES);
    match git(&status) {
        Some(changes) if changes.is_empty() => commit,
        _ => format!("{commit}, with changes"),
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(ROOT).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// `rustls 0.23.1, aws-lc-rs 1.19.0`, as in Cargo.lock.
fn tls_libraries() -> String {
    let lock = fs::read_to_string(Path::new(ROOT).join("Cargo.lock")).unwrap_or_default();
    let version = |name: &str| {
        let begin = format!("name = \"{name}\"\nversion = \"");
        let rest = lock.split(&begin).nth(1)?;
        rest.split('"').next().map(|version| format!("{name} {version}"))
    };
    let told: Vec<String> = TLS_LIBRARIES.iter().filter_map(|name| version(name)).collect();
    if told.is_empty() { "unknown".to_owned() } else { told.join(", ") }
}
