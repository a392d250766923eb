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
           `requests_max`, `connection_authentication`, found the number 5 -> -"],
    );
    check_pool(
        "reuse:",
        &["error 8:10 `pools.p.reuse` must be a map with `idle_per_worker`, `idle_timeout`, \
           `requests_max`, `connection_authentication`, found nothing -> give it a value, or remove the key"],
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

/// Keys of other products whose equivalent has another form or place here. Each equivalent is valid there.
#[test]
fn keys_with_an_equivalent_elsewhere() {
    let server = |line: &str| sound(&format!("    {line}\n"), "");
    let pool = |line: &str| sound("", &format!("    {line}\n"));
    let check = |text: &str, expected: &str| {
        let found = findings(text);
        let help = found[0].split_once(" -> ").expect("a suggestion").1;
        assert_eq!(help, expected, "{found:?}\n{text}");
    };
    for key in ["maxconn", "connection-limit", "maxClient"] {
        check(&server(&format!("{key}: 100")), "write `limits: { connections: … }`");
    }
    super::check(&server("limits: { connections: 100 }"), &[]);
    check(&server("limits: { maxconn: 100 }"), "did you mean `connections`?");
    check(
        &format!("maxconn: 100\n{}", sound("", "")),
        "each virtual server has its own limit: `limits: { connections: … }`",
    );
    check(
        &pool("maxconn: 100"),
        "each member has its own limit: `members: [ { address: …, connections_max: … } ]`",
    );
    let member = "members: [ { address: 127.0.0.1:9001, connections_max: 100 } ]";
    super::check(&sound("", "").replace("members: [ 127.0.0.1:9001 ]", member), &[]);

    check(
        &server("profiles: [ http, clientssl ]"),
        "each kind of profile has its own key, such as `http: NAME` or `tls: NAME`; \
         profiles are defined in the top-level `profiles`",
    );
    let profile = "profiles: { http: { strict: { headers_max: 50 } } }\n";
    super::check(&(server("http: strict") + profile), &[]);

    for key in ["server_name", "hosts"] {
        check(
            &server(&format!("{key}: shop.example")),
            "host names select pools in rules of `policies`: `when: 'request.host == \"shop.example\"'`; \
             with `type: tcp` use `by_server_name`",
        );
    }
    let by_policy = "rules belong to policies: `policies: { NAME: { rules: [ … ] } }` at the top level, and \
                     `policies: [ NAME ]` here";
    for line in ["rules: [ { if: x, deny: true } ]", "http-request: [ deny ]", "acl: x"] {
        // The value of another shape gets no further error.
        assert_eq!(findings(&server(line)).len(), 1);
        check(&server(line), by_policy);
    }
    for (key, help) in [
        ("frontend", "write `virtual_servers: { NAME: { listen: ADDRESS:PORT, pool: NAME } }`"),
        ("backend", "write `pools: { NAME: { members: [ ADDRESS:PORT ] } }`"),
    ] {
        check(&format!("{key}: {{ bind: 1 }}\n{}", sound("", "")), help);
    }
    let rules = "policies: { q: { rules: [ { when: 'request.host == \"shop.example\"', \
                 then: [ { pool: p } ] } ] } }\n";
    super::check(&(server("policies: [ q ]") + rules), &[]);
    let names = "type: tcp\n    by_server_name: [ { names: [ shop.example ], pool: p } ]";
    super::check(&server(names), &[]);

    for key in ["snat", "snatpool", "source-address-translation"] {
        check(
            &server(&format!("{key}: automap")),
            "the source address belongs to a pool: `pools.NAME.source`; \
             without it, the kernel selects the address",
        );
    }
    check(&pool("snatpool: 127.0.0.2"), "did you mean `source`?");
    super::check(&pool("source: 127.0.0.2"), &[]);

    check(&pool("persistence: x"), "it belongs to a virtual server: `virtual_servers.NAME`");
    for key in ["sticky", "cookie"] {
        check(
            &pool(&format!("{key}: x")),
            "persistence belongs to a virtual server: `virtual_servers.NAME.persistence`",
        );
    }
    super::check(&server("persistence: { type: cookie }"), &[]);
    check(
        &server("persistence: cookie-insert"),
        "define it in the top-level `persistence`: `cookie-insert: { type: cookie }`",
    );
    let defined = "persistence: { cookie-insert: { type: cookie } }\n";
    super::check(&(server("persistence: cookie-insert") + defined), &[]);
}

#[test]
fn types_of_other_products() {
    for (word, meant) in [("tcp-half-open", "tcp"), ("TCP-ECV", "tcp"), ("gateway-icmp", "icmp")] {
        let found = findings(&sound("", &format!("    monitors: [ {{ type: {word} }} ]\n")));
        assert!(found[0].ends_with(&format!("-> did you mean `{meant}`?")), "{found:?}");
        check(&sound("", &format!("    monitors: [ {{ type: {meant} }} ]\n")), &[]);
    }
    for (key, word, meant) in [
        ("type", "cookie_insert", "cookie"),
        ("type", "COOKIEINSERT", "cookie"),
        ("mode", "cookie_insert", "insert"),
        ("mode", "cookie-hash", "passive"),
    ] {
        let persistence = |word: &str| match key {
            "type" => format!("    persistence: {{ type: {word} }}\n"),
            _ => format!("    persistence: {{ type: cookie, name: sid, {key}: {word} }}\n"),
        };
        let found = findings(&sound(&persistence(word), ""));
        assert!(found[0].ends_with(&format!("-> did you mean `{meant}`?")), "{found:?}");
        check(&sound(&persistence(meant), ""), &[]);
    }
}
