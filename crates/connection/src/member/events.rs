//! What the bytes of a member with HTTP/2 mean, for the exchanges whose requests the connection carries.

use std::ops::Range;

use weir_exchange::arena::{ExchangeKey, MemberStreamKey};
use weir_exchange::parts::failure::{MemberFailure, Progress};
use weir_http::h2::hpack::HeaderBlock;
use weir_http::h2::{
    ConnectionError, ErrorCode, Event, HeadersKind, ReceiveResult, ResetBy, is_whole,
};

use crate::member::http2::MemberHttp2;
use crate::member::streams::MemberStream;

/// What has happened on a connection.
pub enum MemberEvent {
    /// Nothing that concerns an exchange.
    Nothing,
    /// The head of a response is in the header block.
    Head {
        /// The exchange.
        exchange: ExchangeKey,
        /// The id of its stream.
        stream: u32,
        /// Whether the stream ends with it.
        is_end: bool,
    },
    /// The trailers of a response are in the header block.
    Trailers {
        /// The exchange.
        exchange: ExchangeKey,
        /// The id of its stream.
        stream: u32,
    },
    /// Data of a response.
    Data {
        /// The exchange.
        exchange: ExchangeKey,
        /// Where the data is in the input.
        data: Range<usize>,
        /// Whether the stream ends with it.
        is_end: bool,
    },
    /// A stream was reset.
    Reset {
        /// The exchange.
        exchange: ExchangeKey,
        /// Why, or by whom.
        reset: StreamReset,
    },
    /// The member takes no further requests on the connection, and has not read these, or answers them no more.
    GoesAway {
        /// The exchanges whose streams are lost.
        lost: Vec<(ExchangeKey, Progress)>,
        /// Whether the connection has no streams.
        is_idle: bool,
    },
    /// The window of a stream has opened.
    StreamOpened(ExchangeKey),
    /// The window of the connection has opened, or SETTINGS have arrived, which may open windows.
    WindowOpened {
        /// How many streams the member permits, by these SETTINGS.
        streams_max: Option<u32>,
    },
}

/// How a stream was reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamReset {
    /// Whether it was reset without an error.
    pub is_orderly: bool,
    /// Whose failure it is.
    pub why: MemberFailure,
    /// What had become of the request.
    pub progress: Progress,
}

impl StreamReset {
    fn of(code: ErrorCode, by: ResetBy, is_whole: bool) -> Self {
        let why = match by {
            ResetBy::Us => MemberFailure::Malformed,
            ResetBy::Peer => MemberFailure::Abort,
        };
        let progress = match code {
            _ if is_whole => Progress::Whole,
            ErrorCode::REFUSED_STREAM => Progress::Unread,
            _ => Progress::Begun,
        };
        Self { is_orderly: code == ErrorCode::NO_ERROR, why, progress }
    }
}

impl MemberHttp2 {
    /// Takes received bytes up to the next event. Returns how many, and the event; `None`: more bytes are needed.
    pub fn received(
        &mut self,
        input: &[u8],
        now_ms: u64,
        block: &mut HeaderBlock,
    ) -> Result<Option<(usize, MemberEvent)>, ConnectionError> {
        let (connection, out) = (&mut self.frames.connection, &mut self.frames.out);
        let ReceiveResult { consumed, event } = connection.receive(input, now_ms, block, out)?;
        let event = match event {
            Event::NeedMore => return Ok(None),
            Event::Headers { stream, tag, kind, end_stream } => match self.exchange_on(tag) {
                None => MemberEvent::Nothing,
                Some(exchange) if kind == HeadersKind::Trailers => {
                    MemberEvent::Trailers { exchange, stream }
                }
                Some(exchange) => MemberEvent::Head { exchange, stream, is_end: end_stream },
            },
            Event::Data { stream, tag, start, end, end_stream } => match self.exchange_on(tag) {
                Some(exchange) => {
                    MemberEvent::Data { exchange, data: start..end, is_end: end_stream }
                }
                None => {
                    let bytes = (end - start) as u32;
                    self.frames.connection.release(stream, bytes, &mut self.frames.out);
                    MemberEvent::Nothing
                }
            },
            Event::StreamReset { tag, code, by, is_whole, .. } => match self.exchange_on(tag) {
                None => MemberEvent::Nothing,
                Some(exchange) => {
                    MemberEvent::Reset { exchange, reset: StreamReset::of(code, by, is_whole) }
                }
            },
            Event::Goaway { last_stream, .. } => self.goes_away(last_stream),
            Event::WindowOpened { stream: Some(stream) } => {
                let tag = self.frames.connection.tag(stream);
                let exchange = tag.and_then(|tag| self.exchange_on(tag));
                exchange.map_or(MemberEvent::Nothing, MemberEvent::StreamOpened)
            }
            Event::WindowOpened { stream: None } => MemberEvent::WindowOpened { streams_max: None },
            Event::SettingsChanged => {
                self.has_settings = true;
                let settings = self.frames.connection.peer_settings();
                MemberEvent::WindowOpened { streams_max: Some(settings.streams_max) }
            }
            Event::SettingsAcknowledged
            | Event::RequestCut { .. }
            | Event::Pong { .. }
            | Event::Priority { .. } => MemberEvent::Nothing,
        };
        Ok(Some((consumed, event)))
    }

    /// The exchange whose request a stream carries; `None`: it has left the stream.
    fn exchange_on(&self, tag: u64) -> Option<ExchangeKey> {
        let stream = self.streams.get(MemberStreamKey::from_bits(tag)?)?;
        Some(stream.exchange)
    }

    fn goes_away(&self, last_stream: u32) -> MemberEvent {
        let is_above = |it: &&MemberStream| it.out.id > last_stream || it.awaits_window;
        let lost = self.streams.iter().filter(is_above).map(|it| {
            // A member that has answered with all that it announced has read the request, whatever it says.
            match is_whole(&self.frames.connection, it.out.id) {
                true => (it.exchange, Progress::Whole),
                false => (it.exchange, Progress::Unread),
            }
        });
        MemberEvent::GoesAway { lost: lost.collect(), is_idle: self.streams.is_empty() }
    }
}

#[cfg(test)]
mod tests {
    use weir_http::h2::Answer;

    use super::*;
    use crate::member::http2::{DueAtTimer, SHUT_MS_MAX};
    use crate::testing::NoSpares;

    const SETTINGS: &[u8] = &[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 7];
    const NO_SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream];
        frame.extend_from_slice(payload);
        frame
    }

    /// The head of a response with status 200 and without fields.
    fn head(stream: u8, is_end: bool) -> Vec<u8> {
        frame(1, 4 | u8::from(is_end), stream, &[0x88])
    }

    fn data(stream: u8, data: &str, is_end: bool) -> Vec<u8> {
        frame(0, u8::from(is_end), stream, data.as_bytes())
    }

    fn exchange(number: u64) -> ExchangeKey {
        ExchangeKey::from_bits(1 << 32 | number).expect("a key with a generation")
    }

    /// A connection with requests of exchanges 1, 2, … on streams 1, 3, …
    fn connection(requests: u64) -> (MemberHttp2, Vec<MemberStreamKey>) {
        let mut http2 = MemberHttp2::new(0);
        http2.opened();
        let open = |number| {
            let key = http2.streams.insert(MemberStream::new(exchange(number), true));
            let (connection, out) = (&mut http2.frames.connection, &mut http2.frames.out);
            let id = connection.open_stream(Answer::Usual, true, out, |lines| {
                lines.field(b":method", b"GET");
            });
            let id = id.expect("there is room");
            connection.set_tag(id, key.to_bits());
            http2.streams.get_mut(key).expect("it was added").out.id = id;
            key
        };
        let keys = (1..=requests).map(open).collect();
        (http2, keys)
    }

    /// What these bytes mean, in short.
    fn read(http2: &mut MemberHttp2, input: &[u8]) -> String {
        let (mut read, mut at) = (String::new(), 0);
        let mut block = HeaderBlock::default();
        loop {
            let rest = &input[at..];
            let (consumed, event) = match http2.received(rest, 0, &mut block) {
                Ok(Some(received)) => received,
                Ok(None) => return read,
                Err(_) => return read + "malformed",
            };
            at += consumed;
            read += &match event {
                MemberEvent::Nothing => String::new(),
                MemberEvent::Head { stream, is_end, .. } => format!("head {stream} {is_end} "),
                MemberEvent::Trailers { stream, .. } => format!("trailers {stream} "),
                MemberEvent::Data { data, is_end, .. } => {
                    let data = String::from_utf8_lossy(&rest[data]);
                    format!("{data}{}", if is_end { " end " } else { "" })
                }
                MemberEvent::Reset { exchange: of, reset } => {
                    let number = (1..9).find(|number| exchange(*number) == of);
                    format!("reset {number:?} {:?} {:?} ", reset.why, reset.progress)
                }
                MemberEvent::GoesAway { lost, is_idle } => {
                    let lost: Vec<Progress> = lost.into_iter().map(|(_, it)| it).collect();
                    format!("goes away {lost:?} {is_idle} ")
                }
                MemberEvent::StreamOpened(_) => "opened ".to_owned(),
                MemberEvent::WindowOpened { streams_max: None } => "window ".to_owned(),
                MemberEvent::WindowOpened { streams_max: Some(max) } => format!("settings {max} "),
            };
        }
    }

    #[track_caller]
    fn check(requests: u64, frames: &[Vec<u8>], expected: &str) {
        let input = frames.concat();
        for cut in 0..=input.len() {
            let (mut http2, _) = connection(requests);
            assert_eq!(read(&mut http2, SETTINGS), "settings 7 ");
            let read = read(&mut http2, &input[..cut]) + &read(&mut http2, &input[cut..]);
            assert_eq!(read, expected, "cut at {cut}");
        }
    }

    #[test]
    fn frames_are_events_of_exchanges() {
        check(1, &[head(1, true)], "head 1 true ");
        check(
            2,
            &[head(3, false), head(1, false), data(3, "abc", false), data(3, "de", true)],
            "head 3 false head 1 false abcde end ",
        );
        check(
            1,
            &[head(1, false), data(1, "a", false), head(1, true)],
            "head 1 false atrailers 1 ",
        );
        check(2, &[frame(3, 0, 3, &[0, 0, 0, 7])], "reset Some(2) Abort Unread ");
        check(2, &[frame(3, 0, 1, &[0, 0, 0, 8])], "reset Some(1) Abort Begun ");
        check(2, &[frame(7, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0])], "goes away [Unread] false ");
        check(0, &[frame(7, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 0])], "goes away [] true ");
        let (mut http2, _) = connection(1);
        let input = [SETTINGS, &data(5, "a", false)].concat();
        assert_eq!(read(&mut http2, &input), "settings 7 malformed");
    }

    #[test]
    fn data_of_a_stream_that_was_left_returns_its_window() {
        let (mut http2, keys) = connection(2);
        read(&mut http2, NO_SETTINGS);
        assert_eq!(http2.leave_stream(keys[0], &mut NoSpares), Some(true));
        assert_eq!(http2.leave_stream(keys[0], &mut NoSpares), None);
        let input = [head(1, false), data(1, "abc", true), head(3, true)].concat();
        assert_eq!(read(&mut http2, &input), "head 3 true ");
        assert_eq!(http2.frames.connection.unreleased_bytes(), 0);
    }

    #[test]
    fn a_lost_connection_loses_all_streams() {
        let (mut http2, _) = connection(2);
        http2.streams.insert(MemberStream::new(exchange(3), true));
        let lost = http2.lose_all();
        let opened: Vec<bool> = lost.iter().map(|it| it.was_opened).collect();
        assert_eq!(opened, [true, true, false]);
        assert!(lost[1].exchange == exchange(2) && http2.streams.is_empty());
    }

    #[test]
    fn the_timer_says_what_is_due() {
        let mut http2 = MemberHttp2::new(10);
        assert!(!http2.arm(10) && http2.arm(5));
        assert_eq!(http2.timer(true, 100, 5), DueAtTimer::Later(10));
        assert_eq!(http2.timer(true, 100, 10), DueAtTimer::NotOpen);
        read(&mut http2, NO_SETTINGS);
        assert_eq!(http2.rest(true, 100, 20), 120);
        assert_eq!(http2.timer(false, 100, 119), DueAtTimer::Later(120));
        assert_eq!(http2.timer(false, 100, 120), DueAtTimer::End);
        http2.shut_since_ms = Some(20);
        assert_eq!(http2.rests_until_ms(5_000), 20 + SHUT_MS_MAX, "it is of no use");
        assert_eq!(http2.rest(false, 100, 30), 30, "it is not kept");
        assert_eq!(http2.timer(false, 100, 30), DueAtTimer::End);
        http2.streams.insert(MemberStream::new(exchange(1), true));
        assert_eq!(http2.timer(false, 100, 30), DueAtTimer::Streams);
    }
}
