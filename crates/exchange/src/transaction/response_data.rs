//! Forwarding of a response to its client, after inspection.

use weir_http::edits::FieldEdits;
use weir_http::h1::{Persistence, ResponseForward};
use weir_http::message::{Framing, ResponseHead};

use crate::edge::Edge;
use crate::parts::encoding::EncodeResult;
use crate::parts::end::End;
use crate::parts::messages::{ClientBodyPart, HeadKind, Message, OutHead};
use crate::parts::phase::Begun;
use crate::parts::pieces::Pieces;
use crate::shared::counters::count_status;
use crate::termination::Termination;
use crate::transaction::exchange::Exchange;
use crate::transaction::filters;
use crate::transaction::filters::contract::Piece;

/// The result of forwarding a piece of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForwardResult {
    /// The data was forwarded.
    On,
    /// The data was forwarded, and the rest is not needed.
    Enough,
    /// The data could not be forwarded, and the exchange has ended.
    #[default]
    Over,
}

impl Exchange {
    /// Begins the message to the client.
    #[inline(always)]
    pub fn begin_message(
        &mut self,
        at: &mut impl Edge,
        (head, input): (&ResponseHead, &[u8]),
        edits: &FieldEdits,
        framing: Framing,
    ) -> Message {
        // On a stream the end of the message is not in its head then, but behind it, perhaps with trailers.
        let is_open = head.is_open && framing.is_empty() && self.ends.caller.stream().is_some();
        let framing = if is_open { Framing::Chunked } else { framing };
        // A response to a request that is still arriving may leave a part of the request unread.
        let may_go_on = self.request.is_whole() && !at.turn().is_draining;
        self.keep_alive &= may_go_on && framing != Framing::UntilClose;
        self.ends.phase.begin(Begun::Sent);
        count_status!(self.ends.server.counters, head.status);
        self.patience.pace = self.patience.pace.with_response(head, input);
        self.response_framing = framing;
        let persistence = if self.keep_alive { Persistence::KeepAlive } else { Persistence::Close };
        let client_version = self.request.version;
        let forward = ResponseForward { framing, client_version, persistence, date: None };
        let out = OutHead { head, input, edits, forward, is_dated: !head.has_date };
        at.head(&mut self.ends, &out, HeadKind::Final, framing.is_empty())
    }

    /// Forwards pieces of a response body that is not inspected any more, after its head if that is unsent, and its end.
    #[inline]
    pub fn send_judged(
        &mut self,
        at: &mut impl Edge,
        head: Message,
        (input, pieces): (&[u8], &Pieces),
        end: End<'_>,
    ) -> ForwardResult {
        let is_end = !matches!(end, End::No);
        let (framing, is_last) = (self.response_framing, is_end && !self.keep_alive);
        let Some(filters) = self.filters.on.as_deref_mut() else {
            let body = ClientBodyPart { input, pieces, framing, end, is_last };
            at.send(&mut self.ends, head, &body);
            return ForwardResult::On;
        };
        let piece = Piece { input, pieces, is_end };
        let mut filtered = at.tools().scratch.take();
        let (passed, made) = filters::pass(filters, at, &self.ends, piece, &mut filtered);
        if passed == EncodeResult::Broken {
            // A response that was partly sent cannot be completed.
            at.tools().scratch.give(filtered);
            self.ends.send_head_alone(at, head);
            self.truncate(at, Termination::EncodingFailed);
            return ForwardResult::Over;
        }
        let body = ClientBodyPart { input: &filtered, pieces: &made, framing, end, is_last };
        at.send(&mut self.ends, head, &body);
        at.tools().scratch.give(filtered);
        if passed == EncodeResult::Enough { ForwardResult::Enough } else { ForwardResult::On }
    }
}

/// Whether `body` is the complete body of a response with this framing.
pub fn is_all(framing: Framing, body: &[u8]) -> bool {
    match framing {
        Framing::None => body.is_empty(),
        Framing::Length(bytes) => body.len() as u64 == bytes,
        Framing::Chunked => body == b"0\r\n\r\n",
        Framing::UntilClose => false,
    }
}
