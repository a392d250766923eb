//! Findings in a configuration, as the admin API has them.

use weir_api::finding::Finding;
use weir_config::Diagnostic;

/// These diagnostics as findings.
pub(crate) fn findings(diagnostics: &[Diagnostic]) -> Vec<Finding> {
    diagnostics.iter().map(finding).collect()
}

fn finding(diagnostic: &Diagnostic) -> Finding {
    Finding {
        severity: diagnostic.severity.word().to_owned(),
        message: diagnostic.message.clone(),
        file: diagnostic.file.clone(),
        line: diagnostic.position.map(|position| position.line),
        column: diagnostic.position.map(|position| position.column),
        pointer: diagnostic.pointer.clone(),
        suggestion: diagnostic.suggestion.clone(),
    }
}

#[cfg(test)]
mod tests {
    use weir_config::{Position, Severity, render_json};

    use super::*;

    #[test]
    fn they_are_those_of_weir_check() {
        let of_file = Diagnostic::of_file(Severity::Error, "unreadable", "weir.yaml");
        let of_line = Diagnostic {
            position: Some(Position { line: 3, column: 5 }),
            suggestion: Some("less".into()),
            ..Diagnostic::of_file(Severity::Warning, "odd", "weir.yaml")
        };
        let of_overlay = Diagnostic {
            pointer: Some("/pools/web".into()),
            ..Diagnostic::of_file(Severity::Error, "too large", "overlay")
        };
        let all = [of_file, of_line, of_overlay];
        let expected = render_json(&all)["diagnostics"].to_string();
        assert_eq!(serde_json::to_string(&findings(&all)).unwrap(), expected);
    }
}
