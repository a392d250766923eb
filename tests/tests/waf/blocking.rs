//! Blocked requests, the settings that decide about them, and the log.

use weir_testing::skip_though_strict;
use weir_tests::http2::Peer;
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{STEP_TIMEOUT, eventually};

use crate::setup::{
    Rules, ask, counted, crs, form, get, guarded, lines, wait_for_lines, with_type,
};

const ATTACKS: [&str; 5] = [
    "1'+or+'1'='1'--",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "..%2f..%2f..%2fetc%2fpasswd",
    "%24%7Bjndi:ldap://evil.example/a%7D",
    "%3Bcat+/etc/passwd",
];
const HARMLESS: [&str; 4] = ["shoes", "O%27Brien+and+sons", "a%2Bb%3D2", "caf%C3%A9"];

#[test]
fn built_in_rules_protect_without_a_download() {
    let member = Member::echo();
    let mut proxy = Proxy::start(&guarded(&member, "waf: { mode: block }").access_log());
    let json = |value: &str| with_type("/api", "application/json", value);
    for attack in ATTACKS {
        for request in [get(&format!("/?q={attack}")), form("/save", &format!("name={attack}"))] {
            let response = ask(&proxy, &request);
            response.assert_status(403);
            assert!(response.text().contains("was blocked"), "{}", response.text());
        }
    }
    ask(&proxy, json("{\"name\":\"<script>alert(1)</script>\"}")).assert_status(403);
    assert_eq!(member.request_count(), 0, "no member has seen any of it");
    for value in HARMLESS {
        ask(&proxy, get(&format!("/?q={value}"))).assert_status(200);
        ask(&proxy, form("/save", &format!("name={value}"))).assert_status(200);
    }
    ask(&proxy, json("{\"name\":\"O'Brien\",\"items\":[1,2]}")).assert_status(200);
    let blocked = 2 * ATTACKS.len() + 1;
    let told = wait_for_lines(&mut proxy, blocked);
    for line in &told {
        assert_eq!((&line["outcome"], &line["blocked"]), (&"blocked".into(), &true.into()));
        assert_eq!((&line["mode"], &line["status"]), (&"block".into(), &403.into()), "{line}");
        assert!(line["score"].as_i64() >= Some(5), "{line}");
        assert!(line["rules"].as_array().is_some_and(|rules| !rules.is_empty()), "{line}");
    }
    assert_eq!(counted(&proxy, "blocked"), blocked as f64);
    assert_eq!(counted(&proxy, "inspected"), (blocked + 2 * HARMLESS.len() + 1) as f64);
    // Both logs contain the same request id.
    let id = format!("\"request_id\":{}", told[0]["request_id"]);
    eventually("the access log has it", STEP_TIMEOUT, || {
        let output = proxy.process().output();
        let mut of_request = output.lines().filter(|line| line.contains(&id));
        of_request.any(|line| line.contains("\"termination\":\"waf\""))
    });
}

#[test]
fn what_is_detected_goes_on() {
    let member = Member::echo();
    let mut proxy = Proxy::start(&guarded(&member, "waf: { mode: detect }"));
    ask(&proxy, get("/?q=1'+or+'1'='1'--")).assert_status(200);
    ask(&proxy, form("/", "q=<script>alert(1)</script>")).assert_status(200);
    ask(&proxy, get("/?q=shoes")).assert_status(200);
    let told = wait_for_lines(&mut proxy, 2);
    for line in &told {
        assert_eq!((&line["outcome"], &line["blocked"]), (&"detected".into(), &false.into()));
    }
    assert_eq!(counted(&proxy, "detected"), 2.0);
    assert_eq!(counted(&proxy, "blocked"), 0.0);
    assert_eq!(member.request_count(), 3);
}

#[test]
fn rules_of_policies_choose_the_mode() {
    let member = Member::echo();
    let policies = r#"policies:
  third:
    rules:
      - { when: 'request.path.startsWith("/off")', then: [ { waf: off } ] }
      - { when: 'request.path.startsWith("/detect")', then: [ { waf: detect } ] }
      - { when: 'request.path.startsWith("/answer")', then: [ { respond: { status: 204 } } ] }"#;
    let setup = guarded(&member, "waf: { mode: block }").virtual_server("policies: [ third ]");
    let proxy = Proxy::start(&setup.top(policies));
    let attack = "?q=1'+or+'1'='1'--";
    for (path, status) in [("/", 403), ("/off", 200), ("/detect", 200), ("/answer", 204)] {
        assert_eq!(ask(&proxy, get(&format!("{path}{attack}"))).status, status, "{path}");
    }
    assert_eq!(
        counted(&proxy, "inspected"),
        2.0,
        "what is off, or has an answer, is not looked at"
    );
    assert_eq!(counted(&proxy, "detected"), 1.0);
    assert_eq!(counted(&proxy, "blocked"), 1.0);
}

#[test]
fn limits_come_first() {
    let member = Member::echo();
    let setup = guarded(&member, "waf: { mode: block }")
        .virtual_server("limits: { requests_per_second: 1 }");
    let proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    let attack = get("/?q=1'+or+'1'='1'--");
    let mut limited = 0;
    for _ in 0..10 {
        client.send(&attack);
        limited += usize::from(client.response().status == 429);
    }
    assert!(limited >= 5, "{limited}");
    assert_eq!(counted(&proxy, "inspected"), (10 - limited) as f64);
}

#[test]
fn rules_redirect_close_and_deny() {
    let rules = Rules::new(
        r#"
SecRule ARGS:do "@streq redirect" "id:1,phase:1,redirect:https://other.example/,status:307"
SecRule ARGS:do "@streq drop" "id:2,phase:1,drop"
SecRule ARGS:do "@streq deny" "id:3,phase:2,deny,status:418"
SecRule ARGS:do "@beginsWith split" "id:4,phase:1,redirect:/%{ARGS.do}"
"#,
    );
    let member = Member::echo();
    let mut proxy = Proxy::start(&guarded(&member, &rules.key("mode: block")));
    let response = ask(&proxy, get("/?do=redirect"));
    assert_eq!(
        (response.status, response.head.field("location")),
        (307, Some("https://other.example/"))
    );
    let mut client = proxy.client();
    client.send(get("/?do=drop"));
    client.assert_closed();
    assert_eq!(ask(&proxy, get("/?do=deny")).status, 418);
    let response = ask(&proxy, get("/?do=split%0d%0aSet-Cookie:%20a=b"));
    assert_eq!((response.status, response.head.field("set-cookie")), (403, None));
    assert_eq!(ask(&proxy, get("/?do=nothing")).status, 200);
    assert_eq!(member.request_count(), 1);
    let told = wait_for_lines(&mut proxy, 4);
    let mut decided: Vec<_> = told.iter().map(|line| line["rule"].as_u64()).collect();
    // The lines may be in any order, because workers write them when they are idle.
    decided.sort_unstable();
    assert_eq!(decided, [1, 2, 3, 4].map(Some));
}

#[test]
fn pages_tell_the_number_of_the_request() {
    let pages = TempDir::new("pages");
    let page = pages.write("blocked.html", "<p>Blocked: ${request_id}</p>");
    let member = Member::echo();
    let setup = guarded(&member, "waf: { mode: block }")
        .virtual_server(&format!("error_pages: {{ 403: {{ file: \"{}\" }} }}", page.display()));
    let mut proxy = Proxy::start(&setup);
    let response = ask(&proxy, get("/?q=1'+or+'1'='1'--"));
    response.assert_status(403);
    let told = wait_for_lines(&mut proxy, 1);
    let id = told[0]["request_id"].as_str().expect("a number");
    assert_eq!(response.text(), format!("<p>Blocked: {id}</p>"));
    assert_eq!(response.head.field("x-request-id"), None);
    assert_eq!(response.head.field("content-type"), Some("text/html; charset=utf-8"));
}

/// The log and the error page contain the request id that a proxy or weir has assigned.
#[test]
fn a_request_that_has_an_id_is_blocked_by_it() {
    let member = Member::echo();
    let ids = "client_address: { trust: [ 127.0.0.0/8 ] }\n    request_id: {}";
    let setup = guarded(&member, "waf: { mode: block }").virtual_server(ids);
    let mut proxy = Proxy::start(&setup);
    let attack = "GET /?q=1'+or+'1'='1'-- HTTP/1.1\r\nHost: test\r\nUser-Agent: test\r\n";
    let taken = ask(&proxy, format!("{attack}X-Request-Id: edge-1\r\n\r\n"));
    taken.assert_status(403);
    assert_eq!(taken.text(), "The request was blocked. Its number is edge-1.\n");
    let made = ask(&proxy, format!("{attack}\r\n"));
    let id = made.head.field("x-request-id").expect("the client is told").to_owned();
    assert_eq!(made.text(), format!("The request was blocked. Its number is {id}.\n"));
    let told = wait_for_lines(&mut proxy, 2);
    let mut told: Vec<_> = told.iter().filter_map(|line| line["request_id"].as_str()).collect();
    told.sort_by_key(|id| *id != "edge-1");
    assert_eq!(told, ["edge-1", &id]);
}

#[test]
fn streams_are_guarded_alike() {
    let member = Member::echo();
    let setup = guarded(&member, "waf: { mode: block, checks: off }").http("http2: true");
    let proxy = Proxy::start(&setup);
    let mut peer = Peer::connect(proxy.address());
    assert_eq!(peer.get("/?q=1'+or+'1'='1'--").status(), 403);
    assert_eq!(peer.get("/?q=shoes").status(), 200);
    let fields = [("content-type", "application/x-www-form-urlencoded")];
    for (body, status) in [("q=<script>alert(1)</script>", 403), ("q=shoes", 200)] {
        let stream = peer.request("POST", "/", &fields, false);
        peer.data(stream, &body.as_bytes()[..3], false);
        peer.data(stream, &body.as_bytes()[3..], true);
        assert_eq!(peer.response(stream).status(), status, "{body}");
    }
    assert_eq!(member.request_count(), 2);
}

/// The settings for thresholds, paranoia levels and early blocking of CRS, in any version of CRS.
#[test]
fn settings_of_crs_hold() {
    let Some(crs) = crs() else { return skip_though_strict("OWASP CRS is not here: set WEIR_CRS") };
    let member = Member::echo();
    let start = |more: &str| -> Proxy {
        let waf = format!("waf: {{ rules: \"{}\", checks: off, {more} }}", crs.display());
        Proxy::start(&guarded(&member, &waf))
    };
    let attack = get("/?q=1'+or+'1'='1'--");
    // Rule 920272 and similar ones: only higher paranoia levels reject these characters.
    let odd = get("/?q=a%25b%7c%7c%5bc%5d%7bd%7d");
    for (more, is_attack_blocked, is_odd_blocked) in [
        ("mode: block", true, false),
        ("mode: block, threshold: 1000", false, false),
        ("mode: block, variables: { inbound_anomaly_score_threshold: \"1000\" }", false, false),
        ("mode: block, paranoia: 4", true, true),
        ("mode: block, detection_paranoia: 4", true, false),
        ("mode: detect, paranoia: 4", false, false),
    ] {
        let proxy = start(more);
        let is_blocked = |request: &str| ask(&proxy, request).status == 403;
        assert_eq!(is_blocked(&attack), is_attack_blocked, "{more}");
        assert_eq!(is_blocked(&odd), is_odd_blocked, "{more}");
        assert!(!is_blocked(&get("/?q=shoes")), "{more}");
    }
}

/// With early blocking, weir responds before the body has arrived.
#[test]
fn heads_are_blocked_early() {
    let Some(crs) = crs() else { return skip_though_strict("OWASP CRS is not here: set WEIR_CRS") };
    if !crs.join("rules").join("REQUEST-949-BLOCKING-EVALUATION.conf").exists() {
        return skip_though_strict("these rules know no early blocking");
    }
    let text = std::fs::read_to_string(crs.join("rules/REQUEST-949-BLOCKING-EVALUATION.conf"));
    if !text.is_ok_and(|text| text.contains("early_blocking")) {
        return skip_though_strict("these rules know no early blocking: set WEIR_CRS to CRS 4");
    }
    let member = Member::echo();
    for (is_early, status) in [(true, Some(403)), (false, None)] {
        let waf = format!(
            "waf: {{ rules: \"{}\", checks: off, mode: block, early_blocking: {is_early} }}",
            crs.display()
        );
        let proxy = Proxy::start(&guarded(&member, &waf));
        let mut client = proxy.client();
        // In the first phase, the scanner's name and the missing Accept header score twice the threshold.
        let head = "POST /.env HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: sqlmap/1.0\r\n\
                    Content-Type: application/json\r\nContent-Length: 10\r\n\r\n";
        client.send(head);
        let early = match status {
            Some(_) => Some(client.response().status),
            None => {
                // weir does not respond before the body has arrived.
                client.send("{\"a\":\"bc\"}");
                assert_eq!(client.response().status, 403);
                None
            }
        };
        assert_eq!(early, status);
    }
    assert_eq!(member.request_count(), 0);
}

#[test]
fn rules_are_changed_by_a_reload() {
    let first = Rules::new("SecRule ARGS:q \"@streq one\" \"id:1,phase:1,deny,status:403\"");
    let second = Rules::new("SecRule ARGS:q \"@streq two\" \"id:2,phase:1,deny,status:403\"");
    let broken = Rules::new("SecRule ARGS:q \"@nonsense two\" \"id:2,phase:1,deny\"");
    let member = Member::echo();
    let mut proxy = Proxy::start(&guarded(&member, &first.key("mode: block")));
    let blocked =
        |proxy: &Proxy| ["one", "two"].map(|q| ask(proxy, get(&format!("/?q={q}"))).status == 403);
    assert_eq!(blocked(&proxy), [true, false]);
    proxy.reload_and_wait(&guarded(&member, &second.key("mode: block")));
    assert_eq!(blocked(&proxy), [false, true]);
    proxy.reload_and_fail(&guarded(&member, &broken.key("mode: block")));
    assert_eq!(blocked(&proxy), [false, true], "what was in force stays");
    proxy.reload_and_wait(&Setup::new(&[member.address()]));
    assert_eq!(blocked(&proxy), [false, false]);
    assert_eq!(lines(&mut proxy).len(), 3);
}

#[test]
fn an_exclusion_lets_a_value_pass_where_it_is_excluded() {
    let member = Member::echo();
    let attack = |path: &str| get(&format!("{path}?text=1'+or+'1'='1"));
    let exclusion =
        |rule: u64| format!("e{rule}: {{ rule: {rule}, variable: \"ARGS:text\", path: /notes/* }}");
    let exclusions = [1_003_001, 1_003_008].map(exclusion).join(", ");
    let waf = format!("waf: {{ mode: block, exclusions: {{ {exclusions} }} }}");
    let proxy = Proxy::start(&guarded(&member, &waf));
    ask(&proxy, attack("/notes/new")).assert_status(200);
    ask(&proxy, attack("/other")).assert_status(403);
    ask(&proxy, get("/notes/new?other=1'+or+'1'='1")).assert_status(403);
}
