//! Findings about keys and values that are wrong by themselves.

use super::*;

#[test]
fn unknown_keys() {
    check_server(
        "lisen: 1",
        &["error 5:5 unknown key `lisen` in `virtual_servers.a` -> did you mean `listen`?"],
    );
    check_server(
        "backend: 1",
        &["error 5:5 unknown key `backend` in `virtual_servers.a` -> did you mean `pool`?"],
    );
    check_pool(
        "responseTimeout: 1s",
        &[
            "error 8:5 unknown key `responseTimeout` in `pools.p` -> did you mean `response_timeout`?",
        ],
    );
    check_pool(
        "connect-timeout: 1s",
        &[
            "error 8:5 unknown key `connect-timeout` in `pools.p` -> did you mean `connect_timeout`?",
        ],
    );
    check_server(
        "persistance: x",
        &[
            "error 5:5 unknown key `persistance` in `virtual_servers.a` -> did you mean `persistence`?",
            "error 5:18 persistence `x` is not defined -> no persistence is defined at all",
        ],
    );
    check_server(
        "limits: { zzz: 1 }",
        &[
            "error 5:15 unknown key `zzz` in `virtual_servers.a.limits` -> known keys: `connections`, \
             `connections_per_second`, `requests`, `requests_per_second`, `burst`, `per_key`",
        ],
    );
    check(
        &format!("{}pool: {{}}\n", sound("", "")),
        &["error 8:1 unknown key `pool` in the configuration -> did you mean `pools`?"],
    );
}

/// The value is read as that of the intended key.
#[test]
fn what_stands_below_a_misspelt_key() {
    let key = |place: &str, key: &str, section: &str, meant: &str| {
        format!("error {place} unknown key `{key}` in {section} -> did you mean `{meant}`?")
    };
    let check = |text: &str, misspelt: String, below: &[&str]| {
        let below = below.iter().copied();
        let expected: Vec<&str> = [misspelt.as_str()].into_iter().chain(below).collect();
        check(text, &expected);
    };
    check(
        &sound("", "").replace("pool: p", "poool: r"),
        key("4:5", "poool", "`virtual_servers.a`", "pool"),
        &["error 4:12 pool `r` is not defined -> defined: `p`"],
    );
    // Names below it count as used.
    check(
        &sound("", "").replace("pool: p", "poool: p"),
        key("4:5", "poool", "`virtual_servers.a`", "pool"),
        &[],
    );
    check(
        &sound("", "").replace("pools:", "poools:").replace("9001", "99001"),
        key("5:1", "poools", "the configuration", "pools"),
        &[
            "error 7:16 `poools.p.members[0]`: \"99001\" is not a port: a number from 1 to 65535 -> -",
        ],
    );
    check(
        &sound("", "    passve: { failures: many, windw: 1 }\n"),
        key("8:5", "passve", "`pools.p`", "passive"),
        &[
            "error 8:25 `pools.p.passve.failures` must be a whole number from 1 to 10000, found the text \"many\" -> -",
            "error 8:31 unknown key `windw` in `pools.p.passve` -> did you mean `window`?",
            "error 8:38 `pools.p.passve.windw` must be a duration from 1ms to 24h (units: ms, s, m, h, d), found the number 1 -> add the unit: 1s",
        ],
    );
    check(
        &(sound("    policies: [ q ]\n", "")
            + "policies: { q: { rules: [ { then: [ { redirct: { to: /a, status: 200 } } ] } ] } }\n"),
        key("9:39", "redirct", "`policies.q.rules[0].then[0]`", "redirect"),
        &["error 9:66 200 does not redirect -> use 301, 302, 303, 307 or 308"],
    );
    // Where the right key is present as well, or two are possible, the value is ignored.
    check_server("lisen: 1", &[&key("5:5", "lisen", "`virtual_servers.a`", "listen")]);
    let two = [
        key("8:5", "retrys", "`pools.p`", "retries"),
        key("9:5", "retris", "`pools.p`", "retries"),
    ];
    super::check(
        &sound("", "    retrys: many\n    retris: many\n"),
        &two.each_ref().map(String::as_str),
    );
}

#[test]
fn wrong_types_and_ranges() {
    check_pool(
        "retries: many",
        &["error 8:14 `pools.p.retries` must be a whole number from 0 to 16, \
           found the text \"many\" -> -"],
    );
    check_pool(
        "retries: \"1\"",
        &["error 8:14 `pools.p.retries` must be a whole number from 0 to 16, \
           found the text \"1\" -> remove the quotes"],
    );
    check_pool(
        "response_timeout: 30",
        &["error 8:23 `pools.p.response_timeout` must be a duration from 1ms to 24h \
           (units: ms, s, m, h, d), found the number 30 -> add the unit: 30s"],
    );
    check_pool(
        "reuse: 5",
        &["error 8:12 `pools.p.reuse` must be a map with `idle_per_worker`, `idle_timeout`, \
           `requests_max`, found the number 5 -> -"],
    );
    check_pool(
        "reuse:",
        &["error 8:10 `pools.p.reuse` must be a map with `idle_per_worker`, `idle_timeout`, \
           `requests_max`, found nothing -> give it a value, or remove the key"],
    );
    check_pool(
        "passive:{ failures: 1 }",
        &["error 8:5 unknown key `passive:{ failures` in `pools.p` -> \
           put a space after the colon: `passive: …`"],
    );
    check_pool(
        "balance: leastconn",
        &["error 8:14 `pools.p.balance` must be `round_robin`, `least_connections`, \
           `least_response_time`, `random_two` or `source_address`, found the text \"leastconn\" -> did you mean `least_connections`?"],
    );
    check_pool(
        "balance: round-robin",
        &["error 8:14 `pools.p.balance` must be `round_robin`, `least_connections`, \
           `least_response_time`, `random_two` or `source_address`, found the text \"round-robin\" -> did you mean `round_robin`?"],
    );
    check_pool(
        "source: 127.0.0.1:0",
        &["error 8:13 `pools.p.source` must be an IP address without a port, \
           found the text \"127.0.0.1:0\" -> write \"127.0.0.1\""],
    );
    check_server(
        "http: { body_size_max: false }",
        &["error 5:28 `virtual_servers.a.http.body_size_max` must be `off` or a size from 0B to \
           1024GiB (units: B, KiB, MiB, GiB), found the boolean false -> write off"],
    );
    check_server(
        "http: { head_size_max: 32k }",
        &["error 5:28 `virtual_servers.a.http.head_size_max` must be a size from 1KiB to 1MiB \
           (units: B, KiB, MiB, GiB), found the text \"32k\" -> write 32KiB"],
    );
    check_server(
        "limits: { connections: 0 }",
        &["error 5:28 `virtual_servers.a.limits.connections` must be a whole number from 1 to \
           100000000, found the number 0 -> -"],
    );
}

#[test]
fn files_that_are_no_configuration() {
    let help = "it needs at least `virtual_servers` and `pools`: see examples/minimal.yaml";
    for text in ["", "\n\n", "# nothing\n", "\u{feff}"] {
        check(text, &[&format!("error 1:1 the configuration is empty -> {help}")]);
    }
    let known = "`admin`, `data_plane`, `first_probes`, `log`, …";
    for (text, found, suggestion) in [
        ("- a", "a list", "-"),
        ("virtual_servers", "the text \"virtual_servers\"", "-"),
        ("admin:127.0.0.1", "the text \"admin:127.0.0.1\"", "put a space after the colon of a key"),
    ] {
        check(
            text,
            &[&format!(
                "error 1:1 the configuration must be a map with {known}, found {found} -> {suggestion}"
            )],
        );
    }
    check(
        "a:\n\tb: 1",
        &["error 2:2 not valid YAML: tabs disallowed within this context (block indentation) -> \
           indent with spaces: YAML does not allow tabs"],
    );
}

/// The whole language: parts that this version does not support are refused at their place, and nothing else.
#[test]
fn the_whole_language() {
    let missing = [(36, "shop.crt"), (51, "shop.key")].map(|(column, file)| {
        format!(
            "error 17:{column} cannot open {file}: No such file or directory -> \
             a relative path starts at the configuration's directory"
        )
    });
    let rules = "error 20:34 cannot open /etc/weir/crs4: No such file or directory -> \
                 name files of rules, folders of CRS, or `builtin`; \
                 a relative path starts at the configuration's directory";
    let expected: Vec<String> = missing.into_iter().chain([rules.to_owned()]).collect();
    assert_eq!(findings(include_str!("../data/language.yaml")), expected);
}

/// Configurations written by users of other products.
#[test]
fn words_of_other_products() {
    // The value is another product's as well: there may be more findings.
    for (line, meant) in [
        ("proxy_pass: p", "pool"),
        ("default_backend: p", "pool"),
        ("irules: [ a ]", "policies"),
        ("ssl: {}", "tls"),
        ("gzip: {}", "compression"),
        ("redirect_https: true", "https_redirect"),
        ("limit_req: {}", "limits"),
        ("error_page: {}", "error_pages"),
        ("sticky: x", "persistence"),
    ] {
        let key = line.split(':').next().unwrap();
        let expected = format!(
            "error 5:5 unknown key `{key}` in `virtual_servers.a` -> did you mean `{meant}`?"
        );
        assert_eq!(findings(&sound(&format!("    {line}\n"), ""))[0], expected);
    }
    for (word, meant) in [
        ("leastconn", "least_connections"),
        ("least-connections-member", "least_connections"),
        ("LEASTRESPONSETIME", "least_response_time"),
        ("ip_hash", "source_address"),
        ("random", "random_two"),
    ] {
        let expected = format!(
            "error 8:14 `pools.p.balance` must be `round_robin`, `least_connections`, \
             `least_response_time`, `random_two` or `source_address`, found the text \"{word}\" -> \
             did you mean `{meant}`?"
        );
        check_pool(&format!("balance: {word}"), &[&expected]);
    }
}

#[test]
fn keys_in_a_wrong_place() {
    for (key, place) in
        [("tos", "`fast_l4`"), ("certificates", "`tls`"), ("members", "a pool: `pools.NAME`")]
    {
        let expected = format!(
            "error 5:5 unknown key `{key}` in `virtual_servers.a` -> it belongs to {place}"
        );
        check_server(&format!("{key}: 1"), &[&expected]);
    }
}
