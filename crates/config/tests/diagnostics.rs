//! What is said about faulty configurations: where, what, and how to mend it.

use weir_config::{Colour, Diagnostic, Severity, parse, render_json, render_text};

/// `SEVERITY LINE:COLUMN MESSAGE -> SUGGESTION`.
fn show(diagnostic: &Diagnostic) -> String {
    let place = diagnostic
        .position
        .map_or_else(|| "-".into(), |place| format!("{}:{}", place.line, place.column));
    let suggestion = diagnostic.suggestion.as_deref().unwrap_or("-");
    let word = diagnostic.severity.word();
    format!("{word} {place} {} -> {suggestion}", diagnostic.message)
}

fn findings(text: &str) -> Vec<String> {
    let loaded = parse("weir.yaml", text);
    let errors = loaded.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    assert_eq!(loaded.config.is_none(), errors, "{text}");
    loaded.diagnostics.iter().map(show).collect()
}

/// Exactly these findings.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(findings(text), expected, "\n{text}");
}

/// A sound file with one virtual server and one pool, to which lines are added.
fn sound(server: &str, pool: &str) -> String {
    format!(
        "virtual_servers:\n  a:\n    listen: 127.0.0.1:80\n    pool: p\n{server}\
         pools:\n  p:\n    members: [ 127.0.0.1:9001 ]\n{pool}"
    )
}

/// One line more in the virtual server; it is line 5.
#[track_caller]
fn check_server(line: &str, expected: &[&str]) {
    check(&sound(&format!("    {line}\n"), ""), expected);
}

/// One line more in the pool; it is line 8.
#[track_caller]
fn check_pool(line: &str, expected: &[&str]) {
    check(&sound("", &format!("    {line}\n")), expected);
}

/// One line more in an http monitor; it is line 10.
#[track_caller]
fn check_monitor(line: &str, expected: &[&str]) {
    let monitor = format!("    monitors:\n      - type: http\n        {line}\n");
    check(&sound("", &monitor), expected);
}

#[test]
fn a_sound_file_has_no_findings() {
    check(&sound("", ""), &[]);
}

#[test]
fn how_paths_are_taken() {
    check_server(
        "http: { path: raw }",
        &[
            "error 5:19 `virtual_servers.a.http.path` must be `keep` or a map with `repeated_slashes`, \
             `encoded_slashes`, `backslashes`, `parameters`, …, found the text \"raw\" -> -",
        ],
    );
    check_server(
        "http: { path: { encoded_slashes: refused, slashes: merge } }",
        &[
            "error 5:38 `virtual_servers.a.http.path.encoded_slashes` must be `refuse`, `decode` or `keep`, \
             found the text \"refused\" -> did you mean `refuse`?",
            "error 5:47 unknown key `slashes` in `virtual_servers.a.http.path` -> known keys: \
             `repeated_slashes`, `encoded_slashes`, `backslashes`, `parameters`, `nul`",
        ],
    );
    for (path, findings) in [
        ("{ parameters: remove }", 1),
        ("{ parameters: refuse }", 1),
        ("{ parameters: keep }", 0),
        ("keep", 0),
    ] {
        let warning = "warning 5:18 persistence by a parameter of the path, which \
                       `http.path.parameters` does not let through -> set `parameters: keep`, or use another \
                       persistence";
        let http = format!("http: {{ path: {path} }}");
        let lines = format!("persistence: {{ type: path_parameter, name: id }}\n    {http}");
        check_server(&lines, &[warning][..findings]);
    }
}

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
        &["error 5:5 unknown key `persistance` in `virtual_servers.a` -> \
           did you mean `persistence`?"],
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

#[test]
fn keys_and_values_of_later_issues() {
    let not_yet = |place: &str, what: &str| {
        format!(
            "error {place} `{what}` is not supported yet -> \
             remove `{what}`: this version of weir cannot do it"
        )
    };
    {
        let key = "waf";
        check_server(&format!("{key}: {{ any: 1 }}"), &[&not_yet("5:5", key)]);
    }
    for value in ["udp", "fast_l4"] {
        check_server(&format!("type: {value}"), &[&not_yet("5:11", value)]);
    }
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
           (units: ms, s, m, h), found the number 30 -> add the unit: 30s"],
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
           `least_response_time`, `random_two` or `source_address`, found the text \"leastconn\" -> -"],
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
fn top_level_settings() {
    let with = |line: &str| format!("{}{line}\n", sound("", ""));
    check(
        &with("data_plane: { workers: 0 }"),
        &["error 8:24 `data_plane.workers` must be `auto` or a whole number from 1 to 1024, \
           found the number 0 -> -"],
    );
    check(
        &with("log: { access: { to: stdot } }"),
        &[
            "error 8:22 `log.access.to` must be `stdout` or a file's path, found the text \"stdot\" \
           -> did you mean `stdout`? A file beside the configuration is written ./stdot",
        ],
    );
    check(
        &with("log: { access: { format: false } }"),
        &["error 8:26 `log.access.format` must be `json`, `combined` or `off`, \
           found the boolean false -> -"],
    );
    check(
        &with("admin: {}"),
        &["error 8:8 `admin` lacks `listen` -> add `listen:` with an address to listen on \
           (`ip:port`, `[v6]:port` or `unix:/path`), or a list of such"],
    );
    check(
        &with("admin: { listen: \"unix:/run/a\", host_names: weir.example }"),
        &["warning 8:45 `host_names` has no effect: over a unix socket any name will do -> \
           remove it, or listen on an IP address as well"],
    );
    check(
        &with("admin: { listen: 127.0.0.1:99, host_names: [ a.example, a.example:99 ] }"),
        &["error 8:57 `admin.host_names[1]` must be a host name or IP address without a port, \
           found the text \"a.example:99\" -> leave out the port; a monitor has `port` for it"],
    );
    check(
        &with("first_probes: { wait: 11m, then: hope }"),
        &[
            "error 8:23 `first_probes.wait` must be a duration from 0ms to 10m (units: ms, s, m, h), \
             found the text \"11m\" -> -",
            "error 8:34 `first_probes.then` must be `serve` or `refuse`, found the text \"hope\" -> -",
        ],
    );
    check(
        &with("log: { access: { to: /proc/ } }"),
        &["error 8:22 `log.access.to`: this is a directory, not a file -> -"],
    );
    check(
        &with("log: { access: { to: /proc } }"),
        &["error 8:22 /proc is a directory, not a file -> name a file in it, such as access.log"],
    );
    check(
        &with("admin: { listen: 127.0.0.1:80 }"),
        &["error 3:13 `127.0.0.1:80` is used twice: in line 8 by the admin listener \
           -> give each listener an address or port of its own"],
    );
}

#[test]
fn listeners() {
    check(
        &sound("", "").replace("listen: 127.0.0.1:80", "listen: :80"),
        &["error 3:13 `virtual_servers.a.listen` must be an address to listen on (`ip:port`, \
           `[v6]:port` or `unix:/path`), or a list of such, found the text \":80\" -> \
           for all addresses write 0.0.0.0:80 or \"[::]:80\""]
        .map(|text| text.replace(", or a list of such", ""))
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>(),
    );
    check(
        &sound("", "")
            .replace("listen: 127.0.0.1:80", "listen: [ 127.0.0.1:80, \"[::ffff:127.0.0.1]:80\" ]"),
        &["error 3:29 `127.0.0.1:80` is used twice: in line 3 by virtual server `a` -> \
           give each listener an address or port of its own"],
    );
    for (listen, other, place) in [
        ("[ 127.0.0.1:80, 0.0.0.0:80 ]", "`0.0.0.0:80` and `127.0.0.1:80`", "3:29"),
        ("[ 0.0.0.0:80, 127.0.0.1:80 ]", "`127.0.0.1:80` and `0.0.0.0:80`", "3:27"),
    ] {
        check(
            &sound("", "").replace("127.0.0.1:80\n", &format!("{listen}\n")),
            &[&format!(
                "error {place} {other} of virtual server `a` in line 3 overlap: `0.0.0.0:80` takes its \
                 port on every address -> keep one of them, or give one another port"
            )],
        );
    }
    check(
        &sound("", "").replace("127.0.0.1:80\n", "[ 0.0.0.0:80, \"[::]:80\", 127.0.0.1:81 ]\n"),
        &[],
    );
    check(
        &sound("", "").replace("listen: 127.0.0.1:80", "listen: 127.0.0.1:0"),
        &[
            "warning 3:13 port 0 of virtual server `a`: the system picks another port at each start \
           -> give a port, unless this is a test",
        ],
    );
    check(
        &sound("", "").replace("listen: 127.0.0.1:80", "listen: localhost:80"),
        &["error 3:13 `virtual_servers.a.listen` must be an address to listen on (`ip:port`, \
           `[v6]:port` or `unix:/path`), found the text \"localhost:80\" -> \
           write 127.0.0.1:80 or \"[::1]:80\""],
    );
    check(
        &sound("", "").replace("listen: 127.0.0.1:80", "listen: 80"),
        &["error 3:13 `virtual_servers.a.listen` must be an address to listen on (`ip:port`, \
           `[v6]:port` or `unix:/path`), found the number 80 -> \
           for all addresses write 0.0.0.0:80 or \"[::]:80\""],
    );
    check(
        &sound("", "").replace("listen: 127.0.0.1:80", "listen: []"),
        &["error 3:13 `virtual_servers.a.listen` is empty; it needs at least one item -> -"],
    );
    check(
        &sound("", "").replace("127.0.0.1:80\n", "0.0.0.0:9001\n"),
        &[
            "error 3:13 virtual server `a` listens on `0.0.0.0:9001`, which a member of its pool `p` \
           has: requests would go round for ever -> change the listener's or the member's port",
        ],
    );
}

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
             listen on (`ip:port`, `[v6]:port` or `unix:/path`), or a list of such",
            "error 1:23 `virtual_servers.a` lacks `pool` -> add `pool:` with a name",
        ],
    );
}

#[test]
fn members() {
    let with = |members: &str| sound("", "").replace("[ 127.0.0.1:9001 ]", members);
    check(&with("[]"), &["error 7:14 `pools.p.members` is empty; it needs at least one item -> -"]);
    check(
        &with("127.0.0.1:9001"),
        &["error 7:14 `pools.p.members` must be a list, each item an address, or a map with \
           `address`, found the text \"127.0.0.1:9001\" -> write [ 127.0.0.1:9001 ]"],
    );
    check(
        &with("[ 127.0.0.1:1, { address: 127.0.0.1:1 } ]"),
        &["error 7:40 `127.0.0.1:1` is a member of pool `p` twice; the first is in line 7 -> \
           keep one; `weight` gives a member more traffic"],
    );
    check(
        &with("[ A.example:1, a.example:1 ]"),
        &["error 7:29 `a.example:1` is a member of pool `p` twice; the first is in line 7 -> \
           keep one; `weight` gives a member more traffic"],
    );
    check(
        &with("[ { address: 127.0.0.1:1, weight: 257 } ]"),
        &["error 7:48 `pools.p.members[0].weight` must be a whole number from 1 to 256, \
           found the number 257 -> -"],
    );
    check(
        &with("[ { weight: 2 } ]"),
        &["error 7:16 `pools.p.members[0]` lacks `address` -> add `address:` with an address \
           (`ip:port`, `[v6]:port`, `name:port` or `unix:/path`)"],
    );
    check(
        &with("[ 224.0.0.1:80 ]"),
        &["error 7:16 `pools.p.members[0]`: no member has a multicast or broadcast address -> -"],
    );
    check(
        &with("[ 0.0.0.0:80 ]"),
        &["error 7:16 `pools.p.members[0]`: connections cannot go to all addresses \
           -> for this host write 127.0.0.1:80"],
    );
    check(
        &with("[ 127.0.0.1 ]"),
        &["error 7:16 `pools.p.members[0]`: the port is missing -> write 127.0.0.1:8080"],
    );
    check(
        &with("[ [::1]:80 ]"),
        &["error 7:16 a key must be text, not a list or a map -> \
           quote text that begins with `{` or `[`, also addresses: \"[::1]:8080\""],
    );
    check(
        &with("[ \"[::1]:80\" ]\n    source: 127.0.0.1"),
        &["error 7:16 `[::1]:80` cannot be reached from the pool's source address 127.0.0.1 -> \
           use one address family, IPv4 or IPv6, for both"],
    );
    check(
        &with("[ 8080 ]"),
        &["error 7:16 `pools.p.members[0]` must be an address (`ip:port`, `[v6]:port`, \
           `name:port` or `unix:/path`), found the number 8080 -> -"],
    );
}

#[test]
fn monitors() {
    check_monitor(
        "timeout: 6s",
        &["error 10:18 `timeout` (6s) is longer than `interval` (default 5s) -> \
           probes of one member do not overlap: raise `interval` or lower `timeout`"],
    );
    check_monitor(
        "rise: 0",
        &["error 10:15 `pools.p.monitors[0].rise` must be a whole number from 1 to 1000, \
           found the number 0 -> -"],
    );
    check_monitor(
        "jitter: 10",
        &["error 10:17 `pools.p.monitors[0].jitter` must be a percentage from 0% to 50%, \
           found the number 10 -> write 10%"],
    );
    check_monitor(
        "verify: true",
        &["error 10:17 `verify` does not apply to a monitor of type http -> \
           remove it, or use `type: https`"],
    );
    check_monitor(
        "path: healthz",
        &["error 10:15 `pools.p.monitors[0].path` must be a path that begins with `/`, \
           found the text \"healthz\" -> -"],
    );
    check_monitor(
        "path: /a b",
        &["error 10:15 `pools.p.monitors[0].path`: a path has neither spaces nor `#` nor \
           characters outside ASCII -> percent-encode them: a space is %20"],
    );
    check_monitor(
        "host: web.example:80",
        &["error 10:15 `pools.p.monitors[0].host` must be a host name or IP address without a \
           port, found the text \"web.example:80\" -> leave out the port; a monitor has `port` for it"],
    );
    check_monitor(
        "expect: { status: 2xx }",
        &["error 10:27 `pools.p.monitors[0].expect.status` must be a status code such as 200, or \
           a range such as \"200-299\", found the text \"2xx\" -> write \"200-299\""],
    );
    check_monitor(
        "expect: { status: [ 200, \"299-200\" ] }",
        &[
            "error 10:34 `pools.p.monitors[0].expect.status[1]`: the range ends before it begins -> \
           write \"200-299\"",
        ],
    );
    check_monitor(
        "expect: { body: \"\" }",
        &["error 10:25 `pools.p.monitors[0].expect.body`: the text is empty -> -"],
    );
    check_pool(
        "monitors: [ {} ]",
        &["error 8:17 `pools.p.monitors[0]` lacks `type` -> \
           add `type:` with `http`, `https`, `tcp`, `grpc`, `grpcs` or `script`"],
    );
    check_pool(
        "monitors: [ { type: tcp, path: /, verify: no } ]",
        &[
            "error 8:36 `path` does not apply to a monitor of type tcp -> \
             remove it, or use `type: http`",
            "error 8:47 `pools.p.monitors[0].verify` must be `true` or `false`, \
             found the text \"no\" -> write false",
        ],
    );
    check_monitor(
        "send: hello",
        &["error 10:15 `send` does not apply to a monitor of type http -> \
           remove it, or use `type: tcp`"],
    );
    check_monitor(
        "drain_on: {}",
        &["error 10:19 `drain_on` says nothing of the answer -> give `status`, `body` or both"],
    );
    check_pool(
        "monitors: [ { type: tcp, send: hello } ]",
        &["error 8:36 with `send`, a monitor of type tcp needs `receive` -> \
           say what the answer must have in it"],
    );
    check_pool(
        "monitors: [ { type: tcp, receive: ok, drain_on: { status: 503 } } ]",
        &["error 8:63 `status` does not apply to a monitor of type tcp -> \
           use `body`: what comes must have it in it"],
    );
    check_pool(
        "monitors: [ { type: script } ]",
        &["error 8:17 a monitor of type script needs the command that it runs -> \
           add `command: [ /path/of/the/program, argument ]`"],
    );
    check_pool(
        "monitors: [ { type: script, command: [ check.sh ] } ]",
        &["error 8:44 the program of a monitor must have its whole path -> \
           begin it with `/`; for a line of shell: `[ /bin/sh, -c, \"…\" ]`"],
    );
    check(
        &sound("", "").replace(
            "[ 127.0.0.1:9001 ]",
            "[ unix:/run/a ]\n    monitors: [ { type: tcp, port: 80 } ]",
        ),
        &["error 8:36 `port` does not fit a pool with a member on a unix socket -> \
           remove `port`, or give the member an IP address"],
    );
}

#[test]
fn what_does_nothing() {
    let streams = |place: &str| {
        format!(
            "warning {place} `http2_streams_max` without HTTP/2, which is on with `tls` or by `http2: true` -> \
             remove it, or switch HTTP/2 on"
        )
    };
    check_server("http: { http2_streams_max: 5 }", &[&streams("5:32")]);
    check_server("http: { http2: false, http2_streams_max: 5 }", &[&streams("5:46")]);
    check_server("http: { http2: true, http2_streams_max: 5 }", &[]);
    check_server("http: { http2: false }", &[]);
    let profile = |http2: &str| {
        let profiles = "profiles:\n  http:\n    h: { http2_streams_max: 5";
        let servers = "    http: h\n  b:\n    listen: 127.0.0.1:81\n    pool: p\n    http: h\n";
        sound(servers, "") + &format!("{profiles}{http2} }}\n")
    };
    check(&profile(""), &[]);
    check(&profile(", http2: false"), &[&streams("15:29")]);

    let off = "warning 5:26 `gzip`, `zstd` and `brotli` are all `off`: nothing is compressed -> \
               offer one of them, or remove `compression`";
    check_server("compression: { gzip: off, zstd: off, brotli: off, level_min: 9 }", &[off]);
    check_server("compression: { gzip: off, zstd: off }", &[]);
    let level = |highest: u8| {
        format!(
            "warning 5:31 `level_min` is above every level on offer, up to {highest}: none can fall -> \
             set it to {highest} or less"
        )
    };
    check_server("compression: { level_min: 6 }", &[&level(5)]);
    check_server("compression: { level_min: 6, gzip: { level: 6 } }", &[]);
    check_server("compression: { level_min: 4, gzip: off }", &[&level(3)]);
    check_server("compression: { level_min: 5 }", &[]);

    check_pool("lenient: [ control_characters, bare_line_feeds, unknown_status ]", &[]);
    check_pool(
        "lenient: [ unknown_status, unknown_status ]",
        &["warning 8:32 `lenient` names the same twice -> remove one"],
    );
    check_pool(
        "http2: true\n    lenient: [ unknown_status, control_characters ]",
        &[
            "warning 9:32 this is about HTTP/1, and the pool's members speak HTTP/2 (`http2`) -> remove it",
        ],
    );
}

#[test]
fn words_of_leniency() {
    check_pool(
        "lenient: [ bare_linefeeds ]",
        &["error 8:16 `pools.p.lenient[0]` must be `bare_line_feeds`, `control_characters` or \
           `unknown_status`, found the text \"bare_linefeeds\" -> did you mean `bare_line_feeds`?"],
    );
    check_server(
        "http: { request_trailers: forwards }",
        &[
            "error 5:31 `virtual_servers.a.http.request_trailers` must be `drop` or `forward`, found the \
           text \"forwards\" -> did you mean `forward`?",
        ],
    );
}

#[test]
fn regular_expressions_are_located_inside_the_text() {
    let help =
        "a special character that means itself is written with a backslash, in single quotes";
    check_monitor(
        "expect: { body: { regex: 'up(' } }",
        &[&format!(
            "error 10:37 the regular expression is not valid: unclosed group, at character 3 -> {help}"
        )],
    );
    check_monitor(r#"expect: { body: { regex: "a\x2a*" } }"#, &[]);
    check_monitor(
        r#"expect: { body: { regex: "\x2a" } }"#,
        &[&format!(
            "error 10:34 the regular expression is not valid: repetition operator missing \
             expression, at character 1 -> {help}"
        )],
    );
    check_monitor(
        "expect: { body: { regex: '(\\w{1000}){1000}' } }",
        &["error 10:34 the regular expression needs more than 1024 KiB when compiled -> \
           lower the counts of its repetitions"],
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

/// All at once, in the file's order, and the rest is still checked.
const FAULTY: &str = "\
virtual_servers:
  shop:
    lisen: 127.0.0.1:8080
    pool: wed
    waf: { rules: [] }
pools:
  web:
    members: [ 127.0.0.1:9001, 127.0.0.1:9001 ]
    retries: 99
";

#[test]
fn text_rendering() {
    let loaded = parse("weir.yaml", FAULTY);
    let expected = "\
weir.yaml:3:5: error: unknown key `lisen` in `virtual_servers.shop`
 3 |     lisen: 127.0.0.1:8080
   |     ^^^^^
help: did you mean `listen`?
weir.yaml:4:11: error: pool `wed` is not defined
 4 |     pool: wed
   |           ^^^
help: did you mean `web`?
weir.yaml:5:5: error: `waf` is not supported yet
 5 |     waf: { rules: [] }
   |     ^^^
help: remove `waf`: this version of weir cannot do it
weir.yaml:8:32: error: `127.0.0.1:9001` is a member of pool `web` twice; the first is in line 8
 8 |     members: [ 127.0.0.1:9001, 127.0.0.1:9001 ]
   |                                ^^^^^^^^^^^^^^
help: keep one; `weight` gives a member more traffic
weir.yaml:9:14: error: `pools.web.retries` must be a whole number from 0 to 16, found the number 99
 9 |     retries: 99
   |              ^^
";
    assert_eq!(render_text(&loaded.diagnostics, Colour::Never), expected);
}

#[test]
fn json_rendering() {
    let loaded = parse(
        "weir.yaml",
        &sound("    lisen: 1\n", "").replace("listen: 127.0.0.1:80", "listen: 127.0.0.1:0"),
    );
    assert_eq!(
        render_json(&loaded.diagnostics).to_string(),
        concat!(
            r#"{"diagnostics":[{"severity":"warning","message":"port 0 of virtual server `a`: "#,
            r#"the system picks another port at each start","file":"weir.yaml","line":3,"#,
            r#""column":13,"suggestion":"give a port, unless this is a test"},"#,
            r#"{"severity":"error","message":"unknown key `lisen` in `virtual_servers.a`","#,
            r#""file":"weir.yaml","line":5,"column":5,"suggestion":"did you mean `listen`?"}]}"#,
        )
    );
}

#[test]
fn findings_are_bounded() {
    let many: String = (0..3000).map(|index| format!("key{index}: 1\n")).collect();
    let loaded = parse("weir.yaml", &many);
    assert_eq!(loaded.diagnostics.len(), weir_config::DIAGNOSTICS_MAX + 1);
    let last = loaded.diagnostics.last().map(show);
    assert_eq!(last.as_deref(), Some("error - 2001 more findings are not shown -> -"));
}

/// The language as a whole: what this version cannot do is refused at its place, and nothing else.
#[test]
fn the_whole_language() {
    let later = [(20, 5, "waf")].map(|(line, column, what)| {
        format!(
            "error {line}:{column} `{what}` is not supported yet -> \
             remove `{what}`: this version of weir cannot do it"
        )
    });
    let missing = [(36, "shop.crt"), (51, "shop.key")].map(|(column, file)| {
        format!(
            "error 17:{column} cannot open {file}: No such file or directory -> \
             a relative path starts at the configuration's directory"
        )
    });
    let expected: Vec<String> = missing.into_iter().chain(later).collect();
    assert_eq!(findings(include_str!("data/language.yaml")), expected);
}

/// A sound file with a rule of these actions in a policy; the rule is in line 11.
#[track_caller]
fn check_actions(actions: &str, expected: &[&str]) {
    let policy = format!("policies:\n  q:\n    rules:\n      - then: [ {actions} ]\n");
    let text = sound("    policies: [ q ]\n", "") + &policy;
    check(&text, expected);
}

#[test]
fn actions_that_cannot_be_meant() {
    check_actions("{ respond: { status: 204 } }", &[]);
    check_actions(
        "{ respond: { status: 204, body: x } }",
        &[
            "error 12:38 a response of status 204 has no body -> remove `body`, or choose another status",
        ],
    );
    check_actions(
        "{ replace_header: { X-A: { regex: a, to: \"b\\nX: 1\" } } }",
        &["error 12:58 a control character, which no path, query, host or field may have -> -"],
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

#[test]
fn keys_that_tell_nobody_apart() {
    check_server(
        "persistence: { type: hash, of: request.path }",
        &[
            "error 5:36 `of` has no `${…}` in it: it is the same for every request -> an expression is written `${request.path}`",
        ],
    );
    check_server(
        "limits: { per_key: [ { key: client.ip, requests: 1 } ] }",
        &[
            "error 5:33 `key` has no `${…}` in it: it is the same for every request -> an expression is written `${client.ip}`",
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
