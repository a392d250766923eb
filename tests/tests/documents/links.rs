//! The targets of links within the repository exist.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use weir_tests::repository;

#[test]
fn links_lead_somewhere() {
    let documents: Vec<(String, String)> = repository::files("md")
        .into_iter()
        .map(|path| {
            let text = repository::read(&path);
            (path, text)
        })
        .collect();
    let exists = |path: &Path| repository::root().join(path).exists();
    repository::expect_none(&findings(&documents, exists));
}

/// The broken links of these documents (paths and texts).
fn findings(documents: &[(String, String)], exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let headings: BTreeMap<PathBuf, Vec<String>> =
        documents.iter().map(|(path, text)| (path.into(), anchors(text))).collect();
    let mut findings = Vec::new();
    for (path, text) in documents {
        for (line, target) in links(text) {
            if target.contains("://") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let file = resolve(path, file);
            let place = format!("{path}:{line}: the link to {target} leads to");
            if !exists(&file) {
                findings.push(format!("{place} no file: mend or remove it"));
            } else if !anchor.is_empty()
                && !headings.get(&file).is_some_and(|it| it.iter().any(|it| it == anchor))
            {
                let file = file.display();
                findings.push(format!("{place} no heading of {file}: name one that it has"));
            }
        }
    }
    findings
}

/// The lines outside code blocks, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The targets of all links, with their line numbers.
pub fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (number, line) in prose(text) {
        let without_code = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let targets = without_code.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        links.extend(targets.map(|target| (number, target.to_owned())));
    }
    links
}

/// The anchors of a document's headings, as links use them.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in prose(text).filter(|(_, line)| line.starts_with('#')) {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|it| it.is_alphanumeric() || "-_ ".contains(*it));
        let anchor: String = kept.map(|it| if it == ' ' { '-' } else { it }).collect();
        let numbered =
            |number| if number == 0 { anchor.clone() } else { format!("{anchor}-{number}") };
        let free = (0..).map(numbered).find(|it| !anchors.contains(it));
        anchors.extend(free);
    }
    anchors
}

/// The path from the root of a link's target. An empty target is the document itself.
pub fn resolve(document: &str, target: &str) -> PathBuf {
    if target.is_empty() {
        return document.into();
    }
    let mut file = PathBuf::from(document);
    file.pop();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => drop(file.pop()),
            part => file.push(part),
        }
    }
    file
}

#[test]
fn links_to_nothing_are_found() {
    let about =
        "# What it is\n\n## `Type` and more\n[that](../README.md#title), [here](#what-it-is)\n";
    let code =
        "```\n[no](link)\n# No heading\n```\n`[no](link)` [`code`](docs/about.md#type-and-more)\n";
    let documents = |more: &str| {
        let readme = format!(
            "# Title\n# Title\n[far](https://example.com/#none) [again](#title-1)\n{code}{more}\n"
        );
        [("README.md".to_owned(), readme), ("docs/about.md".to_owned(), about.to_owned())]
    };
    let check = |more: &str, expected: &[&str]| {
        let exists = |path: &Path| path == "README.md" || path == "docs/about.md";
        assert_eq!(findings(&documents(more), exists), expected);
    };
    check("", &[]);
    let nowhere = "README.md:9: the link to docs/none.md leads to no file: mend or remove it";
    check("[x](docs/none.md)", &[nowhere]);
    let untitled = "README.md:9: the link to docs/about.md#none leads to no heading of docs/about.md: \
                    name one that it has";
    check("[x](docs/about.md#none)", &[untitled]);
    let within = "README.md:9: the link to #no-heading leads to no heading of README.md: name one that it has";
    check("[x](#no-heading)", &[within]);
}
