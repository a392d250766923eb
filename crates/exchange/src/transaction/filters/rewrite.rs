//! Replacement of text in response bodies, before compression.

use std::sync::Arc;

use weir_compression::{ResponseTraits, entity_tags};
use weir_core::body_edit::BodyEdit;
use weir_core::expression::Facts;
use weir_http::edits::FieldEdits;
use weir_http::message::{Framing, ResponseHead};

use crate::edge::{Edge, Flow};
use crate::local::table::LocalServer;
use crate::parts::body_rewrite::BodyRewrite;
use crate::parts::encoding::{EncodeResult, Filters};
use crate::parts::messages::Message;
use crate::parts::pace::is_grpc;
use crate::parts::transaction_ends::TransactionEnds;
use crate::transaction::filters::changed_body;
use crate::transaction::filters::contract::{Filter, FilterRequirements, FilteredRequest, Piece};

/// Number of bytes of a rewritten body that are read at a time. A pattern takes about 10 ns for a byte, and other connections
/// have their turn in between.
const SLICE_BYTES: usize = 16 << 10;

/// The treatment of a response whose body may be rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RewriteDecision {
    /// It is rewritten.
    Rewritten,
    /// It has no body: its head has the values of the rewritten body.
    Unchanged,
    /// It stays unchanged, because it is encoded.
    Encoded,
    /// It stays unchanged, because it is partial content.
    Part,
    /// It stays unchanged, because it is too long.
    TooLong,
    /// It is of another type, or has nothing to rewrite.
    Other,
}

/// Fields that ask for a part of a body. A server may ignore them (RFC 9110, section 14.2). The third is an old name of
/// the first, which Apache knows.
const RANGES: [&[u8]; 3] = [b"Range", b"If-Range", b"Request-Range"];

/// Asks the member for an unencoded, complete body, and uses the member's own entity tags.
pub fn ask_for_plain(
    server: &LocalServer,
    facts: &Facts<'_>,
    edits: &mut FieldEdits,
    scratch: &mut Vec<u8>,
) {
    edits.set(b"Accept-Encoding", |out| out.extend_from_slice(b"identity"));
    // Parts pass as they are: a client could ask for one to get all of the member's bytes.
    RANGES.iter().for_each(|name| edits.remove(name));
    // Otherwise the request was changed for compression anyway.
    if server.settings().compression.is_none() {
        entity_tags::restore_if_match(facts.request, facts.request_input, edits, scratch);
    }
}

/// Decides whether the body of a response is rewritten, and changes its head accordingly. Must be called after all changes
/// of rules. `None`: the body stays as it is.
pub fn begin(
    filters: &mut Filters,
    at: &mut impl Edge,
    (ends, asked): (&mut TransactionEnds, FilteredRequest),
    (head, input): (&ResponseHead, &[u8]),
    edits: &mut FieldEdits,
) -> Option<FilterRequirements> {
    let context = ends.context.as_deref_mut()?;
    if context.later.body_edits.is_empty() {
        return None;
    }
    let mut chosen = std::mem::take(&mut context.later.body_edits);
    let is_head = asked.is_head();
    let response = ResponseTraits::read(head, input, edits, is_head);
    let has_digest = response.has_digest;
    let fate = fate(&response, head.framing, is_head, &mut chosen);
    let counters = &ends.server.counters;
    match fate {
        RewriteDecision::Rewritten => counters.bodies_rewritten.add(1),
        RewriteDecision::Encoded => counters.bodies_encoded.add(1),
        RewriteDecision::Part => counters.bodies_part.add(1),
        RewriteDecision::TooLong => counters.bodies_too_long.add(1),
        RewriteDecision::Unchanged | RewriteDecision::Other => {}
    }
    if !matches!(fate, RewriteDecision::Rewritten | RewriteDecision::Unchanged) {
        return None;
    }
    changed_body::weaken_tag(at, (head, input), edits);
    if fate == RewriteDecision::Unchanged {
        return None;
    }
    changed_body::remove_claims(ends.context.as_deref_mut(), head, edits, has_digest);
    if head.framing != Framing::None {
        filters.on.get_or_insert_default().rewriting = Some(BodyRewrite::of(&chosen));
    }
    let framing = weir_compression::framing(head.framing, asked.version);
    Some(FilterRequirements { framing, flow: Some(Flow::Slices(SLICE_BYTES)) })
}

/// The treatment of a response. Edits that do not apply to it are removed.
fn fate(
    response: &ResponseTraits<'_>,
    framing: Framing,
    is_head: bool,
    edits: &mut Vec<Arc<BodyEdit>>,
) -> RewriteDecision {
    let content_type = response.content_type.unwrap_or_default();
    if response.status == 304 {
        let is_of = |edit: &Arc<BodyEdit>| edit.types.contain(content_type);
        let is_rewritten = response.content_type.is_none() || edits.iter().any(is_of);
        return if is_rewritten { RewriteDecision::Unchanged } else { RewriteDecision::Other };
    }
    edits.retain(|edit| edit.types.contain(content_type));
    let has_none = framing == Framing::None && !is_head;
    if edits.is_empty() || has_none || is_grpc(content_type) {
        return RewriteDecision::Other;
    }
    if response.status == 206 || response.is_range {
        return RewriteDecision::Part;
    }
    if response.is_encoded {
        return RewriteDecision::Encoded;
    }
    edits.retain(|edit| response.length_bytes.is_none_or(|bytes| bytes <= edit.size_bytes_max));
    if edits.is_empty() { RewriteDecision::TooLong } else { RewriteDecision::Rewritten }
}

impl Filter for BodyRewrite {
    fn pass(
        &mut self,
        at: &mut impl Edge,
        ends: &TransactionEnds,
        Piece { input, pieces, is_end }: Piece<'_>,
        out: &mut Message,
    ) -> EncodeResult {
        let tools = at.tools();
        let lent = (&mut tools.scratch, &mut tools.searchers);
        if self.rewrite(pieces.of(input), is_end, lent, out) {
            ends.server.counters.bodies_too_long.add(1);
        }
        EncodeResult::Sound
    }
}
