//! Budgets against floods of cancelled requests.

use std::collections::VecDeque;

use weir_http::h2::frame::{FrameHeader, PREFACE, flag, kind};
use weir_http::h2::hpack::HeaderBlock;
use weir_http::h2::{Allowance, Connection, ConnectionError, Flood, Limits};

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let header = FrameHeader { length: payload.len() as u32, kind, flags, stream };
    [&header.bytes()[..], payload].concat()
}

/// GET / with an indexed list of lines.
fn get(stream: u32) -> Vec<u8> {
    let lines = [&[0x82, 0x86, 0x84, 0x41, 1][..], b"a"].concat();
    frame(kind::HEADERS, flag::END_STREAM | flag::END_HEADERS, stream, &lines)
}

/// Feeds bytes to a server at given times.
fn feeder(limits: Limits) -> impl FnMut(&[u8], u64) -> Result<(), ConnectionError> {
    let mut connection = Connection::server(limits);
    let (mut out, mut block) = (Vec::new(), HeaderBlock::new());
    let mut feed = move |input: &[u8], now_ms| {
        let mut rest = input;
        while !rest.is_empty() {
            rest = &rest[connection.receive(rest, now_ms, &mut block, &mut out)?.consumed..];
        }
        Ok(())
    };
    let start = [&PREFACE[..], &frame(kind::SETTINGS, 0, 0, b"")].concat();
    assert_eq!(feed(&start, 0), Ok(()));
    feed
}

/// Calls with a deadline, each cancelled when that has passed, for a minute: of a second, `count` are begun.
fn cancelled_calls(limits: Limits, deadline_ms: u64, count: u64) -> Result<(), ConnectionError> {
    let mut feed = feeder(limits);
    let mut open = VecDeque::new();
    let mut next = 1;
    for step in 0..60 * count {
        let now_ms = 1_000 + step * 1_000 / count;
        while open.front().is_some_and(|(due_ms, _)| *due_ms <= now_ms) {
            let Some((due_ms, stream)) = open.pop_front() else { break };
            feed(&frame(kind::RST_STREAM, 0, stream, &[0, 0, 0, 8]), due_ms)?;
        }
        feed(&get(next), now_ms)?;
        open.push_back((now_ms + deadline_ms, next));
        next += 2;
    }
    Ok(())
}

#[test]
fn calls_that_are_cancelled_at_their_deadlines_are_no_flood() {
    for (deadline_ms, count) in [(50, 85), (50, 500), (10, 500), (200, 400), (1_000, 90)] {
        let outcome = cancelled_calls(Limits::DEFAULT, deadline_ms, count);
        assert_eq!(outcome, Ok(()), "{count} with {deadline_ms} ms");
    }
    let flood = Err(Flood::Resets.into());
    for (deadline_ms, count) in [(0, 85), (5, 500), (10, 2_000)] {
        let outcome = cancelled_calls(Limits::DEFAULT, deadline_ms, count);
        assert_eq!(outcome, flood, "{count} with {deadline_ms} ms");
    }
    let wide = Allowance { burst: 1_000, per_second: 100 };
    let limits = Limits { resets: wide, ..Limits::DEFAULT };
    assert_eq!(cancelled_calls(limits, 0, 85), Ok(()), "a wider budget");
}
