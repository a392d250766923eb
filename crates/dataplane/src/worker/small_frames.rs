//! Forwards the data of frames, that of small frames together; see [`weir_connection::joining`].

use weir_connection::joining::{JoinStep, RestOfRead};
use weir_exchange::parts::end::End;
use weir_exchange::transaction::Transaction;

use super::agenda::Task;
use super::edge::WorkerEdge;
use crate::worker::state::members::StreamOf;
use crate::worker::wire::Spares;

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
        match JoinStep::of(&mut Spares(self.io), &mut stream.joined, data, end, behind) {
            JoinStep::Pass => it.client_data(self, data, end),
            JoinStep::Wait { is_first: true } => {
                self.world.agenda.add(Task::PassRequest(it.ends().key));
            }
            JoinStep::Wait { is_first: false } => {}
            JoinStep::PassAll => self.pass_joined_request(it, end),
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
        match JoinStep::of(&mut Spares(self.io), &mut stream.joined, data, end, behind) {
            JoinStep::Pass => it.member_data(self, data, end),
            JoinStep::Wait { is_first: true } => {
                self.world.agenda.add(Task::PassResponse(it.ends().key));
            }
            JoinStep::Wait { is_first: false } => {}
            JoinStep::PassAll => self.pass_joined_response(it, end),
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
