//! Findings in a configuration, as weir reports them.

use std::io::{self, IsTerminal as _};

use weir_api::finding::Finding;
use weir_config::{Colour, Diagnostic, Position, Severity};

fn diagnostic(finding: &Finding) -> Diagnostic {
    let severity = match finding.severity.as_str() {
        "warning" => Severity::Warning,
        _ => Severity::Error,
    };
    let position = finding.line.zip(finding.column);
    let position = position.map(|(line, column)| Position { line, column });
    Diagnostic {
        severity,
        message: finding.message.clone(),
        file: finding.file.clone(),
        pointer: finding.pointer.clone(),
        position,
        // The file may be on another machine, or may have changed.
        excerpt: None,
        suggestion: finding.suggestion.clone(),
    }
}

/// The findings in the format of `weir check`, for standard error.
pub fn render(findings: &[Finding]) -> String {
    let diagnostics: Vec<Diagnostic> = findings.iter().map(diagnostic).collect();
    weir_config::render_text(&diagnostics, colour())
}

/// The use of colours on standard error.
pub fn colour() -> Colour {
    match io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        true => Colour::Always,
        false => Colour::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_of_the_overlay_and_of_files() {
        let findings: Vec<Finding> = serde_json::from_value(serde_json::json!([
            { "severity": "error", "message": "too large", "file": "overlay", "line": null, "column": null,
              "pointer": "/pools/web/members/10.0.0.1:80/weight", "suggestion": "at most 100" },
            { "severity": "warning", "message": "odd", "file": "weir.yaml", "line": 3, "column": 5,
              "suggestion": null },
        ]))
        .unwrap();
        let diagnostics: Vec<Diagnostic> = findings.iter().map(diagnostic).collect();
        assert_eq!(
            weir_config::render_text(&diagnostics, Colour::Never),
            "overlay:/pools/web/members/10.0.0.1:80/weight: error: too large\nhelp: at most 100\n\
             weir.yaml:3:5: warning: odd\n"
        );
    }
}
