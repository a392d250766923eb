use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::catalogue;
use crate::record::Run;
use crate::report::testing;
use crate::run_files as files;

fn kept(folder: &str, run: Run) -> ReportedRun {
    let report = Report::new(run);
    let verdicts = Verdicts::new(&report);
    ReportedRun { folder: folder.to_owned(), report, verdicts }
}

#[test]
fn every_row_is_of_the_catalogue() {
    for row in ROWS {
        let test = catalogue::test(row.test).unwrap_or_else(|| panic!("no test {}", row.test));
        assert!(test.figures.contains(&row.figure), "{}: {:?}", row.test, row.figure);
    }
    let block = block(&[kept("runs/a", testing::run())]).expect("a block");
    for row in ROWS {
        assert!(block.contains(&format!("| {} |", escaped(row.label))), "no {}", row.label);
    }
}

#[test]
fn a_block_tells_values_ratios_and_losses() {
    let mut run = testing::run();
    run.tests.retain(|test| test.name == "l7-requests");
    for point in &mut run.tests[0].points {
        let us = match &*point.product {
            "weir" => 40.0,
            "nginx" => 50.0,
            "haproxy" => 60.0,
            _ => 100.0,
        };
        point.cost.busy_s = point.load.requests as f64 * us / 1e6;
        point.cost.elapsed_s = point.load.elapsed_s;
    }
    let mut product = run.products[0].clone();
    product.commit = Some("0123abc".to_owned());
    product.tls = Some("rustls 0.23.1".to_owned());
    run.products[0] = product;
    let told = block(&[kept("runs/a", run.clone())]).expect("a block");
    for part in [
        "[`weir bench run full --peers haproxy,nginx,envoy,pingora`](runs/a/report.md), begun 2026-11-21, weir at \
         commit 0123abc, on ",
        "TLS by rustls 0.23.1 of weir.",
        "|  | weir 0.1.0 | nginx 1.22.1 | HAProxy 2.6.12 | Envoy 1.40.0 | relay | ratio |",
        "| **40.0 µs** | 50.0 µs | 60.0 µs | 100 µs | 100 µs | 0.80 (0.80–0.80) of nginx, won |",
        "- Of 3 goals: reached ",
    ] {
        assert!(told.contains(part), "no {part:?} in\n{told}");
    }
    for point in run.tests[0].points.iter_mut().filter(|point| point.product == "weir") {
        point.cost.busy_s *= 2.0;
    }
    let told = block(&[kept("runs/a", run)]).expect("a block");
    for part in [
        "| 80.0 µs | 50.0 µs |",
        "of nginx, lost |",
        "- Lost: `l7-requests`: CPU per request",
        "- Missed: `l7-requests`: ",
    ] {
        assert!(told.contains(part), "no {part:?} in\n{told}");
    }
    assert!(!told.contains("**"), "{told}");
}

#[test]
fn of_two_runs_the_later_one_tells_of_a_test() {
    let only = |names: &[&str]| {
        let mut run = testing::run();
        run.tests.retain(|test| names.contains(&&*test.name));
        run
    };
    let both = || kept("runs/both", only(&["l7-requests", "http2"]));
    let one = || kept("runs/one", only(&["http2"]));
    let text = block(&[both(), one()]).expect("a block");
    let (first, second) = text.split_once("runs/one").expect("both runs");
    assert!(
        first.contains("CPU per request: 128 B, 10 requests per connection")
            && !first.contains("HTTP/2 over TLS")
    );
    assert!(second.contains("HTTP/2 over TLS"), "{second}");
    assert_eq!(block(&[one(), both()]), Err("runs/one"));
}

/// A folder with a run and a README.
fn folder_with(readme: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("runs/a");
    fs::create_dir_all(&run).expect("a folder");
    files::write(&run, &testing::run()).expect("the run's files");
    let path = folder.path().join("README.md");
    fs::write(&path, readme).expect("a file");
    (folder, path)
}

#[test]
fn a_figure_that_was_typed_is_noticed() {
    let (folder, readme) =
        folder_with("# A\n\n<!-- bench:summary -->\nold\n<!-- /bench:summary -->\n\nEnd.\n");
    write(&readme, &[folder.path().join("runs/a")]).expect("a block");
    let text = fs::read_to_string(&readme).expect("the README");
    assert!(text.starts_with("# A\n\n<!-- bench:summary runs/a -->\n[`weir bench run"), "{text}");
    assert!(text.ends_with("\n<!-- /bench:summary -->\n\nEnd.\n"), "{text}");
    assert!(is_current(&readme).expect("a block"));
    // Generated again from the run in the mark.
    write(&readme, &[]).expect("a block");
    assert_eq!(fs::read_to_string(&readme).expect("the README"), text);
    let digit = text.find(" µs").expect("a figure") - 1;
    let other = if &text[digit..=digit] == "7" { "8" } else { "7" };
    fs::write(&readme, format!("{}{other}{}", &text[..digit], &text[digit + 1..])).expect("a file");
    assert!(!is_current(&readme).expect("a block"));
}

#[test]
fn faults_say_how_to_mend_them() {
    let check = |readme: &str, runs: &[&str], expected: &str| {
        let (folder, path) = folder_with(readme);
        let runs: Vec<PathBuf> = runs.iter().map(|run| folder.path().join(run)).collect();
        let error = write(&path, &runs).expect_err("a fault").to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(fs::read_to_string(&path).expect("the README"), readme);
    };
    let marks = "<!-- bench:summary -->\n<!-- /bench:summary -->\n";
    check(
        "nothing",
        &["runs/a"],
        "put the lines `<!-- bench:summary -->` and `<!-- /bench:summary -->`",
    );
    check(marks, &[], "names no run; name the runs: weir bench summary RUN… --into");
    check(marks, &["runs/b"], "runs/b");
    check(marks, &["runs/a", "runs/a"], "leave it out");
    check(marks, &["../"], "outside the repository of the document");
}

#[test]
fn a_document_in_another_folder_links_to_its_runs() {
    let (folder, _readme) = folder_with("");
    fs::create_dir(folder.path().join(".git")).expect("a folder");
    let path = folder.path().join("docs/performance.md");
    fs::create_dir(folder.path().join("docs")).expect("a folder");
    fs::write(&path, "<!-- bench:summary -->\n<!-- /bench:summary -->\n").expect("a file");
    write(&path, &[folder.path().join("runs/a")]).expect("a block");
    let text = fs::read_to_string(&path).expect("the document");
    assert!(text.starts_with("<!-- bench:summary ../runs/a -->\n"), "{text}");
    assert!(text.contains("](../runs/a/report.md)"), "{text}");
    assert!(is_current(&path).expect("a block"));
}

#[test]
fn the_brief_table_has_each_of_its_rows_once() {
    for (test, figure, at) in rows::BRIEF {
        let is_row =
            |row: &&Row| row.test == test && row.figure == figure && row.at.total_cmp(&at).is_eq();
        assert_eq!(ROWS.iter().filter(is_row).count(), 1, "{test}");
    }
    let only = |names: &[&str]| {
        let mut run = testing::run();
        run.tests.retain(|test| names.contains(&&*test.name));
        run
    };
    let (first, second) =
        (kept("runs/a", only(&["l7-requests", "http2"])), kept("runs/b", only(&["http2"])));
    let table = brief::brief(&[first, second]).expect("a table");
    assert!(
        table.starts_with("|  | weir | best other product | ratio |\n|---|---:|---:|---|\n"),
        "{table}"
    );
    let lines: Vec<&str> = table.lines().skip(2).collect();
    assert_eq!(lines.len(), 2, "{table}");
    assert!(
        lines[0].starts_with("| CPU per request: 128 B, 10 requests per connection"),
        "{table}"
    );
    assert!(lines[1].starts_with("| CPU per request: 128 B, HTTP/2 over TLS"), "{table}");
    let same = [kept("runs/a", only(&["http2"])), kept("runs/c", only(&["http2"]))];
    assert_eq!(brief::brief(&same), Err("runs/a"));
}

#[test]
fn the_documents_of_this_project_equal_their_kept_runs() {
    for name in ["README.md", "docs/performance.md"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
        let is_current = is_current(&path).expect("a document with its runs");
        assert!(is_current, "{name} differs from its kept runs: weir bench summary --into {name}");
    }
}
