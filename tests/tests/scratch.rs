//! Bytes that a worker has written for one connection must not reach another one. An HTTP/1 client of an HTTP/2 member
//! receives exactly its response, whatever other connections of the worker do between two parts of the response.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use weir_tests::client::Client;
use weir_tests::http2::{Frame, Http2Member, flag, kind};
use weir_tests::member::{Member, Then};
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::websocket::{self, WebSocket};
use weir_tests::{STEP_TIMEOUT, eventually};

/// An HTTP/2 member that sends the second part of each response after a signal.
fn in_parts() -> (Http2Member, Sender<()>) {
    let (go, told) = channel();
    let told: Mutex<Receiver<()>> = Mutex::new(told);
    let member = Http2Member::new(&[], move |peer, _| {
        while let Some(stream) = peer.next_request() {
            peer.send(&Frame::headers(stream, &[(b":status", b"200")], false));
            peer.data(stream, b"FIRST-HALF;", false);
            let told = told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.recv_timeout(STEP_TIMEOUT).is_ok() {
                peer.send(&Frame::new(kind::DATA, flag::END_STREAM, stream, *b"SECOND-HALF"));
            }
        }
        Ok(())
    });
    (member, go)
}

/// A weir with one worker. One virtual server is in front of the HTTP/2 member, and one in front of another member.
struct Bed {
    proxy: Proxy,
    other: Lease,
    members: (Http2Member, Member),
    go: Sender<()>,
}

impl Bed {
    fn before(other: Member) -> Self {
        let (member, go) = in_parts();
        let lease = Lease::new();
        let setup = Setup::new(&[member.address()])
            .pool("http2: true")
            .top("data_plane: { workers: 1 }")
            .also_pool(&format!("other: {{ members: [ {} ] }}", other.address()))
            .also_virtual_server(&format!(
                "other: {{ listen: \"{}\", pool: other, http: {{ http2: true }} }}",
                lease.address()
            ));
        Self { proxy: Proxy::start(&setup), other: lease, members: (member, other), go }
    }

    fn other_member(&self) -> &Member {
        &self.members.1
    }

    fn other(&self) -> Client {
        Client::connect(self.other.address())
    }

    /// Checks a response. `meanwhile` runs after the client has received the first part and before the second part arrives.
    #[track_caller]
    fn check(&self, what: &str, meanwhile: impl FnOnce()) {
        let mut client = self.proxy.client();
        client.send("GET /parts HTTP/1.1\r\nHost: a\r\n\r\n");
        let head = client.reader().head().expect("a head").expect("a head");
        assert!(head.has_token("transfer-encoding", "chunked"), "{head:?}");
        let mut first = Vec::new();
        while !first.ends_with(b"FIRST-HALF;\r\n") {
            let mut buffer = [0; 100];
            let count = client.reader().some(&mut buffer).expect("the first part");
            assert!(count > 0, "{what}: ended after {:?}", String::from_utf8_lossy(&first));
            first.extend_from_slice(&buffer[..count]);
        }
        meanwhile();
        self.go.send(()).expect("a member that waits");
        // The client half-closes and reads all bytes, because it might have received more than its response.
        client.finish();
        let rest = client.reader().rest();
        let text = String::from_utf8_lossy(&rest);
        assert_eq!(text, "b\r\nSECOND-HALF\r\n0\r\n\r\n", "{what}");
    }
}

#[test]
fn responses_of_weirs_own_stay_with_their_clients() {
    let bed = Bed::before(Member::named("other"));
    bed.check("nothing happens", || {});
    bed.check("another is answered 400", || {
        let mut other = bed.proxy.client();
        other.send("GET /secret HTTP/1.1\r\n\r\n").response().assert_status(400);
    });
    bed.check("another is answered on another virtual server", || {
        assert_eq!(bed.other().get("/secret").text(), "other");
    });
}

#[test]
fn requests_of_others_stay_with_their_members() {
    let (member, gate) = Member::gated("paid");
    let bed = Bed::before(member);
    let mut other = bed.other();
    bed.check("another uploads to another virtual server", || {
        // Longer than a body that weir copies together with its head.
        let body = "x".repeat(9_000);
        other.send(format!(
            "POST /pay HTTP/1.1\r\nHost: b\r\nAuthorization: Bearer secret\r\nCookie: secret\r\n\
             Content-Length: 9000\r\n\r\n{body}"
        ));
        bed.other_member().wait_for_requests(1);
    });
    gate.open();
    assert_eq!(other.response().assert_status(200).text(), "paid");
}

#[test]
fn interim_responses_stay_with_their_clients() {
    let is_open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&is_open);
    let bed = Bed::before(Member::new(move |exchange| {
        exchange.send("HTTP/1.1 103 Early Hints\r\nLink: </secret>\r\n\r\n")?;
        eventually("it may answer", STEP_TIMEOUT, || gate.load(Ordering::Acquire));
        exchange.answer("hinted")
    }));
    let mut other = bed.other();
    bed.check("another gets an interim response", || {
        other.send("GET /hinted HTTP/1.1\r\nHost: b\r\n\r\n");
        let hint = other.reader().head().expect("a hint").expect("a hint");
        assert_eq!(hint.field("link"), Some("</secret>"));
    });
    is_open.store(true, Ordering::Release);
    assert_eq!(other.response().assert_status(200).text(), "hinted");
}

#[test]
fn a_response_that_turns_out_malformed_stays_with_its_client() {
    let bed = Bed::before(Member::new(|exchange| {
        exchange.send(
            "HTTP/1.1 200 OK\r\nX-Secret: 1\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nsecret\r\nno size",
        )?;
        Ok(Then::Close)
    }));
    bed.check("another's response is malformed", || {
        let mut other = bed.other();
        other.send("GET /malformed HTTP/1.1\r\nHost: b\r\n\r\n");
        assert!(!other.response().complete);
    });
}

#[test]
fn tunnels_stay_with_their_ends() {
    let bed = Bed::before(websocket::echo_member());
    let mut socket = WebSocket::connect(bed.other.address());
    bed.check("another speaks through a tunnel", || {
        assert_eq!(socket.echo("secret").expect("an echo"), "secret");
    });
    bed.check("another opens a tunnel", || {
        let mut opened = WebSocket::connect(bed.other.address());
        assert_eq!(opened.echo("secret").expect("an echo"), "secret");
    });
    assert_eq!(socket.echo("still").expect("an echo"), "still");
}
