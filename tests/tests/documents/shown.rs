//! What a document says is shown by a test has that test.

use weir_tests::repository::{expect_none, read, root};

const COLUMN: &str = "| shown by |";

#[test]
fn tests_that_documents_name_are_there() {
    let tests: String = ["keys", "ladder", "lifetime", "load", "main", "network"]
        .iter()
        .map(|name| read(&format!("tests/tests/fast_l4/{name}.rs")))
        .collect();
    let text = read("docs/layer-4.md");
    let mut rows = text.lines().skip_while(|line| !line.ends_with(COLUMN)).skip(2);
    let mut findings = Vec::new();
    let mut count = 0;
    for row in rows.by_ref().take_while(|line| line.starts_with('|')) {
        let cell = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        let names: Vec<&str> = super::quoted(cell).map(|(_, name)| name).collect();
        let is_there = |name: &&str| {
            root().join(name).is_file() || tests.contains(&format!("#[test]\nfn {name}()"))
        };
        count += names.len();
        if names.is_empty() || !names.iter().all(is_there) {
            findings.push(format!("docs/layer-4.md: no test shows: {row}"));
        }
    }
    assert!(count > 10, "the table is read");
    expect_none(&findings);
}
