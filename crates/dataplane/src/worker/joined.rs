//! Data that one read brings in many small frames goes on as one piece. By itself each of them would be a chunk, a
//! frame or a call of its own to whom it goes to, however little it brings.
//!
//! It waits with its stream until all that was read is looked at, or until something of the stream comes that has to
//! stay behind it. Frames that are long pass as they are, and so does one behind which nothing was read.

use weir_event_loop::EventLoop;
use weir_exchange::parts::end::End;
use weir_exchange::transaction::Transaction;

use super::Worker;
use super::body::COALESCE_BYTES;
use super::desk::Desk;
use crate::worker::state::backlog::Backlog;
use crate::worker::world::StreamOf;

/// Longer frames pass as they are, unless others wait before them: to copy them would cost more than it saves.
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

/// What becomes of some data of a stream.
enum Step {
    /// It passes as it is.
    Pass,
    /// It waits now with what was there; `is_first`: nothing was.
    Wait { is_first: bool },
    /// It waits no more: all that is there passes, with the end.
    PassAll,
}

impl Step {
    /// What becomes of `data`, which is added to `joined` where it is to wait there.
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
            // There is nothing that could wait.
            (true, true) if data.is_empty() => return Self::Pass,
            (true, true) | (false, _) => {}
        }
        joined.push(io, data);
        if waits { Self::Wait { is_first } } else { Self::PassAll }
    }
}

impl Desk<'_> {
    /// Data of a request, and its end.
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
    /// All that was read of a client is looked at.
    pub fn pass_joined_requests(&mut self, io: &mut EventLoop) {
        while let Some(key) = self.world.queues.joined_requests.pop() {
            self.with_any(io, key, |it, at| at.pass_joined_request(it, End::No));
        }
    }
}

impl Desk<'_> {
    /// Data of a response, and its end.
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

    /// Passes on what has come of a response: something else is about to become of its stream.
    pub fn pass_joined_response(&mut self, it: &mut Transaction, end: End<'_>) {
        let stream = self.world.member_stream_mut(it.ends()).map(|it| it.stream);
        let Some(stream) = stream.filter(|stream| !stream.joined.is_empty()) else { return };
        let (joined, _) = stream.joined.take();
        it.member_data(self, &joined, end);
        self.io.give_buffer(joined);
    }
}

impl Worker {
    /// All that was read of a member is looked at.
    pub fn pass_joined_responses(&mut self, io: &mut EventLoop) {
        while let Some(key) = self.world.queues.joined_responses.pop() {
            self.with_any(io, key, |it, at| at.pass_joined_response(it, End::No));
        }
    }
}
