//! The implementation of the interface between transactions and sockets. Each call is passed to the code for the given side.

use weir_event_loop::EventLoop;
use weir_exchange::edge::{ConnectionState, Edge, Flow, Lag, Release, Side, TunnelBytes, Turn};
use weir_exchange::parts::end::{End, OwnedEnd};
use weir_exchange::parts::failure::MemberFailure;
use weir_exchange::parts::messages::{ClientBodyPart, HeadKind, Message, OutHead, OwnAnswer};
use weir_exchange::parts::notice::Notice;
use weir_exchange::parts::pieces::Pieces;
use weir_exchange::parts::request::{ConnectionNeed, Request};
use weir_exchange::parts::stream_end::StreamEnd;
use weir_exchange::parts::tools::Tools;
use weir_exchange::parts::transaction_ends::TransactionEnds;
use weir_exchange::parts::witness::{Step, Witness};
use weir_exchange::termination::Termination;
use weir_telemetry::spans::FinishedTrace;

use crate::worker::agenda::Task;
use crate::worker::straight;
use crate::worker::world::World;

/// The sockets and the state of the worker, which operations of a transaction change.
pub struct WorkerEdge<'a> {
    pub io: &'a mut EventLoop,
    pub world: &'a mut World,
}

impl<'a> WorkerEdge<'a> {
    /// The sockets and the state, for calls of transactions.
    #[inline(always)]
    pub fn of(io: &'a mut EventLoop, world: &'a mut World) -> Self {
        Self { io, world }
    }
}

/// Records the steps of requests with notes.
impl Witness for WorkerEdge<'_> {
    #[inline]
    fn note(&mut self, step: Step<'_, '_>) {
        if self.world.recorder.is_noting() {
            self.world.recorder.note(step, self.io.clock());
        }
    }
}

impl Edge for WorkerEdge<'_> {
    #[inline]
    fn head(
        &mut self,
        ends: &mut TransactionEnds,
        out: &OutHead<'_>,
        kind: HeadKind,
        is_end: bool,
    ) -> Message {
        self.begin_message(ends, out, (kind, is_end))
    }

    #[inline]
    fn send(&mut self, ends: &mut TransactionEnds, head: Message, body: &ClientBodyPart<'_>) {
        self.send_body(ends, head, body);
    }

    fn answer(&mut self, ends: &mut TransactionEnds, answer: &OwnAnswer<'_>) {
        self.send_own(ends, answer);
    }

    fn hold(&mut self, ends: &mut TransactionEnds, body: (&[u8], &Pieces), end: End<'_>) {
        self.world.clients.hold(self.io, ends, body, end);
    }

    fn resume_client(&mut self, ends: &mut TransactionEnds) -> Option<(Vec<u8>, OwnedEnd)> {
        self.let_client_send(ends)
    }

    #[inline]
    fn connect(
        &mut self,
        ends: &mut TransactionEnds,
        member: u32,
        need: ConnectionNeed,
        is_again: bool,
    ) -> Result<(), MemberFailure> {
        if is_again {
            return self.reconnect(ends, member, need);
        }
        self.take_connection(ends, member, need)
    }

    #[inline]
    fn ask(
        &mut self,
        ends: &mut TransactionEnds,
        request: &mut Request,
        body: (&[u8], &Pieces),
        end: End<'_>,
    ) {
        self.ask_member(ends, request, body, end);
    }

    fn ask_again(&mut self, ends: &mut TransactionEnds, request: &mut Request, unsent: &[u8]) {
        self.ask_once_more(ends, request, unsent);
    }

    #[inline]
    fn reach(&mut self, ends: &TransactionEnds, request: &Request) -> Option<ConnectionState> {
        self.world.members.end_of(ends)?.reach(request)
    }

    #[inline]
    fn release(&mut self, ends: &mut TransactionEnds, how: Release) -> bool {
        self.leave_connection(ends, how)
    }

    fn is_dry(&mut self, ends: &TransactionEnds) -> bool {
        let member = self.world.members.end_of(ends);
        member.is_none_or(|member| member.is_dry(self.io))
    }

    fn pass(&mut self, ends: &mut TransactionEnds, side: Side, bytes: TunnelBytes<'_>) {
        let World { clients, members, agenda, .. } = &mut *self.world;
        match (side, bytes) {
            (Side::Client, TunnelBytes::Bytes(bytes)) => {
                clients.send_bytes((self.io, agenda), ends, bytes, End::No);
            }
            (Side::Client, TunnelBytes::Last(bytes)) => {
                clients.send_bytes((self.io, agenda), ends, bytes, End::Data);
            }
            (Side::Member, bytes) => {
                if let Some(mut member) = members.end_of(ends) {
                    member.pass((self.io, agenda), bytes);
                }
            }
            (Side::Client, TunnelBytes::Moved(count)) => ends.count_sent(count),
        }
    }

    fn half_close(&mut self, ends: &mut TransactionEnds, side: Side) {
        match side {
            Side::Client => self.world.clients.half_close((self.io, &mut self.world.agenda), ends),
            Side::Member => {
                if let Some(mut member) = self.world.members.end_of(ends) {
                    member.half_close((self.io, &mut self.world.agenda));
                }
            }
        }
    }

    #[inline]
    fn lag(&mut self, ends: &TransactionEnds, side: Side) -> Lag {
        match side {
            Side::Client => self.world.clients.lag(self.io, ends),
            Side::Member => {
                let member = self.world.members.end_of(ends);
                member.map_or(Lag::None, |mut member| member.lag(self.io))
            }
        }
    }

    #[inline]
    fn flow(&mut self, ends: &mut TransactionEnds, side: Side, flow: Flow) {
        match (side, flow) {
            (_, Flow::Straight) => straight::offer(self.io, self.world, ends, side),
            (Side::Client, _) => {
                self.world.clients.set_flow((self.io, &mut self.world.agenda), ends, flow)
            }
            (Side::Member, _) => {
                if let Some(mut member) = self.world.members.end_of(ends) {
                    member.set_flow((self.io, &mut self.world.agenda), flow);
                }
            }
        }
    }

    #[inline]
    fn due(&mut self, ends: &mut TransactionEnds, side: Side, at_ms: Option<u64>) {
        match side {
            Side::Client => self.world.clients.set_due(self.io, ends, at_ms),
            Side::Member => {
                if let Some(mut member) = self.world.members.end_of(ends) {
                    member.set_due(self.io, at_ms);
                }
            }
        }
    }

    fn patience_until_ms(&mut self, ends: &TransactionEnds, side: Side, timeout_ms: u64) -> u64 {
        match side {
            Side::Client => self.world.clients.patience_until_ms(self.io, ends, timeout_ms),
            Side::Member => {
                let member = self.world.members.end_of(ends);
                member.map_or(0, |member| member.patience_until_ms(self.io, timeout_ms))
            }
        }
    }

    fn enqueue(&mut self, ends: &mut TransactionEnds, is_sent: bool) -> bool {
        self.join_line(ends, is_sent)
    }

    fn delay(&mut self, ends: &TransactionEnds, until_us: u64) {
        self.world.waiting.delay(until_us, ends.key);
        self.world.agenda.add_once(Task::ServeWaiting);
    }

    #[inline]
    fn finish(&mut self, ends: &mut TransactionEnds, why: Termination, stream_end: StreamEnd) {
        self.finish_transaction(ends, why, stream_end);
    }

    fn tell(&mut self, notice: Notice<'_>) {
        let (world, clock) = (&mut *self.world, self.io.clock());
        match notice {
            Notice::Inspected(report) => world.log_inspected(report, clock),
            Notice::Traced { ends, context, traced, record, why } => {
                let finished = FinishedTrace { ends, context, traced, record, why };
                let (ids, counted) = (&world.tools.request_ids, &world.counted);
                world.side_logs.write_spans(&finished, ids, clock, counted);
            }
            notice => world.notices.tell(notice, clock.now_ms()),
        }
    }

    #[inline]
    fn turn(&self) -> Turn {
        Turn {
            worker: self.world.id,
            clock: self.io.clock(),
            is_draining: self.world.is_draining(),
        }
    }

    #[inline]
    fn tools(&mut self) -> &mut Tools {
        &mut self.world.tools
    }

    #[inline]
    fn recycle(&mut self, buffer: Vec<u8>) {
        self.io.spares.give(buffer);
    }
}
