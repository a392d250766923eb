//! Explanations step by step: what each of them tells.

use std::sync::Arc;

use serde_json::json;
use weir_api::asked::Asked;
use weir_api::explanation::{Explanation, Outcome, RuleVerdict};
use weir_core::admin_state::AdminState;
use weir_core::clock::Clock;
use weir_core::monitor::Health;
use weir_exchange::environment::Environment;
use weir_exchange::local::surroundings::Sources;
use weir_exchange::shared::live::LiveTable;
use weir_explain::{Moment, explain};

const CLOCK_US: u64 = 1_000_000_000;

const SOURCES: Sources = Sources { unix_s: || 1_800_000_000, fill_randomly: |bytes| bytes.fill(7) };

/// In the folder of the examples, so that files of those can be named.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/test.yaml");

fn live(text: &str) -> LiveTable {
    let parsed = weir_config::parse(FILE, text);
    let config = parsed.config.unwrap_or_else(|| panic!("{:#?}", parsed.diagnostics));
    let snapshot = Arc::new(config.snapshot(&weir_config::Resolutions::default()));
    let clock = Clock::at_us(CLOCK_US);
    let outside = Environment { clock, fill_randomly: SOURCES.fill_randomly };
    let live = LiveTable::build(snapshot, None, 1, &outside);
    live.enter_into_force(clock.now_ms());
    live
}

fn try_explain(live: &LiveTable, asked: serde_json::Value) -> Result<Explanation, String> {
    let asked: Asked = serde_json::from_value(asked).expect("a request");
    let clock = Clock::at_us(CLOCK_US);
    let moment = Moment { clock, sources: SOURCES, cpu_us: || 0 };
    let before = format!("{live:?}");
    let explained = explain(live, &asked, moment).map_err(|why| why.to_string());
    assert!(before == format!("{live:?}"), "it changes the live state");
    explained
}

#[track_caller]
fn explained(live: &LiveTable, asked: serde_json::Value) -> Explanation {
    try_explain(live, asked).expect("it is clear")
}

/// The status of weir's own answer; 0: the request goes to a member.
fn status(explained: &Explanation) -> u16 {
    match &explained.outcome {
        Outcome::Answer { status, .. } => *status,
        Outcome::Member { .. } => 0,
        other => panic!("{other:?}"),
    }
}

const SERVER: &str = "virtual_servers:\n  v: { listen: 127.0.0.1:80, pool: p, ";
const POOLS: &str = "pools: { p: { members: [ 127.0.0.1:9001 ] } }\n";

#[test]
fn a_request_is_followed_to_the_virtual_server_that_it_is_handed_to() {
    let live = live(&format!(
        "{SERVER}policies: [ over ] }}\n  inner: {{ pool: p, policies: [ inner ] }}\n{POOLS}policies:\n  \
         over: {{ rules: [ {{ then: [ {{ rewrite_path: /b }}, {{ virtual_server: inner }} ] }} ] }}\n  \
         inner: {{ rules: [ {{ when: 'request.path == \"/b\"', then: [ {{ set_header: {{ A: b }} }} ] }} ] }}\n"
    ));
    let it = explained(&live, json!({ "url": "http://127.0.0.1/a" }));
    let names: Vec<&str> = it.virtual_servers.iter().map(|it| &*it.virtual_server).collect();
    assert_eq!(names, ["v", "inner"]);
    assert_eq!(it.virtual_servers[0].verdict, "is handed to virtual server inner");
    let rewrite = &it.virtual_servers[0].rewrites[0];
    assert_eq!((&*rewrite.part, &*rewrite.before, &*rewrite.after), ("path", "/a", "/b"));
    let rule = &it.virtual_servers[1].policies[0].rules[0];
    assert_eq!((rule.verdict, rule.holds), (RuleVerdict::Followed, Some(true)));
    assert_eq!(rule.values[0].value.as_deref(), Some("/b"));
    assert_eq!(rule.actions, ["set_header: A: b"]);
    assert!(rule.place.ends_with("test.yaml:7:21"), "{}", rule.place);
    let Outcome::Member { request_line, headers, .. } = &it.outcome else { panic!("{it:?}") };
    assert_eq!(request_line, "GET /b HTTP/1.1");
    assert!(headers.iter().any(|it| (&*it.name, &*it.value) == ("A", "b")), "{headers:?}");
}

#[test]
fn the_place_of_a_key_that_is_short_for_a_rule_is_that_of_the_key() {
    let keys = "https_redirect: true,\n    allowed_clients: [ 10.0.0.0/8 ]";
    let live = live(&format!("{SERVER}{keys} }}\n{POOLS}"));
    let asked = |from: &str| json!({ "url": "http://127.0.0.1/", "from": from });
    let it = explained(&live, asked("192.0.2.1"));
    let rule = &it.connection_policies[0].rules[0];
    assert_eq!(&*rule.name, "allowed_clients");
    assert!(rule.place.ends_with("test.yaml:3:22"), "{}", rule.place);
    let it = explained(&live, asked("10.0.0.1"));
    let rule = &it.virtual_servers[0].policies[0].rules[0];
    assert_eq!(&*rule.name, "https_redirect");
    assert!(rule.place.ends_with("test.yaml:2:55"), "{}", rule.place);
}

#[test]
fn limits_have_room_until_they_are_used() {
    let limits = "limits: { requests: 1, per_key: [ { key: \"${request.headers['x-user']}\", requests_per_second: 2, burst: 2, entries_max: 16 } ] }";
    let live = live(&format!("{SERVER}{limits} }}\n{POOLS}"));
    let asked = json!({ "url": "http://127.0.0.1/", "headers": ["X-User: ann"] });
    let it = explained(&live, asked.clone());
    let limits = &it.virtual_servers[0].limits;
    assert_eq!((limits[0].room, limits[0].max, limits[0].is_exceeded), (1, 1, false));
    assert_eq!((limits[1].room, limits[1].max, limits[1].key.as_deref()), (2, 2, Some("ann")));
    assert_eq!(limits[1].name, "virtual_servers.v.limits.per_key[0]");
    assert_eq!(status(&it), 0);
    live.virtual_servers[0].used.requests_under_way.store(1, std::sync::atomic::Ordering::Relaxed);
    let it = explained(&live, asked);
    assert!(it.virtual_servers[0].limits[0].is_exceeded);
    assert_eq!(status(&it), 429);
    assert!(it.virtual_servers[0].pool.is_none());
}

#[test]
fn passwords_are_checked_by_their_hashes() {
    let live = live(&format!(
        "{SERVER}authenticate: staff, policies: [ named ] }}\n{POOLS}authentication:\n  \
         staff: {{ type: basic, users: staff.htpasswd }}\npolicies:\n  named: {{ rules: [ \
         {{ when: 'request.user == \"ann\"', then: [ {{ set_header: {{ X-Is: ann }} }} ] }} ] }}\n"
    ));
    let asked = |headers: &[&str]| json!({ "url": "http://127.0.0.1/", "headers": headers });
    assert_eq!(status(&explained(&live, asked(&[]))), 401);
    // ann:wrong
    let it = explained(&live, asked(&["Authorization: Basic YW5uOndyb25n"]));
    assert_eq!(status(&it), 401, "{it:#?}");
    assert!(it.remarks.iter().any(|it| it == "`staff`: the password is wrong"), "{:?}", it.remarks);
    assert!(!format!("{it:?}").contains("YW5uOndyb25n"), "{it:?}");
    // ann:abc
    let it = explained(&live, asked(&["Authorization: Basic YW5uOmFiYw=="]));
    assert_eq!(status(&it), 0, "{it:#?}");
    let mut rules = it.virtual_servers[0].policies.iter().flat_map(|policy| &policy.rules);
    let named = rules.find(|rule| rule.values.iter().any(|it| it.name == "request.user"));
    let named = named.expect("the rule that reads the user");
    assert_eq!((named.verdict, named.holds), (RuleVerdict::Followed, Some(true)));
    assert_eq!(named.values[0].value.as_deref(), Some("ann"));
}

#[test]
fn a_service_is_supposed_to_let_the_request_in() {
    let live = live(&format!(
        "{SERVER}authenticate: portal }}\npools: {{ p: {{ members: [ 127.0.0.1:9001 ] }}, service: {{ members: [ 127.0.0.1:9002 ] }} }}\n\
         authentication: {{ portal: {{ type: external, pool: service }} }}\n"
    ));
    let it = explained(&live, json!({ "url": "http://127.0.0.1/" }));
    assert_eq!(status(&it), 0, "{it:#?}");
    assert_eq!(it.virtual_servers[0].authentication, ["`portal` asks its service"]);
    assert!(it.remarks[0].contains("a service in pool service is asked"), "{:?}", it.remarks);
}

#[test]
fn credentials_that_authenticate_a_connection_are_told() {
    let asked = |scheme: &str| {
        let header = format!("Authorization: {scheme} TlRMTVNTUAAB");
        json!({ "url": "http://127.0.0.1/", "headers": [ header ] })
    };
    for (pool, scheme, told) in [
        ("", "NTLM", Some("belongs to this client connection")),
        ("", "negotiate", Some("belongs to this client connection")),
        ("", "Basic", None),
        (", http2: true", "Negotiate", Some("gets one of its own")),
        (", reuse: { connection_authentication: share }", "NTLM", Some("the pool shares it")),
    ] {
        let pools = format!("pools: {{ p: {{ members: [ 127.0.0.1:9001 ]{pool} }} }}\n");
        let it = explained(&live(&format!("{SERVER}}}\n{pools}")), asked(scheme));
        let about = it.remarks.iter().find(|remark| remark.starts_with("`reuse`"));
        let is_told = about.map(|remark| told.is_some_and(|told| remark.contains(told)));
        assert_eq!(is_told, told.map(|_| true), "{pool} {scheme}: {:?}", it.remarks);
    }
}

#[test]
fn the_certificate_is_that_of_the_name() {
    let tls = "tls: { certificates: [ { cert: tls/shop-ec.crt, key: tls/shop-ec.key } ] }";
    let live = live(&format!("{SERVER}{tls} }}\n{POOLS}"));
    let certificate = |url: &str| {
        let it = explained(&live, json!({ "url": url, "virtual_server": "v" }));
        let tls = it.listener.tls.expect("it has TLS");
        (tls.server_name, tls.certificate.expect("a certificate"))
    };
    let names = live.snapshot.shown().next().expect("TLS").names.clone();
    let own = names.iter().find(|name| !name.starts_with('*')).expect("a name");
    let (name, certificate_of_own) = certificate(&format!("https://{own}/"));
    assert_eq!((&name, certificate_of_own.is_default), (own, false));
    assert!(certificate("https://stranger.example/").1.is_default);
    let why = try_explain(&live, json!({ "url": "http://shop.example:80/" })).expect_err("plain");
    assert_eq!(why, "`v` has TLS: ask by https://");
}

#[test]
fn connections_that_are_not_let_in_have_no_requests() {
    let live = live(&format!(
        "{SERVER}connection_policies: [ office ] }}\n{POOLS}policies:\n  office: {{ rules: [ \
         {{ name: strangers, when: '!cidr(\"10.0.0.0/8\").containsIP(client.ip)', then: [ reset ] }} ] }}\n"
    ));
    let it = explained(&live, json!({ "url": "http://127.0.0.1/", "from": "192.0.2.1" }));
    let Outcome::Closed { is_reset: true, termination } = &it.outcome else { panic!("{it:?}") };
    assert_eq!(termination, "policy");
    assert_eq!(it.connection_policies[0].rules[0].verdict, RuleVerdict::Followed);
    assert!(it.virtual_servers.is_empty());
    let it = explained(&live, json!({ "url": "http://127.0.0.1/", "from": "10.0.0.1" }));
    assert_eq!(it.connection_policies[0].rules[0].verdict, RuleVerdict::False);
    assert_eq!(status(&it), 0);
}

#[test]
fn members_are_shown_as_they_are() {
    let live = live(
        "virtual_servers: { v: { listen: 127.0.0.1:80, pool: p } }\npools: { p: { members: [ 127.0.0.1:1, 127.0.0.1:2, \
         127.0.0.1:3 ], maintenance: { body: later, content_type: text/plain } } }\n",
    );
    let members = &live.pools[0].members;
    members[0].set_state_override(Some(AdminState::Drain));
    members[1].set_health(Health::Down, 1);
    let asked = json!({ "url": "http://127.0.0.1/" });
    let it = explained(&live, asked.clone());
    let balancing = it.balancing.as_ref().expect("it is balanced");
    let told: Vec<_> = balancing
        .candidates
        .iter()
        .map(|it| (&*it.state, &*it.administrative, it.is_eligible, it.is_possible))
        .collect();
    let expected = [
        ("up", "drain", false, false),
        ("down", "enabled", false, false),
        ("up", "enabled", true, true),
    ];
    assert_eq!(told, expected);
    assert_eq!(balancing.member.as_deref(), Some("127.0.0.1:3"));
    members[2].set_health(Health::Down, 1);
    let it = explained(&live, asked);
    assert_eq!(it.balancing.as_ref().expect("told").because, "no member takes requests");
    let Outcome::Answer { status: 503, body: Some(body), .. } = &it.outcome else {
        panic!("{it:?}")
    };
    assert_eq!(body, "later");
}

#[test]
fn what_is_malformed_is_answered_before_any_rule() {
    let live = live(&format!("{SERVER}}}\n{POOLS}").replace(", }", " }"));
    let of = |url: &str, headers: &[&str]| {
        let it = explained(&live, json!({ "url": url, "headers": headers }));
        assert!(it.virtual_servers.is_empty());
        status(&it)
    };
    assert_eq!(of("http://127.0.0.1/%5c", &[]), 400);
    let refused = explained(&live, json!({ "url": "http://127.0.0.1/%5c" }));
    assert!(
        refused.remarks[0].contains("`http.path.backslashes` of virtual server `v`"),
        "{refused:?}"
    );
    assert_eq!(of("http://127.0.0.1/", &["Host: a b"]), 400);
    assert_eq!(of("http://127.0.0.1/", &["Content-Length: x"]), 400);
    let why = try_explain(&live, json!({ "url": "http://127.0.0.1/", "headers": ["nothing"] }));
    assert!(why.expect_err("unclear").contains("is no header"));
}

#[test]
fn the_firewall_tells_of_rules_with_their_places() {
    let live = live(&format!("{SERVER}waf: {{ mode: block, rules: [ builtin ] }} }}\n{POOLS}"));
    let headers = ["Accept: */*", "User-Agent: curl/8", "Host: shop.example"];
    let asked = |url: &str| json!({ "url": url, "headers": headers });
    let it = explained(&live, asked("http://127.0.0.1/?q=shoes"));
    let firewall = it.firewall.as_ref().expect("it was inspected");
    assert_eq!(
        (&*firewall.outcome, firewall.status, status(&it)),
        ("passed", None, 0),
        "{firewall:?}"
    );
    let it = explained(&live, asked("http://127.0.0.1/?q=1'+or+1=1--&password=s3cr3tpw"));
    let firewall = it.firewall.as_ref().expect("it was inspected");
    assert_eq!((&*firewall.outcome, firewall.status), ("blocked", Some(403)), "{firewall:?}");
    assert!(firewall.score >= firewall.threshold && firewall.threshold > 0, "{firewall:?}");
    assert!(firewall.rules.iter().any(|rule| rule.place.is_some() && !rule.values.is_empty()));
    assert!(!format!("{it:?}").contains("s3cr3tpw"), "{it:#?}");
}
