//! The interface between a transaction and its surroundings: its two connections of any HTTP version, wait queues, the
//! log. The transaction decides; the calls of this interface carry the decisions out. No call calls the transaction back:
//! consequences come as separate events, after the call.
//!
//! The workers of the data path implement it with sockets (`Desk`), explanations (`crates/explain`) and tests without.

use weir_core::clock::Clock;

use crate::parts::end::{End, OwnedEnd};
use crate::parts::ends::Ends;
use crate::parts::failure::MemberFailure;
use crate::parts::messages::{HeadKind, Message, OutHead, OwnAnswer, Sending};
use crate::parts::notice::Notice;
use crate::parts::pieces::Pieces;
use crate::parts::request::{Need, Request};
use crate::parts::stream_end::StreamEnd;
use crate::parts::tools::Tools;
use crate::parts::witness::Witness;
use crate::termination::Termination;

/// The interface between a transaction and its surroundings. A test keeps the number of functions small.
pub trait Edge: Witness {
    /// Begins a message to the client with a head; `is_end`: it is all of the message. Where the head goes out by
    /// itself nothing is returned, else the head, to go out with the first bytes of the body.
    fn head(&mut self, ends: &mut Ends, out: &OutHead<'_>, kind: HeadKind, is_end: bool)
    -> Message;

    /// Sends some of a message's body to the client, behind its head where that has not gone out, and its end.
    fn send(&mut self, ends: &mut Ends, head: Message, body: &Sending<'_>);

    /// Sends a response that weir makes itself.
    fn answer(&mut self, ends: &mut Ends, answer: &OwnAnswer<'_>);

    /// Holds back data from the client's stream that cannot be forwarded yet. The stream's window bounds its size.
    fn hold(&mut self, ends: &mut Ends, body: (&[u8], &Pieces), end: End<'_>);

    /// Lets the client continue to send. Returns the data that was held back from its stream; further data comes as
    /// events.
    fn let_on(&mut self, ends: &mut Ends) -> Option<(Vec<u8>, OwnedEnd)>;

    /// Gets a connection to this member, which the transaction has a place at. `is_again`: the one that it had before
    /// has gone stale.
    fn connect(
        &mut self,
        ends: &mut Ends,
        member: u32,
        need: Need,
        is_again: bool,
    ) -> Result<(), MemberFailure>;

    /// Sends a request to the member, or more of it: its head if that has not gone out, some of its body, its end.
    fn ask(&mut self, ends: &mut Ends, request: &mut Request, body: (&[u8], &Pieces), end: End<'_>);

    /// Sends a request to another member than before: `unsent`, which was queued for that one, or all that there is.
    fn ask_again(&mut self, ends: &mut Ends, request: &mut Request, unsent: &[u8]);

    /// The state of the connection to the member. `None`: there is no connection, or the request waits on it and is not
    /// sent yet.
    fn reach(&mut self, ends: &Ends, request: &Request) -> Option<Reach>;

    /// Leaves the connection to the member. Whether something of the request was sent on its stream.
    fn release(&mut self, ends: &mut Ends, how: Release) -> bool;

    /// Whether there is nothing more to read of the member for now.
    fn is_dry(&mut self, ends: &Ends) -> bool;

    /// Sends bytes of a tunnel to a side, or takes note of those that went there by themselves.
    fn pass(&mut self, ends: &mut Ends, side: Side, bytes: Passing<'_>);

    /// Half-closes one side of a tunnel: on a stream behind the data sent so far, on a socket when that data was taken. On
    /// a stream this is sent only once.
    fn half_close(&mut self, ends: &mut Ends, side: Side);

    /// Whether a side accepts the data that it was sent.
    fn lag(&mut self, ends: &Ends, side: Side) -> Lag;

    /// Sets how a side may continue to send. Clients are only stopped, and given window: [`Edge::let_on`] lets them
    /// continue.
    fn flow(&mut self, ends: &mut Ends, side: Side, flow: Flow);

    /// When a side must have done something; `None`: it need not.
    fn due(&mut self, ends: &mut Ends, side: Side, at_ms: Option<u64>);

    /// The deadline of a side that accepts data slowly; 0: there is no sign that it accepts any.
    fn patience_until_ms(&mut self, ends: &Ends, side: Side, timeout_ms: u64) -> u64;

    /// Puts the transaction into the queue of its pool. False: there is no queue, it is full, or no member could serve
    /// later.
    fn line_up(&mut self, ends: &mut Ends, is_sent: bool) -> bool;

    /// Lets the transaction wait for its time.
    fn delay(&mut self, ends: &Ends, until_us: u64);

    /// The transaction is over: it waits no more, has left its client's connection, and is logged.
    fn finish(&mut self, ends: &mut Ends, why: Termination, stream_end: StreamEnd);

    /// Tells the operator of something, in a log.
    fn tell(&mut self, notice: Notice<'_>);

    /// When this turn of the worker began, and whether the process stops.
    fn turn(&self) -> Turn;

    /// Tools that all transactions share, one after another.
    fn tools(&mut self) -> &mut Tools;

    /// Takes a buffer that is not needed any more.
    fn recycle(&mut self, buffer: Vec<u8>);
}

/// One of the two connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The client's.
    Client,
    /// The member's.
    Member,
}

/// Bytes of a tunnel on their way from one side to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passing<'a> {
    /// These, which are to be sent.
    Bytes(&'a [u8]),
    /// So many, which went on or are queued without having come here: see [`Flow::Straight`].
    Moved(usize),
}

impl Passing<'_> {
    /// How many there are.
    pub fn count(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Moved(count) => count,
        }
    }
}

/// How a side may continue to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// It has to wait. On a stream its window does that.
    Stop,
    /// It may continue.
    Go,
    /// Its data was forwarded: return that much of the stream's window.
    Window,
    /// Read at most this many bytes at a time, unless other streams share the connection.
    Slices(usize),
    /// It is read by as many at a time as there is room for.
    Bulk,
    /// From now on its data goes to the other side unchanged. If both are plain connections, it may bypass the
    /// transaction.
    Straight,
}

/// Whether a side accepts the data that it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lag {
    /// It has taken all.
    None,
    /// It has taken all of this; others on the same connection wait.
    Others,
    /// It has not, and had no chance to yet.
    Excused,
    /// It has not.
    Behind,
}

/// How far the connection to a member is.
#[derive(Debug, Clone, Copy)]
pub struct Reach {
    /// It is not asked before its SETTINGS are known.
    pub awaits_settings: bool,
    /// It is not open yet.
    pub is_connecting: bool,
    /// The timeout of the next step.
    pub timeout_ms: u64,
}

/// How the connection to a member is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// It may carry another request.
    Keep,
    /// It is not used any more; of one that others share its stream.
    Drop,
    /// As above, with a reset, so that the member does not mistake it for an orderly end of the client. `is_told`: the
    /// client has ended, and a member that has taken everything gets an orderly end.
    Reset {
        /// The client has ended.
        is_told: bool,
    },
    /// As above, once the member has taken everything that the client sent before its connection broke.
    ResetWhenTaken,
}

/// The phase of the turn.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    /// The worker.
    pub worker: usize,
    /// When it began.
    pub clock: Clock,
    /// The process stops.
    pub is_draining: bool,
}

impl Turn {
    /// When it began.
    #[inline]
    pub fn now_ms(self) -> u64 {
        self.clock.now_ms()
    }

    /// When it began.
    #[inline]
    pub fn now_us(self) -> u64 {
        self.clock.now_us()
    }
}
