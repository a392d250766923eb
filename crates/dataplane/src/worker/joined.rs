//! Data that one read brings in many small frames goes on as one piece. By itself each of them would be a chunk, a
//! frame or a call of its own to whom it goes to, however little it brings.
//!
//! It waits with its stream until all that was read is looked at, or until something of the stream comes that has to
//! stay behind it. Frames that are long pass as they are, and so does one behind which nothing was read.

use super::Worker;
use super::body::COALESCE_BYTES;
use super::frames::End;
use crate::arena::ExchangeKey;
use crate::event_loop::EventLoop;

/// Longer frames pass as they are: to copy them would cost more than it saves.
const JOINED_FRAME_BYTES_MAX: usize = COALESCE_BYTES;

/// What was read behind a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behind {
    /// Nothing: there is nothing to wait for.
    Nothing,
    /// More frames.
    More,
}

impl Behind {
    /// What is behind data that ends at `end` of what was read.
    pub fn of(input: &[u8], end: usize) -> Self {
        if end < input.len() { Self::More } else { Self::Nothing }
    }
}

/// Whether data waits for what follows it.
fn waits(data: &[u8], end: End<'_>, behind: Behind) -> bool {
    behind == Behind::More && matches!(end, End::No) && data.len() <= JOINED_FRAME_BYTES_MAX
}

impl Worker {
    /// Data of a request, and its end.
    pub fn join_request_data(
        &mut self,
        io: &mut EventLoop,
        key: ExchangeKey,
        data: &[u8],
        end: End<'_>,
        behind: Behind,
    ) {
        let stream = self.exchanges.get_mut(key).and_then(|it| it.stream.as_mut());
        let Some(stream) = stream else { return };
        let waits = waits(data, end, behind);
        if !waits && stream.joined.is_empty() {
            return self.stream_data(io, key, data, end);
        }
        if data.len() > JOINED_FRAME_BYTES_MAX {
            self.pass_joined_request(io, key, End::No);
            return self.stream_data(io, key, data, end);
        }
        if stream.joined.is_empty() {
            stream.joined = io.take_buffer();
            self.joined_requests.push(key);
        }
        stream.joined.extend_from_slice(data);
        stream.unreleased += data.len() as u32;
        if !waits {
            self.pass_joined_request(io, key, end);
        }
    }

    fn pass_joined_request(&mut self, io: &mut EventLoop, key: ExchangeKey, end: End<'_>) {
        let stream = self.exchanges.get_mut(key).and_then(|it| it.stream.as_mut());
        let Some(stream) = stream.filter(|stream| !stream.joined.is_empty()) else { return };
        let joined = std::mem::take(&mut stream.joined);
        // It is counted anew on its way.
        stream.unreleased -= joined.len() as u32;
        self.stream_data(io, key, &joined, end);
        io.give_buffer(joined);
    }

    /// All that was read of a client is looked at.
    pub fn pass_joined_requests(&mut self, io: &mut EventLoop) {
        while let Some(key) = self.joined_requests.pop() {
            self.pass_joined_request(io, key, End::No);
        }
    }

    /// Data of a response, and its end.
    pub fn join_response_data(
        &mut self,
        io: &mut EventLoop,
        key: ExchangeKey,
        data: &[u8],
        end: End<'_>,
        behind: Behind,
    ) {
        let stream = self.exchanges.get_mut(key).and_then(|it| it.member_stream.as_mut());
        let Some(stream) = stream else { return };
        stream.unreleased += data.len() as u32;
        let waits = waits(data, end, behind);
        if !waits && stream.joined.is_empty() {
            return self.member_data(io, key, data, end);
        }
        if data.len() > JOINED_FRAME_BYTES_MAX {
            self.pass_joined_response(io, key, End::No);
            return self.member_data(io, key, data, end);
        }
        if stream.joined.is_empty() {
            stream.joined = io.take_buffer();
            self.joined_responses.push(key);
        }
        stream.joined.extend_from_slice(data);
        if !waits {
            self.pass_joined_response(io, key, end);
        }
    }

    /// Passes on what has come of a response: something else is about to become of its stream.
    pub fn pass_joined_response(&mut self, io: &mut EventLoop, key: ExchangeKey, end: End<'_>) {
        let stream = self.exchanges.get_mut(key).and_then(|it| it.member_stream.as_mut());
        let Some(stream) = stream.filter(|stream| !stream.joined.is_empty()) else { return };
        let joined = std::mem::take(&mut stream.joined);
        self.member_data(io, key, &joined, end);
        io.give_buffer(joined);
    }

    /// All that was read of a member is looked at.
    pub fn pass_joined_responses(&mut self, io: &mut EventLoop) {
        while let Some(key) = self.joined_responses.pop() {
            self.pass_joined_response(io, key, End::No);
        }
    }
}
