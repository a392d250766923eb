//! `state: disabled` of virtual servers: they are checked like others, and nothing of them remains.

use weir_config::snapshot::{Address, DisabledServer, Snapshot};
use weir_config::{Resolutions, parse};

fn file(servers: &str) -> String {
    format!(
        "virtual_servers:\n{servers}pools: {{ p: {{ members: [ 127.0.0.1:9001 ] }}, q: {{ members: [ 127.0.0.1:9002 ] }} }}\n"
    )
}

fn diagnostics(text: &str) -> Vec<String> {
    let found = parse("weir.yaml", text).diagnostics;
    found
        .iter()
        .map(|it| {
            let line = it.position.map_or(0, |position| position.line);
            let help = it.suggestion.as_deref().unwrap_or("-");
            format!("{:?} {line} {} -> {help}", it.severity, it.message)
        })
        .collect()
}

fn snapshot(text: &str) -> Snapshot {
    let loaded = parse("weir.yaml", text);
    loaded.config.unwrap_or_else(|| panic!("{text}")).snapshot(&Resolutions::new())
}

#[test]
fn each_type_is_set_aside() {
    let text = file(
        "  a: { listen: 127.0.0.1:80, pool: p, state: enabled }\n  \
         b: { listen: [ 127.0.0.1:81, 127.0.0.1:90-92 ], pool: q, state: disabled, \
         limits: { per_key: [ { requests: 1 } ] }, persistence: { type: source_address } }\n  \
         c: { listen: 127.0.0.1:82, type: tcp, pool: q, state: disabled }\n  \
         d: { listen: 127.0.0.1:53, type: udp, pool: q, state: disabled }\n  \
         e: { listen: \"10.0.0.0/24:*\", type: fast_l4, pool: q, state: disabled }\n",
    );
    assert_eq!(diagnostics(&text), [""; 0], "a pool of a disabled one is used");
    let found = snapshot(&text);
    let names: Vec<&str> = found.virtual_servers.iter().map(|server| &*server.name).collect();
    assert_eq!(names, ["a"]);
    assert!(found.packets.is_none() && found.key_limits.is_empty() && found.persistence.is_empty());
    let disabled = |name: &str, kind, listen: &[&str], addresses: &[&str]| DisabledServer {
        name: name.into(),
        kind,
        listen: listen.iter().map(|it| (*it).to_owned()).collect(),
        addresses: addresses.iter().map(|it| address(it)).collect(),
    };
    assert_eq!(
        found.disabled,
        [
            disabled(
                "b",
                "http",
                &["127.0.0.1:81", "127.0.0.1:90-92"],
                &["127.0.0.1:81", "127.0.0.1:90", "127.0.0.1:91", "127.0.0.1:92"]
            ),
            disabled("c", "tcp", &["127.0.0.1:82"], &["127.0.0.1:82"]),
            disabled("d", "udp", &["udp:127.0.0.1:53"], &["udp:127.0.0.1:53"]),
            disabled("e", "fast_l4", &["10.0.0.0/24:*"], &[]),
        ]
    );
    let loaded = parse("weir.yaml", &text);
    let summary = loaded.config.expect("a configuration").summary();
    assert_eq!((summary.virtual_servers, summary.disabled), (1, 4));
}

fn address(text: &str) -> Address {
    match text.strip_prefix("udp:") {
        Some(at) => Address::Udp(at.parse().expect("an address")),
        None => Address::Socket(text.parse().expect("an address")),
    }
}

#[test]
fn it_is_checked_and_keeps_its_address() {
    for (servers, expected) in [
        (
            "  a: { listen: 127.0.0.1:80, pool: p }\n  b: { listen: 127.0.0.1:81, pool: r, state: disabled }\n",
            "Error 3 pool `r` is not defined -> defined: `p`, `q`",
        ),
        (
            "  a: { listen: 127.0.0.1:80, pool: p }\n  b: { listen: 127.0.0.1:80, pool: q, state: disabled }\n",
            "Error 3 `127.0.0.1:80` is used twice: in line 2 by virtual server `a` -> give each listener its own address or port",
        ),
        (
            "  a: { listen: 127.0.0.1:80, pool: p, state: off }\n",
            "Error 2 `virtual_servers.a.state`",
        ),
    ] {
        let found = diagnostics(&file(servers));
        assert!(found.iter().any(|it| it.starts_with(expected)), "{found:#?}");
    }
    let all = file(
        "  a: { listen: 127.0.0.1:80, pool: p, state: disabled }\n  b: { listen: 127.0.0.1:81, pool: q, state: disabled }\n",
    );
    assert_eq!(
        diagnostics(&all),
        [
            "Warning 2 every virtual server is disabled: nothing is served -> remove `state: disabled` from one"
        ]
    );
}
