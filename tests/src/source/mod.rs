//! The definitions in the repository's Rust files, read by a parser: functions, types, their members, and `unsafe`.

mod paths;
mod reader;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::repository;
pub use reader::read;

/// A Rust file.
#[derive(Debug)]
pub struct File {
    /// The path from the repository's root.
    pub path: String,
    /// Number of lines.
    pub lines: usize,
    /// Whether it is compiled only for tests and benchmarks.
    pub is_test: bool,
    /// Lines with the word `unsafe` in code.
    pub unsafe_lines: Vec<usize>,
    /// Whether it forbids unsafe code.
    pub forbids_unsafe: bool,
    /// The definitions.
    pub items: Vec<Item>,
    /// Files (without extension) that this file declares as modules for tests only.
    pub test_modules: Vec<String>,
    /// Paths to other modules of the crate, without those in tests. Each begins with `crate`, `self` or `super`.
    pub paths: Vec<Vec<String>>,
    /// All identifiers, and the words of all string literals; without comments.
    pub words: BTreeSet<String>,
}

/// A named item.
#[derive(Debug)]
pub struct Item {
    /// The name.
    pub name: String,
    /// The kind.
    pub kind: Kind,
    /// The type or trait that contains it.
    pub of: Option<String>,
    /// For a field, the last word of the type's path; `None` for a type without a path.
    pub field_type: Option<String>,
    /// For a free function, the type of its first argument, if it may change that; otherwise `None`.
    pub changes: Option<String>,
    /// The first line, from 1.
    pub line: usize,
    /// The last line.
    pub last_line: usize,
    /// Whether it is compiled only for tests.
    pub is_test: bool,
}

/// The kinds of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A function with a body.
    Function,
    /// A function of a type, outside of traits.
    Method,
    /// A function of a trait, or of an implementation of a trait.
    TraitMethod,
    /// A struct with this number of fields.
    Struct(usize),
    /// An enum, a union, a trait or a type alias.
    Type,
    /// A field, or a variant of an enum.
    Part,
    /// A constant, a static, or an associated type.
    Other,
    /// A module within the file.
    Module,
}

impl Item {
    /// Whether it is a function of any kind.
    pub fn is_function(&self) -> bool {
        matches!(self.kind, Kind::Function | Kind::Method | Kind::TraitMethod)
    }

    /// Whether it is a type or trait.
    pub fn is_type(&self) -> bool {
        matches!(self.kind, Kind::Struct(_) | Kind::Type)
    }

    /// Number of lines.
    pub fn lines(&self) -> usize {
        self.last_line + 1 - self.line
    }
}

impl File {
    /// The crate's folder: the part of the path before `src`, `tests`, `benches` or another target.
    pub fn package(&self) -> &str {
        let parts = ["/src/", "/tests/", "/benches/", "/fuzz_targets/", "/soak/", "/build.rs"];
        let ends = parts.iter().filter_map(|part| self.path.find(part));
        ends.min().map_or("", |end| &self.path[..end])
    }

    /// The path without extension; for `mod.rs`, the folder.
    pub fn module(&self) -> &str {
        let path = self.path.trim_end_matches(".rs");
        path.strip_suffix("/mod").unwrap_or(path)
    }
}

/// All Rust files of the repository.
pub fn files() -> &'static [File] {
    static FILES: LazyLock<Vec<File>> = LazyLock::new(read_all);
    &FILES
}

fn read_all() -> Vec<File> {
    let paths = repository::files("rs");
    // Two threads, because tests on these files spend most of their time with parsing.
    let (one, other) = paths.split_at(paths.len() / 2);
    let all = |paths: &[String]| -> Vec<File> {
        paths.iter().map(|path| read(path, &repository::read(path))).collect()
    };
    let mut files = std::thread::scope(|scope| {
        let other = scope.spawn(|| all(other));
        let mut files = all(one);
        files.extend(other.join().expect("the other half"));
        files
    });
    mark_test_modules(&mut files);
    files
}

/// Marks as test code the files that other files declare as modules for tests only, and the modules below them.
fn mark_test_modules(files: &mut [File]) {
    let modules: BTreeSet<String> =
        files.iter().flat_map(|file| file.test_modules.iter().cloned()).collect();
    for file in files {
        let is_below = |module: &String| {
            file.module()
                .strip_prefix(module.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if modules.iter().any(is_below) {
            file.is_test = true;
            file.items.iter_mut().for_each(|item| item.is_test = true);
        }
    }
}
