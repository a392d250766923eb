//! Scores, thresholds, early blocking and paranoia levels, with exact values.

use crate::send::{Sent, run, view};

/// Settings, request, score, and the rule and phase that deny the request.
type Case = (&'static [(&'static str, &'static str)], Sent, i64, Option<(u64, u8)>);

fn check(rules: &std::sync::Arc<weir_waf::plan::RuleSet>, cases: Vec<Case>) {
    let mut differing = Vec::new();
    for (settings, sent, score, denied) in cases {
        let outcome = run(&view(rules, settings), &sent);
        if (outcome.score, outcome.denied) != (score, denied) {
            differing.push(format!(
                "{settings:?} {}: {outcome:?}",
                String::from_utf8_lossy(&sent.target)
            ));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

fn value(text: &str) -> Sent {
    Sent::query("/", &[("x", text.as_bytes())])
}

fn scanner() -> Sent {
    Sent::get("/").with("User-Agent", "sqlmap/1.7")
}

#[test]
fn built_in_rules_score() {
    const LEVEL_2: &[(&str, &str)] = &[("blocking_paranoia_level", "2")];
    const EARLY: &[(&str, &str)] = &[("early_blocking", "1")];
    check(
        &crate::builtin(),
        vec![
            (&[], Sent::get("/"), 0, None),
            (&[], scanner(), 5, Some((1_009_011, 2))),
            (EARLY, scanner(), 5, Some((1_009_010, 1))),
            // The attack is in the body, so it cannot be denied early.
            (EARLY, Sent::form("/", &[("x", b"|whoami")]), 15, Some((1_009_011, 2))),
            (&[("inbound_anomaly_score_threshold", "6")], scanner(), 5, None),
            (&[("critical_anomaly_score", "2")], scanner(), 2, None),
            // A step out of a folder matches a rule with severity WARNING. A rule of level 2 matches too.
            (&[], value("../a"), 3, None),
            (LEVEL_2, value("../a"), 8, Some((1_009_011, 2))),
            // Detected at level 2, but not added to the score.
            (&[("detection_paranoia_level", "2")], value("../a"), 3, None),
        ],
    );
}

#[test]
fn detection_level_logs_without_blocking() {
    let view = view(&crate::builtin(), &[("detection_paranoia_level", "2")]);
    assert!(run(&view, &value("../a")).ids.contains(&1_002_030));
}

#[test]
fn crs_scores() {
    let Some(rules) = crate::data::rules() else { return };
    const LEVEL_2: &[(&str, &str)] = &[("blocking_paranoia_level", "2")];
    const EARLY: &[(&str, &str)] = &[("early_blocking", "1")];
    const DETECTED_2: &[(&str, &str)] = &[("detection_paranoia_level", "2")];
    let (late, early) = (Some((949_110, 2)), Some((949_111, 1)));
    let (sql, script) = (value("1' or '1'='1' -- "), value("<script>alert(1)</script>"));
    check(
        &rules,
        vec![
            (&[], Sent::get("/"), 0, None),
            (&[], scanner(), 5, late),
            (EARLY, scanner(), 5, early),
            (&[("inbound_anomaly_score_threshold", "6")], scanner(), 5, None),
            (&[("inbound_anomaly_score_threshold", "10000")], sql.clone(), 5, None),
            (&[("critical_anomaly_score", "2")], scanner(), 2, None),
            // 942100
            (&[], sql.clone(), 5, late),
            // The same rule, and ten rules of level 2.
            (LEVEL_2, sql, 55, late),
            // 941100, 941110, 941160, 941390
            (&[], script.clone(), 20, late),
            // 941320, 942131
            (LEVEL_2, script, 30, late),
            // 930120, 932160
            (&[], value("/etc/passwd"), 10, late),
            // The same rules, and 930100 and 930110.
            (&[], Sent::form("/", &[("x", b"../../etc/passwd")]), 20, late),
            // 932236 is a rule of level 2.
            (&[], value("curl and divergence"), 0, None),
            (DETECTED_2, value("curl and divergence"), 0, None),
            (LEVEL_2, value("curl and divergence"), 5, late),
        ],
    );
}
