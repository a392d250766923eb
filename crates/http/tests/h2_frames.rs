//! The table of HTTP/2 frames, with each case as a whole and cut at every position; floods; responses in both roles.

mod cases;
mod invariants;

use cases::h2::{FramesExpected, GET, block, frame, get, post, post_of_length};
use invariants::h2::{Habits, Listener, TIGHT, Told};
use weir_http::h2::frame::{FrameHeader, PREFACE, flag, kind};
use weir_http::h2::{
    Allowance, ConnectionError, ErrorCode, Event, Flood, HeadersKind, Limits, Misbehaviour,
    ResetBy, Role, SendKind,
};

fn start() -> Vec<u8> {
    [&PREFACE[..], &frame(kind::SETTINGS, 0, 0, b"")].concat()
}

fn server(limits: Limits) -> Listener {
    let mut listener = Listener::new(Role::Server, limits, Habits::default());
    assert!(listener.feed(&start()));
    listener.out.clear();
    listener.told.clear();
    listener
}

/// Decodes the frames in `out`.
fn frames(mut out: &[u8]) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some(bytes) = out.first_chunk() {
        let header = FrameHeader::read(bytes);
        let (payload, rest) = out[9..].split_at(header.length as usize);
        frames.push((header.kind, header.flags, header.stream, payload.to_vec()));
        out = rest;
    }
    assert!(out.is_empty(), "half a frame was written");
    frames
}

fn resets_in(out: &[u8]) -> Vec<(u32, ErrorCode)> {
    let code = |payload: &[u8]| u32::from_be_bytes(payload.try_into().expect("four bytes"));
    frames(out)
        .into_iter()
        .filter(|(kind, ..)| *kind == kind::RST_STREAM)
        .map(|(_, _, stream, payload)| (stream, ErrorCode(code(&payload))))
        .collect()
}

fn goaway_in(out: &[u8]) -> Option<ErrorCode> {
    let found = frames(out).into_iter().find(|(kind, ..)| *kind == kind::GOAWAY)?;
    Some(ErrorCode(u32::from_be_bytes(found.3[4..8].try_into().expect("four bytes"))))
}

#[test]
fn frames_come_to_what_the_table_says() {
    let cases = cases::h2::cases();
    assert!(cases.len() >= 90, "{} cases", cases.len());
    for case in &cases {
        let mut listener = server(Limits::DEFAULT);
        let lives = listener.feed(&case.received);
        let name = format!("{} ({})", case.name, case.section);
        let goaway = goaway_in(&listener.out);
        let resets = resets_in(&listener.out);
        match &case.expected {
            FramesExpected::Lives => {
                let last = listener.told.last();
                assert!(lives && goaway.is_none(), "{name}: {last:?}");
                let is_planned = case.name.contains("when we reset");
                assert!(resets.is_empty() || is_planned, "{name}: {resets:?}");
            }
            FramesExpected::Fails(error) => {
                assert_eq!(listener.told.last(), Some(&Told::Failed(*error)), "{name}");
                assert_eq!(goaway, Some(error.code()), "{name}");
                assert!(!listener.feed(b"") && !listener.feed(&get(99)), "{name}: is final");
            }
            FramesExpected::Resets(stream, code) => {
                assert!(lives && goaway.is_none(), "{name}: {:?}", listener.told.last());
                assert_eq!(resets, [(*stream, *code)], "{name}");
                assert!(listener.feed(&get(99)), "{name}: others go on");
                let told = Told::Headers {
                    stream: 99,
                    kind: HeadersKind::Request,
                    end_stream: true,
                    list: GET
                        .iter()
                        .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
                        .collect(),
                };
                assert_eq!(listener.told.last(), Some(&told), "{name}");
            }
        }
    }
}

#[test]
fn frames_come_to_the_same_however_they_are_cut() {
    for case in cases::h2::cases() {
        let bytes = [start(), case.received.clone()].concat();
        let run = |cut: usize| {
            let mut listener = Listener::new(Role::Server, Limits::DEFAULT, Habits::default());
            if listener.feed(&bytes[..cut]) {
                listener.feed(&bytes[cut..]);
            }
            (listener.told, listener.out)
        };
        let whole = run(bytes.len());
        let step = if bytes.len() > 600 { 97 } else { 1 };
        for cut in (0..bytes.len()).step_by(step) {
            assert_eq!(run(cut), whole, "{} cut at {cut}", case.name);
        }
        // The input is processed byte by byte and in pieces, in either role.
        if bytes.len() <= 1000 {
            for mode in [0, 1, 8, 16, 32, 48, 3, 3 | 8] {
                invariants::h2::check_connection(&[&[mode, 7][..], &bytes].concat());
            }
        }
    }
}

#[test]
fn a_connection_starts_with_the_preface() {
    for (input, expected) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], Misbehaviour::Preface),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r ", Misbehaviour::Preface),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x08\x06\0\0\0\0\0", Misbehaviour::FirstFrame),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\x01\0\0\0\0", Misbehaviour::FirstFrame),
    ] {
        let mut listener = Listener::new(Role::Server, Limits::DEFAULT, Habits::default());
        assert!(!listener.feed(input));
        assert_eq!(listener.told, [Told::Failed(ConnectionError::Misbehaved(expected))]);
        assert_eq!(goaway_in(&listener.out), Some(ErrorCode::PROTOCOL_ERROR));
    }
}

#[test]
fn settings_and_pings_are_answered() {
    let mut listener = server(Limits::DEFAULT);
    let settings = frame(kind::SETTINGS, 0, 0, b"\0\x04\0\0\0\x05");
    assert!(listener.feed(&[settings, frame(kind::PING, 0, 0, b"12345678")].concat()));
    assert_eq!(
        frames(&listener.out),
        [
            (kind::SETTINGS, flag::ACK, 0, b"".to_vec()),
            (kind::PING, flag::ACK, 0, b"12345678".to_vec())
        ]
    );
    assert_eq!(listener.told, [Told::Other(Event::SettingsChanged)]);
    assert!(listener.connection.awaits_settings_ack());
    assert!(listener.feed(&frame(kind::SETTINGS, flag::ACK, 0, b"")));
    assert!(!listener.connection.awaits_settings_ack());
}

#[test]
fn windows_bound_what_is_sent() {
    let mut listener = server(Limits::DEFAULT);
    let settings = frame(kind::SETTINGS, 0, 0, b"\0\x04\0\0\0\x05");
    assert!(listener.feed(&[settings, get(1)].concat()));
    let Listener { connection, out, .. } = &mut listener;
    let line = |lines: &mut weir_http::h2::hpack::BlockEncoder<'_>| lines.field(b":status", b"200");
    assert_eq!(connection.data_allowance(1), 0, "no head yet");
    assert_eq!(connection.send_headers(1, SendKind::Response, false, out, line), Ok(()));
    assert_eq!(connection.data_allowance(1), 5);
    assert!(connection.write_data_header(1, 6, false, out).is_err());
    assert_eq!(connection.write_data_header(1, 5, false, out), Ok(()));
    assert_eq!(connection.data_allowance(1), 0);
    connection.mark_stalled(1, 1000);
    assert_eq!(connection.oldest_stall(), Some((1, 1000)));
    listener.told.clear();
    // A window that opens by single bytes counts as a stall, too.
    for _ in 0..3 {
        assert!(listener.feed(&frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])));
        assert_eq!(listener.connection.write_data_header(1, 1, false, &mut listener.out), Ok(()));
        listener.connection.mark_stalled(1, 2000);
    }
    let opened = Told::Other(Event::WindowOpened { stream: Some(1) });
    assert_eq!(listener.told, vec![opened; 3]);
    assert_eq!(listener.connection.oldest_stall(), Some((1, 1000)));
    assert!(listener.feed(&frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 8, 0])));
    assert_eq!(listener.connection.write_data_header(1, 2048, true, &mut listener.out), Ok(()));
    assert_eq!(listener.connection.oldest_stall(), None);
    assert_eq!(listener.connection.stream_count(), 0);
}

#[test]
fn data_is_given_back_once() {
    let limits = Limits { stream_window_size: 100, ..Limits::DEFAULT };
    let mut listener = server(limits);
    assert!(listener.feed(&[frame(kind::SETTINGS, 1, 0, b""), post(1)].concat()));
    assert!(listener.feed(&frame(kind::DATA, flag::PADDED, 1, &[&[9][..], &[b'x'; 90]].concat())));
    assert_eq!(listener.out, b"");
    listener.connection.release(1, 39, &mut listener.out);
    assert_eq!(listener.out, b"", "49 with the padding");
    listener.connection.release(1, 1, &mut listener.out);
    assert_eq!(frames(&listener.out), [(kind::WINDOW_UPDATE, 0, 1, vec![0, 0, 0, 50])]);
    listener.out.clear();
    assert!(listener.feed(&frame(kind::DATA, 0, 1, &[b'x'; 60])));
    assert_eq!(resets_in(&listener.out), [(1, ErrorCode::FLOW_CONTROL_ERROR)]);
    let reset = Event::StreamReset {
        stream: 1,
        tag: 0,
        code: ErrorCode::FLOW_CONTROL_ERROR,
        by: ResetBy::Us,
        is_whole: false,
    };
    assert_eq!(listener.told.last(), Some(&Told::Other(reset)));
}

#[test]
fn too_many_streams_are_refused() {
    let mut listener = server(TIGHT);
    let frames = [post(1), post(3), post(5), frame(kind::DATA, 0, 5, b"ab")];
    assert!(listener.feed(&frames.concat()));
    assert_eq!(resets_in(&listener.out), [(5, ErrorCode::REFUSED_STREAM)]);
    assert_eq!(listener.connection.stream_count(), 2);
}

#[test]
fn a_graceful_end_takes_two_steps() {
    let mut listener = server(Limits::DEFAULT);
    assert!(listener.feed(&post(1)));
    listener.connection.announce_end(&mut listener.out);
    assert!(listener.feed(&post(3)), "it may not have heard");
    listener.connection.end(ErrorCode::NO_ERROR, "", &mut listener.out);
    assert!(listener.feed(&[post(5), frame(kind::DATA, 1, 5, b"ab")].concat()));
    let last: Vec<_> = frames(&listener.out)
        .into_iter()
        .filter(|(kind, ..)| *kind == kind::GOAWAY)
        .map(|(_, _, _, payload)| payload[..4].to_vec())
        .collect();
    assert_eq!(last, [vec![0x7f, 0xff, 0xff, 0xff], vec![0, 0, 0, 3]]);
    assert_eq!(listener.connection.stream_count(), 2);
    assert!(resets_in(&listener.out).is_empty());
}

#[test]
fn header_lists_beyond_the_limit_are_told_cut() {
    let mut listener = server(TIGHT);
    assert!(listener.feed(&frame(kind::HEADERS, 5, 1, &block(&GET))));
    let Some(Told::Headers { list, .. }) = listener.told.last() else { panic!("no head") };
    assert!(list.len() < 4);
}

/// Checks that a repeated frame causes the error within `count_max` repetitions, with bounded memory and output.
#[track_caller]
fn floods(flood: Flood, count_max: usize, before: &[u8], each: impl Fn(u32) -> Vec<u8>) {
    let mut listener = Listener::new(Role::Server, Limits::DEFAULT, Habits::default());
    assert!(listener.feed(&[start(), before.to_vec()].concat()));
    let memory_before = listener.connection.memory_size();
    for number in 0..=count_max {
        if !listener.feed(&each(number as u32)) {
            assert_eq!(listener.told.last(), Some(&Told::Failed(flood.into())));
            assert_eq!(goaway_in(&listener.out), Some(ErrorCode::ENHANCE_YOUR_CALM));
            assert!(listener.out.len() < 32 * 1024, "{} bytes of answers", listener.out.len());
            let memory = listener.connection.memory_size().saturating_sub(memory_before);
            assert!(memory < 128 * 1024, "{memory} bytes of memory");
            return;
        }
    }
    panic!("{flood:?}: not ended by {count_max}");
}

#[test]
fn floods_end_the_connection() {
    let id = |number: u32| number * 2 + 1;
    let reset = |stream: u32| frame(kind::RST_STREAM, 0, stream, &[0, 0, 0, 8]);
    floods(Flood::Resets, 200, b"", |number| [get(id(number)), reset(id(number))].concat());
    // The MadeYouReset attack: a stream error of any kind.
    for wrong in [
        frame(kind::WINDOW_UPDATE, 0, 0, &[0; 4]),
        frame(kind::WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
        frame(kind::DATA, 0, 0, b"after the end"),
        frame(kind::PRIORITY, 0, 0, &[0; 4]),
        frame(kind::HEADERS, 5, 0, b""),
    ] {
        floods(Flood::StreamErrors, 50, b"", |number| {
            let mut wrong = wrong.clone();
            wrong[5..9].copy_from_slice(&id(number).to_be_bytes());
            [get(id(number)), wrong].concat()
        });
    }
    floods(Flood::StreamErrors, 50, b"", |number| {
        let stream = id(number);
        [post_of_length(stream, "3"), frame(kind::DATA, 0, stream, b"12345")].concat()
    });
    floods(Flood::Pings, 50, b"", |_| frame(kind::PING, 0, 0, &[0; 8]));
    floods(Flood::Settings, 20, b"", |_| frame(kind::SETTINGS, 0, 0, b"\0\x04\0\0\0\x05"));
    floods(Flood::Priorities, 500, b"", |_| frame(kind::PRIORITY, 0, 9, &[0; 5]));
    floods(Flood::Priorities, 500, b"", |_| frame(0x10, 0, 0, b"\0\0\0\x01u=1"));
    floods(Flood::Priorities, 500, b"", |_| frame(0xee, 0, 0, b"anything"));
    floods(Flood::WindowUpdates, 1010, &get(1), |_| {
        frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])
    });
    floods(Flood::EmptyData, 100, &post(1), |_| frame(kind::DATA, 0, 1, b""));
    floods(Flood::EmptyData, 100, &post(1), |_| frame(kind::DATA, 8, 1, &[3, 0, 0, 0]));
    floods(Flood::TinyData, 22_000, &post(1), |_| frame(kind::DATA, 0, 1, b"x"));
    floods(Flood::TinyData, 22_000, &post(1), |_| frame(kind::DATA, 8, 1, &[2, b'x', 0, 0]));
    floods(Flood::ClosedStreams, 5000, &[post(1), reset(1)].concat(), |_| reset(1));
    let fragment = frame(kind::HEADERS, 1, 1, b"");
    floods(Flood::Continuations, 16, &fragment, |_| frame(kind::CONTINUATION, 0, 1, b""));
    floods(Flood::HeaderBlock, 4, &fragment, |_| frame(kind::CONTINUATION, 0, 1, &[0; 16_384]));
    let open: Vec<u8> = (0..100).flat_map(|number| post(id(number))).collect();
    floods(Flood::RefusedStreams, 200, &open, |number| post(id(number + 100)));
}

/// A server after the preface. The returned function processes bytes at a given time.
fn feeder(limits: Limits) -> impl FnMut(&[u8], u64) -> Result<(), ConnectionError> {
    let mut connection = weir_http::h2::Connection::server(limits);
    let (mut out, mut block) = (Vec::new(), weir_http::h2::hpack::HeaderBlock::new());
    let mut feed = move |input: &[u8], now_ms| {
        let mut rest = input;
        while !rest.is_empty() {
            rest = &rest[connection.receive(rest, now_ms, &mut block, &mut out)?.consumed..];
        }
        Ok(())
    };
    assert_eq!(feed(&start(), 0), Ok(()));
    feed
}

#[test]
fn budgets_come_back_with_time() {
    let limits = Limits { pings: Allowance { burst: 2, per_second: 1 }, ..Limits::DEFAULT };
    let ping = frame(kind::PING, 0, 0, &[0; 8]);
    let mut feed = feeder(limits);
    for now_ms in (0..10_000).step_by(1000) {
        assert_eq!(feed(&ping, now_ms), Ok(()));
    }
    assert_eq!(feed(&ping, 9000), Ok(()));
    assert_eq!(feed(&ping, 9000), Err(Flood::Pings.into()));
}

/// The same traffic in each second: DATA frames of one size on an open stream. Then, requests with a body of one byte.
#[test]
fn small_frames_that_are_of_use_are_no_flood() {
    const SECONDS: u64 = 12;
    let small = |size: usize| frame(kind::DATA, 0, 1, &vec![b'x'; size]);
    let flooded = Err(Flood::TinyData.into());
    for (name, frames, expected) in [
        ("keystrokes of a WebSocket", small(7).repeat(1_000), Ok(())),
        ("empty messages of gRPC", small(5).repeat(10_000), Ok(())),
        ("short messages of gRPC, as fast as they come", small(16).repeat(40_000), Ok(())),
        ("short ones among long ones", [small(1).repeat(12_200), small(16_384)].concat(), Ok(())),
        ("a byte each", small(1).repeat(14_000), flooded),
        ("half of what is useful", small(8).repeat(24_000), flooded),
    ] {
        let limits = Limits { stream_window_size: 0x7fff_ffff, ..Limits::DEFAULT };
        let limits = Limits { connection_window_size: 0x7fff_ffff, ..limits };
        let mut feed = feeder(limits);
        let begin = [frame(kind::SETTINGS, flag::ACK, 0, b""), post(1)].concat();
        assert_eq!(feed(&begin, 0), Ok(()));
        let outcome = (1..=SECONDS).try_for_each(|second| feed(&frames, second * 1000));
        assert_eq!(outcome, expected, "{name}");
    }
    let mut listener = server(Limits::DEFAULT);
    listener.habits = Habits { answers: true, releases: true, ..Habits::default() };
    for stream in (1..60_000).step_by(2) {
        let last = frame(kind::DATA, flag::END_STREAM, stream, b"x");
        assert!(listener.feed(&[post(stream), last].concat()), "bodies of a byte: {stream}");
        listener.told.clear();
        listener.out.clear();
    }
}

/// Many deadlines that expire at the same time, repeatedly, are no flood. Only a client that opens streams and resets them
/// immediately causes a flood.
#[test]
fn resets_of_streams_that_are_older_than_a_second_are_no_flood() {
    let resets = Allowance { burst: 200, per_second: 0 };
    let rounds = |age_ms: u64| -> Result<(), ConnectionError> {
        let mut feed = feeder(Limits { resets, ..Limits::DEFAULT });
        for round in 0..10 {
            let streams = (0..100).map(|number| (round * 100 + number) * 2 + 1);
            let now_ms = u64::from(round) * 5000;
            feed(&streams.clone().flat_map(get).collect::<Vec<u8>>(), now_ms)?;
            let reset = |stream| frame(kind::RST_STREAM, 0, stream, &[0, 0, 0, 8]);
            feed(&streams.flat_map(reset).collect::<Vec<u8>>(), now_ms + age_ms)?;
        }
        Ok(())
    };
    for (age_ms, outcome) in [(1001, Ok(())), (9, Err(Flood::Resets.into()))] {
        assert_eq!(rounds(age_ms), outcome, "{age_ms}");
    }
}

#[test]
fn padding_is_checked_though_a_frame_is_dropped() {
    let data = |stream: u32, payload: &[u8]| frame(kind::DATA, flag::PADDED, stream, payload);
    for (name, is_reset) in [("an answered request", false), ("a stream that was reset", true)] {
        for (payload, is_sound) in
            [(&[3, 0, 0, 0][..], true), (&[4, 0, 0, 0], false), (&[1], false), (&[0], true)]
        {
            let mut listener = answered(Limits::DEFAULT);
            if is_reset {
                let Listener { connection, out, .. } = &mut listener;
                connection.reset(1, ErrorCode::NO_ERROR, out);
            }
            // At once, and a byte at a time.
            let bytes = data(1, payload);
            let fed = listener.feed(&bytes);
            assert_eq!(fed, is_sound, "{name}: {payload:?}");
            let error = Told::Failed(Misbehaviour::Padding.into());
            assert_eq!(listener.told.contains(&error), !is_sound, "{name}: {payload:?}");
        }
    }
}

/// Frames from a server to a client that has opened the streams 1 (GET), 3 (HEAD) and 5 (CONNECT).
#[test]
fn responses_come_to_what_the_table_says() {
    let head = |stream: u32, flags: u8, lines: &[(&str, &str)]| {
        frame(kind::HEADERS, flags, stream, &block(lines))
    };
    let data = |stream: u32, flags: u8, payload: &[u8]| frame(kind::DATA, flags, stream, payload);
    let ok = |stream: u32| head(stream, 4, &[(":status", "200")]);
    let sized = |stream: u32, flags: u8| {
        head(stream, flags, &[(":status", "200"), ("content-length", "3")])
    };
    let protocol_error = |stream| FramesExpected::Resets(stream, ErrorCode::PROTOCOL_ERROR);
    let fails = |error: Misbehaviour| FramesExpected::Fails(error.into());
    use FramesExpected::Lives;
    for (name, frames, expected) in [
        ("body", vec![ok(1), data(1, 1, b"abc")], Lives),
        ("length", vec![sized(1, 4), data(1, 1, b"abc")], Lives),
        ("too short", vec![sized(1, 4), data(1, 1, b"ab")], protocol_error(1)),
        ("too long", vec![sized(1, 4), data(1, 0, b"abcd")], protocol_error(1)),
        ("none", vec![sized(1, 5)], protocol_error(1)),
        ("HEAD", vec![sized(3, 5)], Lives),
        ("HEAD, empty data", vec![sized(3, 4), data(3, 1, b"")], Lives),
        ("HEAD with a body", vec![sized(3, 4), data(3, 1, b"abc")], protocol_error(3)),
        ("tunnel", vec![sized(5, 4), data(5, 0, b"as much as it likes")], Lives),
        (
            "tunnel by 204",
            vec![head(5, 4, &[(":status", "204")]), data(5, 0, b"as much as it likes")],
            Lives,
        ),
        ("204", vec![head(1, 5, &[(":status", "204")])], Lives),
        (
            "304 with a length",
            vec![head(1, 5, &[(":status", "304"), ("content-length", "9")])],
            Lives,
        ),
        (
            "204 with a body",
            vec![head(1, 4, &[(":status", "204")]), data(1, 1, b"a")],
            protocol_error(1),
        ),
        ("interim", vec![head(1, 4, &[(":status", "103")]), ok(1), data(1, 1, b"")], Lives),
        ("interim at the end", vec![head(1, 5, &[(":status", "100")])], protocol_error(1)),
        ("data first", vec![data(1, 0, b"a")], protocol_error(1)),
        ("two heads", vec![ok(1), ok(1)], protocol_error(1)),
        ("trailers", vec![ok(1), data(1, 0, b"a"), head(1, 5, &[("x", "y")])], Lives),
        ("idle stream", vec![ok(7)], fails(Misbehaviour::StreamIdle)),
        ("stream of a server", vec![ok(2)], fails(Misbehaviour::StreamIdle)),
        ("PUSH_PROMISE", vec![frame(5, 4, 1, &[0; 4])], fails(Misbehaviour::PushPromise)),
        (
            "ENABLE_PUSH",
            vec![frame(4, 0, 0, b"\0\x02\0\0\0\x01")],
            fails(Misbehaviour::SettingsValue),
        ),
        (
            "PRIORITY_UPDATE",
            vec![frame(16, 0, 0, b"\0\0\0\x01")],
            fails(Misbehaviour::PriorityUpdate),
        ),
        (
            "after its end",
            vec![ok(1), data(1, 1, b""), data(1, 0, b"a")],
            fails(Misbehaviour::StreamClosed),
        ),
    ] {
        let mut listener = Listener::new(Role::Client, Limits::DEFAULT, Habits::default());
        listener.open(3);
        listener.out.clear();
        let lives = listener.feed(&[frame(kind::SETTINGS, 0, 0, b""), frames.concat()].concat());
        let found = match listener.told.last() {
            Some(Told::Failed(error)) => FramesExpected::Fails(*error),
            _ => match resets_in(&listener.out).first() {
                Some((stream, code)) => FramesExpected::Resets(*stream, *code),
                None => Lives,
            },
        };
        assert_eq!(found, expected, "{name}");
        assert_eq!(lives, !matches!(expected, FramesExpected::Fails(_)));
    }
}

#[test]
fn interim_responses_are_bounded() {
    let mut listener = Listener::new(Role::Client, Limits::DEFAULT, Habits::default());
    listener.open(1);
    assert!(listener.feed(&frame(kind::SETTINGS, 0, 0, b"")));
    let interim = frame(kind::HEADERS, 4, 1, &block(&[(":status", "103")]));
    for _ in 0..32 {
        assert!(listener.feed(&interim));
    }
    assert!(!listener.feed(&interim));
    assert_eq!(listener.told.last(), Some(&Told::Failed(Flood::InterimResponses.into())));
}

/// A server that does not need the rest of a request sends RST_STREAM(NO_ERROR) (RFC 9113 section 8.1). The streams 1 (GET),
/// 3 (HEAD) and 5 (CONNECT) are open.
#[test]
fn a_reset_without_an_error_behind_a_whole_response_is_its_end() {
    let head = |stream: u32, flags: u8, lines: &[(&str, &str)]| {
        frame(kind::HEADERS, flags, stream, &block(lines))
    };
    let sized = |stream: u32| head(stream, 4, &[(":status", "200"), ("content-length", "3")]);
    let plain = |stream: u32| head(stream, 4, &[(":status", "200")]);
    let data = |stream: u32, bytes: &[u8]| frame(kind::DATA, 0, stream, bytes);
    for (name, stream, answer, code, is_whole) in [
        ("all that was announced", 1, vec![sized(1), data(1, b"ab"), data(1, b"c")], 0, true),
        ("an error all the same", 1, vec![sized(1), data(1, b"abc")], 2, false),
        ("an error, and a part", 1, vec![sized(1), data(1, b"ab")], 2, false),
        ("less than was announced", 1, vec![sized(1), data(1, b"ab")], 0, false),
        ("nothing was announced", 1, vec![plain(1), data(1, b"abc")], 0, false),
        ("no head", 1, vec![], 0, false),
        ("an interim one", 1, vec![head(1, 4, &[(":status", "103")])], 0, false),
        ("one without a body", 1, vec![head(1, 4, &[(":status", "304")])], 0, true),
        ("to HEAD", 3, vec![sized(3)], 0, true),
        ("of a tunnel", 5, vec![sized(5), data(5, b"abc")], 0, false),
    ] {
        let mut listener = Listener::new(Role::Client, Limits::DEFAULT, Habits::default());
        listener.open(3);
        let reset = frame(kind::RST_STREAM, 0, stream, &u32::to_be_bytes(code));
        let frames = [frame(kind::SETTINGS, 0, 0, b""), answer.concat(), reset];
        assert!(listener.feed(&frames.concat()), "{name}");
        let told_whole = |told: &Told| matches!(told, Told::Data { end_stream: true, .. });
        assert_eq!(listener.told.iter().any(told_whole), is_whole, "{name}");
        let is_whole_in_error = name == "an error all the same";
        let event = Event::StreamReset {
            stream,
            tag: 0,
            code: ErrorCode(code),
            by: ResetBy::Peer,
            is_whole: is_whole_in_error,
        };
        assert_eq!(listener.told.contains(&Told::Other(event)), !is_whole, "{name}");
        assert_eq!(listener.connection.stream_count(), 2, "{name}");
    }
    // After END_STREAM, a stream is complete, even if a reset follows.
    let mut listener = Listener::new(Role::Client, Limits::DEFAULT, Habits::default());
    listener.open(2);
    let end = frame(kind::DATA, flag::END_STREAM, 3, b"");
    let reset = frame(kind::RST_STREAM, 0, 3, &[0; 4]);
    let frames = [frame(kind::SETTINGS, 0, 0, b""), sized(3), end, reset];
    assert!(listener.feed(&frames.concat()));
    let ended = Told::Data { stream: 3, bytes: Vec::new(), end_stream: true };
    assert!(listener.told.contains(&ended), "{:?}", listener.told);
}

/// A frame counts toward Content-Length with its header, but a response is whole only with its last byte.
#[test]
fn a_response_is_whole_with_its_last_byte() {
    let mut listener = Listener::new(Role::Client, Limits::DEFAULT, Habits::default());
    listener.open(1);
    let head = block(&[(":status", "200"), ("content-length", "3")]);
    let head = frame(kind::HEADERS, flag::END_HEADERS, 1, &head);
    assert!(listener.feed(&[frame(kind::SETTINGS, 0, 0, b""), head].concat()));
    let padded = frame(kind::DATA, flag::PADDED, 1, &[2, b'a', b'b', b'c', 0, 0]);
    let last = padded.len() - 2;
    for (at, byte) in padded.iter().enumerate() {
        assert!(listener.feed(std::slice::from_ref(byte)));
        let is_there = at + 1 >= last;
        assert_eq!(weir_http::h2::is_whole(&listener.connection, 1), is_there, "byte {at}");
    }
}

/// A server that has answered stream 1, a POST of 10 bytes, without reading its body.
fn answered(limits: Limits) -> Listener {
    let mut listener = server(limits);
    assert!(listener.feed(&[frame(kind::SETTINGS, 1, 0, b""), post_of_length(1, "10")].concat()));
    let Listener { connection, out, .. } = &mut listener;
    let line = |lines: &mut weir_http::h2::hpack::BlockEncoder<'_>| lines.field(b":status", b"403");
    assert_eq!(connection.send_headers(1, SendKind::Response, true, out, line), Ok(()));
    connection.leave_answered(1, 403, 5000, out);
    listener.out.clear();
    listener.told.clear();
    listener
}

#[test]
fn the_rest_of_an_answered_request_is_dropped_however_it_ends() {
    let data = |flags: u8, bytes: &[u8]| frame(kind::DATA, flags, 1, bytes);
    let trailers = |flags: u8| frame(kind::HEADERS, flags, 1, &block(&[("x", "y")]));
    let end = flag::END_STREAM;
    let error = |code| vec![(1, code)];
    for (name, frames, is_over, resets) in [
        ("it goes on", data(0, b"abc"), false, vec![]),
        ("it ends", data(end, b"0123456789"), true, vec![]),
        ("it ends short", [data(0, b"abc"), data(end, b"")].concat(), true, vec![]),
        ("it ends long", data(end, b"much more than it said"), true, vec![]),
        ("it ends with trailers", [data(0, b"a"), trailers(end | 4)].concat(), true, vec![]),
        ("padding", data(8 | end, &[3, 0, 0, 0]), true, vec![]),
        ("it is reset", frame(kind::RST_STREAM, 0, 1, &[0, 0, 0, 8]), true, vec![]),
        ("two heads", trailers(4), true, error(ErrorCode::PROTOCOL_ERROR)),
        (
            "a window of nothing",
            frame(kind::WINDOW_UPDATE, 0, 1, &[0; 4]),
            true,
            error(ErrorCode::PROTOCOL_ERROR),
        ),
    ] {
        let mut listener = answered(Limits::DEFAULT);
        assert!(listener.feed(&frames), "{name}");
        assert_eq!(resets_in(&listener.out), resets, "{name}");
        let is_data = |told: &Told| !matches!(told, Told::Other(Event::StreamReset { .. }));
        assert!(!listener.told.iter().any(is_data), "{name}: {:?}", listener.told);
        assert_eq!(listener.connection.stream_count(), usize::from(!is_over), "{name}");
        // The server sends a PING when the request ends, because curl 7.88 processes the response only when data arrives.
        let is_sign =
            |(kind, flags, ..): &(u8, u8, u32, Vec<u8>)| (*kind, *flags) == (kind::PING, 0);
        let has_sign = self::frames(&listener.out).iter().any(is_sign);
        assert_eq!(has_sign, name.starts_with("it ends") || name == "padding", "{name}");
        assert!(listener.feed(&[get(3), frame(kind::PING, 0, 0, &[0; 8])].concat()), "{name}");
    }
}

#[test]
fn the_rest_of_an_answered_request_is_bounded_in_bytes_and_time() {
    let limits = Limits { stream_window_size: 1000, unwanted_size_max: 2000, ..Limits::DEFAULT };
    let mut listener = answered(limits);
    let mut taken = 0;
    // Data is accepted until the window is exhausted.
    loop {
        assert!(listener.feed(&frame(kind::DATA, 0, 1, &[b'x'; 100])));
        if !resets_in(&listener.out).is_empty() {
            break;
        }
        taken += 100;
    }
    assert_eq!(taken, 3000);
    assert_eq!(resets_in(&listener.out), [(1, ErrorCode::FLOW_CONTROL_ERROR)]);

    let mut listener = answered(limits);
    assert_eq!(listener.connection.unwanted_until_ms(), Some(6000));
    listener.connection.end_unwanted(5999, &mut listener.out);
    assert_eq!((listener.out.len(), listener.connection.stream_count()), (0, 1));
    listener.connection.end_unwanted(6000, &mut listener.out);
    assert_eq!(resets_in(&listener.out), [(1, ErrorCode::NO_ERROR)]);
    assert_eq!(listener.connection.unwanted_until_ms(), None);
    // The client may have sent data before it receives the reset.
    listener.out.clear();
    assert!(listener.feed(&frame(kind::DATA, flag::END_STREAM, 1, b"abc")));
    assert!(listener.out.is_empty());
    // The response is incomplete, and must not look complete.
    assert!(listener.feed(&post(3)));
    listener.connection.leave_answered(3, 403, 6000, &mut listener.out);
    assert_eq!(resets_in(&listener.out), [(3, ErrorCode::CANCEL)]);
}

/// After a response without an error, a client may stop reading until it has sent its whole request. If the stream's window
/// has no room for the rest, the stream is reset at once.
#[test]
fn the_rest_of_a_request_that_was_answered_well_is_taken_if_its_window_has_room() {
    for (length, sent, status, is_reset) in [
        (Some("1000"), 0, 200, false),
        (Some("1001"), 0, 200, true),
        (Some("1001"), 0, 302, true),
        (Some("1001"), 0, 400, false),
        (Some("1001"), 1, 200, true),
        (Some("1001"), 501, 200, false),
        (Some("1001"), 1001, 200, false),
        (None, 0, 200, true),
        (None, 0, 503, false),
    ] {
        let limits = Limits { stream_window_size: 1000, ..Limits::DEFAULT };
        let mut listener = server(limits);
        listener.habits = Habits { releases: true, ..Habits::default() };
        assert!(listener.feed(&frame(kind::SETTINGS, flag::ACK, 0, b"")));
        assert!(listener.feed(&length.map_or(post(1), |length| post_of_length(1, length))));
        for _ in 0..sent {
            assert!(listener.feed(&frame(kind::DATA, 0, 1, b"x")));
        }
        listener.out.clear();
        let Listener { connection, out, .. } = &mut listener;
        let line = |lines: &mut weir_http::h2::hpack::BlockEncoder<'_>| {
            lines.field(b":status", status.to_string().as_bytes());
        };
        assert_eq!(connection.send_headers(1, SendKind::Response, true, out, line), Ok(()));
        let until_ms = connection.leave_answered(1, status, 0, out);
        let name = format!("{sent} of {length:?}, {status}");
        assert_eq!(until_ms.is_none(), is_reset, "{name}");
        let expected = if is_reset { vec![(1, ErrorCode::NO_ERROR)] } else { vec![] };
        assert_eq!(resets_in(&listener.out), expected, "{name}");
    }
    // The client has not acknowledged the server's SETTINGS. It reads them before the response, so their window size counts.
    let mut listener = server(Limits { stream_window_size: 100_000, ..Limits::DEFAULT });
    assert!(listener.feed(&post_of_length(1, "100000")));
    let Listener { connection, out, .. } = &mut listener;
    let line = |lines: &mut weir_http::h2::hpack::BlockEncoder<'_>| lines.field(b":status", b"200");
    assert_eq!(connection.send_headers(1, SendKind::Response, true, out, line), Ok(()));
    assert_eq!(connection.leave_answered(1, 200, 0, out), Some(1000));
}

#[test]
fn streams_that_were_answered_and_go_on_count_among_those_of_their_client() {
    let mut listener = answered(Limits { streams_max: 2, ..Limits::DEFAULT });
    assert!(listener.feed(&[post(3), post(5)].concat()));
    assert_eq!(resets_in(&listener.out), [(5, ErrorCode::REFUSED_STREAM)]);
    assert!(listener.feed(&[frame(kind::DATA, flag::END_STREAM, 1, b""), post(7)].concat()));
    assert_eq!(listener.connection.stream_count(), 2);
}

/// The stream is left while one of its frames has been received in part.
#[test]
fn a_frame_is_dropped_from_where_its_stream_was_left() {
    for (flags, is_over) in [(0, false), (flag::END_STREAM, true)] {
        let mut listener = server(Limits::DEFAULT);
        let whole = frame(kind::DATA, flags, 1, b"0123456789");
        assert!(listener.feed(&[post_of_length(1, "10"), whole[..13].to_vec()].concat()));
        let Listener { connection, out, .. } = &mut listener;
        let line =
            |lines: &mut weir_http::h2::hpack::BlockEncoder<'_>| lines.field(b":status", b"403");
        assert_eq!(connection.send_headers(1, SendKind::Response, true, out, line), Ok(()));
        connection.release(1, 4, out);
        connection.leave_answered(1, 403, 0, out);
        listener.told.clear();
        assert!(listener.feed(&[&whole[13..], &get(3)].concat()));
        assert!(matches!(listener.told[..], [Told::Headers { stream: 3, .. }]));
        assert_eq!(listener.connection.stream_count(), 1 + usize::from(!is_over));
    }
}

#[test]
fn a_request_that_ends_short_once_its_response_has_begun_is_cut_and_no_error() {
    let end = flag::END_STREAM;
    let trailers = frame(kind::HEADERS, end | 4, 1, &block(&[("x", "y")]));
    let data = |flags: u8, bytes: &[u8]| frame(kind::DATA, flags, 1, bytes);
    let short = |name, frames: Vec<u8>| (name, frames, true);
    let wrong = |name, frames: Vec<u8>| (name, frames, false);
    for (name, frames, is_short) in [
        short("nothing", data(end, b"")),
        short("some", data(end, b"abc")),
        short("some, padded", data(end | 8, b"\x02abc\0\0")),
        short("trailers", [data(0, b"abc"), trailers].concat()),
        wrong("too much", data(end, b"0123456789a")),
    ] {
        for has_begun in [false, true] {
            let mut listener = server(Limits::DEFAULT);
            assert!(listener.feed(&post_of_length(1, "10")));
            let Listener { connection, out, .. } = &mut listener;
            let kind = if has_begun { SendKind::Response } else { SendKind::Interim };
            let line = |lines: &mut weir_http::h2::hpack::BlockEncoder<'_>| {
                lines.field(b":status", if has_begun { b"200" } else { b"103" });
            };
            assert_eq!(connection.send_headers(1, kind, false, out, line), Ok(()));
            listener.out.clear();
            assert!(listener.feed(&frames), "{name}");
            let cut = Told::Other(Event::RequestCut { stream: 1, tag: 0 });
            let is_cut = is_short && has_begun;
            assert_eq!(listener.told.last() == Some(&cut), is_cut, "{name}: {:?}", listener.told);
            assert_eq!(resets_in(&listener.out).is_empty(), is_cut, "{name}");
            let is_open = listener.connection.data_allowance(1) > 0;
            assert_eq!(is_open, is_cut, "{name}: the response goes on");
        }
    }
}

#[test]
fn goaway_ends_the_streams_that_were_not_taken() {
    let mut listener = Listener::new(Role::Client, Limits::DEFAULT, Habits::default());
    listener.open(3);
    let goaway = frame(kind::GOAWAY, 0, 0, b"\0\0\0\x01\0\0\0\0bye");
    assert!(listener.feed(&[frame(kind::SETTINGS, 0, 0, b""), goaway].concat()));
    let told = Event::Goaway { last_stream: 1, code: ErrorCode::NO_ERROR };
    assert_eq!(listener.told.last(), Some(&Told::Other(told)));
    assert_eq!(listener.connection.streams().collect::<Vec<_>>(), [(1, 0)]);
    let again = listener.connection.open_stream(
        weir_http::h2::Answer::Usual,
        true,
        &mut listener.out,
        |_| {},
    );
    assert_eq!(again, Err(weir_http::h2::OpenError::Closing));
}

/// An invalid response does not affect other requests. The number of frames on closed streams is limited.
#[test]
fn stream_errors_of_a_server_do_not_end_the_connection() {
    const ANSWERS: u32 = 1000;
    let mut listener = Listener::new(Role::Client, Limits::DEFAULT, Habits::default());
    assert!(listener.feed(&frame(kind::SETTINGS, 0, 0, b"")));
    listener.out.clear();
    let id = |number: u32| number * 2 + 1;
    let reset = |stream: u32| frame(kind::RST_STREAM, 0, stream, &[0, 0, 0, 8]);
    let data = |stream: u32| frame(kind::DATA, 0, stream, b"too early");
    for number in 0..ANSWERS {
        listener.open(1);
        assert!(listener.feed(&data(id(number))));
    }
    assert_eq!(resets_in(&listener.out).len(), ANSWERS as usize);
    assert_eq!(listener.connection.stream_count(), 0);
    let again = [reset(id(ANSWERS - 1)), data(id(ANSWERS - 1))].concat();
    let times = (0..10_000).take_while(|_| listener.feed(&again)).count();
    assert_eq!(listener.told.last(), Some(&Told::Failed(Flood::ClosedStreams.into())));
    assert!(times < 5000, "{times}");
}
