//! `type: udp`: its result, and findings about keys that it would ignore.

use weir_config::snapshot::{Address, Sessions, Snapshot};
use weir_config::{Resolutions, Severity, parse};

/// A virtual server of type udp with these lines, which begin at line 6, and a pool with these.
fn file(server: &str, pool: &str) -> String {
    format!(
        "virtual_servers:\n  a:\n    listen: 127.0.0.1:53\n    type: udp\n    pool: p\n{server}\
         pools:\n  p:\n    members: [ 127.0.0.1:9001 ]\n{pool}"
    )
}

fn snapshot(text: &str) -> Snapshot {
    let loaded = parse("weir.yaml", text);
    let is_error = |severity| severity == Severity::Error;
    assert!(!loaded.diagnostics.iter().any(|it| is_error(it.severity)), "{:?}", loaded.diagnostics);
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

#[test]
fn defaults_and_profiles() {
    let sessions = |text: &str| -> Sessions {
        let snapshot = snapshot(text);
        let sessions = snapshot.virtual_servers[0].service.sessions().expect("sessions");
        (**sessions).clone()
    };
    let plain = Sessions {
        idle_timeout_ms: 30_000,
        datagrams_max: None,
        responses_max: None,
        per_socket_max: 1,
        amplification_max: None,
        clients: None,
    };
    assert_eq!(sessions(&file("", "")), plain);
    let allowed = sessions(&file("    allowed_clients: [ 10.0.0.0/8 ]\n", "")).clients;
    let allowed = allowed.expect("a list");
    for (client, is_allowed) in [("10.1.2.3", true), ("11.0.0.1", false), ("::1", false)] {
        assert_eq!(allowed.contains(client.parse().unwrap()), is_allowed, "{client}");
    }
    assert_eq!(
        sessions(&file("    udp: { datagrams: 2 }\n", "")),
        Sessions { datagrams_max: Some(2), responses_max: Some(2), ..plain.clone() }
    );
    let profile = "profiles: { udp: { lines: { datagrams: 1, responses: 0, sessions_per_socket_max: 9, amplification_max: 5 } } }\n";
    assert_eq!(
        sessions(&(file("    udp: lines\n", "") + profile)),
        Sessions {
            datagrams_max: Some(1),
            responses_max: Some(0),
            per_socket_max: 9,
            amplification_max: Some(5),
            ..plain
        }
    );
    check(
        &(file("    udp: line\n", "") + profile),
        &["6 udp profile `line` is not defined -> did you mean `lines`?"],
    );
}

#[test]
fn a_port_is_one_of_each_protocol() {
    let over_tcp = "  b: { listen: 127.0.0.1:53, type: tcp, pool: p }\n";
    let found = snapshot(&file(over_tcp, ""));
    let listen: Vec<&Address> =
        found.virtual_servers.iter().map(|it| &it.listen[0].address).collect();
    assert_ne!(listen[0], listen[1]);
    assert_eq!(listen[0].socket(), listen[1].socket());
    let twice = "  b: { listen: \"0.0.0.0:53\", type: udp, pool: p }\n";
    let loaded = parse("weir.yaml", &file(twice, ""));
    assert!(loaded.diagnostics[0].message.contains("overlap"), "{:?}", loaded.diagnostics);
}

#[test]
fn what_is_not_about_datagrams_is_refused() {
    for (line, key) in [
        ("http: { idle_timeout: 1s }", "http"),
        ("tcp: { idle_timeout: 1s }", "tcp"),
        ("by_server_name: [ { names: [ a ], pool: p } ]", "by_server_name"),
        ("tls: { certificates: [ { cert: a, key: b } ] }", "tls"),
        ("client_address: { trust: [ 10.0.0.0/8 ] }", "client_address"),
        ("client_address: { header: X-Client }", "client_address"),
        ("defer_accept: 1s", "defer_accept"),
        ("limits: { requests: 1 }", "requests"),
    ] {
        check(
            &file(&format!("    {line}\n"), ""),
            &[&format!(
                "6 `{key}` does not apply to a virtual server of type udp -> remove it: datagrams are relayed as they are"
            )],
        );
    }
    let of_tcp = file("", "").replace("type: udp", "udp: {}");
    let expected =
        "4 `udp` does not apply to a virtual server of type http -> remove it, or set `type: udp`";
    check(&of_tcp, &[expected]);
    check(
        &file("    udp: { sessions_per_socket_max: 2 }\n", ""),
        &[
            "6 `sessions_per_socket_max` belongs to `datagrams`, which is not given: without it no session is known to have all its answers -> add `datagrams`, or remove it",
        ],
    );
    check(
        &file("    udp: { responses: 1 }\n", ""),
        &[
            "6 `responses` belongs to `datagrams`, which is not given -> add `datagrams`, or remove it",
        ],
    );
}

#[test]
fn pools_that_take_no_datagrams() {
    let server = "the virtual server of type udp in line 4";
    check(
        &file("", "    tls: { verify: false }\n"),
        &[&format!(
            "9 `tls` of the pool `p`: {server} sends it datagrams as they are -> remove it, or use another pool"
        )],
    );
    check(
        &file("", "    proxy_protocol: v1\n"),
        &[&format!(
            "9 version 1 of the PROXY protocol cannot tell of datagrams, which {server} sends -> use `proxy_protocol: v2`"
        )],
    );
    for (line, key) in [
        ("queue: {}", "queue"),
        ("connect_timeout: 1s", "connect_timeout"),
        ("http2: true", "http2"),
        ("retry_on: [ 503 ]", "retry_on"),
    ] {
        let expected = format!(
            "9 `{key}` does not apply to the pool `p`: only virtual servers of type udp use it -> remove it"
        );
        check(&file("", &format!("    {line}\n")), &[&expected]);
    }
    // If it has connections as well, they are allowed.
    let over_tcp = "  b: { listen: 127.0.0.1:53, type: tcp, pool: p }\n";
    check(&file(over_tcp, "    queue: {}\n"), &[]);
    let by_path = file("", "").replace("[ 127.0.0.1:9001 ]", "[ \"unix:/run/dns\" ]");
    check(
        &by_path,
        &[&format!(
            "8 `unix:/run/dns` takes no datagrams, which {server} sends -> give members addresses with ports"
        )],
    );
    let by_request = "    balance: { hash: \"request.path\" }\n";
    let found = parse("weir.yaml", &file("", by_request));
    assert!(found.diagnostics[0].message.contains("type udp in line 4 has none"));
}
