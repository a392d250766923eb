//! The implementation of the interface between transactions and sockets. Each call is passed to the code for the given side.

use weir_event_loop::EventLoop;
use weir_exchange::edge::{Edge, Flow, Lag, Passing, Reach, Release, Side, Turn};
use weir_exchange::parts::end::{End, OwnedEnd};
use weir_exchange::parts::ends::Ends;
use weir_exchange::parts::failure::MemberFailure;
use weir_exchange::parts::messages::{HeadKind, Message, OutHead, OwnAnswer, Sending};
use weir_exchange::parts::notice::Notice;
use weir_exchange::parts::pieces::Pieces;
use weir_exchange::parts::request::{Need, Request};
use weir_exchange::parts::stream_end::StreamEnd;
use weir_exchange::parts::tools::Tools;
use weir_exchange::parts::witness::{Step, Witness};
use weir_exchange::termination::Termination;
use weir_telemetry::spans::Finished;

use crate::worker::straight;
use crate::worker::world::World;

/// The sockets and the state of the worker, which operations of a transaction change.
pub struct Desk<'a> {
    pub io: &'a mut EventLoop,
    pub world: &'a mut World,
}

/// Records the steps of requests with notes.
impl Witness for Desk<'_> {
    #[inline]
    fn note(&mut self, step: Step<'_, '_>) {
        if self.world.recorder.is_noting() {
            self.world.recorder.note(step, self.io.clock());
        }
    }
}

impl Edge for Desk<'_> {
    #[inline]
    fn head(
        &mut self,
        ends: &mut Ends,
        out: &OutHead<'_>,
        kind: HeadKind,
        is_end: bool,
    ) -> Message {
        self.begin_message(ends, out, (kind, is_end))
    }

    #[inline]
    fn send(&mut self, ends: &mut Ends, head: Message, body: &Sending<'_>) {
        self.send_body(ends, head, body);
    }

    fn answer(&mut self, ends: &mut Ends, answer: &OwnAnswer<'_>) {
        self.send_own(ends, answer);
    }

    fn hold(&mut self, ends: &mut Ends, body: (&[u8], &Pieces), end: End<'_>) {
        self.hold_of_client(ends, body, end);
    }

    fn let_on(&mut self, ends: &mut Ends) -> Option<(Vec<u8>, OwnedEnd)> {
        self.let_client_send(ends)
    }

    #[inline]
    fn connect(
        &mut self,
        ends: &mut Ends,
        member: u32,
        need: Need,
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
        ends: &mut Ends,
        request: &mut Request,
        body: (&[u8], &Pieces),
        end: End<'_>,
    ) {
        self.ask_member(ends, request, body, end);
    }

    fn ask_again(&mut self, ends: &mut Ends, request: &mut Request, unsent: &[u8]) {
        self.ask_once_more(ends, request, unsent);
    }

    #[inline]
    fn reach(&mut self, ends: &Ends, request: &Request) -> Option<Reach> {
        self.reach_of_member(ends, request)
    }

    #[inline]
    fn release(&mut self, ends: &mut Ends, how: Release) -> bool {
        self.leave_connection(ends, how)
    }

    fn is_dry(&mut self, ends: &Ends) -> bool {
        self.is_member_dry(ends)
    }

    fn pass(&mut self, ends: &mut Ends, side: Side, bytes: Passing<'_>) {
        match (side, bytes) {
            (Side::Client, Passing::Bytes(bytes)) => self.send_bytes(ends, bytes, End::No),
            (Side::Client, Passing::Last(bytes)) => self.send_bytes(ends, bytes, End::Data),
            (Side::Member, Passing::Bytes(bytes)) => self.ask_bytes(ends, bytes, End::No),
            (Side::Member, Passing::Last(bytes)) => self.ask_bytes(ends, bytes, End::Data),
            (Side::Client, Passing::Moved(count)) => ends.count_sent(count),
            (Side::Member, Passing::Moved(_)) => {
                if let Some(connection) = ends.phase.connection() {
                    self.count_sent_to_member(connection);
                }
            }
        }
    }

    fn half_close(&mut self, ends: &mut Ends, side: Side) {
        match side {
            Side::Client => self.end_client(ends),
            Side::Member => self.end_member(ends),
        }
    }

    #[inline]
    fn lag(&mut self, ends: &Ends, side: Side) -> Lag {
        match side {
            Side::Client => self.client_lag(ends),
            Side::Member => self.member_lag(ends),
        }
    }

    #[inline]
    fn flow(&mut self, ends: &mut Ends, side: Side, flow: Flow) {
        match (side, flow) {
            (_, Flow::Straight) => straight::offer(self.io, self.world, ends, side),
            (Side::Client, _) => self.set_client_flow(ends, flow),
            (Side::Member, _) => self.set_member_flow(ends, flow),
        }
    }

    #[inline]
    fn due(&mut self, ends: &mut Ends, side: Side, at_ms: Option<u64>) {
        match side {
            Side::Client => self.set_client_due(ends, at_ms),
            Side::Member => self.set_member_due(ends, at_ms),
        }
    }

    fn patience_until_ms(&mut self, ends: &Ends, side: Side, timeout_ms: u64) -> u64 {
        match side {
            Side::Client => self.client_patience_until_ms(ends, timeout_ms),
            Side::Member => self.member_patience_until_ms(ends, timeout_ms),
        }
    }

    fn line_up(&mut self, ends: &mut Ends, is_sent: bool) -> bool {
        self.join_line(ends, is_sent)
    }

    fn delay(&mut self, ends: &Ends, until_us: u64) {
        self.world.waiting.delay(until_us, ends.key);
    }

    #[inline]
    fn finish(&mut self, ends: &mut Ends, why: Termination, stream_end: StreamEnd) {
        self.finish_transaction(ends, why, stream_end);
    }

    fn tell(&mut self, notice: Notice<'_>) {
        let (world, clock) = (&mut *self.world, self.io.clock());
        match notice {
            Notice::Inspected(inspected) => {
                inspected.inspection.into_iter().for_each(|it| world.live.waf_rules.count(it));
                world.side_logs.write_inspected(inspected, clock, &world.counted);
            }
            Notice::Traced { ends, remembered, traced, record, why } => {
                let finished = Finished { ends, remembered, traced, record, why };
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
        self.io.give_buffer(buffer);
    }
}
