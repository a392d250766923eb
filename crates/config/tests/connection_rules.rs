//! Policies for connections: permitted conditions and actions, and findings for others.

use weir_config::snapshot::{CountedEvents, KeyMeasure, Snapshot};
use weir_config::{Resolutions, Severity, parse};

/// A virtual server with these lines, which begin at line 4, two pools, and a policy `rules` of one rule.
fn file(server: &str, rule: &str) -> String {
    let server: String = server.lines().map(|line| format!("    {line}\n")).collect();
    format!(
        "virtual_servers:\n  a:\n    listen: 127.0.0.1:80\n{server}\
         pools:\n  p: {{ members: [ 127.0.0.1:9001 ] }}\n  q: {{ members: [ 127.0.0.1:9002 ] }}\n\
         persistence: {{ addresses: {{ type: source_address }}, cookies: {{ type: cookie }} }}\n\
         policies:\n  rules:\n    rules:\n      - {rule}\n"
    )
}

fn snapshot(text: &str) -> Snapshot {
    let loaded = parse("weir.yaml", text);
    let is_error = |severity| severity == Severity::Error;
    assert!(
        !loaded.diagnostics.iter().any(|it| is_error(it.severity)),
        "{:?}\n{text}",
        loaded.diagnostics
    );
    loaded.config.expect("a configuration").snapshot(&Resolutions::new())
}

/// Asserts these errors, as `LINE MESSAGE -> HELP`.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let loaded = parse("weir.yaml", text);
    let errors = loaded.diagnostics.iter().filter(|it| it.severity == Severity::Error);
    let found: Vec<String> = errors
        .map(|it| {
            let line = it.position.map_or(0, |position| position.line);
            format!("{line} {} -> {}", it.message, it.suggestion.as_deref().unwrap_or("-"))
        })
        .collect();
    assert_eq!(found, expected, "\n{text}");
}

const RELAY: &str = "type: tcp\npool: p\npolicies: [ rules ]";
const SECURED: &str = "type: tcp\npool: p\npolicies: [ rules ]\ntls: { certificates: [ { cert: ../../examples/tls/shop-ec.crt, key: ../../examples/tls/shop-ec.key } ] }";

#[test]
fn rules_of_connections_may_do_this() {
    for rule in [
        "{ when: 'cidr(\"10.0.0.0/8\").containsIP(client.ip)', then: [ reset ] }",
        "{ when: 'server.port == 80', then: [ close ] }",
        "{ when: 'tls.sni == \"shop.example\"', then: [ { pool: q } ] }",
        "{ then: [ { member: \"127.0.0.1:9001\" }, { persistence: addresses }, { persistence: off } ] }",
        "{ then: [ { log: \"${client.ip} ${tls.sni}\" }, { trace: \"${client.port}\" } ] }",
        "{ then: [ { rate_limit: { connections: 1 } } ] }",
        "{ then: [ { rate_limit: { connections_per_second: 1, key: \"${tls.sni}\" } } ] }",
    ] {
        check(&file(RELAY, rule), &[]);
    }
    check(&file("type: tcp\npolicies: [ rules ]", "{ then: [ reset ] }"), &[]);
}

#[test]
fn rules_of_connections_have_no_requests() {
    let of = |what: &str| {
        format!(
            "6 the policy `rules` {what} (rule 1 in line 14), and this is a virtual server of type tcp"
        )
    };
    let actions =
        "use `pool`, `member`, `persistence`, `rate_limit`, `log`, `trace`, `close` or `reset`";
    let tls = "read only `client`, `server` or `tls`";
    let limits = "limit `connections_per_second` or `connections`";
    let handshake = "of `tls` read only `tls.sni`, or add `tls` to the virtual server";
    for (rule, what, help) in [
        ("{ when: 'request.path == \"/\"', then: [ reset ] }", "reads the request", tls),
        ("{ when: 'response.status == 200', then: [ { log: a } ] }", "reads the response", tls),
        ("{ then: [ { log: \"${request.host}\" } ] }", "reads the request", tls),
        (
            "{ then: [ { rate_limit: { connections: 1, key: \"${request.host}\" } } ] }",
            "reads the request",
            tls,
        ),
        ("{ then: [ { rate_limit: { requests: 1 } } ] }", "limits requests", limits),
        ("{ then: [ { rate_limit: { requests_per_second: 1 } } ] }", "limits requests", limits),
        ("{ then: [ { redirect: { to: / } } ] }", "has the action `redirect`", actions),
        ("{ then: [ { respond: { status: 403 } } ] }", "has the action `respond`", actions),
        ("{ then: [ { set_header: { A: b } } ] }", "has the action `set_header`", actions),
        (
            "{ then: [ { set_response_header: { A: b } } ] }",
            "has the action `set_response_header`",
            actions,
        ),
        ("{ then: [ { rewrite_path: / } ] }", "has the action `rewrite_path`", actions),
        ("{ then: [ { waf: off } ] }", "has the action `waf`", actions),
        ("{ then: [ { compression: off } ] }", "has the action `compression`", actions),
        (
            "{ when: 'tls.version == \"1.3\"', then: [ reset ] }",
            "reads results of the TLS handshake",
            handshake,
        ),
        (
            "{ when: 'tls.client_certificate.subject == \"\"', then: [ reset ] }",
            "reads results of the TLS handshake",
            handshake,
        ),
    ] {
        check(&file(RELAY, rule), &[&format!("{} -> {help}", of(what))]);
    }
    let named = "{ name: doors, then: [ { waf: off } ] }";
    let expected = of("has the action `waf`").replace("rule 1", "rule `doors`");
    check(&file(RELAY, named), &[&format!("{expected} -> {actions}")]);
    check(&file(SECURED, "{ when: 'tls.version == \"1.3\"', then: [ reset ] }"), &[]);
}

#[test]
fn clients_of_connections_are_kept_by_what_there_is() {
    let help = "use `type: source_address` or `destination_address`, or `hash` or `learned` of `client` or `tls`";
    check(
        &file(RELAY, "{ then: [ { persistence: cookies } ] }"),
        &[&format!(
            "6 a cookie cannot keep the connections of a virtual server of type tcp -> {help}"
        )],
    );
}

#[test]
fn rules_of_requests_limit_requests() {
    let server = "pool: p\npolicies: [ rules ]";
    let help = "limit `requests_per_second` or `requests`, or name it in `connection_policies`";
    for limit in ["connections: 1", "connections_per_second: 1"] {
        check(
            &file(server, &format!("{{ then: [ {{ rate_limit: {{ {limit} }} }} ] }}")),
            &[&format!(
                "5 the policy `rules` limits connections (rule 1 in line 13), and this is a virtual server of \
                 type http -> {help}"
            )],
        );
    }
    for (limit, expected) in [
        (
            "requests: 1, connections: 1",
            "13 `connections` cannot be used with a limit on requests: the two are checked at different times -> put it into a policy for connections, or into `limits.per_key` of the virtual server",
        ),
        (
            "connections: 1, exceed: delay",
            "13 `exceed` is about requests: a connection beyond a limit is closed -> remove it",
        ),
        (
            "connections: 1, burst: 2",
            "13 `burst` is about requests: a connection beyond a limit is closed -> remove it",
        ),
    ] {
        let rule = format!("{{ then: [ {{ rate_limit: {{ {limit} }} }} ] }}");
        check(&file(server, &rule), &[expected]);
    }
}

#[test]
fn the_name_is_awaited_where_rules_read_it() {
    for (server, rule, expected) in [
        (RELAY, "{ when: 'client.port == 1', then: [ reset ] }", false),
        (RELAY, "{ when: 'tls.sni == \"a\"', then: [ reset ] }", true),
        (RELAY, "{ then: [ { trace: \"${tls.sni}\" } ] }", true),
        (RELAY, "{ then: [ { rate_limit: { connections: 1, key: \"${tls.sni}\" } } ] }", true),
    ] {
        let found = snapshot(&file(server, rule));
        let relay = found.virtual_servers[0].service.relay().expect("a relay");
        assert_eq!(relay.reads_name, expected, "{rule}");
    }
}

#[test]
fn the_name_is_awaited_where_members_are_picked_by_it() {
    let plain = "virtual_servers:\n  a: { listen: 127.0.0.1:80, type: tcp, pool: p }\npools:\n  p: { members: [ 127.0.0.1:9001 ], fallback: q }\n  q: { members: [ 127.0.0.1:9002 ] }\n";
    let persistence = |settings: &str| {
        plain.replace("pool: p }", &format!("pool: p, persistence: {settings} }}"))
    };
    let behind = |of: &str| {
        persistence("a")
            + &format!(
                "persistence: {{ a: {{ type: source_address, fallback: b }}, b: {{ type: hash, of: \"{of}\" }} }}\n"
            )
    };
    for (text, expected) in [
        (plain.to_owned(), false),
        (plain.replace("fallback: q", "balance: { hash: tls.sni }"), true),
        (plain.replace("fallback: q", "balance: { hash: client.ip }"), false),
        (plain.replace("9002 ] }", "9002 ], balance: { hash: tls.sni } }"), true),
        (persistence("{ type: hash, of: \"${tls.sni}${client.ip}\" }"), true),
        (persistence("{ type: learned, of: \"${tls.sni}\" }"), true),
        (persistence("{ type: learned, of: \"${client.ip}\" }"), false),
        (persistence("{ type: destination_address }"), false),
        (behind("${tls.sni}"), true),
        (behind("${client.port}"), false),
    ] {
        let found = snapshot(&text);
        let relay = found.virtual_servers[0].service.relay().expect("a relay");
        assert_eq!(relay.reads_name, expected, "{text}");
    }
}

#[test]
fn members_are_not_picked_by_a_handshake_that_there_is_none_of() {
    let with = |kind: &str, of: &str| {
        format!(
            "virtual_servers:\n  a: {{ listen: 127.0.0.1:80, type: {kind}, pool: p }}\npools:\n  p:\n    balance: {{ hash: {of} }}\n    members: [ 127.0.0.1:9001 ]\n"
        )
    };
    let expected = |kind: &str, help: &str| {
        format!(
            "5 the pool `p` is balanced by a value of TLS, and the virtual server of type {kind} in line 2 has none -> {help}"
        )
    };
    let tcp = expected("tcp", "use `client.ip` or `tls.sni`, or another pool");
    let udp = expected("udp", "use `client.ip` or a value of the datagram, or another pool");
    for (kind, of, expected) in [
        ("tcp", "tls.version", Some(&tcp)),
        ("tcp", "tls.client_certificate.subject", Some(&tcp)),
        ("tcp", "tls.sni", None),
        ("udp", "tls.sni", Some(&udp)),
        ("udp", "tls.version", Some(&udp)),
        ("http", "tls.version", None),
    ] {
        let expected: Vec<&str> = expected.into_iter().map(String::as_str).collect();
        check(&with(kind, of), &expected);
    }
    let secured = "tls: { certificates: [ { cert: ../../examples/tls/shop-ec.crt, key: ../../examples/tls/shop-ec.key } ] }, pool";
    check(&with("tcp", "tls.version").replace("pool: p }", &format!("{secured}: p }}")), &[]);
}

#[test]
fn limits_of_rules_count_connections() {
    let rule = "{ then: [ { rate_limit: { connections: 7, connections_per_second: 3 } } ] }";
    let found = snapshot(&file(RELAY, rule));
    let [rate, at_a_time] = &*found.key_limits else { panic!("{:?}", found.key_limits) };
    assert!(
        matches!(rate.measure, KeyMeasure::Rate(_)) && rate.counted == CountedEvents::Connections
    );
    assert_eq!(
        (at_a_time.measure, at_a_time.counted),
        (KeyMeasure::AtATime(7), CountedEvents::Connections)
    );
    assert_eq!(&*rate.name, "policies.rules.1[0].connections_per_second");
}

const TLS: &str = "tls: { certificates: [ { cert: ../../examples/tls/shop-ec.crt, key: ../../examples/tls/shop-ec.key } ] }";

#[test]
fn who_may_connect_is_said_by_what_is_known_then() {
    let http = "pool: p\nconnection_policies: [ rules ]";
    let tcp = "type: tcp\npool: p\nconnection_policies: [ rules ]";
    let secured = format!("{http}\n{TLS}");
    let secured_tcp = format!("{tcp}\n{TLS}");
    let servers = [http, tcp, &*secured, &*secured_tcp];
    for rule in [
        "{ when: 'cidr(\"10.0.0.0/8\").containsIP(client.ip)', then: [ reset ] }",
        "{ when: 'server.port == 80', then: [ { log: \"${client.ip}\" }, close ] }",
        "{ then: [ { rate_limit: { connections: 1 } } ] }",
    ] {
        for server in servers {
            check(&file(server, rule), &[]);
        }
    }
    let named = "{ when: 'tls.sni == \"a\"', then: [ reset ] }";
    check(&file(&secured, named), &[]);
    check(&file(&secured_tcp, named), &[]);
    let nobody = "{ then: [ reset ] }";
    check(&file("connection_policies: [ rules ]", nobody), &[]);
    check(&file("type: tcp\nconnection_policies: [ rules ]", nobody), &[]);
    let of = |what: &str, (line, rule): (usize, usize), help: &str| {
        format!(
            "{line} the policy `rules` {what} (rule 1 in line {rule}), and `connection_policies` run when a \
             connection is accepted -> {help}"
        )
    };
    let routes = "use `rate_limit`, `log`, `close` or `reset`, or name it in `policies`";
    for (server, at, rule, what, help) in [
        (http, (5, 13), named, "reads `tls.sni`", "add `tls` to the virtual server"),
        (
            tcp,
            (6, 14),
            named,
            "reads `tls.sni`",
            "name it in `policies`, or add `tls` to the virtual server",
        ),
        (
            &*secured,
            (5, 14),
            "{ when: 'tls.version == \"1.3\"', then: [ reset ] }",
            "reads results of the TLS handshake",
            "of `tls` read only `tls.sni`, or name it in `policies`",
        ),
        (
            http,
            (5, 13),
            "{ when: 'request.path == \"/\"', then: [ reset ] }",
            "reads the request",
            "read only `client`, `server` or `tls.sni`, or name it in `policies`",
        ),
        (http, (5, 13), "{ then: [ { pool: q } ] }", "has the action `pool`", routes),
        (http, (5, 13), "{ then: [ { trace: a } ] }", "has the action `trace`", routes),
        (
            http,
            (5, 13),
            "{ then: [ { respond: { status: 403 } } ] }",
            "has the action `respond`",
            routes,
        ),
        (
            tcp,
            (6, 14),
            "{ then: [ { pool: q } ] }",
            "has the action `pool`",
            "name it in `policies`",
        ),
        (
            tcp,
            (6, 14),
            "{ then: [ { waf: off } ] }",
            "has the action `waf`",
            "use `rate_limit`, `log`, `close` or `reset`",
        ),
        (
            http,
            (5, 13),
            "{ then: [ { rate_limit: { requests: 1 } } ] }",
            "limits requests",
            "limit `connections_per_second` or `connections`",
        ),
    ] {
        check(&file(server, rule), &[&of(what, at, help)]);
    }
    check(
        &file("type: udp\npool: p\nconnection_policies: [ rules ]", nobody),
        &[
            "6 `connection_policies` does not apply to a virtual server of type udp -> remove it: datagrams are \
             relayed as they are",
        ],
    );
}

#[test]
fn those_that_read_the_name_wait_for_it() {
    let text = file(
        &format!("pool: p\nconnection_policies: [ rules, names ]\n{TLS}"),
        "{ then: [ reset ] }",
    ) + "  names:\n    rules: [ { then: [ { log: \"${tls.sni}\" } ] } ]\n";
    let found = snapshot(&text);
    let policies = &found.virtual_servers[0].connection_policies;
    let names = |policies: &[std::sync::Arc<weir_core::policy::Policy>]| {
        policies.iter().map(|policy| policy.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(
        (names(&policies.accepted), names(&policies.named)),
        (vec!["rules".into()], vec!["names".into()])
    );
}

#[test]
fn allowed_clients_are_a_policy_that_runs_first() {
    let of = |server: &str| {
        let text = file(server, "{ then: [ close ] }");
        let policies = &snapshot(&text).virtual_servers[0].connection_policies;
        let names = |of: &[std::sync::Arc<weir_core::policy::Policy>]| -> Vec<String> {
            of.iter().map(|policy| policy.name.to_string()).collect()
        };
        (names(&policies.accepted), names(&policies.named))
    };
    let listed =
        "pool: p\nconnection_policies: [ rules ]\nallowed_clients: [ 10.0.0.0/8, \"::1\" ]";
    for kind in ["http", "tcp"] {
        let (accepted, named) = of(&format!("type: {kind}\n{listed}"));
        assert_eq!(accepted, ["virtual_servers.a", "rules"], "{kind}");
        assert!(named.is_empty());
    }
    assert!(of("pool: p\npolicies: [ rules ]").0.is_empty());
    // As many networks as there may be, in their longest form.
    let network = |number: usize| format!("'2001:db8:1111:2222:3333:4444:5555:{number:x}'");
    let all = |count| (1..=count).map(network).collect::<Vec<_>>().join(", ");
    let many = |count| format!("pool: p\npolicies: [ rules ]\nallowed_clients: [ {} ]", all(count));
    assert_eq!(of(&many(1_024)).0, ["virtual_servers.a"]);
    let text = |server: &str| file(server, "{ then: [ close ] }");
    check(
        &text(&many(1_025)),
        &[
            "6 `allowed_clients` has more than 1024 networks -> put them into a data set, and reset others by a rule of `connection_policies`",
        ],
    );
}

#[test]
fn lists_of_clients_that_cannot_be() {
    let text =
        |server: &str| file(&format!("policies: [ rules ]\n{server}"), "{ then: [ close ] }");
    check(
        &text("pool: p\nallowed_clients: []"),
        &["6 `virtual_servers.a.allowed_clients` is empty; it needs at least one item -> -"],
    );
    check(
        &text("pool: p\nallowed_clients: [ 10.0.0.1/8 ]"),
        &[
            "6 `virtual_servers.a.allowed_clients[0]`: the address has bits set after the prefix -> write 10.0.0.0/8",
        ],
    );
    let unix = text("pool: p\nallowed_clients: [ 10.0.0.0/8 ]")
        .replace("listen: 127.0.0.1:80", "listen: unix:/run/weir.sock");
    check(
        &unix,
        &[
            "3 clients of `unix:/run/weir.sock` have no address: `allowed_clients` would refuse all -> listen on an IP address, \
           or use the permissions of the socket instead of `allowed_clients`",
        ],
    );
    let of_bigip = text("pool: p\nsource: 10.0.0.0/8");
    check(
        &of_bigip,
        &[
            "6 unknown key `source` in `virtual_servers.a` -> the clients that may connect: `allowed_clients: [ NETWORK, … ]`; the address of \
           weir toward members is `pools.NAME.source`",
        ],
    );
}
