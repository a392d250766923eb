//! The invariants of all runs: a record of the requested actions that is independent of the transaction's own.

use std::sync::atomic::Ordering::Relaxed;

use weir_exchange::parts::end::End;
use weir_exchange::parts::stream_end::StreamEnd;
use weir_exchange::parts::transaction_ends::NextClientState;
use weir_exchange::termination::Termination;
use weir_exchange::transaction::exchange::Exchange;
use weir_http::h1::{BodyDecoder, BodyStep, HeadLimits, ParseProgress, parse_request};
use weir_http::message::{Framing, RequestHead};
use weir_http::path::{PathForm, RawBytes, TargetForm};

use super::cells::Cells;
use super::client::Client;
use super::plan::{Ask, Framed, Plan};
use super::scene::{BODY_BYTES_MAX, Scene, Server};

/// Members receive targets as the client sent them; no byte in them is raw.
const KEPT: TargetForm = TargetForm { path: PathForm::Keep, raw_bytes: RawBytes::Refuse };
const ANY_HEAD: HeadLimits = HeadLimits { head_size_max: u32::MAX, headers_max: u16::MAX };

/// The assumed maximum size of a head in bytes.
const HEAD_BYTES_MAX: usize = 300;
/// Maximum number of attempts of a request: at each eligible member, one on a stale idle connection and one on a new one,
/// and another one if the request was not processed.
const ATTEMPTS_MAX: usize = 2 * 3 + 1;

/// The grace of a client that has ended its sending side, in milliseconds.
const GRACE_MS: u64 = 1_000;

/// An attempt at a member: the bytes sent to the member.
#[derive(Default)]
pub struct Attempt {
    /// The bytes. On an HTTP/1 connection, the body has its framing; on a stream, the body follows the head without framing.
    pub bytes: Vec<u8>,
    /// The length of the head on a stream.
    pub stream_head: Option<usize>,
    /// Whether the stream has ended.
    pub has_end: bool,
    /// Whether the stream has ended with trailers.
    pub has_trailers: bool,
    /// Whether a part of the request has reached the member.
    pub is_reached: bool,
    /// Whether the member has reported the request as unprocessed.
    pub is_unread: bool,
    /// Whether the member has sent a response that is forwarded to the client.
    pub is_answered: bool,
    /// Whether the member has sent an interim response.
    pub has_interim: bool,
}

/// The requested actions.
#[derive(Default)]
pub struct Book {
    /// The attempts, in order.
    pub attempts: Vec<Attempt>,
    /// The logged termination reason, and the end of the stream.
    pub finished: Option<(Termination, StreamEnd)>,
    /// The number of returned buffers.
    pub recycled: usize,
    /// The number of lent buffers with client data, which must be returned like the others.
    pub handed_out: usize,
    /// The number of response bytes that the member has sent, and whether it has sent the end.
    pub response_sent: usize,
    pub has_response_end: bool,
    /// Whether the member ended in the place of that end, behind all of its announced length.
    pub is_whole_by_length: bool,
    /// Whether a service has allowed the request.
    pub is_let_in: bool,
    /// Whether an event has occurred that can cause a failure.
    pub is_spoiled: bool,
}

impl Book {
    /// Checks that the transaction has not ended. After its end, it must not request any action.
    pub fn expect_under_way(&self, what: &str) {
        assert!(self.finished.is_none(), "{what} of a transaction that is over");
    }

    /// Records that a member has accepted a part of the request. A request must not reach two members, unless it is
    /// idempotent.
    pub fn reach(&mut self, plan: &Plan, attempt: usize) {
        if !std::mem::replace(&mut self.attempts[attempt].is_reached, true) {
            for earlier in
                self.attempts[..attempt].iter().filter(|it| it.is_reached && !it.is_unread)
            {
                assert!(!earlier.is_answered, "another member is asked behind an answer");
                assert!(plan.is_idempotent(), "it is asked for twice and must not be");
            }
        }
    }

    /// Records the start of a response. If its status counts as a failure, it may be dropped, and another member may be
    /// tried.
    pub fn begin_answer(&mut self, plan: &Plan, attempt: usize, status: u16) {
        let it = &mut self.attempts[attempt];
        let has_got_some = it.has_interim && plan.ask != Ask::OldGet;
        it.is_answered = status != 503 || has_got_some;
    }

    /// Checks an ended transaction: the requests sent to members, and the data that the client received.
    pub fn check_over(&self, plan: &Plan, client: &Client, after: &NextClientState) {
        let (why, stream_end) = self.finished.expect("what is over was logged");
        assert!(self.attempts.len() <= ATTEMPTS_MAX, "it is tried for ever");
        for attempt in &self.attempts {
            attempt.check(plan, client);
            assert!(!plan.is_blocked(), "no member is asked for what is blocked");
            if let (Some(bytes_max), Some(head_bytes)) =
                (plan.unmasked_bytes(), attempt.stream_head)
            {
                let bytes = attempt.bytes.len() - head_bytes;
                assert!(bytes <= bytes_max, "{bytes} bytes of what is no call");
                assert!(!attempt.has_end, "what is no call is called whole");
            }
            assert!(!plan.is_asked() || self.is_let_in, "no member is asked before the service");
        }
        let got = &client.got;
        assert!(!got.is_head_written, "a head was written and has not gone out");
        let is_leaked = plan.is_kept() && !got.is_own && got.bytes == plan.response.bytes;
        assert!(!is_leaked, "no client gets a response that is blocked");
        match after {
            NextClientState::Response(outcome) => {
                assert!(got.status >= 200, "one final response");
                assert!(got.has_end, "a response that is whole has an end");
                let whole = self.response_sent == got.bytes && self.has_response_end;
                assert!(got.is_own || whole, "its client got what its member has sent");
                let is_fine = why == Termination::Complete || self.is_whole_by_length;
                assert!(got.is_own || is_fine, "{why:?}");
                assert!(client.is_delivered(), "it has gone out");
                assert!(!(outcome.keep_alive && got.is_last), "something follows the last");
                assert!(
                    !outcome.keep_alive || outcome.request_done,
                    "a request is read to its end"
                );
                if client.stream.is_some() {
                    assert_eq!(stream_end, StreamEnd::Answered(got.status));
                }
            }
            NextClientState::Whole => {
                assert!(got.has_end || client.stream.is_none(), "the client is told of the end");
                assert_eq!(self.response_sent, got.bytes, "all that the member has sent");
            }
            NextClientState::Broken { must_reset } => {
                let looks_whole = got.has_end || got.is_until_close;
                let is_visible = !looks_whole || !client.is_delivered() || *must_reset;
                // A failure of the other half of a tunnel is possible.
                let is_whole = self.has_response_end && self.response_sent == got.bytes;
                assert!(is_visible || is_whole, "a part does not look like the whole");
                assert_ne!(why, Termination::Complete);
                if client.stream.is_some() && plan.is_tunnel() {
                    assert!(matches!(stream_end, StreamEnd::Broken(_)));
                }
            }
            NextClientState::Cut { .. }
            | NextClientState::Gone { .. }
            | NextClientState::Nothing => {
                assert_ne!(why, Termination::Complete)
            }
            NextClientState::Tunnel { .. } => unreachable!("that is no end"),
            NextClientState::Subrequest => unreachable!("it is of a client"),
        }
        if client.stream.is_none()
            && got.status == 0
            && matches!(after, NextClientState::Response(_))
        {
            panic!("an answer without a head");
        }
    }
}

impl Attempt {
    /// Records the end of the request on its stream.
    pub fn note_end(&mut self, end: End<'_>) {
        self.has_end |= !matches!(end, End::No);
        self.has_trailers |= matches!(end, End::Trailers(..));
    }

    /// Whether the whole request was sent.
    pub fn is_whole(&self, plan: &Plan) -> bool {
        if self.stream_head.is_some() {
            return self.has_end;
        }
        let head = &self.bytes[..self.bytes.len().min(HEAD_BYTES_MAX)];
        let head_end = head.windows(4).position(|it| it == b"\r\n\r\n").map(|at| at + 4);
        match (plan.has_body(), plan.request.framed) {
            (false, _) => head_end.is_some(),
            (true, Framed::Length) => {
                head_end.is_some_and(|end| self.bytes.len() == end + plan.request_length())
            }
            (true, _) => self.bytes.ends_with(b"0\r\n\r\n"),
        }
    }

    /// Checks that the member's bytes are a prefix of this request, and that the request is complete if it looks complete.
    fn check(&self, plan: &Plan, client: &Client) {
        if plan.is_held() && !self.bytes.is_empty() {
            assert!(client.has_sent_end, "it was judged before all of it was there");
        }
        let (head_bytes, framing) = match self.stream_head {
            Some(head_bytes) => (head_bytes, None),
            None => {
                let mut head = RequestHead::new();
                if plan.server == Server::Relay {
                    return self.check_bytes(plan, 0);
                }
                match parse_request(&self.bytes, &ANY_HEAD, KEPT, &mut head) {
                    Ok(ParseProgress::Complete { length }) => (length, Some(head.framing)),
                    Ok(ParseProgress::Partial) => return,
                    Err(error) => panic!("what the member got is no request: {error:?}"),
                }
            }
        };
        if plan.is_asked() {
            let head = String::from_utf8_lossy(&self.bytes[..head_bytes]);
            let by = if self.stream_head.is_some() { "" } else { ": " };
            assert!(head.contains(&format!("X-User{by}{}", plan.number)), "the user: {head}");
            let has_passed = head.contains(&format!("X-Entered{by}yes"));
            assert_eq!(has_passed, plan.server == Server::HandedOver, "the way: {head}");
        }
        let framing = framing.filter(|_| !plan.is_tunnel());
        let Some(framing) = framing.filter(|framing| *framing != Framing::None) else {
            self.check_bytes(plan, head_bytes);
            if self.has_end && !plan.is_tunnel() {
                let bytes = self.bytes.len() - head_bytes;
                assert_eq!(bytes, plan.request_length(), "it is called whole");
                assert!(client.has_sent_end || bytes == 0, "its client has not ended it");
                let has_trailers = plan.has_body() && plan.request.framed == Framed::Trailers;
                assert_eq!(self.has_trailers, has_trailers, "its trailers");
            }
            return;
        };
        let (mut decoder, mut at, mut count) = (BodyDecoder::new(framing, None), head_bytes, 0);
        loop {
            match decoder.decode(&self.bytes[at..]).expect("a sound body") {
                BodyStep::Data { start, end } => {
                    let data = &self.bytes[at + start..at + end];
                    assert!(plan.request_bytes(count, data.len()) == data, "another's bytes");
                    (at, count) = (at + end, count + data.len());
                }
                BodyStep::NeedMore { .. } => return,
                // Only an empty line may follow.
                BodyStep::Trailers { .. } | BodyStep::End { .. } => break,
            }
        }
        assert_eq!(count, plan.request_length(), "it is called whole");
        assert!(client.has_sent_end, "its client has not ended it");
    }

    fn check_bytes(&self, plan: &Plan, start: usize) {
        let bytes = &self.bytes[start..];
        assert!(plan.request_bytes(0, bytes.len()) == bytes, "another's bytes");
    }
}

/// Checks that a client of HTTP/1 that has ended its sending side is waited for no longer than its grace.
pub fn check_leaving(plan: &Plan, client: &Client, exchange: &Exchange, now_ms: u64) {
    let has_left = client.has_ended && client.stream.is_none() && exchange.request.is_whole();
    if plan.server.gives_up_half_closed() && has_left && client.queued == 0 {
        let until_ms = client.due_ms.expect("its grace ends");
        assert!(until_ms <= now_ms + GRACE_MS, "it has {} ms", until_ms - now_ms);
    }
}

/// Statistics of all runs.
#[derive(Default)]
pub struct Tally {
    /// The number of events.
    pub steps: usize,
    /// The termination reasons that occurred.
    pub ends: Vec<Termination>,
    /// The numbers of inspections that came back to a request that waited, to a response that waited, and of the others.
    pub came_back: [usize; 3],
    /// The events of each state.
    pub cells: Cells,
}

impl Tally {
    /// Counts the inspections that came back.
    pub fn note_inspections(&mut self, came_back: [usize; 3]) {
        self.came_back.iter_mut().zip(came_back).for_each(|(sum, count)| *sum += count);
    }

    /// Records the termination reason of a transaction.
    pub fn note(&mut self, why: Termination) {
        if !self.ends.contains(&why) {
            self.ends.push(why);
        }
    }
}

/// Checks that an ended transaction leaves no counts and no places. `others`: the places of other requests.
pub fn check_nothing_is_left(scene: &Scene, others: usize) {
    let mut occupied = 0;
    for pool in scene.pools() {
        assert_eq!(pool.live.waiting_since_ms[0].load(Relaxed), 0, "nobody waits");
        for member in &pool.members {
            occupied += member.live.occupancy.load(Relaxed) as usize;
            assert_eq!(member.live.counters.of(0).requests_active.get(), 0, "requests at members");
        }
    }
    assert_eq!(occupied, others, "places at members");
    for server in &scene.live.virtual_servers {
        assert_eq!(server.counters.of(0).requests_active.get(), 0, "requests under way");
        assert_eq!(server.used.requests_under_way.load(Relaxed), 0, "requests under limits");
    }
}

impl super::router::Router {
    /// Checks that the transaction is complete, if neither peers nor limits could make it fail.
    pub fn expect_fine(&self) {
        let (plan, book, got) = (&self.world.plan, &self.world.book, &self.world.client.got);
        let (why, _) = book.finished.expect("it is over");
        let is_refused = plan.request_length() > BODY_BYTES_MAX || plan.bad_connects > 0;
        if plan.may_be_blocked() && why == Termination::Waf {
            return;
        }
        if book.is_spoiled || is_refused || plan.others || self.world.delayed_until_us.is_some() {
            return;
        }
        let is_fine = why == Termination::Complete || book.is_whole_by_length;
        assert!(is_fine, "nothing was wrong: {why:?}");
        assert!(!got.is_own && got.bytes == book.response_sent, "all of the response");
    }
}
