//! Transactions of the overlay, on a process with real workers.

use serde_json::{Value, json};
use weir_api::changes::TransactionState;
use weir_sources::overlay::{Change, Overlay};

use super::*;
use crate::overlay::changes::Transaction;
use crate::overlay::history::RequestedChanges;
use crate::overlay::reports::Report;

/// A process that serves until the test ends.
struct Process {
    supervisor: Supervisor,
    reload: Signal,
}

impl Process {
    async fn start(file: &Path, events: &Events) -> Self {
        let start = Supervisor::start(file, NameServers::System, events.clone());
        let reload = signal(SignalKind::window_change()).unwrap();
        Self { supervisor: start.await.unwrap(), reload }
    }

    fn changes(&self) -> Arc<Changes> {
        Arc::clone(&self.supervisor.observed.changes)
    }

    /// Serves until the future is ready.
    async fn serve<T>(&mut self, while_serving: impl Future<Output = T>) -> T {
        let mut result = None;
        let end = async { result = Some(while_serving.await) };
        self.supervisor.serve_until(&mut self.reload, end).await.unwrap();
        result.expect("it has ended")
    }

    /// Requests a transaction, and serves until its result is known.
    async fn ask(&mut self, transaction: Transaction) -> Report {
        let changes = self.changes();
        let number = changes.propose(transaction).unwrap();
        self.serve(changes.result(number)).await.expect("a report")
    }

    /// The weights of the members of the first pool.
    fn weights(&self) -> Vec<u16> {
        self.supervisor.table.snapshot.pools[0].members.iter().map(|it| it.weight).collect()
    }

    async fn stop(mut self) {
        self.supervisor.stop().await;
        self.supervisor.finish();
    }
}

fn wants(changes: Value) -> Transaction {
    let changes: Vec<Change> = serde_json::from_value(changes).expect("changes");
    Transaction {
        author: "alice".into(),
        comment: String::new(),
        expected_version: None,
        wanted: RequestedChanges::Changes(changes),
        dry_run: false,
        takes_last: false,
        is_from_network: false,
        confirm_within_s: None,
    }
}

fn weight(member: SocketAddr, weight: u64) -> Transaction {
    let path = format!("/pools/web/members/{member}/weight");
    wants(json!([{ "op": "set", "path": path, "value": weight }]))
}

fn roll_back(version: u64) -> Transaction {
    Transaction { wanted: RequestedChanges::RollBackTo(version), ..wants(json!([])) }
}

/// A configuration with a directory for its overlay.
fn text(files: &Files, listen: u16, members: &[SocketAddr]) -> String {
    yaml(listen, members, &format!("state_dir: {}", files.0.join("state").display()))
}

#[tokio::test]
async fn a_version_is_in_force_and_survives() {
    let (events, captured) = Captured::new();
    let files = Files::new("version");
    let (one, two) = (member("one").await, member("two").await);
    let listen = free_port();
    let file = files.config(&text(&files, listen, &[one]));
    let mut process = Process::start(&file, &events).await;
    let report = process.ask(Transaction { comment: "more".into(), ..weight(one, 5) }).await;
    assert_eq!((report.state, report.version), (TransactionState::InForce, Some(1)), "{report:?}");
    assert_eq!(report.changes, ["changed pools.web"]);
    assert_eq!((process.weights(), process.changes().in_force()), (vec![5], 1));
    // Another member replaces the first one: traffic moves.
    let moved = wants(json!([
        { "op": "set", "path": format!("/pools/web/members/{two}"), "value": {} },
        { "op": "remove", "path": format!("/pools/web/members/{one}") },
    ]));
    assert_eq!(process.ask(moved).await.version, Some(2));
    assert!(ask(socket(listen), "/").await.ends_with("two"));
    // A reload keeps the overlay.
    files.config(&text(&files, listen, &[one]).replace("interval: 100ms", "interval: 110ms"));
    assert!(process.supervisor.reload().await);
    assert!(ask(socket(listen), "/").await.ends_with("two"));
    assert_eq!(process.supervisor.observed.reloads.succeeded.load(Relaxed), 1);
    process.stop().await;
    // The overlay survives a restart.
    let mut process = Process::start(&file, &events).await;
    assert!(ask(socket(listen), "/").await.ends_with("two"));
    assert_eq!(process.changes().in_force(), 2);
    // Each earlier version can be restored.
    assert_eq!(process.ask(roll_back(1)).await.version, Some(3));
    assert_eq!(process.weights(), [5]);
    assert_eq!(process.ask(roll_back(0)).await.version, Some(4));
    assert_eq!(process.weights(), [1]);
    let report = process.ask(roll_back(9)).await;
    let reason = "version 9 is not kept: there are versions 0 to 4";
    assert_eq!((report.state, report.reason.as_deref()), (TransactionState::Refused, Some(reason)));
    let history = process.changes().history();
    let authors: Vec<_> =
        history.versions().map(|it| (it.number, &*it.author, &*it.comment)).collect();
    let alice = |number, comment| (number, "alice", comment);
    assert_eq!(authors, [alice(1, "more"), alice(2, ""), alice(3, ""), alice(4, "")]);
    let lines = captured.lines(&events);
    let told = |what: &str| lines.iter().any(|line| line.starts_with(what));
    assert!(told("info configuration gets version 1 by alice: more"), "{lines:#?}");
    assert!(told("info configuration has version 1: 1 virtual server, "), "{lines:#?}");
    process.stop().await;
}

#[tokio::test]
async fn members_change_and_nothing_else_does() {
    let (events, _) = Captured::new();
    let files = Files::new("members-alone");
    let [one, two, three] = [member("one").await, member("two").await, member("three").await];
    let other = format!(
        "state_dir: {}\nvirtual_servers: {{ shop: {{ listen: 127.0.0.1:{}, pool: web, policies: [ p ] }} }}\n\
         policies: {{ p: {{ rules: [ {{ when: 'request.path == \"/o\"', then: [ {{ pool: other }} ] }} ] }} }}\n\
         pools:\n  web: {{ members: [ {one} ] }}\n  other: {{ members: [ {two} ] }}\n",
        files.0.join("state").display(),
        free_port(),
    );
    let file = files.config(&other);
    let mut process = Process::start(&file, &events).await;
    let path = |of: SocketAddr, key: &str| format!("/pools/web/members/{of}{key}");
    let mut before = Arc::clone(&process.supervisor.table);
    let live = Arc::clone(&before.pools[0].members[0]);
    for (changes, weights) in [
        (json!([{ "op": "set", "path": path(one, "/weight"), "value": 5 }]), &[5][..]),
        (json!([{ "op": "set", "path": path(three, ""), "value": { "weight": 2 } }]), &[5, 2]),
        (json!([{ "op": "remove", "path": path(three, "") }]), &[5]),
    ] {
        let report = process.ask(wants(changes.clone())).await;
        assert_eq!(report.state, TransactionState::InForce, "{changes}: {report:?}");
        assert_eq!(report.changes, ["changed pools.web"]);
        let now = Arc::clone(&process.supervisor.table);
        assert_eq!(process.weights(), weights);
        assert!(Arc::ptr_eq(&now.snapshot.settings, &before.snapshot.settings), "{changes}");
        assert!(Arc::ptr_eq(&now.pools[1], &before.pools[1]), "{changes}");
        assert!(Arc::ptr_eq(&now.snapshot.pools[0], &now.pools[0].settings));
        assert!(Arc::ptr_eq(&now.pools[0].members[0], &live), "{changes}");
        before = now;
    }
    let retries = json!([{ "op": "set", "path": "/pools/web/retries", "value": 3 }]);
    assert_eq!(process.ask(wants(retries)).await.state, TransactionState::InForce);
    let now = &process.supervisor.table;
    assert!(!Arc::ptr_eq(&now.snapshot.settings, &before.snapshot.settings));
    assert_eq!(process.weights(), [5], "a whole check finds the same members");
    assert!(Arc::ptr_eq(&now.pools[0].members[0], &live));
    // An earlier version that differs in members alone comes back in the same way.
    let before = Arc::clone(now);
    let weight = json!([{ "op": "set", "path": path(one, "/weight"), "value": 9 }]);
    assert_eq!(process.ask(wants(weight)).await.version, Some(5));
    assert_eq!(process.ask(roll_back(4)).await.state, TransactionState::InForce);
    assert_eq!(process.weights(), [5]);
    let now = &process.supervisor.table;
    assert!(Arc::ptr_eq(&now.snapshot.settings, &before.snapshot.settings));
    process.stop().await;
}

/// Versions change two pools in turns, so that one of them always waits for first probes.
#[tokio::test]
async fn a_version_is_in_force_while_a_later_one_waits() {
    let (events, _) = Captured::new();
    let files = Files::new("in-turns");
    let one = member("one").await;
    let gates = [(); 3].map(|()| Gate::default());
    let [a, b, c] = [0, 1, 2].map(|at| gated("slow", &gates[at]));
    let (a, b, c) = (a.await, b.await, c.await);
    let listen = [free_port(), free_port()];
    let state_dir = files.0.join("state");
    let text = two_pools(listen, [one, one], "{ wait: 10m }");
    let file = files.config(&format!("state_dir: {}\n{text}", state_dir.display()));
    let mut process = Process::start(&file, &events).await;
    let changes = process.changes();
    let propose = async |process: &mut Process, pool: &str, from: SocketAddr, to: SocketAddr| {
        let path = |of: SocketAddr| format!("/pools/{pool}/members/{of}");
        let wanted = wants(json!([
            { "op": "set", "path": path(to), "value": {} }, { "op": "remove", "path": path(from) },
        ]));
        let number = changes.propose(wanted).unwrap();
        let waits = async {
            while changes.report(number).expect("a report").state != TransactionState::Waiting {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        process.serve(waits).await;
        number
    };
    let first = propose(&mut process, "a", one, a).await;
    let second = propose(&mut process, "b", one, b).await;
    let steps = [(0, 1, Some(("a", a, c))), (1, 2, None), (2, 3, None)];
    for (number, (gate, in_force, next)) in (first..).zip(steps) {
        gates[gate].store(true, Relaxed);
        let report = tokio::time::timeout(PATIENCE, process.serve(changes.result(number))).await;
        let report = report.expect("it does not wait for later ones").expect("a report");
        assert_eq!(report.state, TransactionState::InForce, "{report:?}");
        assert_eq!((report.version, changes.in_force()), (Some(in_force), in_force));
        if let Some((pool, from, to)) = next {
            // The first pool waits again before the second one is in force.
            let third = propose(&mut process, pool, from, to).await;
            assert_eq!((first + 1, second + 1), (second, third));
        }
    }
    assert!(process.supervisor.next.is_none() && changes.in_force() == 3);
    process.stop().await;
}

#[tokio::test]
async fn what_is_so_already_makes_no_version() {
    let (events, captured) = Captured::new();
    let files = Files::new("unchanged");
    let one = member("one").await;
    let listen = free_port();
    let file = files.config(&text(&files, listen, &[one]));
    let mut process = Process::start(&file, &events).await;
    let set =
        |path: &str, value: Value| wants(json!([{ "op": "set", "path": path, "value": value }]));
    let is_unchanged = |report: &Report, version: u64| {
        assert_eq!(
            (report.state, report.version),
            (TransactionState::Unchanged, Some(version)),
            "{report:?}"
        );
        assert!(report.changes.is_empty() && report.reason.is_none(), "{report:?}");
    };
    // What the files say.
    let of_file = || set(&format!("/pools/web/members/{one}"), json!({}));
    is_unchanged(&process.ask(of_file()).await, 0);
    is_unchanged(&process.ask(roll_back(0)).await, 0);
    assert!(!files.0.join("state").exists(), "nothing is stored");
    // What a version says, also in other words, checked only, or to be confirmed.
    assert_eq!(process.ask(weight(one, 5)).await.version, Some(1));
    let as_a_whole = set(&format!("/pools/web/members/{one}"), json!({ "weight": 5 }));
    let tried = Transaction { dry_run: true, ..weight(one, 5) };
    let for_now = Transaction { confirm_within_s: Some(600), ..weight(one, 5) };
    for transaction in [weight(one, 5), as_a_whole, tried, for_now, roll_back(1)] {
        is_unchanged(&process.ask(transaction).await, 1);
    }
    assert_eq!(process.changes().history().unconfirmed(), None);
    let late = Transaction { expected_version: Some(0), ..weight(one, 5) };
    assert_eq!(process.ask(late).await.state, TransactionState::Refused);
    // Several at once: those that change nothing are told the version before them.
    let changes = process.changes();
    let asked = [weight(one, 5), weight(one, 6), weight(one, 6), weight(one, 7), weight(one, 7)];
    let asked = asked.map(|it| changes.propose(it).unwrap());
    let results = async {
        let mut results = Vec::new();
        for number in asked {
            let report = changes.result(number).await.expect("a report");
            results.push((report.state, report.version));
        }
        results
    };
    let (now, still) = (TransactionState::InForce, TransactionState::Unchanged);
    let expected = [(still, 1), (now, 2), (still, 2), (now, 3), (still, 3)];
    let expected = expected.map(|(state, version)| (state, Some(version)));
    assert_eq!(process.serve(results).await, expected);
    assert_eq!((changes.history().version(), changes.in_force()), (3, 3));
    // The files follow: the change stays, and setting it again changes nothing.
    let followed = format!("members: [ {{ address: {one}, weight: 7 }} ]");
    let plain = text(&files, listen, &[one]);
    files.config(&plain.replace(&format!("members: [ {one} ]"), &followed));
    assert!(process.supervisor.reload().await);
    let stored = changes.history().overlay().clone();
    is_unchanged(&process.ask(weight(one, 7)).await, 3);
    assert_eq!(changes.history().overlay(), &stored);
    // A reload of unchanged files makes no version either.
    assert!(process.supervisor.reload().await);
    assert_eq!((changes.history().version(), changes.in_force()), (3, 3));
    process.stop().await;
    let lines = captured.lines(&events);
    let gets = lines.iter().filter(|line| line.contains("gets version")).count();
    assert_eq!(gets, 3, "{lines:#?}");
    let process = Process::start(&file, &events).await;
    assert_eq!(process.changes().history().version(), 3);
    process.stop().await;
}

#[tokio::test]
async fn what_is_not_possible_changes_nothing() {
    let (events, _) = Captured::new();
    let files = Files::new("impossible");
    let one = member("one").await;
    let listen = free_port();
    let file = files.config(&text(&files, listen, &[one]));
    let mut process = Process::start(&file, &events).await;
    // A dry run.
    let report = process.ask(Transaction { dry_run: true, ..weight(one, 7) }).await;
    assert_eq!((report.state, report.version), (TransactionState::Done, None), "{report:?}");
    assert_eq!(report.changes, ["changed pools.web"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listens = |port: u16| {
        let server = json!({ "listen": format!("127.0.0.1:{port}"), "pool": "web" });
        wants(json!([{ "op": "set", "path": "/virtual_servers/b", "value": server }]))
    };
    let taken = listens(taken.local_addr().unwrap().port());
    let free = free_port();
    for (transaction, told) in [
        (
            Transaction { expected_version: Some(3), ..weight(one, 7) },
            "the newest version is 0, not 3",
        ),
        (
            wants(json!([{ "op": "set", "path": "/pools/wbe/balance", "value": "x" }])),
            "changes are not possible",
        ),
        (
            wants(json!([{ "op": "set", "path": "/pools/web/balance", "value": "x" }])),
            "would have errors, the first at /pools/web/balance",
        ),
        (taken.clone(), "address in use"),
        (Transaction { dry_run: true, ..taken }, "address in use"),
    ] {
        let report = process.ask(transaction).await;
        assert_eq!((report.state, report.version), (TransactionState::Refused, None), "{report:?}");
        let reason = report.reason.clone().unwrap_or_default();
        assert!(reason.contains(told), "{told}: {report:?}");
        let is_of_changes = told.contains("possible") || told.contains("errors");
        let pointers: Vec<_> =
            report.diagnostics.iter().filter_map(|it| it.pointer.as_deref()).collect();
        assert_eq!(pointers.len(), usize::from(is_of_changes), "{report:?}");
    }
    // Listeners that were bound for the dry run are released.
    let report = process.ask(Transaction { dry_run: true, ..listens(free) }).await;
    assert_eq!(report.state, TransactionState::Done, "{report:?}");
    drop(std::net::TcpListener::bind(("127.0.0.1", free)).expect("nobody has it"));
    assert_eq!((process.weights(), process.changes().history().version()), (vec![1], 0));
    assert!(!files.0.join("state").exists(), "nothing is stored");
    // A change of the file does not take effect with a transaction.
    files.config("nonsense: true");
    let report = process.ask(Transaction { expected_version: Some(0), ..weight(one, 7) }).await;
    assert_eq!(
        (report.state, process.weights()),
        (TransactionState::InForce, vec![7]),
        "{report:?}"
    );
    assert!(!process.supervisor.reload().await);
    assert_eq!(process.weights(), [7]);
    process.stop().await;
}

#[tokio::test]
async fn the_network_restores_what_the_files_name_and_introduces_nothing() {
    let (events, _) = Captured::new();
    let files = Files::new("restored");
    let one = member("one").await;
    let at = files.0.display();
    let plain = text(&files, free_port(), &[one]);
    let logs = plain.replace("format: \"off\"", &format!("to: {at}/access.log"));
    let file = files.config(&logs);
    let mut process = Process::start(&file, &events).await;
    let from_network = |wanted| Transaction { is_from_network: true, wanted, ..wants(json!([])) };
    let change = |value: Value| wants(value).wanted;
    let remove = || change(json!([{ "op": "remove", "path": "/log" }]));
    let other = format!("{at}/other.log");
    let to_other = json!({ "access": { "to": other } });
    let introduce = change(json!([{ "op": "set", "path": "/log", "value": to_other }]));
    for (wanted, expected) in [
        (remove(), Some(1)),
        // The files name the log all along.
        (RequestedChanges::Revert(1), Some(2)),
        (remove(), Some(3)),
        (RequestedChanges::RollBackTo(0), Some(4)),
        (introduce.clone(), None),
        (remove(), Some(5)),
        (introduce, None),
    ] {
        let report = process.ask(from_network(wanted.clone())).await;
        assert_eq!(report.version, expected, "{wanted:?}: {report:?}");
        if expected.is_none() {
            let reason = report.reason.clone().unwrap_or_default();
            assert!(reason.contains("`access.to` that neither the files"), "{report:?}");
            assert!(!reason.contains("other.log"), "{report:?}");
        }
    }
    process.stop().await;
}

#[tokio::test]
async fn a_version_that_nobody_confirms_is_taken_back() {
    let (events, _) = Captured::new();
    let files = Files::new("confirm");
    let one = member("one").await;
    let listen = free_port();
    let file = files.config(&text(&files, listen, &[one]));
    let mut process = Process::start(&file, &events).await;
    let for_now = |seconds| Transaction { confirm_within_s: Some(seconds), ..weight(one, 5) };
    // Confirmed in time.
    assert_eq!(process.ask(for_now(600)).await.state, TransactionState::InForce);
    let changes = process.changes();
    let report = process.ask(weight(one, 6)).await;
    assert!(report.reason.is_some_and(|it| it.contains("version 1 waits for its confirmation")));
    let number = changes.confirm(1, "bob").unwrap();
    let report = process.serve(changes.result(number)).await.unwrap();
    assert_eq!((report.state, report.version), (TransactionState::Done, Some(1)), "{report:?}");
    let number = changes.confirm(1, "bob").unwrap();
    let report = process.serve(changes.result(number)).await.unwrap();
    assert_eq!(report.state, TransactionState::Refused, "it does not wait any more");
    // Not confirmed: the previous version is restored.
    let second = Transaction { confirm_within_s: Some(1), ..weight(one, 8) };
    assert_eq!(process.ask(second).await.version, Some(2));
    assert_eq!(process.weights(), [8]);
    let returned = async {
        while changes.in_force() < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    process.serve(returned).await;
    assert_eq!(process.weights(), [5]);
    let version = Arc::clone(changes.history().get(3).unwrap());
    assert_eq!((&*version.author, &*version.comment), ("weir", "not confirmed"));
    assert_eq!(version.wanted, RequestedChanges::RollBackTo(1));
    // Instead of being confirmed, the version is rolled back.
    let third = Transaction { confirm_within_s: Some(600), ..weight(one, 9) };
    assert_eq!(process.ask(third).await.version, Some(4));
    assert_eq!(process.ask(roll_back(0)).await.version, Some(5));
    assert_eq!(changes.history().unconfirmed(), None);
    // The time for the confirmation ends while weir does not run.
    let fourth = Transaction { confirm_within_s: Some(1), ..weight(one, 10) };
    assert_eq!(process.ask(fourth).await.version, Some(6));
    process.stop().await;
    tokio::time::sleep(Duration::from_millis(1_050)).await;
    let process = Process::start(&file, &events).await;
    assert_eq!((process.weights(), process.changes().in_force()), (vec![1], 7));
    process.stop().await;
}

/// Sends a further request on an open connection. Returns the answer.
async fn ask_on(connection: &mut TcpStream) -> String {
    connection.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    while !answer.ends_with("one") {
        let mut bytes = [0; 1_024];
        let length = connection.read(&mut bytes).await.unwrap();
        assert!(length > 0, "it was closed after {answer:?}");
        answer.push_str(std::str::from_utf8(&bytes[..length]).unwrap());
    }
    answer
}

/// Each of many simultaneous transactions has its own result, version and entry, and connections stay open.
#[tokio::test]
async fn many_transactions_at_once() {
    const COUNT: u64 = 300;
    let (events, _) = Captured::new();
    let files = Files::new("many");
    let one = member("one").await;
    let listen = free_port();
    let file = files.config(&text(&files, listen, &[one]));
    let mut process = Process::start(&file, &events).await;
    let mut client = TcpStream::connect(socket(listen)).await.unwrap();
    assert!(ask_on(&mut client).await.starts_with("HTTP/1.1 200 "));
    let changes = process.changes();
    let propose = |number: u64| {
        let is_bad = number.is_multiple_of(10);
        let transaction = if is_bad { weight(one, 1_000_000) } else { weight(one, number % 100) };
        let comment = format!("number {number}");
        (number, is_bad, changes.propose(Transaction { comment, ..transaction }).unwrap())
    };
    let asked: Vec<_> = (1..=COUNT).map(propose).collect();
    let results = async {
        let mut results = Vec::new();
        for (number, is_bad, of) in asked {
            results.push((number, is_bad, changes.result(of).await.expect("a report")));
        }
        results
    };
    let results = process.serve(results).await;
    let mut versions = 0;
    let history = changes.history();
    for (number, is_bad, report) in results {
        let expected = if is_bad { TransactionState::Refused } else { TransactionState::InForce };
        assert_eq!(report.state, expected, "{number}: {report:?}");
        if !is_bad {
            versions += 1;
            assert_eq!(report.version, Some(versions), "in the order in which they were asked for");
            let version = history.get(versions).expect("it is kept");
            assert_eq!(version.comment, format!("number {number}"));
        }
    }
    assert_eq!((history.version(), changes.in_force()), (versions, versions));
    let last = (COUNT - 1) % 100;
    assert_eq!(process.weights(), [u16::try_from(last).unwrap()]);
    assert!(ask_on(&mut client).await.starts_with("HTTP/1.1 200 "), "its connection has stayed");
    let stored: Overlay = history.overlay_after(versions).unwrap();
    process.stop().await;
    let process = Process::start(&file, &events).await;
    assert_eq!(process.changes().history().overlay(), &stored);
    process.stop().await;
}

#[tokio::test]
async fn without_a_folder_for_state_changes_are_refused() {
    let (events, _) = Captured::new();
    let files = Files::new("stateless");
    let one = member("one").await;
    let listen = free_port();
    let state = files.0.join("state");
    let file = files.config(&text(&files, listen, &[one]));
    let mut process = Process::start(&file, &events).await;
    std::fs::write(&state, "a file in its place").unwrap();
    let report = process.ask(weight(one, 5)).await;
    let reason = report.reason.unwrap_or_default();
    assert!(
        reason.contains("the overlay cannot be kept in ") && reason.contains("set `state_dir`"),
        "{reason}"
    );
    assert_eq!((report.state, process.weights()), (TransactionState::Refused, vec![1]));
    // The change is possible as soon as the directory is writable.
    std::fs::remove_file(&state).unwrap();
    assert_eq!(process.ask(weight(one, 5)).await.state, TransactionState::InForce);
    // During shutdown, requests are refused.
    let changes = process.changes();
    process.supervisor.drain();
    assert!(changes.propose(weight(one, 6)).is_err());
    process.stop().await;
}
