//! A few figures of several runs in one table: weir and the hardest peer.

use super::rows::{BRIEF, ROWS, Row};
use super::{ReportedRun, column, judgement, values};
use crate::report::markdown::{Page, escaped};
use crate::report::model::TestReport;
use crate::report::story;

/// The table. A later run replaces an earlier run of the same test. The error names a run without a row.
pub fn brief(runs: &[ReportedRun]) -> Result<String, &str> {
    let mut has_row = vec![false; runs.len()];
    let mut page = Page::default();
    page.line("|  | weir | best other product | ratio |");
    page.line("|---|---:|---:|---|");
    for row in ROWS.iter().filter(|row| is_brief(row)) {
        let Some((index, test)) = latest(runs, row) else { continue };
        if let Some(line) = line(&runs[index], test, row) {
            has_row[index] = true;
            page.line(&line);
        }
    }
    match has_row.iter().position(|has_row| !has_row) {
        Some(index) => Err(&runs[index].folder),
        None => Ok(page.text.trim().to_owned() + "\n"),
    }
}

fn is_brief(row: &Row) -> bool {
    BRIEF.iter().any(|(test, figure, at)| {
        row.test == *test && row.figure == *figure && row.at.total_cmp(at).is_eq()
    })
}

/// The last run with the row's test.
fn latest<'a>(runs: &'a [ReportedRun], row: &Row) -> Option<(usize, &'a TestReport)> {
    let of_row =
        |kept: &'a ReportedRun| kept.report.tests.iter().find(|test| test.test.name == row.test);
    runs.iter().enumerate().rev().find_map(|(index, kept)| Some((index, of_row(kept)?)))
}

/// Example: `| goodput: 128 KB objects | 10.9 Gbit/s | 11.9 Gbit/s (nginx 1.31.4) | 0.91 (0.90–0.92), lost |`.
fn line(kept: &ReportedRun, test: &TestReport, row: &Row) -> Option<String> {
    let values = values(kept, test, row)?;
    let found = judgement(kept, row)?;
    let weir = values[kept.report.weir?].clone()?;
    let of_peer = values[found.peer].clone()?;
    Some(format!(
        "| {} | {weir} | {of_peer} ({}) | {}, {} |",
        escaped(row.label),
        escaped(&column(&kept.report, found.peer)),
        story::ratio(&found.ratio),
        found.standing.word()
    ))
}
