//! The documentation site contains every page of `docs/`, and all link targets of its pages.

use std::collections::BTreeSet;
use std::path::Path;

use weir_tests::{repository, tools};

use crate::links::{links, resolve};

const SUMMARY: &str = "docs/SUMMARY.md";

/// Other files and folders that `scripts/build-site` copies to the site.
const COPIED: [&str; 5] = ["examples", "packaging", "bench/coraza", "bench/peers", "LICENSE"];

/// The folders for which the site has an index page.
const LISTED: [&str; 4] = ["docs/decisions", "examples", "packaging", "bench/peers"];

fn is_below(path: &str, folders: &[&str]) -> bool {
    folders.iter().any(|folder| Path::new(path).starts_with(folder))
}

/// The paths of the site's pages.
fn pages() -> BTreeSet<String> {
    let targets = links(&repository::read(SUMMARY)).into_iter().map(|(_, target)| target);
    targets.map(|target| resolve(SUMMARY, &target).display().to_string()).collect()
}

#[test]
fn every_document_is_a_page() {
    let pages = pages();
    let documents = repository::files("md").into_iter().filter(|path| path.starts_with("docs/"));
    let missing = documents.filter(|path| path != SUMMARY && !pages.contains(path));
    let missing: Vec<String> =
        missing.map(|path| format!("{path}: name it in {SUMMARY}")).collect();
    repository::expect_none(&missing);
}

#[test]
fn every_link_of_the_site_leads_to_a_page_or_a_copied_file() {
    let pages = pages();
    assert!(pages.len() > 40, "{pages:?}");
    let mut findings = Vec::new();
    for page in &pages {
        for (line, target) in links(&repository::read(page)) {
            if target.contains("://") || target.starts_with('#') {
                continue;
            }
            let file = target.split('#').next().unwrap_or_default();
            let file = resolve(page, file).display().to_string();
            let is_folder = repository::root().join(&file).is_dir();
            let folders: &[&str] = if is_folder { &LISTED } else { &COPIED };
            if !pages.contains(&file) && !is_below(&file, folders) {
                findings.push(format!(
                    "{page}:{line}: the site has no {file}: name it in {SUMMARY}, or link to something else"
                ));
            }
        }
    }
    repository::expect_none(&findings);
}

/// Assembles the pages without mdBook, which need not be installed.
#[test]
fn the_pages_are_put_together() {
    let script = repository::root().join("scripts/build-site");
    let mut command = std::process::Command::new(script);
    let summary = tools::run(command.arg("--stage-only"));
    let summary = repository::root().join(summary.trim());
    let text = std::fs::read_to_string(&summary).expect("the summary");
    let root = summary.parent().expect("a folder");
    let targets = links(&text);
    assert_eq!(targets.len(), pages().len());
    for (line, target) in targets {
        assert!(root.join(&target).is_file(), "line {line}: {target}");
    }
    for path in COPIED {
        assert!(root.join(path).exists(), "{path}");
    }
    for folder in LISTED {
        assert!(root.join(folder).join("index.html").is_file(), "{folder}");
    }
}
