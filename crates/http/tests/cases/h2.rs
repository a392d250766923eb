//! HTTP/2 cases: frames that a peer sends after its preface, and their outcome. Sections refer to RFC 9113 unless another
//! document is named.

use weir_http::h2::frame::{FrameHeader, flag, kind};
use weir_http::h2::hpack::HpackError;
use weir_http::h2::{ConnectionError, ErrorCode, Flood, Misbehaviour};

/// Frames that a server receives after the preface and SETTINGS, and the expected outcome.
pub struct FramesCase {
    pub name: &'static str,
    pub section: &'static str,
    pub received: Vec<u8>,
    pub expected: FramesExpected,
}

/// The outcome of receiving frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FramesExpected {
    /// The connection ends with this error.
    Fails(ConnectionError),
    /// One stream is reset with this error.
    Resets(u32, ErrorCode),
    /// The connection and the streams stay open.
    Lives,
}

/// Encodes a frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    FrameHeader { length: payload.len() as u32, kind, flags, stream }.write(&mut out);
    out.extend_from_slice(payload);
    out
}

/// Encodes a header block of literals without indexing.
pub fn block(lines: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in lines {
        out.push(0);
        for text in [name, value] {
            if text.len() < 127 {
                out.push(text.len() as u8);
            } else {
                out.extend_from_slice(&[127, (text.len() - 127) as u8 | 0x80]);
                out.push(((text.len() - 127) >> 7) as u8);
            }
            out.extend_from_slice(text.as_bytes());
        }
    }
    out
}

/// The header list of a minimal request.
pub const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "a")];

const END: u8 = flag::END_STREAM | flag::END_HEADERS;

/// A HEADERS frame of a request without a body.
pub fn get(stream: u32) -> Vec<u8> {
    frame(kind::HEADERS, END, stream, &block(&GET))
}

/// A HEADERS frame of a request whose body follows.
pub fn post(stream: u32) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_HEADERS, stream, &block(&GET))
}

/// As [`post`], with Content-Length.
pub fn post_of_length(stream: u32, length: &str) -> Vec<u8> {
    let lines = [&GET[..], &[("content-length", length)]].concat();
    frame(kind::HEADERS, flag::END_HEADERS, stream, &block(&lines))
}

fn data(stream: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    frame(kind::DATA, flags, stream, payload)
}

fn reset(stream: u32) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, &8_u32.to_be_bytes())
}

fn window(stream: u32, increment: u32) -> Vec<u8> {
    frame(kind::WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

fn setting(id: u16, value: u32) -> Vec<u8> {
    frame(kind::SETTINGS, 0, 0, &[&id.to_be_bytes()[..], &value.to_be_bytes()].concat())
}

fn priority(stream: u32, on: u32) -> Vec<u8> {
    frame(kind::PRIORITY, 0, stream, &[&on.to_be_bytes()[..], &[15]].concat())
}

fn case(
    name: &'static str,
    section: &'static str,
    frames: &[Vec<u8>],
    expected: FramesExpected,
) -> FramesCase {
    FramesCase { name, section, received: frames.concat(), expected }
}

fn fails(
    name: &'static str,
    section: &'static str,
    frames: &[Vec<u8>],
    error: impl Into<ConnectionError>,
) -> FramesCase {
    case(name, section, frames, FramesExpected::Fails(error.into()))
}

fn resets(
    name: &'static str,
    section: &'static str,
    frames: &[Vec<u8>],
    stream: u32,
    code: ErrorCode,
) -> FramesCase {
    case(name, section, frames, FramesExpected::Resets(stream, code))
}

fn lives(name: &'static str, section: &'static str, frames: &[Vec<u8>]) -> FramesCase {
    case(name, section, frames, FramesExpected::Lives)
}

/// All cases.
pub fn cases() -> Vec<FramesCase> {
    [frame_cases(), header_cases(), stream_cases(), data_cases(), control_cases()]
        .into_iter()
        .flatten()
        .collect()
}

fn frame_cases() -> Vec<FramesCase> {
    let large = vec![0; 16_385];
    let raw_length = |length: u32, kind: u8, stream: u32| {
        let mut out = Vec::new();
        FrameHeader { length, kind, flags: 0, stream }.write(&mut out);
        out.extend(vec![0; length as usize]);
        out
    };
    vec![
        lives("unknown frame", "4.1", &[frame(0x16, 0xff, 0, b"whatever"), get(1)]),
        lives("unknown frame on an idle stream", "5.5", &[frame(0x16, 0, 99, b""), get(1)]),
        lives("undefined flags", "4.1", &[frame(kind::PING, 0x16, 0, &[0; 8]), get(1)]),
        lives("ALTSVC and ORIGIN", "5.5", &[frame(0xa, 0, 0, b"ab"), frame(0xc, 0, 0, b"ab")]),
        lives("largest DATA", "4.2", &[post(1), data(1, 1, &vec![0; 16_384])]),
        fails("DATA too large", "4.2", &[post(1), data(1, 0, &large)], Misbehaviour::FrameTooLarge),
        fails(
            "HEADERS too large",
            "4.2",
            &[frame(kind::HEADERS, END, 1, &large)],
            Misbehaviour::FrameTooLarge,
        ),
        fails(
            "SETTINGS too large",
            "4.2",
            &[frame(kind::SETTINGS, 0, 0, &large)],
            Misbehaviour::FrameTooLarge,
        ),
        fails("RST_STREAM of 3", "6.4", &[post(1), raw_length(3, 3, 1)], Misbehaviour::FrameSize),
        resets(
            "PRIORITY of 4",
            "6.3",
            &[post(1), raw_length(4, 2, 1)],
            1,
            ErrorCode::FRAME_SIZE_ERROR,
        ),
        fails("PRIORITY of 4, idle", "6.3", &[raw_length(4, 2, 1)], Misbehaviour::FrameSize),
        fails("SETTINGS of 5", "6.5", &[raw_length(5, 4, 0)], Misbehaviour::FrameSize),
        fails("PING of 6", "6.7", &[raw_length(6, 6, 0)], Misbehaviour::FrameSize),
        fails("GOAWAY of 7", "6.8", &[raw_length(7, 7, 0)], Misbehaviour::FrameSize),
        fails("WINDOW_UPDATE of 3", "6.9", &[raw_length(3, 8, 0)], Misbehaviour::FrameSize),
        fails(
            "SETTINGS ack with a payload",
            "6.5",
            &[frame(kind::SETTINGS, flag::ACK, 0, &[0; 6])],
            Misbehaviour::FrameSize,
        ),
        fails("DATA on 0", "6.1", &[data(0, 0, b"a")], Misbehaviour::StreamZero),
        fails("HEADERS on 0", "6.2", &[get(0)], Misbehaviour::StreamZero),
        fails("PRIORITY on 0", "6.3", &[priority(0, 1)], Misbehaviour::StreamZero),
        fails("RST_STREAM on 0", "6.4", &[reset(0)], Misbehaviour::StreamZero),
        fails(
            "SETTINGS on 1",
            "6.5",
            &[frame(kind::SETTINGS, 0, 1, b"")],
            Misbehaviour::StreamNotZero,
        ),
        fails("PING on 1", "6.7", &[frame(kind::PING, 0, 1, &[0; 8])], Misbehaviour::StreamNotZero),
        fails(
            "GOAWAY on 1",
            "6.8",
            &[frame(kind::GOAWAY, 0, 1, &[0; 8])],
            Misbehaviour::StreamNotZero,
        ),
        fails(
            "PUSH_PROMISE of a client",
            "6.6",
            &[frame(kind::PUSH_PROMISE, flag::END_HEADERS, 1, &[0; 4])],
            Misbehaviour::PushPromise,
        ),
    ]
}

fn header_cases() -> Vec<FramesCase> {
    let whole = block(&GET);
    let (first, second) = whole.split_at(10);
    let open = |flags: u8| frame(kind::HEADERS, flags, 1, first);
    let more = |flags: u8, stream: u32| frame(kind::CONTINUATION, flags, stream, second);
    let padded = |padding: u8, flags: u8| {
        let payload = [&[padding][..], &whole, &vec![0; usize::from(padding)]].concat();
        frame(kind::HEADERS, END | flag::PADDED | flags, 1, &payload)
    };
    let compression = |error| Misbehaviour::Compression(error);
    vec![
        lives("CONTINUATION", "6.10", &[open(1), more(flag::END_HEADERS, 1)]),
        lives(
            "two CONTINUATIONs, one empty",
            "6.10",
            &[open(1), frame(kind::CONTINUATION, 0, 1, b""), more(flag::END_HEADERS, 1)],
        ),
        lives("padded HEADERS", "6.2", &[padded(9, 0)]),
        lives(
            "HEADERS with a priority",
            "6.2",
            &[frame(
                kind::HEADERS,
                END | flag::PRIORITY,
                1,
                &[&[0x80, 0, 0, 0, 255][..], &whole].concat(),
            )],
        ),
        fails(
            "CONTINUATION without HEADERS",
            "6.10",
            &[get(1), more(flag::END_HEADERS, 1)],
            Misbehaviour::Continuation,
        ),
        fails(
            "CONTINUATION on another stream",
            "6.10",
            &[open(1), more(flag::END_HEADERS, 3)],
            Misbehaviour::Continuation,
        ),
        fails(
            "DATA within a block",
            "6.2",
            &[open(0), data(1, 0, b"a")],
            Misbehaviour::Continuation,
        ),
        fails(
            "PRIORITY within a block",
            "4.3",
            &[open(1), priority(3, 0)],
            Misbehaviour::Continuation,
        ),
        fails("HEADERS within a block", "4.3", &[open(1), get(3)], Misbehaviour::Continuation),
        fails(
            "unknown frame within a block",
            "5.5",
            &[open(1), frame(0x16, 0, 0, b"")],
            Misbehaviour::Continuation,
        ),
        fails(
            "padding as long as the frame",
            "6.2",
            &[frame(kind::HEADERS, END | flag::PADDED, 1, &[5, 0x82, 0, 0, 0])],
            Misbehaviour::Padding,
        ),
        fails(
            "padding over the priority",
            "6.2",
            &[frame(
                kind::HEADERS,
                END | flag::PADDED | flag::PRIORITY,
                1,
                &[3, 0, 0, 0, 0, 1, 0x82, 0],
            )],
            Misbehaviour::Padding,
        ),
        resets(
            "HEADERS that depend on themselves",
            "RFC 7540 5.3.1",
            &[frame(
                kind::HEADERS,
                END | flag::PRIORITY,
                1,
                &[&[0, 0, 0, 1, 255][..], &whole].concat(),
            )],
            1,
            ErrorCode::PROTOCOL_ERROR,
        ),
        fails(
            "index 0",
            "RFC 7541 6.1",
            &[frame(kind::HEADERS, END, 1, &[0x80])],
            compression(HpackError::Index),
        ),
        fails(
            "index beyond the tables",
            "RFC 7541 2.3.3",
            &[frame(kind::HEADERS, END, 1, &[&whole[..], &[0xff, 0]].concat())],
            compression(HpackError::Index),
        ),
        fails(
            "size update at the end of a block",
            "RFC 7541 4.2",
            &[frame(kind::HEADERS, END, 1, &[&whole[..], &[0x20]].concat())],
            compression(HpackError::SizeUpdatePlace),
        ),
        fails(
            "size update beyond the setting",
            "RFC 7541 6.3",
            &[frame(kind::HEADERS, END, 1, &[&[0x3f, 0xe2, 0x1f][..], &whole].concat())],
            compression(HpackError::SizeUpdateTooLarge),
        ),
        fails(
            "padding of a string longer than 7 bits",
            "RFC 7541 5.2",
            &[frame(kind::HEADERS, END, 1, &[&whole[..], b"\0\x01x\x82\xf8\xff"].concat())],
            compression(HpackError::Huffman),
        ),
        fails(
            "padding of a string of zeros",
            "RFC 7541 5.2",
            &[frame(kind::HEADERS, END, 1, &[&whole[..], b"\0\x01x\x81\x00"].concat())],
            compression(HpackError::Huffman),
        ),
        fails(
            "string with the end-of-string symbol",
            "RFC 7541 5.2",
            &[frame(kind::HEADERS, END, 1, &[&whole[..], b"\0\x01x\x84\xff\xff\xff\xff"].concat())],
            compression(HpackError::Huffman),
        ),
        fails(
            "block that ends within a field",
            "4.3",
            &[frame(kind::HEADERS, END, 1, first)],
            compression(HpackError::Truncated),
        ),
        fails(
            "list far beyond the limit",
            "policy",
            &[frame(kind::HEADERS, END, 1, &{
                let value = "x".repeat(4000);
                let mut bomb = block(&[("a", &value)]);
                bomb[0] = 0x40;
                bomb.extend(vec![0xbe; 100]);
                bomb
            })],
            Flood::HeaderList,
        ),
    ]
}

fn stream_cases() -> Vec<FramesCase> {
    let trailers = |flags: u8| frame(kind::HEADERS, flags, 1, &block(&[("x", "y")]));
    vec![
        lives("requests on odd streams", "5.1.1", &[get(1), get(5), post(7)]),
        lives("trailers", "8.1", &[post(1), data(1, 0, b"ab"), trailers(END)]),
        fails("even stream", "5.1.1", &[get(2)], Misbehaviour::StreamId),
        fails("lower stream", "5.1.1", &[get(5), get(3)], Misbehaviour::StreamId),
        fails("DATA on an idle stream", "5.1", &[data(1, 0, b"a")], Misbehaviour::StreamIdle),
        fails("RST_STREAM on an idle stream", "5.1", &[reset(1)], Misbehaviour::StreamIdle),
        fails("WINDOW_UPDATE on an idle stream", "5.1", &[window(1, 1)], Misbehaviour::StreamIdle),
        lives("PRIORITY on an idle stream", "5.1", &[priority(9, 1), get(1)]),
        resets(
            "DATA on a stream half-closed by the peer",
            "5.1",
            &[get(1), data(1, 0, b"a")],
            1,
            ErrorCode::STREAM_CLOSED,
        ),
        resets(
            "HEADERS on a stream half-closed by the peer",
            "5.1",
            &[get(1), trailers(END)],
            1,
            ErrorCode::STREAM_CLOSED,
        ),
        lives("WINDOW_UPDATE on it", "5.1", &[get(1), window(1, 5)]),
        lives("RST_STREAM on it", "5.1", &[get(1), reset(1)]),
        resets(
            "DATA after RST_STREAM",
            "5.1",
            &[post(1), reset(1), data(1, 0, b"a")],
            1,
            ErrorCode::STREAM_CLOSED,
        ),
        resets(
            "HEADERS after RST_STREAM",
            "5.1",
            &[post(1), reset(1), trailers(END)],
            1,
            ErrorCode::STREAM_CLOSED,
        ),
        lives("WINDOW_UPDATE after RST_STREAM", "5.1", &[post(1), reset(1), window(1, 1)]),
        lives("RST_STREAM twice", "5.1", &[post(1), reset(1), reset(1)]),
        lives("PRIORITY after RST_STREAM", "5.1", &[post(1), reset(1), priority(1, 3)]),
        lives(
            "frames under way when we reset",
            "5.1",
            &[
                frame(kind::HEADERS, END | flag::PRIORITY, 1, &{
                    [&[0, 0, 0, 1, 0][..], &block(&GET)].concat()
                }),
                data(1, 0, b"abc"),
                trailers(END),
                window(1, 1),
            ],
        ),
        resets(
            "trailers that do not end the stream",
            "8.1",
            &[post(1), data(1, 0, b"a"), trailers(flag::END_HEADERS)],
            1,
            ErrorCode::PROTOCOL_ERROR,
        ),
        resets(
            "PRIORITY that depends on itself",
            "RFC 7540 5.3.1",
            &[post(1), priority(1, 1)],
            1,
            ErrorCode::PROTOCOL_ERROR,
        ),
        fails(
            "PRIORITY that depends on itself, idle",
            "RFC 7540 5.3.1",
            &[priority(3, 3)],
            Misbehaviour::SelfDependency,
        ),
        lives(
            "GOAWAY of a client",
            "6.8",
            &[get(1), frame(kind::GOAWAY, 0, 0, b"\0\0\0\0\0\0\0\0why")],
        ),
        lives(
            "PRIORITY_UPDATE",
            "RFC 9218 7.1",
            &[
                post(1),
                frame(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=1, i"),
                frame(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x09u=1, i"),
            ],
        ),
        fails(
            "PRIORITY_UPDATE of stream 0",
            "RFC 9218 7.1",
            &[frame(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\0u=1")],
            Misbehaviour::PriorityUpdate,
        ),
    ]
}

fn data_cases() -> Vec<FramesCase> {
    let protocol_error = ErrorCode::PROTOCOL_ERROR;
    vec![
        lives(
            "body of the announced length",
            "8.1.1",
            &[
                post_of_length(1, "4"),
                data(1, 0, b"ab"),
                data(1, flag::PADDED, b"\x02cd\0\0"),
                data(1, 1, b""),
            ],
        ),
        lives(
            "announced length, then trailers",
            "8.1.1",
            &[
                post_of_length(1, "2"),
                data(1, 0, b"ab"),
                frame(kind::HEADERS, END, 1, &block(&[("x", "y")])),
            ],
        ),
        resets("less", "8.1.1", &[post_of_length(1, "2"), data(1, 1, b"a")], 1, protocol_error),
        resets("more", "8.1.1", &[post_of_length(1, "2"), data(1, 0, b"abc")], 1, protocol_error),
        resets(
            "more in two frames",
            "8.1.1",
            &[post_of_length(1, "2"), data(1, 0, b"ab"), data(1, 1, b"c")],
            1,
            protocol_error,
        ),
        resets(
            "more behind padding",
            "8.1.1",
            &[post_of_length(1, "1"), data(1, flag::PADDED, b"\x01ab\0")],
            1,
            protocol_error,
        ),
        resets(
            "less, then trailers",
            "8.1.1",
            &[
                post_of_length(1, "2"),
                data(1, 0, b"a"),
                frame(kind::HEADERS, END, 1, &block(&[("x", "y")])),
            ],
            1,
            protocol_error,
        ),
        resets(
            "announced, and none",
            "8.1.1",
            &[frame(
                kind::HEADERS,
                END,
                1,
                &block(&[&GET[..], &[("content-length", "1")]].concat()),
            )],
            1,
            protocol_error,
        ),
        lives("padding alone", "6.1", &[post(1), data(1, flag::PADDED, b"\x02\0\0")]),
        fails(
            "padding as long as the frame",
            "6.1",
            &[post(1), data(1, flag::PADDED, b"\x03ab")],
            Misbehaviour::Padding,
        ),
        fails(
            "padded and empty",
            "6.1",
            &[post(1), data(1, flag::PADDED, b"")],
            Misbehaviour::FrameSize,
        ),
    ]
}

fn control_cases() -> Vec<FramesCase> {
    let max = 0x7fff_ffff;
    vec![
        lives("PING", "6.7", &[frame(kind::PING, 0, 0, b"12345678")]),
        lives("PING ack that nobody asked for", "6.7", &[frame(kind::PING, 1, 0, b"12345678")]),
        lives("unknown setting", "6.5.2", &[setting(0xff, 7), get(1)]),
        lives(
            "SETTINGS ack without need",
            "6.5",
            &[frame(kind::SETTINGS, 1, 0, b""), frame(kind::SETTINGS, 1, 0, b"")],
        ),
        fails("ENABLE_PUSH 2", "6.5.2", &[setting(2, 2)], Misbehaviour::SettingsValue),
        fails("window of 2^31", "6.5.2", &[setting(4, 1 << 31)], Misbehaviour::SettingsWindow),
        fails("frame size 16,383", "6.5.2", &[setting(5, 16_383)], Misbehaviour::SettingsValue),
        fails("frame size 2^24", "6.5.2", &[setting(5, 1 << 24)], Misbehaviour::SettingsValue),
        fails("WINDOW_UPDATE 0", "6.9", &[window(0, 0)], Misbehaviour::WindowIncrement),
        resets(
            "WINDOW_UPDATE 0 of a stream",
            "6.9",
            &[post(1), window(1, 0)],
            1,
            ErrorCode::PROTOCOL_ERROR,
        ),
        lives(
            "largest window",
            "6.9.1",
            &[window(0, max - 65_535), post(1), window(1, max - 65_535)],
        ),
        fails("window too large", "6.9.1", &[window(0, max)], Misbehaviour::WindowOverflow),
        resets(
            "window of a stream too large",
            "6.9.1",
            &[post(1), window(1, max)],
            1,
            ErrorCode::FLOW_CONTROL_ERROR,
        ),
        fails(
            "setting that makes a window too large",
            "6.9.2",
            &[setting(4, 100), post(1), window(1, max - 100), setting(4, 101)],
            Misbehaviour::SettingsWindow,
        ),
        lives(
            "setting that makes a window negative",
            "6.9.2",
            &[post(1), setting(4, 0), window(1, 5), get(3)],
        ),
    ]
}

/// Seeds of the connection fuzz target: each case as received by a server and by a client.
pub fn connections() -> impl Iterator<Item = Vec<u8>> {
    // These modes add the preface, and some of them answer requests.
    let modes = [2 | 8, 1 | 2, 2 | 16];
    let cases = cases().into_iter().filter(|case| case.received.len() <= 1000);
    let raw =
        cases.flat_map(move |case| modes.map(|mode| [&[mode, 5][..], &case.received].concat()));
    let script =
        [&[2 | 4 | 8, 5, kind::HEADERS, END, 1, block(&GET).len() as u8][..], &block(&GET)];
    raw.chain([script.concat()])
}
