//! Responses that are compressed on their way to the client.

use weir_compression::{
    Decision, Encoder, Flush, FlushWhen, RequestFacts, ResponseFacts, decide, edit_response,
    entity_tags, framing, make_unchanged, slice_bytes_max,
};
use weir_http::edits::FieldEdits;
use weir_http::fields::values;
use weir_http::message::{Framing, Method, RequestHead, ResponseHead};

use super::Worker;
use super::body::{Next, Pieces};
use crate::clock::Clock;
use crate::table::LocalServer;

/// Bytes of a content that the client has already which are read and dropped, to keep the connection of its member.
const DROPPED_BYTES_MAX: usize = 256 * 1024;

/// What is remembered of a request until its response comes.
pub struct Codings {
    facts: RequestFacts,
    /// What If-None-Match says, where that may name a tag that was weakened here.
    known_tags: Vec<u8>,
}

/// What becomes of the body of a response.
pub enum Encoding {
    /// It is compressed as it comes.
    Stream { encoder: Encoder, flush: FlushWhen },
    /// The client has it already. So many bytes more are read to get rid of it.
    Dropped { left_bytes: usize },
}

/// What came of some of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoded {
    /// What is to be sent is in `Worker::compressed`.
    Sound,
    /// The rest is not worth waiting for.
    Enough,
    /// The encoder failed.
    Broken,
}

impl Worker {
    /// Notes what a client takes, for its response.
    pub fn note_codings(
        &mut self,
        server: &LocalServer,
        head: &RequestHead,
        input: &[u8],
        edits: &mut FieldEdits,
    ) -> Option<Codings> {
        let rules = server.settings().compression.as_ref()?;
        entity_tags::restore_if_match(head, input, edits, &mut self.tail);
        let facts = RequestFacts::read(rules, head, input);
        let mut known_tags = Vec::new();
        if facts.revalidates_weak && matches!(head.method, Method::Get | Method::Head) {
            for value in values(&head.fields, input, "If-None-Match") {
                known_tags.extend_from_slice(value);
                known_tags.extend_from_slice(b", ");
            }
        }
        Some(Codings { facts, known_tags })
    }

    /// A client that has the content of a response, under a tag that was weakened here, gets 304 where its member did not
    /// see that; to all behind this it is as if the member had said so. The member's own body is dropped.
    pub fn leave_out_known(&mut self, exchange_key: u32, head: &mut ResponseHead, input: &[u8]) {
        let exchange = &mut self.exchanges[exchange_key as usize];
        let known = exchange.codings.as_ref().map_or(&b""[..], |codings| &codings.known_tags);
        if known.is_empty() || head.status != 200 {
            return;
        }
        let is_known = |tag| entity_tags::is_unchanged(std::iter::once(known), tag);
        if values(&head.fields, input, "ETag").next().is_some_and(is_known) {
            let left_bytes = match head.framing {
                Framing::Length(bytes) if bytes > DROPPED_BYTES_MAX as u64 => 0,
                _ => DROPPED_BYTES_MAX,
            };
            make_unchanged(head, input);
            exchange.encoding = Some(Box::new(Encoding::Dropped { left_bytes }));
        }
    }

    /// Decides whether a response is compressed, and changes its head so. How its body goes to the client.
    pub fn begin_compression(
        &mut self,
        exchange_key: u32,
        head: &mut ResponseHead,
        input: &[u8],
        edits: &mut FieldEdits,
        plain: Framing,
    ) -> Framing {
        let exchange = &mut self.exchanges[exchange_key as usize];
        let Some(request) = exchange.codings.as_ref().map(|codings| codings.facts) else {
            return plain;
        };
        let Some(rules) = &exchange.server.settings().compression else {
            return plain;
        };
        let is_head = exchange.method == Method::Head;
        let response = ResponseFacts::read(head, input, edits, is_head);
        let mut decision = decide(rules, &request, &response);
        if let Decision::Compress { coding, level, flush } = decision {
            // An answer to HEAD says what GET would get, and takes no encoder.
            let encoder = if head.framing == Framing::None {
                None
            } else {
                let level = self.budget.level_for(level);
                level.and_then(|level| self.encoders.take(coding, level))
            };
            match encoder {
                Some(encoder) => {
                    exchange.encoding = Some(Box::new(Encoding::Stream { encoder, flush }));
                }
                None if head.framing == Framing::None => {}
                None => decision = Decision::Identity { vary: true },
            }
        }
        edit_response(decision, &request, head, input, edits, &mut self.tail);
        match decision {
            Decision::Compress { .. } => {
                exchange.server.live.counters.of(self.id).responses_compressed.add(1);
                framing(head.framing, exchange.version)
            }
            Decision::Identity { .. } => plain,
        }
    }

    /// Compresses what `pieces` name into `compressed`, if it is to be.
    pub fn compress(
        &mut self,
        exchange_key: u32,
        input: &[u8],
        pieces: &Pieces,
        is_done: bool,
    ) -> Encoded {
        let exchange = &mut self.exchanges[exchange_key as usize];
        let compressed = &mut self.compressed;
        compressed.clear();
        let (encoder, flush) = match exchange.encoding.as_deref_mut() {
            None => return Encoded::Broken,
            Some(Encoding::Dropped { left_bytes }) => {
                let is_enough = pieces.data_bytes > *left_bytes || *left_bytes == 0;
                *left_bytes = left_bytes.saturating_sub(pieces.data_bytes);
                return if is_enough && !is_done { Encoded::Enough } else { Encoded::Sound };
            }
            Some(Encoding::Stream { encoder, flush }) => (encoder, *flush),
        };
        let began_us = Clock::new().now_us();
        let slice_bytes = slice_bytes_max(encoder.coding(), encoder.level());
        let slices = pieces.of(input).flat_map(|data| data.chunks(slice_bytes));
        let mut is_sound = true;
        for slice in slices {
            is_sound &= encoder.encode(slice, Flush::None, compressed).is_ok();
        }
        let is_dry = pieces.next == Next::More && flush == FlushWhen::Dry;
        let flush = match (is_done, is_dry && pieces.data_bytes > 0) {
            (true, _) => Flush::Finish,
            (false, true) => Flush::Sync,
            (false, false) => Flush::None,
        };
        if flush != Flush::None {
            is_sound &= encoder.encode(b"", flush, compressed).is_ok();
        }
        let counters = exchange.server.live.counters.of(self.id);
        counters.compression_bytes_in.add(pieces.data_bytes as u64);
        counters.compression_bytes_out.add(compressed.len() as u64);
        self.budget.note(Clock::new().now_us().saturating_sub(began_us));
        if is_sound { Encoded::Sound } else { Encoded::Broken }
    }

    /// Takes an encoder back.
    pub fn give_encoding(&mut self, encoding: Option<Box<Encoding>>) {
        if let Some(Encoding::Stream { encoder, .. }) = encoding.map(|encoding| *encoding) {
            self.encoders.give(encoder);
        }
    }

    /// A turn of the loop is over: how busy the worker is decides how hard encoders try.
    pub fn note_turn_for_budget(&mut self, began_us: u64) {
        let now_us = Clock::new().now_us();
        self.budget.note_turn(now_us.saturating_sub(began_us), now_us);
        let counters = self.counters.of(self.id);
        let total = self.budget.counters();
        counters.compression_reduced.add(total.reduced - counters.compression_reduced.get());
        counters.compression_skipped.add(total.skipped - counters.compression_skipped.get());
    }
}
