//! Compression of responses.

use weir_compression::{
    Coding, Decision, Flush, FlushWhen, Level, RequestTraits, ResponseTraits, WHOLE_BYTES_MAX,
    decide, edit_response, entity_tags, framing, make_unchanged, slice_bytes_max, whole_bytes_max,
};
use weir_core::policy;
use weir_http::edits::FieldEdits;
use weir_http::fields::values;
use weir_http::h1::BodyDecoder;
use weir_http::message::{Framing, Method, RequestHead, ResponseHead};

use crate::edge::{Edge, Flow, Side};
use crate::local::table::LocalServer;
use crate::parts::encoding::{Codings, EncodeResult, Encoding, Filters, Transforms};
use crate::parts::messages::Message;
use crate::parts::pieces::{self, AfterData, Pieces};
use crate::parts::transaction_ends::TransactionEnds;
use crate::transaction::filters::contract::{Filter, FilterRequirements, FilteredRequest, Piece};

/// Maximum size of a body that is read and dropped to keep the member's connection, when the client has the content.
const DROPPED_BYTES_MAX: usize = 256 * 1024;

impl Filters {
    /// A client that has the content of a response, under a tag that was weakened here, gets 304 where its member did
    /// not see that; to all behind this it is as if the member had said so. The member's own body is dropped.
    #[inline]
    pub fn leave_out_known(&mut self, head: &mut ResponseHead, input: &[u8]) {
        if self.codings.as_ref().is_some_and(|codings| codings.has(head, input)) {
            let left_bytes = match head.framing {
                Framing::Length(bytes) if bytes > DROPPED_BYTES_MAX as u64 => 0,
                _ => DROPPED_BYTES_MAX,
            };
            make_unchanged(head, input);
            let encoding = Some(Encoding::Dropped { left_bytes });
            self.on = Some(Box::new(Transforms { encoding, ..Transforms::default() }));
        }
    }
}

/// Records the codings that a client accepts, for its response; `None`: the response is never compressed.
pub fn note_codings(
    at: &mut impl Edge,
    server: &LocalServer,
    head: &RequestHead,
    input: &[u8],
    policies: &mut policy::Decision,
) -> Option<Codings> {
    let rules = server.settings().compression.as_ref()?;
    let edits = &mut policies.request.fields;
    let mut scratch = at.tools().scratch.take();
    entity_tags::restore_if_match(head, input, edits, &mut scratch);
    at.tools().scratch.give(scratch);
    if policies.is_uncompressed {
        return None;
    }
    let facts = RequestTraits::read(rules, head, input);
    let mut known_tags = Vec::new();
    if facts.revalidates_weak && matches!(head.method, Method::Get | Method::Head) {
        for value in values(&head.fields, input, "If-None-Match") {
            known_tags.extend_from_slice(value);
            known_tags.extend_from_slice(b", ");
        }
    }
    Some(Codings { facts, known_tags })
}

impl Filters {
    /// If the response may be compressed, the member is read in slices from the start.
    pub fn limit_reads(&self, at: &mut impl Edge, ends: &mut TransactionEnds) {
        let rules = ends.server.settings().compression.as_ref();
        let coding = self.codings.as_ref().and_then(|codings| codings.facts.choice.coding());
        let level = coding.and_then(|coding| Some((coding, rules?.level(coding)?)));
        let flow = level
            .map_or(Flow::Bulk, |(coding, level)| Flow::Slices(slice_bytes_max(coding, level)));
        at.flow(ends, Side::Member, flow);
    }

    /// Whether a response with this head waits for its whole body, to be compressed at once; returns the size of head
    /// and body. Of the bytes `received`, `length` belong to the head. Until then nothing has been sent, so a failure
    /// of the member can still be answered. Only for a request that is complete.
    pub fn collects(
        &self,
        server: &LocalServer,
        (head, input): (&ResponseHead, &[u8]),
        (length, received): (usize, usize),
    ) -> Option<usize> {
        let (codings, rules) = (self.codings.as_ref()?, server.settings().compression.as_ref()?);
        let body_bytes = match head.framing {
            Framing::Length(bytes) if bytes <= WHOLE_BYTES_MAX as u64 => bytes as usize,
            _ => return None,
        };
        let whole_bytes = length + body_bytes;
        if received >= whole_bytes || codings.has(head, input) {
            return None;
        }
        // Rules for responses may still change its mind; then it goes as it is, all at once.
        let unedited = FieldEdits::NONE;
        let response = ResponseTraits::read(head, input, &unedited, false);
        let bytes_max = match decide(rules, &codings.facts, &response) {
            Decision::Compress { coding, level, .. } => whole_bytes_max(coding, level),
            Decision::Identity { .. } => return None,
        };
        (body_bytes <= bytes_max).then_some(whole_bytes)
    }
}

/// Decides whether a response is compressed, and changes its head accordingly. `body`: what was received of the body. `plain`: what the
/// filters before want.
pub fn begin(
    filters: &mut Filters,
    at: &mut impl Edge,
    (ends, asked): (&TransactionEnds, FilteredRequest),
    head: &mut ResponseHead,
    (input, body): (&[u8], &[u8]),
    edits: &mut FieldEdits,
    plain: FilterRequirements,
) -> FilterRequirements {
    let Some(rules) = &ends.server.settings().compression else { return plain };
    let unencoded = FilterRequirements { flow: plain.flow.or(Some(Flow::Bulk)), ..plain };
    let Some(request) = filters.codings.as_ref().map(|codings| codings.facts) else {
        // A policy may have decided this when the head arrived.
        return unencoded;
    };
    let response = ResponseTraits::read(head, input, edits, asked.is_head());
    let mut decision = decide(rules, &request, &response);
    let mut encoding = None;
    // A response to HEAD has the head that GET would get, and needs no encoder.
    if let Decision::Compress { coding, level, flush } = decision
        && head.framing != Framing::None
    {
        let level = at.tools().budget.level_for(level, rules.level_min);
        encoding = level.and_then(|level| {
            encode_whole(at, &ends.server, head.framing, body, (coding, level)).or_else(|| {
                let encoder = at.tools().encoders.take(coding, level)?;
                Some(Encoding::Stream { encoder, flush, has_more: false })
            })
        });
        if encoding.is_none() {
            decision = Decision::Identity { vary: true };
        }
    }
    let mut scratch = at.tools().scratch.take();
    edit_response(decision, &request, head, input, edits, &mut scratch);
    at.tools().scratch.give(scratch);
    let wants = match (decision, &encoding) {
        (Decision::Identity { .. }, _) => unencoded,
        (_, Some(Encoding::Whole(encoded))) => {
            FilterRequirements { framing: Framing::Length(encoded.len() as u64), ..unencoded }
        }
        (_, Some(Encoding::Stream { encoder, .. })) => FilterRequirements {
            framing: framing(head.framing, asked.version),
            flow: Some(in_slices(slice_bytes_max(encoder.coding(), encoder.level()), plain.flow)),
        },
        _ => FilterRequirements { framing: framing(head.framing, asked.version), ..unencoded },
    };
    if let Decision::Compress { .. } = decision {
        ends.server.counters.responses_compressed.add(1);
    }
    if encoding.is_some() {
        filters.on.get_or_insert_default().encoding = encoding;
    }
    wants
}

/// Reads in slices for the encoder, or shorter ones if a filter before wants them.
fn in_slices(bytes: usize, before: Option<Flow>) -> Flow {
    match before {
        Some(Flow::Slices(shorter)) => Flow::Slices(bytes.min(shorter)),
        _ => Flow::Slices(bytes),
    }
}

/// Compresses a complete body; `None`: the body is incomplete or too long.
fn encode_whole(
    at: &mut impl Edge,
    server: &LocalServer,
    framing: Framing,
    input: &[u8],
    (coding, level): (Coding, Level),
) -> Option<Encoding> {
    let (mut joined, mut encoded) = (at.tools().scratch.take(), at.tools().scratch.take());
    let body = whole_body(framing, input, &mut joined);
    let body = body.filter(|body| body.len() <= whole_bytes_max(coding, level));
    let is_encoded = body.is_some_and(|body| {
        let began_us = (at.tools().time_us)();
        let result = at.tools().encoders.encode_whole(coding, level, body, &mut encoded);
        note_encoded(at, server, (body.len(), encoded.len()), began_us);
        result.is_ok()
    });
    at.tools().scratch.give(joined);
    if is_encoded {
        return Some(Encoding::Whole(encoded));
    }
    at.tools().scratch.give(encoded);
    None
}

/// Counts a compression since `began_us`: bytes in and bytes out.
fn note_encoded(
    at: &mut impl Edge,
    server: &LocalServer,
    (bytes_in, bytes_out): (usize, usize),
    began_us: u64,
) {
    server.counters.compression_bytes_in.add(bytes_in as u64);
    server.counters.compression_bytes_out.add(bytes_out as u64);
    let tools = at.tools();
    tools.budget.note((tools.time_us)().saturating_sub(began_us));
}

impl Filter for Encoding {
    fn pass(
        &mut self,
        at: &mut impl Edge,
        ends: &TransactionEnds,
        Piece { input, pieces, is_end }: Piece<'_>,
        compressed: &mut Message,
    ) -> EncodeResult {
        let (encoder, flush, has_more) = match self {
            Self::Whole(encoded) => {
                std::mem::swap(encoded, compressed);
                return EncodeResult::Sound;
            }
            Self::Dropped { left_bytes } => {
                let is_enough = pieces.data_bytes > *left_bytes || *left_bytes == 0;
                *left_bytes = left_bytes.saturating_sub(pieces.data_bytes);
                return if is_enough && !is_end {
                    EncodeResult::Enough
                } else {
                    EncodeResult::Sound
                };
            }
            Self::Stream { encoder, flush, has_more } => (encoder, *flush, has_more),
        };
        let began_us = (at.tools().time_us)();
        let slice_bytes = slice_bytes_max(encoder.coding(), encoder.level());
        let slices = pieces.of(input).flat_map(|data| data.chunks(slice_bytes));
        let mut is_sound = true;
        for slice in slices {
            is_sound &= encoder.encode(slice, Flush::None, compressed).is_ok();
        }
        *has_more |= pieces.data_bytes > 0;
        let may_flush = *has_more && pieces.next == AfterData::More && flush == FlushWhen::Dry;
        let is_dry = may_flush && at.is_dry(ends);
        let flush = match (is_end, is_dry) {
            (true, _) => Flush::Finish,
            (false, true) => Flush::Sync,
            (false, false) => Flush::None,
        };
        if flush != Flush::None {
            *has_more = false;
            is_sound &= encoder.encode(b"", flush, compressed).is_ok();
        }
        note_encoded(at, &ends.server, (pieces.data_bytes, compressed.len()), began_us);
        if is_sound { EncodeResult::Sound } else { EncodeResult::Broken }
    }
}

/// The body at the start of `input`, if it is complete; joined in `joined` if it has several pieces.
fn whole_body<'b>(framing: Framing, input: &'b [u8], joined: &'b mut Vec<u8>) -> Option<&'b [u8]> {
    match framing {
        Framing::Length(bytes) => input.get(..usize::try_from(bytes).ok()?),
        Framing::Chunked => {
            let mut pieces = Pieces::none();
            pieces::gather(&mut BodyDecoder::new(framing, None), input, &mut pieces).ok()?;
            if pieces.next != AfterData::Done {
                return None;
            }
            joined.clear();
            pieces.of(input).for_each(|piece| joined.extend_from_slice(piece));
            Some(joined)
        }
        Framing::None | Framing::UntilClose => None,
    }
}
