//! Findings about rules of policies.

use super::*;

/// A valid file with a rule of these actions in a policy; the rule is in line 11.
#[track_caller]
fn check_actions(actions: &str, expected: &[&str]) {
    let policy = format!("policies:\n  q:\n    rules:\n      - then: [ {actions} ]\n");
    let text = sound("    policies: [ q ]\n", "") + &policy;
    check(&text, expected);
}

#[test]
fn actions_that_cannot_be_meant() {
    check_actions("{ respond: { status: 204 } }", &[]);
    check_actions("{ pool: { p: 1 } }", &[]);
    for value in ["{}", "{ a: 1 }", "~", "true"] {
        check_actions(
            &format!("{{ close: {value} }}"),
            &[
                "error 12:19 `close` in `policies.q.rules[0].then[0]` takes no value -> write `close` without a map",
            ],
        );
    }
    check_actions(
        "close: {}",
        &[
            "error 12:17 `close` in `policies.q.rules[0].then[0]` takes no value -> write `close` without a map",
        ],
    );
    check_actions(
        "{ redirect: 'https://a/' }",
        &[
            "error 12:29 `policies.q.rules[0].then[0].redirect` must be a map with `to`, `status`, found the text \"https://a/\" -> \
             write `{ to: \"https://a/\" }`",
        ],
    );
    check_actions(
        "{ pool: { p: 0 } }",
        &[
            "error 12:25 `policies.q.rules[0].then[0].pool` gives every pool the weight 0 -> give at least one a higher weight",
        ],
    );
    check_actions(
        "{ pool: { p: 1, r: 2, s: 3 } }",
        &[
            "error 12:33 pool `r` is not defined -> defined: `p`",
            "error 12:39 pool `s` is not defined -> defined: `p`",
        ],
    );
    check_actions("{ mirror: { pool: p, share: 0.5% } }", &[]);
    check_actions(
        "{ mirror: { pool: r } }",
        &["error 12:35 pool `r` is not defined -> defined: `p`"],
    );
    check_actions(
        "{ mirror: { pool: p, share: 0% } }",
        &[
            "error 12:45 `policies.q.rules[0].then[0].mirror.share` must be a percentage from 0.001% to 100%, found the text \"0%\" -> -",
        ],
    );
    check_actions(
        "{ pool: { p: many } }",
        &[
            "error 12:30 `policies.q.rules[0].then[0].pool.p` must be a whole number from 0 to 100000, found the text \"many\" -> -",
        ],
    );
    check_actions(
        "{ pool: {} }",
        &[
            "error 12:25 `policies.q.rules[0].then[0].pool` is empty; it needs at least one pool -> -",
        ],
    );
    check_actions(
        "{ pool: [ p ] }",
        &[
            "error 12:25 `policies.q.rules[0].then[0].pool` must be a pool's name, or a map from pools to weights, `{ blue: 95, green: 5 }`, found a list -> -",
        ],
    );
    check_actions(
        "{ respond: { status: 204, body: x } }",
        &[
            "error 12:38 a response of status 204 has no body -> remove `body`, or choose another status",
        ],
    );
    check_actions(
        "{ replace_header: { X-A: { regex: a, to: \"b\\nX: 1\" } } }",
        &[
            "error 12:58 a control character, which is not allowed in a path, query, host or header -> -",
        ],
    );
    check_actions(
        "{ set_cookie: { name: a, value: b, domain: \"x; Secure\" } }",
        &["error 12:39 a cookie's domain is a host name -> -"],
    );
    check_actions(
        "{ set_cookie: { name: a, value: b, same_site: none, secure: false } }",
        &["error 12:39 user agents refuse SameSite=None without Secure -> -"],
    );
}

/// A valid file with a rule of this condition; the condition is in line 12, or 13 after a line for
/// `http`, from column 15 on.
fn with_condition(condition: &str, http: &str) -> String {
    let policy = format!(
        "policies:\n  q:\n    rules:\n      - when: {condition}\n        then: [ close ]\n"
    );
    sound(&format!("    policies: [ q ]\n{http}"), "") + &policy
}

#[track_caller]
fn check_condition(condition: &str, http: &str, expected: &[&str]) {
    check(&with_condition(condition, http), expected);
}

/// A path, its error, and the help.
#[track_caller]
fn check_never(condition: &str, http: &str, column: usize, message: &str, help: &str) {
    let line = 12 + http.lines().count();
    let warning = format!("warning {line}:{column} `request.path` never {message} -> {help}");
    check_condition(condition, http, &[&warning]);
}

#[test]
fn texts_that_no_path_has() {
    for (path, seen) in [
        ("/a//b", "/a/b"),
        ("//", "/"),
        ("/%40a", "/@a"),
        ("/%61/%7e", "/a/~"),
        ("/caf%c3%a9", "/caf%C3%A9"),
        ("/a;v=1/b", "/a/b"),
        ("/a/../b", "/b"),
        ("/a/%2E%2e/b", "/b"),
        ("/a|b", "/a%7Cb"),
        ("/a b", "/a%20b"),
        ("/é", "/%C3%A9"),
    ] {
        let condition = format!("request.path == '{path}'");
        let help = format!("rules see `{seen}`: write that");
        check_never(&condition, "", 31, &format!("equals `{path}`"), &help);
    }
    for (path, help) in [
        (
            "/a%2Fb",
            "requests with an encoded slash in the path are refused (`http.path.encoded_slashes`); \
             where they are not, rules see `/`",
        ),
        ("/a%5cb", "requests with a backslash in the path are refused (`http.path.backslashes`)"),
        ("/a%00", "requests with `%00` in the path are refused (`http.path.nul`)"),
        (
            "/..;/a",
            "requests with such parameters in the path are refused (`http.path.parameters`); where \
             they are not, rules do not see parameters",
        ),
        ("a/b", "a path begins with `/`"),
        ("/a%", "a percent sign in a path is `%25`"),
        ("/a?b=1", "the query is not part of the path: use `request.query['NAME']`"),
    ] {
        let condition = format!("request.path == '{path}'");
        check_never(&condition, "", 31, &format!("equals `{path}`"), help);
    }
}

#[test]
fn parts_of_texts_that_no_path_has() {
    let see = |seen: &str| format!("rules see `{seen}`: write that");
    check_never("request.path.startsWith('//a')", "", 39, "starts with `//a`", &see("/a"));
    check_never("request.path.startsWith('/a//')", "", 39, "starts with `/a//`", &see("/a/"));
    check_never(
        "request.path.startsWith('a/')",
        "",
        39,
        "starts with `a/`",
        "a path begins with `/`",
    );
    check_never("request.path.endsWith('//b')", "", 37, "ends with `//b`", &see("/b"));
    check_never("request.path.endsWith('/%3b')", "", 37, "ends with `/%3b`", &see("/%3B"));
    check_never("request.path.contains('/../')", "", 37, "contains `/../`", &see("/"));
    check_never(
        "request.path.contains(';')",
        "",
        37,
        "contains `;`",
        "rules do not see parameters: they are in `request.raw_path`",
    );
    check_never("request.path in ['/a', '//b']", "", 38, "equals `//b`", &see("/b"));
    check_never(
        "request.path.lowerAscii().startsWith('/%2D')",
        "",
        52,
        "starts with `/%2D`",
        &see("/-"),
    );
    check_never(
        "request.path.lowerAscii().startsWith('/Admin')",
        "",
        52,
        "starts with `/Admin`",
        &see("/admin"),
    );
    let text = with_condition("request.path in data['d']", "")
        + "data_sets: { d: { type: strings, items: [ /b//, /c//, /d//, /e//, /f ] } }\n";
    let warning = |path: &str, more: &str| {
        format!(
            "warning 12:15 `request.path` never equals `/{path}//`{more} -> rules see `/{path}/`: write that"
        )
    };
    let expected = [warning("b", ""), warning("c", ""), warning("d", ", nor 1 more of its texts")];
    check(&text, &expected.each_ref().map(String::as_str));
}

#[test]
fn texts_that_paths_have() {
    for condition in [
        "request.path == '/a/b.c/%C3%A9/@x:y'",
        "request.path == '*' || request.path == ''",
        "request.path.startsWith('/a/..')",
        "request.path.startsWith('/.')",
        "request.path.startsWith('/a%')",
        "request.path.startsWith('/a%C')",
        "request.path.startsWith('')",
        "request.path.endsWith('..')",
        "request.path.endsWith('/')",
        "request.path.endsWith('F.png')",
        "request.path.contains('./')",
        "request.path.contains('/')",
        "request.path.contains('%')",
        "request.path.contains('x%2')",
        "request.path.lowerAscii() == '/caf%c3%a9'",
        "request.path.matches('//|;|%2F')",
        "request.raw_path.contains(';') || request.target == '/a//b'",
    ] {
        check_condition(condition, "", &[]);
    }
}

#[test]
fn texts_that_the_virtual_servers_of_a_policy_let_in() {
    let backslash = "request.path == '/a%5Cb'";
    check_condition(backslash, "    http: { path: { backslashes: keep } }\n", &[]);
    check_condition("request.path == '/a%00'", "    http: { path: { nul: keep } }\n", &[]);
    check_never(
        "request.path == '/a%2Fb'",
        "    http: { path: { encoded_slashes: keep } }\n",
        31,
        "equals `/a%2Fb`",
        "rules see `/a/b`: write that",
    );
    check_never(
        "request.path == '/a//b'",
        "    http: { path: { repeated_slashes: keep } }\n",
        31,
        "equals `/a//b`",
        "rules see `/a/b`: write that",
    );
    check_never(
        "request.path == '/a//b'",
        "    http: { path: keep }\n",
        31,
        "equals `/a//b`",
        "rules see `/a/b`: write that",
    );
    let other = "  b:\n    listen: 127.0.0.1:81\n    pool: p\n    policies: [ q ]\n    \
                 http: { path: { backslashes: keep } }\n";
    check_condition(backslash, other, &[]);
}

/// Rules of a policy, from line 13 on, one per line.
#[track_caller]
fn check_rules(strategy: &str, rules: &[&str], expected: &[&str]) {
    let rules: String = rules.iter().map(|rule| format!("      - {rule}\n")).collect();
    let policies = format!("policies:\n  q:\n    strategy: {strategy}\n    rules:\n{rules}");
    check(&(sound("    policies: [ q ]\n", "") + &policies), expected);
}

#[test]
fn actions_that_come_too_late() {
    let help = "do it in a rule that reads the request only";
    for (rule, column, what) in [
        ("{ when: response.status == 500, then: [ { pool: p } ] }", 49, "this rule"),
        ("{ then: [ { rewrite_path: '/${response.status}' } ] }", 19, "this"),
    ] {
        let error = format!(
            "error 13:{column} {what} reads the response: by then the request has been sent -> {help}"
        );
        check_rules("all_match", &[rule], &[&error]);
    }
    // An answer replaces the response, and ends no request.
    let replaced = "{ then: [ { respond: { body: '${response.status}' } } ] }";
    check_rules("all_match", &[replaced, "{ then: [ { pool: p } ] }"], &[]);
    let redirected = "{ when: response.status == 500, then: [ { redirect: { to: /sorry } } ] }";
    check_rules("first_match", &[redirected, "{ then: [ { pool: p } ] }"], &[]);
    let error = "error 13:79 nothing comes after an answer, `virtual_server`, `close` or `reset` -> move it before";
    let after = redirected.replace(" ] }", ", { trace: a } ] }");
    check_rules("all_match", &[&after], &[error]);
}

#[test]
fn rules_behind_one_that_always_holds() {
    let page = "{ then: [ { respond: { status: 200 } } ] }";
    let close = "{ name: end, then: [ close ] }";
    let field = "{ then: [ { set_response_header: { A: b } } ] }";
    let pool = "{ when: 'request.host == \"a\"', then: [ { pool: p } ] }";
    let any = "{ when: 'true', then: [ { pool: p } ] }";
    let late = "{ when: response.status == 500, then: [ { set_response_header: { A: b } } ] }";
    let ended = "warning 14:9 rule 2 is never followed: rule 1 in line 13 always holds and ends the \
                 request -> move it before rule 1, or give that one a `when`";
    let first = "warning 14:9 rule 2 is never followed: rule 1 in line 13 always holds and with \
                 `first_match` no rule comes after it -> move it before rule 1, or set `strategy: all_match`";
    check_rules("first_match", &[page, pool], &[ended]);
    check_rules("first_match", &[page, field], &[ended]);
    check_rules("first_match", &[field, pool], &[first]);
    check_rules("first_match", &[any, pool], &[first]);
    check_rules("all_match", &[page, pool], &[ended]);
    check_rules(
        "all_match",
        &[close, pool],
        &[
            "warning 14:9 rule 2 is never followed: rule `end` in line 13 always holds and ends the \
           request -> move it before rule `end`, or give that one a `when`",
        ],
    );
    check_rules("first_match", &[pool, page], &[]);
    // Response edits apply to every response, also to that of a rule.
    check_rules("all_match", &[page, field], &[]);
    check_rules("all_match", &[field, any, pool], &[]);
    check_rules("first_match", &[page, late], &[]);
    // Malformed requests meet only rules without `when`.
    check_rules("first_match", &[any, field], &[]);
}

#[test]
fn rules_that_never_hold() {
    let never = "warning 13:9 rule 1 is never followed: its `when` is false for every request -> \
                 mend its `when`, or remove it";
    for (condition, is_never) in [
        ("false", true),
        ("request.host == 'a' && request.host == 'b'", true),
        ("request.path == '/a' && request.path.startsWith('/b')", true),
        ("request.method == 'GET' && request.method == 'PUT'", true),
        ("request.host == 'a' || request.host == 'b'", false),
        ("request.path.startsWith('/a') && request.path.startsWith('/a/b')", false),
    ] {
        let rule = format!("{{ when: \"{condition}\", then: [ close ] }}");
        let expected: &[&str] = if is_never { &[never] } else { &[] };
        check_rules("first_match", &[&rule], expected);
        check_rules("all_match", &[&rule], expected);
    }
}

/// Pairs of conditions, and whether the second implies the first.
#[test]
fn rules_behind_one_that_takes_all_of_theirs() {
    let by = |reason: &str| {
        format!(
            "warning 14:9 rule 2 is never followed: rule 1 in line 13 holds whenever it would, and \
             {reason} -> move it before rule 1, or remove it"
        )
    };
    let first_match = by("with `first_match` no rule comes after it");
    let path = |path: &str| format!("request.path.startsWith('{path}')");
    for (first, second, is_taken) in [
        ("client.ip == '::1'".to_owned(), "client.ip == '::1'".to_owned(), true),
        ("response.status == 500".into(), "response.status == 500".into(), true),
        ("time.weekday == 7".into(), "time.weekday == 7".into(), true),
        ("random(2) == 0".into(), "random(2) == 0".into(), false),
        (path("/a"), format!("{} && random(2) == 0", path("/a/b")), true),
        (path("/a"), path("/a/b"), true),
        (path("/a"), "request.path == '/a'".into(), true),
        (path("/a"), format!("request.host == 'a' && {} && client.ip == '::1'", path("/ab")), true),
        (path("/a"), format!("{} || request.path == '/a/c'", path("/a/b")), true),
        ("request.host in ['a', 'b']".into(), "request.host == 'b'".into(), true),
        ("request.host == 'a'".into(), format!("request.host == 'a' && {}", path("/a")), true),
        (path("/a/b"), path("/a"), false),
        (path("/a"), format!("{} || request.path == '/b'", path("/a/b")), false),
        ("request.host == 'a'".into(), path("/a"), false),
        ("request.host == 'a'".into(), "request.host in ['a', 'b']".into(), false),
        (format!("{} && client.ip == '::1'", path("/a")), path("/a/b"), false),
        (path("/a"), "response.status == 500".into(), false),
        (path("/a"), format!("{} && response.status == 500", path("/a/b")), false),
    ] {
        let rule = |when: &str| {
            format!("{{ when: \"{when}\", then: [ {{ set_response_header: {{ A: b }} }} ] }}")
        };
        let expected: &[&str] = if is_taken { &[&first_match] } else { &[] };
        check_rules("first_match", &[&rule(&first), &rule(&second)], expected);
        check_rules("all_match", &[&rule(&first), &rule(&second)], &[]);
    }
    let close = "{ when: request.host == 'a', then: [ close ] }";
    let pool = "{ when: request.host == 'a', then: [ { pool: p } ] }";
    check_rules("all_match", &[close, pool], &[&by("ends the request")]);
    check_rules("all_match", &[pool, close], &[]);
}

#[test]
fn policies_behind_one_that_always_ends() {
    let policies = |q: &str, r: &str| {
        format!("policies:\n  q: {{ rules: [ {q} ] }}\n  r: {{ rules: [ {r} ] }}\n")
    };
    let server = "    policies: [ q, r ]\n";
    let behind = |first: &str, place: &str, name: &str| {
        format!(
            "warning {place} the policy `{name}` is never followed here: `{first}` before it ends \
             every request -> move it before, or remove it"
        )
    };
    let (close, pool) = ("{ then: [ close ] }", "{ then: [ { pool: p } ] }");
    let some = "{ when: request.host == 'a', then: [ { pool: p } ] }";
    let field = "{ then: [ { set_response_header: { A: b } } ] }";
    let late = "{ when: response.status == 500, then: [ { set_response_header: { A: b } } ] }";
    let rest = format!("{some}, {close}");
    for (first, second, is_behind) in [
        (close, pool, true),
        (close, some, true),
        (pool, close, false),
        // Requests matched by the first rule continue.
        (rest.as_str(), pool, false),
        // Response edits apply to that of any rule.
        (close, field, false),
        (close, late, false),
    ] {
        let expected = behind("q", "5:20", "r");
        let expected: &[&str] = if is_behind { &[&expected] } else { &[] };
        check(&(sound(server, "") + &policies(first, second)), expected);
    }
    let redirect = format!("{server}    https_redirect: true\n");
    check(
        &(sound(&redirect, "") + &policies(some, field)),
        &[&behind("https_redirect", "5:17", "q")],
    );
}

#[test]
fn text_in_bodies_that_cannot_be_replaced() {
    let action = |keys: &str| format!("{{ replace_response_body: {{ {keys} }} }}");
    for keys in [
        "strings: { a: b, 1: \"\" }",
        "regex: a+, to: \"\"",
        "regex: \"(a)\", to: \"$1\\n\", types: [ \"text/*\", +json ], match_size_max: 64KiB, size_max: 1B",
    ] {
        check_actions(&action(keys), &[]);
    }
    let here = "`policies.q.rules[0].then[0].replace_response_body";
    for (keys, expected) in [
        (
            "types: [ text/html ]",
            "error 12:42 the text to replace is missing -> add `strings`, or `regex` and `to`".to_owned(),
        ),
        ("strings: { a: b }, to: c", "error 12:42 `strings` cannot be used with `regex` or `to` -> use an action for each".into()),
        ("regex: a", "error 12:51 `regex` without `to` -> add `to: \"\"` to remove matches".into()),
        ("strings: {}", format!("error 12:53 {here}.strings` is empty; it needs at least one text -> -")),
        ("strings: { \"\": b }", "error 12:55 the empty text cannot be replaced -> -".into()),
        (
            "strings: [ a ]",
            format!("error 12:53 {here}.strings` must be a map from texts to texts, found a list -> write {{ \"old text\": \"new text\" }}"),
        ),
        (
            "strings: { a: b }, match_size_max: 1B",
            "error 12:79 `match_size_max` has no effect without `regex` -> remove it".into(),
        ),
        (
            "regex: a*, to: b",
            "error 12:51 the regular expression matches the empty text -> write `+` in place of `*`, or name the required text".into(),
        ),
        (
            "regex: ^a, to: b",
            "error 12:51 the regular expression has `^`, `$` or `\\b`, which a stream cannot tell -> \
             name the text around what you mean: `>price<` in place of `\\bprice\\b`".into(),
        ),
        (
            "regex: a, to: $1",
            "error 12:58 the regular expression has no group `1` -> -".into(),
        ),
        ("regex: (, to: b", "error 12:51 not a regular expression: unclosed group -> -".into()),
        (
            "strings: { a: b }, types: []",
            format!("error 12:70 {here}.types` is empty; it needs at least one item -> -"),
        ),
        (
            "strings: { a: b }, types: [ html ]",
            "error 12:72 `html` is not a media type -> write it like text/html, text/* or +json".into(),
        ),
    ] {
        check_actions(&action(keys), &[&expected]);
    }
}

#[test]
fn attributes_of_cookies_and_beginnings_of_names() {
    check_actions(
        "{ set_cookie_attributes: { names: a, same_site: none, secure: true } }, { remove_header: \"X-*\" }, { remove_response_header: [ a, \"X-B-*\" ] }",
        &[],
    );
    for (action, expected) in [
        (
            "{ set_cookie_attributes: { names: [ a ] } }",
            "error 12:42 no attribute is set -> add `secure: true`, `http_only: true` or `same_site`",
        ),
        (
            "{ set_cookie_attributes: { same_site: none } }",
            "error 12:55 browsers drop cookies with `SameSite=None` that are not `Secure` -> set `secure: true` too",
        ),
        (
            "{ set_cookie_attributes: { names: \"a b\", secure: true } }",
            "error 12:51 `a b` is not a valid cookie name -> write a name, its beginning with a star behind it (`cart_*`), or `*` for all",
        ),
        (
            "{ remove_header: \"Con*\" }",
            "error 12:34 a policy cannot change the header `Con*` -> weir's own headers have this prefix: write a longer prefix",
        ),
        (
            "{ remove_response_header: \"*\" }",
            "error 12:43 a policy cannot change the header `*` -> weir's own headers have this prefix: write a longer prefix",
        ),
    ] {
        check_actions(action, &[expected]);
    }
}

#[test]
fn cookies_for_tls_alone_are_told_where_clients_come_without() {
    let persistence = "persistence: { type: cookie, name: S, secure: true }";
    let told = |place: &str| {
        format!(
            "warning {place} the cookie `S` is `secure`, and clients come without TLS here: browsers drop it, and nobody \
             is kept at a member -> add `tls`, or say which proxies end TLS in front of weir: `client_address.trust`"
        )
    };
    check_server(persistence, &[&told("5:18")]);
    check_server("persistence: { type: cookie, name: S }", &[]);
    check_server("persistence: { type: cookie, name: S, secure: false }", &[]);
    let behind = "client_address: { trust: [ 10.0.0.0/8 ], header: X-Forwarded-For }";
    check(&sound(&format!("    {persistence}\n    {behind}\n"), ""), &[]);
    let named = sound("    persistence: other\n", "")
        + "persistence:\n  other: { type: source_address, fallback: own }\n  own: { type: cookie, name: S, secure: true }\n";
    check(&named, &[&told("5:18")]);
}

#[test]
fn items_with_characters_that_nobody_sees() {
    let sets = "data_sets:\n  d: { type: strings, items: [ \"a\\u00a0b\", \"a b\", größe ] }\n  \
                e: { type: map, items: { \"c\\u2028d\": x } }\n";
    let found = crate::findings(&(sound("", "") + sets));
    let told: Vec<&String> = found.iter().filter(|it| it.contains("unseen")).collect();
    assert_eq!(told.len(), 2, "{found:?}");
    assert!(told[0].starts_with("warning 9:") && told[0].contains("U+00A0"), "{told:?}");
    assert!(told[1].starts_with("warning 10:") && told[1].contains("U+2028"), "{told:?}");
}

#[test]
fn every_wrong_item_of_a_set_of_addresses() {
    let sets = "data_sets: { d: { type: addresses, items: [ 10.0.0.1/8, ::1, example.org ] } }\n";
    check(
        &(sound("", "") + sets),
        &[
            "error 8:45 \"10.0.0.1/8\": the address has bits set after the prefix -> write 10.0.0.0/8",
            "error 8:62 \"example.org\": not an IP address or network -> \
             write it as 10.0.0.1, 10.0.0.0/8 or 2001:db8::/32",
        ],
    );
}
