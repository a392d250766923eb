//! Many transactions at once, under traffic: each is in force or refused as it should be, no request of a client fails, and the
//! audit log has exactly one line for each.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weir_tests::client::{Client, Response};
use weir_tests::load::{Load, Plan};
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;

/// Transactions, unless `WEIR_TEST_CHANGES` says otherwise; 10000 for the full test.
const CHANGES: usize = 600;
/// Clients that send transactions at the same time.
const CHANGERS: usize = 30;
/// Transactions after which a client takes another connection: well before weir ends it for its age.
const PER_CONNECTION: usize = 1_000;

fn changes() -> usize {
    let asked = std::env::var("WEIR_TEST_CHANGES").ok();
    asked.map_or(CHANGES, |text| text.parse().expect("a number of transactions"))
}

/// The highest weight. The more weights, the fewer transactions find their own in force, and make no version.
const WEIGHT_MAX: usize = 250;

/// The kinds of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Is in force afterwards.
    Sound,
    /// Only checks.
    Dry,
    /// The configuration would be wrong.
    Wrong,
    /// Was decided on an old version.
    Late,
}

/// One transaction.
#[derive(Debug, Clone, Copy)]
struct Change {
    number: usize,
    kind: Kind,
    /// The changed member.
    member: usize,
    weight: usize,
}

impl Change {
    fn new(number: usize, members: usize) -> Self {
        let kind = match number / 7 % 10 {
            3 => Kind::Dry,
            6 => Kind::Wrong,
            9 => Kind::Late,
            _ => Kind::Sound,
        };
        Self { number, kind, member: number / 11 % members, weight: 1 + number % WEIGHT_MAX }
    }

    fn comment(&self) -> String {
        format!("change {}", self.number)
    }

    fn expected_status(&self) -> u16 {
        match self.kind {
            Kind::Sound | Kind::Dry => 200,
            Kind::Wrong => 409,
            Kind::Late => 412,
        }
    }

    fn send(&self, client: &mut Client, members: &[Member]) -> Response {
        let place = place_of(&members[self.member]);
        let change = match self.kind {
            Kind::Wrong => {
                json!({ "op": "set", "path": "/pools/members/balance", "value": "nonsense" })
            }
            _ => json!({ "op": "set", "path": place, "value": self.weight }),
        };
        let body = json!({ "comment": self.comment(), "changes": [change] }).to_string();
        let query = if self.kind == Kind::Dry { "?dry_run=true" } else { "" };
        let condition = if self.kind == Kind::Late { "If-Match: \"version-0\"\r\n" } else { "" };
        let length = body.len();
        client.send(format!(
            "POST /v1/changes{query} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{condition}\
             Content-Length: {length}\r\n\r\n{body}"
        ));
        client.response()
    }
}

fn place_of(member: &Member) -> String {
    format!("/pools/members/members/{}/weight", member.address())
}

/// A transaction and its answer.
#[derive(Debug)]
struct Answered {
    change: Change,
    request_id: String,
    version: Option<u64>,
    /// Another client had set the same weight just before.
    is_unchanged: bool,
}

fn answered(change: Change, response: &Response) -> Answered {
    assert_eq!(response.status, change.expected_status(), "{change:?}: {}", response.text());
    let body: Value = serde_json::from_slice(&response.body).expect("JSON");
    let request_id = response.head.field("x-request-id").expect("an id").to_owned();
    let is_unchanged = body["state"] == "unchanged";
    Answered { change, request_id, version: body["version"].as_u64(), is_unchanged }
}

/// Sends the transactions whose numbers leave this rest.
fn send_all(proxy: &Proxy, members: &[Member], rest: usize) -> Vec<Answered> {
    let own: Vec<usize> = (1..=changes()).filter(|number| number % CHANGERS == rest).collect();
    let mut all = Vec::new();
    for part in own.chunks(PER_CONNECTION) {
        let mut client = proxy.admin_client();
        for number in part {
            let change = Change::new(*number, members.len());
            all.push(answered(change, &change.send(&mut client, members)));
        }
    }
    all
}

fn get(proxy: &Proxy, path: &str) -> Value {
    serde_json::from_str(&proxy.admin_get(path)).expect("JSON")
}

#[test]
fn each_is_in_force_or_refused_and_audited_once() {
    let files = TempDir::new("changes");
    let audit = files.path().join("audit.log");
    let members = [Member::named("a"), Member::named("b"), Member::named("c")];
    let setup = Setup::new(&members.each_ref().map(Member::address))
        .top(&format!("state_dir: {}", files.path().join("state").display()))
        .audit_to(&audit)
        .admin_socket();
    let mut proxy = Proxy::start(&setup);
    let plan =
        Plan { connections: 6, pause: Duration::from_millis(5), requests_per_connection: None };
    let load = Load::start(proxy.address(), "/", plan);

    // The first one makes a version, so that version 0 is old for all others.
    let first = Change { number: 0, kind: Kind::Sound, member: 0, weight: WEIGHT_MAX };
    let mut all = vec![answered(first, &first.send(&mut proxy.admin_client(), &members))];
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let (proxy, members) = (&proxy, &members);
        let threads: Vec<_> =
            (0..CHANGERS).map(|rest| scope.spawn(move || send_all(proxy, members, rest))).collect();
        all.extend(threads.into_iter().flat_map(|it| it.join().expect("a client")));
    });
    let took = begun.elapsed();
    load.wait_for_good(10);
    let tally = load.stop();

    assert_eq!(tally.failed() + tally.lost_connections, 0, "{tally:?}");
    let sound = check_versions(&proxy, &members, &all);
    check_audit(&proxy, &audit, &all);
    println!(
        "{} transactions by {CHANGERS} clients in {:.1} s, {sound} of them in force; {} requests of clients, none failed",
        all.len(),
        took.as_secs_f64(),
        tally.good,
    );

    // What was in force is again after a restart.
    let before = get(&proxy, "/v1/diff");
    proxy.restart(&setup);
    let socket = proxy.admin_address();
    let socket = socket.strip_prefix("unix:").expect("a unix socket");
    // The socket of the process before is still there.
    weir_tests::eventually("the admin listener answers", weir_tests::STEP_TIMEOUT, || {
        UnixStream::connect(socket).is_ok()
    });
    assert_eq!(get(&proxy, "/v1/diff"), before);
}

/// Asserts that each sound transaction has made one version, and that the newest ones are in force. Returns their number.
fn check_versions(proxy: &Proxy, members: &[Member], all: &[Answered]) -> u64 {
    let mut by_version = BTreeMap::new();
    for it in all {
        match (it.change.kind, it.version) {
            (Kind::Sound, _) if it.is_unchanged => {}
            (Kind::Sound, Some(version)) => {
                assert!(by_version.insert(version, it.change).is_none(), "{it:?}");
            }
            (Kind::Sound, None) | (_, Some(_)) => panic!("{it:?}"),
            _ => {}
        }
    }
    let sound = by_version.len() as u64;
    assert!(by_version.keys().copied().eq(1..=sound), "versions have no gaps");

    let diff = get(proxy, "/v1/diff");
    assert_eq!((&diff["version"], &diff["in_force"]), (&json!(sound), &json!(sound)));
    let pool = get(proxy, "/v1/pools/members");
    for (index, member) in members.iter().enumerate() {
        let last = by_version.values().rev().find(|change| change.member == index);
        let last = last.expect("each member was changed");
        assert_eq!(pool["members"][index]["weight"], last.weight, "{}", member.address());
    }

    // The versions that are kept say who wanted what.
    let (mut after, mut kept) = (String::new(), 0);
    loop {
        let page = get(proxy, &format!("/v1/versions?limit=1000{after}"));
        for item in page["items"].as_array().expect("a list") {
            let change = by_version[&item["number"].as_u64().expect("a number")];
            assert_eq!(item["comment"], change.comment());
            assert_eq!(item["changes"][0]["value"], change.weight);
            kept += 1;
        }
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert!(kept > 0);
    sound
}

/// Asserts that the audit log has one line for each transaction, which says what became of it.
fn check_audit(proxy: &Proxy, audit: &Path, all: &[Answered]) {
    let lines = || -> Vec<Value> {
        let text = std::fs::read_to_string(audit).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    weir_tests::eventually("all lines are written", weir_tests::STEP_TIMEOUT, || {
        lines().len() >= all.len()
    });
    let lines = lines();
    assert_eq!(lines.len(), all.len());
    let ids: BTreeSet<&str> = lines.iter().filter_map(|line| line["request_id"].as_str()).collect();
    assert_eq!(ids.len(), all.len(), "each has its own line");
    let by_id: BTreeMap<&str, &Value> =
        lines.iter().map(|line| (line["request_id"].as_str().expect("an id"), line)).collect();
    for it in all {
        let line = by_id[&*it.request_id];
        assert_eq!(line["status"], it.change.expected_status(), "{it:?}");
        assert_eq!(line["path"], "/v1/changes");
        match it.change.kind {
            Kind::Sound | Kind::Dry => {
                if !it.is_unchanged {
                    assert_eq!(line["change"]["version"].as_u64(), it.version, "{it:?}");
                }
                assert_eq!(line["change"]["dry_run"], it.change.kind == Kind::Dry);
            }
            Kind::Wrong | Kind::Late => {
                assert!(line["change"].is_null(), "{line}");
                assert!(line["refused"].as_str().is_some_and(|why| !why.is_empty()), "{line}");
            }
        }
    }
    assert_eq!(proxy.metric("weir_audit_log_lines_dropped_total", &[]), 0.0);
}
