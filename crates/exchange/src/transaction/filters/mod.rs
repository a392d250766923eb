//! The filters of a response body. A body passes them in the order of [`begin`] and [`pass`]:
//!
//! | filter | on |
//! |---|---|
//! | [`Filters::leave_out_known`] | the client has it: nothing is left of it, and the firewall sees a 304 |
//! | [`inspect_response`](super::response_inspection) | the firewall reads responses: the body is held before all others, up to `responses.size_max` ([`Begun::Held`](crate::parts::phase::Begun::Held)) |
//! | [`rewrite`] | rules replace text in it |
//! | [`encode`] | it is compressed |
//!
//! A filter that changes a body changes what the head says of its bytes ([`changed_body`]). A filter that is off is not in [`Transforms`]; a body without filters is sent as ranges of what was received.

mod changed_body;
pub mod contract;
pub mod encode;
pub mod rewrite;

use weir_http::edits::FieldEdits;
use weir_http::message::{Framing, ResponseHead};

use crate::edge::{Edge, Side};
use crate::parts::encoding::{EncodeResult, Filters, Transforms};
use crate::parts::messages::Message;
use crate::parts::pieces::Pieces;
use crate::parts::transaction_ends::TransactionEnds;
use crate::transaction::filters::contract::{Filter, FilterRequirements, FilteredRequest, Piece};

/// Begins the filters of a response, and changes its head accordingly. `body`: what was received of the body. Returns the framing
/// toward the client.
pub fn begin(
    filters: &mut Filters,
    at: &mut impl Edge,
    (ends, asked): (&mut TransactionEnds, FilteredRequest),
    head: &mut ResponseHead,
    (input, body): (&[u8], &[u8]),
    edits: &mut FieldEdits,
) -> Framing {
    let plain = FilterRequirements::nothing(head.framing.toward(asked.version));
    let rewritten = rewrite::begin(filters, at, (&mut *ends, asked), (&*head, input), edits);
    // The body is compressed after the replacement, not as received.
    let (mut wants, body) = rewritten.map_or((plain, body), |wants| (wants, &b""[..]));
    if ends.server.settings().compression.is_some() {
        wants = encode::begin(filters, at, (&*ends, asked), head, (input, body), edits, wants);
    }
    if let Some(flow) = wants.flow {
        at.flow(ends, Side::Member, flow);
    }
    let is_bare = rewritten.is_some() && head.framing == Framing::None;
    if is_bare || head.is_open && !wants.framing.is_empty() {
        head.content_length = None;
    }
    wants.framing
}

/// Passes a piece of a body through the filters that are on. Returns the pieces of the output.
pub fn pass(
    on: &mut Transforms,
    at: &mut impl Edge,
    ends: &TransactionEnds,
    piece: Piece<'_>,
    out: &mut Message,
) -> (EncodeResult, Pieces) {
    let Transforms { rewriting, encoding } = on;
    let mut passage = Passage { received: piece, made: None, out, result: EncodeResult::Sound };
    passage.through(rewriting.as_mut(), at, ends);
    passage.through(encoding.as_mut(), at, ends);
    passage.end()
}

/// A piece of a body on its way through the filters.
struct Passage<'a> {
    received: Piece<'a>,
    /// What has been made of it, in `out`; `None`: it has passed no filter yet.
    made: Option<Pieces>,
    out: &'a mut Message,
    result: EncodeResult,
}

impl Passage<'_> {
    /// Passes the piece through a filter, if that is on.
    #[inline]
    fn through(
        &mut self,
        filter: Option<&mut impl Filter>,
        at: &mut impl Edge,
        ends: &TransactionEnds,
    ) {
        let Some(filter) = filter else { return };
        let passed = match &self.made {
            None => filter.pass(at, ends, self.received, self.out),
            Some(pieces) => {
                let text = std::mem::replace(self.out, at.tools().scratch.take());
                let piece = Piece { input: &text, pieces, ..self.received };
                let passed = filter.pass(at, ends, piece, self.out);
                at.tools().scratch.give(text);
                passed
            }
        };
        if self.result == EncodeResult::Sound {
            self.result = passed;
        }
        self.made = Some(Pieces::made(self.out.len(), self.received.pieces.next));
    }

    fn end(self) -> (EncodeResult, Pieces) {
        let Some(made) = self.made else {
            debug_assert!(false, "a body that passes unchanged has no transforms");
            return (EncodeResult::Broken, Pieces::whole(0));
        };
        (self.result, made)
    }
}
