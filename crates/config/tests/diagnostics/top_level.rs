//! Findings about the sections of the whole program.

use super::*;

#[test]
fn top_level_settings() {
    let with = |line: &str| format!("{}{line}\n", sound("", ""));
    check(
        &with("data_plane: { workers: 0 }"),
        &["error 8:24 `data_plane.workers` must be `auto` or a whole number from 1 to 1024, \
           found the number 0 -> -"],
    );
    check(
        &with("log: { access: { to: { transport: udp } } }"),
        &[
            "error 8:22 `log.access.to` lacks `syslog` -> add `syslog:` with an address (`ip:port`, `[v6]:port`, `name:port` or `unix:/path`)",
        ],
    );
    check(
        &with("log: { access: { to: { syslog: unix:/dev/log, transport: udp } } }"),
        &[
            "error 8:58 `transport` does not apply to a unix socket: it takes datagrams -> remove it",
        ],
    );
    check(
        &with(
            "log: { access: { to: { syslog: 192.0.2.1, tag: a123456789b123456789c123456789d123456789e123456789 } } }",
        ),
        &["error 8:48 `tag` has 50 bytes; a message of syslog has room for 48 -> -"],
    );
    check(
        &with(
            "log: { access: { to: { syslog: 192.0.2.1, transport: tcp, tls: { verify: false } } } }",
        ),
        &[
            "error 8:64 `tls` has no effect: the server is reached without TLS -> add `transport: tls`, or remove `tls`",
        ],
    );
    check(
        &with("log: { access: { to: stdot } }"),
        &[
            "error 8:22 `log.access.to` must be `stdout`, a file's path, or `{ syslog: ADDRESS }`, found the text \"stdot\" \
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
           (`ip:port`, `[v6]:port` or `unix:/path`), or a list of them"],
    );
    check(
        &with("admin: { listen: \"unix:/run/a\", host_names: weir.example }"),
        &["warning 8:45 `host_names` has no effect: over a unix socket any name will do -> \
           remove it, or listen on an IP address as well"],
    );
    check(
        &with("admin: { listen: 127.0.0.1:99, host_names: [ a.example, a.example:99 ] }"),
        &["error 8:57 `admin.host_names[1]` must be a host name or IP address without a port, \
           found the text \"a.example:99\" -> give the name only: `a.example`"],
    );
    for (name, bare) in [
        ("http://a.example:99/status", "a.example"),
        ("https://a.example", "a.example"),
        ("a.example/", "a.example"),
        ("192.0.2.1:99", "192.0.2.1"),
        ("[2001:db8::1]:99", "[2001:db8::1]"),
    ] {
        let line = format!("admin: {{ listen: 127.0.0.1:99, host_names: \"{name}\" }}");
        let error = format!(
            "error 8:44 `admin.host_names` must be a host name or IP address without a port, \
             found the text \"{name}\" -> give the name only: `{bare}`"
        );
        check(&with(&line), &[&error]);
    }
    check(
        &with("first_probes: { wait: 11m, then: hope }"),
        &[
            "error 8:23 `first_probes.wait` must be a duration from 0ms to 10m (units: ms, s, m, h, d), \
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
           -> give each listener its own address or port"],
    );
}

#[test]
fn forms_of_the_access_log() {
    let with = |more: &str| format!("{}{more}\n", sound("", ""));
    let format = |format: &str| with(&format!("log: {{ access: {{ format: {format} }} }}"));
    for sound in [
        "{ json: [ time, \"request.headers['X-A']\", status ] }",
        "{ json: [ time, \"request.headers['User']\" ] }",
        "{ text: \"${user} ${request.headers['user']}\" }",
        "{ text: \"a\\t$$${ status }${request.headers[\\\"x\\\"]}\" }",
    ] {
        check(&format(sound), &[]);
    }
    for (unsound, column, message) in [
        (
            "{}",
            26,
            "a custom format needs `json` or `text` -> write { json: [ time, client, status ] }, or { text: \"${client} ${status}\" }",
        ),
        ("{ json: [] }", 34, "the line has no fields -> name at least one, such as `time`"),
        ("{ text: \"\" }", 34, "`log.access.format.text`: the text is empty -> -"),
        (
            "{ json: [ time ], text: a }",
            50,
            "`text` cannot be used with `json`: a line has one form -> remove one of them",
        ),
        ("{ json: [ time, time ] }", 42, "`time` occurs twice in one line -> remove one of them"),
        (
            "{ json: [ \"request.headers['x']\", \"request.headers['X']\" ] }",
            60,
            "`request.headers['X']` occurs twice in one line -> remove one of them",
        ),
        (
            "{ json: [ user, \"request.headers['User']\" ] }",
            42,
            "the header and `user` would have the same key -> remove one of them, or write a line of `text`",
        ),
        (
            "{ json: [ \"request.headers['host']\", host ] }",
            36,
            "the header and `host` would have the same key -> remove one of them, or write a line of `text`",
        ),
        (
            "{ json: [ statu ] }",
            36,
            "the access log has no field `statu` -> did you mean `status`?",
        ),
        (
            "{ text: \"${status\" }",
            34,
            "a `$` that begins no `${FIELD}` -> write ${status} for a field, $$ for a dollar sign",
        ),
        (
            "{ text: \"$remote_addr\" }",
            34,
            "a `$` that begins no `${FIELD}` -> write ${status} for a field, $$ for a dollar sign",
        ),
        (
            "{ text: \"${remote_addr}\" }",
            34,
            "the access log has no field `remote_addr` -> write `client_ip`",
        ),
        (
            "{ text: \"${http_x_app}\" }",
            34,
            "the access log has no field `http_x_app` -> write request.headers['x-app']",
        ),
        (
            "{ text: \"a\\nb\" }",
            34,
            "a control character in a line of the access log -> write it in one line; each line of the log ends by itself",
        ),
    ] {
        check(&format(unsound), &[&format!("error 8:{column} {message}")]);
    }
    let headers: Vec<String> =
        (0..17).map(|number| format!("\"request.headers['x{number}']\"")).collect();
    check(
        &format(&format!("{{ json: [ {} ] }}", headers.join(", "))),
        &["error 8:34 more than 16 headers in a line of the access log -> leave some out"],
    );
}
