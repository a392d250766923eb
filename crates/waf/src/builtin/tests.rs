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
