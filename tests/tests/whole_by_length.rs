//! A response is whole when all of its Content-Length is there, however its HTTP/2 member ends behind that. The connection of
//! its client goes on.

use serde_json::Value;
use weir_tests::http2::{Frame, Http2Member, Peer, code, kind};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually};

/// The ways in which a member ends behind all of its Content-Length, in the place of END_STREAM, and what the log says.
const WAYS: [(&str, &str); 7] = [
    ("/reset", "member_abort"),
    ("/close", "member_abort"),
    ("/goaway", "member_abort"),
    ("/goaway-below", "member_abort"),
    ("/refused", "member_abort"),
    ("/silent", "member_timeout"),
    ("/garbage", "member_malformed"),
];

/// A member that ends its responses as their paths say. `length`: the announced length, with as many bytes sent.
fn unending(sent: &'static [u8], announced: &'static str) -> Http2Member {
    Http2Member::new(&[], move |peer, _| {
        while let Some(stream) = peer.next_request() {
            let path = peer.response(stream).path().to_owned();
            if path == "/next" {
                peer.answer_with(stream, b"next")?;
                continue;
            }
            peer.headers(stream, &[(":status", "200"), ("content-length", announced)], false);
            if !sent.is_empty() {
                peer.data(stream, sent, false);
            }
            match &*path {
                "/reset" => {
                    peer.send(&Frame::reset(stream, code::INTERNAL_ERROR));
                }
                "/goaway" => {
                    peer.send(&Frame::goaway(stream, code::INTERNAL_ERROR));
                    return Ok(());
                }
                // The member says that it has not processed the request.
                "/goaway-below" => {
                    peer.send(&Frame::goaway(0, code::NO_ERROR));
                }
                "/refused" => {
                    peer.send(&Frame::reset(stream, code::REFUSED_STREAM));
                }
                "/garbage" => {
                    peer.headers(stream, &[(":status", "200")], true);
                }
                "/silent" => {}
                _ => return Ok(()),
            }
        }
        Ok(())
    })
}

/// A member that breaks within the frame that completes its Content-Length.
#[test]
fn a_part_of_the_last_frame_is_not_the_whole() {
    let member = Http2Member::new(&[], |peer, _| {
        if let Some(stream) = peer.next_request() {
            peer.response(stream);
            let mut out = Vec::new();
            let head: [(&[u8], &[u8]); 2] = [(b":status", b"200"), (b"content-length", b"5")];
            Frame::headers(stream, &head, false).write(&mut out);
            Frame::new(kind::DATA, 0, stream, *b"whole").write(&mut out);
            out.truncate(out.len() - 1);
            peer.send_bytes(out)?;
        }
        Ok(())
    });
    let proxy = before(&member, "");
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    let got = client.try_response(false);
    assert!(got.as_ref().map_or(true, |got| !got.complete), "{got:?}");
    let mut peer = Peer::connect(proxy.address());
    let stream = peer.request("GET", "/", &[], true);
    let response = peer.response(stream);
    assert!(!response.ended && response.reset.is_some(), "{response:?}");
}

fn before(member: &Http2Member, more: &str) -> Proxy {
    let setup = Setup::new(&[member.address()]).http("http2: true").pool("http2: true");
    let setup = setup.http("response_body_timeout: 2s").access_log();
    let setup = if more.is_empty() { setup } else { setup.virtual_server(more) };
    Proxy::start(&setup.top("data_plane: { workers: 1 }"))
}

/// The reasons for the end of the requests so far, by path.
fn reasons(proxy: &mut Proxy, count: usize) -> Vec<(String, String)> {
    let text = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
    let mut told = Vec::new();
    eventually("all is logged", STEP_TIMEOUT, || {
        let output = proxy.process().output();
        let lines = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        told = lines
            .filter(|line| line["status"] == 200)
            .map(|line| (text(&line, "target"), text(&line, "termination")))
            .collect();
        told.len() >= count
    });
    told
}

#[test]
fn a_client_of_http1_gets_its_next_response_however_the_member_ends() {
    for (sent, announced) in [(&b"whole"[..], "5"), (b"", "0")] {
        let member = unending(sent, announced);
        for more in ["", "compression: {}"] {
            let mut proxy = before(&member, more);
            let mut client = proxy.client();
            for (way, _) in WAYS {
                // The second request is there before the member ends.
                client.send(format!(
                    "GET {way} HTTP/1.1\r\nHost: test\r\n\r\nGET /next HTTP/1.1\r\nHost: test\r\n\r\n"
                ));
                let first = client.response();
                assert_eq!((first.status, first.body.as_slice()), (200, sent), "{way}");
                assert_eq!(client.response().text(), "next", "{way}, pipelined");
                // This one comes on the same connection, too.
                assert_eq!(client.get("/next").text(), "next", "{way}, after it");
            }
            let reasons = reasons(&mut proxy, 3 * WAYS.len());
            for (way, why) in WAYS {
                assert!(reasons.contains(&(way.to_owned(), why.to_owned())), "{reasons:?}");
            }
        }
    }
}

#[test]
fn a_client_of_http2_has_a_whole_response_too() {
    let member = unending(b"whole", "5");
    let proxy = before(&member, "");
    let mut peer = Peer::connect(proxy.address());
    for (way, _) in WAYS {
        let stream = peer.request("GET", way, &[], true);
        let response = peer.response(stream);
        assert_eq!(response.text(), "whole", "{way}");
        // It would have got these trailers.
        let is_whole = way != "/garbage";
        assert_eq!((response.ended, response.reset.is_none()), (is_whole, is_whole), "{way}");
        assert_eq!(peer.get("/next").text(), "next", "{way}");
    }
    assert_eq!(peer.goaways, []);
}

#[test]
fn a_part_of_a_response_is_not_called_whole() {
    let member = unending(b"whol", "5");
    let proxy = before(&member, "");
    for (way, _) in WAYS {
        let mut client = proxy.client();
        client.send(format!("GET {way} HTTP/1.1\r\nHost: test\r\n\r\n"));
        let got = client.try_response(false);
        assert!(got.as_ref().map_or(true, |got| !got.complete), "{way}: {got:?}");
        let mut peer = Peer::connect(proxy.address());
        let stream = peer.request("GET", way, &[], true);
        peer.pump_until("its stream is reset", |peer| {
            peer.streams.get(&stream).is_some_and(|it| it.reset.is_some())
        });
        assert!(!peer.streams[&stream].ended, "{way}");
        assert_eq!(peer.get("/next").text(), "next", "{way}");
    }
}

#[test]
fn a_response_without_a_body_is_whole_with_its_head() {
    let member = Http2Member::new(&[], |peer, _| {
        while let Some(stream) = peer.next_request() {
            let path = peer.response(stream).path().to_owned();
            match path.strip_prefix('/').filter(|status| *status != "next") {
                Some(status) => {
                    peer.headers(stream, &[(":status", status)], false);
                    peer.send(&Frame::goaway(0, code::NO_ERROR));
                }
                None => peer.answer_with(stream, b"next")?,
            }
        }
        Ok(())
    });
    let proxy = before(&member, "");
    let mut client = proxy.client();
    for status in [204, 304] {
        assert_eq!(client.get(&format!("/{status}")).status, status);
        assert_eq!(client.get("/next").text(), "next", "behind {status}");
    }
}
