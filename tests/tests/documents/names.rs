//! Names of files, types, functions and constants in backquotes, in documents about the code, exist in the code.

use std::collections::BTreeSet;

use weir_tests::repository;
use weir_tests::source::{self, File, Item};

use crate::quoted;

/// Documents that describe the code. The decisions are included, too.
const ABOUT_CODE: [&str; 5] = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "THREAT_MODEL.md",
    "docs/flow-control.md",
    "docs/operating.md",
];

/// Documents in which paths of files are relative to the document's folder or to the root.
const ABOUT_FILES: [&str; 4] =
    ["tests/README.md", "simulation/README.md", "fuzz/README.md", "bench/README.md"];

/// The reference of configuration and metrics. Other tests compare it with the code.
const REFERENCE: [&str; 2] = ["docs/configuration.md", "docs/observability.md"];

/// Names that are defined outside this repository.
const FOREIGN: [&str; 10] = [
    "DynamicUser",
    "HTTP_PROXY",
    "LimitNOFILE",
    "Via",
    "X_Forwarded_",
    "close_range",
    "no_new_privs",
    "rustls::kernel",
    "tcp_rmem",
    "tcp_wmem",
];

#[test]
fn files_that_are_named_exist() {
    let exists = |path: &str| repository::root().join(path).exists();
    let mut all = Vec::new();
    for document in ABOUT_CODE.iter().chain(&ABOUT_FILES) {
        all.extend(missing_files(document, &repository::read(document), exists));
    }
    repository::expect_none(&all);
}

fn missing_files(document: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
    let is_missing = |name: &&str| !exists(name) && !exists(&format!("{folder}/{name}"));
    let named = quoted(text).filter(|(_, name)| is_path(name) && is_missing(name));
    named
        .map(|(line, name)| format!("{document}:{line}: there is no file {name}: name one"))
        .collect()
}

fn is_path(name: &str) -> bool {
    const FOLDERS: [&str; 8] =
        ["crates", "tests", "simulation", "fuzz", "bench", "docs", "examples", "src"];
    let Some((first, _)) = name.split_once('/') else { return false };
    let is_pattern = [" ", "*", "<", "TARGET"].iter().any(|sign| name.contains(sign));
    FOLDERS.contains(&first) && !is_pattern
}

#[test]
fn names_that_are_quoted_exist() {
    let reference = REFERENCE.map(repository::read);
    let code = Code::new(source::files(), &reference);
    let mut findings = Vec::new();
    let decisions =
        repository::files("md").into_iter().filter(|it| it.starts_with("docs/decisions/"));
    for document in ABOUT_CODE.map(str::to_owned).into_iter().chain(decisions) {
        findings.extend(code.missing(&document, &repository::read(&document)));
    }
    repository::expect_none(&findings);
}

/// All names of the code.
struct Code<'a> {
    files: Vec<&'a File>,
    words: BTreeSet<&'a str>,
    /// Pairs of a type and the name of its function, field or variant.
    members: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> Code<'a> {
    /// Collects the names in these files and texts. Tests of documents do not count, because they contain names as examples.
    fn new(files: &'a [File], texts: &'a [String]) -> Self {
        let is_code = |file: &&File| {
            !file.path.starts_with("tests/tests/documents")
                && !file.path.starts_with("tests/tests/tidy")
        };
        let files: Vec<&File> = files.iter().filter(is_code).collect();
        let mut words: BTreeSet<&str> =
            files.iter().flat_map(|file| file.words.iter().map(String::as_str)).collect();
        words.extend(
            texts
                .iter()
                .flat_map(|text| text.split(|it: char| !it.is_ascii_alphanumeric() && it != '_')),
        );
        let items = files.iter().flat_map(|file| &file.items);
        let members =
            items.filter_map(|item| Some((item.of.as_deref()?, item.name.as_str()))).collect();
        Self { files, words, members }
    }

    fn missing(&self, document: &str, text: &str) -> Vec<String> {
        let names = quoted(text).filter(|(_, name)| is_code_name(name) && !FOREIGN.contains(name));
        names
            .filter(|(_, name)| !self.has(name))
            .map(|(line, name)| {
                format!(
                    "{document}:{line}: nothing in the code is called {name}: use the name of today"
                )
            })
            .collect()
    }

    fn has(&self, name: &str) -> bool {
        let Some((path, last)) = name.rsplit_once("::") else { return self.words.contains(name) };
        let of = path.rsplit("::").next().unwrap_or(path);
        if of.starts_with(|first: char| first.is_ascii_uppercase()) {
            return self.members.contains(&(of, last));
        }
        self.files
            .iter()
            .any(|file| is_within(file, path) && file.items.iter().any(|it| is_free(it, last)))
    }
}

/// Whether a file belongs to the module or crate `path`, at any depth. An item that `path` exports may be defined there.
fn is_within(file: &File, path: &str) -> bool {
    let parts: Vec<&str> = file.module().split('/').collect();
    path.split("::").all(|part| {
        let crate_name = part.strip_prefix("weir_").map(|name| name.replace('_', "-"));
        parts.contains(&part) || crate_name.is_some_and(|name| parts.contains(&name.as_str()))
    })
}

/// Whether an item has this name and is not a member of a type.
fn is_free(item: &Item, name: &str) -> bool {
    item.of.is_none() && item.name == name
}

/// Whether a quoted text is a name in the code: a function, type or constant, optionally with its type.
fn is_code_name(text: &str) -> bool {
    let last = text.rsplit("::").next().unwrap_or_default();
    let is_type = last.starts_with(|first: char| first.is_ascii_uppercase())
        && last.contains(|character: char| character.is_ascii_lowercase());
    let is_constant = last.contains('_') && last.bytes().all(|byte| !byte.is_ascii_lowercase());
    let is_function = last.contains('_') && last.bytes().all(|byte| !byte.is_ascii_uppercase());
    text.split("::").all(is_identifier)
        && (text.contains("::") || is_type || is_constant || is_function)
}

#[test]
fn names_stand_in_the_files_that_are_named_with_them() {
    let mut findings = Vec::new();
    for document in ABOUT_CODE {
        findings.extend(misplaced(document, &repository::read(document), source::files()));
    }
    repository::expect_none(&findings);
}

fn misplaced(document: &str, text: &str, files: &[File]) -> Vec<String> {
    let is_there = |name: &str, path: &str| {
        let files = files.iter().filter(|file| file.path.starts_with(path));
        files.flat_map(|file| &file.items).any(|item| is_called(item, name))
    };
    let placed = placed(text).into_iter().filter(|(_, name, path)| !is_there(name, path));
    placed
        .map(|(line, name, path)| {
            format!("{document}:{line}: {name} is not defined in {path}: name its file of today")
        })
        .collect()
}

/// Names with a path, as in "`name` (`path`)" and "`name` in `path`", with the line of the path.
fn placed(text: &str) -> Vec<(usize, &str, &str)> {
    let parts: Vec<&str> = text.split('`').collect();
    let mut line = 1;
    let mut placed = Vec::new();
    for part in parts.windows(3) {
        line += part[0].matches('\n').count();
        let is_placed = matches!(part[1].trim(), "(" | "in") && is_path(part[2]);
        if is_placed && part[0].split("::").all(is_identifier) {
            placed.push((line + part[1].matches('\n').count(), part[0], part[2]));
        }
    }
    placed
}

/// Whether this is the name of an item, optionally with its type or module.
fn is_called(item: &Item, name: &str) -> bool {
    let (path, last) = name.rsplit_once("::").unwrap_or(("", name));
    let of = path.rsplit("::").next().filter(|of| of.starts_with(|it: char| it.is_uppercase()));
    item.name == last && of.is_none_or(|of| item.of.as_deref() == Some(of))
}

fn is_identifier(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
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

#[test]
fn names_of_nothing_are_found() {
    let text = "// not_this\nstruct Tap { flow: u8 }\nimpl Tap { fn open_it(&self) {} }\n\
                enum State { Shut }\nfn close_all() { let _ = \"water_level\"; }\n";
    let files = [source::read("crates/sink/src/taps/cold.rs", text)];
    let texts = ["| `basin_size` |".to_owned()];
    let code = Code::new(&files, &texts);
    let known = "`Tap`, `Tap::flow`, `Tap::open_it`, `State::Shut`, `close_all`, `taps::close_all`, \
                 `weir_sink::close_all`, `cold::Tap`, `water_level`, `basin_size`, `other words`";
    assert_eq!(code.missing("A.md", known), [""; 0]);
    for name in
        ["not_this", "Tub", "Tap::close_all", "State::flow", "tubs::close_all", "cold::open_it"]
    {
        let finding =
            format!("A.md:2: nothing in the code is called {name}: use the name of today");
        assert_eq!(code.missing("A.md", &format!("\n`{name}`")), [finding]);
    }
}

#[test]
fn files_that_are_not_there_are_found() {
    let exists = |path: &str| matches!(path, "crates/a.rs" | "tests/tests/b.rs");
    let text = "`crates/a.rs`, `tests/b.rs`, `weir/x`, `src/**`\n`docs/c.md`";
    let expected = ["tests/README.md:2: there is no file docs/c.md: name one"];
    assert_eq!(missing_files("tests/README.md", text, exists), expected);
}

#[test]
fn names_that_are_not_in_their_files_are_found() {
    let files = [
        source::read(
            "crates/sink/src/tap.rs",
            "impl Tap { fn open_it(&self) {} } fn close_all() {}",
        ),
        source::read("crates/sink/src/tub.rs", "fn fill() {}"),
    ];
    let right = "`Tap::open_it` (`crates/sink/src/tap.rs`), `tap::close_all`\nin `crates/sink/src/`, \
                 `close_all` and `crates/sink/src/tub.rs`";
    assert_eq!(misplaced("A.md", right, &files), [""; 0]);
    for name in ["fill", "open_it::Tap", "Tub::open_it"] {
        let text = format!("x\n`{name}`\n(`crates/sink/src/tap.rs`)");
        let finding = format!(
            "A.md:3: {name} is not defined in crates/sink/src/tap.rs: name its file of today"
        );
        assert_eq!(misplaced("A.md", &text, &files), [finding]);
    }
}
