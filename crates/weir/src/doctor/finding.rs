//! Results of checks, and their text form.

use serde::Serialize;

use crate::admin::text::{Paint, Tone, counted};

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Note: nothing is wrong.
    Note,
    /// Warning: fails under load, later, or for some clients.
    Warning,
    /// Error: does not work.
    Error,
}

impl Severity {
    fn word(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Self::Note => Tone::Plain,
            Self::Warning => Tone::Unusual,
            Self::Error => Tone::Wrong,
        }
    }
}

/// A problem and its remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The severity.
    pub severity: Severity,
    /// The problem.
    pub what: String,
    /// The key, file, setting or process concerned.
    #[serde(rename = "where")]
    pub place: String,
    /// The command or key that fixes the problem.
    pub mend: String,
}

impl Finding {
    /// Creates an error.
    pub fn error(what: String, place: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { severity: Severity::Error, what, place: place.into(), mend: mend.into() }
    }

    /// Creates a warning.
    pub fn warning(what: String, place: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(what, place, mend) }
    }

    /// Creates a note.
    pub fn note(what: String, place: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { severity: Severity::Note, ..Self::error(what, place, mend) }
    }
}

/// The result of one check.
#[derive(Debug, Default, Serialize)]
pub struct CheckResult {
    /// The name of the check.
    pub name: &'static str,
    /// The values that were checked, for people.
    pub facts: Vec<String>,
    /// The findings.
    pub findings: Vec<Finding>,
}

impl CheckResult {
    /// Creates an empty result.
    pub fn new(name: &'static str) -> Self {
        Self { name, ..Self::default() }
    }

    /// Adds a checked value.
    pub fn fact(&mut self, fact: impl Into<String>) {
        self.facts.push(fact.into());
    }

    /// Adds a finding.
    pub fn find(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// The results of all checks.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The configuration file; `null`: none was found.
    pub file: Option<String>,
    /// Whether a running weir was queried.
    pub is_running: bool,
    /// The results, in the order of the checks.
    pub checks: Vec<CheckResult>,
}

impl Report {
    /// Whether there are warnings or errors.
    pub fn has_troubles(&self) -> bool {
        let worst = self.checks.iter().filter_map(CheckResult::worst).max();
        worst.is_some_and(|worst| worst > Severity::Note)
    }

    fn count(&self, severity: Severity) -> u64 {
        let findings = self.checks.iter().flat_map(|check| &check.findings);
        findings.filter(|finding| finding.severity == severity).count() as u64
    }

    /// The text report: a line per check, followed by its findings.
    pub fn render(&self, paint: Paint) -> String {
        let file = self.file.as_deref().unwrap_or("no configuration file");
        let running = if self.is_running { "a running weir" } else { "no running weir" };
        let mut text = paint.heading(&format!("weir doctor: {file}, {running}"));
        for check in &self.checks {
            let word = match check.worst() {
                None | Some(Severity::Note) => "ok",
                Some(worst) => worst.word(),
            };
            let facts = check.facts.join("; ");
            let tone = check.worst().map_or(Tone::Plain, Severity::tone);
            text += &paint.line(tone, "  ", &format!("{word:<8}{:<14}{facts}", check.name));
            for finding in &check.findings {
                let Finding { severity, what, place, mend } = finding;
                text += &paint.line(Tone::Plain, "    ", &format!("{}: {what}", severity.word()));
                text += &paint.line(Tone::Plain, "      ", &format!("where: {place}"));
                if !mend.is_empty() {
                    text += &paint.line(Tone::Plain, "      ", &format!("mend:  {mend}"));
                }
            }
        }
        let counts =
            [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Note, "note")];
        let counts = counts.map(|(severity, noun)| counted(self.count(severity), noun));
        text + &format!("{}\n", counts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(findings: Vec<Finding>) -> Report {
        let mut check = CheckResult::new("ports");
        check.fact("2 listeners");
        check.findings = findings;
        Report { file: Some("weir.yaml".into()), is_running: false, checks: vec![check] }
    }

    #[test]
    fn notes_are_no_troubles() {
        assert!(!report(Vec::new()).has_troubles());
        let of = |severity| {
            let finding = Finding { severity, ..Finding::note("a".into(), "b", "c") };
            report(vec![finding]).has_troubles()
        };
        assert_eq!(
            [Severity::Note, Severity::Warning, Severity::Error].map(of),
            [false, true, true]
        );
    }

    #[test]
    fn a_report_names_place_and_remedy() {
        let finding = Finding::error("port 80 is taken".into(), "virtual_servers.shop", "stop it");
        let text = report(vec![finding]).render(Paint::Plain);
        let expected = "\
weir doctor: weir.yaml, no running weir
! error   ports         2 listeners
    error: port 80 is taken
      where: virtual_servers.shop
      mend:  stop it
1 error, 0 warnings, 0 notes
";
        assert_eq!(text, expected);
    }
}
