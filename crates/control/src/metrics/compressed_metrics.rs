//! Metrics compressed by gzip, piece by piece.

use weir_compression::{Coding, Encoder, Flush, Level};

/// Size of a piece of text.
pub(super) const PIECE_BYTES: usize = 64 * 1024;

/// The lines of a metric differ in few bytes: a higher level takes longer for an output that is hardly smaller.
const LEVEL: Level = Level::MIN;

/// The compressed text so far.
pub(super) struct CompressedMetrics {
    encoder: Encoder,
    bytes: Vec<u8>,
    has_failed: bool,
}

impl CompressedMetrics {
    /// `None`: there is no memory for an encoder.
    pub(super) fn begin() -> Option<Self> {
        let encoder = Encoder::new(Coding::Gzip, LEVEL).ok()?;
        Some(Self { encoder, bytes: Vec::new(), has_failed: false })
    }

    pub(super) fn add(&mut self, text: &str) {
        self.encode(text, Flush::None);
    }

    /// Compresses the last piece. Returns the whole; `None`: the encoder has failed.
    pub(super) fn end(mut self, text: &str) -> Option<Vec<u8>> {
        self.encode(text, Flush::Finish);
        (!self.has_failed).then_some(self.bytes)
    }

    fn encode(&mut self, text: &str, flush: Flush) {
        self.has_failed |= self.encoder.encode(text.as_bytes(), flush, &mut self.bytes).is_err();
    }
}
