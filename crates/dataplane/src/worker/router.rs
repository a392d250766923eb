//! The connections and transactions of a worker: what comes from a connection goes to its transaction, and what becomes of a
//! connection after its transaction is decided here.

use weir_event_loop::EventLoop;
use weir_exchange::arena::{Arena, ExchangeKey, OfExchange};
use weir_exchange::parts::transaction_ends::NextClientState;
use weir_exchange::transaction::exchange::Exchange;
use weir_exchange::transaction::{Transaction, stages};

use crate::inspection_queue::KeptInspections;
use crate::worker::agenda::{Due, Task};
use crate::worker::edge::WorkerEdge;
use crate::worker::state::client_end::ClientEnd;
use crate::worker::state::client_step::ClientStep;
use crate::worker::world::{Inbox, World};

/// The transactions of a worker, memory for the current message, and the state that operations change. The three can be
/// borrowed separately.
pub struct Router {
    /// The transactions.
    pub exchanges: Arena<OfExchange, Transaction>,
    /// Memory for the message that is being read.
    pub inbox: Inbox,
    /// The state that operations of transactions change.
    pub world: World,
    /// The long inspections that threads have no place for.
    pub inspections: KeptInspections,
}

impl Router {
    /// Calls a function with an exchange, if it still exists and has not become a tunnel.
    pub fn with<R: Default>(
        &mut self,
        io: &mut EventLoop,
        key: ExchangeKey,
        act: impl FnOnce(&mut Exchange, &mut WorkerEdge<'_>) -> R,
    ) -> R {
        self.with_any(io, key, |it, at| {
            it.http_mut().map_or_else(R::default, |exchange| act(exchange, at))
        })
    }

    /// Calls a function with a transaction, if it still exists. If the transaction has ended afterwards, it is removed, and
    /// its client connection continues.
    pub fn with_any<R: Default>(
        &mut self,
        io: &mut EventLoop,
        key: ExchangeKey,
        act: impl FnOnce(&mut Transaction, &mut WorkerEdge<'_>) -> R,
    ) -> R {
        let Some(transaction) = self.exchanges.get_mut(key) else { return R::default() };
        let result = act(transaction, &mut WorkerEdge::of(&mut *io, &mut self.world));
        if let Some(after) = transaction.ends_mut().over.take() {
            self.continue_client(io, key, after);
        }
        if !self.world.tools.deferred_work.is_empty() {
            self.run_orders(io);
        }
        result
    }

    /// Executes what a call of a transaction has ordered, unless the call belongs to such an order itself: then it is executed
    /// after that.
    #[inline(never)]
    pub fn run_orders(&mut self, io: &mut EventLoop) {
        let World { agenda, tools, .. } = &mut self.world;
        tools.deferred_work.drain(..).for_each(|it| agenda.add(Task::Order(it)));
        if agenda.begin_orders() {
            self.run_due(io, Due::AfterCall);
            self.world.agenda.end_orders();
        }
    }

    /// Continues with the client connection after a transaction has ended.
    pub fn continue_client(
        &mut self,
        io: &mut EventLoop,
        key: ExchangeKey,
        after: NextClientState,
    ) {
        match after {
            NextClientState::Tunnel { has_member_ended } => {
                self.exchanges.replace(key, Transaction::into_tunnel);
                return self.with_any(io, key, |it, at| {
                    let has_client_ended = at.world.clients.has_ended(it.ends());
                    it.with_tunnel(|it| it.start(at, (has_client_ended, has_member_ended)));
                });
            }
            NextClientState::Subrequest => {
                let ended = self.exchanges.get_mut(key).and_then(Transaction::take_reply);
                self.exchanges.discard(key);
                let Some((parent, reply)) = ended else { return };
                return self.with(io, parent, |it, at| {
                    stages::child_ended(it, at, Some(key), reply);
                });
            }
            _ => {}
        }
        let Some(transaction) = self.exchanges.get(key) else { return };
        let caller = transaction.ends().caller;
        self.exchanges.discard(key);
        let Some(client) = caller.client() else { return };
        let is_shared = self.world.clients.all.get(client).is_none_or(|it| it.http2.is_some());
        match after {
            // A shared connection stays open when one of its streams ends.
            NextClientState::Response(_)
            | NextClientState::Whole
            | NextClientState::Broken { .. }
            | NextClientState::Gone { .. }
                if is_shared => {}
            NextClientState::Response(facts) => {
                let Some(state) = self.world.clients.all.get(client) else { return };
                match state.answered(io, facts, self.world.clients.draining) {
                    ClientStep::Nothing => {}
                    step => self.client_step(io, client, step),
                }
            }
            NextClientState::Whole => {
                WorkerEdge::of(io, &mut self.world).end_client(client, ClientEnd::ORDERLY)
            }
            NextClientState::Gone { must_reset } => {
                let end = if must_reset { ClientEnd::Reset } else { ClientEnd::Close };
                WorkerEdge::of(io, &mut self.world).end_client(client, end);
            }
            NextClientState::Broken { must_reset } => {
                WorkerEdge::of(io, &mut self.world)
                    .end_client(client, ClientEnd::Cut { must_reset });
            }
            NextClientState::Cut { termination, must_reset } => {
                // All exchanges on the connection end with it.
                let end = ClientEnd::Cut { must_reset };
                self.client_step(io, client, ClientStep::EndStreams(termination, end));
            }
            NextClientState::Nothing
            | NextClientState::Subrequest
            | NextClientState::Tunnel { .. } => {}
        }
    }
}
