//! Encoded bodies: weir inspects them decoded and forwards them as received.

use weir_testing::encode;
use weir_tests::http2::Peer;
use weir_tests::member::Member;
use weir_tests::proxy::Proxy;

use crate::setup::{Rules, ask, guarded, wait_for_lines};

const RULES: &str = r#"
SecRule ARGS "@contains attack" "id:3,phase:2,deny,status:403,msg:'an argument'"
"#;

/// A request with a form in these codings, in the order in which they were applied.
fn request(codings: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Encoding: {codings}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// The chunked form of that request, in small chunks.
fn chunked(codings: &str, body: &[u8]) -> Vec<u8> {
    let mut request = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Encoding: {codings}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    .into_bytes();
    for piece in body.chunks(11) {
        request.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        request.extend_from_slice(piece);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"0\r\n\r\n");
    request
}

/// Sends that request over HTTP/2. Returns the status.
fn over_http2(peer: &mut Peer, codings: &str, body: &[u8]) -> u16 {
    let form = ("content-type", "application/x-www-form-urlencoded");
    let stream = peer.request("POST", "/", &[form, ("content-encoding", codings)], false);
    let (first, second) = body.split_at(body.len() / 2);
    peer.data(stream, first, false);
    peer.data(stream, second, true);
    peer.response(stream).status()
}

#[test]
fn attacks_are_found_in_every_coding_and_members_get_what_came() {
    let member = Member::echo();
    let rules = Rules::new(RULES);
    let proxy = Proxy::start(&guarded(&member, &rules.key("mode: block")).http("http2: true"));
    let mut peer = Peer::connect(proxy.address());
    for (codings, done) in [
        ("gzip", &["gzip"][..]),
        ("x-gzip", &["gzip"]),
        ("deflate", &["deflate"]),
        ("deflate", &["raw-deflate"]),
        ("br", &["br"]),
        ("zstd", &["zstd"]),
        ("gzip, br", &["gzip", "br"]),
        ("zstd, deflate, gzip", &["zstd", "deflate", "gzip"]),
    ] {
        for (plain, status) in [("a=harmless&b=c", 200), ("a=b&c=an+att%61ck", 403)] {
            let encode = |body: Vec<u8>, coding: &&str| encode(coding, &body);
            let body = done.iter().fold(plain.as_bytes().to_vec(), encode);
            let before = member.request_count();
            assert_eq!(ask(&proxy, request(codings, &body)).status, status, "{codings}");
            assert_eq!(ask(&proxy, chunked(codings, &body)).status, status, "{codings}, chunked");
            assert_eq!(over_http2(&mut peer, codings, &body), status, "{codings}, HTTP/2");
            let got = member.requests();
            assert_eq!(got.len() - before, if status == 200 { 3 } else { 0 }, "{codings}");
            for got in &got[before..] {
                assert_eq!(got.body, body, "{codings}");
                assert_eq!(got.head.field("content-encoding"), Some(codings));
            }
        }
    }
}

#[test]
fn what_cannot_be_inflated_is_not_judged() {
    let member = Member::echo();
    let rules = Rules::new(RULES);
    let gzip = encode("gzip", b"a=harmless");
    let more = encode("gzip", b"&b=harmless");
    let bomb = encode("gzip", &[&b"a="[..], &vec![b'x'; 16 << 20]].concat());
    let long = encode("br", &[&b"a="[..], &vec![b'x'; 40 << 10]].concat());
    for (more_keys, is_blocked) in [("mode: block", true), ("mode: block, unjudged: pass", false)] {
        let key = rules.key(&format!("body_size_max: 32KiB, {more_keys}"));
        let mut proxy = Proxy::start(&guarded(&member, &key));
        let cases = [
            ("gzip", b"a=harmless".to_vec(), 400),
            ("gzip", gzip[..gzip.len() - 3].to_vec(), 400),
            ("gzip", [&gzip[..], &more].concat(), 400),
            ("gzip", [&gzip[..], b"x"].concat(), 400),
            ("compress", gzip.clone(), 400),
            ("gzip, gzip, gzip, gzip", gzip.clone(), 400),
            ("gzip\r\nContent-Encoding: gzip", encode("gzip", &gzip), 400),
            ("gzip", bomb.clone(), 413),
            ("br", long.clone(), 413),
        ];
        for (codings, body, status) in &cases {
            let before = member.request_count();
            let expected = if is_blocked { *status } else { 200 };
            for request in [request(codings, body), chunked(codings, body)] {
                assert_eq!(ask(&proxy, request).status, expected, "{codings}: {}", body.len());
            }
            let got = member.requests();
            assert_eq!(got.len() - before, if is_blocked { 0 } else { 2 }, "{codings}");
            assert!(got[before..].iter().all(|it| it.body == *body), "{codings}");
        }
        let told = wait_for_lines(&mut proxy, 2 * cases.len());
        for line in told {
            assert_eq!(line["outcome"], "unjudged", "{line}");
            assert!(line["reason"].as_str().is_some_and(|reason| reason.len() > 10), "{line}");
        }
    }
}

/// The bytes before an undecodable position are inspected.
#[test]
fn a_bad_end_hides_nothing() {
    let member = Member::echo();
    let rules = Rules::new(RULES);
    let key = rules.key("mode: block, unjudged: pass, body_size_max: 32KiB");
    let proxy = Proxy::start(&guarded(&member, &key));
    let padding = vec![b'x'; 100 << 10];
    let plain = [&b"a=attack&b="[..], &padding].concat();
    let gzip = encode("gzip", b"a=attack");
    for (codings, body) in [
        ("gzip", encode("gzip", &plain)),
        ("gzip", gzip[..gzip.len() - 1].to_vec()),
        ("gzip", [&gzip[..], b"x"].concat()),
        ("identity", plain.clone()),
    ] {
        assert_eq!(ask(&proxy, chunked(codings, &body)).status, 403, "{codings}");
    }
    assert_eq!(member.request_count(), 0);
}

/// The encoded bytes are also inspected, because some servers ignore the coding.
#[test]
fn a_coding_hides_nothing_from_those_who_do_not_know_it() {
    let member = Member::echo();
    let rules = Rules::new(RULES);
    let proxy = Proxy::start(&guarded(&member, &rules.key("mode: block")));
    let mut named = encode("gzip", b"a=harmless");
    named[3] |= 8;
    named.splice(10..10, *b"&q=an attack&\0");
    assert_eq!(ask(&proxy, request("gzip", &named)).status, 403);
    // A Content-Encoding that is not forwarded to the member has no effect.
    let only_here = "gzip\r\nConnection: content-encoding";
    assert_eq!(ask(&proxy, request(only_here, b"a=attack")).status, 403);
    assert_eq!(ask(&proxy, request(only_here, b"a=harmless")).status, 200);
    let gzip = encode("gzip", b"a=harmless");
    assert_eq!(ask(&proxy, request("gzip", &gzip)).status, 200);
}
