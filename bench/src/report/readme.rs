//! Generates the figures of a document from kept runs, between two marks.
//!
//! The opening mark names the runs, so the block can be generated again from the document alone; a test does that and
//! compares. There are two kinds of block: the summary has a table per run, the brief one has a few rows from all runs.

mod brief;
mod rows;
mod source;

use super::goals::{self, GoalResult};
use super::knee::Knees;
use super::markdown::{Page, escaped, versions};
use super::model::{Report, TestReport};
use super::story;
use super::text;
use super::verdict::{AgainstPeers, Judgement, Subject, Verdicts, difference_told};
use crate::catalogue::{self, Figure, PLAIN_WEIR, is_yardstick};
use rows::{ROWS, Row};

pub use source::{ReadmeError, is_current, print, write};

/// A run of the block.
struct ReportedRun {
    /// The run's folder, relative to the document.
    folder: String,
    report: Report,
    verdicts: Verdicts,
}

/// The summary of these runs, without the marks. A later run replaces an earlier run of the same test. The error names
/// a run without a row.
fn block(runs: &[ReportedRun]) -> Result<String, &str> {
    let mut page = Page::default();
    for (index, kept) in runs.iter().enumerate() {
        let is_told_later = |test: &TestReport| {
            let has_it =
                |other: &ReportedRun| other.report.tests.iter().any(|it| is_same(it, test));
            runs[index + 1..].iter().any(has_it)
        };
        let told: Vec<&TestReport> =
            kept.report.tests.iter().filter(|test| !is_told_later(test)).collect();
        let rows: Vec<(&Row, &TestReport)> = ROWS
            .iter()
            .filter_map(|row| Some((row, *told.iter().find(|test| test.test.name == row.test)?)))
            .collect();
        if rows.is_empty() {
            return Err(&kept.folder);
        }
        page.paragraph(&heading(kept));
        table(&mut page, kept, &rows);
        remarks(&mut page, kept, &told);
    }
    page.paragraph(&format!(
        "Ratio: weir divided by its hardest peer (the peer with the best result), paired by round; the range in \
         brackets is the noise. Bold: weir beat every measured peer by at least {} and by more than the noise. Compare \
         only ratios between runs, not absolute figures. †: did not keep up with the offered rate.",
        difference_told()
    ));
    Ok(page.text.trim().to_owned() + "\n")
}

fn is_same(a: &TestReport, b: &TestReport) -> bool {
    a.test.name == b.test.name
}

/// The heading of a run: date, product versions and machine.
fn heading(kept: &ReportedRun) -> String {
    let ReportedRun { folder, report, .. } = kept;
    let run = &report.run;
    let commit = report.weir.and_then(|weir| run.products[weir].commit.as_deref());
    let commit = match commit {
        Some(commit) => format!("at commit {}", escaped(commit)),
        None => "at a commit that was not recorded".to_owned(),
    };
    let tls = |product: &crate::record::Product| {
        let name = report.called(&product.name);
        Some(format!("{} of {}", escaped(product.tls.as_ref()?), escaped(name)))
    };
    let of_products = run.products.iter().filter(|product| !is_yardstick(&product.name));
    let tls: Vec<String> = of_products.filter_map(tls).collect();
    let tls = if tls.is_empty() { String::new() } else { format!(" TLS by {}.", text::list(&tls)) };
    format!(
        "[`{}`]({folder}/report.md), begun {}, weir {commit}, on {}, {}, {}: {}.{tls}",
        run.command.replace('`', "'"),
        escaped(run.started.get(..10).unwrap_or(&run.started)),
        escaped(run.machine.cpu.trim()),
        text::counted(run.machine.cores, "core"),
        escaped(&run.machine.kernel),
        versions(report),
    )
}

fn table(page: &mut Page, kept: &ReportedRun, rows: &[(&Row, &TestReport)]) {
    let report = &kept.report;
    let cells: Vec<(&str, Vec<Option<String>>, String)> = rows
        .iter()
        .filter_map(|(row, test)| {
            let values = values(kept, test, row)?;
            Some((row.label, values, verdict(kept, test, row)))
        })
        .collect();
    let has_any = |index: &usize| cells.iter().any(|(_, values, _)| values[*index].is_some());
    let columns: Vec<usize> = (0..report.run.products.len()).filter(has_any).collect();
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let names = columns.iter().map(|&index| escaped(&column(report, index)));
    let header: Vec<String> =
        std::iter::once(String::new()).chain(names).chain(["ratio".to_owned()]).collect();
    page.line(&line(header));
    page.line(&format!("|---|{}---|", "---:|".repeat(columns.len())));
    for (label, values, verdict) in &cells {
        let values = columns.iter().map(|&index| values[index].clone().unwrap_or("–".to_owned()));
        let row = std::iter::once(escaped(label)).chain(values).chain([verdict.clone()]);
        page.line(&line(row.collect()));
    }
}

/// Example: `nginx 1.22.1`; for a yardstick, its description.
fn column(report: &Report, index: usize) -> String {
    let label = report.label(index);
    if is_yardstick(report.product(index)) {
        return label.to_owned();
    }
    match text::short_version_number(&report.run.products[index].version) {
        Some(number) if !label.contains(number) => format!("{label} {number}"),
        _ => label.to_owned(),
    }
}

/// The value of each product; `None` if the run lacks the row's test, figure or setting.
fn values(kept: &ReportedRun, test: &TestReport, row: &Row) -> Option<Vec<Option<String>>> {
    let (report, figure) = (&kept.report, row.figure);
    let products = 0..report.run.products.len();
    let is_won = judgement(kept, row).is_some_and(|found| found.standing == AgainstPeers::Won);
    let told = |index: usize, value: f64, mark: &str| {
        let value = format!("{}{mark}", escaped(&text::with_unit(value, figure)));
        if is_won && report.weir == Some(index) { format!("**{value}**") } else { value }
    };
    if let Some(knees) = knees(test, row) {
        let told = |index| Some(told(index, knees.of[index]?.at, ""));
        return Some(products.map(told).collect());
    }
    let setting = test.settings.iter().position(|at| *at == row.at)?;
    let found = test.figures.iter().find(|report| report.figure == figure)?;
    let is_behind = |index| figure.is_latency() && test.fell_behind(setting, index);
    let told = |index: usize| {
        let value = found.cells[setting].values[index]?.median;
        Some(told(index, value, if is_behind(index) { "†" } else { "" }))
    };
    Some(products.map(told).collect())
}

/// The knees, if the row shows them.
fn knees<'a>(test: &'a TestReport, row: &Row) -> Option<&'a Knees> {
    test.knees.as_ref().filter(|_| row.figure == Figure::Rate)
}

fn judgement<'a>(kept: &'a ReportedRun, row: &Row) -> Option<&'a Judgement> {
    kept.verdicts.judgements.iter().find(|found| {
        let is_subject = match found.subject {
            Subject::Figure(figure) => figure == row.figure && found.at == row.at,
            Subject::Knee => row.figure == Figure::Rate,
        };
        found.test.name == row.test && is_subject
    })
}

/// Example: `0.68 (0.61–0.77) of HAProxy, won`.
fn verdict(kept: &ReportedRun, test: &TestReport, row: &Row) -> String {
    let Some(found) = judgement(kept, row) else {
        let is_rate = matches!(row.figure, Figure::Rate | Figure::Goodput);
        let is_judged = test.test.judged.contains(&row.figure);
        return match beside_plain(kept, test, row) {
            _ if is_rate && is_judged => "not judged: the load was the limit".to_owned(),
            Some(ratio) => ratio,
            None => "–".to_owned(),
        };
    };
    let peer = escaped(kept.report.label(found.peer));
    let alone = match found.against {
        1 if kept.report.peers().nth(1).is_some() => ", the only peer",
        _ => "",
    };
    format!("{} of {peer}, {}{alone}", story::ratio(&found.ratio), found.standing.word())
}

/// The ratio to plain weir, in a test without peers whose goal is about the figure. Example: `1.04 (1.02–1.05) of plain
/// weir`.
fn beside_plain(kept: &ReportedRun, test: &TestReport, row: &Row) -> Option<String> {
    let is_meant = |goal: &catalogue::Goal| goal.figure == row.figure;
    if !test.test.judged.is_empty() || !test.test.goals.iter().any(is_meant) {
        return None;
    }
    let report = &kept.report;
    let plain = report.run.products.iter().position(|product| product.name == PLAIN_WEIR)?;
    let setting = test.settings.iter().position(|at| *at == row.at)?;
    let figure = test.figures.iter().find(|found| found.figure == row.figure)?;
    let ratio = figure.cells[setting].ratios[plain]?;
    Some(format!("{} of {}", story::ratio(&ratio), escaped(report.label(plain))))
}

/// Outcomes of goals that the document lists.
const MISSED: [GoalResult; 2] = [GoalResult::Missed, GoalResult::MissedByMedian];

/// Wins, losses and undecided figures of the run, and its missed goals.
fn remarks(page: &mut Page, kept: &ReportedRun, told: &[&TestReport]) {
    let ReportedRun { report, verdicts, .. } = kept;
    page.paragraph(&escaped(&story::tally(report, verdicts).join(" ")));
    for lost in verdicts.with(AgainstPeers::Lost) {
        let sentence = escaped(&story::sentence(report, lost));
        page.line(&format!("- Lost: `{}`: {sentence}", lost.test.name));
    }
    let mut outcomes = Vec::new();
    for test in told {
        let of_test = goals::outcomes(report, test);
        outcomes.extend(of_test.into_iter().map(|(outcome, told)| (test.test.name, outcome, told)));
    }
    if outcomes.is_empty() {
        return;
    }
    let count = |wanted: &[GoalResult]| {
        outcomes.iter().filter(|(_, found, _)| wanted.contains(found)).count()
    };
    let counts = [
        ("reached", count(&[GoalResult::Reached])),
        ("reached by the median only", count(&[GoalResult::ReachedByMedian])),
        ("undecided by a single round", count(&[GoalResult::Untold])),
        ("missed", count(&MISSED)),
    ];
    let told = counts.iter().filter(|(_, count)| *count > 0);
    let told: Vec<String> = told.map(|(what, count)| format!("{what} {count}")).collect();
    let all = text::counted(outcomes.len(), "goal");
    page.line(&format!("- Of {all}: {}.", told.join(", ")));
    for (name, _, told) in outcomes.iter().filter(|(_, outcome, _)| MISSED.contains(outcome)) {
        page.line(&format!("- Missed: `{name}`: {}", escaped(told)));
    }
}

#[cfg(test)]
mod tests;
