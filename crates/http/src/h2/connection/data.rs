//! Received DATA (RFC 9113 section 6.1), and its effect on windows.

use super::receive::{DataProgress, ExpectedInput, Step, check_dropped_padding};
use super::{Connection, Event, Role};
use crate::h2::error::{ConnectionError, Flood, Misbehaviour};
use crate::h2::frame::{self, FrameHeader, flag};
use crate::h2::limits::TINY_DATA_SIZE;
use crate::h2::streams::{CloseReason, Half};

impl Connection {
    /// The header of DATA has arrived. The whole frame is charged to both windows now.
    pub(super) fn begin_data(
        &mut self,
        header: FrameHeader,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, ConnectionError> {
        let FrameHeader { stream, length, .. } = header;
        if self.is_idle(stream) {
            return Err(Misbehaviour::StreamIdle.into());
        }
        if !self.receive_window.take(length) {
            return Err(Misbehaviour::FlowControl.into());
        }
        let error = match self.streams.get_mut(stream) {
            Some(found) => match found.peer {
                Half::Ended => Some(Misbehaviour::StreamClosed),
                Half::Head => Some(Misbehaviour::ResponseOrder),
                Half::Body if !found.receive.take(length) => Some(Misbehaviour::FlowControl),
                Half::Body if found.unwanted.is_some() => {
                    return self.begin_unwanted(header, out);
                }
                Half::Body => None,
            },
            None => match self.judge_closed(stream)? {
                Some(error) => Some(error),
                None => {
                    self.abandon_data(length, length, out);
                    check_dropped_padding(self, header);
                    return Ok(None);
                }
            },
        };
        if let Some(error) = error {
            self.abandon_data(length, length, out);
            check_dropped_padding(self, header);
            return self.stream_error(stream, error, out);
        }
        let progress = DataProgress {
            stream,
            awaits_padding_length: header.has(flag::PADDED),
            data_left: length,
            padding_left: 0,
            end_stream: header.has(flag::END_STREAM),
        };
        self.reading = ExpectedInput::Data(progress);
        if progress.awaits_padding_length { Ok(None) } else { self.settle_data(progress, out) }
    }

    /// The result of a frame on a closed stream: a connection error, a stream error, or nothing, if we closed it and
    /// the peer could not know (section 5.1).
    pub(super) fn judge_closed(
        &mut self,
        stream: u32,
    ) -> Result<Option<Misbehaviour>, ConnectionError> {
        let was_not_taken = self.goaway_sent.is_some_and(|last| stream > last);
        match self.streams.closed(stream) {
            _ if was_not_taken => {}
            Some(CloseReason::ByUs) => {}
            Some(CloseReason::ByPeer) => return Ok(Some(Misbehaviour::StreamClosed)),
            Some(CloseReason::Ended) | None => return Err(Misbehaviour::StreamClosed.into()),
        }
        self.spend(Flood::ClosedStreams)?;
        Ok(None)
    }

    /// The size of a frame's data is known: all of it counts toward Content-Length.
    fn settle_data(
        &mut self,
        progress: DataProgress,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, ConnectionError> {
        let DataProgress { stream, data_left, padding_left, end_stream, .. } = progress;
        let is_server = self.role == Role::Server;
        let Some(found) = self.streams.get_mut(stream) else { return Ok(None) };
        if let Some(body_left) = &mut found.body_left {
            let rest = body_left.checked_sub(u64::from(data_left));
            match rest {
                Some(rest) if rest == 0 || !end_stream => *body_left = rest,
                Some(_) if is_server && found.ours != Half::Head => {
                    let tag = found.tag;
                    self.peer_ended(stream);
                    self.skip(data_left + padding_left);
                    self.release(stream, data_left, out);
                    return Ok(Some(Event::RequestCut { stream, tag }));
                }
                _ => {
                    self.abandon_data(data_left + padding_left, data_left, out);
                    return self.stream_error(stream, Misbehaviour::ContentLength, out);
                }
            }
        }
        self.count_data(data_left, end_stream)?;
        Ok(None)
    }

    /// The effect of a DATA frame of this size on budgets. A frame that ends its stream costs nothing, nor do short
    /// frames of a server, because its connection is shared by many requests.
    pub(super) fn count_data(
        &mut self,
        size: u32,
        end_stream: bool,
    ) -> Result<(), ConnectionError> {
        if size > 0 {
            self.earn(Flood::EmptyData, 1);
            self.earn(Flood::Pings, 1);
        } else if !end_stream {
            self.spend(Flood::EmptyData)?;
        }
        if self.role == Role::Client {
            return Ok(());
        }
        if size >= TINY_DATA_SIZE {
            self.earn(Flood::TinyData, size / TINY_DATA_SIZE);
        } else if !end_stream {
            let milli = 1000 - size * 1000 / TINY_DATA_SIZE;
            self.budgets.spend_milli(Flood::TinyData, milli, &self.limits, self.now_ms)?;
        }
        Ok(())
    }

    /// Skips `left` bytes of the frame, and returns `credit` of them to the connection's window.
    fn abandon_data(&mut self, left: u32, credit: u32, out: &mut Vec<u8>) {
        self.skip(left);
        self.receive_window.release_connection(credit, out);
    }

    /// Processes more of a DATA frame.
    pub(super) fn take_data(
        &mut self,
        mut progress: DataProgress,
        input: &[u8],
        at: &mut usize,
        out: &mut Vec<u8>,
    ) -> Result<Step, ConnectionError> {
        let is_padded = progress.awaits_padding_length;
        let Some(found) = self.streams.get(progress.stream) else {
            // The stream was reset meanwhile.
            let left = progress.data_left + progress.padding_left;
            self.abandon_data(left, progress.data_left, out);
            if is_padded {
                self.reading = ExpectedInput::SkipPadded { left };
            }
            return Ok(Step::GoOn);
        };
        if found.unwanted.is_some() {
            let left = progress.data_left;
            self.drop_unwanted(progress, out);
            if is_padded {
                self.reading = ExpectedInput::SkipPadded { left };
            }
            return Ok(Step::GoOn);
        }
        let tag = found.tag;
        if progress.awaits_padding_length {
            let Some(padding) = input.get(*at) else { return Ok(Step::Starved) };
            *at += 1;
            let padding = u32::from(*padding);
            if padding >= progress.data_left {
                return Err(Misbehaviour::Padding.into());
            }
            progress.awaits_padding_length = false;
            progress.padding_left = padding;
            progress.data_left -= 1 + padding;
            self.reading = ExpectedInput::Data(progress);
            self.release(progress.stream, 1 + padding, out);
            return self.settle_data(progress, out).map(Step::from);
        }
        let start = *at;
        let taken = (progress.data_left as usize).min(input.len() - start);
        if taken == 0 && progress.data_left > 0 {
            return Ok(Step::Starved);
        }
        *at += taken;
        progress.data_left -= taken as u32;
        let is_last = progress.data_left == 0;
        self.reading = ExpectedInput::Data(progress);
        if is_last {
            self.skip(progress.padding_left);
        }
        let end_stream = is_last && progress.end_stream;
        if end_stream {
            self.peer_ended(progress.stream);
        }
        if taken == 0 && !end_stream {
            return Ok(Step::GoOn);
        }
        Ok(Step::Tell(Event::Data { stream: progress.stream, tag, start, end: *at, end_stream }))
    }

    /// The peer has ended its side of a stream.
    pub(super) fn peer_ended(&mut self, stream: u32) {
        if let Some(found) = self.streams.get_mut(stream) {
            found.peer = Half::Ended;
            self.close_if_ended(stream);
        }
    }

    /// `bytes` of data were forwarded, so the peer may send as many again. Call this once for every byte of
    /// [`Event::Data`]. Appends WINDOW_UPDATE when half a window is due.
    pub fn release(&mut self, stream: u32, bytes: u32, out: &mut Vec<u8>) {
        if self.failed.is_some() {
            return;
        }
        if let Some(found) = self.streams.get_mut(stream) {
            let increment = found.receive.release(bytes);
            // A peer that has ended its side needs no window.
            if let Some(increment) = increment.filter(|_| found.peer != Half::Ended) {
                frame::write_window_update(stream, increment, out);
            }
        }
        self.receive_window.release_connection(bytes, out);
    }

    /// The number of received bytes that were not released yet, on all streams; only releases reopen a window. For checks.
    pub fn unreleased_bytes(&self) -> u64 {
        if self.failed.is_some() {
            // No data may arrive on the stream any more.
            return 0;
        }
        // A whole frame is charged when its header has arrived.
        let to_come = match self.reading {
            ExpectedInput::Data(progress) => progress.data_left,
            _ => 0,
        };
        self.receive_window.unreleased().saturating_sub(u64::from(to_come))
    }
}
