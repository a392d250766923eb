//! Files of a crate use each other in one direction: there is no circle of files.
//!
//! A file uses another by a path to that, in `use` or in code. A module that only shows names of the modules below it (`pub use`) does not
//! use them.

use std::collections::{BTreeMap, BTreeSet};

use weir_tests::repository;
use weir_tests::source::{self, File};

/// The modules of a crate, and those that each of them uses. The root is the empty name.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// The name of the module of a file: `worker::edge`; `None`: the file is not part of a crate's library or program.
fn module_of(file: &File) -> Option<String> {
    let within = file.module().strip_prefix(file.package())?.strip_prefix("/src")?;
    let name = within.trim_start_matches('/').replace('/', "::");
    Some(if matches!(&*name, "lib" | "main") { String::new() } else { name })
}

/// The module that a path in a module leads to, the deepest one that exists.
fn target(modules: &Uses, module: &str, path: &[String]) -> String {
    let mut place: Vec<&str> = match &*path[0] {
        "crate" => Vec::new(),
        _ => module.split("::").filter(|name| !name.is_empty()).collect(),
    };
    for name in path {
        match name.as_str() {
            "crate" | "self" => {}
            "super" => _ = place.pop(),
            name => place.push(name),
        }
    }
    while !modules.contains_key(&place.join("::")) && place.pop().is_some() {}
    place.join("::")
}

fn uses(files: &[&File]) -> Uses {
    let named = files.iter().filter_map(|file| Some((module_of(file)?, *file)));
    let named: BTreeMap<String, &File> = named.collect();
    let mut uses: Uses = named.keys().map(|module| (module.clone(), BTreeSet::new())).collect();
    for (module, file) in named {
        let targets = file.paths.iter().map(|path| target(&uses, &module, path));
        let targets: BTreeSet<String> = targets.filter(|target| *target != module).collect();
        uses.insert(module, targets);
    }
    uses
}

/// What is left of the uses without files that use none of the others, or that none of the others uses: the circles, and what
/// connects them.
fn circles(mut uses: Uses) -> Uses {
    loop {
        let before = uses.len();
        let used: BTreeSet<String> = uses.values().flatten().cloned().collect();
        uses.retain(|module, targets| used.contains(module) && !targets.is_empty());
        let left: BTreeSet<String> = uses.keys().cloned().collect();
        uses.values_mut().for_each(|targets| targets.retain(|target| left.contains(target)));
        if uses.len() == before {
            return uses;
        }
    }
}

fn findings(files: &[File]) -> Vec<String> {
    let mut crates: BTreeMap<&str, Vec<&File>> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.is_test) {
        crates.entry(file.package()).or_default().push(file);
    }
    let mut findings = Vec::new();
    for (package, files) in crates {
        for (module, targets) in circles(uses(&files)) {
            let targets: Vec<String> = targets.into_iter().collect();
            findings
                .push(format!("{package}: `{module}` uses `{}` in a circle", targets.join("`, `")));
        }
    }
    findings
}

#[test]
fn files_use_each_other_in_one_direction() {
    repository::expect_none(&findings(source::files()));
}

#[test]
fn circles_are_found() {
    let check = |texts: &[(&str, &str)]| {
        let read =
            |(path, text): &(&str, &str)| source::read(&format!("crates/x/src/{path}"), text);
        findings(&texts.iter().map(read).collect::<Vec<_>>())
    };
    let none: [&str; 0] = [];
    assert_eq!(
        check(&[("lib.rs", "mod a;\nmod b;"), ("a.rs", "use crate::b::B;"), ("b.rs", "")]),
        none
    );
    assert_eq!(
        check(&[
            ("lib.rs", "mod a;\nmod b;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "fn f() { super::a::g(); }"),
            ("c.rs", "use crate::a::A;"),
        ]),
        ["crates/x: `a` uses `b` in a circle", "crates/x: `b` uses `a` in a circle"]
    );
    // A folder and its files.
    assert_eq!(
        check(&[("a/mod.rs", "use self::b::B;"), ("a/b.rs", "use super::A;")]),
        ["crates/x: `a` uses `a::b` in a circle", "crates/x: `a::b` uses `a` in a circle"]
    );
    assert_eq!(check(&[("a/mod.rs", "pub use self::b::B;"), ("a/b.rs", "use super::A;")]), none);
    assert_eq!(
        check(&[
            ("a.rs", "#[cfg(test)]\nmod tests { use crate::b::B; }"),
            ("b.rs", "use crate::a::A;")
        ]),
        none
    );
}
