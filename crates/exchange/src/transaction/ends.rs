//! What a transaction has whatever it is: the two connections that it is between, and what is known of it.

use std::rc::Rc;

use weir_http::message::Framing;

use crate::arena::{ClientKey, ExchangeKey, StreamKey};
use crate::edge::end::End;
use crate::edge::messages::{Message, Sending};
use crate::edge::stream_end::StreamEnd;
use crate::edge::{Edge, Flow, Lag, Release, Side};
use crate::local::table::LocalServer;
use crate::pieces::Pieces;
use crate::termination::Termination;
use crate::transaction::account::Account;
use crate::transaction::attempt::Attempt;
use crate::transaction::parked::Parked;
use crate::transaction::remembered::Remembered;
use crate::transaction::tries::Tries;

/// The two connections that a transaction is between.
pub struct Ends {
    /// What the transaction is called.
    pub key: ExchangeKey,
    /// It has ended, and this is what becomes of its client connection.
    pub over: Option<After>,
    /// The client connection that it belongs to.
    pub client: ClientKey,
    /// The stream of that; `None`: it has the connection for itself (HTTP/1).
    pub stream: Option<StreamKey>,
    /// The member waits until the client has taken what there is of the response.
    pub is_member_stopped: bool,
    /// Where it may go, and what came of trying.
    pub tries: Tries,
    /// What it waits for, while it has no member.
    pub parked: Parked,
    /// The member that it has now.
    pub attempt: Attempt,
    /// Where it came in.
    pub server: Rc<LocalServer>,
    /// What is remembered of it, where policies or persistence want that.
    pub remembered: Option<Box<Remembered>>,
    /// What is counted and logged of it.
    pub account: Account,
}

/// What becomes of the client connection of an exchange that has ended.
pub enum After {
    /// Somebody else sees to that.
    Nothing,
    /// The response is whole.
    Response(Outcome),
    /// The exchange has become a tunnel.
    Tunnel {
        /// Nothing more comes of the member.
        has_member_ended: bool,
    },
    /// All that passes both ways is whole: the connection ends, if it was its own.
    Whole,
    /// Something is missing: the connection ends, if it was its own.
    Broken {
        /// With a reset.
        must_reset: bool,
    },
    /// It ends, with all that is on it.
    Cut {
        /// Why.
        termination: Termination,
        /// With a reset.
        must_reset: bool,
    },
}

/// How an exchange left its client connection.
pub struct Outcome {
    /// Both sides allow another request.
    pub keep_alive: bool,
    /// The whole request was read.
    pub request_done: bool,
    /// The client said that this was its last request.
    pub client_closes: bool,
}

/// What a window has let out.
pub struct LetOut {
    /// So many bytes.
    pub data_bytes: usize,
    /// More waits.
    pub is_behind: bool,
}

impl Ends {
    /// Counts bytes of the response that were handed to the client connection.
    pub fn count_sent(&mut self, bytes: usize) {
        self.account.bytes_sent += bytes as u64;
        let counters = &self.server.counters;
        counters.bytes_sent.add(bytes as u64);
    }

    /// Counts a request that is over.
    pub fn count_request(&self, at: &impl Edge) {
        let turn = at.turn();
        let counters = &self.server.counters;
        counters.requests_active.subtract(1);
        counters.request_duration.record(turn.now_us() - self.account.begun_us);
    }
}

// The client.
impl Ends {
    /// Sends a head alone, if it has not gone out.
    pub fn send_head_alone(&mut self, at: &mut impl Edge, head: Message) {
        let (pieces, framing) = (&Pieces::whole(0), Framing::None);
        at.send(self, head, &Sending { input: b"", pieces, framing, end: End::No, is_last: false });
    }

    /// Whether the client has not taken everything that it was sent: what comes next has to wait.
    pub fn is_client_behind(&self, at: &mut impl Edge) -> bool {
        at.lag(self, Side::Client) != Lag::None
    }

    /// Whether something of a response waits for its client's window.
    pub fn is_undelivered(&self, at: &mut impl Edge) -> bool {
        self.stream.is_some() && at.lag(self, Side::Client) == Lag::Behind
    }

    /// Whether the member waits for what the client has yet to take. What else waits on a connection that many streams
    /// share says nothing.
    pub fn is_client_holding_up(&self, at: &mut impl Edge) -> bool {
        match self.stream {
            Some(_) => self.is_member_stopped,
            None => self.is_client_behind(at),
        }
    }

    /// Whether what the client has taken just now can have been of this transaction. A connection that many streams share
    /// says nothing of those that had nothing on it.
    pub fn has_client_taken_its_own(&self) -> bool {
        self.stream.is_none() || self.is_member_stopped
    }

    /// The client must have done something by then.
    pub fn set_client_deadline(&mut self, at: &mut impl Edge, at_ms: u64) {
        at.due(self, Side::Client, Some(at_ms));
    }

    /// The client need not do anything.
    pub fn clear_client_deadline(&mut self, at: &mut impl Edge) {
        at.due(self, Side::Client, None);
    }

    /// What came of a client's stream was handed on: it may send as much again, on this stream or others.
    pub fn give_window(&mut self, at: &mut impl Edge) {
        at.flow(self, Side::Client, Flow::Window);
    }

    /// Whether the head of a request goes before its body comes: a client that has its connection for itself may wait for an
    /// answer to it. On a stream it is sent by itself.
    pub fn sends_head_first(&self) -> bool {
        self.stream.is_none()
    }
}

// The member.
impl Ends {
    /// The member must have done something by then.
    pub fn set_member_deadline(&mut self, at: &mut impl Edge, at_ms: u64) {
        at.due(self, Side::Member, Some(at_ms));
    }

    /// The member need not do anything.
    pub fn clear_member_deadline(&mut self, at: &mut impl Edge) {
        at.due(self, Side::Member, None);
    }

    /// The client does not take what the member sends: it must wait.
    pub fn pause_member(&mut self, at: &mut impl Edge) {
        self.is_member_stopped = true;
        at.flow(self, Side::Member, Flow::Stop);
    }

    /// The client has taken everything: the member may go on.
    pub fn resume_member(&mut self, at: &mut impl Edge) {
        self.is_member_stopped = false;
        at.flow(self, Side::Member, Flow::Go);
    }

    /// What came of a response was passed on, unless the client does not take it: the member may send as much.
    pub fn give_member_window(&mut self, at: &mut impl Edge) {
        at.flow(self, Side::Member, Flow::Window);
    }

    /// Lets go of the member: its connection will not be used to the end.
    pub fn drop_member(&mut self, at: &mut impl Edge) {
        at.release(self, Release::Drop);
        self.leave_member(at, None);
    }

    /// Whether the end of the connection that the member has is told from a break.
    pub fn tells_breaks(&self) -> bool {
        self.attempt.member_stream.is_some()
    }
}

impl Ends {
    /// Takes a transaction off the books and logs it.
    pub fn end(&mut self, at: &mut impl Edge, why: Termination, stream_end: StreamEnd) {
        if why == Termination::ClientAbort {
            self.server.counters.client_aborts.add(1);
        }
        at.finish(self, why, stream_end);
        at.recycle(std::mem::take(&mut self.account.log_request));
        let remembered = self.remembered.take();
        at.tools().give_remembered(remembered);
    }
}
