//! Responses that are compressed on their way to the client.

use weir_compression::{
    Decision, Encoder, Flush, FlushWhen, RequestFacts, ResponseFacts, decide, edit_response,
    entity_tags, framing, slice_bytes_max,
};
use weir_http::edits::FieldEdits;
use weir_http::message::{Framing, Method, RequestHead, ResponseHead};

use super::Worker;
use super::body::{Next, Pieces};
use crate::clock::Clock;
use crate::table::LocalServer;

/// A response that is being compressed.
pub struct Encoding {
    encoder: Encoder,
    flush: FlushWhen,
}

impl Worker {
    /// Notes what a client takes, for its response.
    pub fn note_codings(
        &mut self,
        server: &LocalServer,
        head: &RequestHead,
        input: &[u8],
        edits: &mut FieldEdits,
    ) -> Option<RequestFacts> {
        let rules = server.settings().compression.as_ref()?;
        entity_tags::restore_if_match(head, input, edits, &mut self.tail);
        Some(RequestFacts::read(rules, head, input))
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
        let Some(request) = exchange.codings else {
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
                Some(encoder) => exchange.encoding = Some(Box::new(Encoding { encoder, flush })),
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

    /// Compresses what `pieces` name into `compressed`; false: it cannot be.
    pub fn compress(
        &mut self,
        exchange_key: u32,
        input: &[u8],
        pieces: &Pieces,
        is_done: bool,
    ) -> bool {
        let exchange = &mut self.exchanges[exchange_key as usize];
        let Some(encoding) = &mut exchange.encoding else {
            return false;
        };
        let began_us = Clock::new().now_us();
        let slice_bytes = slice_bytes_max(encoding.encoder.coding(), encoding.encoder.level());
        let compressed = &mut self.compressed;
        compressed.clear();
        let slices = pieces.of(input).flat_map(|data| data.chunks(slice_bytes));
        let mut is_sound = true;
        for slice in slices {
            is_sound &= encoding.encoder.encode(slice, Flush::None, compressed).is_ok();
        }
        let is_dry = pieces.next == Next::More && encoding.flush == FlushWhen::Dry;
        let flush = match (is_done, is_dry && pieces.data_bytes > 0) {
            (true, _) => Flush::Finish,
            (false, true) => Flush::Sync,
            (false, false) => Flush::None,
        };
        if flush != Flush::None {
            is_sound &= encoding.encoder.encode(b"", flush, compressed).is_ok();
        }
        let counters = exchange.server.live.counters.of(self.id);
        counters.compression_bytes_in.add(pieces.data_bytes as u64);
        counters.compression_bytes_out.add(compressed.len() as u64);
        self.budget.note(Clock::new().now_us().saturating_sub(began_us));
        is_sound
    }

    /// Takes an encoder back.
    pub fn give_encoding(&mut self, encoding: Option<Box<Encoding>>) {
        if let Some(encoding) = encoding {
            self.encoders.give(encoding.encoder);
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
