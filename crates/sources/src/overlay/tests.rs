//! Tests of overlays: the effects of changes, and refusals.

use serde_json::{Value, json};
use weir_config::document::NODE_DEPTH_MAX;
use weir_config::{Colour, Severity, render_text};
use weir_testing::cpu_time_of;

use super::*;
use crate::{Files, Sources};

const FILE: &str = "\
virtual_servers:
  shop: { listen: 127.0.0.1:80, pool: web, http: plain }
pools:
  web:
    balance: round_robin
    members:
      - 10.0.0.1:80
      - { address: 10.0.0.2:80, weight: 3 }
    monitors:
      - { type: tcp }
  token-service: { members: [ a.example:80 ] }
policies:
  block: { rules: [ { then: [ { respond: { status: 405 } } ] } ] }
profiles: { http: { plain: { head_size_max: 8KiB } } }
data_plane: { workers: 1 }
";

fn files() -> Files {
    Files::of_text("weir.yaml", FILE)
}

/// The overlay with only these changes, if they are possible.
fn possible(changes: &[Change]) -> Result<Overlay, Vec<weir_config::Diagnostic>> {
    Sources::new(&files(), &Overlay::default()).compose(changes)
}

fn set(path: &str, value: Value) -> Change {
    Change::Set { path: Pointer::parse(path).expect("a path"), value }
}

fn remove(path: &str) -> Change {
    Change::Remove { path: Pointer::parse(path).expect("a path") }
}

fn composed(changes: &[Change]) -> Overlay {
    let result = possible(changes);
    result.unwrap_or_else(|wrong| panic!("{}", render_text(&wrong, Colour::Never)))
}

/// The overlay as `path=value`, `-path`.
fn shown(overlay: &Overlay) -> Vec<String> {
    let show = |change: &Change| match change {
        Change::Set { path, value } => format!("{path}={value}"),
        Change::Remove { path } => format!("-{path}"),
    };
    overlay.changes().map(show).collect()
}

#[test]
fn changes_become_one_minimal_overlay() {
    let check = |changes: &[Change], expected: &[&str]| {
        let overlay = composed(changes);
        assert_eq!(shown(&overlay), expected, "{changes:?}");
        // The size counter equals that of a new overlay.
        let again = Overlay::try_from(Vec::from(overlay.clone())).expect("a sound overlay");
        assert_eq!(again, overlay);
        let text = serde_json::to_string(&overlay).expect("JSON");
        assert_eq!(serde_json::from_str::<Overlay>(&text).expect("an overlay"), overlay);
    };
    let balance = |word: &str| set("/pools/web/balance", json!(word));
    check(&[], &[]);
    check(&[balance("random_two")], &["/pools/web/balance=\"random_two\""]);
    check(
        &[balance("random_two"), balance("least_connections")],
        &["/pools/web/balance=\"least_connections\""],
    );
    // A change that equals the files is dropped.
    check(&[balance("random_two"), balance("round_robin")], &[]);
    check(&[set("/pools/web/queue/length_max", json!(5)), remove("/pools/web/queue")], &[]);
    check(&[remove("/pools/web/monitors")], &["-/pools/web/monitors"]);
    check(
        &[remove("/pools/web/monitors"), set("/pools/web/monitors", json!([{ "type": "tcp" }]))],
        &[],
    );
    // Changes inside an added value.
    let new = set("/pools/new", json!({ "members": ["10.0.0.9:80"] }));
    check(
        &[new.clone(), set("/pools/new/balance", json!("random_two"))],
        &["/pools/new={\"members\":[\"10.0.0.9:80\"],\"balance\":\"random_two\"}"],
    );
    check(
        &[new.clone(), set("/pools/new/members/10.0.0.9:80/weight", json!(0))],
        &["/pools/new={\"members\":[{\"address\":\"10.0.0.9:80\",\"weight\":0}]}"],
    );
    check(&[new.clone(), remove("/pools/new")], &[]);
    check(&[new, remove("/pools/new/members/10.0.0.9:80")], &["/pools/new={\"members\":[]}"]);
    // Changes above other changes; `web-2` is not below `web`.
    check(
        &[
            balance("random_two"),
            set("/pools/web-2", json!({ "members": [] })),
            set("/pools/web/members/10.0.0.1:80/weight", json!(7)),
            remove("/pools/web"),
        ],
        &["-/pools/web", "/pools/web-2={\"members\":[]}"],
    );
    check(
        &[balance("random_two"), set("/pools/web", json!({ "members": ["10.0.0.1:80"] }))],
        &["/pools/web={\"members\":[\"10.0.0.1:80\"]}"],
    );
    // Members by their addresses, in any notation.
    check(
        &[
            set("/pools/web/members/[::ffff:10.0.0.1]:80/weight", json!(2)),
            set("/pools/web/members/10.0.0.1:80/weight", json!(9)),
            set("/pools/web/members/10.0.0.3:80", json!({})),
            set("/pools/web/members/10.0.0.4:80", json!({ "weight": 2 })),
            set("/pools/web/members/10.0.0.5:80", json!({ "address": "10.0.0.5:80" })),
            remove("/pools/web/members/10.0.0.2:80"),
        ],
        &[
            "/pools/web/members/10.0.0.1:80/weight=9",
            "-/pools/web/members/10.0.0.2:80",
            "/pools/web/members/10.0.0.3:80=\"10.0.0.3:80\"",
            "/pools/web/members/10.0.0.4:80={\"address\":\"10.0.0.4:80\",\"weight\":2}",
            "/pools/web/members/10.0.0.5:80=\"10.0.0.5:80\"",
        ],
    );
}

#[test]
fn impossible_changes_are_refused() {
    let check = |changes: &[Change], expected: &str| {
        let wrong = possible(changes).expect_err("it is refused");
        let told = render_text(&wrong, Colour::Never).replace('\n', " ");
        assert_eq!(told.trim_end(), expected);
    };
    check(
        &[set("/pools/wbe/balance", json!("random_two"))],
        "overlay:/pools/wbe/balance: error: there is no pool `wbe` help: did you mean `web`?",
    );
    check(
        &[set("/pools/other/balance", json!("random_two"))],
        "overlay:/pools/other/balance: error: there is no pool `other` help: set all of /pools/other first",
    );
    check(
        &[set("/profiles/http/plan/headers_max", json!(5))],
        "overlay:/profiles/http/plan/headers_max: error: there is no http profile `plan` help: did you mean `plain`?",
    );
    check(
        &[set("/profiles/tcp/x/idle_timeout", json!("5s"))],
        "overlay:/profiles/tcp/x/idle_timeout: error: there is no tcp profile `x` help: set all of /profiles/tcp/x first",
    );
    check(
        &[set("/pools/web/members/10.0.0.3:80/weight", json!(1))],
        "overlay:/pools/web/members/10.0.0.3:80/weight: error: pool `web` has no member `10.0.0.3:80` help: `weir pool web` lists its members",
    );
    check(
        &[set("/pools/web/members/0/weight", json!(1))],
        "overlay:/pools/web/members/0/weight: error: `0` is not the address of a member \
         help: in a list of members write an address: /pools/web/members/10.0.0.1:80",
    );
    check(
        &[set("/policies/block/rules/0/name", json!("x"))],
        "overlay:/policies/block/rules/0/name: error: /policies/block/rules is a list, and has no keys \
         help: lists other than members are set as a whole: set /policies/block/rules",
    );
    check(
        &[set("/virtual_servers/shop/http/headers_max", json!(5))],
        "overlay:/virtual_servers/shop/http/headers_max: error: /virtual_servers/shop/http is not a map, and has no keys \
         help: set /virtual_servers/shop/http as a whole",
    );
    check(
        &[remove("/pools/web/balanse")],
        "overlay:/pools/web/balanse: error: there is nothing at /pools/web/balanse help: did you mean `balance`?",
    );
    check(
        &[remove("/pools/wbe/balance"), remove("/log")],
        "overlay:/pools/wbe/balance: error: there is no pool `wbe` help: did you mean `web`? \
         overlay:/log: error: there is nothing at /log help: see `weir diff` and the files for what is there",
    );
    check(
        &[remove("/pools/web"), set("/pools/web/balance", json!("random_two"))],
        "overlay:/pools/web/balance: error: /pools/web is removed by the overlay help: set /pools/web as a whole",
    );
    check(
        &[set("/pools/web/members/10.0.0.1:80", json!({ "address": "10.0.0.2:80" }))],
        "overlay:/pools/web/members/10.0.0.1:80: error: the value has another address than its path, `10.0.0.1:80` \
         help: leave out `address`: it is in the path",
    );
    check(
        &[set("/pools/web/members/10.0.0.1:80/address", json!("10.0.0.2:80"))],
        "overlay:/pools/web/members/10.0.0.1:80/address: error: a member's address is in its path, and cannot change \
         help: remove the member, and set another one",
    );
    check(
        &[set("/pools/web/members/10.0.0.1:80", json!(5))],
        "overlay:/pools/web/members/10.0.0.1:80: error: the value of a member is a map of its settings \
         help: `{}` for one without settings",
    );
    let deep = (0..NODE_DEPTH).fold(json!(1), |value, _| json!([value]));
    check(
        &[set("/pools/web/balance", deep)],
        "overlay:/pools/web/balance: error: lists and maps are nested more than 32 deep \
         help: set a value that is not nested as deep",
    );
}

const NODE_DEPTH: usize = NODE_DEPTH_MAX;

#[test]
fn what_changes_arrive_by_is_not_overlaid() {
    for (path, told) in [
        ("/include", "/include cannot be changed by an overlay: it says which files there are"),
        ("/admin/listen", "/admin cannot be changed by an overlay: it is the listener"),
        (
            "/state_dir",
            "/state_dir cannot be changed by an overlay: the overlay itself is kept there",
        ),
        (
            "/data_plane/workers",
            "/data_plane/workers cannot be changed by an overlay: only a restart",
        ),
        ("/data_plane", "/data_plane/workers cannot be changed by an overlay: only a restart"),
    ] {
        for change in [set(path, json!({})), remove(path)] {
            let wrong = possible(&[change]).expect_err(path);
            assert!(wrong[0].message.starts_with(told), "{path}: {}", wrong[0].message);
        }
    }
    let drain = set("/data_plane/drain_timeout", json!("5s"));
    assert_eq!(composed(&[drain]).len(), 1, "a key beside it is not protected");
}

#[test]
fn an_overlay_is_checked_as_the_files_are() {
    let check = |changes: &[Change], expected: &str| {
        let loaded = Sources::new(&files(), &composed(changes)).check();
        let errors = loaded.diagnostics.iter().filter(|it| it.severity == Severity::Error);
        let told: Vec<_> = errors.cloned().collect();
        assert_eq!(render_text(&told, Colour::Never).replace('\n', " ").trim_end(), expected);
        assert_eq!(loaded.config.is_some(), expected.is_empty());
    };
    check(&[], "");
    check(&[set("/pools/web/members/10.0.0.1:80/weight", json!(5))], "");
    check(
        &[set("/pools/web/balance", json!("random"))],
        "overlay:/pools/web/balance: error: `pools.web.balance` must be `round_robin`, `least_connections`, \
         `least_response_time`, `random_two` or `source_address`, found the text \"random\" \
         help: did you mean `random_two`?",
    );
    check(
        &[set("/pools/web/qeue", json!({ "length_max": 5 }))],
        "overlay:/pools/web/qeue: error: unknown key `qeue` in `pools.web` help: did you mean `queue`?",
    );
    check(
        &[set("/pool/web/balance", json!("random_two"))],
        "overlay:/pool: error: unknown key `pool` in the configuration help: did you mean `pools`?",
    );
    check(
        &[set("/pools/web/monitors", json!([{ "type": "tcp", "interval": "0s" }]))],
        "overlay:/pools/web/monitors/0/interval: error: `pools.web.monitors[0].interval` must be a duration \
         from 100ms to 24h (units: ms, s, m, h, d), found the text \"0s\"",
    );
    check(
        &[remove("/pools/web")],
        "weir.yaml:2:39: error: pool `web` is not defined  2 |   shop: { listen: 127.0.0.1:80, pool: web, http: plain }    \
         |                                       ^^^ help: defined: `token-service`",
    );
    check(
        &[set("/virtual_servers/b", json!({ "listen": "127.0.0.1:80", "pool": "web" }))],
        "overlay:/virtual_servers/b/listen: error: `127.0.0.1:80` is used twice: in line 2 of weir.yaml by virtual server `shop` \
         help: give each listener its own address or port",
    );
}

#[test]
fn stale_changes_are_skipped_with_a_warning() {
    let overlay = composed(&[
        set("/pools/web/balance", json!("random_two")),
        set("/pools/web/members/10.0.0.2:80/weight", json!(9)),
        remove("/pools/web/monitors"),
        remove("/pools/token-service"),
        set("/policies/block/strategy", json!("all_match")),
    ]);
    let later = Files::of_text(
        "weir.yaml",
        "virtual_servers: { a: { listen: 127.0.0.1:80, pool: web } }\n\
         pools: { web: { balance: random_two, members: [ 10.0.0.1:80 ] } }\n",
    );
    let loaded = Sources::new(&later, &overlay).check();
    assert!(loaded.config.is_some());
    let told = render_text(&loaded.diagnostics, Colour::Never);
    let help = "help: remove it from the overlay, or mend the file\n";
    let expected = format!(
        "overlay:/policies/block/strategy: warning: this change is skipped: there is no policy `block`\n{help}\
         overlay:/pools/web/members/10.0.0.2:80/weight: warning: this change is skipped: \
         pool `web` has no member `10.0.0.2:80`\n{help}"
    );
    assert_eq!(told, expected);
    let effects: Vec<String> = Sources::new(&later, &overlay)
        .differences()
        .iter()
        .map(|it| format!("{} {}", it.effect.as_str(), it.path))
        .collect();
    assert_eq!(
        effects,
        [
            "stale /policies/block/strategy",
            "redundant /pools/token-service",
            "redundant /pools/web/balance",
            "stale /pools/web/members/10.0.0.2:80/weight",
            "redundant /pools/web/monitors",
        ]
    );
    // The same change is refused when it is proposed again, and can be removed.
    let again = set("/policies/block/strategy", json!("all_match"));
    assert!(Sources::new(&later, &overlay).compose(&[again]).is_err());
    let less = Sources::new(&later, &overlay)
        .compose(&[remove("/policies/block/strategy")])
        .expect("dropped");
    assert_eq!(less.len(), overlay.len() - 1);
}

#[test]
fn differences_are_shown_without_secrets() {
    let overlay = composed(&[
        set("/pools/token-service/balance", json!("random_two")),
        set("/pools/web/members/10.0.0.2:80/weight", json!(9)),
        set(
            "/pools/web/monitors",
            json!([{ "type": "http", "password": "hunter2", "user": "me" }]),
        ),
        set("/pools/web/tls/password", json!("hunter2")),
        remove("/policies/block"),
    ]);
    let shown: Vec<String> = Sources::new(&files(), &overlay)
        .differences()
        .iter()
        .map(|it| {
            let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
            let (place, file, overlay) = (text(&it.place), text(&it.file), text(&it.overlay));
            format!("{} {} {place} {file} => {overlay}", it.effect.as_str(), it.path)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "removed /policies/block weir.yaml:13 rules:\n  - then:\n      - respond:\n          status: 405 => -",
            "added /pools/token-service/balance - - => random_two",
            "changed /pools/web/members/10.0.0.2:80/weight weir.yaml:8 3 => 9",
            "changed /pools/web/monitors weir.yaml:10 - type: tcp => - type: http\n  password: \"********\"\n  user: me",
            "added /pools/web/tls/password - - => \"********\"",
        ]
    );
    let concealed: Vec<String> = overlay
        .changes()
        .map(|change| serde_json::to_string(&change.concealed()).expect("JSON"))
        .collect();
    assert!(concealed.iter().all(|it| !it.contains("hunter2")), "{concealed:?}");
    assert_eq!(concealed[4], r#"{"op":"set","path":"/pools/web/tls/password","value":"********"}"#);
}

#[test]
fn what_is_merged_is_read_as_the_same() {
    let overlay = composed(&[
        set("/pools/web/members/10.0.0.1:80/weight", json!(2)),
        set("/pools/web/members/10.0.0.3:80", json!({})),
        remove("/pools/web/members/10.0.0.2:80"),
        set("/log/access/format", json!("off")),
    ]);
    let merged = Sources::new(&files(), &overlay).to_yaml();
    let one = Files::of_text("weir.yaml", &merged);
    let config = |files: &Files, overlay: &Overlay| {
        Sources::new(files, overlay).check().config.expect("a sound configuration")
    };
    let (nothing, expected) = (Overlay::default(), config(&files(), &overlay));
    assert_eq!(config(&one, &nothing).changes_from(&expected), [], "{merged}");
    assert_eq!(Sources::new(&one, &nothing).to_yaml(), merged, "it stays the same");
    assert!(merged.contains("  - address: 10.0.0.1:80\n        weight: 2\n"), "{merged}");
}

#[test]
fn stored_overlays_are_checked() {
    for (text, told) in [
        (r#"[{"op":"set","path":"/admin/listen","value":1}]"#, "cannot be changed"),
        (r#"[{"op":"set","path":"/a","value":1},{"op":"remove","path":"/a/b"}]"#, "the same place"),
        (r#"[{"op":"remove","path":"/a/b"},{"op":"set","path":"/a","value":1}]"#, "the same place"),
        (r#"[{"op":"set","path":"a","value":1}]"#, "is not a path"),
        (r#"[{"op":"set","path":"/a"}]"#, "missing field `value`"),
        (r#"[{"op":"set","path":"/a","value":1,"more":1}]"#, "unknown field `more`"),
        (r#"[{"op":"add","path":"/a","value":1}]"#, "unknown variant `add`"),
    ] {
        let error = serde_json::from_str::<Overlay>(text).expect_err(text).to_string();
        assert!(error.contains(told), "{text}: {error}");
    }
}

/// 10,000 members of one pool, each with its own change.
#[test]
fn many_changes_take_little_time() {
    // Ten times as many changes take about ten times as long, not a hundred times.
    let few = cpu_time_of(|| check_changes(1_000));
    let many = cpu_time_of(|| check_changes(10_000));
    assert!(many < 40 * few, "{few:?} for 1,000 changes, {many:?} for 10,000");
}

/// Checks a configuration with one change for each member.
fn check_changes(members: usize) {
    let members: Vec<String> =
        (0..members).map(|it| format!("10.0.{}.{}:80", it / 250, it % 250 + 1)).collect();
    let text = format!(
        "virtual_servers: {{ a: {{ listen: 127.0.0.1:80, pool: p }} }}\npools: {{ p: {{ members: [ {} ] }} }}\n",
        members.join(", ")
    );
    let files = Files::of_text("weir.yaml", &text);
    let changes: Vec<Change> = members
        .iter()
        .map(|member| set(&format!("/pools/p/members/{member}/weight"), json!(2)))
        .collect();
    let overlay = Overlay::try_from(changes).expect("a sound overlay");
    assert_eq!(Sources::new(&files, &overlay).check().diagnostics, []);
}
