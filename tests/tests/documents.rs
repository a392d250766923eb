//! The project's documents name things that are there: files, functions, dependencies.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace's folder").to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Files below `folder` with this extension, build output left out.
fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("a folder's entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            let is_output = matches!(&*name, "target" | "runs" | "corpus" | "artifacts");
            if !is_output && !name.starts_with('.') {
                files(&path, extension, found);
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
}

fn files_of(extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&root(), extension, &mut found);
    found.sort();
    found
}

/// The documents whose links and names are checked.
fn documents() -> Vec<PathBuf> {
    files_of("md")
}

/// What stands between backticks on one line.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// Names of a manifest's dependencies that are not of this workspace.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut section = "";
    let mut names = BTreeSet::new();
    for line in manifest.lines() {
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end().trim_end_matches(']');
            // `[dependencies.name]`
            if let Some((_, name)) = section.split_once("dependencies.") {
                names.insert(name.to_owned());
            }
        } else if section.ends_with("dependencies")
            && let Some((name, _)) = line.split_once(['=', '.'])
            && !name.starts_with('#')
        {
            names.insert(name.trim().to_owned());
        }
    }
    names.retain(|name| !name.starts_with("weir"));
    names
}

#[test]
fn dependencies_are_read_from_every_form() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\na = \"1\"\nb.workspace = true\n\
                    # c = \"1\"\nweir-http.workspace = true\n[dev-dependencies]\nd = { version = \"1\" }\n\
                    [dependencies.e]\nversion = \"1\"\n[[bin]]\nname = \"f\"\n\
                    [target.'cfg(unix)'.dependencies]\ng = \"1\"\n";
    let found: Vec<String> = dependencies(manifest).into_iter().collect();
    assert_eq!(found, ["a", "b", "d", "e", "g"]);
}

#[test]
fn every_direct_dependency_has_its_row() {
    let document = read(&root().join("docs/dependencies.md"));
    let rows: BTreeSet<&str> =
        document.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let mut named = BTreeSet::new();
    for manifest in files_of("toml") {
        if manifest.ends_with("Cargo.toml") {
            named.extend(dependencies(&read(&manifest)));
        }
    }
    let named: BTreeSet<&str> = named.iter().map(String::as_str).collect();
    let missing: Vec<_> = named.difference(&rows).collect();
    let stale: Vec<_> = rows.difference(&named).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "docs/dependencies.md: without a row {missing:?}, without a dependency {stale:?}"
    );
}

#[test]
fn links_lead_to_files() {
    let mut broken = Vec::new();
    for document in documents() {
        let text = read(&document);
        let folder = document.parent().expect("a document's folder");
        for (_, rest) in text.match_indices("](").map(|(at, link)| text.split_at(at + link.len())) {
            let target = rest.split(')').next().unwrap_or_default();
            let path = target.split('#').next().unwrap_or_default();
            if !path.is_empty() && !path.contains("://") && !folder.join(path).exists() {
                broken.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Documents that describe the code as it is.
const ABOUT_CODE: [&str; 4] =
    ["ARCHITECTURE.md", "THREAT_MODEL.md", "docs/flow-control.md", "docs/operating.md"];

#[test]
fn files_that_are_named_exist() {
    let mut missing = Vec::new();
    for document in ABOUT_CODE {
        let text = read(&root().join(document));
        for name in quoted(&text) {
            let first = name.split('/').next().unwrap_or_default();
            let is_path =
                matches!(first, "crates" | "tests" | "fuzz" | "bench" | "docs" | "examples")
                    && !name.contains(' ');
            if is_path && !root().join(name).exists() {
                missing.push(format!("{document}: {name}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Whether a quoted text is the name of something in the code: a function, type or constant, perhaps with
/// the type that it belongs to.
fn is_code_name(text: &str) -> bool {
    let is_identifier = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let last = text.rsplit("::").next().unwrap_or_default();
    let is_type = last.starts_with(|first: char| first.is_ascii_uppercase())
        && last.contains(|character: char| character.is_ascii_lowercase());
    let is_constant = last.contains('_') && last.bytes().all(|byte| !byte.is_ascii_lowercase());
    let is_function = last.contains('_') && last.bytes().all(|byte| !byte.is_ascii_uppercase());
    text.split("::").all(is_identifier)
        && (text.contains("::") || is_type || is_constant || is_function)
}

/// Names that are not from this repository's code.
const FOREIGN: [&str; 7] =
    ["DynamicUser", "LimitNOFILE", "Via", "X_Forwarded_", "close_range", "tcp_rmem", "tcp_wmem"];

#[test]
fn names_that_are_quoted_exist() {
    let mut code = String::new();
    for file in files_of("rs").iter().chain(&files_of("md")) {
        // The documents must not vouch for what they name, nor this test; the reference of the
        // configuration and of the metrics is tested against the code elsewhere.
        let is_reference =
            file.ends_with("docs/configuration.md") || file.ends_with("docs/observability.md");
        let is_code = file.extension().is_some_and(|extension| extension == "rs")
            && !file.ends_with("tests/tests/documents.rs");
        if is_code || is_reference {
            code += &read(file);
        }
    }
    let words: BTreeSet<&str> = code
        .split(|character: char| !character.is_ascii_alphanumeric() && character != '_')
        .collect();
    let mut missing = Vec::new();
    let decisions = fs::read_dir(root().join("docs/decisions")).expect("docs/decisions");
    let decisions = decisions.map(|entry| entry.expect("a decision").path());
    for document in ABOUT_CODE.map(|name| root().join(name)).into_iter().chain(decisions) {
        let text = read(&document);
        for name in quoted(&text).filter(|name| is_code_name(name)) {
            let unknown = name.split("::").find(|part| !words.contains(part));
            if unknown.is_some() && !FOREIGN.contains(&name) {
                missing.push(format!("{}: {name}", document.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn names_of_code_are_told_from_other_text() {
    for (text, expected) in [
        ("READ_BUFFER_BYTES", true),
        ("Worker::begin", true),
        ("supervisor::run", true),
        ("take_connection", true),
        ("Snapshot", true),
        ("weir run FILE", false),
        ("a/b.rs", false),
        ("GET", false),
        ("weir_pool_members{state=\"up\"}", false),
        ("off", false),
    ] {
        assert_eq!(is_code_name(text), expected, "{text}");
    }
}
