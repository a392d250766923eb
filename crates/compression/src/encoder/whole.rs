//! gzip of a complete body, by libdeflate.

use libdeflater::{CompressionLvl, Compressor};

use super::EncodeError;
use crate::coding::Level;

/// libdeflate's level for each of weir's levels.
const LEVELS: [i32; Level::COUNT] = [1, 1, 2, 3, 4, 5, 6, 7, 8];

/// One compressor per used level, and a buffer for the output of all.
#[derive(Default)]
pub(crate) struct WholeGzip {
    compressors: [Option<Compressor>; Level::COUNT],
    /// As long as the longest possible output so far; its contents are meaningless.
    buffer: Vec<u8>,
}

impl WholeGzip {
    pub(crate) fn encode(
        &mut self,
        level: Level,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let compressor = self.compressors[level.index()].get_or_insert_with(|| {
            let level = CompressionLvl::new(LEVELS[level.index()]).unwrap_or_default();
            Compressor::new(level)
        });
        let bound = compressor.gzip_compress_bound(body.len());
        if self.buffer.len() < bound {
            self.buffer.resize(bound, 0);
        }
        let written =
            compressor.gzip_compress(body, &mut self.buffer).map_err(|_| EncodeError::Library)?;
        out.extend_from_slice(&self.buffer[..written]);
        Ok(())
    }
}
