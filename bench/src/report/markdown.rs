//! The report as Markdown for GitHub.

use super::discards;
use super::facts;
use super::goals;
use super::handshakes;
use super::limits;
use super::method;
use super::model::{Report, TestReport};
use super::published_figures;
use super::story::{self, Row};
use super::text;
use super::verdict::{AgainstPeers, Judgement, Subject, Verdicts, difference_told};
use crate::catalogue::{Axis, PENDING};

/// The whole text.
pub fn page(report: &Report, verdicts: &Verdicts) -> String {
    let mut page = Page::default();
    let run = &report.run;
    page.line(&format!("# weir and its peers, {}", escaped(&run.machine.host)));
    page.paragraph(&format!(
        "{}, {}, {}; began {}, `{}`. Products: {}.",
        escaped(run.machine.cpu.trim()),
        text::counted(run.machine.cores, "core"),
        escaped(&run.machine.kernel),
        escaped(&run.started),
        run.command.replace('`', "'"),
        versions(report)
    ));
    if story::too_noisy(verdicts).is_some() {
        page.paragraph("## Most could not be decided");
    }
    for sentence in story::sentences(report, verdicts) {
        page.line(&format!("- {}", escaped(&sentence)));
    }
    page.paragraph(
        &format!(
            "The ratio is weir divided by the peer against which it stands worst, paired by round, and need not be the \
             quotient of the two medians. *Won* and *lost* mean a difference of at least {} and beyond the noise; *even*, \
             that the noise leaves no more than about 10% either way; *undecided*, none of these.",
            difference_told()
        ),
    );
    summary(&mut page, report, verdicts);
    lost(&mut page, report, verdicts);
    won(&mut page, report, verdicts);
    for (index, test) in report.tests.iter().enumerate() {
        if report.begins_chapter(index) {
            page.paragraph(&format!("## Tests: {}", escaped(test.test.chapter.title())));
        }
        section(&mut page, report, verdicts, test);
    }
    remainder(&mut page, report);
    page.text
}

/// The text of the page so far.
#[derive(Default)]
pub(super) struct Page {
    pub(super) text: String,
}

impl Page {
    pub(super) fn line(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }

    /// Adds a paragraph, with an empty line before and after it.
    pub(super) fn paragraph(&mut self, text: &str) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
        self.line(text);
        self.text.push('\n');
    }

    /// Adds a table, and escapes its cells. The first `left` columns contain words, the others numbers.
    pub(super) fn table(&mut self, left: usize, header: &[&str], rows: &[Vec<String>]) {
        let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
        let header: Vec<String> = header.iter().map(|cell| escaped(cell)).collect();
        let rule = (0..header.len()).map(|column| if column < left { "---" } else { "---:" });
        let rule = format!("|{}|", rule.collect::<Vec<_>>().join("|"));
        self.paragraph(&[line(header), rule].join("\n"));
        self.text.truncate(self.text.trim_end_matches('\n').len() + 1);
        for row in rows {
            self.line(&line(row.iter().map(|cell| escaped(cell)).collect()));
        }
        self.text.push('\n');
    }
}

/// Escapes text so that Markdown shows it unchanged, in its table cell and on its line.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' | '\t' => escaped.push(' '),
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '&' => escaped += "&amp;",
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '~' | '!' => {
                escaped.push('\\');
                escaped.push(character);
            }
            character => escaped.push(character),
        }
    }
    escaped
}

/// Example: `weir 0.1, nginx 1.22.1 and HAProxy 2.6.12`.
pub(super) fn versions(report: &Report) -> String {
    let products = 0..report.run.products.len();
    let versions: Vec<String> =
        products.map(|index| escaped(&story::versioned(report, index))).collect();
    text::list(&versions)
}

fn summary(page: &mut Page, report: &Report, verdicts: &Verdicts) {
    let rows: Vec<Vec<String>> = verdicts
        .groups()
        .iter()
        .map(|group| {
            let row = Row::new(report, group);
            let alone = row.alone.map(|alone| format!("; {alone}")).unwrap_or_default();
            let verdict = row.verdict + &alone;
            let cells =
                [row.test, row.subject, &verdict, &row.weir, &row.best, &row.peers, &row.ratio];
            cells.map(str::to_owned).to_vec()
        })
        .collect();
    if !rows.is_empty() {
        let header = [
            "test",
            "figure",
            "weir",
            "weir's",
            "hardest peer's",
            "hardest peer",
            "ratio by round",
        ];
        page.table(3, &header, &rows);
    }
}

fn lost(page: &mut Page, report: &Report, verdicts: &Verdicts) {
    page.paragraph("## What weir lost");
    let (lost, undecided): (Vec<_>, Vec<_>) =
        verdicts.behind().into_iter().partition(|found| found.standing == AgainstPeers::Lost);
    if lost.is_empty() && verdicts.missing.is_empty() {
        page.line(&escaped(&story::nothing_lost(report, verdicts)));
    }
    items(page, report, &lost);
    for missing in &verdicts.missing {
        page.line(&format!("- `{}`: {}", missing.test.name, escaped(&missing.what)));
    }
    if !undecided.is_empty() {
        page.paragraph("Behind, but undecided:");
        items(page, report, &undecided);
    }
}

fn won(page: &mut Page, report: &Report, verdicts: &Verdicts) {
    page.paragraph("## What weir won");
    let won = verdicts.clearest_wins();
    if won.is_empty() {
        page.line("Nothing in this run.");
    }
    items(page, report, &won);
}

fn items(page: &mut Page, report: &Report, judgements: &[&Judgement]) {
    for judgement in judgements {
        let sentence = escaped(&story::sentence(report, judgement));
        page.line(&format!("- `{}`: {sentence}", judgement.test.name));
    }
}

/// The section of a test: medians of the judged figures, one row per setting.
fn section(page: &mut Page, report: &Report, verdicts: &Verdicts, test: &TestReport) {
    page.paragraph(&format!("### {} (`{}`)", escaped(test.test.title), test.test.name));
    page.paragraph(&escaped(test.test.summary));
    let products = test.takers.iter().map(|&index| report.label(index));
    let mut header = vec!["figure", "at"];
    header.extend(products);
    header.push("weir / hardest peer, by round");
    if test.test.axis == Axis::Single {
        header.remove(1);
    }
    let mut rows = Vec::new();
    // If nothing is judged, for example in a test of weir alone, the section shows all figures.
    let is_any_judged = test.figures.iter().any(|figure| figure.is_judged);
    for figure in test.figures.iter().filter(|figure| figure.is_judged || !is_any_judged) {
        for (setting, cell) in figure.cells.iter().enumerate() {
            let mut row = vec![text::titled(figure.figure)];
            if test.test.axis != Axis::Single {
                row.push(text::setting_short(test.test.axis, cell.at));
            }
            row.extend(test.takers.iter().map(|&index| {
                let mark = if test.fell_behind(setting, index) { "†" } else { "" };
                cell.values[index]
                    .map_or("–".to_owned(), |value| text::number(value.median) + mark)
            }));
            let found = verdicts.judgements.iter().find(|found| {
                found.test.name == test.test.name
                    && found.subject == Subject::Figure(figure.figure)
                    && found.at == cell.at
            });
            row.push(found.map_or("–".to_owned(), story::ratio_beside_medians));
            rows.push(row);
        }
    }
    if rows.is_empty() {
        page.paragraph("Nothing was measured.");
    } else {
        page.table(if test.test.axis == Axis::Single { 1 } else { 2 }, &header, &rows);
    }
    if let Some(knees) = &test.knees {
        let knees = (0..report.run.products.len()).filter_map(|index| {
            let name = escaped(report.label(index));
            Some(format!("{name} {}", knees.told(index)?))
        });
        page.paragraph(&format!("Knees: {}.", knees.collect::<Vec<_>>().join("; ")));
    }
    if let Some(sentence) = story::one_peer(report, verdicts, test) {
        page.paragraph(&escaped(&sentence));
    }
    if let Some(sentence) = story::few_requests(report, test) {
        page.paragraph(&escaped(&sentence));
    }
    let called = |name: &str| report.called(name).to_owned();
    for load in facts::loads(&report.record(test).facts, &called) {
        page.paragraph(&escaped(&load));
    }
    for sentence in limits::told(report, test) {
        page.paragraph(&escaped(&sentence));
    }
    for sentence in told_beside(report, test) {
        page.line(&format!("- {}", escaped(&sentence)));
    }
    for goal in goals::told(report, test) {
        page.line(&format!("- Goal: {}", escaped(&goal)));
    }
    let short = story::short_of_rounds(report, test);
    if !short.is_empty() {
        page.paragraph(&format!("Fewer rounds than wanted: {}.", escaped(&short.join("; "))));
    }
    if let Some(sentence) = story::unsent_of(report, test) {
        page.paragraph(&escaped(&sentence));
    }
    let errors = story::errors_of(report, test);
    if !errors.is_empty() {
        page.paragraph(&format!("Failed transactions: {}.", escaped(&errors.join("; "))));
    }
}

/// Further texts about a test: its handshakes and published figures.
fn told_beside(report: &Report, test: &TestReport) -> Vec<String> {
    [handshakes::told(report, test), published_figures::told(report, test)].concat()
}

fn remainder(page: &mut Page, report: &Report) {
    page.paragraph("## Left out and still to come");
    for absence in &report.run.absent {
        let (name, reason) = (report.called(&absence.product), escaped(&absence.reason));
        let name = escaped(name);
        page.line(&format!("- {name} took no part: {reason}"));
    }
    for test in &report.run.tests {
        let axis = crate::catalogue::test(&test.name).map_or(Axis::Single, |test| test.axis);
        for omission in &test.omissions {
            let at = escaped(&story::place_of(axis, omission));
            let line = format!(
                "- {} in {}{at}",
                escaped(report.called(&omission.product)),
                escaped(&test.name)
            );
            page.line(&format!("{line}: {}", escaped(&omission.reason)));
        }
    }
    for test in &report.tests_not_run {
        page.line(&format!("- `{}` is not in this run", test.name));
    }
    for pending in PENDING {
        page.line(&format!("- `{}` waits for {}", pending.name, escaped(pending.waits_for)));
    }
    let discards: Vec<Vec<String>> = discards::by_reason(report)
        .into_iter()
        .map(|(product, reason, count, tests)| {
            vec![product, reason, tests, text::count(count as u64)]
        })
        .collect();
    if !discards.is_empty() {
        page.paragraph("## Thrown away");
        page.table(3, &["product", "reason", "tests", "measurements"], &discards);
    }
    page.paragraph("## Method");
    for (name, explanation) in method::terms(report) {
        page.line(&format!("- **{name}**: {}", escaped(&explanation)));
    }
    page.paragraph(
        "† fell behind the offered rate. Charts, spreads and every configuration: `report.html` in the folder of this \
         file.",
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::report::testing;

    fn page_of(run: crate::record::Run) -> String {
        let report = Report::new(run);
        let verdicts = Verdicts::new(&report);
        page(&report, &verdicts)
    }

    /// Checks that all lines of a table have as many cells as its header.
    fn check_tables(page: &str) {
        let cells = |line: &str| line.replace("\\|", "").matches('|').count();
        let mut header: Option<usize> = None;
        for line in page.lines() {
            if !line.starts_with('|') {
                header = None;
                continue;
            }
            let expected = *header.get_or_insert(cells(line));
            assert_eq!(cells(line), expected, "{line}");
        }
    }

    #[test]
    fn every_test_has_a_section_and_tables_are_even() {
        let page = page_of(testing::run_undecided());
        for test in catalogue::TESTS {
            assert!(page.contains(&format!("(`{}`)\n", test.name)), "{}", test.name);
        }
        for pending in PENDING {
            assert!(page.contains(&format!("`{}` waits for", pending.name)), "{}", pending.name);
        }
        assert!(page.contains("## What weir lost") && page.contains("\nBehind, but undecided:\n"));
        assert!(page.contains("; paired by round "));
        assert!(!page.contains("NaN") && !page.contains("\n\n\n"));
        check_tables(&page);
    }

    #[test]
    fn hostile_text_stays_in_its_cell() {
        let mut run = testing::run();
        for test in &mut run.tests {
            for point in test.points.iter_mut().filter(|point| point.product == "nginx") {
                point.product = "a|b<img src=x>\n# c".to_owned();
            }
        }
        run.products[1].name = "a|b<img src=x>\n# c".to_owned();
        let page = page_of(run);
        assert!(!page.contains("<img") && !page.contains("\n# c"));
        check_tables(&page);
    }

    #[test]
    fn escaping() {
        assert_eq!(escaped("a|b*c\nd<e>&"), "a\\|b\\*c d&lt;e&gt;&amp;");
    }
}
