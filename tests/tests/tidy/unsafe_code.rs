//! `unsafe` is only in the files that ARCHITECTURE.md lists. Crates without such a file forbid unsafe code.

use std::collections::BTreeSet;

use weir_tests::repository;
use weir_tests::source::{self, File};

const DOCUMENT: &str = "ARCHITECTURE.md";
/// The start of the paragraph with the list of files.
const LIST: &str = "`unsafe` is in ";

#[test]
fn unsafe_is_where_the_list_says() {
    let (line, listed) = listed(&repository::read(DOCUMENT));
    repository::expect_none(&findings(line, &listed, source::files()));
}

/// The line of the list, and the listed files.
fn listed(document: &str) -> (usize, BTreeSet<String>) {
    let (before, list) = document.split_at(document.find(LIST).unwrap_or(document.len()));
    let paragraph = list.split("\n\n").next().unwrap_or_default();
    let quoted = paragraph.split('`').skip(1).step_by(2);
    let files = quoted.filter(|name| name.ends_with(".rs")).map(str::to_owned).collect();
    (before.matches('\n').count() + 1, files)
}

fn findings(line: usize, listed: &BTreeSet<String>, files: &[File]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files {
        if let (Some(first), false) = (file.unsafe_lines.first(), listed.contains(&file.path)) {
            findings.push(format!(
                "{}:{first}: unsafe code, and the list in {DOCUMENT}:{line} does not have this file: \
                 find a safe way, or add it to the list",
                file.path
            ));
        }
    }
    for path in listed {
        if !files.iter().any(|file| file.path == *path && !file.unsafe_lines.is_empty()) {
            findings.push(format!(
                "{DOCUMENT}:{line}: {path} has no unsafe code: remove it from the list"
            ));
        }
    }
    findings.extend(files.iter().filter_map(|file| not_forbidden(file, listed)));
    findings
}

/// A finding if the root of a crate or program could forbid unsafe code and does not.
fn not_forbidden(file: &File, listed: &BTreeSet<String>) -> Option<String> {
    let is_root = file.path.starts_with("crates/")
        && ["src/lib.rs", "src/main.rs"].iter().any(|root| file.path.ends_with(root));
    let folder = format!("{}/src/", file.package());
    let has_unsafe = listed.iter().any(|path| path.starts_with(&folder));
    (is_root && !has_unsafe && !file.forbids_unsafe).then(|| {
        format!("{}:1: the crate has no unsafe code: say #![forbid(unsafe_code)]", file.path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Title\n\n**Invariant:** it is good.\n`unsafe` is in `crates/a/src/x.rs`\nand \
                        `crates/a/src/y.rs`.\n\nNot in `crates/a/src/z.rs`.\n";

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let (line, listed) = listed(TEXT);
        let files: Vec<File> = files.iter().map(|(path, text)| source::read(path, text)).collect();
        let findings = findings(line, &listed, &files);
        assert_eq!(findings.len(), expected.len(), "{findings:#?}");
        for (finding, expected) in findings.iter().zip(expected) {
            assert!(finding.contains(expected), "{finding}");
        }
    }

    #[test]
    fn the_list_is_read() {
        let expected = ["crates/a/src/x.rs", "crates/a/src/y.rs"].map(str::to_owned);
        assert_eq!(listed(TEXT), (4, expected.into()));
    }

    #[test]
    fn unsafe_elsewhere_and_lists_of_nothing_are_found() {
        const UNSAFE: &str = "fn f() {\n    unsafe { g() }\n}\n";
        const SAFE: &str = "// unsafe\n/// unsafe\nconst F: &str = \"unsafe\";\n";
        let listed = [("crates/a/src/x.rs", UNSAFE), ("crates/a/src/y.rs", UNSAFE)];
        let with = |file| [listed[0], listed[1], file];
        check(&listed, &[]);
        check(&with(("crates/a/src/lib.rs", SAFE)), &[]);
        check(&with(("crates/a/src/z.rs", UNSAFE)), &["crates/a/src/z.rs:2: unsafe code"]);
        check(&with(("crates/b/src/lib.rs", SAFE)), &["say #![forbid(unsafe_code)]"]);
        check(&with(("crates/b/src/lib.rs", "#![forbid(unsafe_code)]\n")), &[]);
        check(&[listed[0], ("crates/a/src/y.rs", SAFE)], &["crates/a/src/y.rs has no unsafe code"]);
        check(&listed[..1], &["crates/a/src/y.rs has no unsafe code"]);
    }
}
