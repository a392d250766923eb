//! Executes the errands of transactions after the call that ordered them: starts and ends weir's own requests.

use weir_event_loop::EventLoop;
use weir_exchange::arena::ExchangeKey;
use weir_exchange::parts::errand::{Errand, Order};
use weir_exchange::parts::inspecting::Scrutiny;
use weir_exchange::transaction::{Transaction, aside, authorisation, mirror};

use super::Worker;
use super::desk::Desk;

/// Executes an errand of a transaction.
pub fn run(worker: &mut Worker, io: &mut EventLoop, errand: Errand) {
    match errand {
        Errand::Client(client) => worker.client_goes_on(io, client),
        Errand::Begin(mut order) => begin(worker, io, &mut order),
        Errand::Leave { aside, is_late } => {
            worker.with(io, aside, |it, at| aside::leave(it, at, is_late));
        }
    }
}

fn begin(worker: &mut Worker, io: &mut EventLoop, order: &mut Order) {
    // The transaction that ordered the request may have ended.
    if let Some(parent) = order.parent
        && !worker.with(io, parent, |it, _| authorisation::awaits_beginning(it))
    {
        return;
    }
    let buffer = io.take_buffer();
    let mut desk = Desk { io: &mut *io, world: &mut worker.world };
    let aside = aside::begin(&mut desk, &mut worker.exchanges, order, buffer);
    match (aside, order.parent) {
        (Some(aside), parent) => {
            if let Some(parent) = parent {
                worker.with(io, parent, |it, _| authorisation::began(it, aside));
            }
            worker.with(io, aside, |it, at| aside::enter(it, at));
        }
        (None, Some(parent)) => {
            worker.with(io, parent, |it, at| authorisation::ended(it, at, None, None));
        }
        (None, None) => {
            order.server.counters.mirrors_failed.add(1);
            mirror::ended(&mut worker.world.tools);
        }
    }
}

/// Handles the end of one of weir's own requests: removes the request, and continues the transaction that waits for it.
pub fn ended(worker: &mut Worker, io: &mut EventLoop, aside: ExchangeKey) {
    let transaction = worker.exchanges.get_mut(aside).and_then(Transaction::http_mut);
    let scrutiny = transaction.and_then(|it| it.scrutiny.take()).map(|scrutiny| *scrutiny);
    worker.exchanges.discard(aside);
    let Some(Scrutiny::Aside(it)) = scrutiny else { return };
    let (parent, reply) = (it.parent, it.reply);
    if let Some(parent) = parent {
        worker.with(io, parent, |it, at| authorisation::ended(it, at, Some(aside), Some(reply)));
    }
}
