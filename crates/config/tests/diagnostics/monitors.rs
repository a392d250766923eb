//! Findings about monitors that log in, speak TLS, or send requests of their own.

use weir_config::{Colour, render_json, render_text};

use super::*;

#[test]
fn requests_of_their_own() {
    check_monitor(
        "body: hello",
        &["error 10:15 a GET request of a monitor has no body -> use `method: POST`, or remove it"],
    );
    check_monitor(
        "headers: { Content-Length: 5, host: a }",
        &[
            "error 10:20 a monitor cannot set this header: it describes how the request is sent -> remove it",
            "error 10:39 a monitor's `Host` is not set by `headers` -> use `host`",
        ],
    );
    check_monitor(
        "headers: { X-A: \"a\\r\\nX-B: b\" }",
        &["error 10:25 the value of a header has no control characters -> -"],
    );
    check_pool(
        "monitors: [ { type: tcp, headers: { A: b }, user: a, password: b } ]",
        &[
            "error 8:39 `headers` does not apply to a monitor of type tcp -> remove it, or use `type: http` or `https`",
            "error 8:55 `user` does not apply to a monitor of type tcp -> remove it, or use `type: http`, for example",
            "error 8:68 `password` does not apply to a monitor of type tcp -> remove it, or use `type: http`, for example",
        ],
    );
}

#[test]
fn tls_of_types_that_have_a_key_for_it() {
    check_pool(
        "monitors: [ { type: tcp, host: a.example, verify: false } ]",
        &[
            "error 8:36 `host` has no effect: the monitor speaks no TLS -> add `tls: true`, or remove it",
            "error 8:55 `verify` has no effect: the monitor speaks no TLS -> add `tls: true`, or remove it",
        ],
    );
    check_pool(
        "monitors: [ { type: smtp, tls: true, starttls: true } ]",
        &[
            "error 8:52 `tls` and `starttls`: a connection is encrypted from its start, or later -> \
           remove one of them",
        ],
    );
    check_pool(
        "monitors: [ { type: redis, starttls: true } ]",
        &["error 8:42 `starttls` does not apply to a monitor of type redis -> \
           remove it, or use `type: smtp` or `ldap`"],
    );
    check_pool(
        "monitors: [ { type: http, tls: true } ]",
        &[
            "error 8:36 `tls` does not apply to a monitor of type http -> remove it, or use `type: tcp`, for example",
        ],
    );
}

#[test]
fn users_and_passwords() {
    check_monitor(
        "user: a",
        &["error 10:15 `user` needs a password -> add `password` or `password_file`"],
    );
    check_monitor("password: a", &["error 10:19 a password needs a user -> add `user`"]);
    check_pool(
        "monitors: [ { type: http, user: a, password: b, password_file: /c } ]",
        &["error 8:68 `password` and `password_file` are both given -> remove one of them"],
    );
    check_pool(
        "monitors: [ { type: http, user: \"a:b\", password: c } ]",
        &["error 8:37 a name for Basic authentication has no colon in it -> -"],
    );
    check_pool(
        "monitors: [ { type: http, user: a, password: b, headers: { authorization: c } } ]",
        &[
            "error 8:64 `Authorization` cannot be used with `user`, which sets it -> remove one of them",
        ],
    );
    let folder = tempfile::tempdir().expect("a folder");
    let check_file = |bytes: &[u8], expected: &str| {
        let path = folder.path().join("password");
        std::fs::write(&path, bytes).expect("a file");
        let shown = path.display().to_string();
        let line = format!("monitors: [ {{ type: http, user: a, password_file: {shown} }} ]");
        let expected = match expected {
            "" => Vec::new(),
            expected => vec![format!("error 8:55 {shown}{expected}")],
        };
        assert_eq!(findings(&sound("", &format!("    {line}\n"))), expected);
    };
    check_file(b"hunter2\n", "");
    check_file(b"\r\n", " has no password in it -> -");
    check_file(b"\xff", ": line 1: it is not UTF-8 -> -");
    check_file(
        b"\xef\xbb\xbfhunter2",
        ": line 1: there is a byte order mark (EF BB BF); save the file as UTF-8 without one -> -",
    );
    check_file(
        b"hunter2\nhunter3\n",
        " has more than one line, where it is one password -> leave one line in it",
    );
    check_file(&[b'a'; 4_097], " is larger than 4 KiB -> -");
}

#[test]
fn services() {
    check_pool(
        "monitors: [ {} ]",
        &["error 8:17 `pools.p.monitors[0]` lacks `type` -> \
           add `type:` with `http`, `https`, `tcp`, `grpc`, `grpcs`, `script`, `udp`, `dns`, `icmp`, `redis`, `smtp`, \
           `ldap`, `mysql`, `postgresql` or `radius`"],
    );
    check_pool(
        "monitors: [ { type: icmp, port: 1 } ]",
        &["error 8:37 `port` does not apply to a monitor of type icmp -> \
           remove it, or use `type: tcp`, for example"],
    );
    check_pool(
        "monitors: [ { type: redis, user: a } ]",
        &["error 8:38 `user` needs a password -> add `password` or `password_file`"],
    );
    check_pool(
        "monitors: [ { type: smtp, name: \"a b\" } ]",
        &["error 8:37 not a name for EHLO: it has 1 to 255 letters, digits and signs of ASCII -> \
           write a host name, or an address as `[192.0.2.1]`"],
    );
    check_pool(
        "monitors: [ { type: ldap, attribute: \"a)(b\" } ]",
        &["error 8:42 not the name of an attribute: letters, digits, `-`, `.` and `;` -> -"],
    );
    for (keys, column, key) in [
        ("password: a", 47, "password"),
        ("database: a", 47, "database"),
        ("query: a", 44, "query"),
        ("value: a", 44, "value"),
    ] {
        let message = format!(
            "error 8:{column} `{key}` has no effect without a user: the monitor does not log in -> \
             add `user`, or remove it"
        );
        check_pool(&format!("monitors: [ {{ type: postgresql, {keys} }} ]"), &[&message]);
    }
    check_pool(
        "monitors: [ { type: mysql, user: a, value: b } ]",
        &["error 8:48 `value` is for the answer to `query`, which is missing -> \
           add `query`, or remove it"],
    );
    check_pool(
        "monitors: [ { type: mysql, user: \"a\\0b\" } ]",
        &["error 8:38 `user` cannot have a NUL in it -> -"],
    );
    check_pool(
        "monitors: [ { type: radius, user: a, password: b } ]",
        &[
            "error 8:17 a monitor of type radius needs `user` with a password, and the `secret` of the server -> \
           add `user`, `password` and `secret`, or the files of the secrets",
        ],
    );
    let long = "a".repeat(254);
    check_pool(
        &format!("monitors: [ {{ type: radius, user: {long}, password: b, secret: c }} ]"),
        &["error 8:39 `user` has 254 bytes, and RADIUS takes at most 253 -> -"],
    );
    for kind in ["icmp", "radius, user: a, password: b, secret: c"] {
        let text = sound("", "").replace(
            "[ 127.0.0.1:9001 ]",
            &format!("[ unix:/run/a ]\n    monitors: [ {{ type: {kind} }} ]"),
        );
        let kind = kind.split(',').next().unwrap_or_default();
        let message = format!(
            "error 8:25 `type: {kind}` does not fit a pool with a member on a unix socket -> \
             use another type, or give the member an IP address"
        );
        check(&text, &[&message]);
    }
}

/// The port of the other members does not matter to a member with monitors of its own.
#[test]
fn monitors_of_members() {
    let with = |members: &str, pool: &str| {
        sound("", pool).replace("[ 127.0.0.1:9001 ]", &format!("[ {members} ]"))
    };
    let by_path = "{ address: unix:/run/a, monitors: [ { type: tcp } ] }, 127.0.0.1:9001";
    check(&with(by_path, "    monitors: [ { type: udp, send: a, port: 53 } ]\n"), &[]);
    check(&with("{ address: 127.0.0.1:9001, monitors: [] }", ""), &[]);
    check(
        &with("{ address: unix:/run/a, monitors: [ { type: icmp } ] }", ""),
        &["error 7:60 `type: icmp` does not fit a pool with a member on a unix socket -> \
             use another type, or give the member an IP address"],
    );
    check(
        &with("{ address: 127.0.0.1:9001, monitors: [ { type: redis, path: / } ] }", ""),
        &["error 7:76 `path` does not apply to a monitor of type redis -> \
           remove it, or use `type: http` or `https`"],
    );
    let two = "{ address: 127.0.0.1:9001, monitors: [ { type: tcp }, { type: icmp } ] }";
    check(&with(two, "    monitors_min: 2\n"), &[]);
    check(
        &with(two, "    monitors_min: 3\n"),
        &["error 8:19 `monitors_min` is 3, and the pool has 2 -> lower it, or add monitors"],
    );
}

/// For any mistake, no form of a diagnostic contains the password.
#[test]
fn passwords_are_not_shown() {
    for line in [
        "{ type: http, user: a, password: hunter2, pth: / }",
        "{ type: http, user: a, pasword: hunter2 }",
        "{ type: http, user: a, Password: hunter2 }",
        "{ type: http, user: a, password: [ hunter2 ] }",
        "{ type: http, user: a, password: { hunter2: a } }",
        "{ type: http, password: hunter2 }",
        "{ type: tcp, password: \"hunter2\" }",
        "{ type: http, user: a, password: \"\\qhunter2\" }",
        "{ type: http, user: a, password: hunter2, password: hunter2 }",
        "{ type: http, user: a, password: hunter2, password_file: a }",
        "{ type: http, headers: { Authorization: Bearer hunter2, Host: a } }",
        "{ type: http, headers: { Authorization: \"hunter2\\x01\" } }",
        "{ type: http, headers: { Authorization: [ hunter2 ] } }",
        "\n          type: http\n          password:\n            [ hunter2 ]\n",
        "{ type: http, user: a, password: hunter2",
        "{ type: radius, user: a, password: b, secret: hunter2, scret: c }",
        "{ type: radius, user: a, password: b, shared_secret: hunter2 }",
        "{ type: mysql, password: hunter2 }",
    ] {
        let text = sound("", &format!("    monitors:\n      - {line}\n"));
        let diagnostics = parse("weir.yaml", &text).diagnostics;
        assert_ne!(diagnostics, [], "{line}");
        let shown = render_text(&diagnostics, Colour::Never);
        let shown = format!("{shown}{}", render_json(&diagnostics));
        assert!(!shown.contains("hunter2"), "{line}\n{shown}");
    }
}
