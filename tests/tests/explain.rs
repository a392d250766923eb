//! `weir explain` with a running weir: its prediction must match the access log of the real request.

use std::process::{Command, Output, Stdio};

use serde_json::Value;
use weir_testing::Random;
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup, weir_binary};

/// Number of requests that are first explained and then sent.
const REQUESTS: usize = 40;

const TOP: &str = "persistence:
  stay: { type: cookie, name: STAY }
  by-user: { type: hash, of: \"${request.headers['x-user']}\" }
policies:
  switching:
    strategy: all_match
    rules:
      - { name: api, when: 'request.path.startsWith(\"/api/\")', then: [ { pool: api }, { persistence: by-user } ] }
      - { name: old, when: 'request.path.startsWith(\"/old/\")', then: [ { rewrite_path: { regex: \"^/old/(.*)\", to: \"/new/$1\" } } ] }
      - { name: gone, when: 'request.path == \"/gone\"', then: [ { respond: { status: 410, body: gone } } ] }
      - { name: moved, when: 'request.host == \"old.example\"', then: [ { redirect: { to: \"https://new.example/\", status: 301 } } ] }
      - { name: inner, when: 'request.path == \"/inner\"', then: [ { set_header: { X-From: main } }, { waf: \"off\" }, { virtual_server: inner } ] }
      - { name: marked, when: '\"x-user\" in request.headers', then: [ { set_header: { X-Marked: \"${request.headers['x-user']}\" } } ] }
  last:
    rules:
      - { name: seen, when: 'request.headers[\"X-From\"] == \"main\"', then: [ { pool: api } ] }";

fn weir(proxy: &Proxy, arguments: &[&str]) -> Output {
    let mut command = Command::new(weir_binary());
    command.arg("explain").args(arguments).env("WEIR_ADMIN", proxy.admin_address());
    command.stdin(Stdio::null()).output().expect("the built command")
}

/// The explanation of a request, as JSON.
#[track_caller]
fn explained(proxy: &Proxy, url: &str, headers: &[String]) -> Value {
    let mut arguments = vec![url, "--json"];
    headers.iter().for_each(|header| arguments.extend(["-H", header]));
    let output = weir(proxy, &arguments);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The access log line of the last request.
fn logged(proxy: &mut Proxy, count: usize) -> Value {
    let mut last = Value::Null;
    weir_tests::eventually("the access log has its line", weir_tests::STEP_TIMEOUT, || {
        let output = proxy.process().output();
        let json = output.lines().filter_map(|line| serde_json::from_str(line).ok());
        let lines: Vec<Value> =
            json.filter(|line: &Value| line["termination"].is_string()).collect();
        last = lines.last().cloned().unwrap_or_default();
        lines.len() == count
    });
    last
}

fn texts(of: &Value) -> Vec<String> {
    let texts = of.as_array().into_iter().flatten();
    texts.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The rules with the verdict `followed` in an explanation, in the format of the access log.
fn followed(explained: &Value) -> Vec<String> {
    let list = |of: &Value, key: &str| of[key].as_array().cloned().unwrap_or_default();
    let mut names = Vec::new();
    for policy in list(explained, "virtual_servers").iter().flat_map(|it| list(it, "policies")) {
        for rule in list(&policy, "rules").iter().filter(|rule| rule["verdict"] == "followed") {
            let text = |of: &Value| of.as_str().expect("a name").to_owned();
            names.push(format!("{}/{}", text(&policy["name"]), text(&rule["name"])));
        }
    }
    names
}

/// Panics unless the log line matches the explanation.
#[track_caller]
fn compare(explained: &Value, line: &Value) {
    let story = || format!("{explained:#}\n{line:#}");
    assert_eq!(followed(explained), texts(&line["rules"]), "{}", story());
    let outcome = &explained["outcome"];
    if outcome["kind"] == "answer" {
        assert_eq!(outcome["status"], line["status"], "{}", story());
        assert_eq!(outcome["termination"], line["termination"], "{}", story());
        return;
    }
    assert_eq!(outcome["kind"], "member", "{}", story());
    assert_eq!(outcome["pool"], line["pool"], "{}", story());
    let candidates = explained["balancing"]["candidates"].as_array().expect("candidates");
    let mut possible = candidates.iter().filter(|it| it["is_possible"] == true);
    assert!(possible.any(|it| it["member"] == line["member"]), "{}", story());
    if outcome["member"].is_string() {
        assert_eq!(outcome["member"], line["member"], "{}", story());
    }
}

#[test]
fn a_running_weir_says_what_it_does() {
    let members = ["one", "two", "three", "four"].map(Member::named);
    let [one, two, three, four] = members.each_ref().map(Member::address);
    let setup = Setup::new(&[one, two])
        .virtual_server("policies: [ switching ]")
        .virtual_server("persistence: stay")
        .virtual_server("waf: { mode: block }")
        .also_virtual_server("inner: { pool: members, policies: [ last ], waf: { mode: block } }")
        .also_pool(&format!("api: {{ members: [ {three}, {four} ] }}"))
        .top(TOP)
        .access_log()
        .admin_socket();
    let mut proxy = Proxy::start(&setup);
    let mut random = Random::new(5);
    let (mut cookie, mut certain) = (None::<String>, 0);
    for number in 1..=REQUESTS {
        let paths = ["/", "/api/x", "/old/a", "/gone", "/inner", "/search?q=1+union+select+2"];
        let path = paths[random.below(paths.len())];
        let mut headers = vec!["Host: shop.example".to_owned(), "Accept: */*".into()];
        headers.push("User-Agent: curl/8".into());
        if random.percent(20) {
            headers[0] = "Host: old.example".into();
        }
        if random.percent(50) {
            headers.push(format!("X-User: {}", ["ann", "bob", "eve"][random.below(3)]));
        }
        headers.extend(cookie.iter().filter(|_| number % 2 == 0).map(|it| format!("Cookie: {it}")));
        let before = explained(&proxy, &proxy.url(path), &headers);
        let mut client = proxy.client();
        client.send(format!("GET {path} HTTP/1.1\r\n{}\r\n\r\n", headers.join("\r\n")));
        let response = client.response();
        drop(client);
        let line = logged(&mut proxy, number);
        compare(&before, &line);
        certain += usize::from(before["outcome"]["member"].is_string());
        let set = response.head.field("Set-Cookie").and_then(|it| it.split(';').next());
        cookie = set.map(str::to_owned).or(cookie);
    }
    assert!(certain > 3, "some members are certain: {certain}");
}

#[test]
fn it_is_told_to_people_without_secrets() {
    let member = Member::echo();
    let setup = Setup::new(&[member.address()])
        .virtual_server("policies: [ switching ]")
        .virtual_server("waf: { mode: detect }")
        .also_virtual_server("inner: { pool: members, policies: [ last ], waf: { mode: block } }")
        .also_pool("api: { members: [ 127.0.0.1:9 ] }")
        .top(TOP)
        .admin_socket();
    let proxy = Proxy::start(&setup);
    let requests =
        || proxy.metric("weir_virtual_server_requests_total", &["virtual_server=\"main\""]);
    let before = requests();
    let url = proxy.url("/old/a?token=s3cr3t1");
    let headers = ["Authorization: Bearer s3cr3t2", "X-User: s3cr3t2"];
    let output = weir(&proxy, &[&url, "-H", headers[0], "-H", headers[1], "--from", "192.0.2.9"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    for expected in ["192.0.2.9", "path  /old/a  →  /new/a", "✓ old", "weir.yaml:", "result", "***"]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains("s3cr3t") && !text.contains('\x1b'), "{text}");
    assert!(requests() == before && member.request_count() == 0, "nothing was sent, or counted");
    let output = weir(&proxy, &["http://127.0.0.1:1/"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let error = String::from_utf8(output.stderr).expect("text");
    assert!(error.contains("nothing listens on 127.0.0.1:1"), "{error}");
}

/// A member that is up gets the request, and every request fails.
#[test]
fn the_health_of_the_pool_is_told() {
    let member = Member::script("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n");
    let setup = Setup::new(&[member.address()]).admin_socket();
    let proxy = Proxy::start(&setup);
    let url = proxy.url("/");
    let health = || explained(&proxy, &url, &[])["balancing"]["health"].clone();
    assert_eq!(health(), Value::Null, "it is up");
    weir_tests::eventually("it is told as failing", weir_tests::STEP_TIMEOUT, || {
        proxy.client().get("/").assert_status(500);
        health()["state"] == "failing"
    });
    let output = weir(&proxy, &[&url]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("\nhealth       ✗ pool members is failing: "), "{text}");
    assert!(text.contains(" of pool members gets it"), "{text}");
}

#[test]
fn a_disabled_virtual_server_is_named() {
    let member = Member::echo();
    let off = weir_tests::ports::Lease::new();
    let disabled =
        format!("off: {{ listen: \"{}\", pool: members, state: disabled }}", off.address());
    let setup = Setup::new(&[member.address()]).also_virtual_server(&disabled).admin_socket();
    let proxy = Proxy::start(&setup);
    let check = |arguments: &[&str], expected: &str| {
        let output = weir(&proxy, arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let error = String::from_utf8(output.stderr).expect("text");
        assert!(error.contains(expected), "{error}");
    };
    let of_off = "virtual server `off` is disabled (`state: disabled`)";
    check(&[&format!("http://{}/", off.address())], of_off);
    check(&[&proxy.url("/"), "--virtual-server", "off"], of_off);
}
