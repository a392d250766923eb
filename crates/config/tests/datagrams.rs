//! Values of datagrams are refused where there are no datagrams.

use weir_config::{Severity, parse};

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

/// A virtual server with these keys, its pool, and the rest of the file.
fn file(server: &str, pool: &str, rest: &str) -> String {
    format!(
        "virtual_servers:\n  a: {{ listen: 127.0.0.1:80, pool: p{server} }}\n\
         pools:\n  p: {{ members: [ 127.0.0.1:9001 ]{pool} }}\n{rest}"
    )
}

const HELP: &str = "values of datagrams are for virtual servers of `type: udp` only";

#[test]
fn pools_of_requests_and_connections() {
    let hash = ", balance: { hash: \"${sip.headers['Call-ID']}\" }";
    for (server, kind) in [("", "http"), (", type: tcp", "tcp")] {
        let expected = format!(
            "4 the pool `p` is balanced by a value of a datagram, and the virtual server of type {kind} in \
             line 2 has none -> {HELP}"
        );
        check(&file(server, hash, ""), &[&expected]);
    }
    let behind = "  q: { members: [ 127.0.0.1:9002 ], balance: { hash: quic.connection_id } }\n";
    let expected = format!(
        "5 the pool `q` is balanced by a value of a datagram, and the virtual server of type http in line 2 \
         has none -> {HELP}"
    );
    check(&file("", ", fallback: q", behind), &[&expected]);
    // A pool that no virtual server uses.
    check(&file("", "", behind), &[]);
    check(&file("", ", balance: { hash: client.ip }", ""), &[]);
}

#[test]
fn persistences_of_requests_and_connections() {
    let by_session = "persistence:\n  s: { type: hash, of: \"${radius.attributes[44]}\" }\n";
    let expected = |kind: &str| {
        format!(
            "2 the persistence `s` is by a value of a datagram, and the virtual server of type {kind} in \
             line 2 has none -> {HELP}"
        )
    };
    check(&file(", persistence: s", "", by_session), &[&expected("http")]);
    check(&file(", type: tcp, persistence: s", "", by_session), &[&expected("tcp")]);
    let fallback = format!("{by_session}  f: {{ type: cookie, fallback: s }}\n");
    check(&file(", persistence: f", "", &fallback), &[&expected("http")]);
    check(&file("", "", by_session), &[]);
    let policy = "policies:\n  x:\n    rules: [ { then: [ { persistence: s } ] } ]\n";
    check(
        &file(", policies: [ x ]", "", &format!("{by_session}{policy}")),
        &[&format!(
            "2 the policy `x` chooses the persistence `s`, which is by a value of a datagram, and the virtual \
             server of type http in line 2 has none -> {HELP}"
        )],
    );
}

#[test]
fn connection_ids_of_requests_and_connections() {
    let ids = "persistence:\n  q: { type: quic }\n";
    for (server, kind) in [("", "http"), (", type: tcp", "tcp")] {
        check(
            &file(&format!("{server}, persistence: q"), "", ids),
            &[&format!(
                "2 the persistence `q` is by a value of a datagram, and the virtual server of type {kind} in \
                 line 2 has none -> {HELP}"
            )],
        );
    }
    let policy = "policies:\n  x:\n    rules: [ { then: [ { persistence: q } ] } ]\n";
    check(
        &file(", policies: [ x ]", "", &format!("{ids}{policy}")),
        &[&format!(
            "2 the policy `x` chooses the persistence `q`, which is by a value of a datagram, and the virtual \
             server of type http in line 2 has none -> {HELP}"
        )],
    );
}

#[test]
fn virtual_servers_of_datagrams_have_them() {
    let rest = "persistence:\n  s: { type: hash, of: \"${sip.headers['Call-ID']}\", fallback: q }\n  q: { type: quic }\n";
    let by_session = ", balance: { hash: \"radius.attributes[44]\" }";
    check(&file(", type: udp, persistence: s", by_session, rest), &[]);
}

#[test]
fn rules_and_limits() {
    let only = "use it with virtual servers of `type: udp` only: in `balance: { hash: … }` of a pool, or in a \
                persistence of type hash or learned";
    let policy =
        "policies:\n  x:\n    rules: [ { when: \"'a' in sip.headers\", then: [ close ] } ]\n";
    check(
        &file(", policies: [ x ]", "", policy),
        &[&format!("7 `sip` is read from datagrams, and there is no datagram here -> {only}")],
    );
    let limit =
        ", limits: { per_key: [ { key: \"${datagram.bytes(0, 1)}\", requests_per_second: 1 } ] }";
    let text = file(limit, "", "");
    let loaded = parse("weir.yaml", &text);
    let message = "`datagram` is read from datagrams, and there is no datagram here";
    assert!(loaded.diagnostics.iter().any(|it| it.message == message), "{:?}", loaded.diagnostics);
}
