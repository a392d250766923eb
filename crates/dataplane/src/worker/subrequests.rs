//! Executes the deferred work of transactions after the call that ordered them: starts and ends weir's own requests, and sends
//! inspections elsewhere.

use weir_event_loop::EventLoop;
use weir_exchange::parts::deferred_work::{DeferredWork, SubrequestOrder};
use weir_exchange::parts::inspection_job::InspectionJob;
use weir_exchange::shared::counters::WorkerCounters;
use weir_exchange::transaction::{stages, subrequest, verdict_waits};

use super::agenda::{Agenda, Task};
use super::edge::WorkerEdge;
use super::router::Router;
use super::state::client::Client;
use super::world::World;
use crate::inspection_queue::KeptInspections;

/// Executes deferred work of a transaction.
pub fn run(router: &mut Router, io: &mut EventLoop, deferred: DeferredWork) {
    match deferred {
        DeferredWork::Client(key) => {
            router.client_continue(io, key);
            // A tunnel that has received all data learns that its client has sent FIN.
            let client = router.world.clients.all.get(key).filter(|client| client.ended);
            if let Some(exchange) = client.and_then(Client::exchange) {
                router.with_any(io, exchange, |it, at| {
                    if at.world.clients.has_ended(it.ends()) {
                        it.with_tunnel(|it| it.handle_client_end(at));
                    }
                });
            }
        }
        DeferredWork::Begin(mut order) => begin(router, io, &mut order),
        DeferredWork::Inspect(job) => {
            let World { agenda, counted, .. } = &mut router.world;
            inspect(&mut router.inspections, (agenda, &**counted), job);
        }
        DeferredWork::Leave { child, is_late } => {
            router.with(io, child, |it, at| subrequest::leave(it, at, is_late));
        }
    }
}

fn begin(router: &mut Router, io: &mut EventLoop, order: &mut SubrequestOrder) {
    // The transaction that ordered the request may have ended.
    if let Some(parent) = order.parent
        && !router.with(io, parent, |it, _| stages::awaits_child(it))
    {
        return;
    }
    let buffer = io.spares.take();
    let mut edge = WorkerEdge { io: &mut *io, world: &mut router.world };
    let child = subrequest::begin(&mut edge, &mut router.exchanges, order, buffer);
    match (child, order.parent) {
        (Some(child), parent) => {
            if let Some(parent) = parent {
                router.with(io, parent, |it, _| {
                    stages::child_began(it.ends.context.as_deref_mut(), child)
                });
            }
            router.with(io, child, |it, at| it.seek_member(at));
        }
        (None, Some(parent)) => {
            router.with(io, parent, |it, at| stages::child_ended(it, at, None, None));
        }
        (None, None) => {
            subrequest::not_begun(&mut router.world.tools, order);
        }
    }
}

/// Sends an inspection elsewhere, or keeps it until there is a place.
fn inspect(
    inspections: &mut KeptInspections,
    (agenda, counted): (&mut Agenda, &WorkerCounters),
    job: Box<InspectionJob>,
) {
    let is_sent = inspections.add(job);
    counted.waf_inspections_away.add(1);
    match is_sent {
        true => counted.waf_inspections_moved.add(1),
        false => {
            counted.waf_inspections_kept.add(1);
            agenda.add_once(Task::ResumeInspections);
        }
    }
}

/// Goes on with the inspections that are kept, for one turn.
pub fn resume_inspections(router: &mut Router, io: &mut EventLoop) {
    loop {
        if let Some((job, panic)) = router.inspections.resume() {
            let World { id, notices, .. } = &router.world;
            panic.into_iter().for_each(|it| notices.tell_of_panicked_inspection(*id, it));
            inspection_returned(router, io, *job);
        }
        if !router.inspections.are_too_many() {
            break;
        }
    }
    if !router.inspections.are_none() {
        router.world.agenda.add_once(Task::ResumeInspections);
    }
}

/// An inspection is back, from a thread or from those that are kept. The key of its transaction finds nothing if that has ended.
pub fn inspection_returned(router: &mut Router, io: &mut EventLoop, job: InspectionJob) {
    let counted = &router.world.counted;
    counted.waf_inspections_away.subtract(1);
    counted.waf_inspections_lost.add(u64::from(job.is_lost()));
    match router.world.tools.offloaded.end(&job) {
        Some(left) => verdict_waits::unawaited_inspection_returned(
            &mut WorkerEdge::of(io, &mut router.world),
            left,
            job,
        ),
        None => router.with_any(io, job.exchange, |it, at| it.inspection_returned(at, job)),
    }
}
