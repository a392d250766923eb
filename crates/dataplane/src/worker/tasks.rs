//! Does the tasks of the agenda when they are due.

use weir_event_loop::EventLoop;
use weir_exchange::parts::end::End;
use weir_exchange::parts::pieces::Pieces;

use super::agenda::{Due, Task};
use super::client::pending::Begins;
use super::edge::WorkerEdge;
use super::member::stream_event::StreamEvent;
use super::router::Router;
use super::state::client_end::ClientEnd;
use super::world::World;
use super::{Worker, subrequests, sweeps};

impl Worker {
    /// Does the tasks that are due at the end of the turn.
    #[inline]
    pub fn end_turn(&mut self, io: &mut EventLoop) {
        if self.router.world.agenda.has(Due::EndOfTurn) {
            run_end_of_turn(self, io);
        }
    }
}

fn run_end_of_turn(worker: &mut Worker, io: &mut EventLoop) {
    for &kind in Due::EndOfTurn.kinds() {
        let mut left = worker.router.world.agenda.count(kind);
        while left > 0
            && let Some(task) = worker.router.world.agenda.take(kind)
        {
            left -= 1;
            match task {
                Task::DoChores => sweeps::do_chores(worker, io),
                Task::EndClients => worker.end_clients(io),
                task => run(&mut worker.router, io, task),
            }
        }
    }
}

impl Router {
    /// Does the tasks that are due after a call, or at the end of a read. What they add is done, too.
    pub fn run_due(&mut self, io: &mut EventLoop, due: Due) {
        debug_assert_ne!(due, Due::EndOfTurn, "the worker does these");
        if !self.world.agenda.has(due) {
            return;
        }
        for &kind in due.kinds() {
            while let Some(task) = self.world.agenda.take(kind) {
                run(self, io, task);
            }
        }
    }
}

fn run(router: &mut Router, io: &mut EventLoop, task: Task) {
    match task {
        Task::Order(deferred) => subrequests::run(router, io, deferred),
        Task::PassResponse(key) => {
            router.with_any(io, key, |it, at| at.pass_joined_response(it, End::No));
        }
        Task::PassRequest(key) => {
            router.with_any(io, key, |it, at| at.pass_joined_request(it, End::No));
        }
        Task::BeginRequests(key) => router.begin_pending(io, key, Begins::AtEndOfRead),
        Task::SendHead(key) => router.with(io, key, |it, at| {
            // A client may wait for a response before it continues.
            if !it.request.is_sent() && it.ends.phase.connection().is_some() {
                it.client_data(at, (b"", &Pieces::whole(0)), End::No);
            }
        }),
        Task::SendResponses(key) => router.send_waiting(io, key, None),
        Task::BeginMoreRequests(key) => {
            router.begin_pending(io, key, Begins::InNextTurn);
            router.run_due(io, Due::EndOfRead);
        }
        Task::ServeWaiting => router.serve_waiting(io),
        Task::LoseStream(key, connection, why) => {
            router.tell_stream(io, key, StreamEvent::Missed { connection, why });
        }
        Task::ResumeInspections => subrequests::resume_inspections(router, io),
        Task::DoChores | Task::EndClients => debug_assert!(false, "the worker does these"),
        Task::FlushMember(key) => router.world.members.flush(io, key),
        Task::FlushClient(key) => {
            if router.world.clients.flush_at_end_of_turn((io, &mut router.world.agenda), key) {
                WorkerEdge::of(io, &mut router.world).end_client(key, ClientEnd::ORDERLY);
            }
        }
        Task::BoundMemory => {
            let World { clients, agenda, .. } = &mut router.world;
            let Some(holders) = clients.over_budget(agenda, io.now_ms()) else { return };
            for (is_still, key) in holders {
                if !router.world.clients.http2_memory.ends(is_still) {
                    break;
                }
                router.client_event(io, key, |it| it.client.holds_too_much());
            }
            router.world.clients.http2_memory.end_look(io.now_ms());
        }
    }
}
