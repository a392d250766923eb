//! The interface between a transaction and its environment: its two connections of any HTTP version, queues, logs. The
//! transaction decides, and calls this interface to carry the decisions out. No call leads back into the transaction:
//! consequences arrive as separate events, after the call.
//!
//! Implementations: the workers of the data path, with sockets (`WorkerEdge`); explanations (`crates/explain`) and tests,
//! without.

use weir_core::clock::Clock;

use crate::parts::end::{End, OwnedEnd};
use crate::parts::failure::MemberFailure;
use crate::parts::messages::{ClientBodyPart, HeadKind, Message, OutHead, OwnAnswer};
use crate::parts::notice::Notice;
use crate::parts::pieces::Pieces;
use crate::parts::request::{ConnectionNeed, Request};
use crate::parts::stream_end::StreamEnd;
use crate::parts::tools::Tools;
use crate::parts::transaction_ends::TransactionEnds;
use crate::parts::witness::Witness;
use crate::termination::Termination;

/// The interface between a transaction and its environment. A test bounds its number of methods.
pub trait Edge: Witness {
    /// Begins a message to the client with a head. `is_end`: the message has no body. Returns the head if it must be
    /// sent together with the first bytes of the body, or an empty message if it was sent already.
    fn head(
        &mut self,
        ends: &mut TransactionEnds,
        out: &OutHead<'_>,
        kind: HeadKind,
        is_end: bool,
    ) -> Message;

    /// Sends a part of a body to the client: behind `head` if that was not sent yet, and followed by the end.
    fn send(&mut self, ends: &mut TransactionEnds, head: Message, body: &ClientBodyPart<'_>);

    /// Sends a response of weir's own.
    fn answer(&mut self, ends: &mut TransactionEnds, answer: &OwnAnswer<'_>);

    /// Holds data of the client's stream that cannot be forwarded yet. The stream's window limits its size.
    fn hold(&mut self, ends: &mut TransactionEnds, body: (&[u8], &Pieces), end: End<'_>);

    /// Lets the client continue to send. Returns the held data of its stream; later data arrives as events.
    fn resume_client(&mut self, ends: &mut TransactionEnds) -> Option<(Vec<u8>, OwnedEnd)>;

    /// Gets a connection to the member at which the transaction has a place. `is_again`: the previous connection was
    /// stale.
    fn connect(
        &mut self,
        ends: &mut TransactionEnds,
        member: u32,
        need: ConnectionNeed,
        is_again: bool,
    ) -> Result<(), MemberFailure>;

    /// Sends a request or a further part of it to the member: its head if that was not sent yet, body data, and the
    /// end.
    fn ask(
        &mut self,
        ends: &mut TransactionEnds,
        request: &mut Request,
        body: (&[u8], &Pieces),
        end: End<'_>,
    );

    /// Sends a request again on a new connection: `unsent` (the data that was queued on the old one), or the stored
    /// request.
    fn ask_again(&mut self, ends: &mut TransactionEnds, request: &mut Request, unsent: &[u8]);

    /// The state of the connection to the member. `None`: there is no connection, or the request waits on it and is not
    /// sent yet.
    fn reach(&mut self, ends: &TransactionEnds, request: &Request) -> Option<ConnectionState>;

    /// Releases what the transaction has of a member: the connection, or its turn in a queue. Returns whether something of the request was
    /// sent on its stream.
    fn release(&mut self, ends: &mut TransactionEnds, how: Release) -> bool;

    /// Whether no unread data of the member is known.
    fn is_dry(&mut self, ends: &TransactionEnds) -> bool;

    /// Sends bytes of a tunnel to a side, or counts bytes that were moved there directly.
    fn pass(&mut self, ends: &mut TransactionEnds, side: Side, bytes: TunnelBytes<'_>);

    /// Half-closes one side of a tunnel: on a stream behind the sent data, on a socket when all data was taken. On a
    /// stream, the end is sent only once.
    fn half_close(&mut self, ends: &mut TransactionEnds, side: Side);

    /// Whether a side has taken the data that was sent to it.
    fn lag(&mut self, ends: &TransactionEnds, side: Side) -> Lag;

    /// Pauses or resumes a side, or returns window to it. Clients can only be paused and given window here;
    /// [`Edge::resume_client`] resumes them.
    fn flow(&mut self, ends: &mut TransactionEnds, side: Side, flow: Flow);

    /// Sets the deadline of a side; `None`: removes it.
    fn due(&mut self, ends: &mut TransactionEnds, side: Side, at_ms: Option<u64>);

    /// The deadline of a side that takes data slowly; 0: there is no sign of progress.
    fn patience_until_ms(&mut self, ends: &TransactionEnds, side: Side, timeout_ms: u64) -> u64;

    /// Puts the transaction into the queue of its pool. False: there is no queue, it is full, or no member could serve
    /// later.
    fn enqueue(&mut self, ends: &mut TransactionEnds, is_sent: bool) -> bool;

    /// Delays the transaction until `until_us`.
    fn delay(&mut self, ends: &TransactionEnds, until_us: u64);

    /// Ends a transaction: removes it from queues and from its client connection, and logs it.
    fn finish(&mut self, ends: &mut TransactionEnds, why: Termination, stream_end: StreamEnd);

    /// Writes a message for operators to a log.
    fn tell(&mut self, notice: Notice<'_>);

    /// The time of the current turn of the worker, and whether the process is draining.
    fn turn(&self) -> Turn;

    /// Tools that transactions share, one after another.
    fn tools(&mut self) -> &mut Tools;

    /// Takes back an unused buffer.
    fn recycle(&mut self, buffer: Vec<u8>);
}

/// One side of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The client.
    Client,
    /// The member.
    Member,
}

/// Bytes of a tunnel on their way from one side to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TunnelBytes<'a> {
    /// Bytes to be sent.
    Bytes(&'a [u8]),
    /// The last bytes to be sent: the end of this direction follows at once ([`Edge::half_close`]). A stream carries it with them.
    Last(&'a [u8]),
    /// This many bytes were moved directly or queued: see [`Flow::Straight`].
    Moved(usize),
}

impl TunnelBytes<'_> {
    /// The number of bytes.
    pub fn count(self) -> usize {
        match self {
            Self::Bytes(bytes) | Self::Last(bytes) => bytes.len(),
            Self::Moved(count) => count,
        }
    }
}

/// How a side continues to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// It pauses. On a stream, the window has this effect.
    Stop,
    /// It continues.
    Go,
    /// Its data was forwarded: return window for it.
    Window,
    /// Read at most this many bytes at a time, unless other streams share the connection.
    Slices(usize),
    /// Read as much at a time as fits in the buffer.
    Bulk,
    /// Its data passes unchanged to the other side from now on. Between two plain connections, it may bypass the
    /// transaction.
    Straight,
}

/// Whether a side has taken the data that was sent to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lag {
    /// It has taken everything.
    None,
    /// It has taken everything of this transaction; data of other streams on the connection is queued.
    Others,
    /// It has not, because the connection is still opening or the request was not sent yet.
    Excused,
    /// It has not taken everything.
    Behind,
}

/// The state of the connection to a member.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionState {
    /// Requests wait until its SETTINGS arrive.
    pub awaits_settings: bool,
    /// The connection is not open yet.
    pub is_connecting: bool,
    /// The timeout of the next step.
    pub timeout_ms: u64,
}

/// What to do with the connection to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Keep it for another request.
    Keep,
    /// Close it; if it is shared, only its stream.
    Drop,
    /// Close it with a reset, so that the member does not take this for an orderly end of the client. `is_told`: the
    /// client has ended; a member that has taken everything then gets an orderly end.
    Reset {
        /// The client has ended its sending side.
        is_told: bool,
    },
    /// Close it with a reset, after the member has taken everything that the client sent before its connection broke.
    ResetWhenTaken,
}

/// The current turn of the worker.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    /// The index of the worker.
    pub worker: usize,
    /// The time at which the turn began.
    pub clock: Clock,
    /// The process is draining.
    pub is_draining: bool,
}

impl Turn {
    /// The time at which the turn began, in milliseconds.
    #[inline]
    pub fn now_ms(self) -> u64 {
        self.clock.now_ms()
    }

    /// The time at which the turn began, in microseconds.
    #[inline]
    pub fn now_us(self) -> u64 {
        self.clock.now_us()
    }
}
