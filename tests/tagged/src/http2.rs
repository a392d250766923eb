//! The HTTP/2 codec of this test's clients and members: strict about weir's output, with varied output of its own.

use std::collections::{BTreeMap, VecDeque};

use weir_testing::Random;
use weir_testing::frame::{Frame, PREFACE, flag, kind, setting};
use weir_testing::hpack::{Decoder, write_indexed_line, write_line};

use crate::http2_terms::{Change, Terms};
use crate::link::Link;
use crate::message::{Fields, Name};

/// Initial window of a connection and of a stream.
const WINDOW_DEFAULT: i64 = 65_535;
/// Maximum length of a frame's payload.
const FRAME_BYTES_MAX: usize = 16_384;
/// Capacity of the buffer for a header block, enough for most of them.
const BLOCK_BYTES_USUAL: usize = 1_024;
/// Maximum number of remembered streams that this side has closed and that may still receive frames.
const LEFT_MAX: usize = 1_000;
/// Initial value of SETTINGS_MAX_CONCURRENT_STREAMS.
const STREAMS_MAX: usize = 100;
/// Receive window of a connection after the first WINDOW_UPDATE.
const CONNECTION_WINDOW: i64 = 1 << 20;

/// The frame by which a client changes the priority of a response (RFC 9218).
pub const PRIORITY_UPDATE: u8 = 0x10;
/// An unknown frame type, which receivers must ignore (RFC 9113 section 5.5).
const UNKNOWN: u8 = 0xbf;

/// Maximum number of irrelevant frames that a side sends. More could count as a flood.
const CHATS_MAX: usize = 48;

/// A received event.
#[derive(Debug)]
pub enum Event {
    /// A head or trailers.
    Headers {
        /// The stream.
        stream: u32,
        /// The header lines.
        lines: Fields,
        /// Whether this is the end of the stream.
        end: bool,
    },
    /// Data.
    Data {
        /// The stream.
        stream: u32,
        /// The data.
        data: Vec<u8>,
        /// Whether this is the end of the stream.
        end: bool,
    },
    /// RST_STREAM.
    Reset {
        /// The stream.
        stream: u32,
        /// The error code.
        code: u32,
    },
    /// GOAWAY.
    Goaway {
        /// The last stream that the peer serves.
        last: u32,
        /// The error code.
        code: u32,
        /// The debug data.
        text: String,
    },
}

#[derive(Debug)]
struct Windows {
    send: i64,
    receive: i64,
    /// Whether the peer has ended the stream.
    is_ended: bool,
    /// Whether this side has ended the stream.
    has_ended: bool,
    /// Whether a head has arrived.
    has_head: bool,
    /// Whether the peer sent a WINDOW_UPDATE before its head.
    was_opened_early: bool,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Http2 {
    /// The connection.
    pub link: Link,
    decoder: Decoder,
    is_server: bool,
    preface_left: usize,
    streams: BTreeMap<u32, Windows>,
    left: VecDeque<u32>,
    last_stream: u32,
    send: i64,
    receive: i64,
    /// Initial send window of streams, from the peer's settings.
    peer_initial: i64,
    /// The settings of this side.
    own: Terms,
    /// The peer's maximum number of concurrent streams.
    pub streams_max: usize,
    /// Whether the peer's SETTINGS have arrived.
    pub has_settings: bool,
    /// The number of data frames in both directions, and of complete messages on streams that this side had closed.
    pub useful: usize,
    /// Whether a receive window of this side has become negative.
    pub has_overdrawn: bool,
    block: Option<(u32, bool, Vec<u8>)>,
    goaway: bool,
    /// Whether the connection may exceed the limit of connections. weir reports that in HTTP/1, because it does not know the
    /// protocol yet.
    pub may_be_refused: bool,
    /// Whether the connection exceeds the limit of connections.
    pub is_refused: bool,
    /// The number of irrelevant frames that this side may still send.
    chats_left: usize,
}

impl Http2 {
    /// A client. It sends its settings first.
    pub fn client(link: Link, initial: u32) -> Self {
        let mut http2 = Self::new(link, false, (initial, STREAMS_MAX as u32));
        http2.link.out().extend_from_slice(PREFACE);
        greet(&mut http2, &[(setting::INITIAL_WINDOW_SIZE, initial)]);
        http2
    }

    /// A member with this maximum of concurrent streams.
    pub fn member(link: Link, initial: u32, streams_max: u32) -> Self {
        let mut http2 = Self::new(link, true, (initial, streams_max));
        greet(
            &mut http2,
            &[
                (setting::INITIAL_WINDOW_SIZE, initial),
                (setting::MAX_CONCURRENT_STREAMS, streams_max),
                (setting::ENABLE_CONNECT_PROTOCOL, 1),
            ],
        );
        http2
    }

    fn new(link: Link, is_server: bool, said: (u32, u32)) -> Self {
        Self {
            link,
            decoder: Decoder::default(),
            is_server,
            preface_left: if is_server { PREFACE.len() } else { 0 },
            streams: BTreeMap::new(),
            left: VecDeque::new(),
            last_stream: 0,
            send: WINDOW_DEFAULT,
            receive: CONNECTION_WINDOW,
            peer_initial: WINDOW_DEFAULT,
            own: Terms::new((WINDOW_DEFAULT, STREAMS_MAX), said),
            streams_max: STREAMS_MAX,
            has_settings: false,
            useful: 0,
            has_overdrawn: false,
            block: None,
            goaway: false,
            may_be_refused: false,
            is_refused: false,
            chats_left: CHATS_MAX,
        }
    }

    /// Disables irrelevant frames and changes of settings, which a peer of this test does not expect.
    pub fn keep_quiet(&mut self) {
        self.chats_left = 0;
        self.own.keep();
    }

    /// Changes a setting. Returns whether SETTINGS were sent.
    pub fn settle(&mut self, change: Change) -> bool {
        let frame = self.own.change(change);
        frame.inspect(|frame| self.write(frame)).is_some()
    }

    /// Sends a frame that concerns no exchange. `stream`: an open or closed stream.
    pub fn chat(&mut self, stream: u32, random: &mut Random) {
        if self.chats_left == 0 {
            return;
        }
        self.chats_left -= 1;
        let mut update = stream.to_be_bytes().to_vec();
        update.extend_from_slice([&b"u=0"[..], b"u=6, i", b"", b"no list"][random.below(4)]);
        let frame = match random.below(5) {
            0..2 if !self.is_server => Frame::new(PRIORITY_UPDATE, 0, 0, update),
            2 => Frame::new(kind::PRIORITY, 0, stream, [0, 0, 0, 0, 16]),
            3 => Frame::new(kind::PING, 0, 0, *b"tell me!"),
            _ => Frame::new(UNKNOWN, 0xff, stream * random.below(2) as u32, *b"unknown"),
        };
        self.write(&frame);
    }

    /// Sends a frame without changes.
    pub fn write(&mut self, frame: &Frame) {
        frame.write(self.link.out());
    }

    /// Sends a frame, with or without padding.
    fn write_padded(
        &mut self,
        (kind, flags, stream): (u8, u8, u32),
        data: &[u8],
        padding: Option<u8>,
    ) {
        let length = data.len() + padding.map_or(0, |padding| 1 + usize::from(padding));
        let flags = if padding.is_some() { flags | flag::PADDED } else { flags };
        let out = self.link.out();
        out.extend_from_slice(&(length as u32).to_be_bytes()[1..]);
        out.extend_from_slice(&[kind, flags]);
        out.extend_from_slice(&stream.to_be_bytes());
        out.extend(padding);
        out.extend_from_slice(data);
        out.resize(out.len() + usize::from(padding.unwrap_or(0)), 0);
    }

    /// Allocates the next stream of this side.
    pub fn open(&mut self) -> u32 {
        self.last_stream = if self.last_stream == 0 { 1 } else { self.last_stream + 2 };
        self.begin(self.last_stream);
        self.last_stream
    }

    /// The latest stream.
    pub fn last_stream(&self) -> u32 {
        self.last_stream
    }

    fn begin(&mut self, stream: u32) {
        let windows = Windows {
            send: self.peer_initial,
            receive: self.own.initial(),
            is_ended: false,
            has_ended: false,
            has_head: false,
            was_opened_early: false,
        };
        self.streams.insert(stream, windows);
    }

    /// Removes a complete stream. No more frames may arrive on it.
    pub fn close(&mut self, stream: u32) {
        self.streams.remove(&stream);
    }

    /// Resets a stream. Later frames on it are ignored.
    pub fn reset(&mut self, stream: u32, code: u32) {
        self.write(&Frame::reset(stream, code));
        self.leave(stream);
    }

    /// Ignores later frames on a stream.
    pub fn leave(&mut self, stream: u32) {
        if self.streams.remove(&stream).is_some() {
            self.left.push_back(stream);
            if self.left.len() > LEFT_MAX {
                self.left.pop_front();
            }
        }
    }

    /// Whether the peer has sent GOAWAY, so that no stream may be opened.
    pub fn is_leaving(&self) -> bool {
        self.goaway
    }

    /// Sends a head or trailers, in one frame or two.
    pub fn headers(&mut self, stream: u32, lines: &Fields, end: bool, random: &mut Random) {
        let mut block = Vec::with_capacity(BLOCK_BYTES_USUAL);
        for (name, value) in lines {
            match random.percent(30) {
                true => write_indexed_line(name.as_bytes(), value.as_bytes(), &mut block),
                false => write_line(name.as_bytes(), value.as_bytes(), &mut block),
            }
        }
        self.block(stream, &block, end, random);
    }

    /// Sends a header block without changes.
    pub fn block(&mut self, stream: u32, block: &[u8], end: bool, random: &mut Random) {
        self.note_end(stream, end);
        let end_stream = if end { flag::END_STREAM } else { 0 };
        let parts = if random.percent(10) { 2 } else { 1 };
        let length = block.len().div_ceil(parts).clamp(1, FRAME_BYTES_MAX - 300);
        let mut rest = block;
        let mut kind = kind::HEADERS;
        let mut flags = end_stream;
        while kind == kind::HEADERS || !rest.is_empty() {
            let (part, more) = rest.split_at(length.min(rest.len()));
            rest = more;
            if rest.is_empty() {
                flags |= flag::END_HEADERS;
            }
            let is_padded = kind == kind::HEADERS && random.percent(10);
            let padding = is_padded.then(|| random.below(200) as u8);
            self.write_padded((kind, flags, stream), part, padding);
            (kind, flags) = (kind::CONTINUATION, 0);
        }
    }

    fn note_end(&mut self, stream: u32, end: bool) {
        if let Some(windows) = self.streams.get_mut(&stream) {
            windows.has_ended |= end;
        }
    }

    /// Whether the peer sent a WINDOW_UPDATE for a stream before its head.
    pub fn was_opened_early(&self, stream: u32) -> bool {
        self.streams.get(&stream).is_some_and(|windows| windows.was_opened_early)
    }

    /// The number of bytes that the windows of stream and connection allow.
    pub fn allowance(&self, stream: u32) -> usize {
        let of_stream = self.streams.get(&stream).map_or(0, |windows| windows.send);
        usize::try_from(of_stream.min(self.send)).unwrap_or(0)
    }

    /// Sends data, which must fit into the windows and into one frame.
    pub fn data(&mut self, stream: u32, data: &[u8], end: bool, random: &mut Random) {
        let allowed = self.allowance(stream);
        self.note_end(stream, end);
        let flags = if end { flag::END_STREAM } else { 0 };
        let room = FRAME_BYTES_MAX.min(allowed);
        let is_padded = random.percent(5) && data.len() + 60 < room;
        let padding = is_padded.then(|| random.below(50) as u8);
        let length = data.len() as i64 + padding.map_or(0, |padding| 1 + i64::from(padding));
        self.send -= length;
        self.useful += 1;
        if let Some(windows) = self.streams.get_mut(&stream) {
            windows.send -= length;
        }
        self.write_padded((kind::DATA, flags, stream), data, padding);
    }

    /// Parses the next event of the received bytes. An error describes invalid output of weir.
    pub fn next_event(&mut self) -> Result<Option<Event>, String> {
        loop {
            let Some(frame) = self.frame()? else { return Ok(None) };
            if let Some(event) = self.heed(frame)? {
                return Ok(Some(event));
            }
        }
    }

    fn frame(&mut self) -> Result<Option<Frame>, String> {
        if self.preface_left > 0 {
            let input = self.link.input();
            let length = input.len().min(self.preface_left);
            let at = PREFACE.len() - self.preface_left;
            if input[..length] != PREFACE[at..at + length] {
                return Err("no preface".to_owned());
            }
            self.link.take(length);
            self.preface_left -= length;
            if self.preface_left > 0 {
                return Ok(None);
            }
        }
        let input = self.link.input();
        let is_first = self.may_be_refused && !self.has_settings;
        if self.is_refused || (is_first && input.starts_with(b"HTTP/1.1 503 ")) {
            self.is_refused = true;
            self.link.take(self.link.input().len());
            return Ok(None);
        }
        let Some(header) = input.get(..9).filter(|it| !(is_first && it.starts_with(b"HTTP/")))
        else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(format!("a frame of {length} bytes"));
        }
        let Some(payload) = input.get(9..9 + length) else { return Ok(None) };
        let stream = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
        let frame = Frame::new(header[3], header[4], stream, payload);
        self.link.take(9 + length);
        match &self.block {
            Some((of, ..)) if frame.kind != kind::CONTINUATION || frame.stream != *of => {
                Err(format!("{frame:?} within a head"))
            }
            _ => Ok(Some(frame)),
        }
    }

    fn heed(&mut self, frame: Frame) -> Result<Option<Event>, String> {
        let stream = frame.stream;
        match (frame.kind, stream) {
            (kind::DATA, 1..) => self.heed_data(frame),
            (kind::HEADERS, 1..) => self.heed_headers(&frame),
            (kind::CONTINUATION, 1..) => {
                let Some((_, _, block)) = &mut self.block else {
                    return Err("a continuation of nothing".to_owned());
                };
                block.extend_from_slice(&frame.payload);
                self.end_block(frame.flags)
            }
            (kind::RST_STREAM, 1..) if frame.payload.len() == 4 => {
                let code = word(&frame.payload);
                let was_open = self.streams.remove(&stream).is_some();
                self.left.retain(|left| *left != stream);
                Ok(was_open.then_some(Event::Reset { stream, code }))
            }
            (kind::SETTINGS, 0) if frame.flags & flag::ACK == 0 => self.heed_settings(&frame),
            (kind::SETTINGS, 0) => {
                let more = self.own.confirm()?;
                self.streams.values_mut().for_each(|windows| windows.receive += more);
                self.has_overdrawn |= self.streams.values().any(|windows| windows.receive < 0);
                Ok(None)
            }
            (kind::PING, 0) if frame.payload.len() == 8 => {
                if frame.flags & flag::ACK == 0 {
                    self.write(&Frame::new(kind::PING, flag::ACK, 0, frame.payload));
                }
                Ok(None)
            }
            (kind::GOAWAY, 0) if frame.payload.len() >= 8 => {
                self.goaway = true;
                let (last, code) = (word(&frame.payload), word(&frame.payload[4..]));
                let text = String::from_utf8_lossy(&frame.payload[8..]).into_owned();
                Ok(Some(Event::Goaway { last, code, text }))
            }
            (kind::WINDOW_UPDATE, _) if frame.payload.len() == 4 => {
                let more = i64::from(word(&frame.payload));
                match self.streams.get_mut(&stream) {
                    _ if more == 0 => return Err("a window that opens by nothing".to_owned()),
                    Some(windows) => {
                        windows.send += more;
                        windows.was_opened_early |= !windows.has_head;
                    }
                    None if stream == 0 => self.send += more,
                    None => {}
                }
                Ok(None)
            }
            _ => Err(format!("{frame:?}")),
        }
    }

    fn heed_settings(&mut self, frame: &Frame) -> Result<Option<Event>, String> {
        for entry in frame.payload.chunks(6) {
            let &[high, low, ref value @ ..] = entry else { return Err("settings".to_owned()) };
            let value = value.try_into().map(u32::from_be_bytes).map_err(|_| "settings")?;
            match u16::from_be_bytes([high, low]) {
                setting::INITIAL_WINDOW_SIZE => {
                    let more = i64::from(value) - self.peer_initial;
                    self.peer_initial = i64::from(value);
                    self.streams.values_mut().for_each(|windows| windows.send += more);
                }
                setting::MAX_CONCURRENT_STREAMS => self.streams_max = value as usize,
                _ => {}
            }
        }
        self.has_settings = true;
        self.write(&Frame::new(kind::SETTINGS, flag::ACK, 0, []));
        Ok(None)
    }

    fn heed_headers(&mut self, frame: &Frame) -> Result<Option<Event>, String> {
        let mut payload = unpadded(frame)?;
        if frame.flags & flag::PRIORITY != 0 {
            payload = payload.get(5..).ok_or("a head too short for its priority")?;
        }
        let end = frame.flags & flag::END_STREAM != 0;
        self.block = Some((frame.stream, end, payload.to_vec()));
        self.end_block(frame.flags)
    }

    fn end_block(&mut self, flags: u8) -> Result<Option<Event>, String> {
        if flags & flag::END_HEADERS == 0 {
            return Ok(None);
        }
        let Some((stream, end, block)) = self.block.take() else { return Ok(None) };
        let lines = self.decoder.try_read(&block)?;
        if self.is_server && stream > self.last_stream && stream % 2 == 1 {
            let is_open = |it: &&Windows| !(it.is_ended && it.has_ended);
            let open = self.streams.values().filter(is_open).count();
            if open >= self.own.streams_max() {
                return Err(format!("one stream more than {open}, of {}", self.own.streams_max()));
            }
            self.last_stream = stream;
            self.begin(stream);
        }
        if !self.may_come(stream, end)? {
            return Ok(None);
        }
        if let Some(windows) = self.streams.get_mut(&stream) {
            windows.has_head = true;
        }
        let mut fields = Fields::with_capacity(lines.len());
        for (name, value) in lines {
            let name = Name::from(String::from_utf8(name).map_err(|_| "a name that is no text")?);
            let value = String::from_utf8(value).map_err(|_| "a value that is no text")?;
            if name.is_empty()
                || name.bytes().any(|it| it <= b' ' || it.is_ascii_uppercase())
                || value.bytes().any(|it| it < b' ')
                || value.trim() != value
            {
                return Err(format!("field {name:?}: {value:?}"));
            }
            fields.push((name, value));
        }
        Ok(Some(Event::Headers { stream, lines: fields, end }))
    }

    /// Whether a received frame of a stream is processed. An error: no frame may arrive on the stream.
    fn may_come(&mut self, stream: u32, end: bool) -> Result<bool, String> {
        match self.streams.get_mut(&stream) {
            Some(windows) if windows.is_ended => Err(format!("more behind the end of {stream}")),
            Some(windows) => {
                windows.is_ended = end;
                Ok(true)
            }
            None if self.left.contains(&stream) => {
                self.useful += usize::from(end);
                Ok(false)
            }
            None => Err(format!("something on stream {stream}, which is not open")),
        }
    }

    fn heed_data(&mut self, frame: Frame) -> Result<Option<Event>, String> {
        let length = frame.payload.len() as i64;
        self.receive -= length;
        self.useful += 1;
        if self.receive < 0 {
            return Err("more than the connection's window".to_owned());
        }
        let end = frame.flags & flag::END_STREAM != 0;
        let stream = frame.stream;
        if !self.may_come(stream, end)? {
            self.release(0, length as usize);
            return Ok(None);
        }
        if let Some(windows) = self.streams.get_mut(&stream) {
            windows.receive -= length;
            // A frame without data is allowed even if the window has become negative.
            if length > 0 && windows.receive < 0 {
                let (left, of) = (windows.receive, self.own.initial());
                return Err(format!("{left} bytes of the window of stream {stream}, of {of}"));
            }
        }
        let data = match frame.flags & flag::PADDED {
            0 => frame.payload,
            _ => unpadded(&frame)?.to_vec(),
        };
        // Padding counts as consumed.
        self.release(stream, length as usize - data.len());
        Ok(Some(Event::Data { stream, data, end }))
    }

    /// Sends window updates for consumed bytes of a stream.
    pub fn release(&mut self, stream: u32, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.receive += bytes as i64;
        self.write(&Frame::window_update(0, bytes as u32));
        if let Some(windows) = self.streams.get_mut(&stream)
            && !windows.is_ended
        {
            windows.receive += bytes as i64;
            self.write(&Frame::window_update(stream, bytes as u32));
        }
    }
}

/// Sends the settings, and a window update for the connection.
fn greet(http2: &mut Http2, settings: &[(u16, u32)]) {
    let more = (CONNECTION_WINDOW - WINDOW_DEFAULT) as u32;
    http2.write(&Frame::settings(settings));
    http2.write(&Frame::window_update(0, more));
}

fn unpadded(frame: &Frame) -> Result<&[u8], String> {
    if frame.flags & flag::PADDED == 0 {
        return Ok(&frame.payload);
    }
    let padding = usize::from(*frame.payload.first().ok_or("no padding")?);
    let end = frame.payload.len().checked_sub(padding).filter(|end| *end > 0);
    Ok(&frame.payload[1..end.ok_or("more padding than there is")?])
}

fn word(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}
