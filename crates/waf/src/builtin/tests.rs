use std::collections::BTreeSet;

use super::*;

fn compiled() -> RuleSet {
    rules().unwrap_or_else(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        panic!("{}", problems.join("\n"))
    })
}

/// Detection rules: all except those that set variables or skip.
fn detections(rules: &RuleSet) -> impl Iterator<Item = &crate::plan::CompiledRule> {
    rules.rules.iter().filter(|rule| rule.is_logged)
}

#[test]
fn rules_are_complete() {
    let rules = compiled();
    for rule in &rules.rules {
        assert!((1_000_000..1_010_000).contains(&rule.id), "{}", rule.id);
    }
    for rule in detections(&rules) {
        assert!(rule.message.is_some(), "{} has no message", rule.id);
        assert!(rule.log_data.is_some(), "{} has no logdata", rule.id);
        assert!(rule.severity.is_some(), "{} has no severity", rule.id);
        assert!(rule.tags.len() >= 2, "{} has few tags: {:?}", rule.id, rule.tags);
    }
    assert!(detections(&rules).count() > 150, "{}", detections(&rules).count());
}

#[test]
fn exploits_name_their_cve() {
    let rules = compiled();
    let mut named = BTreeSet::new();
    for rule in detections(&rules).filter(|rule| &*rule.place.file == "builtin/exploits.conf") {
        let cves: Vec<_> = rule.tags.iter().filter(|tag| tag.starts_with("CVE-")).collect();
        assert!(!cves.is_empty(), "{} names none", rule.id);
        named.extend(cves);
    }
    assert!(named.len() >= 80, "{}", named.len());
}

#[test]
fn paranoia_adds_rules() {
    let rules = std::sync::Arc::new(compiled());
    let count = |level: &str| {
        let variables = vec![("blocking_paranoia_level".to_owned(), level.to_owned())];
        let view = crate::plan::View::new(rules.clone(), &crate::plan::Settings { variables });
        view.expect("a view").rules_count()
    };
    let counts = ["1", "2", "4"].map(count);
    assert!(counts[0] + 15 < counts[1] && counts[1] == counts[2], "{counts:?}");
}

#[test]
fn files_are_found_by_name_and_pattern() {
    for (pattern, count) in [
        ("builtin/sql.conf", 1),
        ("builtin/*.conf", FILES.len()),
        ("builtin/s*.conf", 4),
        ("sql.conf", 0),
        ("*sql", 0),
        ("/etc/*.conf", 0),
    ] {
        assert_eq!(files().find("/etc/weir/waf.conf", pattern).len(), count, "{pattern}");
    }
    assert!(files().read("builtin/sql.conf").is_ok());
    assert!(files().read("builtin/none.conf").is_err());
}

/// The generated part of docs/waf-builtin.md.
const LIST_BEGIN: &str = "<!-- rules: begin, made by the tests of crates/waf -->\n";
/// Set to `1`, it makes the test write the file.
const UPDATE_VARIABLE: &str = "WEIR_UPDATE_REFERENCE";

/// Each rule that can be reported, by file.
fn list(rules: &RuleSet) -> String {
    use std::fmt::Write as _;
    let (mut text, mut file) = (String::new(), "");
    for rule in rules.rules.iter().filter(|rule| rule.is_logged) {
        let place = rule.place.file.as_ref();
        if place != file {
            file = place;
            let name = file.trim_start_matches("builtin/");
            let _ = write!(
                text,
                "\n## {name}\n\n| rule | level | severity | finds |\n|---|---|---|---|\n"
            );
        }
        let level = rule.tags.iter().find_map(|tag| tag.strip_prefix("paranoia-level/"));
        let severity = rule.severity.map_or("–", |it| it.name());
        let message = rule.message_text().unwrap_or_default().replace('|', "\\|");
        let cves: Vec<&str> =
            rule.tags.iter().filter(|it| it.starts_with("CVE-")).map(|it| &**it).collect();
        let cves = match cves.is_empty() || message.contains(cves[0]) {
            true => String::new(),
            false => format!(" ({})", cves.join(", ")),
        };
        let level = level.unwrap_or("all");
        let _ = writeln!(text, "| {} | {level} | {severity} | {message}{cves} |", rule.id);
    }
    text
}

/// Every rule that the log can name has a row.
#[test]
fn each_rule_is_in_the_documents() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/waf-builtin.md");
    let text = std::fs::read_to_string(&path).expect("docs/waf-builtin.md");
    let (before, found) = text.split_once(LIST_BEGIN).expect("the list begins");
    let expected = list(&rules().expect("built-in rules"));
    assert!(expected.lines().all(|line| !line.ends_with("|  |")), "a rule has no message");
    if std::env::var_os(UPDATE_VARIABLE).is_some_and(|value| value == "1") {
        let updated = format!("{before}{LIST_BEGIN}{expected}");
        return std::fs::write(&path, updated).expect("a writable file");
    }
    assert!(
        found == expected,
        "docs/waf-builtin.md is not up to date: run `{UPDATE_VARIABLE}=1 cargo test -p weir-waf each_rule`"
    );
}
