//! Parsing of received bytes into frames.

use super::{Connection, Event, ReceiveResult};
use crate::h2::error::{ConnectionError, Flood, Misbehaviour};
use crate::h2::frame::{FRAME_HEADER_SIZE, FrameHeader, PREFACE, Severity, flag, kind};
use crate::h2::hpack::HeaderBlock;

/// The expected input.
#[derive(Debug, Clone, Copy)]
pub(super) enum ExpectedInput {
    /// The client's preface; the number of bytes that have arrived.
    Preface { matched: usize },
    /// A frame header.
    FrameHeader,
    /// The payload of a frame that is processed as a whole.
    Payload(FrameHeader),
    /// The payload of DATA.
    Data(DataProgress),
    /// A payload that is skipped.
    Skip { left: u32 },
    /// The same, of a frame with padding: the byte with its length is checked.
    SkipPadded { left: u32 },
}

/// The progress of a DATA frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct DataProgress {
    pub(super) stream: u32,
    /// The byte with the length of the padding has not arrived; until then, all bytes count as data.
    pub(super) awaits_padding_length: bool,
    pub(super) data_left: u32,
    pub(super) padding_left: u32,
    pub(super) end_stream: bool,
}

/// The result of a step.
pub(super) enum Step {
    Tell(Event),
    GoOn,
    /// Nothing can be done without more input.
    Starved,
}

impl From<Option<Event>> for Step {
    fn from(event: Option<Event>) -> Self {
        event.map_or(Self::GoOn, Self::Tell)
    }
}

/// Maximum size of an empty buffer for parts of frames that is kept; a larger one is freed.
const PARTIAL_KEPT_SIZE_MAX: usize = 512;

impl Connection {
    /// Processes bytes received at `now_ms`, up to the first event. Must be called again with the rest, at
    /// once, until the event is [`Event::NeedMore`].
    ///
    /// The events do not depend on how the bytes are split, except that data may come in more pieces. The
    /// header list of [`Event::Headers`] is in `block`, which keeps nothing else between calls.
    pub fn receive(
        &mut self,
        input: &[u8],
        now_ms: u64,
        block: &mut HeaderBlock,
        out: &mut Vec<u8>,
    ) -> Result<ReceiveResult, ConnectionError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.now_ms = self.now_ms.max(now_ms);
        self.start(out);
        let mut at = 0;
        let outcome = loop {
            match self.step(input, &mut at, block, out) {
                Ok(Step::Tell(event)) => break Ok(ReceiveResult { consumed: at, event }),
                Ok(Step::GoOn) => {}
                Ok(Step::Starved) => {
                    debug_assert_eq!(at, input.len());
                    break Ok(ReceiveResult { consumed: at, event: Event::NeedMore });
                }
                Err(error) => {
                    self.fail(error, out);
                    break Err(error);
                }
            }
        };
        if cfg!(debug_assertions) {
            self.check_invariants();
        }
        outcome
    }

    fn step(
        &mut self,
        input: &[u8],
        at: &mut usize,
        block: &mut HeaderBlock,
        out: &mut Vec<u8>,
    ) -> Result<Step, ConnectionError> {
        match self.reading {
            ExpectedInput::Preface { matched } => self.take_preface(matched, input, at),
            ExpectedInput::FrameHeader => match self.take_frame_header(input, at) {
                Some(header) => self.begin_frame(header, out).map(Step::from),
                None => Ok(Step::Starved),
            },
            ExpectedInput::Payload(header) => self.take_payload(header, input, at, block, out),
            ExpectedInput::Data(progress) => self.take_data(progress, input, at, out),
            ExpectedInput::SkipPadded { left } => skip_padded(self, left, input, at),
            ExpectedInput::Skip { left } => {
                let taken = (left as usize).min(input.len() - *at);
                *at += taken;
                self.skip(left - taken as u32);
                Ok(if taken == left as usize { Step::GoOn } else { Step::Starved })
            }
        }
    }

    /// Skips `left` bytes of the frame.
    pub(super) fn skip(&mut self, left: u32) {
        self.reading =
            if left == 0 { ExpectedInput::FrameHeader } else { ExpectedInput::Skip { left } };
    }

    fn take_preface(
        &mut self,
        matched: usize,
        input: &[u8],
        at: &mut usize,
    ) -> Result<Step, ConnectionError> {
        let expected = &PREFACE[matched..];
        let length = expected.len().min(input.len() - *at);
        if input[*at..*at + length] != expected[..length] {
            return Err(Misbehaviour::Preface.into());
        }
        *at += length;
        if length == expected.len() {
            self.reading = ExpectedInput::FrameHeader;
            return Ok(Step::GoOn);
        }
        self.reading = ExpectedInput::Preface { matched: matched + length };
        Ok(Step::Starved)
    }

    fn take_frame_header(&mut self, input: &[u8], at: &mut usize) -> Option<FrameHeader> {
        if self.partial.is_empty()
            && let Some(bytes) = input[*at..].first_chunk()
        {
            *at += FRAME_HEADER_SIZE;
            return Some(FrameHeader::read(bytes));
        }
        self.collect(FRAME_HEADER_SIZE, input, at);
        let header = FrameHeader::read(self.partial.first_chunk()?);
        self.partial.clear();
        Some(header)
    }

    /// Collects input until there are `size` bytes.
    fn collect(&mut self, size: usize, input: &[u8], at: &mut usize) {
        let taken = (size - self.partial.len()).min(input.len() - *at);
        if self.partial.capacity() < size {
            self.partial.reserve_exact(size - self.partial.len());
        }
        self.partial.extend_from_slice(&input[*at..*at + taken]);
        *at += taken;
    }

    fn take_payload(
        &mut self,
        header: FrameHeader,
        input: &[u8],
        at: &mut usize,
        block: &mut HeaderBlock,
        out: &mut Vec<u8>,
    ) -> Result<Step, ConnectionError> {
        let length = header.length as usize;
        if self.partial.is_empty()
            && let Some(payload) = input[*at..].get(..length)
        {
            *at += length;
            self.reading = ExpectedInput::FrameHeader;
            return self.handle(header, payload, block, out).map(Step::from);
        }
        self.collect(length, input, at);
        if self.partial.len() < length {
            return Ok(Step::Starved);
        }
        self.reading = ExpectedInput::FrameHeader;
        let mut payload = std::mem::take(&mut self.partial);
        let outcome = self.handle(header, &payload, block, out).map(Step::from);
        if payload.capacity() <= PARTIAL_KEPT_SIZE_MAX {
            payload.clear();
            self.partial = payload;
        }
        outcome
    }

    /// A frame header has arrived: performs all checks that need only the header.
    fn begin_frame(
        &mut self,
        header: FrameHeader,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, ConnectionError> {
        if !self.peer_settings_seen && (header.kind != kind::SETTINGS || header.has(flag::ACK)) {
            return Err(Misbehaviour::FirstFrame.into());
        }
        let continued = self.continuing.as_ref().map(|continuing| continuing.stream());
        let is_continuation = header.kind == kind::CONTINUATION;
        if is_continuation != continued.is_some()
            || continued.is_some_and(|stream| stream != header.stream)
        {
            return Err(Misbehaviour::Continuation.into());
        }
        if let Err((severity, error)) = header.check(self.limits.frame_size_max) {
            if severity == Severity::Connection || self.streams.get(header.stream).is_none() {
                return Err(error.into());
            }
            self.skip(header.length);
            return self.stream_error(header.stream, error, out);
        }
        match header.kind {
            kind::DATA => return self.begin_data(header, out),
            kind::HEADERS => {
                self.check_headers_stream(header.stream)?;
                if header.length > self.limits.header_block_size_max {
                    return Err(Flood::HeaderBlock.into());
                }
            }
            kind::CONTINUATION => self.count_continuation(header)?,
            kind::PRIORITY
            | kind::RST_STREAM
            | kind::SETTINGS
            | kind::PING
            | kind::GOAWAY
            | kind::WINDOW_UPDATE
            | kind::PRIORITY_UPDATE => {}
            // Section 5.5: unknown types are ignored.
            _ => {
                self.spend(Flood::Priorities)?;
                self.skip(header.length);
                return Ok(None);
            }
        }
        self.reading = ExpectedInput::Payload(header);
        Ok(None)
    }

    fn count_continuation(&mut self, header: FrameHeader) -> Result<(), ConnectionError> {
        let Some(continuing) = &mut self.continuing else { return Ok(()) };
        continuing.frames += 1;
        if continuing.frames > self.limits.continuations_max {
            return Err(Flood::Continuations.into());
        }
        let size = continuing.fragments.len() + header.length as usize;
        if size > self.limits.header_block_size_max as usize {
            return Err(Flood::HeaderBlock.into());
        }
        Ok(())
    }

    /// A frame is complete.
    fn handle(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        block: &mut HeaderBlock,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, ConnectionError> {
        match header.kind {
            kind::HEADERS => self.handle_headers(header, payload, block, out),
            kind::CONTINUATION => self.handle_continuation(header, payload, block, out),
            kind::PRIORITY => self.handle_priority(header.stream, payload, out),
            kind::RST_STREAM => self.handle_reset(header.stream, payload),
            kind::SETTINGS => self.handle_settings(header, payload, out),
            kind::PING => self.handle_ping(header, payload, out),
            kind::GOAWAY => self.handle_goaway(payload),
            kind::WINDOW_UPDATE => self.handle_window_update(header.stream, payload, out),
            _ => self.handle_priority_update(payload),
        }
    }
}

/// Skips the rest of a frame with padding, whose length is invalid if it leaves no room for itself.
fn skip_padded(
    connection: &mut Connection,
    left: u32,
    input: &[u8],
    at: &mut usize,
) -> Result<Step, ConnectionError> {
    let Some(padding) = input.get(*at) else { return Ok(Step::Starved) };
    *at += 1;
    if u32::from(*padding) >= left {
        return Err(Misbehaviour::Padding.into());
    }
    connection.skip(left - 1);
    Ok(Step::GoOn)
}

/// The padding of a dropped frame is checked, as that of any other: it is an error of the connection (section 6.1).
pub(super) fn check_dropped_padding(connection: &mut Connection, header: FrameHeader) {
    if header.has(flag::PADDED) && header.length > 0 {
        connection.reading = ExpectedInput::SkipPadded { left: header.length };
    }
}
