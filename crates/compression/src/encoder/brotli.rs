//! brotli by the library of its authors.
//!
//! It cannot be set back: each content gets an encoder of its own, and the memory comes and goes.

use brotlic::encode::BrotliOperation;
use brotlic::{BrotliEncoder, BrotliEncoderOptions, Quality, WindowSize};

use super::{EncodeError, Flush, room_bytes, write_to};
use crate::coding::Level;

/// brotli's quality for each level.
const QUALITIES: [u8; Level::COUNT] = [1, 2, 3, 4, 5, 6, 6, 6, 6];

/// 128 KiB, as with zstd.
const WINDOW_LOG: u8 = 17;

/// What brotli is told of the content's length: that it is not long enough for the large tables.
const SIZE_HINT_BYTES: u32 = 1 << 17;

pub(super) struct Brotli(BrotliEncoder);

impl Brotli {
    pub(super) fn new(level: Level) -> Result<Self, EncodeError> {
        let quality = Quality::new(QUALITIES[level.index()]).map_err(|_| EncodeError::Library)?;
        let window = WindowSize::new(WINDOW_LOG).map_err(|_| EncodeError::Library)?;
        let mut options = BrotliEncoderOptions::new();
        options.quality(quality).window_size(window).size_hint(SIZE_HINT_BYTES);
        options.build().map(Self).map_err(|_| EncodeError::Library)
    }

    pub(super) fn encode(
        &mut self,
        input: &[u8],
        flush: Flush,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let operation = match flush {
            Flush::None => BrotliOperation::Process,
            Flush::Sync => BrotliOperation::Flush,
            Flush::Finish => BrotliOperation::Finish,
        };
        let mut rest = input;
        loop {
            let (written, result) = write_to(out, room_bytes(rest), |out| {
                let result = self.0.compress(rest, out, operation);
                (result.as_ref().map_or(0, |result| result.bytes_written), result)
            });
            let taken = result.map_err(|_| EncodeError::Library)?.bytes_read;
            rest = &rest[taken..];
            let is_out = rest.is_empty() && !self.0.has_output();
            if is_out && (flush != Flush::Finish || self.0.is_finished()) {
                return Ok(());
            }
            if taken == 0 && written == 0 {
                return Err(EncodeError::Library);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coding::Coding;
    use crate::encoder::memory_bytes_max;

    /// What is freed before a call returns counts as well, and only the library knows of it.
    #[test]
    fn memory_is_no_more_than_the_library_expects() {
        for level in Level::all() {
            let quality = Quality::new(QUALITIES[level.index()]).unwrap();
            let window = WindowSize::new(WINDOW_LOG).unwrap();
            let length = 4 * SIZE_HINT_BYTES as usize;
            let expected = brotlic::compress_estimate_max_mem_usage(length, quality, window);
            assert!(expected <= memory_bytes_max(Coding::Brotli, level), "{level:?}: {expected}");
        }
    }
}
