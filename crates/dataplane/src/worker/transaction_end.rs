//! Ends transactions: removes them from queues and from their client connections, and writes their log lines.

use weir_core::clock::Clock;
use weir_exchange::local::client_tls::ClientTls;
use weir_exchange::parts::account::LogOutput;
use weir_exchange::parts::phase::Phase;
use weir_exchange::parts::request_context::RequestContext;
use weir_exchange::parts::stream_end::StreamEnd;
use weir_exchange::parts::transaction_ends::TransactionEnds;
use weir_exchange::parts::wait_state::WaitState;
use weir_exchange::shared::counters::WorkerCounters;
use weir_exchange::termination::Termination;
use weir_telemetry::access_log::{AccessLog, Entry, PolicyFields, RequestId};
use weir_telemetry::records::record::Id;
use weir_telemetry::records::recorder::{FinishedTransaction, Recorder};

use crate::worker::edge::WorkerEdge;
use crate::worker::state::client::Client;
use crate::worker::world::World;

impl WorkerEdge<'_> {
    /// Ends a transaction, and closes its stream if it has one.
    pub fn finish_transaction(
        &mut self,
        ends: &mut TransactionEnds,
        why: Termination,
        stream_end: StreamEnd,
    ) {
        leave_wait(self, ends);
        if let Some(client) = self.world.clients.all.find_mut(ends.caller.client()) {
            client.exchange_ended();
        }
        if !ends.account.logged.is_nothing() {
            if why != Termination::Complete && ends.caller.stream().is_none() {
                let queued = self.world.clients.all.find(ends.caller.client());
                let queued = queued.map_or(0, |client| self.io.sockets.queued(client.token));
                ends.account.bytes_sent = ends.account.bytes_sent.saturating_sub(queued as u64);
            }
            self.world.log_transaction(ends, self.io.clock(), why);
        }
        self.world.clients.end_stream((self.io, &mut self.world.agenda), ends, stream_end);
    }
}

/// Removes a transaction from its queue, if it waits in one.
#[inline]
pub fn leave_wait(edge: &mut WorkerEdge<'_>, ends: &mut TransactionEnds) {
    if let Phase::Before(WaitState::InLine(_) | WaitState::Beside) = ends.phase {
        let wait_state = ends.phase.end_wait();
        edge.world.waiting.leave(&ends.tries.pool, &wait_state, ends.key);
    }
}

impl World {
    /// Writes the log line and the record of an ended transaction.
    fn log_transaction(&mut self, ends: &TransactionEnds, clock: Clock, termination: Termination) {
        let (account, times) = (&ends.account, &ends.account.times);
        let total_us = clock.now_us() - account.begun_us;
        let span = |from: u64, to: u64| {
            if from == 0 { 0 } else { to.saturating_sub(from) }
        };
        let client = self.clients.all.find(ends.caller.client());
        let context = ends.context.as_deref();
        let taken = context.map_or(&[][..], |context| &context.request_id);
        let request_id = match account.request_number {
            0 if taken.is_empty() => RequestId::OfLog,
            0 => RequestId::Taken(taken),
            number => RequestId::Made(self.tools.request_ids.id(number)),
        };
        let entry = Entry {
            format: account.logged.format(),
            request_id,
            request: &account.log_request,
            client: client.and_then(Client::address),
            peer: client.and_then(|client| client.peer),
            tls: Ok(client.and_then(|client| client.tls.as_deref()).map(ClientTls::facts)),
            server: &ends.server.live.name,
            pool: ends.tries.was_sought.then(|| &*ends.tries.pool.live.name),
            member: account.last_member.as_ref().map(|member| &*member.live.label),
            status: account.status,
            bytes_received: account.bytes_received,
            bytes_sent: account.bytes_sent,
            head_bytes_sent: account.head_bytes_sent,
            retries: account.retries,
            queue_us: match account.tried_us {
                0 if !ends.tries.was_sought => 0,
                // A request that was not sent to any member was queued for the whole time.
                0 => total_us,
                tried_us => tried_us.saturating_sub(account.begun_us),
            },
            connect_us: span(account.tried_us, times.connected_us),
            first_byte_us: span(times.connected_us, times.first_byte_us),
            total_us,
            decided: PolicyFields {
                is_bound: account.is_bound,
                marks: context.map(|context| &context.later.marks),
                rules: context.map_or(&[], |context| &context.followed),
                rule_names: &ends.server.snapshot.rules,
                persistence: context.and_then(|context| context.kept),
                user: context.map_or(&[], RequestContext::logged_user),
                trace: context
                    .and_then(|context| context.traced.as_deref())
                    .map(|traced| (traced.trace_id, traced.span_id)),
                entered_at: context
                    .and_then(|context| context.entered_at.as_ref())
                    .map(|server| &*server.live.name),
            },
            termination,
        };
        let how = (FinishedTransaction::Begun(ends.key), account.logged);
        write_down((&mut self.log, &mut self.recorder), entry, how, (clock, &self.counted));
    }
}

/// Writes the log line of a finished transaction, and sends its record if one is needed.
pub fn write_down(
    (log, recorder): (&mut AccessLog, &mut Recorder),
    mut entry: Entry<'_>,
    (finished, logged): (FinishedTransaction<'_>, LogOutput),
    (clock, counted): (Clock, &WorkerCounters),
) {
    if logged.is_recorded() {
        let id = match entry.request_id {
            RequestId::OfLog => Id::Number(log.number()),
            RequestId::Made(number) => Id::Number(number),
            RequestId::Taken(name) => Id::Taken(name.into()),
        };
        if let Id::Number(number) = id {
            entry.request_id = RequestId::Made(number);
        }
        recorder.finish(&finished, &entry, id, log.unix_ms(clock));
    }
    log.write(&entry, clock, counted);
}
