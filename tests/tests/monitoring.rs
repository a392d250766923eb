//! The alert rules and the Grafana dashboard use existing metrics, and their queries are valid.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;
use weir_testing::skip_though_strict;
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{repository, tools};

const ALERTS: &str = "packaging/monitoring/alerts.yml";
const DASHBOARD: &str = "packaging/monitoring/grafana.json";

/// The names of weir's metrics in a text. A name before `(` is a function.
fn names(text: &str) -> BTreeSet<&str> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let words = text.split(|character| !is_part(character));
    words.filter(|word| word.starts_with("weir_")).collect()
}

/// All queries of the dashboard, with values in place of its variables.
fn queries(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let expressions = targets.map(|target| target["expr"].as_str().expect("a query"));
    let value = |query: &str| query.replace("$__rate_interval", "5m").replace('$', "");
    expressions.map(value).collect()
}

#[test]
fn metrics_that_are_named_exist() {
    let member = Member::named("one");
    let proxy = Proxy::start(&Setup::new(&[member.address()]));
    let metrics = proxy.admin_get("/metrics");
    let types = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let known: BTreeSet<&str> = types.filter_map(|line| line.split(' ').next()).collect();
    for file in [ALERTS, DASHBOARD] {
        let text = repository::read(file);
        let named = names(&text);
        assert!(named.len() >= 10, "{file}: {named:?}");
        for name in named {
            let family = ["_bucket", "_count", "_sum"]
                .iter()
                .find_map(|end| name.strip_suffix(end).filter(|family| known.contains(family)));
            assert!(
                family.is_some() || known.contains(name),
                "{file}: {name} is no metric of weir"
            );
        }
    }
}

#[test]
fn prometheus_takes_rules_and_queries() {
    if tools::find("promtool").is_none() {
        return skip_though_strict("promtool is not installed");
    }
    let run = |words: &[&str], file: &std::path::Path| {
        let output = Command::new("promtool").args(words).arg(file).output().expect("promtool");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.success(), said)
    };
    let root = repository::root();
    let (is_sound, said) = run(&["check", "rules"], &root.join(ALERTS));
    assert!(is_sound, "{said}");
    let (is_right, said) = run(&["test", "rules"], &root.join(ALERTS.replace(".yml", ".test.yml")));
    assert!(is_right, "{said}");
    let dashboard = serde_json::from_str(&repository::read(DASHBOARD)).expect("JSON");
    let queries = queries(&dashboard);
    assert!(queries.len() >= 16, "{queries:?}");
    let rules = queries.iter().enumerate().map(
        |(index, query)| serde_json::json!({ "record": format!("query:{index}"), "expr": query }),
    );
    let rules: Vec<Value> = rules.collect();
    let groups = serde_json::json!({ "groups": [{ "name": "dashboard", "rules": rules }] });
    let folder = TempDir::new("monitoring");
    let file = folder.write("queries.yml", groups.to_string());
    let (is_sound, said) = run(&["check", "rules"], &file);
    assert!(is_sound, "{said}");
    let broken = folder.write("broken.yml", groups.to_string().replacen("sum(", "sun(", 1));
    assert!(!run(&["check", "rules"], &broken).0, "this test sees mistakes");
}
