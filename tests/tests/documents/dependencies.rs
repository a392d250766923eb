//! Every direct dependency has a row in the list of dependencies, and every row has a dependency.

use std::collections::BTreeMap;

use weir_tests::packages;
use weir_tests::repository;

const DOCUMENT: &str = "docs/dependencies.md";

#[test]
fn every_direct_dependency_has_its_row() {
    let mut named = BTreeMap::new();
    for package in packages::all() {
        let foreign = package.dependencies.into_iter().filter(|it| it.folder.is_none());
        named.extend(foreign.map(|it| (it.name, format!("{}/Cargo.toml", package.folder))));
    }
    repository::expect_none(&findings(&repository::read(DOCUMENT), &named));
}

/// The errors in the rows for these dependencies. Each dependency has a manifest that contains it.
fn findings(document: &str, named: &BTreeMap<String, String>) -> Vec<String> {
    let lines = (1..).zip(document.lines());
    let rows: BTreeMap<&str, usize> = lines
        .filter_map(|(number, line)| Some((line.strip_prefix("| `")?.split('`').next()?, number)))
        .collect();
    let missing = named.iter().filter(|(name, _)| !rows.contains_key(name.as_str()));
    let missing = missing
        .map(|(name, manifest)| format!("{manifest}: {name} has no row in {DOCUMENT}: add one"));
    let stale = rows.iter().filter(|(name, _)| !named.contains_key(**name));
    let stale = stale
        .map(|(name, line)| format!("{DOCUMENT}:{line}: no manifest names {name}: remove the row"));
    missing.chain(stale).collect()
}

#[test]
fn missing_and_stale_rows_are_found() {
    let named = ["a", "b"].map(|name| (name.to_owned(), format!("crates/{name}/Cargo.toml")));
    let findings = |text| findings(text, &named.clone().into());
    assert_eq!(findings("| `a` | for |\n| `b` | for |\n"), [""; 0]);
    assert_eq!(
        findings("| `a` | for |\n| `c` | for |\n"),
        [
            "crates/b/Cargo.toml: b has no row in docs/dependencies.md: add one",
            "docs/dependencies.md:2: no manifest names c: remove the row",
        ]
    );
}
