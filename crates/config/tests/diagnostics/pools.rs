//! Findings about members, monitors and tolerated flaws of responses.

use super::*;

#[test]
fn members() {
    let with = |members: &str| sound("", "").replace("[ 127.0.0.1:9001 ]", members);
    check(
        &with("[]"),
        &[
            "warning 7:14 pool `p` has no members: its requests get 503 -> add members before it gets traffic",
        ],
    );
    check(
        &with("web"),
        &["error 7:14 `pools.p.members` must be a list, each item an address, or a map with \
           `address`, found the text \"web\" -> write a list: [ … ]"],
    );
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
        &["error 7:48 `pools.p.members[0].weight` must be a whole number from 0 to 256, \
           found the number 257 -> -"],
    );
    check(&with("[ { address: 127.0.0.1:1, weight: 0 }, 127.0.0.1:2 ]"), &[]);
    check(
        &with("[ { address: 127.0.0.1:1, weight: 0 }, { address: 127.0.0.1:2, weight: 0 } ]"),
        &["error 7:16 every member of pool `p` has the weight 0: no member takes new requests -> \
           give at least one a higher weight; to take the pool out of service write `state: drain`"],
    );
    check(
        &with("[ { weight: 2 } ]"),
        &["error 7:16 `pools.p.members[0]` lacks `address` -> add `address:` with an address \
           (`ip:port`, `[v6]:port`, `name:port` or `unix:/path`)"],
    );
    check(
        &with("[ 224.0.0.1:80 ]"),
        &[
            "error 7:16 `pools.p.members[0]`: a member cannot have a multicast or broadcast address -> -",
        ],
    );
    check(
        &with("[ 0.0.0.0:80 ]"),
        &["error 7:16 `pools.p.members[0]`: connections cannot go to all addresses \
           -> for this host write 127.0.0.1:80"],
    );
    check(
        &with("[ 127.0.0.1 ]"),
        &[
            "error 7:16 `127.0.0.1` has no port: only members of pools that virtual servers of type tcp \
           or udp alone use keep the client's -> write 127.0.0.1:8080",
        ],
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
           remove it, or use `type: https`, for example"],
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
        "monitors: [ { type: tcp, path: /, verify: no } ]",
        &[
            "error 8:36 `path` does not apply to a monitor of type tcp -> \
             remove it, or use `type: http` or `https`",
            "error 8:47 `pools.p.monitors[0].verify` must be `true` or `false`, \
             found the text \"no\" -> write false",
        ],
    );
    check_monitor(
        "send: hello",
        &["error 10:15 `send` does not apply to a monitor of type http -> \
           remove it, or use `type: tcp` or `udp`"],
    );
    check_monitor(
        "drain_on: {}",
        &["error 10:19 `drain_on` says nothing of the answer -> give `status`, `body` or both"],
    );
    check_pool(
        "monitors: [ { type: tcp, send: hello } ]",
        &["error 8:36 with `send`, a monitor of type tcp needs `receive` -> \
           set the text that the answer must contain"],
    );
    check_pool(
        "monitors: [ { type: tcp, receive: ok, drain_on: { status: 503 } } ]",
        &["error 8:63 `status` does not apply to a monitor of type tcp -> \
           use `body`: the answer must contain it"],
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
fn monitors_of_datagrams() {
    check_pool(
        "monitors: [ { type: udp } ]",
        &["error 8:17 a monitor of type udp needs `send`: a member only answers requests -> \
           add `send: text`, or `send: { hex: \"00 01\" }`"],
    );
    check_pool(
        "monitors: [ { type: udp, send: { hex: \"0g\" } } ]",
        &[
            "error 8:43 `pools.p.monitors[0].send.hex` must be bytes in hexadecimal digits, such as \"00 1f\", \
           found the text \"0g\" -> -",
        ],
    );
    check_pool(
        "monitors: [ { type: udp, send: { hex: \"000\" } } ]",
        &[
            "error 8:43 `pools.p.monitors[0].send.hex`: the number of digits is odd, and a byte has two -> -",
        ],
    );
    check_pool(
        "monitors: [ { type: udp, send: a, receive: { regex: a, hex: \"00\" } } ]",
        &["error 8:48 an expected body is a text, `regex` or `hex` -> give one of them"],
    );
    check_pool(
        "monitors: [ { type: udp, send: a, drain_on: { status: 503 } } ]",
        &["error 8:59 `status` does not apply to a monitor of type udp -> \
           use `body`: the answer must contain it"],
    );
    check_pool(
        "monitors: [ { type: tcp, answer: optional } ]",
        &["error 8:38 `answer` does not apply to a monitor of type tcp -> \
           remove it, or use `type: udp`"],
    );
    check_pool(
        "monitors: [ { type: dns } ]",
        &["error 8:17 a monitor of type dns needs the name that it asks for -> \
           add `name: shop.example`"],
    );
    check_pool(
        "monitors: [ { type: dns, name: a..b } ]",
        &["error 8:36 not a name of DNS: a label between its dots has 1 to 63 bytes -> -"],
    );
    check_pool(
        "monitors: [ { type: dns, name: a, value: \"::1\" } ]",
        &["error 8:46 `value` is not valid for this record type -> \
           write an IPv4 address, or set `record`"],
    );
    check_pool(
        "monitors: [ { type: dns, name: a, value: 192.0.2.1, rcode: NXDOMAIN } ]",
        &[
            "error 8:46 `value` cannot be used with `rcode: NXDOMAIN`: a name that does not exist has no records -> \
           remove one of them",
        ],
    );
    check(
        &sound("", "").replace(
            "[ 127.0.0.1:9001 ]",
            "[ unix:/run/a ]\n    monitors: [ { type: udp, send: a } ]",
        ),
        &["error 8:25 `type: udp` does not fit a pool with a member on a unix socket -> \
           use another type, or give the member an IP address"],
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
fn words_of_leniency() {
    for (given, found, help) in [
        (
            "true",
            "the boolean true",
            "name some of [ bare_line_feeds, control_characters, unknown_status, repeated_chunked ]",
        ),
        (
            "all",
            "the text \"all\"",
            "name some of [ bare_line_feeds, control_characters, unknown_status, repeated_chunked ]",
        ),
        ("unknown_status", "the text \"unknown_status\"", "write [ unknown_status ]"),
        ("bare_linefeeds", "the text \"bare_linefeeds\"", "write [ bare_line_feeds ]"),
    ] {
        let error = format!(
            "error 8:14 `pools.p.lenient` must be a list, each item `bare_line_feeds`, \
             `control_characters`, `unknown_status` or `repeated_chunked`, found {found} -> {help}"
        );
        check_pool(&format!("lenient: {given}"), &[&error]);
    }
    check_pool(
        "lenient: [ bare_linefeeds ]",
        &["error 8:16 `pools.p.lenient[0]` must be `bare_line_feeds`, `control_characters`, \
           `unknown_status` or `repeated_chunked`, found the text \"bare_linefeeds\" -> did you mean `bare_line_feeds`?"],
    );
}

#[test]
fn statuses_that_are_tried_again() {
    for (keys, expected) in [
        ("    retry_on: [ 503, 429 ]\n    retry_non_idempotent: true\n", None),
        (
            "    retry_on: [ 503, 200 ]\n",
            Some(
                "error 8:22 a response of status 200 is not tried again -> name statuses from 400 to 599",
            ),
        ),
        (
            "    retry_on: [ 503, 503 ]\n",
            Some("warning 8:22 `retry_on` names the same twice -> remove one"),
        ),
        (
            "    retries: 0\n    retry_on: [ 503 ]\n",
            Some(
                "error 9:15 `retry_on` without `retries`: no other member is tried -> set `retries` to 1 or more, or remove it",
            ),
        ),
        (
            "    retry_non_idempotent: true\n",
            Some(
                "error 8:27 `retry_non_idempotent` has no effect without `retry_on` -> add `retry_on`, or remove it",
            ),
        ),
    ] {
        check(&sound("", keys), expected.as_slice());
    }
}
