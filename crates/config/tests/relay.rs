//! `type: tcp`: its result, and findings about keys that it would ignore.

use weir_config::snapshot::packet::Fallback;
use weir_config::snapshot::{Balance, ResetOn, Snapshot};
use weir_config::{Resolutions, Severity, parse};

/// A virtual server of type tcp with these lines, which begin at line 4, and pools `p` and `q`.
fn file(server: &str, pool: &str) -> String {
    let server: String = server.lines().map(|line| format!("    {line}\n")).collect();
    format!(
        "virtual_servers:\n  a:\n    listen: 127.0.0.1:80\n{server}\
         pools:\n  p:\n    members: [ 127.0.0.1:9001 ]\n{pool}  q:\n    members: [ 127.0.0.1:9002 ]\n"
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

#[track_caller]
fn check_server(line: &str, expected: &[&str]) {
    check(&file(&format!("type: tcp\npool: p\n{line}"), ""), expected);
}

#[test]
fn connections_are_reset_with_their_member_if_the_file_says_so() {
    let reset_on = |tcp: &str| {
        let snapshot = snapshot(&file(&format!("type: tcp\npool: p{tcp}"), ""));
        snapshot.virtual_servers[0].service.relay().expect("a relay").reset_on
    };
    assert_eq!(reset_on(""), ResetOn::Nothing);
    assert_eq!(reset_on("\ntcp: { reset_on_service_down: false }"), ResetOn::Nothing);
    assert_eq!(reset_on("\ntcp: { reset_on_service_down: true }"), ResetOn::OutOfService);
    // Sockets do what packets would: they reset flows of members that are down, and of no others.
    let fallen = |profile: &str| {
        let text = file(&format!("type: fast_l4\npool: p{profile}"), "");
        let packets = snapshot(&text.replace("127.0.0.1:80", "10.0.0.1:80")).packets.clone();
        match &packets.expect("packets").servers[0].fallback {
            Fallback::Proxy { server, .. } => server.service.relay().map(|relay| relay.reset_on),
            Fallback::None(_) => None,
        }
    };
    assert_eq!(fallen(""), Some(ResetOn::Down));
    let kept = "\nfast_l4: { reset_on_service_down: false }";
    assert_eq!(fallen(kept), Some(ResetOn::Nothing));
}

#[test]
fn defaults_and_profiles() {
    let relay =
        |text: &str| snapshot(text).virtual_servers[0].service.relay().cloned().expect("a relay");
    let found = relay(&file("type: tcp\npool: p", ""));
    assert_eq!((found.idle_timeout_ms, found.hello_timeout_ms), (300_000, 10_000));
    assert!(found.names.is_none());
    let found =
        relay(&file("type: tcp\npool: p\ntcp: { idle_timeout: 1s, hello_timeout: 2s }", ""));
    assert_eq!((found.idle_timeout_ms, found.hello_timeout_ms), (1_000, 2_000));
    let profiles = "profiles: { tcp: { long: { idle_timeout: 24h } } }\n";
    let found = relay(&(file("type: tcp\npool: p\ntcp: long", "") + profiles));
    assert_eq!(found.idle_timeout_ms, 86_400_000);
    check(
        &(file("type: tcp\npool: p\ntcp: lang", "") + profiles),
        &["6 tcp profile `lang` is not defined -> did you mean `long`?"],
    );
    assert!(snapshot(&file("pool: p", "")).virtual_servers[0].service.relay().is_none());
}

#[test]
fn names_lead_to_pools() {
    let routes = "by_server_name:\n  - { names: [ Shop.Example., \"*.shop.example\" ], pool: q }";
    let snapshot_of = |default: &str| snapshot(&file(&format!("type: tcp\n{default}{routes}"), ""));
    let open = snapshot_of("pool: p\n");
    let server = &open.virtual_servers[0];
    let names = server.service.relay().and_then(|relay| relay.names.as_ref()).expect("names");
    for (name, pool) in
        [("shop.example", 1), ("a.shop.example", 1), ("b.a.shop.example", 0), ("", 0)]
    {
        assert_eq!(names.pool(name, server.pool), Some(pool), "{name}");
    }
    assert_eq!(server.pools().collect::<Vec<_>>(), [0, 1, 1]);
    let strict = snapshot_of("");
    let server = &strict.virtual_servers[0];
    let names = server.service.relay().and_then(|relay| relay.names.as_ref()).expect("names");
    assert_eq!(server.pool, 1);
    for (name, pool) in [("shop.example", Some(1)), ("other.example", None), ("", None)] {
        assert_eq!(names.pool(name, server.pool), pool, "{name}");
    }
}

#[test]
fn names_that_cannot_be_meant() {
    let help = "give each name one pool";
    check(
        &file(
            "type: tcp\nby_server_name:\n  - { names: [ a.example ], pool: p }\n  \
             - { names: [ b.example, A.example ], pool: q }",
            "",
        ),
        &[&format!("7 `a.example` is listed twice: first in line 6 -> {help}")],
    );
    check(
        &file("type: tcp\nby_server_name: [ { names: [ \"a b\" ], pool: p } ]", ""),
        &[
            "5 `virtual_servers.a.by_server_name[0].names[0]`: `a b` is not a valid server name -> -",
        ],
    );
    check(
        &file("type: tcp\nby_server_name: [ { names: [ a ], pool: r } ]", ""),
        &["5 pool `r` is not defined -> defined: `p`, `q`"],
    );
    check(
        &file(
            "type: tcp\nby_server_name: [ { names: [ a ], pool: p } ]",
            "    tls: { verify: false }\n",
        ),
        &[
            "9 `tls` of the pool `p` would encrypt the TLS that `by_server_name` in line 5 passes through -> \
           remove it here, or add `tls` to the virtual server, which then decrypts",
        ],
    );
}

#[test]
fn a_pool_is_needed() {
    check(
        &file("type: tcp", ""),
        &["3 `virtual_servers.a` lacks `pool` -> add `pool:` with a name"],
    );
}

#[test]
fn what_is_about_requests_is_refused() {
    let help = "remove it: connections are relayed, requests are not seen";
    for (line, key) in [
        ("http: { idle_timeout: 1s }", "http"),
        ("hsts: {}", "hsts"),
        ("https_redirect: false", "https_redirect"),
        ("error_pages: { 5xx: { body: no } }", "error_pages"),
        ("server_timing: true", "server_timing"),
        ("client_address: { x_forwarded_for: append }", "x_forwarded_for"),
        ("client_address: { x_forwarded_proto: true }", "x_forwarded_proto"),
        ("client_address: { forwarded: append }", "forwarded"),
        ("client_address: { trust: [ 10.0.0.0/8 ], header: X-Client }", "header"),
        ("limits: { requests: 1 }", "requests"),
        ("limits: { requests_per_second: 1 }", "requests_per_second"),
        ("limits: { per_key: [ { requests: 1 } ] }", "requests"),
        ("limits: { per_key: [ { connections: 1, exceed: close } ] }", "exceed"),
        ("limits: { per_key: [ { connections: 1, delay_max: 1s } ] }", "delay_max"),
    ] {
        let expected =
            format!("6 `{key}` does not apply to a virtual server of type tcp -> {help}");
        check_server(line, &[&expected]);
    }
    check_server("client_address: { trust: [ 10.0.0.0/8 ], proxy_protocol: true }", &[]);
    check_server("limits: { connections: 1, connections_per_second: 1 }", &[]);
    check_server("limits: { per_key: [ { connections: 1, prefix_v4: 24, entries_max: 9 } ] }", &[]);
}

#[test]
fn what_is_about_connections_is_refused_for_requests() {
    for (line, key) in [
        ("tcp: {}", "tcp"),
        ("by_server_name: [ { names: [ a.example ], pool: p } ]", "by_server_name"),
    ] {
        let expected = format!(
            "5 `{key}` does not apply to a virtual server of type http -> remove it, or set `type: tcp`"
        );
        check(&file(&format!("pool: p\n{line}"), ""), &[&expected]);
    }
}

#[test]
fn clients_are_told_apart_by_their_connections() {
    let help = "use `type: source_address` or `destination_address`, or `hash` or `learned` of `client` or `tls`";
    for (persistence, kind) in [
        ("{ type: cookie }", "a cookie"),
        ("{ type: cookie, mode: passive, name: A }", "a cookie"),
        ("{ type: path_parameter }", "a parameter of the path"),
        ("{ type: hash, of: \"${request.host}\" }", "a value of the request"),
    ] {
        let expected = format!(
            "6 {kind} cannot keep the connections of a virtual server of type tcp -> {help}"
        );
        check_server(&format!("persistence: {persistence}"), &[&expected]);
    }
    check_server("persistence: { type: source_address }", &[]);
    check_server("persistence: { type: hash, of: \"${tls.sni}${client.ip}\" }", &[]);
    let fallback = "persistence: { type: source_address, fallback: c }";
    let persistence = "persistence: { c: { type: cookie } }\n";
    check(
        &(file(&format!("type: tcp\npool: p\n{fallback}"), "") + persistence),
        &[&format!(
            "6 a cookie cannot keep the connections of a virtual server of type tcp -> {help}"
        )],
    );
}

#[test]
fn pools_of_connections_have_no_keys_of_requests() {
    let server = "type: tcp\npool: p";
    for (line, key) in [
        ("reuse: { idle_per_worker: 1 }", "reuse"),
        ("response_timeout: 1s", "response_timeout"),
        ("maintenance: { body: later }", "maintenance"),
        ("lenient: [ unknown_status ]", "lenient"),
        ("retry_on: [ 503 ]", "retry_on"),
    ] {
        let expected = format!(
            "9 `{key}` does not apply to the pool `p`: only virtual servers of type tcp use it -> remove it"
        );
        check(&file(server, &format!("    {line}\n")), &[&expected]);
        // Another virtual server uses it.
        let both = file(server, &format!("    {line}\n"))
            .replace("pools:\n", "  b: { listen: 127.0.0.1:81, pool: p }\npools:\n");
        check(&both, &[]);
        // Also if something else is wrong with that one.
        let wrong = "  b: { listen: 127.0.0.1:81, pool: p, tcp: {} }\npools:\n";
        let both = file(server, &format!("    {line}\n")).replace("pools:\n", wrong);
        let of_server = "6 `tcp` does not apply to a virtual server of type http -> remove it, or set `type: tcp`";
        check(&both, &[of_server]);
        // As does one without requests.
        let datagrams = "  b: { listen: 127.0.0.1:81, type: udp, pool: p }\npools:\n";
        let both = file(server, &format!("    {line}\n")).replace("pools:\n", datagrams);
        let expected = expected.replace("9 ", "10 ").replace("tcp use", "tcp and udp use");
        check(&both, &[&expected]);
    }
    let hash = |of: &str| file(server, &format!("    balance: {{ hash: \"{of}\" }}\n"));
    check(
        &hash("request.path"),
        &[
            "9 the pool `p` is balanced by a value of the request, and the virtual server of type tcp in \
           line 4 has none -> use `client.ip` or `tls.sni`, or another pool",
        ],
    );
    check(&hash("client.ip"), &[]);
    let found = snapshot(&hash("tls.sni"));
    assert!(matches!(&found.pools[0].balance, Balance::Hash(of) if !of.reads_request()));
    // Also behind a fallback.
    let behind = file("type: tcp\npool: q", "    balance: { hash: request.path }\n")
        .replace("9002 ]\n", "9002 ]\n    fallback: p\n");
    check(
        &behind,
        &[
            "9 the pool `p` is balanced by a value of the request, and the virtual server of type tcp in \
           line 4 has none -> use `client.ip` or `tls.sni`, or another pool",
        ],
    );
}

#[test]
fn a_relay_to_itself_is_refused() {
    let text = file("type: tcp\nby_server_name: [ { names: [ a ], pool: q } ]", "")
        .replace("127.0.0.1:9002", "127.0.0.1:80");
    check(
        &text,
        &[
            "3 virtual server `a` listens on `127.0.0.1:80`, which a member of its pool `q` has: requests \
           would go round for ever -> change the listener's or the member's port",
        ],
    );
}
