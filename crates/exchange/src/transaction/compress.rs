//! Responses that are compressed on their way to the client.

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
use crate::parts::encoding::{Codings, Encoded, Encoding, Transforms};
use crate::parts::messages::Message;
use crate::parts::pieces::{self, Next, Pieces};
use crate::transaction::exchange::Exchange;

/// Maximum size of a body that is read and dropped to keep the member's connection, when the client has the content.
const DROPPED_BYTES_MAX: usize = 256 * 1024;

impl Exchange {
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
            self.transforms = Some(Box::new(Transforms { encoding, rewriting: None }));
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

impl Exchange {
    /// If the response of an exchange may be compressed, the member is read in slices from the start.
    pub fn limit_reads(&mut self, at: &mut impl Edge) {
        let rules = self.ends.server.settings().compression.as_ref();
        let coding = self.codings.as_ref().and_then(|codings| codings.facts.choice.coding());
        let level = coding.and_then(|coding| Some((coding, rules?.level(coding)?)));
        let flow = level
            .map_or(Flow::Bulk, |(coding, level)| Flow::Slices(slice_bytes_max(coding, level)));
        at.flow(&mut self.ends, Side::Member, flow);
    }

    /// Whether a response with this head waits for its whole body, to be compressed at once; returns the size of head
    /// and body. Of the bytes `received`, `length` belong to the head. Until then nothing has been sent, so a failure
    /// of the member can still be answered.
    pub fn collects(
        &self,
        (head, input): (&ResponseHead, &[u8]),
        (length, received): (usize, usize),
    ) -> Option<usize> {
        let (codings, rules) =
            (self.codings.as_ref()?, self.ends.server.settings().compression.as_ref()?);
        let body_bytes = match head.framing {
            Framing::Length(bytes) if bytes <= WHOLE_BYTES_MAX as u64 => bytes as usize,
            _ => return None,
        };
        let whole_bytes = length + body_bytes;
        if !self.request.is_whole || received >= whole_bytes || codings.has(head, input) {
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

    /// Decides whether a response is compressed, and changes its head accordingly. `body` is the part of the body that
    /// was received. Returns how the body is sent.
    pub fn begin_compression(
        &mut self,
        at: &mut impl Edge,
        head: &mut ResponseHead,
        (input, body): (&[u8], &[u8]),
        edits: &mut FieldEdits,
        plain: Framing,
    ) -> Framing {
        let Some(rules) = &self.ends.server.settings().compression else {
            return plain;
        };
        let Some(request) = self.codings.as_ref().map(|codings| codings.facts) else {
            // A policy may have decided this when the head arrived.
            at.flow(&mut self.ends, Side::Member, Flow::Bulk);
            return plain;
        };
        let is_head = self.request.method == Method::Head;
        let response = ResponseTraits::read(head, input, edits, is_head);
        let mut decision = decide(rules, &request, &response);
        let mut encoding = None;
        // A response to HEAD has the head that GET would get, and needs no encoder.
        if let Decision::Compress { coding, level, flush } = decision
            && head.framing != Framing::None
        {
            let level = at.tools().budget.level_for(level, rules.level_min);
            encoding = level.and_then(|level| {
                self.encode_whole(at, head.framing, body, (coding, level)).or_else(|| {
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
        let mut flow = Flow::Bulk;
        let framing = match (decision, &encoding) {
            (Decision::Identity { .. }, _) => plain,
            (_, Some(Encoding::Whole(encoded))) => Framing::Length(encoded.len() as u64),
            (_, Some(Encoding::Stream { encoder, .. })) => {
                flow = Flow::Slices(slice_bytes_max(encoder.coding(), encoder.level()));
                framing(head.framing, self.request.version)
            }
            _ => framing(head.framing, self.request.version),
        };
        at.flow(&mut self.ends, Side::Member, flow);
        if let Decision::Compress { .. } = decision {
            self.ends.server.counters.responses_compressed.add(1);
        }
        if encoding.is_some() {
            self.transforms.get_or_insert_default().encoding = encoding;
        }
        framing
    }

    /// Compresses a complete body; `None`: the body is incomplete or too long.
    fn encode_whole(
        &mut self,
        at: &mut impl Edge,
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
            self.note_encoded(at, (body.len(), encoded.len()), began_us);
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
        &mut self,
        at: &mut impl Edge,
        (bytes_in, bytes_out): (usize, usize),
        began_us: u64,
    ) {
        let counters = &self.ends.server.counters;
        counters.compression_bytes_in.add(bytes_in as u64);
        counters.compression_bytes_out.add(bytes_out as u64);
        let tools = at.tools();
        tools.budget.note((tools.time_us)().saturating_sub(began_us));
    }

    /// Writes the compressed data of `pieces` to `compressed`.
    pub fn compress(
        &mut self,
        at: &mut impl Edge,
        (input, pieces): (&[u8], &Pieces),
        is_done: bool,
        compressed: &mut Message,
    ) -> Encoded {
        let encoding = self.transforms.as_deref_mut().and_then(|it| it.encoding.as_mut());
        let (encoder, flush, has_more) = match encoding {
            None => return Encoded::Broken,
            Some(Encoding::Whole(encoded)) => {
                std::mem::swap(encoded, compressed);
                return Encoded::Sound;
            }
            Some(Encoding::Dropped { left_bytes }) => {
                let is_enough = pieces.data_bytes > *left_bytes || *left_bytes == 0;
                *left_bytes = left_bytes.saturating_sub(pieces.data_bytes);
                return if is_enough && !is_done { Encoded::Enough } else { Encoded::Sound };
            }
            Some(Encoding::Stream { encoder, flush, has_more }) => (encoder, *flush, has_more),
        };
        let began_us = (at.tools().time_us)();
        let slice_bytes = slice_bytes_max(encoder.coding(), encoder.level());
        let slices = pieces.of(input).flat_map(|data| data.chunks(slice_bytes));
        let mut is_sound = true;
        for slice in slices {
            is_sound &= encoder.encode(slice, Flush::None, compressed).is_ok();
        }
        *has_more |= pieces.data_bytes > 0;
        let may_flush = *has_more && pieces.next == Next::More && flush == FlushWhen::Dry;
        let is_dry = may_flush && at.is_dry(&self.ends);
        let flush = match (is_done, is_dry) {
            (true, _) => Flush::Finish,
            (false, true) => Flush::Sync,
            (false, false) => Flush::None,
        };
        if flush != Flush::None {
            *has_more = false;
            is_sound &= encoder.encode(b"", flush, compressed).is_ok();
        }
        self.note_encoded(at, (pieces.data_bytes, compressed.len()), began_us);
        if is_sound { Encoded::Sound } else { Encoded::Broken }
    }
}

/// The body at the start of `input`, if it is complete; joined in `joined` if it has several pieces.
fn whole_body<'b>(framing: Framing, input: &'b [u8], joined: &'b mut Vec<u8>) -> Option<&'b [u8]> {
    match framing {
        Framing::Length(bytes) => input.get(..usize::try_from(bytes).ok()?),
        Framing::Chunked => {
            let mut pieces = Pieces::none();
            pieces::gather(&mut BodyDecoder::new(framing, None), input, &mut pieces).ok()?;
            if pieces.next != Next::Done {
                return None;
            }
            joined.clear();
            pieces.of(input).for_each(|piece| joined.extend_from_slice(piece));
            Some(joined)
        }
        Framing::None | Framing::UntilClose => None,
    }
}
