//! Findings about settings without effect.

use super::*;

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
            "warning 5:31 `level_min` is above every configured level, at most {highest}: no level can fall -> \
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
        "http2: true\n    lenient: [ unknown_status, repeated_chunked ]",
        &[
            "warning 9:32 this is about HTTP/1, and the pool's members speak HTTP/2 (`http2`) -> remove it",
        ],
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
fn a_page_that_is_never_shown() {
    let page = "error_pages: { 421: { body: x }, 4xx: { body: y } }";
    check_server(
        page,
        &[
            "warning 5:25 weir answers 421 without a page, because the page could belong to another host name -> remove it",
        ],
    );
    let policy = "policies: { q: { rules: [ { then: [ { respond: { status: 421 } } ] } ] } }\n";
    check(&sound(&format!("    policies: [ q ]\n    {page}\n"), policy), &[]);
}
