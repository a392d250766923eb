//! The environment of a transaction, in memory: it replaces the data path's `WorkerEdge` and has no sockets.

use std::collections::VecDeque;

use weir_core::clock::Clock;
use weir_exchange::arena::{Arena, ConnectionKey, ExchangeKey, OfConnection};
use weir_exchange::edge::{ConnectionState, Edge, Flow, Lag, Release, Side, TunnelBytes, Turn};
use weir_exchange::parts::end::{End, OwnedEnd};
use weir_exchange::parts::failure::MemberFailure;
use weir_exchange::parts::inspection_job::InspectionJob;
use weir_exchange::parts::messages::{ClientBodyPart, HeadKind, Message, OutHead, OwnAnswer};
use weir_exchange::parts::notice::Notice;
use weir_exchange::parts::pieces::Pieces;
use weir_exchange::parts::request::{ConnectionNeed, Request};
use weir_exchange::parts::stream_end::StreamEnd;
use weir_exchange::parts::tools::Tools;
use weir_exchange::parts::transaction_ends::TransactionEnds;
use weir_exchange::parts::witness::Witness;
use weir_exchange::termination::Termination;
use weir_http::h1::write_response_head;
use weir_http::message::Framing;

use super::asking;
use super::client::Client;
use super::line::Queue;
use super::member::MemberConnection;
use super::model::Book;
use super::plan::Plan;

/// The environment of a transaction.
pub struct World {
    /// The tools that transactions share.
    pub tools: Tools,
    /// The current time.
    pub clock: Clock,
    /// Whether the process is draining.
    pub is_draining: bool,
    /// The plan of the transaction.
    pub plan: Plan,
    /// The client of the transaction.
    pub client: Client,
    /// The connections to members, including idle ones.
    pub members: Arena<OfConnection, MemberConnection>,
    /// The failures of the next connection attempts.
    pub bad_connects: VecDeque<MemberFailure>,
    /// The queue.
    pub queue: Queue,
    /// The end of the transaction's delay.
    pub delayed_until_us: Option<u64>,
    /// The inspections that are elsewhere, of this transaction and of earlier ones.
    pub jobs: Vec<InspectionJob>,
    /// The numbers of inspections that came back to a request that waited, to a response that waited, and of the others.
    pub came_back: [usize; 3],
    /// The transaction's request to the authorisation service.
    pub asked: Option<ExchangeKey>,
    /// The connection whose member does not support tunnels. The transaction is informed at the end of the turn.
    pub refuses_tunnel: Option<ConnectionKey>,
    /// The requested actions.
    pub book: Book,
}

impl World {
    /// Advances the time.
    pub fn pass_ms(&mut self, ms: u64) {
        self.clock = Clock::at_us(self.clock.now_us() + ms * 1_000);
    }

    /// The next bytes of the response's body, which the member has sent then.
    pub fn next_of_response(&mut self, bytes: usize) -> &'static [u8] {
        let data = self.plan.response_bytes(self.book.response_sent, bytes);
        self.book.response_sent += bytes;
        data
    }

    /// The current time in milliseconds.
    pub fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// The member connection of a transaction.
    pub fn member(&mut self, ends: &TransactionEnds) -> Option<&mut MemberConnection> {
        self.members.get_mut(ends.phase.connection()?)
    }

    fn answer_on_stream(&mut self, bytes: usize) {
        let now_ms = self.now_ms();
        self.client.deliver(bytes, true, now_ms);
    }
}

impl Witness for World {}

impl Edge for World {
    fn head(
        &mut self,
        _: &mut TransactionEnds,
        out: &OutHead<'_>,
        kind: HeadKind,
        is_end: bool,
    ) -> Message {
        self.book.expect_under_way("a head");
        let mut message = self.tools.scratch.take();
        let got = &mut self.client.got;
        assert_eq!(got.status, 0, "one final head, and nothing but its body behind it");
        assert!(!got.is_head_written, "a head goes out before the next");
        match kind {
            HeadKind::Interim => got.interims += 1,
            HeadKind::Final => {
                got.status = out.head.status;
                got.is_until_close = out.forward.framing == Framing::UntilClose;
            }
        }
        if self.client.stream.is_some() {
            got.has_end |= is_end;
            let now_ms = self.now_ms();
            self.client.queue(50, now_ms);
        } else {
            got.is_head_written = true;
            write_response_head(out.head, out.input, &out.forward, out.edits, &mut message);
        }
        message
    }

    fn send(&mut self, ends: &mut TransactionEnds, head: Message, body: &ClientBodyPart<'_>) {
        self.book.expect_under_way("data");
        let now_ms = self.now_ms();
        let (client, plan) = (&mut self.client, &self.plan);
        assert_eq!(client.got.is_head_written, !head.is_empty(), "a head goes out before its body");
        client.got.is_head_written = false;
        let bytes = body.pieces.data_bytes;
        if client.stream.is_none() {
            client.get(plan, (body.input, body.pieces), body.end);
            client.got.is_last |= body.is_last;
            client.queue(head.len() + bytes, now_ms);
        } else if !body.framing.is_empty() {
            client.get(plan, (body.input, body.pieces), body.end);
            client.deliver(bytes, !matches!(body.end, End::No), now_ms);
        }
        ends.count_sent(head.len() + bytes);
        self.tools.scratch.give(head);
    }

    fn answer(&mut self, ends: &mut TransactionEnds, answer: &OwnAnswer<'_>) {
        self.book.expect_under_way("an answer");
        let got = &mut self.client.got;
        assert_eq!(got.status, 0, "one final head");
        assert!(!got.is_head_written, "a head goes out before the next");
        (got.status, got.is_own, got.has_end) = (answer.status, true, true);
        got.is_last |= !answer.keep_alive;
        let has_body = !answer.head_only && answer.status != 204;
        let body_bytes = answer.body.map_or(16, <[u8]>::len);
        if self.client.stream.is_none() {
            let now_ms = self.now_ms();
            self.client.queue(100 + body_bytes, now_ms);
        } else if has_body {
            self.answer_on_stream(body_bytes);
        }
        ends.count_sent(100);
    }

    fn hold(&mut self, _: &mut TransactionEnds, (input, pieces): (&[u8], &Pieces), end: End<'_>) {
        self.book.expect_under_way("data to hold");
        let stream = self.client.stream.as_mut().expect("only what is on a stream is read ahead");
        assert!(matches!(stream.held_end, OwnedEnd::No), "nothing follows the end");
        pieces.of(input).for_each(|data| stream.held.extend_from_slice(data));
        stream.held_end = OwnedEnd::of(end);
    }

    fn resume_client(&mut self, _: &mut TransactionEnds) -> Option<(Vec<u8>, OwnedEnd)> {
        let Some(stream) = &mut self.client.stream else {
            self.client.is_paused = false;
            self.client.goes_on |= self.client.has_input();
            return None;
        };
        self.book.handed_out += usize::from(stream.held.capacity() > 0);
        Some((std::mem::take(&mut stream.held), std::mem::take(&mut stream.held_end)))
    }

    fn connect(
        &mut self,
        ends: &mut TransactionEnds,
        member: u32,
        need: ConnectionNeed,
        is_again: bool,
    ) -> Result<(), MemberFailure> {
        self.book.expect_under_way("a connection");
        asking::connect(self, ends, (member, need), is_again)
    }

    fn ask(
        &mut self,
        ends: &mut TransactionEnds,
        request: &mut Request,
        body: (&[u8], &Pieces),
        end: End<'_>,
    ) {
        self.book.expect_under_way("a request");
        asking::ask(self, ends, request, body, end);
    }

    fn ask_again(&mut self, ends: &mut TransactionEnds, request: &mut Request, unsent: &[u8]) {
        self.book.expect_under_way("a request");
        asking::ask_again(self, ends, request, unsent);
    }

    fn reach(&mut self, ends: &TransactionEnds, request: &Request) -> Option<ConnectionState> {
        let awaits_settings = asking::awaits_settings(self, ends, request);
        let connection = self.member(ends)?;
        let is_connecting = connection.is_connecting;
        let settings = ends.tries.pool.settings();
        let timeout_ms = match awaits_settings {
            true => settings.connect_timeout_ms,
            false => settings.response_timeout_ms,
        };
        Some(ConnectionState { awaits_settings, is_connecting, timeout_ms })
    }

    fn release(&mut self, ends: &mut TransactionEnds, how: Release) -> bool {
        asking::release(self, ends, how)
    }

    fn is_dry(&mut self, _: &TransactionEnds) -> bool {
        true
    }

    fn pass(&mut self, ends: &mut TransactionEnds, side: Side, bytes: TunnelBytes<'_>) {
        self.book.expect_under_way("bytes of a tunnel");
        let (TunnelBytes::Bytes(bytes) | TunnelBytes::Last(bytes)) = bytes else {
            unreachable!("nothing goes on by itself here")
        };
        if side == Side::Member {
            return asking::pass(self, ends, bytes, false);
        }
        let now_ms = self.now_ms();
        self.client.get(&self.plan, (bytes, &Pieces::whole(bytes.len())), End::No);
        match self.client.stream {
            Some(_) => self.client.deliver(bytes.len(), false, now_ms),
            None => self.client.queue(bytes.len(), now_ms),
        }
        ends.count_sent(bytes.len());
    }

    fn half_close(&mut self, ends: &mut TransactionEnds, side: Side) {
        if side == Side::Member {
            return asking::half_close(self, ends);
        }
        let now_ms = self.now_ms();
        match &mut self.client.stream {
            Some(stream) => {
                if std::mem::replace(&mut stream.is_end_told, true) {
                    return;
                }
                self.client.get(&self.plan, (b"", &Pieces::whole(0)), End::Data);
                self.client.deliver(0, true, now_ms);
            }
            None => self.client.got.has_end = true,
        }
    }

    fn lag(&mut self, ends: &TransactionEnds, side: Side) -> Lag {
        match side {
            Side::Client => self.client.lag(),
            Side::Member => self.member(ends).map_or(Lag::None, MemberConnection::lag),
        }
    }

    fn flow(&mut self, ends: &mut TransactionEnds, side: Side, flow: Flow) {
        match side {
            Side::Client => match (&mut self.client.stream, flow) {
                (None, Flow::Stop) => self.client.is_paused = true,
                (None, Flow::Go) => self.client.is_paused = false,
                (Some(stream), Flow::Window) => stream.unreleased = stream.held.len(),
                _ => {}
            },
            Side::Member => {
                let Some(connection) = self.member(ends) else { return };
                match (&mut connection.stream, flow) {
                    (None, Flow::Stop) => connection.is_paused = true,
                    (None, Flow::Go) => connection.is_paused = false,
                    (Some(stream), Flow::Go | Flow::Window) => stream.unreleased = 0,
                    _ => {}
                }
            }
        }
    }

    fn due(&mut self, ends: &mut TransactionEnds, side: Side, at_ms: Option<u64>) {
        match side {
            Side::Client => self.client.due_ms = at_ms,
            Side::Member => {
                if let Some(connection) = self.member(ends) {
                    connection.due_ms = at_ms;
                }
            }
        }
    }

    fn patience_until_ms(&mut self, ends: &TransactionEnds, side: Side, timeout_ms: u64) -> u64 {
        let client = &self.client;
        match (side, &client.stream) {
            (Side::Client, Some(stream)) if stream.pending > 0 && stream.allowance == 0 => {
                stream.stalled_ms + timeout_ms
            }
            (Side::Client, Some(_)) if !ends.is_member_stopped => 0,
            (Side::Client, _) if client.queued > 0 => client.progress_ms + timeout_ms,
            (Side::Client, _) => 0,
            (Side::Member, _) => asking::patience_until_ms(self, ends, timeout_ms),
        }
    }

    fn enqueue(&mut self, ends: &mut TransactionEnds, is_sent: bool) -> bool {
        self.book.expect_under_way("a place in line");
        let now_ms = self.now_ms();
        let joins = self.queue.join(ends, is_sent, self.client.has_ended, now_ms);
        if joins {
            self.client.due_ms = None;
        }
        joins
    }

    fn delay(&mut self, _: &TransactionEnds, until_us: u64) {
        self.book.expect_under_way("a delay");
        self.delayed_until_us = Some(until_us);
    }

    fn finish(&mut self, ends: &mut TransactionEnds, why: Termination, stream_end: StreamEnd) {
        self.book.expect_under_way("an end");
        self.book.finished = Some((why, stream_end));
        asking::leave_line(self, ends);
        ends.phase.end_wait();
        // A transaction may end before its delay is over.
        self.delayed_until_us = None;
        self.client.due_ms = None;
        ends.caller.take_stream();
    }

    fn tell(&mut self, _: Notice<'_>) {}

    fn turn(&self) -> Turn {
        Turn { worker: 0, clock: self.clock, is_draining: self.is_draining }
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }

    fn recycle(&mut self, buffer: Vec<u8>) {
        self.book.recycled += usize::from(buffer.capacity() > 0);
    }
}

/// The bytes after the data of a body in HTTP/1.
pub fn end_of_chunks(framing: Framing, end: End<'_>) -> &'static [u8] {
    match (framing, end) {
        (Framing::Chunked, End::Data | End::Trailers(..)) => b"0\r\n\r\n",
        _ => b"",
    }
}
