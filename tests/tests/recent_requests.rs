//! Records of recent requests: the output of `weir requests`, `weir explain ID` and `weir logs` for real requests.

use std::io::{BufRead as _, Read as _};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::Signal;
use serde_json::Value;
use weir_tests::http2::Peer;
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup, weir_binary};
use weir_tests::{STEP_TIMEOUT, eventually};

const TOP: &str = "recent_requests: { slow: 2s }
persistence:
  stay: { type: cookie, name: STAY }
policies:
  switching:
    rules:
      - { name: gone, when: 'request.path == \"/gone\"', then: [ { respond: { status: 410, body: gone } } ] }
      - { name: marked, when: '\"x-user\" in request.headers', then: [ { set_header: { X-Marked: yes } } ] }";

fn weir(proxy: &Proxy, arguments: &[&str]) -> Output {
    let mut command = Command::new(weir_binary());
    command.args(arguments).env("WEIR_ADMIN", proxy.admin_address()).stdin(Stdio::null());
    command.output().expect("the built command")
}

/// The JSON output of a command.
#[track_caller]
fn json(proxy: &Proxy, arguments: &[&str]) -> Value {
    let output = weir(proxy, arguments);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Waits for the record of the request with this path.
fn record(proxy: &Proxy, path: &str) -> Value {
    let mut found = Value::Null;
    eventually("the request is recorded", STEP_TIMEOUT, || {
        let all = json(proxy, &["requests", "--json", "-n", "1000"]);
        let mut all = all["items"].as_array().expect("a list").iter();
        found = all.find(|it| it["target"] == path).cloned().unwrap_or_default();
        !found.is_null()
    });
    found
}

fn explained(proxy: &Proxy, id: &Value) -> Value {
    json(proxy, &["explain", id.as_str().expect("an id"), "--json"])
}

/// A started `weir logs`, which follows requests.
fn follow(proxy: &Proxy, arguments: &[&str]) -> Child {
    let mut command = Command::new(weir_binary());
    command.arg("logs").args(arguments).env("WEIR_ADMIN", proxy.admin_address());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the built command")
}

#[test]
fn a_request_is_recorded_and_explained() {
    let member = Member::named("one");
    let setup = Setup::new(&[member.address()])
        .virtual_server("policies: [ switching ]")
        .virtual_server("persistence: stay")
        .virtual_server("waf: { mode: block }")
        .top(TOP)
        .admin_socket();
    let proxy = Proxy::start(&setup);
    let head = "Host: shop.example\r\nAccept: */*\r\nUser-Agent: curl/8\r\n";
    let ask = |path: &str, more: &str| {
        let request = format!("GET {path} HTTP/1.1\r\n{head}{more}\r\n");
        proxy.client().send(request).response().status
    };
    assert_eq!(ask("/a?token=abcdefgh", "X-User: ann\r\nCookie: sid=s3cret-value\r\n"), 200);
    assert_eq!(ask("/gone", ""), 410);
    assert_eq!(ask("/search?q=1+union+select+2+from+users--", ""), 403);

    let one = record(&proxy, "/a?token=***");
    assert_eq!((&one["status"], &one["persistence"]), (&200.into(), &"new".into()), "{one:#}");
    assert_eq!(one["member"], member.address().to_string(), "{one:#}");
    assert!(one["pool"].is_string(), "{one:#}");
    let why = explained(&proxy, &one["id"]);
    let recorded = &why["recorded"];
    assert_eq!(recorded["decided"][0]["rules"], serde_json::json!(["switching/marked"]), "{why:#}");
    let candidate = &recorded["sought"][0]["candidates"][0];
    assert_eq!((&candidate["state"], &candidate["is_eligible"]), (&"up".into(), &true.into()));
    let rules = &why["again"]["virtual_servers"][0]["policies"][0]["rules"];
    assert_eq!((&rules[0]["verdict"], &rules[1]["verdict"]), (&"false".into(), &"followed".into()));
    assert_eq!(rules[0]["values"][0]["value"], "/a", "{why:#}");
    assert_eq!(why["differences"], serde_json::json!([]), "{why:#}");
    let text = why.to_string();
    assert!(!text.contains("s3cret-value") && !text.contains("abcdefgh"), "{text}");

    let shown = String::from_utf8(weir(&proxy, &["requests"]).stdout).expect("text");
    assert!(shown.contains("main -> -  GET shop.example/gone  from"), "{shown}");
    let gone = record(&proxy, "/gone");
    assert_eq!(gone["pool"], Value::Null, "{gone:#}");
    assert_eq!((&gone["termination"], &gone["status"]), (&"policy".into(), &410.into()));
    let blocked = record(&proxy, "/search?q=1+union+select+2+from+users--");
    assert_eq!((&blocked["waf"], &blocked["termination"]), (&"blocked".into(), &"waf".into()));
    assert_eq!((&blocked["pool"], &blocked["queue_us"]), (&Value::Null, &0.into()));
    let why = explained(&proxy, &blocked["id"]);
    assert_eq!(why["recorded"]["firewall"]["score"], why["again"]["firewall"]["score"], "{why:#}");
    let filtered = json(&proxy, &["requests", "--json", "--waf", "blocked"]);
    assert_eq!(filtered["items"].as_array().map(Vec::len), Some(1), "{filtered:#}");

    let output = weir(&proxy, &["explain", one["id"].as_str().expect("an id")]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("switching/marked") && text.contains("✗ gone"), "{text}");

    // A reload that changes nothing changes no explanation; another one does.
    proxy.reload_and_wait(&setup);
    let why = explained(&proxy, &one["id"]);
    assert_eq!(why["differences"], serde_json::json!([]), "{why:#}");
    let rules = &why["recorded"]["decided"][0]["rules"];
    assert_eq!(*rules, serde_json::json!(["switching/marked"]), "{why:#}");
    proxy.reload_and_wait(&setup.pool("connect_timeout: 3s"));
    let told = explained(&proxy, &one["id"])["differences"].to_string();
    assert!(told.contains("the configuration, or an address"), "{told}");
}

#[test]
fn members_that_fail_and_slow_ones_are_told() {
    let slow = Member::new(|exchange| {
        if exchange.request.target().contains("slow") {
            std::thread::sleep(std::time::Duration::from_millis(2_500));
        }
        exchange.answer("ok")
    });
    let mut dead = Member::named("dead");
    let setup = Setup::new(&[slow.address(), dead.address()])
        .pool("balance: round_robin")
        .http("http2: true")
        .top("recent_requests: { sample: \"off\", slow: 2s }")
        .admin_socket();
    let proxy = Proxy::start(&setup);
    dead.kill();
    let mut client = proxy.client();
    for number in 0..4 {
        client.get(&format!("/slow{number}")).assert_status(200);
        client.get(&format!("/fast{number}")).assert_status(200);
    }
    let mut http2 = Peer::connect(proxy.address());
    http2.get("/slow-http2").assert_status(200);
    record(&proxy, "/slow-http2");
    let all = json(&proxy, &["requests", "--json"]);
    let all = all["items"].as_array().expect("a list");
    assert_eq!(all.len(), 5, "only slow ones are kept: {all:#?}");
    assert!(all.iter().all(|it| it["is_slow"] == true));
    let retried = all.iter().find(|it| it["retries"] == 1).expect("one was tried again");
    let why = explained(&proxy, &retried["id"]);
    let failed = &why["recorded"]["failed"][0];
    assert_eq!(failed["member"], dead.address().to_string(), "{why:#}");
    assert_eq!(failed["why"], "member_connect");
}

#[test]
fn a_weir_that_records_nothing_says_so_and_can_be_followed() {
    let member = Member::named("one");
    let proxy = Proxy::start(&Setup::new(&[member.address()]).admin_socket());
    proxy.client().get("/before").assert_status(200);
    let refused = weir(&proxy, &["requests"]);
    assert_eq!(refused.status.code(), Some(1));
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        error.contains("requests are not recorded") && error.contains("recent_requests"),
        "{error}"
    );

    let mut followers =
        ["2xx", "4xx"].map(|status| follow(&proxy, &["--json", "--status", status]));
    // A follower receives no earlier requests, so requests are sent until both followers have received one.
    let readers = followers.each_mut().map(|child| {
        let mut lines = std::io::BufReader::new(child.stdout.take().expect("its output"));
        std::thread::spawn(move || {
            let mut line = String::new();
            lines.read_line(&mut line).expect("a line");
            line
        })
    });
    eventually("both are told of a request", STEP_TIMEOUT, || {
        proxy.client().get("/followed").assert_status(200);
        proxy.client().send("GET / HTTP/1.1\r\n\r\n").response().assert_status(400);
        readers.iter().all(std::thread::JoinHandle::is_finished)
    });
    let [one, other] = readers.map(|reader| {
        let line = reader.join().expect("a line");
        serde_json::from_str::<Value>(&line).expect("JSON")
    });
    assert_eq!((&one["target"], &one["status"]), (&"/followed".into(), &200.into()), "{one:#}");
    assert_eq!(other["status"], 400, "{other:#}");
    for mut child in followers {
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, Signal::INT).expect("it runs");
        assert_eq!(child.wait().expect("it ends").code(), Some(0), "Ctrl-C ends it clean");
    }
}

#[test]
fn filters_that_nothing_can_pass_are_refused() {
    let member = Member::named("one");
    let proxy =
        Proxy::start(&Setup::new(&[member.address()]).top("recent_requests: {}").admin_socket());
    proxy.client().get("/here").assert_status(200);
    record(&proxy, "/here");
    let refused = |arguments: &[&str]| {
        let output = weir(&proxy, arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    for command in ["requests", "logs"] {
        let error = refused(&[command, "--virtual-server", "nope"]);
        assert!(error.contains("there is no virtual server `nope`"), "{error}");
        assert!(error.contains("available: `main`"), "{error}");
        for (status, range) in [("999", "999 to 999"), ("7xx", "700 to 799"), ("100", "100 to 100")]
        {
            let error = refused(&[command, "--status", status]);
            assert!(error.contains(&format!("no answer has a status from {range}")), "{error}");
            assert!(error.contains("possible: 101, 200 to 599"), "{error}");
        }
        let error = refused(&[command, "--status", "ok"]);
        assert!(error.contains("a status such as 404, or a class such as 5xx"), "{error}");
    }
    for filter in [["--virtual-server", "main"], ["--status", "1xx"], ["--status", "404"]] {
        json(&proxy, &[&["requests", "--json"], &filter[..]].concat());
    }
}

#[test]
fn followers_end_with_weir() {
    let member = Member::named("one");
    let mut proxy = Proxy::start(&Setup::new(&[member.address()]).admin_socket());
    let mut logs = follow(&proxy, &[]);
    let mut lines = std::io::BufReader::new(logs.stdout.take().expect("its output"));
    let (told, first) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        lines.read_line(&mut text).expect("a line");
        told.send(()).expect("somebody waits");
        lines.read_to_string(&mut text).expect("text");
        text
    });
    eventually("it follows", STEP_TIMEOUT, || {
        proxy.client().get("/x").assert_status(200);
        first.try_recv().is_ok()
    });
    proxy.process().signal(Signal::TERM);
    let output = logs.wait_with_output().expect("its output");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("weir has ended"), "{error}");
    let text = reader.join().expect("its lines");
    assert!(text.contains("/x") && text.contains("weir drains"), "{text}");
}

/// The decisions of a request that started without recording do not appear in another record.
#[test]
fn a_record_has_no_decisions_of_others() {
    let (slow, gate) = Member::gated("slow");
    let fast = Member::named("fast");
    let setup = |recent: &str| {
        let rules = "policies:\n  routes: { rules: [ { name: fast, when: 'request.path == \"/fast\"', then: [ { pool: fast } ] } ] }";
        Setup::new(&[slow.address()])
            .virtual_server("policies: [ routes ]")
            .also_pool(&format!("fast: {{ members: [ \"{}\" ] }}", fast.address()))
            .top("data_plane: { workers: 1 }")
            .top(rules)
            .top(recent)
            .admin_socket()
    };
    let proxy = Proxy::start(&setup("recent_requests: {}"));
    let mut held = proxy.client();
    held.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n");
    slow.wait_for_requests(1);
    proxy.reload_and_wait(&setup(""));
    proxy.client().get("/fast").assert_status(200);
    proxy.reload_and_wait(&setup("recent_requests: {}"));
    gate.open();
    held.response().assert_status(200);
    let id = record(&proxy, "/held")["id"].clone();
    let why = explained(&proxy, &id);
    let decided = why["recorded"]["decided"].as_array().expect("a list");
    assert_eq!(decided.len(), 1, "{why:#}");
    assert_eq!(decided[0]["rules"], serde_json::json!([]), "{why:#}");
    assert_eq!(why["recorded"]["sought"].as_array().map(Vec::len), Some(1), "{why:#}");
}

/// Two concurrent requests with the same id from a trusted proxy. Each record has its own findings.
#[test]
fn findings_belong_to_the_request_and_not_to_its_id() {
    let member = Member::named("one");
    let setup = Setup::new(&[member.address()])
        .virtual_server("client_address: { trust: [ 127.0.0.1 ] }")
        .virtual_server("request_id: {}")
        .virtual_server("waf: { mode: block }")
        .top("data_plane: { workers: 1 }\nrecent_requests: {}")
        .admin_socket();
    let proxy = Proxy::start(&setup);
    let body = |path: &str| {
        let (bad, good) = ("q=1+union+select+2+from+users--", "q=a+plain+word+and+one+more+pad");
        if path == "/bad" { bad } else { good }
    };
    let mut clients = ["/bad", "/good"].map(|path| {
        let mut client = proxy.client();
        client.send(format!(
            "POST {path} HTTP/1.1\r\nHost: shop.example\r\nX-Request-Id: same\r\nUser-Agent: curl/8\r\n\
             Accept: */*\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n",
            body(path).len()
        ));
        (path, client)
    });
    eventually("both bodies are awaited", STEP_TIMEOUT, || {
        proxy.metric("weir_virtual_server_requests_active", &["\"main\""]) == 2.0
    });
    for ((path, client), status) in clients.iter_mut().zip([403, 200]) {
        client.send(body(path)).response().assert_status(status);
    }
    for (path, outcome) in [("/bad", "blocked"), ("/good", "passed")] {
        let one = record(&proxy, path);
        assert_eq!((&one["id"], &one["waf"]), (&"same".into(), &outcome.into()), "{one:#}");
    }
}

#[test]
fn limits_and_persistence_are_recorded() {
    let member = Member::named("one");
    let setup = Setup::new(&[member.address()])
        .virtual_server("persistence: stay")
        .virtual_server("limits: { per_key: [ { requests_per_second: 1/m, burst: 2 } ] }")
        .top(TOP)
        .admin_socket();
    let proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    let response = client.get("/first");
    let cookie = response.assert_status(200).head.field("set-cookie").expect("a cookie");
    let cookie = cookie.split(';').next().expect("a pair");
    client.send(format!("GET /second HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n"));
    client.response().assert_status(200);
    client.get("/third").assert_status(429);
    for (path, persistence) in [("/first", "new"), ("/second", "kept")] {
        assert_eq!(record(&proxy, path)["persistence"], persistence, "{path}");
    }
    let limited = record(&proxy, "/third");
    assert_eq!((&limited["status"], &limited["termination"]), (&429.into(), &"rate_limit".into()));
    let why = explained(&proxy, &limited["id"]);
    let verdict = why["recorded"]["decided"][0]["verdict"].as_str().expect("a verdict");
    assert!(verdict.starts_with("is above a limit"), "{why:#}");
    assert!(!why.to_string().contains(cookie), "the cookie is a secret: {why:#}");
}

#[test]
fn a_head_without_host_is_shown_and_marks_of_cut_heads_are_hidden() {
    let member = Member::named("one");
    let top = "recent_requests: {}
policies:
  marking:
    rules:
      - { name: marked, then: [ { trace: 'of ${request.headers[\"authorization\"]}' } ] }";
    let setup = Setup::new(&[member.address()])
        .virtual_server("policies: [ marking ]")
        .top(top)
        .admin_socket();
    let proxy = Proxy::start(&setup);
    proxy.client().send("GET /old HTTP/1.0\r\n\r\n").response().assert_status(200);
    let old = record(&proxy, "/old");
    assert_eq!((&old["method"], &old["version"]), (&"GET".into(), &"1.0".into()), "{old:#}");
    assert!(explained(&proxy, &old["id"])["again"].is_object(), "{old:#}");

    // The credentials are beyond the part of the head that a record stores.
    let long = "x".repeat(9_000);
    let secret = "Bearer abcdefghijkl";
    let head = format!(
        "GET /cut HTTP/1.1\r\nHost: a\r\nX-Long: {long}\r\nAuthorization: {secret}\r\n\r\n"
    );
    proxy.client().send(head).response().assert_status(200);
    let cut = record(&proxy, "/cut");
    assert_eq!(cut["marks"], serde_json::json!(["***"]), "{cut:#}");
    assert!(!explained(&proxy, &cut["id"]).to_string().contains("abcdefghijkl"), "{cut:#}");
}
