//! The repository's files, for tests that read them.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace's folder").to_owned()
}

/// The content of a file; the path is relative to the root.
pub fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Paths, relative to the root, of all files with this extension, sorted. Build output and results of runs are
/// excluded.
pub fn files(extension: &str) -> Vec<String> {
    let root = root();
    let mut found = Vec::new();
    find(&root, extension, &mut found);
    let relative = found.iter().map(|path| path.strip_prefix(&root).expect("below the root"));
    let mut paths: Vec<String> = relative.map(|path| path.to_string_lossy().into_owned()).collect();
    paths.sort();
    paths
}

fn find(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("a folder's entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            let is_output = matches!(&*name, "target" | "runs" | "corpus" | "artifacts");
            if !is_output && !name.starts_with('.') {
                find(&path, extension, found);
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
}

/// Panics with all findings if there are any.
#[track_caller]
pub fn expect_none(findings: &[String]) {
    assert!(findings.is_empty(), "{} findings\n{}", findings.len(), findings.join("\n"));
}
