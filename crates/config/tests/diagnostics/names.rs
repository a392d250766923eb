//! What is said about names that lead nowhere, or in a circle.

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
        &["error 1:18 `virtual_servers` is empty: nothing would be served -> \
           add a virtual server with `listen` and `pool`"],
    );
    check(
        "virtual_servers: { a: {} }",
        &[
            "error 1:23 `virtual_servers.a` lacks `listen` -> add `listen:` with an address to \
             listen on (`ip:port`, `ip:port-port`, `[v6]:port` or `unix:/path`), or a list of such",
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
            "error 6:3 the pool `p` is, in the end, its own fallback -> remove one of these `fallback`s",
        ],
    );
    let persistence = "persistence:\n  one: { type: source_address, fallback: one }\n";
    check(
        &(sound("    persistence: one\n", "") + persistence),
        &[
            "error 10:3 the persistence `one` is, in the end, its own fallback -> remove one of these `fallback`s",
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
