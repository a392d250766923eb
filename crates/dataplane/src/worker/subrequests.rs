//! Executes the errands of transactions after the call that ordered them: starts and ends weir's own requests.

use weir_event_loop::EventLoop;
use weir_exchange::arena::ExchangeKey;
use weir_exchange::parts::caller::Caller;
use weir_exchange::parts::errand::{Errand, Order};
use weir_exchange::transaction::stages::{self, mirror};
use weir_exchange::transaction::{Transaction, subrequest};

use super::Worker;
use super::desk::Desk;

/// Executes an errand of a transaction.
pub fn run(worker: &mut Worker, io: &mut EventLoop, errand: Errand) {
    match errand {
        Errand::Client(client) => worker.client_goes_on(io, client),
        Errand::Begin(mut order) => begin(worker, io, &mut order),
        Errand::Leave { child, is_late } => {
            worker.with(io, child, |it, at| subrequest::leave(it, at, is_late));
        }
    }
}

fn begin(worker: &mut Worker, io: &mut EventLoop, order: &mut Order) {
    // The transaction that ordered the request may have ended.
    if let Some(parent) = order.parent
        && !worker.with(io, parent, |it, _| stages::awaits_child(it))
    {
        return;
    }
    let buffer = io.take_buffer();
    let mut desk = Desk { io: &mut *io, world: &mut worker.world };
    let child = subrequest::begin(&mut desk, &mut worker.exchanges, order, buffer);
    match (child, order.parent) {
        (Some(child), parent) => {
            if let Some(parent) = parent {
                worker.with(io, parent, |it, _| stages::child_began(it, child));
            }
            worker.with(io, child, |it, at| subrequest::enter(it, at));
        }
        (None, Some(parent)) => {
            worker.with(io, parent, |it, at| stages::child_ended(it, at, None, None));
        }
        (None, None) => {
            order.server.counters.mirrors_failed.add(1);
            mirror::ended(&mut worker.world.tools);
        }
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
