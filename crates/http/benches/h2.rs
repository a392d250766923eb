//! Time per request and per DATA frame of HTTP/2: `cargo bench -p weir-http --bench h2`; with the tests, each case runs
//! once. `cargo bench -p weir-http --bench h2 -- CASE COUNT` runs one case COUNT times, for callgrind.

use std::hint::black_box;
use std::time::Instant;

use weir_http::edits::RequestEdits;
use weir_http::h1;
use weir_http::h2::frame::{FrameHeader, PREFACE, flag, kind};
use weir_http::h2::hpack::{Decoder, Encoder, HeaderBlock, ListLimits};
use weir_http::h2::message::read_request;
use weir_http::h2::{Connection, Event, Limits, SendKind};
use weir_http::message::RequestHead;
use weir_http::path::TargetForm;

const LISTS: ListLimits =
    ListLimits { size_max: 16 * 1024, lines_max: 100, hard_size_max: 64 * 1024 };

const BROWSER: [(&str, &str); 14] = [
    (":method", "GET"),
    (":authority", "www.example.com"),
    (":scheme", "https"),
    (":path", "/images/photo.png?size=large"),
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("accept-language", "en-GB,en;q=0.5"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("referer", "https://www.example.com/gallery/"),
    ("cookie", "session=0123456789abcdef0123456789abcdef; theme=dark"),
    ("upgrade-insecure-requests", "1"),
    ("sec-fetch-dest", "document"),
    ("sec-fetch-mode", "navigate"),
    ("priority", "u=0, i"),
];

const CASES: [&str; 6] =
    ["decode-first", "decode-browser", "read-browser", "forward-browser", "exchange", "data-16k"];

/// A browser's request, as encoded on a new connection and after repetitions.
fn blocks() -> [Vec<u8>; 4] {
    let mut encoder = Encoder::new(4096);
    std::array::from_fn(|_| {
        let mut out = Vec::new();
        let mut lines = encoder.block(&mut out);
        for (name, value) in BROWSER {
            lines.field(name.as_bytes(), value.as_bytes());
        }
        out
    })
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    FrameHeader { length: payload.len() as u32, kind, flags, stream }.write(out);
    out.extend_from_slice(payload);
}

/// Runs a case `count` times.
fn run(case: &str, count: u64) {
    let blocks = blocks();
    let mut block = HeaderBlock::new();
    let mut head = RequestHead::new();
    let mut out = Vec::with_capacity(4096);
    match case {
        "exchange" => return exchange(&blocks, count),
        "data-16k" => return data(&blocks[0], count),
        "decode-first" => {
            for _ in 0..count {
                let mut decoder = Decoder::new();
                assert_eq!(decoder.decode(black_box(&blocks[0]), &LISTS, &mut block), Ok(()));
                black_box(&block);
            }
            return;
        }
        _ => {}
    }
    let mut decoder = Decoder::new();
    for block_before in &blocks[..3] {
        assert_eq!(decoder.decode(block_before, &LISTS, &mut block), Ok(()));
    }
    for _ in 0..count {
        out.clear();
        assert_eq!(decoder.decode(black_box(&blocks[3]), &LISTS, &mut block), Ok(()));
        if case != "decode-browser" {
            assert_eq!(read_request(&mut block, true, TargetForm::default(), &mut head), Ok(()));
        }
        if case == "forward-browser" {
            h1::write_request_head(&head, block.text(), &RequestEdits::NONE, &mut out);
        }
        black_box((&block, &head, &out));
    }
}

/// A connection after its preface and the first requests.
fn connection(blocks: &[Vec<u8>]) -> (Connection, u32) {
    let mut connection = Connection::server(Limits::DEFAULT);
    let mut input = PREFACE.to_vec();
    frame(kind::SETTINGS, 0, 0, b"", &mut input);
    let mut stream = 1;
    for block in blocks {
        frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, block, &mut input);
        stream += 2;
    }
    let (mut block, mut out) = (HeaderBlock::new(), Vec::new());
    let mut rest = input.as_slice();
    while !rest.is_empty() {
        let received =
            connection.receive(rest, 0, &mut block, &mut out).expect("a sound connection");
        rest = &rest[received.consumed..];
        if let Event::Headers { stream, .. } = received.event {
            connection.reset(stream, weir_http::h2::ErrorCode::CANCEL, &mut out);
        }
    }
    (connection, stream)
}

/// Receives a request and sends a small response.
fn exchange(blocks: &[Vec<u8>], count: u64) {
    let (mut connection, mut stream) = connection(&blocks[..3]);
    let (mut block, mut head) = (HeaderBlock::new(), RequestHead::new());
    let (mut input, mut out) = (Vec::new(), Vec::new());
    for _ in 0..count {
        input.clear();
        out.clear();
        let flags = flag::END_HEADERS | flag::END_STREAM;
        frame(kind::HEADERS, flags, stream, &blocks[3], &mut input);
        let received =
            connection.receive(black_box(&input), 0, &mut block, &mut out).expect("sound");
        assert_eq!(received.consumed, input.len());
        assert_eq!(read_request(&mut block, true, TargetForm::default(), &mut head), Ok(()));
        let sent = connection.send_headers(stream, SendKind::Response, false, &mut out, |lines| {
            lines.field(b":status", b"200");
            lines.field(b"server", b"nginx");
            lines.field(b"date", b"Sat, 21 Nov 2026 12:00:00 GMT");
            lines.field(b"content-type", b"text/plain");
            lines.field(b"content-length", b"128");
            lines.field(b"etag", b"\"65f0a1b2-80\"");
        });
        assert_eq!(sent, Ok(()));
        assert_eq!(connection.write_data_header(stream, 0, true, &mut out), Ok(()));
        black_box(&out);
        stream += 2;
    }
}

/// Receives a DATA frame and passes it on.
fn data(first: &[u8], count: u64) {
    let (mut connection, stream) = connection(&[]);
    let (mut block, mut out) = (HeaderBlock::new(), Vec::new());
    let mut input = Vec::new();
    frame(kind::HEADERS, flag::END_HEADERS, stream, first, &mut input);
    assert!(connection.receive(&input, 0, &mut block, &mut out).is_ok());
    input.clear();
    frame(kind::DATA, 0, stream, &[b'x'; 16 * 1024], &mut input);
    for _ in 0..count {
        out.clear();
        let received =
            connection.receive(black_box(&input), 0, &mut block, &mut out).expect("sound");
        assert_eq!(received.consumed, input.len());
        connection.release(stream, 16 * 1024, &mut out);
        black_box(&out);
    }
}

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if let [case, count] = arguments.as_slice() {
        return run(case, count.parse().expect("COUNT is a number"));
    }
    // `cargo bench` passes this argument. Under `cargo test`, one round only shows that it works.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let (rounds, count) = if is_bench { (9, 200_000) } else { (1, 1) };
    for case in CASES {
        let mut times_ns: Vec<f64> = (0..rounds)
            .map(|_| {
                let start = Instant::now();
                run(case, count);
                start.elapsed().as_nanos() as f64 / count as f64
            })
            .collect();
        times_ns.sort_by(f64::total_cmp);
        println!("{case:20} {:8.1} ns (median of {rounds})", times_ns[rounds / 2]);
    }
}
