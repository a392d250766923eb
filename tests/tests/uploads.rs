//! Uploads that start while another exchange is in flight, or that are sent to a second member. Each must arrive complete.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};

use weir_tests::client::Client;
use weir_tests::http2::{Frame, Http2Member, Peer, code, flag, kind};
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually};

const GET: &str = "GET /first HTTP/1.1\r\nHost: a\r\n\r\n";
const PUT: &str = "PUT /second HTTP/1.1\r\nHost: a\r\nContent-Length: 33\r\n\r\n";

/// A client, and the number of its bytes that weir has read.
struct Uploader<'a> {
    proxy: &'a Proxy,
    client: Client,
    read: f64,
}

impl<'a> Uploader<'a> {
    fn new(proxy: &'a Proxy) -> Self {
        let read = received(proxy);
        Self { proxy, client: proxy.client(), read }
    }

    /// Sends bytes and waits until weir has read them.
    #[track_caller]
    fn send_and_settle(&mut self, bytes: &str) {
        self.client.send(bytes);
        self.read += bytes.len() as f64;
        let read = self.read;
        eventually("weir has read it", STEP_TIMEOUT, || received(self.proxy) == read);
    }
}

fn received(proxy: &Proxy) -> f64 {
    proxy.metric("weir_virtual_server_received_bytes_total", &["\"main\""])
}

/// A member that responds to `/first` after a signal, and to other requests at once.
fn slow_at_first() -> (Member, Arc<AtomicBool>) {
    let is_open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&is_open);
    let member = Member::new(move |exchange| {
        if exchange.request.target() == "/first" {
            eventually("it may answer", STEP_TIMEOUT, || gate.load(Ordering::Acquire));
        }
        let length = exchange.request.body.len();
        exchange.answer(length.to_string())
    });
    (member, is_open)
}

/// A part of the bytes of one write.
#[derive(Debug, Clone, Copy)]
enum Piece {
    Get,
    Put,
    PutBegins,
    PutGoesOn,
    Body(usize),
}

/// A sequence of writes.
type Writes = &'static [&'static [Piece]];

fn text(pieces: &[Piece]) -> String {
    let one = |piece: &Piece| match *piece {
        Piece::Get => GET.to_owned(),
        Piece::Put => PUT.to_owned(),
        Piece::PutBegins => PUT[..20].to_owned(),
        Piece::PutGoesOn => PUT[20..].to_owned(),
        Piece::Body(length) => "x".repeat(length),
    };
    pieces.iter().map(one).collect()
}

#[test]
fn an_upload_that_begins_behind_a_request_under_way_is_read_on() {
    use Piece::*;
    // Each row: writes that weir reads during the GET, writes that it may have read by then, and bytes that are sent after
    // the GET's response.
    let table: [(Writes, Writes, &[Piece]); 8] = [
        (&[&[Get, Put, Body(33)]], &[], &[]),
        (&[&[Get, Put, Body(4)]], &[], &[Body(29)]),
        (&[&[Get, Put, Body(4)]], &[&[Body(29)]], &[]),
        (&[&[Get, Put, Body(4)]], &[&[Body(17)]], &[Body(12)]),
        (&[&[Get, Put]], &[], &[Body(33)]),
        (&[&[Get], &[Put, Body(4)]], &[&[Body(17)]], &[Body(12)]),
        (&[&[Get], &[Put]], &[&[Body(4)], &[Body(17)]], &[Body(12)]),
        (&[&[Get, PutBegins]], &[&[PutGoesOn, Body(4)]], &[Body(29)]),
    ];
    for (settled, meanwhile, afterwards) in table {
        let (member, is_open) = slow_at_first();
        let setup = Setup::new(&[member.address()]).http("body_timeout: 20s");
        let proxy = Proxy::start(&setup.top("data_plane: { workers: 1 }"));
        let mut uploader = Uploader::new(&proxy);
        for pieces in settled {
            uploader.send_and_settle(&text(pieces));
            member.wait_for_requests(1);
        }
        for pieces in meanwhile {
            uploader.client.send(text(pieces));
        }
        is_open.store(true, Ordering::Release);
        uploader.client.response().assert_status(200);
        uploader.client.send(text(afterwards));
        let response = uploader.client.response();
        let what = (settled, meanwhile, afterwards);
        assert_eq!((response.status, response.text().as_str()), (200, "33"), "{what:?}");
    }
}

#[test]
fn an_upload_that_begins_before_the_stream_of_an_answer_has_ended_is_read_on() {
    let (end, ends) = channel();
    let ends: Mutex<Receiver<()>> = Mutex::new(ends);
    let member = Http2Member::new(&[], move |peer, _| {
        while let Some(stream) = peer.next_request() {
            let request = peer.response(stream);
            let text = format!("{:2}", request.body.len());
            let lines: [(&[u8], &[u8]); 2] = [(b":status", b"200"), (b"content-length", b"2")];
            peer.send(&Frame::headers(stream, &lines, false));
            peer.data(stream, text.as_bytes(), false);
            if request.path() == "/first" {
                // The response is complete by its Content-Length, but the stream ends later.
                let ends = ends.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = ends.recv_timeout(STEP_TIMEOUT);
            }
            peer.send(&Frame::new(kind::DATA, flag::END_STREAM, stream, []));
        }
        Ok(())
    });
    let setup = Setup::new(&[member.address()]).pool("http2: true").http("body_timeout: 20s");
    let proxy = Proxy::start(&setup.top("data_plane: { workers: 1 }"));
    let mut uploader = Uploader::new(&proxy);
    uploader.send_and_settle(GET);
    assert_eq!(uploader.client.response().assert_status(200).text(), " 0");
    uploader.send_and_settle(&format!("{PUT}xxxx"));
    end.send(()).expect("a member that waits");
    uploader.client.send("x".repeat(29));
    let response = uploader.client.response();
    assert_eq!((response.status, response.text().as_str()), (200, "33"));
}

/// Size of an upload that weir sends again.
const AGAIN_BYTES: usize = 500;

/// The PUT requests at the members: the number of received bytes of the body, and whether it was complete.
type Puts = Arc<Mutex<Vec<(usize, bool)>>>;

/// A member that responds to GET after a signal, and resets the first PUT of all members.
fn unreliable(
    told: &Arc<Mutex<Receiver<()>>>,
    puts: &Puts,
    gets: &Arc<AtomicUsize>,
) -> Http2Member {
    let (told, puts, gets) = (Arc::clone(told), Arc::clone(puts), Arc::clone(gets));
    Http2Member::new(&[], move |peer, _| {
        while let Some(stream) = peer.next_request() {
            if peer.streams[&stream].field(":method") == Some("GET") {
                gets.fetch_add(1, Ordering::AcqRel);
                let told = told.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = told.recv_timeout(STEP_TIMEOUT);
                drop(told);
                peer.answer_with(stream, b"got")?;
                continue;
            }
            let request = peer.response(stream);
            let mut puts = puts.lock().unwrap_or_else(PoisonError::into_inner);
            puts.push((request.body.len(), request.ended));
            if puts.len() == 1 {
                peer.send(&Frame::reset(stream, code::INTERNAL_ERROR));
            } else {
                peer.answer_with(stream, b"put")?;
            }
        }
        Ok(())
    })
}

#[test]
fn an_upload_of_http_1_that_waits_for_its_second_member_arrives_whole() {
    check_upload_that_waits(Version::Http1);
}

#[test]
fn an_upload_of_http_2_that_waits_for_its_second_member_arrives_whole() {
    check_upload_that_waits(Version::Http2);
}

/// The version of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    Http1,
    Http2,
}

#[track_caller]
fn check_upload_that_waits(version: Version) {
    let (go, told) = channel();
    let (told, puts, gets) = (Arc::new(Mutex::new(told)), Puts::default(), Arc::default());
    let members = [(); 2].map(|()| unreliable(&told, &puts, &gets));
    let setup = Setup::new(&[])
        .member(&format!("{{ address: {}, connections_max: 1 }}", members[0].address()))
        .member(&format!("{{ address: {}, connections_max: 1 }}", members[1].address()))
        .pool("http2: true")
        .pool("queue: { timeout: 60s }")
        .http("http2: true")
        .top("data_plane: { workers: 1 }");
    let proxy = Proxy::start(&setup);
    let waiting = |count: f64| {
        eventually("so many wait", STEP_TIMEOUT, || {
            proxy.metric("weir_pool_queue_requests", &[]) == count
        });
    };
    let mut holders = [proxy.client(), proxy.client()];
    for holder in &mut holders {
        holder.send(GET);
    }
    eventually("both members are busy", STEP_TIMEOUT, || gets.load(Ordering::Acquire) == 2);
    let mut client = proxy.client();
    let mut peer = Peer::connect(proxy.address());
    let body = [b'x'; AGAIN_BYTES];
    let stream = if version == Version::Http2 {
        let length = AGAIN_BYTES.to_string();
        let stream = peer.request("PUT", "/put", &[("content-length", &length)], false);
        peer.data(stream, &body, true);
        stream
    } else {
        client
            .send(format!("PUT /put HTTP/1.1\r\nHost: a\r\nContent-Length: {AGAIN_BYTES}\r\n\r\n"));
        client.send(body);
        0
    };
    waiting(1.0);
    // One member becomes free and breaks off the upload, which then waits for the other member.
    go.send(()).expect("a member that waits");
    eventually("it was tried", STEP_TIMEOUT, || {
        puts.lock().unwrap_or_else(PoisonError::into_inner).len() == 1
    });
    waiting(1.0);
    go.send(()).expect("a member that waits");
    let status = match version {
        Version::Http1 => client.response().status,
        Version::Http2 => peer.response(stream).status(),
    };
    let puts = puts.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(*puts, [(AGAIN_BYTES, true); 2]);
    assert_eq!(status, 200);
}
