//! `waf.cookies` and `waf.responses`: their meaning, and findings.

#[expect(dead_code, reason = "other tests use the rest")]
mod waf_support;

use waf_support::{Folder, file, findings, server};

#[test]
fn settings_arrive() {
    let waf = server(
        "waf: { mode: block, cookies: { sealed: [ a, \"b*\" ], secure: true, same_site: none }, \
         responses: { size_max: 2KiB, types: [ Text/HTML, \"image/*\" ] }, body_timeout: 5s }\n    \
         client_address: { trust: [ 10.0.0.0/8 ], header: X-Forwarded-For }",
    );
    let waf = waf.waf.expect("an inspection");
    let cookies = waf.cookies.as_ref().expect("cookies");
    assert_eq!((cookies.terms.sealed.len(), cookies.keys.is_some()), (2, false));
    assert!(cookies.attributes.secure && !cookies.attributes.http_only);
    assert_eq!(cookies.attributes.same_site, Some("None"));
    let responses = waf.responses.as_ref().expect("responses");
    assert_eq!((responses.bytes_max, waf.body_timeout_ms), (2_048, 5_000));
    for (content_type, expected) in [
        ("text/html", true),
        ("TEXT/HTML ; charset=utf-8", true),
        ("image/svg+xml", true),
        ("text/htmlx", false),
        ("text/plain", false),
        ("", false),
    ] {
        assert_eq!(responses.look_at(content_type.as_bytes()), expected, "{content_type}");
    }
    let waf = server("waf: { mode: block }").waf.expect("an inspection");
    assert!(waf.cookies.is_none() && waf.responses.is_none());
}

#[test]
fn what_is_no_setting_is_told() {
    for (section, expected) in [
        ("cookies: { sealed: [ \"a b\" ] }", "`a b` is not a valid cookie name"),
        ("cookies: { sealed: [ \"*a\" ] }", "`*a` is not a valid cookie name"),
        ("cookies: { same_site: none }", "browsers drop cookies with `SameSite=None`"),
        ("cookies: { sealed: [ a ] }, checks: off", "changed cookies are not detected"),
        ("responses: { types: [ html ] }", "`html` is not a media type"),
        ("responses: { types: [ \"*/*\" ] }", "`*/*` is not a media type"),
        ("responses: { size_max: 1B }", "size_max"),
    ] {
        let found = findings("weir.yaml", &file(&format!("waf: {{ mode: block, {section} }}"), ""));
        let text = format!("{found:?}");
        assert!(text.contains(expected), "{section}: {text}");
    }
}

#[test]
fn files_of_keys_are_read() {
    let folder = Folder::new(&[("good", &"1".repeat(64)), ("bad", "secret")]);
    let section = |keys: &str, sealed: &str| {
        folder.findings(&format!("waf: {{ mode: block, cookies: {{ key_file: {keys}{sealed} }} }}"))
    };
    let text = format!("{:?}", section("bad", ", sealed: [ a ]"));
    assert!(text.contains("line 1 is no key") && !text.contains("secret"), "{text}");
    assert!(format!("{:?}", section("good", "")).contains("`key_file` has no effect"));
    assert!(section("good", ", sealed: [ a ]").is_empty());
}

#[test]
fn attributes_for_tls_alone_are_told_where_clients_come_without() {
    let told = "clients come without TLS here: browsers drop the application's cookies";
    let found = |keys: &str| {
        let text = format!("waf: {{ mode: block, cookies: {{ http_only: true{keys} }} }}");
        findings("weir.yaml", &file(&text, "")).iter().filter(|it| it.contains(told)).count()
    };
    assert_eq!(found(", secure: true"), 1);
    assert_eq!(found(""), 0);
}
