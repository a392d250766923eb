//! The tables for users of other products: each row links to the section about it, and lists tests that exist.

use std::collections::BTreeMap;

use weir_tests::repository::{expect_none, files, read};

use crate::quoted;

const DOCUMENT: &str = "docs/traffic-management.md";
const HEADING: &str = "## From BIG-IP or NetScaler";
const HEAD: &str = "| BIG-IP LTM | NetScaler | weir | test |";
/// The folder of tests whose names have no folder.
const SCENARIOS: &str = "tests/tests/";

#[test]
fn each_row_has_a_link_and_tests() {
    let sources = files("rs").into_iter().map(|path| (path.clone(), read(&path))).collect();
    let (rows, findings) = findings(&read(DOCUMENT), &sources);
    assert!(rows > 50, "the tables are read: {rows} rows");
    expect_none(&findings);
}

/// The number of rows, and the errors in them. `sources` contains the text of each source file by path.
fn findings(document: &str, sources: &BTreeMap<String, String>) -> (usize, Vec<String>) {
    let (mut rows, mut findings) = (0, Vec::new());
    let lines = (1..).zip(document.lines()).skip_while(|(_, line)| *line != HEADING);
    for (number, line) in lines.filter(|(_, line)| line.starts_with("| ") && *line != HEAD) {
        rows += 1;
        let place = format!("{DOCUMENT}:{number}");
        let [_, _, here, tests] = line.trim_matches('|').split(" | ").collect::<Vec<_>>()[..]
        else {
            findings.push(format!("{place}: a row has four cells"));
            continue;
        };
        if !here.contains("](") {
            findings.push(format!("{place}: link {here} to the section that explains it"));
        }
        findings.extend(
            missing(tests, sources).into_iter().map(|problem| format!("{place}: {problem}")),
        );
    }
    (rows, findings)
}

/// Non-existent tests in a cell of the form "`FILE`: `NAME`, `NAME`; `FILE`: `NAME`".
fn missing(tests: &str, sources: &BTreeMap<String, String>) -> Vec<String> {
    let (mut missing, mut file, mut count) = (Vec::new(), String::new(), 0);
    for (_, name) in quoted(tests) {
        if name.ends_with(".rs") || name.ends_with('/') {
            let is_scenario = name.trim_end_matches('/').split('/').count() == 1;
            file = if is_scenario { format!("{SCENARIOS}{name}") } else { name.to_owned() };
            continue;
        }
        count += 1;
        let function = format!("fn {name}()");
        let mut of_file = sources.iter().filter(|(path, _)| path.starts_with(&file));
        if file.is_empty() || !of_file.any(|(_, text)| text.contains(&function)) {
            missing.push(format!("{file} has no test {name}"));
        }
    }
    if count == 0 {
        missing.push("name a test".to_owned());
    }
    missing
}

#[test]
fn rows_without_a_link_or_a_test_are_found() {
    let sources = [
        ("tests/tests/a.rs", "#[test]\nfn one() {}"),
        ("crates/b/src/c.rs", "#[test]\n    fn two() {}"),
    ];
    let sources = sources.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
    let check = |row: &str, expected: &[&str]| {
        let document = format!("| not this |\n{HEADING}\n{HEAD}\n|---|---|---|---|\n{row}\n");
        let expected = expected.iter().map(|problem| format!("{DOCUMENT}:5: {problem}")).collect();
        assert_eq!(findings(&document, &sources), (1, expected), "{row}");
    };
    check("| x | y | [z](#z) | `a.rs`: `one`; `crates/b/src/c.rs`: `two` |", &[]);
    check("| x | y | z | `a.rs`: `one` |", &["link z to the section that explains it"]);
    check("| x | y | [z](#z) | `a.rs`: `two` |", &["tests/tests/a.rs has no test two"]);
    check("| x | y | [z](#z) | `a.rs` |", &["name a test"]);
    check("| x | [z](#z) | `a.rs`: `one` |", &["a row has four cells"]);
}
