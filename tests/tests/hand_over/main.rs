//! Rules that hand over requests to another virtual server (`virtual_server`), from the view of clients and members.

mod checks;
mod streams;

use weir_tests::client::{Client, Response};
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually};

/// The virtual server `main` hands over requests below `/app` to `app`, which does not listen. The fields `main` and
/// `app` contain further keys of these virtual servers, `rule` actions of an earlier rule, `policies` further policies, and
/// `top` further top-level lines.
struct Bed {
    member: Member,
    other: Member,
    main: String,
    app: String,
    rule: String,
    policies: String,
    top: Vec<String>,
}

impl Bed {
    fn new() -> Self {
        Self {
            member: Member::echo(),
            other: Member::named("of main"),
            main: String::new(),
            app: String::new(),
            rule: String::new(),
            policies: String::new(),
            top: Vec::new(),
        }
    }

    fn setup(&self) -> Setup {
        let rule = &self.rule;
        let policies = format!(
            "policies:\n  routing:\n    strategy: all_match\n    rules:\n      - name: app\n        when: \"request.path.startsWith('/app')\"\n        then: [ {rule} {{ virtual_server: app }} ]\n{}",
            self.policies
        );
        let app = format!("app: {{ pool: others{} }}", self.app);
        let mut setup = Setup::new(&[self.other.address()])
            .access_log()
            .also_virtual_server(&app)
            .also_pool(&format!("others: {{ members: [ \"{}\" ] }}", self.member.address()))
            .top(&policies);
        let main = if self.main.is_empty() { "policies: [ routing ]" } else { &self.main };
        setup = main.lines().fold(setup, Setup::virtual_server);
        self.top.iter().fold(setup, |setup, line| setup.top(line))
    }

    fn start(&self) -> Proxy {
        Proxy::start(&self.setup())
    }
}

fn get(proxy: &Proxy, path: &str, fields: &str) -> Response {
    let mut client = proxy.client();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n"));
    client.response()
}

fn count(proxy: &Proxy, what: &str, server: &str) -> f64 {
    proxy.metric(
        &format!("weir_virtual_server_{what}_total"),
        &[&format!("virtual_server=\"{server}\"")],
    )
}

#[track_caller]
fn wait_for_log(proxy: &mut Proxy, part: &str) {
    eventually(&format!("the log has {part}"), STEP_TIMEOUT, || {
        proxy.process().output().contains(part)
    });
}

#[test]
fn another_virtual_server_decides() {
    let mut bed = Bed::new();
    bed.app = ", policies: [ of-app ], request_id: { respond: true }".into();
    bed.policies = "  of-app:\n    strategy: all_match\n    rules:\n      - then: [ { set_header: { X-App: \"yes\" } }, { set_response_header: { X-From: app } }, { trace: in-app } ]\n".into();
    let mut proxy = bed.start();
    let response = get(&proxy, "/app/1?q=2", "");
    let text = response.assert_status(200).text();
    assert!(text.starts_with("GET /app/1?q=2 HTTP/1.1\r\n"), "{text}");
    assert!(text.contains("X-App: yes\r\n") && text.contains("X-Request-Id: "), "{text}");
    assert_eq!(response.head.field("x-from"), Some("app"));
    assert!(response.head.field("x-request-id").is_some());
    let response = get(&proxy, "/else", "");
    assert_eq!(response.assert_status(200).text(), "of main");
    assert_eq!(response.head.field("x-from"), None);

    assert_eq!(count(&proxy, "requests", "app"), 1.0);
    assert_eq!(count(&proxy, "requests", "main"), 1.0);
    assert_eq!(count(&proxy, "requests_handed_over", "main"), 1.0);
    assert_eq!(count(&proxy, "requests_handed_over", "app"), 0.0);
    assert!(count(&proxy, "connections", "main") >= 2.0);
    assert_eq!(count(&proxy, "connections", "app"), 0.0);
    let answered = |server: &str| {
        let server = format!("virtual_server=\"{server}\"");
        proxy.metric("weir_virtual_server_responses_total", &["class=\"2xx\"", &server])
    };
    assert_eq!((answered("app"), answered("main")), (1.0, 1.0));
    wait_for_log(&mut proxy, "\"virtual_server\":\"app\",\"entered_at\":\"main\"");
    wait_for_log(&mut proxy, "\"rules\":[\"routing/app\",\"of-app/1\"]");
    wait_for_log(&mut proxy, "\"virtual_server\":\"main\",\"method\"");
}

#[test]
fn what_rules_have_done_to_the_request_is_what_the_other_sees() {
    let mut bed = Bed::new();
    bed.rule = "{ rewrite_path: { regex: \"^/app/(.*)$\", to: \"/v2/$1\" } }, { rewrite_query: \"k=v\" }, \
                { rewrite_host: inner.example }, { set_header: { X-Tier: gold } }, { remove_header: X-Secret-* }, \
                { remove_cookie: gone }, { set_response_header: { X-Front: \"yes\", X-Both: front } }, { trace: at-main },"
        .into();
    bed.app = ", policies: [ of-app ]".into();
    bed.policies = "  of-app:\n    strategy: all_match\n    rules:\n      - when: \"request.path == '/v2/x' && request.query['k'] == 'v' && request.host == 'inner.example' && request.target == '/v2/x?k=v' && request.headers['x-tier'] == 'gold' && !('x-secret-id' in request.headers) && request.cookies['gone'] == '' && request.cookies['kept'] == '1' && request.headers['host'] == 'inner.example'\"\n        then: [ { set_header: { X-Seen: \"all\" } }, { set_response_header: { X-Both: app } }, { rewrite_path: { regex: \"^/v2\", to: \"/v3\" } }, { trace: at-app } ]\n      - when: \"request.path.startsWith('/app')\"\n        then: [ { respond: { status: 418 } } ]\n"
        .into();
    let mut proxy = bed.start();
    let fields = "X-Secret-Id: 7\r\nCookie: gone=2; kept=1\r\nX-Tier: iron\r\nX-Seen: none\r\n";
    let response = get(&proxy, "/app/x?a=b", fields);
    let text = response.assert_status(200).text();
    let expected = "GET /v3/x?k=v HTTP/1.1\r\nHost: inner.example\r\n";
    assert!(text.starts_with(expected), "{text}");
    for (line, is_there) in [
        ("X-Seen: all\r\n", true),
        ("X-Tier: gold\r\n", true),
        ("Cookie: kept=1\r\n", true),
        ("iron", false),
        ("gone", false),
        ("X-Secret-Id", false),
    ] {
        assert_eq!(text.contains(line), is_there, "{line}: {text}");
    }
    assert_eq!(response.head.field("x-front"), Some("yes"));
    assert_eq!(response.head.field("x-both"), Some("app"), "its own comes later");
    // The log contains the original target.
    wait_for_log(&mut proxy, "\"target\":\"/app/x?a=b\"");
    wait_for_log(&mut proxy, "\"marks\":[\"at-main\",\"at-app\"]");
}

#[test]
fn a_target_that_is_none_is_not_handed_over() {
    let mut bed = Bed::new();
    bed.rule = "{ rewrite_path: \"/../${request.query['p']}\" },".into();
    let proxy = bed.start();
    get(&proxy, "/app?p=x", "").assert_status(500);
    assert_eq!(bed.member.request_count(), 0);
    assert_eq!(count(&proxy, "rewrites_failed", "main"), 1.0);
    assert_eq!(count(&proxy, "requests_handed_over", "main"), 0.0);
}

#[test]
fn rules_behind_do_nothing_but_for_every_response() {
    let mut bed = Bed::new();
    bed.main = "policies: [ routing, behind ]".into();
    bed.policies = "  behind:\n    strategy: all_match\n    rules:\n      - then: [ { set_header: { X-Behind: \"1\" } }, { pool: members }, { set_response_header: { X-Always: \"1\" } } ]\n      - when: 'response.status == 200'\n        then: [ { set_response_header: { X-Late: \"1\" } } ]\n"
        .into();
    let proxy = bed.start();
    let response = get(&proxy, "/app", "");
    let text = response.assert_status(200).text();
    assert!(!text.contains("X-Behind"), "{text}");
    assert_eq!(response.head.field("x-always"), Some("1"));
    // Rules that read the response are those of the virtual server that processes the request.
    assert_eq!(response.head.field("x-late"), None);
    let response = get(&proxy, "/else", "");
    assert_eq!(response.head.field("x-late"), Some("1"));
}

#[test]
fn it_may_be_handed_on_several_times() {
    let members: Vec<Member> = ["a", "b"].map(Member::named).into();
    let server =
        |number: usize| format!("s{number}: {{ pool: last, policies: [ to-{} ] }}", number + 1);
    let policy = |number: usize| {
        format!(
            "  to-{number}:\n    rules:\n      - then: [ {{ add_header: {{ X-Way: \"{number}\" }} }}, {{ trace: \"{number}\" }}, {{ virtual_server: s{number} }} ]\n"
        )
    };
    let last = Member::echo();
    // The maximum number of handovers.
    let policies: String = (1..=8).map(policy).collect();
    let setup = Setup::new(&[members[0].address()])
        .access_log()
        .virtual_server("policies: [ to-1 ]")
        .also_pool(&format!("last: {{ members: [ \"{}\" ] }}", last.address()))
        .also_virtual_server("s8: { pool: last }")
        .top(&format!("policies:\n{policies}"));
    let setup = (1..8).map(server).fold(setup, |setup, line| setup.also_virtual_server(&line));
    let mut proxy = Proxy::start(&setup);
    let text = get(&proxy, "/x", "").assert_status(200).text();
    let ways: Vec<&str> = text.lines().filter(|line| line.starts_with("X-Way")).collect();
    let expected: Vec<String> = (1..=8).map(|number| format!("X-Way: {number}")).collect();
    assert_eq!(ways, expected, "{text}");
    wait_for_log(&mut proxy, "\"virtual_server\":\"s8\",\"entered_at\":\"main\"");
    wait_for_log(&mut proxy, "\"marks\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\"]");
    assert_eq!(count(&proxy, "requests_handed_over", "s7"), 1.0);
    assert_eq!(count(&proxy, "requests", "s7"), 0.0);
}

#[test]
fn a_disabled_one_gets_nothing() {
    let mut bed = Bed::new();
    bed.app = ", state: disabled".into();
    let proxy = bed.start();
    get(&proxy, "/app", "").assert_status(503);
    assert_eq!(get(&proxy, "/else", "").assert_status(200).text(), "of main");
    assert_eq!(bed.member.request_count(), 0);
    bed.app = String::new();
    proxy.reload_and_wait(&bed.setup());
    get(&proxy, "/app", "").assert_status(200);
}

#[test]
fn a_reload_changes_what_comes_next_alone() {
    let (held, gate) = Member::gated("before");
    let after = Member::named("after");
    let mut bed = Bed::new();
    bed.member = held;
    let proxy = bed.start();
    let mut client = proxy.client();
    client.send("GET /app HTTP/1.1\r\nHost: a\r\n\r\n");
    bed.member.wait_for_requests(1);
    // The reload removes the rule and the virtual server.
    proxy.reload_and_wait(&Setup::new(&[after.address()]).access_log());
    assert_eq!(get(&proxy, "/app", "").assert_status(200).text(), "after");
    gate.open();
    assert_eq!(client.response().assert_status(200).text(), "before");
    assert_eq!(client.get("/app").assert_status(200).text(), "after");
    proxy.reload_and_wait(&bed.setup());
    assert_eq!(client.get("/app").assert_status(200).text(), "before");
}

#[test]
fn status_and_check_show_the_way() {
    let mut bed = Bed::new();
    let proxy = bed.start();
    let status: serde_json::Value =
        serde_json::from_str(&proxy.admin_get("/v1/status")).expect("JSON");
    let of = |name: &str| {
        let servers = status["virtual_servers"].as_array().expect("a list");
        servers.iter().find(|it| it["name"] == name).expect("it is there").clone()
    };
    assert_eq!(of("main")["hands_over_to"], serde_json::json!(["app"]));
    assert_eq!(of("main")["pools"], serde_json::json!(["members", "others"]));
    assert_eq!(of("app")["hands_over_to"], serde_json::json!([]));
    assert_eq!(of("app")["listen"], serde_json::json!([]));
    let shown = || {
        let mut command = std::process::Command::new(weir_tests::proxy::weir_binary());
        weir_tests::tools::run(command.args(["status", "--admin", &proxy.admin_address()]))
    };
    let text = shown();
    assert!(text.contains("\n  hands over   -> app\n"), "{text}");
    assert!(text.contains("\n  listen       nowhere: gets requests from main\n"), "{text}");
    bed.app = ", state: disabled".into();
    proxy.reload_and_wait(&bed.setup());
    let text = shown();
    assert!(text.contains("virtual server app: disabled\n  listen       nowhere\n"), "{text}");
}

#[test]
fn two_clients_at_once_get_their_own() {
    let mut bed = Bed::new();
    bed.other = Member::echo();
    bed.rule =
        "{ set_header: { X-Way: over } }, { rewrite_path: { regex: \"^/app\", to: \"/new\" } },"
            .into();
    let proxy = bed.start();
    let threads: Vec<_> = (0..4)
        .map(|number: usize| {
            let address = proxy.address();
            std::thread::spawn(move || {
                let mut client = Client::connect(address);
                for round in 0..100 {
                    let is_over = (number + round).is_multiple_of(2);
                    let (path, seen) = if is_over { ("/app", "/new") } else { ("/own", "/own") };
                    let tag = format!("{number}-{round}-").repeat(1 + round * 7);
                    let way = format!("X-Tag: {number}.{round}\r\n");
                    client.send(format!(
                        "POST {path}/{number}/{round} HTTP/1.1\r\nHost: a\r\n{way}Content-Length: {}\r\n\r\n{tag}",
                        tag.len()
                    ));
                    let text = client.response().assert_status(200).text();
                    let head = format!("POST {seen}/{number}/{round} HTTP/1.1\r\n");
                    assert!(text.starts_with(&head), "{text}");
                    assert!(text.contains(&way) && text.ends_with(&format!("\r\n\r\n{tag}")), "{text}");
                    assert_eq!(text.contains("X-Way: over"), is_over, "{text}");
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("each gets its own"));
    assert_eq!(count(&proxy, "requests", "app"), 200.0);
    assert_eq!(count(&proxy, "requests", "main"), 200.0);
}
