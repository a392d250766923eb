//! Joins the data of many small frames of one read. Separately, each would become a chunk, a frame or a call of its own
//! on the other side.
//!
//! The data waits with its stream until the whole read is processed, or until an event of the stream must follow it.
//! Long frames are forwarded directly, and so is the last frame of a read.

use weir_event_loop::EventLoop;
use weir_exchange::parts::end::End;
use weir_exchange::transaction::Transaction;

use super::Worker;
use super::body::COALESCE_BYTES;
use super::desk::Desk;
use crate::worker::state::backlog::Backlog;
use crate::worker::world::StreamOf;

/// Longer frames are forwarded directly, unless earlier data waits: copying costs more than it saves.
const JOINED_FRAME_BYTES_MAX: usize = COALESCE_BYTES;

/// The input after a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behind {
    /// Nothing follows, so there is no reason to wait.
    Nothing,
    /// More frames.
    More,
}

impl Behind {
    /// The input after the data that ends at `end` of the read.
    pub fn of(input: &[u8], end: usize) -> Self {
        if end < input.len() { Self::More } else { Self::Nothing }
    }
}

/// The treatment of a piece of a stream's data.
enum Step {
    /// Pass the data on as it is.
    Pass,
    /// Keep the data with earlier data. `is_first`: there is no earlier data.
    Wait { is_first: bool },
    /// Forward all data, including the earlier data, with the end.
    PassAll,
}

impl Step {
    /// The treatment of `data`; if it must wait, it is added to `joined`.
    fn of(
        io: &mut EventLoop,
        joined: &mut Backlog,
        data: &[u8],
        end: End<'_>,
        behind: Behind,
    ) -> Self {
        let is_short = data.len() <= JOINED_FRAME_BYTES_MAX;
        let waits = is_short && behind == Behind::More && matches!(end, End::No);
        let is_first = joined.is_empty();
        match (is_first, waits) {
            (true, false) => return Self::Pass,
            // Nothing needs to wait.
            (true, true) if data.is_empty() => return Self::Pass,
            (true, true) | (false, _) => {}
        }
        joined.push(io, data);
        if waits { Self::Wait { is_first } } else { Self::PassAll }
    }
}

impl Desk<'_> {
    /// Handles data of a request, and its end.
    pub fn join_request_data(
        &mut self,
        it: &mut Transaction,
        data: &[u8],
        end: End<'_>,
        behind: Behind,
    ) {
        let Some(stream) = self.world.stream_mut(it.ends()) else { return };
        stream.unreleased += data.len() as u32;
        match Step::of(self.io, &mut stream.joined, data, end, behind) {
            Step::Pass => it.client_data(self, data, end),
            Step::Wait { is_first: true } => self.world.queues.joined_requests.push(it.ends().key),
            Step::Wait { is_first: false } => {}
            Step::PassAll => self.pass_joined_request(it, end),
        }
    }

    fn pass_joined_request(&mut self, it: &mut Transaction, end: End<'_>) {
        let stream = self.world.stream_mut(it.ends());
        let Some(stream) = stream.filter(|stream| !stream.joined.is_empty()) else { return };
        let (joined, _) = stream.joined.take();
        it.client_data(self, &joined, end);
        self.io.give_buffer(joined);
    }
}

impl Worker {
    /// Forwards the joined data of requests after the whole read of a client is processed.
    pub fn pass_joined_requests(&mut self, io: &mut EventLoop) {
        while let Some(key) = self.world.queues.joined_requests.pop() {
            self.with_any(io, key, |it, at| at.pass_joined_request(it, End::No));
        }
    }
}

impl Desk<'_> {
    /// Handles data of a response, and its end.
    pub fn join_response_data(
        &mut self,
        it: &mut Transaction,
        data: &[u8],
        end: End<'_>,
        behind: Behind,
    ) {
        let Some(StreamOf { stream, .. }) = self.world.member_stream_mut(it.ends()) else { return };
        stream.unreleased += data.len() as u32;
        match Step::of(self.io, &mut stream.joined, data, end, behind) {
            Step::Pass => it.member_data(self, data, end),
            Step::Wait { is_first: true } => self.world.queues.joined_responses.push(it.ends().key),
            Step::Wait { is_first: false } => {}
            Step::PassAll => self.pass_joined_response(it, end),
        }
    }

    /// Forwards the joined data of a response before another event of its stream.
    pub fn pass_joined_response(&mut self, it: &mut Transaction, end: End<'_>) {
        let stream = self.world.member_stream_mut(it.ends()).map(|it| it.stream);
        let Some(stream) = stream.filter(|stream| !stream.joined.is_empty()) else { return };
        let (joined, _) = stream.joined.take();
        it.member_data(self, &joined, end);
        self.io.give_buffer(joined);
    }
}

impl Worker {
    /// Forwards the joined data of responses after the whole read of a member is processed.
    pub fn pass_joined_responses(&mut self, io: &mut EventLoop) {
        while let Some(key) = self.world.queues.joined_responses.pop() {
            self.with_any(io, key, |it, at| at.pass_joined_response(it, End::No));
        }
    }
}
