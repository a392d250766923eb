//! Bodies are judged by what their bytes are: the type that a client states does not switch the inspection off.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use weir_tests::http2::{Frame, Http2Member, Peer};
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually};

use crate::setup::{ask, counted, guarded, wait_for_any, with_type};

const ATTACK: &str = "{\"id\":\"1' UNION SELECT password FROM users--\"}";
/// The beginning of a PNG file.
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0";
/// The beginning of an archive.
const ARCHIVE: &[u8] = b"PK\x03\x04\x14\0\0\0\x08\0";
/// Two messages of gRPC, with one field each.
const CALL: &[u8] = b"\0\0\0\0\x07\x0a\x05first\0\0\0\0\x02\x08\x01";

#[test]
fn no_type_switches_the_inspection_off() {
    let member = Member::echo();
    let proxy = Proxy::start(&guarded(&member, "waf: { mode: block }"));
    for content_type in [
        "application/json",
        "application/x-ndjson",
        "application/octet-stream",
        "application/grpc",
        "application/x-protobuf",
        "image/png",
        "text/plain",
    ] {
        ask(&proxy, with_type("/", content_type, ATTACK)).assert_status(403);
        ask(&proxy, with_type("/", content_type, "{\"id\":1}")).assert_status(200);
    }
    assert_eq!(member.request_count(), 7);
}

/// A head of a request with a body of this type and length.
fn head(content_type: &str, bytes: usize) -> String {
    format!(
        "POST / HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: test\r\nAccept: */*\r\n\
         Content-Type: {content_type}\r\nContent-Length: {bytes}\r\n\r\n"
    )
}

#[test]
fn a_file_passes_as_it_comes_when_its_beginning_is_known() {
    let seen = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&seen);
    let member = Member::streaming(move |exchange| {
        exchange.read_body(|bytes| {
            counter.fetch_add(bytes.len(), Ordering::Relaxed);
        })?;
        exchange.answer("done")
    });
    for mode in ["block", "detect"] {
        let waf = format!("waf: {{ mode: {mode}, body_size_max: 4KiB }}");
        let proxy = Proxy::start(&guarded(&member, &waf));
        let first = [ARCHIVE, &[0xee; 2_000]].concat();
        let rest = [0xee; 100_000];
        seen.store(0, Ordering::Relaxed);
        let mut client = proxy.client();
        client.send(head("application/zip", first.len() + rest.len()));
        client.send(&first);
        eventually("the member has the first part", STEP_TIMEOUT, || {
            seen.load(Ordering::Relaxed) == first.len()
        });
        client.send(rest);
        assert_eq!(client.response().text(), "done");
        assert_eq!(seen.load(Ordering::Relaxed), first.len() + rest.len());
        assert_eq!(counted(&proxy, "unjudged"), 0.0, "{mode}");
    }
    // A text of that length is judged, and is too long for that.
    let proxy = Proxy::start(&guarded(&member, "waf: { mode: block, body_size_max: 4KiB }"));
    let text = "an ordinary text ".repeat(1_000);
    ask(&proxy, with_type("/", "image/png", &text)).assert_status(413);
}

#[test]
fn an_image_is_held_until_code_was_looked_for_in_all_of_it() {
    let member = Member::echo();
    let waf = "waf: { mode: block, body_size_max: 4KiB, files_size_max: 256KiB }";
    let proxy = Proxy::start(&guarded(&member, waf));
    let image = [PICTURE, &[0xee; 100_000]].concat();
    let code = [&image[..], b"<?if(1)system($_GET[0]);?>", &[0; 10_000]].concat();
    for (body, status) in [(&image, 200), (&code, 403), (&[&image[..]; 3].concat(), 413)] {
        for content_type in ["image/png", "application/octet-stream"] {
            let mut client = proxy.client();
            client.send(head(content_type, body.len()));
            client.send(body);
            client.response().assert_status(status);
        }
    }
    assert_eq!(member.request_count(), 2);
    // In the other mode, it passes as it comes, and is logged.
    let proxy = Proxy::start(&guarded(&member, "waf: { mode: detect, body_size_max: 4KiB }"));
    let mut client = proxy.client();
    client.send(head("image/png", code.len()));
    client.send(&code);
    client.response().assert_status(200);
    eventually("the finding is counted", STEP_TIMEOUT, || counted(&proxy, "detected") == 1.0);
}

/// A member that answers each request with the body that it got.
fn echo_of_http2() -> Http2Member {
    Http2Member::new(&[], |peer, _| {
        while let Some(stream) = peer.next_request() {
            let request = peer.response(stream);
            if request.ended {
                let head: [(&[u8], &[u8]); 2] =
                    [(b":status", b"200"), (b"content-type", b"application/grpc")];
                peer.send_bytes(Frame::headers(stream, &head, false).bytes())?;
                peer.body(stream, request.text().as_bytes(), true)?;
            }
        }
        Ok(())
    })
}

#[test]
fn only_messages_are_a_call() {
    let member = echo_of_http2();
    let setup = Setup::new(&[member.address()])
        .virtual_server("waf: { mode: block }")
        .http("http2: true")
        .pool("http2: true");
    let mut proxy = Proxy::start(&setup);
    let fields = [("content-type", "application/grpc"), ("user-agent", "test"), ("accept", "*/*")];
    for (pieces, status) in [
        (&[CALL][..], 200),
        (&[&CALL[..3], &CALL[3..9], &CALL[9..]], 200),
        (&[b""], 200),
        (&[ATTACK.as_bytes()], 400),
        (&[b"id=1%27+UNION+SELECT+1--"], 400),
        (&[b"\0\0\0\0\x02&id=1%27+UNION+SELECT+1--"], 400),
        (&[b"\0\0"], 400),
    ] {
        let mut peer = Peer::connect(proxy.address());
        let stream = peer.request("POST", "/a.B/c", &fields, false);
        for (at, piece) in pieces.iter().enumerate() {
            peer.data(stream, piece, at + 1 == pieces.len());
        }
        let response = peer.response(stream);
        assert_eq!(response.status(), status, "{pieces:?}");
    }
    let told = wait_for_any(&mut proxy, |line| line["limit"] == "body");
    assert_eq!(told["outcome"], "unjudged", "{told:#?}");
    // The head of a call is judged at once.
    let mut peer = Peer::connect(proxy.address());
    let stream = peer.request("POST", "/?q=1'+UNION+SELECT+1--+x", &fields, false);
    assert_eq!(peer.response(stream).status(), 403);
}

/// Client and member of a call send data in turn, before either has ended.
#[test]
fn calls_go_on_while_they_are_open() {
    let member = Http2Member::new(&[], |peer, _| {
        while let Some(stream) = peer.next_request() {
            let head: [(&[u8], &[u8]); 2] =
                [(b":status", b"200"), (b"content-type", b"application/grpc")];
            peer.send_bytes(Frame::headers(stream, &head, false).bytes())?;
            peer.pump_until("the first message", |peer| peer.received > 0);
            peer.body(stream, b"heard", false)?;
            peer.response(stream);
            peer.body(stream, b"", true)?;
        }
        Ok(())
    });
    let setup = Setup::new(&[member.address()])
        .virtual_server("waf: { mode: block }")
        .http("http2: true")
        .pool("http2: true");
    let proxy = Proxy::start(&setup);
    let fields = [("content-type", "application/grpc"), ("user-agent", "test"), ("accept", "*/*")];
    let mut peer = Peer::connect(proxy.address());
    let stream = peer.request("POST", "/a.B/c", &fields, false);
    peer.data(stream, CALL, false);
    peer.pump_until("the member's message", |peer| peer.received == 5);
    peer.data(stream, CALL, true);
    assert_eq!(peer.response(stream).text(), "heard");
}
