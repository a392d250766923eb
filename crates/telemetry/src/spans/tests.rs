//! Span attributes that clients can influence.

use super::*;
use crate::protobuf::{Fields, Value};

/// The written attributes: `name=value`.
fn attributes(write: impl FnOnce(&mut Message<'_>)) -> Vec<String> {
    let mut out = Vec::new();
    write(&mut Message::new(&mut out));
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let shown = |(field, value)| {
        let (span::ATTRIBUTES, Value::Bytes(pair)) = (field, value) else { return None };
        let mut parts = Fields(pair);
        let (Some((1, Value::Bytes(key))), Some((2, Value::Bytes(any)))) =
            (parts.next(), parts.next())
        else {
            panic!("a key and a value");
        };
        let value = match Fields(any).next() {
            Some((1, Value::Bytes(value))) => text(value),
            Some((3, Value::Number(number))) => number.to_string(),
            other => panic!("{other:?}"),
        };
        Some(format!("{}={value}", text(key)))
    };
    Fields(&out).filter_map(shown).collect()
}

#[test]
fn hosts() {
    for (host, expected) in [
        ("shop.example", &["server.address=shop.example"][..]),
        ("shop.example:81", &["server.address=shop.example", "server.port=81"]),
        ("[2001:db8::1]", &["server.address=[2001:db8::1]"]),
        ("[2001:db8::1]:443", &["server.address=[2001:db8::1]", "server.port=443"]),
        ("a:99999", &["server.address=a"]),
        ("", &[]),
    ] {
        assert_eq!(attributes(|span| put_host(span, host.as_bytes())), expected, "{host}");
    }
}

#[test]
fn methods() {
    assert_eq!(attributes(|span| put_method(span, b"PUT")), ["http.request.method=PUT"]);
    assert_eq!(
        attributes(|span| put_method(span, b"put")),
        ["http.request.method=_OTHER", "http.request.method_original=put"]
    );
}

#[test]
fn targets_are_shown_without_secrets() {
    for (target, expected) in [
        (&b"/a/b"[..], &["url.path=/a/b"][..]),
        (b"/a?", &["url.path=/a"]),
        (b"/a?b=c&token=x&d", &["url.path=/a", "url.query=b=c&token=***&d"]),
        (b"/a?to%6ben=x", &["url.path=/a", "url.query=to%6ben=***"]),
        (b"http://a.example/b?c=1", &["url.path=/b", "url.query=c=1"]),
        (b"http://a.example", &["url.path=/"]),
        (b"/to?url=http://b/", &["url.path=/to", "url.query=url=http://b/"]),
        (b"*", &["url.path=*"]),
        (b"/\xff", &["url.path=/\u{fffd}"]),
    ] {
        let written = attributes(|span| put_path_and_query(span, target));
        assert_eq!(written, expected, "{}", target.escape_ascii());
    }
}

#[test]
fn clients_behind_proxies_have_no_port() {
    let names = ("client.address", "client.port");
    let put = |address: &str| {
        let address = address.parse().expect("an address");
        attributes(|span| put_address(span, names, Some(address)))
    };
    assert_eq!(put("192.0.2.1:80"), ["client.address=192.0.2.1", "client.port=80"]);
    assert_eq!(put("[::ffff:192.0.2.1]:0"), ["client.address=192.0.2.1"]);
    assert!(attributes(|span| put_address(span, names, None)).is_empty());
}

#[test]
fn answers_of_weirs_own_are_no_errors() {
    assert_eq!(cut_by(Termination::Complete), None);
    assert_eq!(cut_by(Termination::Policy), None);
    assert_eq!(cut_by(Termination::ClientAbort), Some("client_abort"));
    assert_eq!(cut_by(Termination::NoMember), Some("no_member"));
}
