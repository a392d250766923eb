//! Does the tasks of the agenda when they are due.

use weir_event_loop::EventLoop;
use weir_exchange::parts::end::End;

use super::agenda::{Due, Task};
use super::client::http2_memory;
use super::{Worker, subrequests, sweeps};

impl Worker {
    /// Does the tasks that are due.
    #[inline]
    pub fn run_due(&mut self, io: &mut EventLoop, due: Due) {
        if self.world.agenda.has(due) {
            run_tasks(self, io, due);
        }
    }
}

fn run_tasks(worker: &mut Worker, io: &mut EventLoop, due: Due) {
    for &kind in due.kinds() {
        let mut left = match due {
            // Nothing else follows, so what is added meanwhile is done, too.
            Due::AfterCall | Due::EndOfRead => usize::MAX,
            Due::EndOfTurn => worker.world.agenda.count(kind),
        };
        while left > 0
            && let Some(task) = worker.world.agenda.take(kind)
        {
            left -= 1;
            run(worker, io, task);
        }
    }
}

fn run(worker: &mut Worker, io: &mut EventLoop, task: Task) {
    match task {
        Task::Order(deferred) => subrequests::run(worker, io, deferred),
        Task::PassResponse(key) => {
            worker.with_any(io, key, |it, at| at.pass_joined_response(it, End::No));
        }
        Task::PassRequest(key) => {
            worker.with_any(io, key, |it, at| at.pass_joined_request(it, End::No));
        }
        Task::BeginRequests(key) => worker.begin_requests(io, key),
        Task::SendHead(key) => worker.send_head(io, key),
        Task::SendResponses(key) => worker.streams_opened(io, key),
        Task::DoChores => sweeps::do_chores(worker, io),
        Task::BeginMoreRequests(key) => {
            worker.begin_more_requests(io, key);
            worker.run_due(io, Due::EndOfRead);
        }
        Task::ServeWaiting => worker.serve_waiting(io),
        Task::LoseStream(key, connection, why) => worker.stream_missed(io, key, connection, why),
        Task::ResumeInspections => subrequests::resume_inspections(worker, io),
        Task::EndClients => worker.end_clients(io),
        Task::FlushMember(key) => worker.world.members.flush(io, key),
        Task::FlushClient(key) => worker.edge(io).flush_client(key),
        Task::BoundMemory => http2_memory::heed(worker, io),
    }
}
