//! Findings about unknown names and circles.

use super::*;

#[test]
fn names() {
    check(
        &sound("", "").replace("pool: p", "pool: q"),
        &["error 4:11 pool `q` is not defined -> defined: `p`"],
    );
    check(
        &sound("", "").replace("  p:", "  images:").replace("pool: p", "pool: image"),
        &["error 4:11 pool `image` is not defined -> did you mean `images`?"],
    );
    let rule = |member| {
        let policy =
            format!("policies: {{ q: {{ rules: [ {{ then: [ {{ member: {member} }} ] }} ] }} }}\n");
        sound("    policies: [ q ]\n", &policy)
    };
    check(&rule("127.0.0.1:9001"), &[]);
    check(
        &rule("127.0.0.1:9002"),
        &["error 9:47 member `127.0.0.1:9002` is not defined -> did you mean `127.0.0.1:9001`?"],
    );
    check(
        &rule("app.example:8081"),
        &[
            "error 9:47 `app.example:8081` is a name: it can stand for several members -> name an address, or a `pool` with that name",
        ],
    );
    check(&rule("127.0.0.9:81").replace("[ 127.0.0.1:9001 ]", "[ app.example:81 ]"), &[]);
    check(
        "virtual_servers: { a: { listen: 127.0.0.1:80, pool: p } }",
        &["error 1:53 pool `p` is not defined -> no pool is defined at all"],
    );
    check(
        &sound("    http: upload\n", "profiles: { http: { uploads: {} } }\n"),
        &["error 5:11 http profile `upload` is not defined -> did you mean `uploads`?"],
    );
    check(
        &sound("", "  spare:\n    members: [ 127.0.0.1:1 ]\nprofiles: { http: { x: {} } }\n"),
        &[
            "warning 8:3 the pool `spare` is never used -> use it in a virtual server, or remove it",
            "warning 10:21 the http profile `x` is never used -> \
             use it in a virtual server, or remove it",
        ],
    );
    check(
        &sound("", "").replace("  a:", "  a b:"),
        &["error 2:3 `virtual_servers`: \"a b\" is not a name: letters, digits and `.` `_` `-` \
           `/`, a letter or digit first -> -"],
    );
    check(
        "pools: {}",
        &["error 1:1 the configuration lacks `virtual_servers` -> \
           add `virtual_servers:` with a map from names to their settings"],
    );
    check(
        "virtual_servers: {}",
        &["error 1:18 `virtual_servers` is empty: weir would serve nothing -> \
           add a virtual server with `listen` and `pool`"],
    );
    check(
        "virtual_servers: { a: {} }",
        &[
            "error 1:20 `virtual_servers.a` lacks `listen` -> add `listen:` with an address to \
             listen on (`ip:port`, `ip:port-port`, `[v6]:port` or `unix:/path`), or a list of them; \
             or hand requests to it, by the action `virtual_server` of a rule",
            "error 1:23 `virtual_servers.a` lacks `pool` -> add `pool:` with a name",
        ],
    );
}

#[test]
fn circles() {
    let pools = "  q: { members: [ 127.0.0.1:9002 ], fallback: p }\n";
    check(
        &(sound("", "    fallback: q\n") + pools),
        &[
            "error 6:3 the pool `p` is its own fallback, directly or through others -> remove one of these `fallback`s or `spillover`s",
        ],
    );
    check(
        &(sound("", "    fallback: q\n")
            + &pools.replace("fallback: p", "spillover: { pool: p, connections: 9 }")),
        &[
            "error 6:3 the pool `p` is its own fallback, directly or through others -> remove one of these `fallback`s or `spillover`s",
        ],
    );
    let persistence = "persistence:\n  one: { type: source_address, fallback: one }\n";
    check(
        &(sound("    persistence: one\n", "") + persistence),
        &[
            "error 10:3 the persistence `one` is its own fallback, directly or through others -> remove one of these `fallback`s",
        ],
    );
    let own = "  q: { members: [ 127.0.0.1:80 ] }\n";
    check(
        &(sound("", "    fallback: q\n") + own),
        &[
            "error 3:13 virtual server `a` listens on `127.0.0.1:80`, which a member of its pool `q` has: requests would go round for ever -> change the listener's or the member's port",
        ],
    );
}

fn undefined(place: &str, kind: &str, name: &str) -> String {
    let known = if kind == "pool" { "defined: `p`" } else { "no persistence is defined at all" };
    format!("error {place} {kind} `{name}` is not defined -> {known}")
}

fn nothing(place: &str, name: &str) -> String {
    format!("error {place} nothing is called `{name}` -> -")
}

fn no_file(place: &str) -> String {
    let help = "a relative path starts at the configuration's directory";
    format!("error {place} cannot open /nowhere: No such file or directory -> {help}")
}

/// An error hides no other beside or after it.
#[test]
fn a_rule_tells_all_its_errors() {
    check_with_rule(
        "{ when: zzz || yyy, then: [ { pool: nowhere }, { persistence: r } ] }",
        &[
            &nothing("9:35", "zzz"),
            &nothing("9:42", "yyy"),
            &undefined("9:63", "pool", "nowhere"),
            &undefined("9:89", "persistence", "r"),
        ],
    );
    check_with_rule(
        "{ then: [ { respond: { status: 204, body: \"${zzz}\", headers: { A: \"${yyy}\" } } } ] }",
        &[
            "error 9:58 a response of status 204 has no body -> remove `body`, or choose another status",
            &nothing("9:72", "zzz"),
            &nothing("9:96", "yyy"),
        ],
    );
    check_with_rule(
        "{ then: [ { redirect: { to: \"/${zzz}\", status: 200 } } ] }",
        &[
            &nothing("9:59", "zzz"),
            "error 9:74 200 does not redirect -> use 301, 302, 303, 307 or 308",
        ],
    );
}

#[test]
fn pools_and_virtual_servers_tell_all_their_errors() {
    let check = |text: &str, expected: &[String]| {
        check(text, &expected.iter().map(String::as_str).collect::<Vec<_>>());
    };
    let nothing_limited = |place: &str| {
        let help =
            "add `requests_per_second`, `requests`, `connections_per_second` or `connections`";
        format!("error {place} this limits nothing -> {help}")
    };
    check(
        &sound("", "    fallback: q\n    maintenance: { file: /nowhere }\n    monitors_min: 2\n"),
        &[
            undefined("8:15", "pool", "q"),
            no_file("9:26"),
            "error 10:19 `monitors_min` is 2, and the pool has 0 -> lower it, or add monitors"
                .into(),
        ],
    );
    let server = "    type: tcp\n    http: {}\n    persistence: r\n    by_server_name: [ { names: [ a.example ], pool: q } ]\n";
    check(
        &sound(server, "").replace("pool: p", "pool: o"),
        &[
            undefined("4:11", "pool", "o"),
            "error 6:11 `http` does not apply to a virtual server of type tcp -> remove it: connections are relayed, requests are not seen".into(),
            undefined("7:18", "persistence", "r"),
            undefined("8:53", "pool", "q"),
        ],
    );
    let policy = |place: &str| {
        format!("error {place} policy `q` is not defined -> no policy is defined at all")
    };
    check(
        &sound("    hsts: {}\n    https_redirect: { status: 200 }\n    policies: [ q ]\n    persistence: { type: hash, fallback: r }\n", ""),
        &[
            "error 5:11 `hsts` without `tls`: browsers accept it only over TLS -> set it for the virtual server with `tls`".into(),
            "error 6:21 200 does not redirect -> use 301, 302, 303, 307 or 308".into(),
            policy("7:17"),
            "error 8:26 a persistence of type hash lacks `of` -> add `of: \"${request.headers['x-user']}\"` or the like".into(),
            undefined("8:42", "persistence", "r"),
        ],
    );
    check(
        &sound(
            "    limits: { per_key: [ {}, { key: \"${zzz}\", requests: 1 }, {} ] }\n    error_pages: { 404: { file: /nowhere }, 5xx: { file: /nowhere } }\n",
            "",
        ),
        &[
            nothing_limited("5:26"),
            nothing("5:40", "zzz"),
            nothing_limited("5:62"),
            no_file("6:33"),
            no_file("6:58"),
        ],
    );
}

/// A valid file except for a rule, which is in line 9 from column 35 on.
#[track_caller]
fn check_with_rule(rule: &str, expected: &[&str]) {
    let policy = format!("policies: {{ q: {{ rules: [ {rule} ] }} }}\n");
    check(&(sound("    policies: [ q ]\n", "") + &policy), expected);
}
