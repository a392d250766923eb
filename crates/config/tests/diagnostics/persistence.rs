//! Findings about persistence.

use super::*;

/// A persistence inline: its findings in line 5.
#[track_caller]
fn check_persistence(settings: &str, expected: &[&str]) {
    check_server(&format!("persistence: {{ {settings} }}"), expected);
}

#[test]
fn learned_values() {
    const LEARN: &str = "learn: \"${response.cookies['S']}\"";
    const OF: &str = "of: \"${request.cookies['S']}\"";
    check_persistence(&format!("type: learned, {OF}"), &[]);
    check_persistence(
        &format!(
            "type: learned, {OF}, {LEARN}, timeout: 1h, entries_max: 9, across_virtual_servers: true"
        ),
        &[],
    );
    let no_response = "the response is not there yet where this is evaluated";
    for (settings, expected) in [
        (
            "type: learned".to_owned(),
            "error 5:26 a persistence of type learned lacks `of` -> add `of: \"${request.cookies['SESSION']}\"` or the like".to_owned(),
        ),
        (
            format!("type: learned, {LEARN}, of: session"),
            "error 5:74 `of` has no `${…}` in it: it is the same for every request -> an expression is written `${session}`".into(),
        ),
        (
            format!("type: learned, {OF}, learn: \"${{request.host}}\""),
            "error 5:73 `learn` reads nothing of the response -> write `${response.cookies['SESSION']}` or the like, or remove it: then the value of `of` is remembered".into(),
        ),
        (
            format!("type: learned, {OF}, prefix_v4: 8"),
            "error 5:77 `prefix_v4` does not apply to a persistence of type learned -> remove it, or use `type: source_address` or `destination_address`".into(),
        ),
        (
            format!("type: hash, {OF}, {LEARN}"),
            "error 5:70 `learn` does not apply to a persistence of type hash -> remove it, or use `type: learned`".into(),
        ),
    ] {
        check_persistence(&settings, &[&expected]);
    }
    for kind in ["learned", "hash"] {
        let found = findings(&sound(
            &format!("    persistence: {{ type: {kind}, of: \"${{response.headers['a']}}\" }}\n"),
            "",
        ));
        assert!(found.len() == 1 && found[0].contains(no_response), "{found:?}");
    }
    // Learned from responses, which these services do not have.
    let server = |kind: &str| {
        format!(
            "    type: {kind}\n    persistence: {{ type: learned, of: \"${{client.ip}}\", {LEARN} }}\n"
        )
    };
    for (kind, of, help) in [
        (
            "tcp",
            "connections",
            "use `type: source_address` or `destination_address`, or `hash` or `learned` of `client` or `tls`",
        ),
        (
            "udp",
            "sessions",
            "use `type: source_address`, `destination_address`, `quic`, or `hash` or `learned` of `client` or a value of the datagram",
        ),
    ] {
        let expected = format!(
            "error 6:18 a value of the response cannot keep the {of} of a virtual server of type {kind} -> {help}"
        );
        check(&sound(&server(kind), ""), &[&expected]);
    }
    let tcp = "    type: tcp\n    persistence: { type: learned, of: \"${client.ip}\" }\n";
    check(&sound(tcp, ""), &[]);
    let request = tcp.replace("client.ip", "request.host");
    check(
        &sound(&request, ""),
        &[
            "error 6:18 a value of the request cannot keep the connections of a virtual server of type tcp -> use `type: source_address` or `destination_address`, or `hash` or `learned` of `client` or `tls`",
        ],
    );
    let call = tcp.replace("client.ip", "sip.headers['Call-ID']");
    let found = findings(&sound(&call, ""));
    assert!(found[0].contains("is by a value of a datagram"), "{found:?}");
    check(&sound(&call.replace("type: tcp", "type: udp"), ""), &[]);
}

#[test]
fn addresses_that_were_asked() {
    check_persistence(
        "type: destination_address, prefix_v4: 24, prefix_v6: 64, timeout: 1m, entries_max: 9",
        &[],
    );
    check_persistence(
        "type: destination_address, of: \"${client.ip}\"",
        &[
            "error 5:51 `of` does not apply to a persistence of type destination_address -> remove it, or use `type: hash` or `learned`",
        ],
    );
    let packets = "    type: fast_l4\n    persistence: { type: destination_address }\n";
    let found = findings(&sound(packets, ""));
    let expected = "persistence of packets needs the source address -> use `type: source_address`";
    assert!(found.iter().any(|one| one.contains(expected)), "{found:?}");
}

#[test]
fn keys_of_inserted_cookies() {
    check_persistence("type: cookie, mode: passive, name: S", &[]);
    for key in ["path: /", "http_only: false", "key_file: /nowhere"] {
        let (name, _) = key.split_once(':').expect("a key");
        check_persistence(
            &format!("type: cookie, mode: passive, {key}"),
            &[&format!(
                "error 5:{} `{name}` does not apply to a cookie with `mode: passive` -> remove it, or use `mode: insert`",
                51 + name.len()
            )],
        );
        check_persistence(
            &format!("type: hash, of: \"${{client.ip}}\", {key}"),
            &[&format!(
                "error 5:{} `{name}` does not apply to a persistence of type hash -> remove it, or use `type: cookie`",
                54 + name.len()
            )],
        );
    }
}

#[test]
fn tls_sessions_are_refused_with_a_way_out() {
    for (word, meant) in [
        ("ssl", "source_address"),
        ("SSLSESSION", "source_address"),
        ("dest-addr", "destination_address"),
        ("universal", "learned"),
        ("RULE", "learned"),
    ] {
        let found = findings(&sound(&format!("    persistence: {{ type: {word} }}\n"), ""));
        assert!(found[0].ends_with(&format!("did you mean `{meant}`?")), "{found:?}");
    }
}
