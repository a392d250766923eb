//! Joins the data of small frames within one read. Otherwise each of them would become a separate chunk, frame or call on
//! the other side.
//!
//! The data waits with its stream until the whole read is processed, or until another event of the stream occurs. Long
//! frames are forwarded directly, and so is the last frame of a read.

use weir_connection::backlog::Backlog;
use weir_connection::body::COALESCE_BYTES;
use weir_event_loop::EventLoop;
use weir_exchange::parts::end::End;
use weir_exchange::transaction::Transaction;

use super::agenda::Task;
use super::edge::WorkerEdge;
use crate::worker::state::members::StreamOf;
use crate::worker::wire::Spares;

/// Maximum size of a frame whose data is joined. For longer frames, copying costs more than it saves, so they are forwarded
/// directly, unless earlier data waits.
const JOINED_FRAME_BYTES_MAX: usize = COALESCE_BYTES;

/// The rest of a read after a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestOfRead {
    /// No data follows, so the frame need not wait.
    Nothing,
    /// More frames follow.
    More,
}

impl RestOfRead {
    /// The rest of the read after data that ends at `end`.
    pub fn of(input: &[u8], end: usize) -> Self {
        if end < input.len() { Self::More } else { Self::Nothing }
    }
}

/// The treatment of data from a frame.
enum Step {
    /// Forward the data directly.
    Pass,
    /// Store the data. `is_first`: no earlier data waits.
    Wait { is_first: bool },
    /// Forward the stored data with the end; it includes this data.
    PassAll,
}

impl Step {
    /// Determines the treatment of `data`. Data that is not forwarded directly is added to `joined`.
    fn of(
        io: &mut EventLoop,
        joined: &mut Backlog,
        data: &[u8],
        end: End<'_>,
        behind: RestOfRead,
    ) -> Self {
        let is_short = data.len() <= JOINED_FRAME_BYTES_MAX;
        let waits = is_short && behind == RestOfRead::More && matches!(end, End::No);
        let is_first = joined.is_empty();
        match (is_first, waits) {
            (true, false) => return Self::Pass,
            // An empty frame without an end is forwarded directly.
            (true, true) if data.is_empty() => return Self::Pass,
            (true, true) | (false, _) => {}
        }
        joined.push(&mut Spares(io), data);
        if waits { Self::Wait { is_first } } else { Self::PassAll }
    }
}

impl WorkerEdge<'_> {
    /// Handles data of a request and its end: forwards or joins it.
    pub fn join_request_data(
        &mut self,
        it: &mut Transaction,
        data: &[u8],
        end: End<'_>,
        behind: RestOfRead,
    ) {
        let Some(stream) = self.world.clients.stream_mut(it.ends()) else { return };
        stream.unreleased += data.len() as u32;
        match Step::of(self.io, &mut stream.joined, data, end, behind) {
            Step::Pass => it.client_data(self, data, end),
            Step::Wait { is_first: true } => {
                self.world.agenda.add(Task::PassRequest(it.ends().key));
            }
            Step::Wait { is_first: false } => {}
            Step::PassAll => self.pass_joined_request(it, end),
        }
    }

    /// Forwards the joined data of a request, at the end of its read or with its end.
    pub fn pass_joined_request(&mut self, it: &mut Transaction, end: End<'_>) {
        let stream = self.world.clients.stream_mut(it.ends());
        let Some(stream) = stream.filter(|stream| !stream.joined.is_empty()) else { return };
        let (joined, _) = stream.joined.take();
        it.client_data(self, &joined, end);
        self.io.spares.give(joined);
    }

    /// Handles data of a response and its end: forwards or joins it.
    pub fn join_response_data(
        &mut self,
        it: &mut Transaction,
        data: &[u8],
        end: End<'_>,
        behind: RestOfRead,
    ) {
        let Some(StreamOf { stream, .. }) = self.world.members.stream_mut(it.ends()) else {
            return;
        };
        stream.unreleased += data.len() as u32;
        match Step::of(self.io, &mut stream.joined, data, end, behind) {
            Step::Pass => it.member_data(self, data, end),
            Step::Wait { is_first: true } => {
                self.world.agenda.add(Task::PassResponse(it.ends().key));
            }
            Step::Wait { is_first: false } => {}
            Step::PassAll => self.pass_joined_response(it, end),
        }
    }

    /// Forwards the joined data of a response, before another event of its stream or with its end.
    pub fn pass_joined_response(&mut self, it: &mut Transaction, end: End<'_>) {
        let stream = self.world.members.stream_mut(it.ends()).map(|it| it.stream);
        let Some(stream) = stream.filter(|stream| !stream.joined.is_empty()) else { return };
        let (joined, _) = stream.joined.take();
        it.member_data(self, &joined, end);
        self.io.spares.give(joined);
    }
}
