//! Requests share a connection to an HTTP/2 member. The actions or the end of one request must not affect the others.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::set_socket_recv_buffer_size;
use weir_tests::http2::{Frame, Http2Member, PREFACE, Peer, flag, kind, setting};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually};

fn before(members: &[SocketAddr]) -> Setup {
    Setup::new(members).http("http2: true").pool("http2: true").top("data_plane: { workers: 1 }")
}

#[test]
fn an_upload_in_tiny_frames_takes_no_other_request_with_it() {
    let is_open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&is_open);
    // The member sends a window update for each frame, with delays.
    let member = Http2Member::new(&[], move |peer, _| {
        let mut held = None;
        while let Some(stream) = peer.next_request() {
            if peer.streams[&stream].path() == "/held" {
                held = Some(stream);
                continue;
            }
            eventually("the upload has been sent", STEP_TIMEOUT, || gate.load(Ordering::Acquire));
            let request = peer.response(stream);
            peer.answer_with(stream, request.body.len().to_string().as_bytes())?;
            if let Some(held) = held.take() {
                peer.answer_with(held, b"held")?;
            }
        }
        Ok(())
    });
    let proxy = Proxy::start(&before(&[member.address()]));
    let mut other = Peer::connect(proxy.address());
    let held = other.request("GET", "/held", &[], true);
    other.settle();
    let mut peer = Peer::connect(proxy.address());
    peer.pump_until("its settings", |peer| !peer.settings.is_empty());
    let stream = peer.request("POST", "/upload", &[], false);
    for number in 0..2_000 {
        peer.data(stream, b"x", number == 1_999);
        if number % 50 == 0 {
            peer.settle();
        }
    }
    peer.settle();
    is_open.store(true, Ordering::Release);
    assert_eq!(peer.response(stream).assert_status(200).text(), "2000");
    assert_eq!(other.response(held).assert_status(200).text(), "held");
    assert_eq!(member.connection_count(), 1);
}

/// Receive buffer of a member that reads little at a time.
const NARROW_BYTES: usize = 8 * 1024;
/// The buffers count as full when nothing was accepted for this time.
const STANDSTILL: Duration = Duration::from_millis(200);

/// A member that accepts a tunnel and ends its own half. It reads the rest only after a signal. Reports the number of
/// received bytes, and whether the other half has ended.
fn slow_to_read() -> (SocketAddr, Sender<()>, Receiver<(usize, bool)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    set_socket_recv_buffer_size(&listener, NARROW_BYTES).expect("SO_RCVBUF");
    let address = listener.local_addr().expect("an address");
    let (go, told) = channel();
    let (tell, got) = channel();
    thread::spawn(move || -> io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(STEP_TIMEOUT))?;
        // The preface and SETTINGS. Other frames are ignored.
        stream.read_exact(&mut [0; PREFACE.len()])?;
        let mut hello = Frame::settings(&[
            (setting::ENABLE_CONNECT_PROTOCOL, 1),
            (setting::INITIAL_WINDOW_SIZE, 1 << 24),
        ])
        .bytes();
        Frame::window_update(0, 1 << 24).write(&mut hello);
        stream.write_all(&hello)?;
        let mut came = Vec::new();
        let mut buffer = [0; 4_096];
        while data_of(&came).heads == 0 {
            let count = stream.read(&mut buffer)?;
            came.extend_from_slice(&buffer[..count]);
        }
        let mut answer = Frame::headers(1, &[(b":status", b"200")], false).bytes();
        Frame::new(kind::DATA, flag::END_STREAM, 1, *b"down").write(&mut answer);
        stream.write_all(&answer)?;
        let _ = told.recv_timeout(STEP_TIMEOUT);
        // The member sends window updates as it reads.
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            came.extend_from_slice(&buffer[..count]);
            if data_of(&came).has_ended {
                break;
            }
            let _ = stream.write_all(&Frame::window_update(0, count as u32).bytes());
        }
        let Came { data, has_ended, .. } = data_of(&came);
        let _ = tell.send((data, has_ended));
        Ok(())
    });
    (address, go, got)
}

/// Sends as much data as weir and the kernel buffer for a member that does not read, and ends the stream. Returns the number
/// of bytes.
fn fill(peer: &mut Peer, stream: u32) -> usize {
    let mut sent = 0;
    loop {
        if peer.allowance(stream) == 0 {
            peer.pump_for(STANDSTILL);
        }
        let length = peer.allowance(stream).min(16_384);
        if length == 0 {
            peer.data(stream, b"", true);
            return sent;
        }
        peer.data(stream, &vec![b'x'; length], false);
        sent += length;
    }
}

#[test]
fn a_member_that_is_removed_gets_the_end_of_a_tunnel() {
    let (address, go, got) = slow_to_read();
    let other = Http2Member::telling(&[]);
    let proxy = Proxy::start(&before(&[address]));
    let mut peer = Peer::connect(proxy.address());
    peer.pump_until("its settings", |peer| !peer.settings.is_empty());
    let lines = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", "/tunnel"),
        (":authority", "test"),
        ("sec-websocket-version", "13"),
    ];
    let stream = peer.open(&lines, false);
    assert_eq!(peer.response_head(stream).status(), 200);
    proxy.reload_and_wait(&before(&[other.address()]));
    let sent = fill(&mut peer, stream);
    // Both halves have ended for weir, but the member has not read most of one half.
    eventually("the tunnel is over", STEP_TIMEOUT, || {
        proxy.metric("weir_virtual_server_requests_active", &[]) == 0.0
    });
    let leaving = |count: f64| {
        eventually("its connection leaves", STEP_TIMEOUT, || {
            proxy.metric("weir_member_connections_leaving", &[]) == count
        });
    };
    leaving(1.0);
    go.send(()).expect("a member that waits");
    assert_eq!(got.recv_timeout(STEP_TIMEOUT), Ok((sent, true)));
    leaving(0.0);
}

/// The received frames.
#[derive(Debug, Default)]
struct Came {
    heads: usize,
    /// The number of data bytes.
    data: usize,
    /// Whether a DATA frame has ended its stream.
    has_ended: bool,
}

fn data_of(mut bytes: &[u8]) -> Came {
    let mut came = Came::default();
    while let Some(header) = bytes.get(..9) {
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
        let Some(payload) = bytes.get(9..9 + length) else { break };
        came.heads += usize::from(header[3] == kind::HEADERS);
        if header[3] == kind::DATA {
            came.data += payload.len();
            came.has_ended |= header[4] & flag::END_STREAM != 0;
        }
        bytes = &bytes[9 + length..];
    }
    came
}
