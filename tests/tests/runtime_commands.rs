//! Commands to a running weir that show members, take them out of service, and restore them.

use std::net::SocketAddr;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_tests::client::Client;
use weir_tests::member::Member;
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup, weir_binary};
use weir_tests::websocket::{self, WebSocket};

/// Time within which a command takes effect.
const SOON: Duration = weir_tests::STEP_TIMEOUT;

/// A member that holds requests for `/slow` until it is released.
struct Slow {
    member: Member,
    goes_on: Arc<AtomicBool>,
}

impl Slow {
    fn new() -> Self {
        let goes_on = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&goes_on);
        let member = Member::new(move |exchange| {
            if exchange.request.target() == "/slow" {
                weir_tests::eventually("the request may go on", weir_tests::STEP_TIMEOUT, || {
                    told.load(Ordering::Acquire)
                });
            }
            exchange.answer("slow")
        });
        Self { member, goes_on }
    }

    fn address(&self) -> SocketAddr {
        self.member.address()
    }

    fn go_on(&self) {
        self.goes_on.store(true, Ordering::Release);
    }
}

/// `weir COMMAND...` with the admin address of this proxy.
fn command(proxy: &Proxy, arguments: &[&str]) -> Command {
    let mut command = Command::new(weir_binary());
    command.args(arguments).env("WEIR_ADMIN", proxy.admin_address()).stdin(Stdio::null());
    command
}

fn weir(proxy: &Proxy, arguments: &[&str]) -> Output {
    command(proxy, arguments).output().expect("the built command")
}

/// Runs `weir member members ADDRESS ACTION` for an existing member. Returns its output.
#[track_caller]
fn set(proxy: &Proxy, member: SocketAddr, action: &str) -> String {
    let output = weir(proxy, &["member", "members", &member.to_string(), action]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    text(&output.stdout)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8 output")
}

/// Sends requests until the slow member holds one. The other member may also receive some, and responds to them at once.
#[track_caller]
fn occupy(proxy: &Proxy, slow: &Slow, other: &Member) -> Client {
    for _ in 0..100 {
        let before = (slow.member.request_count(), other.request_count());
        let mut client = proxy.client();
        client.send("GET /slow HTTP/1.1\r\nHost: test\r\n\r\n");
        weir_tests::eventually("the request is on a member", SOON, || {
            (slow.member.request_count(), other.request_count()) != before
        });
        if slow.member.request_count() > before.0 {
            return client;
        }
        client.response().assert_status(200);
    }
    panic!("no request came to the slow member");
}

/// The members that respond to requests on new connections. The kernel distributes the connections over the workers.
fn answers(proxy: &Proxy, count: usize) -> Vec<String> {
    let mut answers: Vec<String> =
        (0..count).map(|_| proxy.client().get("/").assert_status(200).text()).collect();
    answers.sort();
    answers.dedup();
    answers
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn a_drained_member_finishes_what_it_has_and_gets_nothing_new() {
    let (slow, other) = (Slow::new(), Member::named("other"));
    let setup = Setup::new(&[slow.address(), other.address()])
        .top("data_plane: { workers: 2 }")
        .admin_socket();
    let mut proxy = Proxy::start(&setup);
    let mut kept = proxy.client();
    assert_eq!(answers(&proxy, 20), ["other", "slow"]);
    let mut under_way = occupy(&proxy, &slow, &other);

    let done = set(&proxy, slow.address(), "drain");
    let expected = format!(
        "members/{} is drained: it gets nothing new; 1 request under way\n",
        slow.address()
    );
    assert_eq!(done, expected);
    let seen = slow.member.request_count();
    assert_eq!(answers(&proxy, 60), ["other"]);
    for _ in 0..20 {
        assert_eq!(kept.get("/").assert_status(200).text(), "other");
    }
    assert_eq!(slow.member.request_count(), seen);
    let pool = json(&weir(&proxy, &["pool", "members", "--json"]));
    assert_eq!(pool["members_in_service"], 1);
    assert_eq!(pool["members"][0]["administrative"], "drain");
    assert_eq!(pool["members"][0]["draining_requests"], 1);
    assert_eq!(pool["members"][1]["draining_requests"], serde_json::Value::Null);
    assert_eq!(proxy.metric("weir_pool_members_in_service", &[]), 1.0);
    let labels = [&format!("\"{}\"", slow.address()), "\"drain\""];
    assert_eq!(proxy.metric("weir_member_administrative_state", &labels), 1.0);

    slow.go_on();
    assert_eq!(under_way.response().assert_status(200).text(), "slow");
    let done = set(&proxy, slow.address(), "enable");
    assert!(done.ends_with("is enabled: it takes requests\n"), "{done}");
    assert_eq!(answers(&proxy, 20), ["other", "slow"]);

    for said in ["is set to drain, was enabled, by ", "is set to enabled, was drain, by "] {
        proxy.process().says(&format!("info member members/{} {said}", slow.address()));
    }
}

#[test]
fn disabled_and_reset() {
    let members = [Member::named("first"), Member::named("second")];
    let addresses = members.each_ref().map(Member::address);
    let proxy = Proxy::start(&Setup::new(&addresses).admin_socket());
    let done = set(&proxy, addresses[0], "disable");
    assert!(done.contains(" is disabled: it gets nothing new; "), "{done}");
    assert_eq!(answers(&proxy, 20), ["second"]);
    let done = set(&proxy, addresses[0], "disable");
    assert!(done.contains(" is disabled already: "), "{done}");
    let done = set(&proxy, addresses[0], "reset");
    assert!(
        done.ends_with(" is enabled, as the configuration says: it takes requests\n"),
        "{done}"
    );
    assert_eq!(answers(&proxy, 20), ["first", "second"]);
}

#[test]
fn a_tunnel_stays_on_a_drained_member() {
    let member = websocket::echo_member();
    let proxy = Proxy::start(&Setup::new(&[member.address()]).admin_socket());
    let mut socket = WebSocket::connect(proxy.address());
    let address = member.address().to_string();
    let drain = ["member", "members", &address, "drain", "--last", "--wait", "500ms"];
    let output = weir(&proxy, &drain);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert_eq!(socket.echo("still there").expect("the tunnel lives"), "still there");
    // The only member of the pool is drained.
    let warning = "! no member of pool members takes new requests now: clients get 503\n";
    assert!(text(&output.stderr).starts_with(warning), "{output:?}");
    proxy.client().get("/").assert_status(503);
    drop(socket);
    let output = weir(&proxy, &["member", "members", &address, "drain", "--wait", "10s"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn waiting_ends_with_the_last_request() {
    let (slow, other) = (Slow::new(), Member::named("other"));
    let proxy = Proxy::start(&Setup::new(&[slow.address(), other.address()]).admin_socket());
    let mut under_way = occupy(&proxy, &slow, &other);
    let address = slow.address().to_string();
    let late = weir(&proxy, &["member", "members", &address, "drain", "--wait", "300ms"]);
    assert_eq!(late.status.code(), Some(4), "{late:?}");
    assert!(text(&late.stderr).contains("1 request under way"), "{late:?}");
    assert!(text(&late.stderr).contains("still under way after"), "{late:?}");

    let waiting = command(&proxy, &["member", "members", &address, "disable", "--wait"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the built command");
    let disabled = || {
        let pool: serde_json::Value =
            serde_json::from_str(&proxy.admin_get("/v1/pools/members")).expect("JSON");
        pool["members"][0]["administrative"] == "disabled"
    };
    weir_tests::eventually("the member is disabled", SOON, disabled);
    slow.go_on();
    under_way.response().assert_status(200);
    let output = waiting.wait_with_output().expect("the command ends");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let printed = text(&output.stdout);
    assert!(
        printed.contains(&format!("members/{address} has nothing under way, after ")),
        "{printed}"
    );
}

#[test]
fn waiting_ends_when_someone_else_enables_the_member_or_takes_it_away() {
    let (slow, other) = (Slow::new(), Member::named("other"));
    let setup = Setup::new(&[slow.address(), other.address()]).admin_socket();
    let proxy = Proxy::start(&setup);
    let mut under_way = occupy(&proxy, &slow, &other);
    let address = slow.address().to_string();
    let meanwhile = |change: &dyn Fn(), expected: &str| {
        let mut waiting = command(&proxy, &["member", "members", &address, "drain", "--wait"]);
        waiting.stdout(Stdio::piped()).stderr(Stdio::piped());
        let waiting = waiting.spawn().expect("the built command");
        weir_tests::eventually("the member is drained", SOON, || {
            proxy.metric("weir_member_administrative_state", &["\"drain\""]) == 1.0
        });
        change();
        let output = waiting.wait_with_output().expect("the command ends");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(text(&output.stderr).contains(expected), "{output:?}");
    };
    meanwhile(
        &|| {
            set(&proxy, slow.address(), "enable");
        },
        "was enabled meanwhile",
    );
    let without = Setup::new(&[other.address()]).admin_socket();
    meanwhile(&|| proxy.reload_and_wait(&without), "left its pool meanwhile");
    slow.go_on();
    assert_eq!(under_way.response().assert_status(200).text(), "slow");
}

#[test]
fn a_run_time_state_outlasts_reloads_and_not_the_member() {
    let members = [Member::named("first"), Member::named("second"), Member::named("third")];
    let addresses = members.each_ref().map(Member::address);
    let setup = Setup::new(&addresses[..2]).top("data_plane: { workers: 2 }").admin_socket();
    let proxy = Proxy::start(&setup);
    set(&proxy, addresses[0], "drain");
    proxy.reload_and_wait(&setup);
    assert_eq!(answers(&proxy, 20), ["second"]);
    let more = Setup::new(&addresses).top("data_plane: { workers: 2 }").admin_socket();
    proxy.reload_and_wait(&more);
    assert_eq!(answers(&proxy, 40), ["second", "third"]);
    // A member that was removed and added again is not drained.
    let without = Setup::new(&addresses[1..]).top("data_plane: { workers: 2 }").admin_socket();
    proxy.reload_and_wait(&without);
    proxy.reload_and_wait(&more);
    assert_eq!(answers(&proxy, 40), ["first", "second", "third"]);
}

#[test]
fn what_does_not_exist_is_told_with_what_does() {
    let member = Member::named("only");
    let proxy = Proxy::start(&Setup::new(&[member.address()]).admin_socket());
    let address = member.address().to_string();
    let mistyped = format!("127.0.0.2:{}", member.address().port());
    for (arguments, error, help) in [
        (&["pool", "membres"][..], "there is no pool `membres`", "did you mean `members`?".into()),
        (&["pool", "x"], "there is no pool `x`", "available: `members`".into()),
        (
            &["member", "membrs", &address, "drain"],
            "there is no pool `membrs`",
            "did you mean `members`?".into(),
        ),
        (
            &["member", "members", &mistyped, "drain"],
            "pool `members` has no member `127.0.0.2:",
            // The error contains the correct address, because a drain of the wrong address would affect another server.
            format!("its members: `{address}`"),
        ),
        (
            &["member", &mistyped, "drain"],
            "no pool has a member `127.0.0.2:",
            "a member has an address and a port: weir status shows them".into(),
        ),
        (
            &["member", "membrs", "drain"],
            "no pool has a member `membrs`",
            "if you mean pool `members`, name one of its members, too: weir member members ADDRESS drain".into(),
        ),
    ] {
        let output = weir(&proxy, arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
        let told = text(&output.stderr);
        let beginning = format!("weir {}: {error}", arguments[0]);
        let end = format!("\nhelp: {help}\n");
        assert!(told.starts_with(&beginning) && told.ends_with(&end), "{arguments:?}: {told}");
    }
    for arguments in [
        &["member", "members", &address, "drained"][..],
        &["member", "members", &address],
        &["member", "members", &address, "enable", "--wait"],
        &["member", "members", &address, "drain", "--wait", "soon"],
        &["member", "", &address, "drain"],
        &["status", "--admin", "nowhere"],
    ] {
        let output = weir(&proxy, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    }
    assert_eq!(answers(&proxy, 5), ["only"]);
}

#[test]
fn over_tcp_everything_is_seen_and_nothing_changed() {
    let member = Member::named("only");
    let proxy = Proxy::start(&Setup::new(&[member.address()]));
    let address = member.address().to_string();
    let output = weir(&proxy, &["member", "members", &address, "drain"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let told = text(&output.stderr);
    assert!(told.starts_with("weir member: TCP is read-only"), "{told}");
    assert!(told.contains("\nhelp: use a unix socket"), "{told}");
    assert_eq!(answers(&proxy, 5), ["only"]);
    let url = format!("http://{}/", proxy.admin());
    let output = weir(&proxy, &["status", "--admin", &url]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(
        text(&output.stdout).contains(&format!("\n  {address}  up     enabled ")),
        "{output:?}"
    );
}

#[test]
fn a_weir_that_is_not_there() {
    let member = Member::named("only");
    let proxy = Proxy::start(&Setup::new(&[member.address()]));
    let lease = Lease::new();
    let nobody = lease.address().to_string();
    let nowhere = format!("{}/nowhere.sock", std::env::temp_dir().display());
    for (admin, reason, help) in [
        (nobody.as_str(), "nothing listens there", "is weir running"),
        (nowhere.as_str(), "no such socket", "--admin ADDRESS or WEIR_ADMIN"),
    ] {
        for command in [&["status"][..], &["pool"], &["member", "a", "b", "drain"]] {
            let output = weir(&proxy, &[command, &["--admin", admin]].concat());
            assert_eq!(output.status.code(), Some(3), "{output:?}");
            let told = text(&output.stderr);
            assert!(told.contains(reason) && told.contains(help), "{told}");
            assert_eq!(text(&output.stdout), "");
        }
    }
    // Another server listens on the admin address.
    let other = Member::script("220 mail.example ESMTP\r\n");
    let output = weir(&proxy, &["status", "--admin", &other.address().to_string()]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(text(&output.stderr).contains("is that the admin listener?"), "{output:?}");
}

#[test]
fn what_is_shown() {
    let member = Member::named("fine");
    let down = Lease::new();
    let setup = Setup::new(&[member.address(), down.address()])
        .pool("monitors: [ { type: tcp, interval: 500ms, timeout: 500ms, fall: 2 } ]")
        .admin_socket();
    let proxy = Proxy::start(&setup);
    proxy.wait_for_member_state(down.address(), "down", SOON);
    proxy.wait_for_member_state(member.address(), "up", SOON);
    assert_eq!(answers(&proxy, 5), ["fine"]);

    let status = weir(&proxy, &["status"]);
    assert_eq!(status.status.code(), Some(0), "{status:?}");
    let shown = text(&status.stdout);
    for expected in [
        format!(
            "\nvirtual server main is degraded: pool members: 1 of 2 members in service\n  listen       {}\n  pool         members (degraded)\n",
            proxy.address()
        ),
        "\npool members: round_robin, 1 of 2 members in service\n".to_owned(),
        format!("\n  {}  up ", member.address()),
        format!("\n! {}  down ", down.address()),
        "\n!   tcp monitor: connection refused\n".to_owned(),
    ] {
        assert!(shown.contains(&expected), "{expected:?} in {shown}");
    }
    assert!(!shown.contains('\x1b'), "no colours in a pipe: {shown}");

    let pool = weir(&proxy, &["pool", "members"]);
    let shown = text(&pool.stdout);
    assert!(shown.contains("\n!   tcp monitor     down; "), "{shown}");
    assert!(shown.contains("connection refused"), "{shown}");
    let pools = text(&weir(&proxy, &["pool"]).stdout);
    assert!(pools.contains("\n! members  round_robin        2           1 "), "{pools}");
}

#[test]
fn json_is_the_answer_of_weir() {
    let member = Member::named("only");
    let proxy = Proxy::start(&Setup::new(&[member.address()]).admin_socket());
    let address = member.address().to_string();
    let status = json(&weir(&proxy, &["status", "--json"]));
    assert_eq!(status["pools"][0]["members"][0]["address"], *address);
    assert_eq!(json(&weir(&proxy, &["pool", "--json"]))["items"][0]["name"], "members");
    assert_eq!(json(&weir(&proxy, &["pool", "members", "--json"]))["name"], "members");
    let drain = ["member", "members", &address, "drain", "--last", "--json"];
    let changed = json(&weir(&proxy, &drain));
    assert_eq!(changed["changed"], true);
    assert_eq!(changed["before"], "enabled");
    assert_eq!(changed["member"]["administrative"], "drain");
}

#[test]
fn a_reload_says_what_it_has_changed_or_why_not() {
    let [one, two] = ["one", "two"].map(Member::named);
    let proxy = Proxy::start(&Setup::new(&[one.address()]).admin_socket());
    let output = weir(&proxy, &["reload"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let unchanged =
        "in effect: no setting has changed, and none of the files that the settings name\n";
    assert_eq!(text(&output.stdout), unchanged);

    proxy.write(&Setup::new(&[two.address()]).admin_socket().also_pool("spare: { members: [] }"));
    let output = weir(&proxy, &["reload"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told = "in effect: 2 changes\n  changed pools.members\n  added pools.spare\n";
    assert_eq!(text(&output.stdout), told);
    assert_eq!(proxy.client().get("/").text(), "two");

    proxy.write(&Setup::new(&[one.address()]).admin_socket().pool("balance: leastconn"));
    let output = weir(&proxy, &["reload"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let told = text(&output.stderr);
    assert!(told.contains("did you mean `least_connections`?"), "{told}");
    assert!(
        told.contains("weir reload: refused, the previous configuration stays in effect: "),
        "{told}"
    );
    assert_eq!(proxy.client().get("/").text(), "two");
    let status = proxy.admin_get("/v1/status");
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    let failure = &status["configuration"]["last_reload_failure"];
    let reason = failure["reason"].as_str().expect("a reason");
    // Everyone may read it: the place of the error, without the value.
    assert!(reason.contains(".yaml:") && !reason.contains("leastconn"), "{failure}");
    assert!(failure["time"].is_string());
    let shown = text(&weir(&proxy, &["status"]).stdout);
    assert!(shown.contains(&format!("was refused: {reason}; ")), "{shown}");

    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent = silent.local_addr().expect("its address");
    let slow = "monitors: [ { type: http, path: /, interval: 60s, timeout: 50s } ]";
    proxy
        .write(&Setup::new(&[silent]).admin_socket().pool(slow).top("first_probes: { wait: 60s }"));
    let output = weir(&proxy, &["reload", "--wait", "200ms"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(text(&output.stderr).contains("waits for the first probes"), "{output:?}");
}

#[test]
fn a_reload_says_which_named_files_have_changed() {
    let folder = weir_tests::temp::TempDir::new("pages");
    let page = folder.path().join("down.html");
    std::fs::write(&page, "one").expect("a page");
    let member = Member::named("one");
    let setup = Setup::new(&[member.address()])
        .admin_socket()
        .pool(&format!("maintenance: {{ file: {} }}", page.display()));
    let proxy = Proxy::start(&setup);
    std::fs::write(&page, "two").expect("a page");
    let output = weir(&proxy, &["reload"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told = format!("in effect: 1 change\n  changed file {}\n", page.display());
    assert_eq!(text(&output.stdout), told);
}

#[test]
fn a_refused_reload_is_told_where_it_was_asked() {
    let member = Member::named("one");
    let setup = Setup::new(&[member.address()]).admin_socket();
    let proxy = Proxy::start(&setup);
    proxy.write(&Setup::new(&[member.address()]).admin_socket().pool("balance: leastconn"));
    let reload = || {
        let mut client = proxy.admin_client();
        client.send(
            "POST /v1/reload HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: 2\r\n\r\n{}",
        );
        client.response()
    };
    let problem = reload();
    let problem = problem.assert_status(409).text();
    let problem: serde_json::Value = serde_json::from_str(&problem).expect("JSON");
    let finding = &problem["diagnostics"][0];
    let detail = problem["detail"].as_str().expect("a reason");
    let place = format!("{}:{}", finding["file"].as_str().expect("a file"), finding["line"]);
    assert!(detail.contains(&place) && detail.contains("leastconn"), "{problem}");
    proxy.write(&setup);
    let report = reload();
    let report = report.assert_status(200).text();
    assert!(report.contains("\"in_force\""), "{report}");
}

#[test]
fn a_server_is_taken_out_of_all_its_pools_at_once() {
    let [both, one] = ["both", "one"].map(Member::named);
    let setup = Setup::new(&[both.address(), one.address()])
        .also_pool(&format!("other: {{ members: [ {} ] }}", both.address()))
        .admin_socket();
    let proxy = Proxy::start(&setup);
    let address = both.address().to_string();
    let refused = weir(&proxy, &["member", &address, "drain"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let why = "weir member: no other member of pool `other` takes new requests: ";
    assert!(text(&refused.stderr).starts_with(why), "{refused:?}");
    let output = weir(&proxy, &["member", &address, "drain", "--last", "--wait", "5s"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told = text(&output.stdout);
    for pool in ["members", "other"] {
        assert!(told.contains(&format!("{pool}/{address} is drained")), "{told}");
        assert!(told.contains(&format!("{pool}/{address} has nothing under way")), "{told}");
    }
    assert!(text(&output.stderr).contains("no member of pool other takes new requests now"));
    for _ in 0..4 {
        assert_eq!(proxy.client().get("/").text(), "one");
    }
    let output = weir(&proxy, &["member", &address, "reset"]);
    assert_eq!(text(&output.stdout).lines().count(), 2, "{output:?}");
}

#[test]
fn rates_are_those_of_the_last_seconds() {
    let member = Member::named("only");
    let proxy = Proxy::start(&Setup::new(&[member.address()]).admin_socket());
    let mut asked = 0;
    let mut server = serde_json::Value::Null;
    weir_tests::eventually("rates are known", SOON, || {
        assert_eq!(proxy.client().get("/").text(), "only");
        asked += 1;
        let status: serde_json::Value =
            serde_json::from_str(&proxy.admin_get("/v1/status")).expect("JSON");
        server = status["virtual_servers"][0].clone();
        server["rates"]["requests_per_second"].as_f64().is_some_and(|rate| rate > 0.0)
    });
    let rate = |name: &str| server["rates"][name].as_f64().expect("a number");
    let counted = rate("requests_per_second") * rate("seconds");
    assert!(counted <= 1.1 * f64::from(asked), "{asked}: {server}");
    for name in ["connections_per_second", "bytes_received_per_second", "bytes_sent_per_second"] {
        assert!(rate(name) > 0.0, "{name}: {server}");
    }
    assert_eq!(rate("packets_per_second"), 0.0);
    let shown = text(&weir(&proxy, &["status"]).stdout);
    assert!(shown.contains(" requests/s, ") && shown.contains("/s to clients (over "), "{shown}");
}
