//! The rest of requests that were answered before their end, which is dropped.
//!
//! RFC 9113 section 8.1 lets a server answer early and stop the rest by RST_STREAM(NO_ERROR). Some clients treat this
//! as a failure of the whole request when they read it together with the response, and some end their body short of its
//! length. So the stream stays open for a while: received data is dropped, its window is returned up to a bound, and an
//! early end is accepted. The stream counts among its client's open streams.
//!
//! This is not done where it would not help: see [`Connection::leave_answered`].

use super::receive::{DataProgress, check_dropped_padding};
use super::{Connection, Event};
use crate::h2::ErrorCode;
use crate::h2::error::ConnectionError;
use crate::h2::frame::{self, FrameHeader, flag};
use crate::h2::streams::{DiscardedRequest, Half};

/// The lowest status that means a failed request.
const STATUS_OF_ERRORS: u16 = 400;

/// The payload of the ping after the end of an unwanted request. Its answer is not reported.
pub(super) const UNWANTED_PING: [u8; 8] = *b"dropped.";

impl Connection {
    /// The response on a stream is complete, and the caller does not use the stream any more. If the request continues,
    /// its rest is dropped until the client ends it, or until [`end_unwanted`](Self::end_unwanted) resets it; returns
    /// that deadline.
    ///
    /// This is done if the response is an error, at which clients stop, or if the whole rest fits in the windows.
    /// Otherwise the stream is reset at once: some clients (curl 7.88) read nothing after the response until they have
    /// sent everything, and would never learn that they may stop or continue.
    ///
    /// A stream with an incomplete response is reset: a part must not look like the whole.
    pub fn leave_answered(
        &mut self,
        stream: u32,
        status: u16,
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Option<u64> {
        if self.failed.is_some() {
            return None;
        }
        let found = self.streams.get_mut(stream)?;
        if found.ours != Half::Ended {
            self.reset(stream, ErrorCode::CANCEL, out);
            return None;
        }
        // The client has read our settings when it reads the answer.
        let announced = self
            .unacknowledged
            .back()
            .map_or(self.stream_window_size, |settings| settings.stream_window_size);
        let of_stream = found.receive.open_with(announced);
        let window = of_stream.min(self.receive_window.open());
        if status < STATUS_OF_ERRORS && found.body_left.is_none_or(|left| left > window) {
            self.reset(stream, ErrorCode::NO_ERROR, out);
            return None;
        }
        let size_left = self.limits.unwanted_size_max;
        let until_ms = now_ms + self.limits.unwanted_ms_max;
        found.unwanted = Some(DiscardedRequest { until_ms, size_left });
        found.tag = 0;
        Some(until_ms)
    }

    /// The earliest deadline of these streams.
    pub fn unwanted_until_ms(&self) -> Option<u64> {
        self.streams.iter().filter_map(|stream| Some(stream.unwanted?.until_ms)).min()
    }

    /// Ends the streams whose deadline has passed: their clients have had time to read the answer.
    pub fn end_unwanted(&mut self, now_ms: u64, out: &mut Vec<u8>) {
        let is_over = |unwanted: DiscardedRequest| unwanted.until_ms <= now_ms;
        let over = self.streams.iter().filter(|stream| stream.unwanted.is_some_and(is_over));
        let over: Vec<u32> = over.map(|stream| stream.id).collect();
        for stream in over {
            self.reset(stream, ErrorCode::NO_ERROR, out);
        }
    }

    /// The header of a dropped DATA frame has arrived; the frame is within the windows.
    pub(super) fn begin_unwanted(
        &mut self,
        header: FrameHeader,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, ConnectionError> {
        let end_stream = header.has(flag::END_STREAM);
        self.count_data(header.length, end_stream)?;
        self.drop_unwanted(
            DataProgress {
                stream: header.stream,
                awaits_padding_length: false,
                data_left: header.length,
                padding_left: 0,
                end_stream,
            },
            out,
        );
        check_dropped_padding(self, header);
        Ok(None)
    }

    /// The client has ended an unwanted request. A ping makes curl 7.88 process the data that it has received.
    pub(super) fn end_of_unwanted(&mut self, stream: u32, out: &mut Vec<u8>) {
        self.peer_ended(stream);
        self.ping(UNWANTED_PING, out);
    }

    /// Drops the rest of a frame.
    pub(super) fn drop_unwanted(&mut self, progress: DataProgress, out: &mut Vec<u8>) {
        let DataProgress { stream, data_left, padding_left, end_stream, .. } = progress;
        self.skip(data_left + padding_left);
        if end_stream {
            self.end_of_unwanted(stream, out);
        }
        if let Some(found) = self.streams.get_mut(stream)
            && let Some(unwanted) = &mut found.unwanted
        {
            let given_back = data_left.min(unwanted.size_left);
            unwanted.size_left -= given_back;
            if let Some(increment) = found.receive.release(given_back) {
                frame::write_window_update(stream, increment, out);
            }
        }
        self.receive_window.release_connection(data_left, out);
    }
}
