use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::json;
use weir_waf::inspection::Verdict;
use weir_waf::plan::Settings;

use super::*;
use crate::waf::judge::Judge;
use crate::waf::request::{RequestArguments, Trial};

/// A log line in which a rule matched an argument.
fn line(client: u64, target: &str, rule: u64, (variable, value): (&str, &str)) -> String {
    let found = json!({
        "id": rule, "message": "SQL", "severity": "CRITICAL", "tags": ["attack-sqli"],
        "values": [{ "variable": variable, "value": value }],
    });
    json!({
        "type": "waf", "client": format!("192.0.2.{client}:1000"), "target": target,
        "outcome": "detected", "rule": 949110, "score": 5, "threshold": 5, "rules": [found],
    })
    .to_string()
}

struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("weir-tune-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("a file");
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // There is no way to report a failure.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn proposed(name: &str, lines: &[String]) -> (String, String) {
    let log = File::new(name, &lines.join("\n"));
    let logs = vec![log.0.clone()];
    propose(&Arguments { logs, min: 10, clients: 3, first_id: 9_990_000 }).expect("a proposal")
}

/// Characters that move a terminal's cursor, or that turn a line around.
#[test]
fn no_text_of_a_client_changes_what_a_terminal_shows() {
    let text = ("ARGS:text", "1' or \u{202e}\x1b[2J\u{2028}1=1");
    let lines: Vec<String> = (0..12)
        .map(|number| {
            let line = line(number % 4, "/comment?\u{202e}x=\x1b[31m", 1_003_001, text);
            line.replace("\"SQL\"", "\"S\\u202eQL\\u001b[2J\"")
        })
        .collect();
    let (rules, summary) = proposed("hidden.log", &lines);
    assert!(rules.contains("ruleRemoveTargetById=1003001;ARGS:text"), "{rules}");
    assert!(rules.contains("S?QL\\x1b[2J"), "{rules}");
    let hidden = |it: char| it != '\n' && weir_control::printable::is_hidden(it);
    assert!(!rules.contains(hidden) && !summary.contains(hidden), "{rules:?} {summary:?}");
}

#[test]
fn what_many_clients_send_is_excluded_and_passes_then() {
    let text = ("ARGS:text", "1' or 1=1 \\");
    let mut lines: Vec<String> =
        (0..12).map(|number| line(number % 4, "/comment?x=y", 1_003_001, text)).collect();
    lines.extend((0..9).map(|number| line(number, "/rare", 1_003_001, text)));
    lines.extend((0..12).map(|_| line(1, "/one/client", 1_003_001, text)));
    lines.push("not of this log".into());
    let (rules, summary) = proposed("passes.log", &lines);
    assert!(rules.contains(
        "\n# Rule 1003001: SQL.\n# 12 requests of 4 clients, such as `1\\' or 1=1 \\\\`; each scored 5 for it.\n\
         SecRule REQUEST_FILENAME \"@streq /comment\" \\\n    \
         \"id:9990000,phase:1,t:none,nolog,pass,ctl:ruleRemoveTargetById=1003001;ARGS:text\"\n"
    ), "{rules}");
    assert!(summary.contains("33 lines of requests; 1 other line was skipped\n"), "{summary}");
    assert!(!rules.contains("/one/client"), "{rules}");
}

#[test]
fn the_file_loads_and_lets_the_request_pass() {
    let asked = |url| {
        let asked = RequestArguments { url, method: None, headers: &[], data: None };
        Trial::of_url(asked, crate::waf::request::HeadSettings::default()).expect("a request")
    };
    let (meant, other) =
        (asked("h.example/comment?text=1'+or+'1'='1"), asked("h.example/other?text=1'+or+'1'='1"));
    let client: SocketAddr = "192.0.2.1:1".parse().expect("an address");
    let judge = |rules: &[PathBuf]| {
        Judge::of_rules(rules, &Settings::default(), false).expect("rules that load")
    };
    let before = judge(&["builtin".into()]).judge(&meant, client, None);
    assert_ne!(before.verdict, Verdict::Pass);
    let found = before.inspection.matches().iter().filter(|it| it.is_logged);
    let ids: Vec<u64> =
        found.filter(|it| it.values[0].variable == b"ARGS:text").map(|it| it.id).collect();
    let lines: Vec<String> = ids
        .iter()
        .flat_map(|id| {
            (0..10).map(|client| line(client, "/comment?text=x", *id, ("ARGS:text", "x")))
        })
        .collect();
    let file = File::new("tuned.conf", &proposed("loads.log", &lines).0);
    let judge = judge(&[file.0.clone(), "builtin".into()]);
    assert_eq!(judge.judge(&meant, client, None).verdict, Verdict::Pass);
    assert_ne!(judge.judge(&other, client, None).verdict, Verdict::Pass);
}

#[test]
fn what_attackers_send_is_left_alone() {
    let with_another = |number| {
        let text = line(number, "/a", 942_100, ("ARGS:id", "1"));
        let mut parsed: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        parsed["rules"].as_array_mut().expect("rules").push(json!({
            "id": 913_100, "severity": "CRITICAL",
            "values": [{ "variable": "REQUEST_HEADERS:User-Agent", "value": "scanner" }],
        }));
        parsed.to_string()
    };
    let lines: Vec<String> = (0..12).map(with_another).collect();
    let (rules, summary) = proposed("attackers.log", &lines);
    assert!(!rules.contains("SecRule"), "{rules}");
    assert!(summary.contains("2 places have no exclusion"), "{summary}");
    let asked: Vec<String> = (0..12)
        .map(|number| line(number, &format!("/.x{number}"), 930_130, ("REQUEST_FILENAME", "x")))
        .collect();
    assert!(!proposed("paths.log", &asked).0.contains("SecRule"), "paths that are not there");
}

#[test]
fn what_is_excluded_makes_nothing_else_suspicious() {
    let html = ("ARGS:content", "<p>text</p>");
    let mut lines: Vec<String> =
        (0..12).map(|number| line(number, "/post", 941_160, html)).collect();
    let both = |number| {
        let text = line(number, "/post", 941_160, html);
        let mut parsed: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        parsed["rules"].as_array_mut().expect("rules").push(json!({
            "id": 942_360, "severity": "CRITICAL",
            "values": [{ "variable": "ARGS:title", "value": "drop the table" }],
        }));
        parsed.to_string()
    };
    lines.extend((0..11).map(both));
    let (rules, summary) = proposed("both.log", &lines);
    assert!(rules.contains("=941160;ARGS:content"), "{rules}");
    assert!(rules.contains("=942360;ARGS:title"), "{rules}");
    assert!(!summary.contains("left alone"), "{summary}");
}

#[test]
fn no_secret_and_no_rule_of_a_client_is_written() {
    let evil = "x\" \\\nSecRuleEngine Off\n";
    let lines: Vec<String> = (0..12)
        .flat_map(|number| {
            [
                line(number, "/a", 942_100, ("ARGS:id", evil)),
                line(number, "/a", 942_100, ("ARGS:token", "***")),
                line(number, "/b\nSecRuleEngine Off", 942_100, ("ARGS:b", "x")),
                line(number, "/a", 942_100, ("ARGS:c\nSecRuleEngine Off", "x")),
            ]
        })
        .collect();
    let (rules, _) = proposed("evil.log", &lines);
    assert!(!rules.contains("\nSecRuleEngine"), "{rules}");
    assert!(!rules.contains("***"), "{rules}");
    assert_eq!(rules.matches("\nSecRule ").count(), 2, "{rules}");
}

#[test]
fn many_names_of_a_path_are_one_exclusion() {
    let excluded = |rules: &str| -> Vec<String> {
        let parts = rules.split("ctl:ruleRemoveTargetById=").skip(1);
        parts.map(|part| part.split('"').next().unwrap_or_default().to_owned()).collect()
    };
    let words = ["one", "two", "three", "four", "five", "six", "seven", "eight"];
    for (name, lines, expected) in [
        // Each name is too rare by itself, but their pattern is not.
        (
            "pattern.log",
            (0..17).map(|number| (number, format!("ARGS:row[{number}].text"))).collect::<Vec<_>>(),
            vec!["1003001;ARGS:/^row\\[[0-9]+\\]\\.text$/"],
        ),
        // Names without anything in common: all of them at this path.
        (
            "whole.log",
            words
                .iter()
                .flat_map(|word| (0..10).map(move |it| (it, format!("ARGS:{word}"))))
                .collect(),
            vec!["1003001;ARGS"],
        ),
        // A few names are named.
        (
            "few.log",
            words[..2]
                .iter()
                .flat_map(|word| (0..10).map(move |it| (it, format!("ARGS:{word}"))))
                .collect(),
            vec!["1003001;ARGS:one", "1003001;ARGS:two"],
        ),
        // Cookies of many names are not the application's choice.
        (
            "cookies.log",
            words
                .iter()
                .flat_map(|word| (0..10).map(move |it| (it, format!("REQUEST_COOKIES:{word}"))))
                .collect(),
            words.iter().map(|_| "").collect(),
        ),
    ] {
        let lines: Vec<String> = lines
            .iter()
            .map(|(client, variable)| line(client % 5, "/edit", 1_003_001, (variable, "1' or 1=1")))
            .collect();
        let (rules, summary) = proposed(name, &lines);
        let made = excluded(&rules);
        if expected.first() == Some(&"") {
            assert_eq!(made.len(), expected.len(), "{rules}");
        } else {
            assert_eq!(made, expected, "{rules}");
        }
        let all = lines.len();
        assert!(
            summary.contains(&format!("{all} of {all} requests would no longer be blocked")),
            "{summary}"
        );
        // The file loads.
        let file = File::new(&format!("{name}.conf"), &rules);
        let judge =
            Judge::of_rules(&[file.0.clone(), "builtin".into()], &Settings::default(), false);
        assert!(judge.is_ok(), "{:?}", judge.err());
    }
}

#[test]
fn an_exclusion_of_a_pattern_lets_its_names_pass() {
    let lines: Vec<String> = (0..17)
        .map(|number| line(number % 5, "/edit", 1_003_001, (&format!("ARGS:row{number}"), "x")))
        .collect();
    let file = File::new("pattern.conf", &proposed("names.log", &lines).0);
    let judge = |rules: &[PathBuf]| {
        Judge::of_rules(rules, &Settings::default(), false).expect("rules that load")
    };
    let found = |judge: &Judge, url: &str| {
        let asked = RequestArguments { url, method: None, headers: &[], data: None };
        let trial =
            Trial::of_url(asked, crate::waf::request::HeadSettings::default()).expect("a request");
        let judged = judge.judge(&trial, "192.0.2.1:1".parse().expect("an address"), None);
        judged.inspection.matches().iter().any(|it| it.id == 1_003_001)
    };
    let (before, after) = (judge(&["builtin".into()]), judge(&[file.0.clone(), "builtin".into()]));
    for (url, passes) in [
        ("h.example/edit?row4711=1'+or+'1'='1", true),
        ("h.example/edit?row=1'+or+'1'='1", false),
        ("h.example/other?row4711=1'+or+'1'='1", false),
    ] {
        assert!(found(&before, url), "{url}");
        assert_eq!(!found(&after, url), passes, "{url}");
    }
}
