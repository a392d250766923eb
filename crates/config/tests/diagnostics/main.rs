//! Findings about faulty configurations: place, message, and help.

mod admin;
mod keys_and_values;
mod monitors;
mod names;
mod no_effect;
mod persistence;
mod pools;
mod rendering;
mod rules;
mod top_level;
mod virtual_servers;

use weir_config::{Diagnostic, Severity, parse};

/// `SEVERITY LINE:COLUMN MESSAGE -> SUGGESTION`.
fn show(diagnostic: &Diagnostic) -> String {
    let place = diagnostic
        .position
        .map_or_else(|| "-".into(), |place| format!("{}:{}", place.line, place.column));
    let suggestion = diagnostic.suggestion.as_deref().unwrap_or("-");
    let word = diagnostic.severity.word();
    format!("{word} {place} {} -> {suggestion}", diagnostic.message)
}

fn findings(text: &str) -> Vec<String> {
    let loaded = parse("weir.yaml", text);
    let errors = loaded.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    assert_eq!(loaded.config.is_none(), errors, "{text}");
    loaded.diagnostics.iter().map(show).collect()
}

/// Exactly these findings.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(findings(text), expected, "\n{text}");
}

/// A valid file with one virtual server and one pool, to which lines are added.
fn sound(server: &str, pool: &str) -> String {
    format!(
        "virtual_servers:\n  a:\n    listen: 127.0.0.1:80\n    pool: p\n{server}\
         pools:\n  p:\n    members: [ 127.0.0.1:9001 ]\n{pool}"
    )
}

/// One line more in the virtual server; it is line 5.
#[track_caller]
fn check_server(line: &str, expected: &[&str]) {
    check(&sound(&format!("    {line}\n"), ""), expected);
}

/// One line more in the pool; it is line 8.
#[track_caller]
fn check_pool(line: &str, expected: &[&str]) {
    check(&sound("", &format!("    {line}\n")), expected);
}

/// One line more in an http monitor; it is line 10.
#[track_caller]
fn check_monitor(line: &str, expected: &[&str]) {
    let monitor = format!("    monitors:\n      - type: http\n        {line}\n");
    check(&sound("", &monitor), expected);
}

#[test]
fn a_sound_file_has_no_findings() {
    check(&sound("", ""), &[]);
}
