//! Overlays under damaged files and damaged changes.

mod invariants;

use invariants::{DIVIDER, overlay};

const FILE: &str = include_str!("../../../examples/full.yaml");

const CHANGES: [&str; 12] = [
    r#"{"op":"set","path":"/pools/web/balance","value":"random_two"}"#,
    r#"{"op":"set","path":"/pools/new","value":{"members":["10.0.0.1:80",{"address":"10.0.0.2:80","weight":2}]}}"#,
    r#"{"op":"set","path":"/pools/new/members/10.0.0.1:80/weight","value":7}"#,
    r#"{"op":"remove","path":"/pools/new/members/10.0.0.2:80"}"#,
    r#"{"op":"remove","path":"/pools/new"}"#,
    r#"{"op":"set","path":"/log/access","value":{"format":"off"}}"#,
    r#"{"op":"remove","path":"/log"}"#,
    r#"{"op":"set","path":"/time_zone","value":"UTC"}"#,
    r#"{"op":"remove","path":"/policies"}"#,
    r#"{"op":"set","path":"/data_sets/a~1b","value":{"items":["x\u0000\n y","null","1"]}}"#,
    r#"{"op":"set","path":"/pools/web","value":null}"#,
    r#"{"op":"set","path":"/virtual_servers/z","value":{"listen":"127.0.0.1:1","pool":"new"}}"#,
];

/// All pairs of changes in front of whole files and of files that are cut anywhere.
#[test]
fn pairs_of_changes() {
    for one in CHANGES {
        for other in CHANGES {
            overlay(&format!("{FILE}{DIVIDER}[{one},{other}]"));
        }
    }
    let all = CHANGES.join(",");
    for (cut, _) in FILE.char_indices().step_by(97) {
        overlay(&format!("{}{DIVIDER}[{all}]", &FILE[..cut]));
    }
}

/// Each key of the example is removed, and set to values that it cannot have.
#[test]
fn every_key_is_removed_and_replaced() {
    let keys: Vec<&str> =
        FILE.lines().filter_map(|line| Some(line.trim_start().split_once(':')?.0)).collect();
    assert!(keys.len() > 100);
    for key in keys {
        let key = key.replace('~', "~0").replace('/', "~1");
        for section in ["pools/web", "virtual_servers/shop", "data_plane", "profiles/http"] {
            let path = serde_json::Value::from(format!("/{section}/{key}"));
            let changes = format!(
                r#"{{"op":"set","path":{path},"value":[null,true,1.5,"x",{{}}]}},{{"op":"remove","path":{path}}}"#
            );
            overlay(&format!("virtual_servers: {{}}{DIVIDER}[{changes}]"));
        }
    }
}
