//! The path in rules, at members, in the log and in counters.

use super::*;

/// A member that echoes, and a proxy with a rule that adds the path variables to the request.
fn echo(http: &str) -> (Member, Proxy) {
    let member = Member::echo();
    let rule = "[ { then: [ { set_header: { X-Path: '${request.path}', X-Raw: '${request.raw_path}', \
                X-Target: '${request.target}' } } ] } ]";
    let setup = Setup::new(&[member.address()])
        .http(http)
        .access_log()
        .virtual_server("policies: [ test ]")
        .top(&format!("policies: {{ test: {{ rules: {rule} }} }}"));
    let proxy = Proxy::start(&setup);
    (member, proxy)
}

/// The target that the member received, and the values of the three path variables.
fn lines(text: &str) -> [String; 4] {
    let field = |name: &str| {
        let mut lines = text.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines
            .find(|(it, _)| it.eq_ignore_ascii_case(name))
            .map_or("", |(_, value)| value)
            .to_owned()
    };
    let target = text.split(' ').nth(1).unwrap_or_default().to_owned();
    [target, field("x-path"), field("x-raw"), field("x-target")]
}

#[test]
fn rules_see_the_path_as_members_read_it_and_as_it_came() {
    for (setting, table) in [
        (
            "{}",
            &[
                ("/a/../b", ["/b", "/b", "/a/../b", "/b"]),
                (
                    "//a%40b;x=1/c?d",
                    ["/a%40b;x=1/c?d", "/a@b/c", "//a%40b;x=1/c", "/a%40b;x=1/c?d"],
                ),
                ("http://test//a", ["/a", "/a", "//a", "/a"]),
                ("http://test?a", ["/?a", "/", "/", "/?a"]),
                (
                    "/caf\u{e9}/..\u{20ac}?q=\u{e9}\"<x>",
                    [
                        "/caf%C3%A9/..%E2%82%AC?q=%C3%A9%22%3Cx%3E",
                        "/caf%C3%A9/..%E2%82%AC",
                        "/caf\u{e9}/..\u{20ac}",
                        "/caf%C3%A9/..%E2%82%AC?q=%C3%A9%22%3Cx%3E",
                    ],
                ),
                ("http://test?\u{e9}", ["/?%C3%A9", "/", "/", "/?%C3%A9"]),
            ][..],
        ),
        (
            "keep",
            &[
                ("/a/../b", ["/a/../b", "/b", "/a/../b", "/a/../b"]),
                ("/%61//b;x?c", ["/%61//b;x?c", "/a/b", "/%61//b;x", "/%61//b;x?c"]),
                ("/k%2fy/|", ["/k%2fy/|", "/k/y/%7C", "/k%2fy/|", "/k%2fy/|"]),
                ("http://test/./a", ["/./a", "/a", "/./a", "/./a"]),
                (
                    "/./\u{e9}%c3?\u{e9}",
                    ["/./%C3%A9%c3?%C3%A9", "/%C3%A9%C3", "/./\u{e9}%c3", "/./%C3%A9%c3?%C3%A9"],
                ),
            ][..],
        ),
        (
            "{ encoded_slashes: keep, parameters: remove }",
            &[
                ("/g%2fp", ["/g%2Fp", "/g/p", "/g%2fp", "/g%2Fp"]),
                ("/q/%2F/n", ["/q/%2F/n", "/q/n", "/q/%2F/n", "/q/%2F/n"]),
                ("/a;x=%2F/b", ["/a/b", "/a/b", "/a;x=%2F/b", "/a/b"]),
                ("/a/..;/b", ["/b", "/b", "/a/..;/b", "/b"]),
            ][..],
        ),
    ] {
        let (_member, proxy) = echo(&format!("http2: true, path: {setting}"));
        let (mut by_http1, mut by_http2) = (proxy.client(), http2::Peer::connect(proxy.address()));
        for &(target, expected) in table {
            let response = by_http1.get(target);
            response.assert_status(200);
            assert_eq!(lines(&response.text()), expected, "{setting}: {target}");
            if target.starts_with('/') {
                let response = by_http2.get(target);
                response.assert_status(200);
                assert_eq!(lines(&response.text()), expected, "HTTP/2, {setting}: {target}");
            }
        }
    }
}

/// Bytes outside ASCII in a target: members, rules and persistence get the same encoded bytes.
#[test]
fn raw_bytes_in_targets_are_encoded_or_refused() {
    let targets = ["/caf\u{e9}", "/?q=\u{e9}", "/\"", "/a<b", "/a?b>c", "/a?\u{ff5e}"];
    for (setting, status) in [("strict: false", 200), ("strict: true", 400)] {
        let (member, proxy) = echo(&format!("http2: true, {setting}"));
        for target in targets {
            proxy.client().get(target).assert_status(status);
            http2::Peer::connect(proxy.address()).get(target).assert_status(status);
        }
        let answered = if status == 200 { 2 * targets.len() } else { 0 };
        assert_eq!(member.request_count(), answered, "{setting}");
        for request in member.requests() {
            assert!(
                request.target().bytes().all(|byte| (b'!'..=b'~').contains(&byte)),
                "{request:?}"
            );
        }
        let malformed = proxy.metric("weir_virtual_server_requests_malformed_total", &["\"main\""]);
        assert_eq!(malformed as usize, 2 * targets.len() - answered, "{setting}");
        // Characters that end a target for some parsers are refused under both settings.
        for target in ["/#", "/a\u{7f}", "/a?\u{1}", "/a\t", "/?a\tb"] {
            proxy.client().get(target).assert_status(400);
        }
        proxy.client().get("/still-served").assert_status(200);
    }
}

#[test]
fn a_refused_path_is_answered_logged_and_counted() {
    let (member, mut proxy) = echo("http2: true");
    let refused = ["/a%2Fb", "/a%5cb", "/a\\b", "/a/..;/b", "/;x/b", "/%00"];
    for path in refused {
        let mut client = proxy.client();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        client.response().assert_status(400);
        client.assert_closed();
    }
    let mut client = http2::Peer::connect(proxy.address());
    for path in refused {
        client.get(path).assert_status(400);
    }
    client.get("/sound").assert_status(200);
    assert_eq!(member.request_count(), 1);
    // A target without a path is malformed under all settings.
    proxy.client().get("/%zz").assert_status(400);
    let count = |name: &str| proxy.metric(name, &["\"main\""]);
    assert_eq!(count("weir_virtual_server_requests_path_refused_total"), 12.0);
    assert_eq!(count("weir_virtual_server_requests_malformed_total"), 1.0);
    let status = proxy.admin_get("/v1/status");
    assert!(status.contains("\"requests_path_refused\": 12"), "{status}");
    weir_tests::eventually("all is logged", weir_tests::STEP_TIMEOUT, || {
        let output = proxy.process().output();
        let count = |termination: &str| output.matches(termination).count();
        (count("\"path_refused\""), count("\"client_malformed\"")) == (12, 1)
    });
    let output = proxy.process().output();
    for target in ["\"target\":\"/a%2Fb\"", "\"target\":\"/a\\\\b\"", "\"target\":\"/;x/b\""] {
        assert_eq!(output.matches(target).count(), 2, "{target} in {output}");
    }
}

#[test]
fn a_rewritten_path_is_taken_as_a_received_one_is() {
    let rules = r#"[
      { when: 'request.path.startsWith("/old/")', then: [ { rewrite_path: { regex: "^/old/(.*)$", to: "/new//$1" } } ] },
      { when: 'request.path.startsWith("/api")', then: [ { rewrite_path: { regex: "^/api", to: "/backend/" } } ] },
      { when: 'request.path.startsWith("/app")', then: [ { rewrite_path: "/base${request.target}" } ] },
      { when: 'request.path == "/slash"', then: [ { rewrite_path: "/a%2Fb" } ] } ]"#;
    let member = Member::echo();
    for (setting, table) in [
        (
            "{}",
            [
                ("/old/a;id=1?b", Some("/new/a;id=1?b")),
                ("/app/../app;id=1/x?y", Some("/base/app;id=1/x?y")),
                ("/slash", None),
                ("/api/x", Some("/backend/x")),
                // Rewriting would give `/admin/x`.
                ("/api../admin/x", None),
                ("/api%2e%2e/admin/x", None),
            ],
        ),
        (
            "keep",
            [
                ("/old/%61/b", Some("/new//%61/b")),
                ("/old/%61/../b", None),
                ("/app//x", Some("/base/app//x")),
                ("/slash", Some("/a%2Fb")),
                ("/../app/x", None),
                ("/app/%2e%2e/app", None),
            ],
        ),
    ] {
        let setup = Setup::new(&[member.address()])
            .http(&format!("path: {setting}"))
            .virtual_server("policies: [ test ]")
            .top(&format!("policies: {{ test: {{ rules: {rules} }} }}"));
        let proxy = Proxy::start(&setup);
        for (target, expected) in table {
            let response = proxy.client().get(target);
            match expected {
                Some(expected) => {
                    response.assert_status(200);
                    assert_eq!(lines(&response.text())[0], expected, "{setting}: {target}");
                }
                None => drop(response.assert_status(500)),
            }
        }
    }
}

/// Without rules there is nothing to bypass. Members get the path as the client sent it.
#[test]
fn an_encoded_slash_passes_where_no_rule_reads_the_path() {
    let member = Member::echo();
    let proxy = Proxy::start(&Setup::new(&[member.address()]).http("http2: true"));
    let projects = ["/api/v4/projects/group%2Fproject", "/@scope%2fname", "/api/queues/%2F/name"];
    for path in projects {
        proxy.client().get(path).assert_status(200);
        http2::Peer::connect(proxy.address()).get(path).assert_status(200);
    }
    let targets: Vec<String> = member.requests().iter().map(|it| it.target().to_owned()).collect();
    let expected: Vec<&str> = projects.iter().flat_map(|path| [*path; 2]).collect();
    let upper = |target: &str| target.replace("%2f", "%2F");
    let upper_of = |all: &[&str]| all.iter().map(|it| upper(it)).collect::<Vec<_>>();
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    assert_eq!(upper_of(&targets), upper_of(&expected));
    // Next to dots, servers would read it differently in any case.
    for path in ["/a/..%2fadmin", "/a%2f../admin", "/a;x=%2f"] {
        proxy.client().get(path).assert_status(400);
    }
    // A rule that reads the path makes it ambiguous again.
    let rule = "[ { when: 'request.path.startsWith(\"/admin/\")', then: [ { respond: { status: 403 } } ] } ]";
    let setup = Setup::new(&[member.address()])
        .virtual_server("policies: [ test ]")
        .top(&format!("policies: {{ test: {{ rules: {rule} }} }}"));
    let proxy = Proxy::start(&setup);
    proxy.client().get(projects[0]).assert_status(400);
    let keeping = Proxy::start(&setup.http("path: { encoded_slashes: keep }"));
    keeping.client().get(projects[0]).assert_status(200);
    keeping.client().get("/admin%2Fx").assert_status(403);
}
