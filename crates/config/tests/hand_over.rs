//! The action `virtual_server`: which virtual servers may hand requests to which.

use weir_config::snapshot::{HAND_OVERS_MAX, Snapshot};
use weir_config::{Resolutions, Severity, parse};

fn file(servers: &str, policies: &str) -> String {
    format!(
        "virtual_servers:\n{servers}policies:\n{policies}pools: {{ p: {{ members: [ 127.0.0.1:9001 ] }} }}\n"
    )
}

const CERTIFICATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/tls");

fn tls() -> String {
    format!(
        "{{ certificates: [ {{ cert: {CERTIFICATES}/shop-ec.crt, key: {CERTIFICATES}/shop-ec.key }} ] }}"
    )
}

/// Each with its line.
fn diagnostics(text: &str) -> Vec<String> {
    let found = parse("weir.yaml", text).diagnostics;
    let shown = found.iter().map(|it| {
        let line = it.position.map_or(0, |position| position.line);
        let help = it.suggestion.as_deref().unwrap_or("-");
        let severity = if it.severity == Severity::Error { "error" } else { "warning" };
        format!("{severity} {line} {} -> {help}", it.message)
    });
    shown.collect()
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(diagnostics(text), expected, "{text}");
}

fn snapshot(text: &str) -> Snapshot {
    let loaded = parse("weir.yaml", text);
    assert_eq!(loaded.diagnostics, [], "{text}");
    loaded.config.unwrap_or_else(|| panic!("{text}")).snapshot(&Resolutions::new())
}

const TO_B: &str = "  to-b: { rules: [ { name: all, then: [ { virtual_server: b } ] } ] }\n";

/// `a` hands requests to `b`, with these keys.
fn pair(a: &str, b: &str) -> String {
    file(
        &format!("  a: {{ listen: 127.0.0.1:80, policies: [ to-b ]{a} }}\n  b: {{ pool: p{b} }}\n"),
        TO_B,
    )
}

#[test]
fn a_name_is_a_place_among_those_that_serve() {
    let servers = "  packets: { listen: 10.0.0.1:80, type: fast_l4, pool: p }\n  \
                   off: { listen: 127.0.0.1:81, state: disabled, pool: p }\n  \
                   tcp: { listen: 127.0.0.1:82, type: tcp, pool: p }\n  \
                   a: { listen: 127.0.0.1:80, policies: [ to-b ] }\n  b: { pool: p }\n";
    let found = snapshot(&file(servers, TO_B));
    let names: Vec<&str> = found.virtual_servers.iter().map(|server| &*server.name).collect();
    assert_eq!(names, ["tcp", "a", "b"]);
    assert_eq!(found.virtual_servers[1].hands_over_to(), [2]);
    let rules: Vec<_> = found.virtual_servers[1].hand_overs().collect();
    assert_eq!(rules.len(), 1);
    assert_eq!((&*rules[0].0.policy, &*rules[0].0.rule, rules[0].1), ("to-b", "all", 2));
    assert!(found.virtual_servers[2].listen.is_empty());
    assert_eq!(found.virtual_servers[2].hands_over_to(), [0; 0]);
}

#[test]
fn only_one_that_is_there_and_sees_requests() {
    let with = |b: &str, to: &str| {
        file(
            &format!("  a: {{ listen: 127.0.0.1:80, policies: [ to ] }}\n  application: {b}\n"),
            &format!("  to: {{ rules: [ {{ then: [ {{ virtual_server: {to} }} ] }} ] }}\n"),
        )
    };
    let http = "{ listen: 127.0.0.1:81, pool: p }";
    check(
        &with(http, "aplication"),
        &["error 5 virtual server `aplication` is not defined -> did you mean `application`?"],
    );
    for (kind, listen) in
        [("tcp", "127.0.0.1:81"), ("udp", "127.0.0.1:81"), ("fast_l4", "10.0.0.1:81")]
    {
        let server = format!("{{ listen: {listen}, type: {kind}, pool: p }}");
        let expected = format!(
            "error 5 virtual server `application` is of type {kind}: requests can only be handed to one of type http -> name one of type http, or use `pool`"
        );
        check(&with(&server, "application"), &[&expected]);
    }
    check(
        &with("{ pool: p, state: disabled }", "application"),
        &[
            "warning 5 virtual server `application` is disabled: requests that this rule hands to it get 503 -> enable it, or hand them to another",
        ],
    );
}

#[test]
fn only_where_requests_are_seen() {
    let with = |a: &str| {
        file(
            &format!(
                "  a: {{ listen: 127.0.0.1:80, pool: p, {a} }}\n  b: {{ listen: 127.0.0.1:81, pool: p }}\n"
            ),
            TO_B,
        )
    };
    check(
        &with("type: tcp, policies: [ to-b ]"),
        &[
            "error 2 the policy `to-b` has the action `virtual_server` (rule `all` in line 5), and this is a virtual server of type tcp -> use `pool`, `member`, `persistence`, `rate_limit`, `log`, `trace`, `close` or `reset`",
        ],
    );
    check(
        &with("connection_policies: [ to-b ]"),
        &[
            "error 2 the policy `to-b` has the action `virtual_server` (rule `all` in line 5), and `connection_policies` run when a connection is accepted -> use `rate_limit`, `log`, `close` or `reset`, or name it in `policies`",
        ],
    );
    let late = "  to-b: { rules: [ { when: 'response.status == 404', then: [ { virtual_server: b } ] } ] }\n";
    check(
        &file(
            "  a: { listen: 127.0.0.1:80, pool: p, policies: [ to-b ] }\n  b: { pool: p }\n",
            late,
        ),
        &[
            "error 5 this rule reads the response: by then the request has been sent -> do it in a rule that reads the request only",
        ],
    );
}

#[test]
fn what_listens_nowhere_gets_requests_of_others() {
    let lacks = |kind: &str, more: &str| {
        format!(
            "error 2 `virtual_servers.b` lacks `listen` -> add `listen:` with an address to listen on (`ip:port`, `ip:port-port`, `[v6]:port` or `unix:/path`), or a list of them{more}{kind}"
        )
    };
    let alone = |b: &str| {
        format!(
            "virtual_servers:\n  b: {{ pool: p{b} }}\npools: {{ p: {{ members: [ 127.0.0.1:9001 ] }} }}\n"
        )
    };
    let more = "; or hand requests to it, by the action `virtual_server` of a rule";
    check(&alone(""), &[&lacks("", more)]);
    check(&alone(", type: tcp"), &[&lacks("", "")]);
    let disabled = diagnostics(&alone(", state: disabled"));
    assert!(disabled.contains(&lacks("", more)), "{disabled:?}");
    // An unused policy hands nothing over.
    let unused = file("  a: { listen: 127.0.0.1:80, pool: p }\n  b: { pool: p }\n", TO_B);
    assert!(diagnostics(&unused)[0].starts_with("error 3 `virtual_servers.b` lacks `listen`"));
    // A disabled one is enough.
    check(&pair(", state: disabled", ""), &[]);
    check(&pair("", ""), &[]);
    // An invalid one does not count as missing.
    let wrong = pair("", ", listen: nowhere");
    assert_eq!(diagnostics(&wrong).len(), 1, "{:?}", diagnostics(&wrong));
}

#[test]
fn circles_are_refused() {
    let to = |name: &str| {
        format!("  to-{name}: {{ rules: [ {{ then: [ {{ virtual_server: {name} }} ] }} ] }}\n")
    };
    let itself = file("  b: { listen: 127.0.0.1:80, policies: [ to-b ] }\n", TO_B);
    let help = "remove one of these `virtual_server` actions, or name a `pool`";
    check(
        &itself,
        &[&format!("error 4 requests would be handed round for ever: `b` -> `b` -> {help}")],
    );
    let round = file(
        "  in: { listen: 127.0.0.1:80, policies: [ to-a ] }\n  a: { policies: [ to-b ] }\n  b: { policies: [ to-c ] }\n  c: { policies: [ to-a ] }\n",
        &["a", "b", "c"].map(to).concat(),
    );
    check(
        &round,
        &[&format!(
            "error 7 requests would be handed round for ever: `a` -> `b` -> `c` -> `a` -> {help}"
        )],
    );
    // Two paths to one virtual server are not a cycle.
    let both = file(
        "  in: { listen: 127.0.0.1:80, policies: [ to-a, to-b ] }\n  a: { policies: [ to-c ] }\n  b: { policies: [ to-c ] }\n  c: { pool: p }\n",
        &(to("b")
            + &to("c")
            + "  to-a: { rules: [ { when: 'request.path == \"/\"', then: [ { virtual_server: a } ] } ] }\n"),
    );
    check(&both, &[]);
}

#[test]
fn ways_are_not_longer_than_so() {
    let chain = |length: usize| {
        let servers: String = (1..length)
            .map(|number| format!("  s{number}: {{ policies: [ to-{} ] }}\n", number + 1))
            .collect();
        let policies: String = (1..=length)
            .map(|number| {
                format!("  to-{number}: {{ rules: [ {{ then: [ {{ virtual_server: s{number} }} ] }} ] }}\n")
            })
            .collect();
        file(
            &format!(
                "  s0: {{ listen: 127.0.0.1:80, policies: [ to-1 ] }}\n{servers}  s{length}: {{ pool: p }}\n"
            ),
            &policies,
        )
    };
    check(&chain(HAND_OVERS_MAX), &[]);
    let way: Vec<String> = (0..=HAND_OVERS_MAX + 1).map(|number| format!("`s{number}`")).collect();
    check(
        &chain(HAND_OVERS_MAX + 1),
        &[&format!(
            "error {} requests may be handed on 9 times, at most 8 are possible: {} -> hand them to the last one directly",
            1 + HAND_OVERS_MAX + 2 + 1 + HAND_OVERS_MAX + 1,
            way.join(" -> ")
        )],
    );
}

#[test]
fn no_check_of_a_connection_is_passed_by() {
    let past = |what: &str, help: &str| {
        format!(
            "error 5 `b` has {what}: requests that `a` hands to it would come past that -> {help}"
        )
    };
    let listens = ", listen: 127.0.0.1:81";
    let more =
        "  gate: { rules: [ { then: [ close ] } ] }\n  other: { rules: [ { then: [ reset ] } ] }\n";
    let with = |a: &str, b: &str| {
        pair(a, &format!("{listens}{b}")).replace(TO_B, &format!("{TO_B}{more}"))
    };
    let help = "name the same policies in `connection_policies` of both, or check requests by `policies` of `b`";
    let refused = past("`connection_policies` of its own", help);
    for (a, b) in [
        ("", ", connection_policies: [ gate, other ]"),
        (", connection_policies: [ other, gate ]", ", connection_policies: [ gate, other ]"),
        (", connection_policies: [ gate, other ]", ", connection_policies: [ gate ]"),
    ] {
        let found = diagnostics(&with(a, b));
        assert_eq!(found, [refused.as_str()], "{a} {b}");
    }
    check(
        &with(", connection_policies: [ gate, other ]", ", connection_policies: [ gate, other ]"),
        &[],
    );
    let listed = ", allowed_clients: [ 10.0.0.0/8 ]";
    let refused = past(
        "`allowed_clients` of its own",
        "list the same in both, or check requests by `policies` of `b`",
    );
    for a in ["", ", allowed_clients: [ 10.0.0.0/7 ]"] {
        assert_eq!(diagnostics(&pair(a, &format!("{listens}{listed}"))), [refused.as_str()], "{a}");
    }
    // The same addresses, written otherwise. The virtual server that listens may let in fewer.
    let same = ", allowed_clients: [ 10.0.0.0/9, 10.128.0.0/9 ]";
    check(&pair(same, &format!("{listens}{listed}")), &[]);
    check(&pair(listed, listens), &[]);
    for (limits, name) in [
        ("connections: 5", "connections"),
        ("connections_per_second: 5", "connections_per_second"),
        ("per_key: [ { connections: 5 } ]", "per_key.connections"),
        ("per_key: [ { connections_per_second: 5 } ]", "per_key.connections_per_second"),
    ] {
        let help = "limit requests (`requests`, `requests_per_second`), or let `b` listen nowhere and limit connections where they come in";
        let expected = past(&format!("the limit `{name}` on connections"), help);
        check(&pair("", &format!("{listens}, limits: {{ {limits} }}")), &[&expected]);
    }
    check(
        &pair(
            "",
            &format!(
                "{listens}, limits: {{ requests: 5, requests_per_second: 9, per_key: [ {{ requests: 1 }} ] }}"
            ),
        ),
        &[],
    );
    let paths = "error 5 `a` and `b` take paths differently: rules of `b` would read others than it expects -> give `http.path` and `http.strict` the same values in both";
    check(&pair("", ", http: { path: keep }"), &[paths]);
    check(&pair(", http: { strict: true }", ""), &[paths]);
    check(
        &pair(
            ", http: { path: { parameters: remove } }",
            ", http: { path: { parameters: remove } }",
        ),
        &[],
    );
}

#[test]
fn tls_is_that_of_one_profile() {
    let tls = tls();
    let profiles = format!("profiles: {{ tls: {{ one: {tls}, two: {tls} }} }}\n");
    let errors = |a: &str, b: &str| {
        let text = pair(a, &format!(", listen: 127.0.0.1:81{b}")) + &profiles;
        let found = diagnostics(&text);
        let errors: Vec<_> = found.iter().filter(|it| it.starts_with("error")).collect();
        assert!(errors.iter().all(|it| it.contains("`tls` of its own")), "{errors:?}");
        errors.len()
    };
    for (a, b, expected) in [
        ("", ", tls: one".to_owned(), 1),
        (", tls: two", ", tls: one".to_owned(), 1),
        (", tls: one", format!(", tls: {tls}"), 1),
        (", tls: one", ", tls: one".to_owned(), 0),
        (", tls: one", String::new(), 0),
    ] {
        assert_eq!(errors(a, &b), expected, "{a} {b}");
    }
}

#[test]
fn the_firewall_is_not_passed_by_silently() {
    let waf = ", waf: { mode: block }";
    let text = |a: &str, b: &str, action: &str| {
        pair(a, b)
            .replace("[ { virtual_server: b } ]", &format!("[ {action}{{ virtual_server: b }} ]"))
    };
    let starts = "error 5 the web application firewall of `a` does not inspect requests that are handed to `b` -> ";
    check(
        &text(waf, "", ""),
        &[&format!("{starts}give `b` a `waf`, and add `waf: off` before `virtual_server`")],
    );
    check(
        &text(waf, waf, ""),
        &[&format!(
            "{starts}`b` has its own `waf`: add `waf: off` before `virtual_server` if that is enough"
        )],
    );
    check(&text(waf, waf, "{ waf: off }, "), &[]);
    check(&text(waf, "", "{ waf: off }, "), &[]);
    check(&text("", waf, ""), &[]);
}

#[test]
fn what_the_other_decides_is_not_decided_before() {
    let with = |action: &str| {
        pair("", "")
            .replace("[ { virtual_server: b } ]", &format!("[ {action}, {{ virtual_server: b }} ]"))
    };
    let expected = "error 5 this has no effect beside `virtual_server`: `b` decides about it for the request -> move it to a policy of `b`";
    for action in [
        "{ pool: p }",
        "{ member: 127.0.0.1:9001 }",
        "{ persistence: off }",
        "{ mirror: { pool: p } }",
        "{ compression: off }",
        "{ replace_response_body: { strings: { a: b } } }",
        "{ waf: block }",
        "{ replace_response_header: { X: { regex: a, to: b } } }",
        "{ set_response_header: { X: \"${response.status}\" } }",
    ] {
        let found = diagnostics(&with(action));
        assert!(found.contains(&expected.to_owned()), "{action}: {found:?}");
    }
    for action in [
        "{ set_header: { X: y } }",
        "{ rewrite_path: /x }",
        "{ set_response_header: { X: y } }",
        "{ set_cookie: { name: a, value: b } }",
        "{ rate_limit: { requests_per_second: 5 } }",
        "{ log: x }",
        "{ trace: x }",
    ] {
        check(&with(action), &[]);
    }
    let behind = pair("", "").replace("virtual_server: b }", "virtual_server: b }, { trace: x }");
    check(
        &behind,
        &[
            "error 5 nothing comes after an answer, `virtual_server`, `close` or `reset` -> move it before",
        ],
    );
}

#[test]
fn what_listens_nowhere_has_no_connections() {
    for (key, value) in [
        ("free_bind", "true"),
        ("defer_accept", "1s"),
        ("interfaces", "[ eth0 ]"),
        ("connection_policies", "[ gate ]"),
        ("limits.connections", "5"),
        ("limits.per_key.connections", "5"),
        ("client_address.trust", "[ 10.0.0.1 ]"),
        ("http.head_size_max", "8KiB"),
        ("http.headers_max", "10"),
        ("http.header_timeout", "1s"),
        ("http.idle_timeout", "1s"),
        ("http.http2", "true"),
    ] {
        let keys = match key.split_once('.') {
            None => format!("{key}: {value}"),
            Some(("limits", "per_key.connections")) => {
                "limits: { per_key: [ { connections: 5 } ] }".into()
            }
            Some((section, key)) => format!("{section}: {{ {key}: {value} }}"),
        };
        let text = pair("", &format!(", {keys}"))
            .replace(TO_B, &format!("{TO_B}  gate: {{ rules: [ {{ then: [ close ] }} ] }}\n"));
        let expected = format!(
            "error 3 `{key}` has no effect: `b` has no `listen`, and so no connections of its own -> set it for the virtual servers that hand requests to this one"
        );
        let found = diagnostics(&text);
        assert!(found.contains(&expected), "{keys}: {found:?}");
    }
    check(
        &pair(
            "",
            ", http: { body_size_max: 1MiB, body_timeout: 5s, tunnel_timeout: 5s, request_trailers: forward, rewrite_location: true }, client_address: { x_forwarded_for: append }",
        ),
        &[],
    );
}

#[test]
fn rules_behind_one_that_hands_over_are_never_followed() {
    let behind = "  late: { rules: [ { then: [ { set_header: { X: y } } ] } ] }\n";
    let text = pair("", "")
        .replace("[ to-b ]", "[ to-b, late ]")
        .replace(TO_B, &format!("{TO_B}{behind}"));
    check(
        &text,
        &[
            "warning 2 the policy `late` is never followed here: `to-b` before it ends every request -> move it before, or remove it",
        ],
    );
    // Its edits of responses also apply to responses of the other virtual server.
    check(&text.replace("set_header", "set_response_header"), &[]);
    let within = pair("", "").replace("rules: [ {", "strategy: all_match, rules: [ {").replace(
        "{ virtual_server: b } ] }",
        "{ virtual_server: b } ] }, { then: [ { set_header: { X: y } } ] }",
    );
    check(
        &within,
        &[
            "warning 5 rule 2 is never followed: rule `all` in line 5 always holds and ends the request -> move it before rule `all`, or give that one a `when`",
        ],
    );
}

#[test]
fn requests_do_not_come_back_by_the_network() {
    let back = "error 8 virtual server `a` listens on `0.0.0.0:9001`, which a member of the pool `p` of `c` has: requests would go round for ever -> change the listener's or the member's port";
    let text = file(
        "  a: { listen: 0.0.0.0:9001, policies: [ to-b ] }\n  z: { listen: 127.0.0.1:82, pool: p }\n  b: { policies: [ to-c ] }\n  c: { pool: p }\n",
        &("  to-c: { rules: [ { then: [ { virtual_server: c } ] } ] }\n".to_owned() + TO_B),
    );
    check(&text, &[back]);
    check(&text.replace("0.0.0.0:9001", "0.0.0.0:9002"), &[]);
}

#[test]
fn what_has_come_by_tls_is_not_redirected_to_it() {
    let text = |keys: &str| {
        file(
            &format!(
                "  a: {{ listen: 127.0.0.1:443, policies: [ to-b ]{keys} }}\n  b: {{ policies: [ to-c ] }}\n  c: {{ pool: p, https_redirect: true }}\n"
            ),
            &("  to-c: { rules: [ { then: [ { virtual_server: c } ] } ] }\n".to_owned() + TO_B),
        )
    };
    check(&text(""), &[]);
    let expected = "error 7 `c` has `https_redirect`, and requests of `a`, which has `tls`, are handed to it: they would be redirected for ever -> set `https_redirect` for the virtual server that listens without TLS";
    check(&text(&format!(", tls: {}", tls())), &[expected]);
}

#[test]
fn words_of_other_products_are_understood() {
    for word in ["virtual", "targetLBVserver"] {
        let text = pair("", "").replace("{ virtual_server: b }", &format!("{{ {word}: b }}"));
        let found = diagnostics(&text);
        assert!(found[0].ends_with("-> did you mean `virtual_server`?"), "{word}: {found:?}");
    }
}
