//! Records of requests hold no bytes of other requests. Each request has a tag of its own in its target, fields, cookie and
//! body. Many clients send requests at a time: one after another and pipelined on kept connections, on streams of HTTP/2, with
//! resets, refusals and failing members.

mod clients;
mod told;
mod websockets;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;
use weir_tests::STEP_TIMEOUT;
use weir_tests::member::{Exchange, Member, Then};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;

use clients::{Expected, KINDS};
use told::{Reader, check_tags};

/// Clients of each kind.
const CLIENTS: usize = 2;

/// Requests of each client.
const REQUESTS: usize = 60;

/// A rule whose message has bytes of the request.
const WAF_RULES: &str =
    "SecRule REQUEST_HEADERS:X-Tag \"@rx .\" \"id:1,phase:1,pass,log,msg:'of %{MATCHED_VAR}'\"\n";

const TOP: &str = "recent_requests: { keep: 100000, slow: \"off\" }
data_plane: { workers: 2 }
persistence: { stay: { type: cookie, name: STAY } }
policies:
  tagging:
    strategy: all_match
    rules:
      - { name: marked, when: '\"x-tag\" in request.headers', then: [ { trace: 'mark ${request.headers[\"x-tag\"]}' } ] }
      - { name: answered, when: 'request.path.startsWith(\"/answered/\")', then: [ { respond: { status: 410, body: \"${request.headers[\\\"x-tag\\\"]}\" } } ] }
      - { name: rewritten, when: 'request.path.startsWith(\"/rewritten/\")', then: [ { rewrite_path: { regex: \"^/rewritten/(.*)\", to: \"/new/$1\" } } ] }";

/// A member that answers with the tag of the request. `fails`: it breaks off for some paths.
fn member(fails: bool) -> Member {
    Member::new(move |exchange: &mut Exchange<'_>| {
        if fails && exchange.request.target().starts_with("/fails/") {
            return Ok(Then::Reset);
        }
        let tag = exchange.request.head.field("x-tag").unwrap_or_default().to_owned();
        exchange.answer(tag)
    })
}

fn start(members: &[&Member], files: &TempDir) -> Proxy {
    let rules = files.write("rules.conf", WAF_RULES);
    let addresses: Vec<_> = members.iter().map(|member| member.address()).collect();
    let setup = Setup::new(&addresses)
        .pool("balance: round_robin")
        .pool("reuse: { idle_per_worker: 4 }")
        .http("http2: true, head_size_max: 16KiB")
        .virtual_server("policies: [ tagging ]")
        .virtual_server("persistence: stay")
        .virtual_server(&format!("waf: {{ mode: detect, rules: [ {} ] }}", rules.display()))
        .top(TOP)
        .admin_socket();
    Proxy::start(&setup)
}

/// All clients at a time. Returns how often each tag must be recorded, with which status.
fn send_all(proxy: &Proxy) -> BTreeMap<String, Expected> {
    let address = proxy.address();
    std::thread::scope(|scope| {
        let mut clients = Vec::new();
        for (number, kind) in KINDS.iter().cycle().take(KINDS.len() * CLIENTS).enumerate() {
            clients.push(scope.spawn(move || kind(address, number, REQUESTS)));
        }
        clients.into_iter().flat_map(|client| client.join().expect("a client")).collect()
    })
}

/// What is missing: each request has one record, except those that a reset may have overtaken.
fn missing(records: &[Value], expected: &BTreeMap<String, Expected>) -> Vec<String> {
    let mut counts = BTreeMap::<String, usize>::new();
    let mut without = 0;
    for record in records {
        match told::tag_of_target(record) {
            Some(tag) => *counts.entry(tag).or_default() += 1,
            None => without += 1,
        }
    }
    let repeated = counts.iter().find(|(_, count)| **count > 1);
    assert_eq!(repeated, None, "each request has one record");
    let sure = expected.iter().filter(|(_, it)| it.has_line && it.is_sure);
    let mut missing: Vec<String> =
        sure.map(|(tag, _)| tag.clone()).filter(|tag| !counts.contains_key(tag)).collect();
    let without_line = expected.values().filter(|it| !it.has_line).count();
    if without != without_line {
        missing.push(format!("{without} of {without_line} without a request line"));
    }
    missing
}

#[test]
fn a_record_has_only_bytes_of_its_own_request() {
    let files = TempDir::new("recorded");
    let (one, other) = (member(true), member(false));
    let proxy = start(&[&one, &other], &files);
    let follower = told::follow(&proxy);
    let expected = send_all(&proxy);
    let mut reader = Reader::new(&proxy);
    let mut records = reader.all();
    let deadline = Instant::now() + STEP_TIMEOUT;
    while let missing = missing(&records, &expected)
        && !missing.is_empty()
    {
        assert!(Instant::now() < deadline, "{} records; missing: {missing:?}", records.len());
        std::thread::sleep(Duration::from_millis(10));
        records = reader.all();
    }
    let mut statuses = BTreeMap::<(String, u64), usize>::new();
    for record in &records {
        let id = record["id"].as_str().expect("an id");
        let one = reader.one(&format!("/v1/requests/{id}"));
        let own = told::tag_of_target(record);
        check_tags(&one, own.as_deref()).unwrap_or_else(|why| panic!("{why}: {one:#}"));
        let termination = record["termination"].as_str().expect("a termination").to_owned();
        *statuses.entry((termination, record["status"].as_u64().unwrap_or(0))).or_default() += 1;
        let Some(own) = own else { continue };
        let expected = expected.get(&own).unwrap_or_else(|| panic!("{own} was not sent"));
        assert!(expected.fits(record), "{expected:?}: {one:#}");
        let why = reader.one(&format!("/v1/requests/{id}/explanation"));
        check_tags(&why, Some(&own)).unwrap_or_else(|error| panic!("{error}: {why:#}"));
    }
    eprintln!("{} records: {statuses:?}", records.len());
    let kinds = [
        ("complete", 200),
        ("policy", 410),
        ("client_malformed", 400),
        ("client_limit", 414),
        ("client_limit", 431),
        ("path_refused", 400),
        ("client_abort", 400),
    ];
    for (why, status) in kinds {
        assert!(statuses.contains_key(&(why.to_owned(), status)), "{why} {status}: {statuses:?}");
    }
    assert!(records.iter().any(|record| record["retries"] == 1), "some members have failed");
    let lines = follower.end();
    assert!(lines.len() > records.len() / 2, "{} lines", lines.len());
    for line in &lines {
        let line: Value = serde_json::from_str(line).expect("JSON");
        check_tags(&line, told::tag_of_target(&line).as_deref()).expect("its own bytes");
    }
}
