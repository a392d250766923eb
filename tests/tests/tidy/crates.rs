//! The dependencies of the crates match the table in ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};

use weir_tests::packages::{self, Package, Scope};
use weir_tests::repository;

const DOCUMENT: &str = "ARCHITECTURE.md";
const HEADING: &str = "| crate | what | may depend on |";

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    /// The folder of the crate.
    folder: String,
    line: usize,
    /// The last parts of the folders of its allowed dependencies.
    uses: BTreeSet<(Scope, String)>,
}

#[test]
fn crates_use_what_the_table_says() {
    let rows = rows(&repository::read(DOCUMENT));
    repository::expect_none(&findings(&rows, &packages::all()));
}

fn rows(document: &str) -> Vec<Row> {
    let lines = (1..).zip(document.lines()).skip_while(|(_, line)| *line != HEADING).skip(2);
    lines.take_while(|(_, line)| line.starts_with('|')).filter_map(row).collect()
}

fn row((line, text): (usize, &str)) -> Option<Row> {
    let cells: Vec<&str> = text.split('|').map(str::trim).collect();
    let folder = cells.get(1)?.trim_matches('`').to_owned();
    Some(Row { folder, line, uses: uses(cells.get(3)?) })
}

/// Parses "`a`, `b`; tests: `c`; simulation: `d`". The dependency `d` requires a feature with that name.
fn uses(cell: &str) -> BTreeSet<(Scope, String)> {
    let mut uses = BTreeSet::new();
    for part in cell.split(';') {
        let scope = match part.trim().split_once(": ") {
            Some(("tests", _)) => Scope::Tests,
            Some(_) => Scope::Feature,
            None => Scope::Always,
        };
        uses.extend(part.split('`').skip(1).step_by(2).map(|name| (scope, name.to_owned())));
    }
    uses
}

fn short(folder: &str) -> &str {
    folder.rsplit('/').next().unwrap_or(folder)
}

fn findings(rows: &[Row], packages: &[Package]) -> Vec<String> {
    let by_folder: BTreeMap<&str, &Package> =
        packages.iter().map(|package| (package.folder.as_str(), package)).collect();
    let mut findings = Vec::new();
    for (above, row) in rows.iter().enumerate() {
        match by_folder.get(row.folder.as_str()) {
            Some(package) => compare(row, package, &rows[..above], &mut findings),
            None => findings.push(format!(
                "{DOCUMENT}:{}: there is no crate in {}: remove its row",
                row.line, row.folder
            )),
        }
    }
    let without_row =
        packages.iter().filter(|package| rows.iter().all(|row| row.folder != package.folder));
    findings.extend(without_row.map(|package| {
        format!(
            "{0}/Cargo.toml:1: the table of crates in {DOCUMENT} has no row for {0}: add one",
            package.folder
        )
    }));
    findings
}

fn compare(row: &Row, package: &Package, above: &[Row], findings: &mut Vec<String>) {
    let ours = package.dependencies.iter().filter_map(|dependency| {
        Some((dependency.scope, short(dependency.folder.as_deref()?).to_owned()))
    });
    let used: BTreeSet<(Scope, String)> = ours.collect();
    let Row { folder, line, uses } = row;
    for (scope, name) in used.difference(uses) {
        findings.push(format!(
            "{folder}/Cargo.toml: uses `{name}` ({scope:?}), which {DOCUMENT}:{line} does not allow: \
             do without it, or add it to the row"
        ));
    }
    for (scope, name) in uses.difference(&used) {
        findings.push(format!(
            "{DOCUMENT}:{line}: allows {folder} to use `{name}` ({scope:?}), which its manifest does not name: \
             remove it from the row"
        ));
    }
    for (_, name) in uses {
        if above.iter().all(|row| short(&row.folder) != name) {
            findings.push(format!(
                "{DOCUMENT}:{line}: the row of `{name}` has to be above that of {folder}: arrows point up"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_tests::packages::Dependency;

    use super::*;

    /// A package with these dependencies.
    fn package(folder: &str, uses: &[(Scope, &str)]) -> Package {
        let dependency = |(scope, folder): &(Scope, &str)| Dependency {
            name: format!("weir-{}", short(folder)),
            folder: Some((*folder).to_owned()),
            scope: *scope,
        };
        Package { folder: folder.to_owned(), dependencies: uses.iter().map(dependency).collect() }
    }

    fn table(lines: &[&str]) -> Vec<Row> {
        rows(&format!("# Crates\n\n{HEADING}\n|---|---|---|\n{}\n\nText\n", lines.join("\n")))
    }

    /// Checks that there is one finding for each text of `expected`, which the finding contains.
    #[track_caller]
    fn check(lines: &[&str], packages: &[Package], expected: &[&str]) {
        let findings = findings(&table(lines), packages);
        assert_eq!(findings.len(), expected.len(), "{findings:#?}");
        for (finding, expected) in findings.iter().zip(expected) {
            assert!(finding.contains(expected), "{finding}");
        }
    }

    #[test]
    fn rows_are_read() {
        let rows =
            table(&["| `crates/a` | what | `b` (its dates), `c`; tests: `d`; simulation: `e` |"]);
        let uses = [
            (Scope::Always, "b"),
            (Scope::Always, "c"),
            (Scope::Feature, "e"),
            (Scope::Tests, "d"),
        ];
        let uses = uses.map(|(scope, name)| (scope, name.to_owned())).into();
        assert_eq!(rows, [Row { folder: "crates/a".to_owned(), line: 5, uses }]);
        assert_eq!(table(&["| `a` | what | nothing of ours |"])[0].uses, BTreeSet::new());
    }

    #[test]
    fn a_table_that_agrees_is_fine() {
        let packages = [package("crates/a", &[]), package("b", &[(Scope::Always, "crates/a")])];
        check(&["| `crates/a` | | nothing of ours |", "| `b` | | `a` |"], &packages, &[]);
    }

    #[test]
    fn what_does_not_agree_is_found() {
        let one = package("crates/a", &[]);
        let other = package("crates/b", &[(Scope::Always, "crates/a")]);
        let packages = [one, other];
        let (a, b) = ("| `crates/a` | | nothing of ours |", "| `crates/b` | | `a` |");
        check(&[a, "| `crates/b` | | |"], &packages, &["crates/b/Cargo.toml: uses `a`"]);
        check(
            &[a, "| `crates/b` | | tests: `a` |"],
            &packages,
            &["uses `a` (Always)", "allows crates/b to use `a` (Tests)"],
        );
        check(
            &["| `crates/a` | | `c` |", b],
            &packages,
            &["allows crates/a to use `c`", "the row of `c`"],
        );
        check(&[b, a], &packages, &["the row of `a` has to be above"]);
        check(&[a, b, "| `crates/c` | | |"], &packages, &["no crate in crates/c"]);
        check(&[a], &packages, &["no row for crates/b"]);
    }
}
