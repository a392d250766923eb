//! Executes the deferred work of transactions after the call that ordered them: starts and ends weir's own requests, and sends
//! inspections elsewhere.

use weir_event_loop::EventLoop;
use weir_exchange::arena::ExchangeKey;
use weir_exchange::parts::caller::Caller;
use weir_exchange::parts::deferred_work::{DeferredWork, SubrequestOrder};
use weir_exchange::parts::inspection_job::InspectionJob;
use weir_exchange::shared::counters::WorkerCounters;
use weir_exchange::transaction::{Transaction, stages, subrequest, verdict_waits};

use super::Worker;
use super::agenda::{Agenda, Task};
use super::edge::WorkerEdge;
use super::world::World;
use crate::inspection_queue::KeptInspections;

/// Executes deferred work of a transaction.
pub fn run(worker: &mut Worker, io: &mut EventLoop, deferred: DeferredWork) {
    match deferred {
        DeferredWork::Client(client) => worker.client_goes_on(io, client),
        DeferredWork::Begin(mut order) => begin(worker, io, &mut order),
        DeferredWork::Inspect(job) => {
            let World { agenda, counted, .. } = &mut worker.world;
            inspect(&mut worker.inspections, (agenda, &**counted), job);
        }
        DeferredWork::Leave { child, is_late } => {
            worker.with(io, child, |it, at| subrequest::leave(it, at, is_late));
        }
    }
}

fn begin(worker: &mut Worker, io: &mut EventLoop, order: &mut SubrequestOrder) {
    // The transaction that ordered the request may have ended.
    if let Some(parent) = order.parent
        && !worker.with(io, parent, |it, _| stages::awaits_child(it))
    {
        return;
    }
    let buffer = io.spares.take();
    let mut edge = WorkerEdge { io: &mut *io, world: &mut worker.world };
    let child = subrequest::begin(&mut edge, &mut worker.exchanges, order, buffer);
    match (child, order.parent) {
        (Some(child), parent) => {
            if let Some(parent) = parent {
                worker.with(io, parent, |it, _| {
                    stages::child_began(it.ends.context.as_deref_mut(), child)
                });
            }
            worker.with(io, child, |it, at| it.seek_member(at));
        }
        (None, Some(parent)) => {
            worker.with(io, parent, |it, at| stages::child_ended(it, at, None, None));
        }
        (None, None) => {
            subrequest::not_begun(&mut worker.world.tools, order);
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
pub fn resume_inspections(worker: &mut Worker, io: &mut EventLoop) {
    resume_some(worker, io);
    if !worker.inspections.are_none() {
        worker.world.agenda.add_once(Task::ResumeInspections);
    }
}

fn resume_some(worker: &mut Worker, io: &mut EventLoop) {
    loop {
        if let Some((job, panic)) = worker.inspections.resume() {
            let World { id, notices, .. } = &worker.world;
            panic.into_iter().for_each(|it| notices.tell_of_panicked_inspection(*id, it));
            inspection_returned(worker, io, *job);
        }
        if !worker.inspections.are_too_many() {
            return;
        }
    }
}

/// An inspection is back, from a thread or from those that are kept. The key of its transaction finds nothing if that has ended.
pub fn inspection_returned(worker: &mut Worker, io: &mut EventLoop, job: InspectionJob) {
    let counted = &worker.world.counted;
    counted.waf_inspections_away.subtract(1);
    counted.waf_inspections_lost.add(u64::from(job.is_lost()));
    match worker.world.tools.offloaded.end(&job) {
        Some(left) => verdict_waits::unawaited_inspection_returned(&mut worker.edge(io), left, job),
        None => worker.with_any(io, job.exchange, |it, at| it.inspection_returned(at, job)),
    }
}

/// Handles the end of one of weir's own requests: removes the request, and hands the reply to the transaction that waits for it.
pub fn ended(worker: &mut Worker, io: &mut EventLoop, child: ExchangeKey) {
    let exchange = worker.exchanges.get_mut(child).and_then(Transaction::http_mut);
    let ended = exchange.map(|it| (it.ends.caller, it.reply.take()));
    worker.exchanges.discard(child);
    let Some((Caller::Parent(parent), reply)) = ended else { return };
    worker.with(io, parent, |it, at| stages::child_ended(it, at, Some(child), reply));
}
