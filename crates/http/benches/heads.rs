//! Time per head and per chunk: `cargo bench -p weir-http`; with the tests, each case runs once.
//! `cargo bench -p weir-http -- CASE COUNT` runs one case COUNT times, for callgrind.

use std::hint::black_box;
use std::time::Instant;

use weir_http::edits::{FieldEdits, RequestEdits};
use weir_http::flaws::Flaws;
use weir_http::h1::{
    BodyDecoder, BodyStep, HeadLimits, Persistence, ResponseForward, parse_request,
    parse_response_of_member, write_request_head, write_response_head,
};
use weir_http::message::{Framing, Method, RequestHead, ResponseHead, Version};
use weir_http::path::TargetForm;

const LIMITS: HeadLimits = HeadLimits { head_size_max: 16 * 1024, headers_max: 100 };

const SMALL: &[u8] =
    b"GET /index.html HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: bench/1.0\r\n\
    Accept: */*\r\nAccept-Encoding: gzip\r\nConnection: keep-alive\r\n\r\n";

const BROWSER: &[u8] = b"GET /images/photo.png?size=large HTTP/1.1\r\nHost: www.example.com\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\nAccept-Language: en-GB,en;q=0.5\r\n\
    Accept-Encoding: gzip, deflate, br, zstd\r\nReferer: https://www.example.com/gallery/\r\n\
    Cookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\nConnection: keep-alive\r\n\
    Upgrade-Insecure-Requests: 1\r\n\r\n";

/// A request of a load generator, and the response of a plain member.
const PLAIN: &[u8] =
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1:18080\r\nuser-agent: h2load nghttp2/1.52.0\r\n\
    accept: */*\r\n\r\n";

const PLAIN_RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\n\
    Date: Sat, 21 Nov 2026 12:00:00 GMT\r\nContent-Type: text/plain\r\nContent-Length: 128\r\n\
    Connection: keep-alive\r\n\r\n";

/// A request of Chromium for a document.
const CHROMIUM: &[u8] = b"GET /shop/list?page=2&sort=price HTTP/1.1\r\nHost: www.example.com\r\n\
    Connection: keep-alive\r\nCache-Control: max-age=0\r\nsec-ch-ua-platform: \"Linux\"\r\n\
    Upgrade-Insecure-Requests: 1\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8\r\n\
    Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: navigate\r\nAccept-Encoding: gzip, deflate, br\r\n\
    Accept-Language: en-GB,en;q=0.9\r\nCookie: session=0123456789abcdef0123456789abcdef\r\n\r\n";

const API: &[u8] = b"GET /api/v2/customers/10482/orders/2026-11-21_0007.json HTTP/1.1\r\n\
    Host: www.example.com\r\nAccept: application/json\r\n\r\n";

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Sat, 21 Nov 2026 12:00:00 GMT\r\n\
    Content-Type: text/plain\r\nContent-Length: 128\r\nConnection: keep-alive\r\nETag: \"65f0a1b2-80\"\r\n\r\n";

const RESPONSE_WITHOUT_DATE: &[u8] = b"HTTP/1.1 200 OK\r\nServer: nginx\r\n\
    Content-Type: text/plain\r\nContent-Length: 128\r\nConnection: keep-alive\r\nETag: \"65f0a1b2-80\"\r\n\r\n";

const DATE: &[u8] = b"Sat, 21 Nov 2026 12:00:00 GMT";

const CASES: [&str; 11] = [
    "forward-plain",
    "forward-chromium",
    "forward-plain-response",
    "parse-small",
    "parse-browser",
    "parse-api",
    "forward-small",
    "forward-browser",
    "forward-response",
    "forward-undated",
    "chunks-1k",
];

/// Runs a case `count` times.
fn run(case: &str, count: u64) {
    let mut request = RequestHead::new();
    let mut response = ResponseHead::new();
    let (mut out, mut repaired) = (Vec::with_capacity(4096), Vec::new());
    let chunks = [b"400\r\n".as_slice(), &[b'x'; 1024], b"\r\n"].concat().repeat(16);
    let parse = |input: &[u8], head: &mut RequestHead| {
        assert!(parse_request(black_box(input), &LIMITS, TargetForm::default(), head).is_ok());
    };
    for _ in 0..count {
        out.clear();
        match case {
            "parse-small" => parse(SMALL, &mut request),
            "parse-browser" => parse(BROWSER, &mut request),
            "parse-api" => parse(API, &mut request),
            "forward-small" | "forward-browser" | "forward-plain" | "forward-chromium" => {
                let input = black_box(match case {
                    "forward-small" => SMALL,
                    "forward-browser" => BROWSER,
                    "forward-plain" => PLAIN,
                    _ => CHROMIUM,
                });
                parse(input, &mut request);
                write_request_head(&request, input, &RequestEdits::NONE, &mut out);
            }
            "forward-response" | "forward-undated" | "forward-plain-response" => {
                let input = black_box(match case {
                    "forward-response" => RESPONSE,
                    "forward-undated" => RESPONSE_WITHOUT_DATE,
                    _ => PLAIN_RESPONSE,
                });
                let parsed = parse_response_of_member(
                    black_box(input),
                    &LIMITS,
                    Method::Get,
                    Flaws::USUAL,
                    &mut repaired,
                    &mut response,
                );
                assert!(parsed.is_ok() && repaired.is_empty());
                let forward = ResponseForward {
                    framing: response.framing,
                    client_version: Version::Http11,
                    persistence: Persistence::KeepAlive,
                    date: Some(DATE),
                };
                write_response_head(&response, input, &forward, &FieldEdits::NONE, &mut out);
            }
            _ => decode_all(black_box(&chunks)),
        }
        black_box((&request, &response, &out));
    }
}

fn decode_all(mut input: &[u8]) {
    let mut decoder = BodyDecoder::of_member(Framing::Chunked, Flaws::USUAL);
    // In memory, as in a connection.
    let decoder = black_box(&mut decoder);
    while let Ok(BodyStep::Data { end, .. }) = decoder.decode(input) {
        input = &input[end..];
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
