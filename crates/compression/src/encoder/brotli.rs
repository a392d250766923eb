//! brotli, by its authors' library.
//!
//! The library's encoder cannot be reset: each content gets a new encoder, and memory is allocated and freed each time.

use brotlic::encode::BrotliOperation;
use brotlic::{BrotliEncoder, BrotliEncoderOptions, Quality, WindowSize};

use super::{EncodeError, Flush, room_bytes, slice_bytes_max, write_to};
use crate::coding::{Coding, Level};

/// brotli's quality for each level.
const QUALITIES: [u8; Level::COUNT] = [1, 2, 3, 4, 5, 6, 6, 6, 6];

/// A window of 128 KiB, as with zstd.
const WINDOW_LOG: u8 = 17;

/// The content length that brotli is told: too short for its large tables.
const SIZE_HINT_BYTES: u32 = 1 << 17;

/// From this level on, the library collects 64 KiB and then processes all of it in one call. weir makes it process data
/// after each slice instead, which enlarges the output by one or two percent.
const COLLECTS_FROM: u8 = 4;

pub(super) struct Brotli {
    encoder: BrotliEncoder,
    /// The number of bytes after which the encoder is made to process its data; `None`: the library decides.
    slice_bytes: Option<usize>,
    /// Number of bytes collected since then.
    held_bytes: usize,
}

impl Brotli {
    pub(super) fn new(level: Level) -> Result<Self, EncodeError> {
        let quality = Quality::new(QUALITIES[level.index()]).map_err(|_| EncodeError::Library)?;
        let window = WindowSize::new(WINDOW_LOG).map_err(|_| EncodeError::Library)?;
        let mut options = BrotliEncoderOptions::new();
        options.quality(quality).window_size(window).size_hint(SIZE_HINT_BYTES);
        let encoder = options.build().map_err(|_| EncodeError::Library)?;
        let collects = level.get() >= COLLECTS_FROM;
        let slice_bytes = collects.then_some(slice_bytes_max(Coding::Brotli, level));
        Ok(Self { encoder, slice_bytes, held_bytes: 0 })
    }

    pub(super) fn encode(
        &mut self,
        input: &[u8],
        flush: Flush,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let mut rest = input;
        if let Some(slice_bytes) = self.slice_bytes {
            while let Some((slice, after)) = rest.split_at_checked(slice_bytes - self.held_bytes) {
                self.step(slice, BrotliOperation::Flush, out)?;
                self.held_bytes = 0;
                rest = after;
            }
            self.held_bytes = if flush == Flush::None { self.held_bytes + rest.len() } else { 0 };
        }
        let operation = match flush {
            Flush::None => BrotliOperation::Process,
            Flush::Sync => BrotliOperation::Flush,
            Flush::Finish => BrotliOperation::Finish,
        };
        self.step(rest, operation, out)
    }

    fn step(
        &mut self,
        input: &[u8],
        operation: BrotliOperation,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let is_end = matches!(operation, BrotliOperation::Finish);
        let mut rest = input;
        loop {
            let (written, result) = write_to(out, room_bytes(rest), |out| {
                let result = self.encoder.compress(rest, out, operation);
                (result.as_ref().map_or(0, |result| result.bytes_written), result)
            });
            let taken = result.map_err(|_| EncodeError::Library)?.bytes_read;
            rest = &rest[taken..];
            let is_out = rest.is_empty() && !self.encoder.has_output();
            if is_out && (!is_end || self.encoder.is_finished()) {
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
    use crate::encoder::memory_bytes_max;

    /// Memory that is freed before a call returns counts as well, and only the library knows its size.
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
