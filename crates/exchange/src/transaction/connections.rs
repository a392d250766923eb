//! Operations of all transactions on their two connections.

use weir_http::edits::FieldEdits;
use weir_http::h1::{Persistence, ResponseForward};
use weir_http::message::{Framing, ResponseHead, Span, Version};

use crate::edge::{Edge, Flow, Lag, Release, Side};
use crate::parts::end::End;
use crate::parts::messages::{ClientBodyPart, HeadKind, Message, OutHead};
use crate::parts::pieces::Pieces;
use crate::parts::stream_end::StreamEnd;
use crate::parts::transaction_ends::TransactionEnds;
use crate::shared::counters::count_status;
use crate::termination::Termination;
use crate::transaction::tracing::report;

/// The reason phrase of the interim response 100.
const CONTINUE: &[u8] = b"Continue";

impl TransactionEnds {
    /// Counts bytes of the response that were handed to the client connection.
    pub fn count_sent(&mut self, bytes: usize) {
        self.account.bytes_sent += bytes as u64;
        let counters = &self.server.counters;
        counters.bytes_sent.add(bytes as u64);
    }

    /// Counts a finished request.
    pub fn count_request(&self, at: &impl Edge) {
        let turn = at.turn();
        let counters = &self.server.counters;
        counters.requests_active.subtract(1);
        counters.request_duration.record(turn.now_us() - self.account.begun_us);
    }
}

// The client.
impl TransactionEnds {
    /// Sends a head alone, if it was not sent yet.
    pub fn send_head_alone(&mut self, at: &mut impl Edge, head: Message) {
        let (pieces, framing) = (&Pieces::whole(0), Framing::None);
        at.send(
            self,
            head,
            &ClientBodyPart { input: b"", pieces, framing, end: End::No, is_last: false },
        );
    }

    /// Sends an interim response to a client that supports them. `client_version`: that of the client.
    pub fn send_interim(
        &mut self,
        at: &mut impl Edge,
        client_version: Version,
        (head, input): (&ResponseHead, &[u8]),
    ) {
        count_status!(self.server.counters, head.status);
        let forward = ResponseForward {
            framing: Framing::None,
            client_version,
            persistence: Persistence::KeepAlive,
            date: None,
        };
        let edits = &FieldEdits::NONE;
        let out = OutHead { head, input, edits, forward, is_dated: false };
        let message = at.head(self, &out, HeadKind::Interim, false);
        self.send_head_alone(at, message);
    }

    /// Sends 100 (Continue), if the client knows it.
    pub fn send_continue(&mut self, at: &mut impl Edge, client_version: Version) {
        if client_version == Version::Http10 {
            return;
        }
        let mut head = at.tools().own_head.take().unwrap_or_default();
        head.clear();
        head.status = 100;
        head.reason = Span { start: 0, end: CONTINUE.len() as u32 };
        self.send_interim(at, client_version, (&head, CONTINUE));
        at.tools().own_head = Some(head);
    }

    /// Whether the client has not taken everything that it was sent: further data must wait.
    pub fn is_client_behind(&self, at: &mut impl Edge) -> bool {
        at.lag(self, Side::Client) != Lag::None
    }

    /// Whether a part of a response waits for the client's window.
    pub fn is_undelivered(&self, at: &mut impl Edge) -> bool {
        self.caller.stream().is_some() && at.lag(self, Side::Client) == Lag::Behind
    }

    /// Whether the member is paused because the client is slow. On a connection with many streams, data of other
    /// streams does not count.
    pub fn is_client_holding_up(&self, at: &mut impl Edge) -> bool {
        match self.caller.stream() {
            Some(_) => self.is_member_stopped,
            None => self.is_client_behind(at),
        }
    }

    /// Whether the client's progress can be of this transaction. On a connection with many streams, progress says
    /// nothing about streams without queued data.
    pub fn has_client_taken_its_own(&self) -> bool {
        self.caller.stream().is_none() || self.is_member_stopped
    }

    /// Sets the client's deadline for progress.
    pub fn set_client_deadline(&mut self, at: &mut impl Edge, at_ms: u64) {
        at.due(self, Side::Client, Some(at_ms));
    }

    /// Removes the client's deadline.
    pub fn clear_client_deadline(&mut self, at: &mut impl Edge) {
        at.due(self, Side::Client, None);
    }

    /// Returns window for forwarded bytes of a client's stream, on this stream or others.
    pub fn give_window(&mut self, at: &mut impl Edge) {
        at.flow(self, Side::Client, Flow::Window);
    }
}

// The member.
impl TransactionEnds {
    /// Sets the member's deadline for progress.
    pub fn set_member_deadline(&mut self, at: &mut impl Edge, at_ms: u64) {
        at.due(self, Side::Member, Some(at_ms));
    }

    /// Removes the member's deadline.
    pub fn clear_member_deadline(&mut self, at: &mut impl Edge) {
        at.due(self, Side::Member, None);
    }

    /// The client is slow: pauses the member.
    pub fn pause_member(&mut self, at: &mut impl Edge) {
        self.is_member_stopped = true;
        at.flow(self, Side::Member, Flow::Stop);
    }

    /// The client has taken everything: the member may continue.
    pub fn resume_member(&mut self, at: &mut impl Edge) {
        self.is_member_stopped = false;
        at.flow(self, Side::Member, Flow::Go);
    }

    /// Returns window to the member for forwarded bytes, unless the client does not read them.
    pub fn give_member_window(&mut self, at: &mut impl Edge) {
        at.flow(self, Side::Member, Flow::Window);
    }

    /// Releases the member, and closes its connection.
    pub fn drop_member(&mut self, at: &mut impl Edge) {
        at.release(self, Release::Drop);
        self.release_member(at, None);
    }

    /// Whether the member connection distinguishes an orderly end from a break.
    pub fn tells_breaks(&self) -> bool {
        self.phase.member_stream().is_some()
    }
}

impl TransactionEnds {
    /// Ends a transaction in the accounts of the worker, and logs it.
    pub fn end(&mut self, at: &mut impl Edge, why: Termination, stream_end: StreamEnd) {
        if why == Termination::ClientAbort {
            self.server.counters.client_aborts.add(1);
        }
        at.finish(self, why, stream_end);
        at.recycle(std::mem::take(&mut self.account.log_request));
        if let Some(context) = self.context.take() {
            report(self, at, &context, why);
            at.tools().give_remembered(context);
        }
    }
}
