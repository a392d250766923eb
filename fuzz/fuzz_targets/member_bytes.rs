#![no_main]
//! A whole worker on the simulated kernel, and members that send any bytes, split anywhere. The clients are well-behaved.

#[path = "../src/bed.rs"]
mod bed;

use bed::{Bed, ConnectionEnd, SERVERS, Script, frames_of};
use weir_testing::frame::{Frame, PREFACE, flag, kind, setting};

/// Requests of clients over HTTP/1.
const REQUESTS: [&[u8]; 6] = [
    b"GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n",
    b"HEAD / HTTP/1.0\r\nHost: a\r\n\r\n",
    b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\nthrough the tunnel",
    b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
];

/// Requests of clients over HTTP/2, on two streams.
fn http2_requests(which: usize) -> Vec<u8> {
    let mut says = PREFACE.to_vec();
    Frame::settings(&[]).write(&mut says);
    let usual: [(&[u8], &[u8]); 3] =
        [(b":scheme", b"http"), (b":authority", b"a"), (b":path", b"/")];
    let method = |method: &'static [u8]| [&[(&b":method"[..], method)], &usual[..]].concat();
    let tunnel = [&method(b"CONNECT")[..], &[(b":protocol", b"websocket")]].concat();
    let (lines, data) = match which {
        0 => (method(b"GET"), None),
        1 => (method(b"HEAD"), None),
        2 => (method(b"PUT"), Some(&b"hello"[..])),
        3 => (method(b"POST"), Some(&b"hello"[..])),
        _ => (tunnel, Some(&b"through the tunnel"[..])),
    };
    for stream in [1, 3] {
        Frame::headers(stream, &lines, data.is_none()).write(&mut says);
        if let Some(data) = data {
            Frame::new(kind::DATA, flag::END_STREAM, stream, data).write(&mut says);
        }
    }
    says
}

/// Flags in the second byte: the client uses HTTP/2; the input follows a SETTINGS frame of the member; the input contains
/// frames in a short form; members send before they receive the request. The two lowest bits select the end of connections.
const HTTP2_CLIENT: u8 = 4;
const SETTINGS: u8 = 8;
const FRAMES: u8 = 16;
const HASTY: u8 = 32;
/// Further flags: members do not read; the network is bad.
const READS_NOT: u8 = 64;
const FOUL: u8 = 128;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [what, how, cut, seed, bytes @ ..] = input else { return };
    let (server, which) = (usize::from(what % 8) % SERVERS, usize::from(what / 8) % REQUESTS.len());
    let mut says = Vec::new();
    if how & SETTINGS != 0 {
        Frame::settings(&[(setting::ENABLE_CONNECT_PROTOCOL, 1)]).write(&mut says);
    }
    match how & FRAMES != 0 {
        true => says.extend(frames_of(bytes)),
        false => says.extend_from_slice(bytes),
    }
    let cut = if *cut == 0 { usize::MAX } else { usize::from(*cut) };
    let (reads, waits) = (how & READS_NOT == 0, how & HASTY == 0);
    let member = Script { says, cut, ending: ConnectionEnd::of(*how), reads, waits };
    let says = match how & HTTP2_CLIENT != 0 {
        true => http2_requests(which),
        false => REQUESTS[which].to_vec(),
    };
    // The client waits for answers and does not end its connection.
    let ending = ConnectionEnd::Silence;
    let mut bed = Bed::new(*seed, how & FOUL != 0, Some(member));
    bed.connect(server, Script { says, cut: 4_096, ending, reads: true, waits: false });
    bed.finish();
});
