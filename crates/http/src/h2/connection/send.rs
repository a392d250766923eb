//! Sending of frames.

use super::{Connection, OwnSettings, Role, SETTINGS_UNACKNOWLEDGED_MAX};
use crate::h2::ErrorCode;
use crate::h2::error::{ConnectionError, Flood, Misbehaviour, OpenError, SendError};
use crate::h2::frame::{
    self, FLAGS_AT, FRAME_HEADER_SIZE, FrameHeader, STREAM_ID_MAX, WINDOW_SIZE_MAX, flag, kind,
};
use crate::h2::hpack::BlockEncoder;
use crate::h2::settings;
use crate::h2::streams::{Answer, CloseReason, Half, Stall};

/// The kind of a sent header section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendKind {
    /// An interim response.
    Interim,
    /// The final head of a response.
    Response,
    /// Trailers; they end the stream.
    Trailers,
}

impl Connection {
    /// Opens a stream with a request, whose lines `write` writes.
    pub fn open_stream(
        &mut self,
        answer: Answer,
        end_stream: bool,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut BlockEncoder<'_>),
    ) -> Result<u32, OpenError> {
        if self.role == Role::Server || self.is_closing() || self.next_stream > STREAM_ID_MAX {
            return Err(OpenError::Closing);
        }
        let streams_max = self.peer.streams_max.min(self.limits.streams_max);
        if self.streams.len() >= streams_max as usize {
            return Err(OpenError::Full);
        }
        self.start(out);
        let id = self.next_stream;
        self.next_stream += 2;
        let ours = if end_stream { Half::Ended } else { Half::Body };
        let stream = self.new_stream(id, Half::Head, ours, answer);
        self.streams.insert(stream);
        self.earn(Flood::WindowUpdates, 2);
        self.write_headers(id, end_stream, out, write);
        Ok(id)
    }

    /// Sends a response head or trailers, whose lines `write` writes. Trailers always end the stream, regardless of
    /// `end_stream`; an interim response never does.
    pub fn send_headers(
        &mut self,
        stream: u32,
        kind: SendKind,
        end_stream: bool,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut BlockEncoder<'_>),
    ) -> Result<(), SendError> {
        if self.failed.is_some() {
            return Err(SendError::Failed);
        }
        let found = self.streams.get_mut(stream).ok_or(SendError::Gone)?;
        let end_stream = match (kind, found.ours) {
            (SendKind::Interim, Half::Head) => false,
            (SendKind::Response, Half::Head) => end_stream,
            (SendKind::Trailers, Half::Body) => true,
            _ => return Err(SendError::State),
        };
        if kind == SendKind::Response {
            found.ours = Half::Body;
        }
        self.write_headers(stream, end_stream, out, write);
        if end_stream {
            self.we_ended(stream);
        }
        Ok(())
    }

    fn write_headers(
        &mut self,
        stream: u32,
        end_stream: bool,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut BlockEncoder<'_>),
    ) {
        let start = out.len();
        out.extend_from_slice(&[0; FRAME_HEADER_SIZE]);
        write(&mut self.encoder.block(out));
        let length = out.len() - start - FRAME_HEADER_SIZE;
        let size_max = self.peer.frame_size_max.min(self.limits.sent_frame_size_max) as usize;
        let end_stream = if end_stream { flag::END_STREAM } else { 0 };
        if length > size_max {
            return split_headers(stream, end_stream, start, size_max, out);
        }
        let flags = end_stream | flag::END_HEADERS;
        let header = FrameHeader { length: length as u32, kind: kind::HEADERS, flags, stream };
        out[start..start + FRAME_HEADER_SIZE].copy_from_slice(&header.bytes());
    }

    /// The number of bytes that a DATA frame on the stream may have now; 0 if a window is closed, or nothing can be sent.
    pub fn data_allowance(&self, stream: u32) -> usize {
        let Some(found) = self.streams.get(stream) else { return 0 };
        if found.ours != Half::Body || self.failed.is_some() {
            return 0;
        }
        let frame = i64::from(self.peer.frame_size_max.min(self.limits.sent_frame_size_max));
        found.send_window.min(self.send_window).clamp(0, frame) as usize
    }

    /// Whether the peer accepts no data on any stream now, or so little that a stalled stream would still count as
    /// stalled. [`WindowOpened`](super::Event::WindowOpened) reports the end of this state.
    pub fn is_send_window_shut(&self) -> bool {
        self.send_window < i64::from(self.limits.stall_progress_size_min)
    }

    /// Appends the header of a DATA frame. `length` bytes must follow, at most
    /// [`data_allowance`](Self::data_allowance).
    pub fn write_data_header(
        &mut self,
        stream: u32,
        length: usize,
        end_stream: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        if self.failed.is_some() {
            return Err(SendError::Failed);
        }
        let allowance = self.data_allowance(stream);
        let found = self.streams.get_mut(stream).ok_or(SendError::Gone)?;
        if found.ours != Half::Body {
            return Err(SendError::State);
        }
        if length > allowance {
            return Err(SendError::Window);
        }
        found.send_window -= length as i64;
        self.send_window -= length as i64;
        if let Some(stall) = &mut found.stall {
            stall.sent += length as u32;
            if stall.sent >= self.limits.stall_progress_size_min || end_stream {
                found.stall = None;
            }
        }
        let flags = if end_stream { flag::END_STREAM } else { 0 };
        FrameHeader { length: length as u32, kind: kind::DATA, flags, stream }.write(out);
        if length > 0 {
            self.budgets.earn_beyond(Flood::WindowUpdates, 4);
            self.earn(Flood::Pings, 1);
        }
        if end_stream {
            self.we_ended(stream);
        }
        Ok(())
    }

    fn we_ended(&mut self, stream: u32) {
        if let Some(found) = self.streams.get_mut(stream) {
            found.ours = Half::Ended;
            found.stall = None;
            self.close_if_ended(stream);
        }
    }

    /// The caller has data for a stream that its windows do not allow to be sent. The stream counts as stalled from
    /// `now_ms` on, until [`Limits::stall_progress_size_min`](crate::h2::Limits) bytes were sent: a peer
    /// that opens its window byte by byte is stalled too.
    pub fn mark_stalled(&mut self, stream: u32, now_ms: u64) {
        if let Some(found) = self.streams.get_mut(stream) {
            found.stall.get_or_insert(Stall { since_ms: now_ms, sent: 0 });
        }
    }

    /// The time since which a stream has been stalled.
    pub fn stalled_since_ms(&self, stream: u32) -> Option<u64> {
        self.streams.get(stream)?.stall.map(|stall| stall.since_ms)
    }

    /// The stream that has been stalled for the longest time, and the start of its stall.
    pub fn oldest_stall(&self) -> Option<(u32, u64)> {
        let stalled =
            self.streams.iter().filter_map(|stream| Some((stream.id, stream.stall?.since_ms)));
        stalled.min_by_key(|(_, since_ms)| *since_ms)
    }

    /// Resets a stream. Data that still arrives on it is dropped.
    pub fn reset(&mut self, stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
        if self.failed.is_none() && self.streams.close(stream, CloseReason::ByUs).is_some() {
            frame::write_reset(stream, code, out);
        }
    }

    /// Ends a stream because the peer's message on it is malformed (section 8.1.1). For a client this counts as an
    /// error, and an error is final as in [`receive`](Self::receive).
    pub fn refuse(&mut self, stream: u32, out: &mut Vec<u8>) -> Result<(), ConnectionError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if self.streams.get(stream).is_none() {
            return Ok(());
        }
        match self.stream_error(stream, Misbehaviour::Malformed, out) {
            Ok(_) => Ok(()),
            Err(error) => {
                self.fail(error, out);
                Err(error)
            }
        }
    }

    /// Sends a ping; the answer is [`Event::Pong`](super::Event::Pong).
    pub fn ping(&mut self, payload: [u8; 8], out: &mut Vec<u8>) {
        if self.failed.is_some() {
            return;
        }
        self.pings_unanswered = self.pings_unanswered.saturating_add(1);
        frame::write_ping(payload, false, out);
    }

    /// Sets another window for streams, unless too many changes are unacknowledged. Returns whether it was
    /// set.
    pub fn set_stream_window(&mut self, size: u32, out: &mut Vec<u8>) -> bool {
        if self.unacknowledged.len() >= SETTINGS_UNACKNOWLEDGED_MAX || self.failed.is_some() {
            return false;
        }
        self.start(out);
        let size = size.clamp(1, WINDOW_SIZE_MAX);
        settings::write_stream_window(size, out);
        self.unacknowledged
            .push_back(OwnSettings { stream_window_size: size, decoder_table_size: None });
        true
    }

    /// The first step of a graceful end (section 6.8): asks the peer to open no more streams, while open ones, and
    /// those that it opens before it knows, are served.
    pub fn announce_end(&mut self, out: &mut Vec<u8>) {
        if self.goaway_sent.is_none() && self.failed.is_none() {
            self.goaway_sent = Some(STREAM_ID_MAX);
            frame::write_goaway(STREAM_ID_MAX, ErrorCode::NO_ERROR, "", out);
        }
    }

    /// The second step, or the only one: tells the peer the last accepted stream. Later streams are ignored; the
    /// connection may close when [`stream_count`](Self::stream_count) is 0.
    pub fn end(&mut self, code: ErrorCode, text: &str, out: &mut Vec<u8>) {
        let last_stream = self.goaway_sent.unwrap_or(STREAM_ID_MAX).min(self.peer_highest);
        if self.failed.is_none() && self.goaway_sent != Some(last_stream) {
            self.goaway_sent = Some(last_stream);
            frame::write_goaway(last_stream, code, text, out);
        }
    }
}

/// Splits a block that is too long for one frame into HEADERS and CONTINUATION; the block is after the
/// place of a frame header at `start`.
#[cold]
fn split_headers(stream: u32, end_stream: u8, start: usize, size_max: usize, out: &mut Vec<u8>) {
    let block = out.split_off(start + FRAME_HEADER_SIZE);
    out.truncate(start);
    let count = block.len().div_ceil(size_max);
    for (place, fragment) in block.chunks(size_max).enumerate() {
        let kind = if place == 0 { kind::HEADERS } else { kind::CONTINUATION };
        let first = if place == 0 { end_stream } else { 0 };
        let last = if place + 1 == count { flag::END_HEADERS } else { 0 };
        let length = fragment.len() as u32;
        FrameHeader { length, kind, flags: first | last, stream }.write(out);
        out.extend_from_slice(fragment);
    }
}

/// Ends a stream with a DATA frame that was written before, and not sent yet: `frame` begins with its header.
pub fn end_with_data(
    connection: &mut Connection,
    stream: u32,
    frame: &mut [u8],
) -> Result<(), SendError> {
    if connection.failed.is_some() {
        return Err(SendError::Failed);
    }
    let found = connection.streams.get(stream).ok_or(SendError::Gone)?;
    let header = frame.first_chunk().map(FrameHeader::read);
    let is_its = header.is_some_and(|it| (it.kind, it.stream) == (kind::DATA, stream));
    if found.ours != Half::Body || !is_its {
        return Err(SendError::State);
    }
    frame[FLAGS_AT] |= flag::END_STREAM;
    connection.we_ended(stream);
    Ok(())
}
