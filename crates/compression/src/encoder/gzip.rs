//! gzip, by zlib-rs, above the fast class.

use zlib_rs::{Deflate, DeflateFlush, Status};

use super::{EncodeError, Flush, room_bytes, write_to};
use crate::coding::Level;

/// zlib-rs's level for each of weir's levels; the first two are unused. Its level 9 makes no smaller output than its level
/// 8.
const LEVELS: [i32; Level::COUNT] = [1, 2, 3, 3, 4, 5, 6, 7, 8];

/// The window of 32 KiB (15 bits), and a gzip header (16 more).
const WINDOW_BITS: u8 = 15 + 16;

pub(super) struct Gzip(Deflate);

impl Gzip {
    pub(super) fn new(level: Level) -> Self {
        Self(Deflate::new(LEVELS[level.index()], true, WINDOW_BITS))
    }

    pub(super) fn reset(&mut self) {
        self.0.reset();
    }

    pub(super) fn encode(
        &mut self,
        input: &[u8],
        flush: Flush,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let operation = match flush {
            Flush::None => DeflateFlush::NoFlush,
            Flush::Sync => DeflateFlush::SyncFlush,
            Flush::Finish => DeflateFlush::Finish,
        };
        let mut rest = input;
        loop {
            let room = room_bytes(rest);
            let before = self.0.total_in();
            let (written, status) = write_to(out, room, |out| {
                let before = self.0.total_out();
                let status = self.0.compress(rest, out, operation);
                ((self.0.total_out() - before) as usize, status)
            });
            let status = status.map_err(|_| EncodeError::Library)?;
            let taken = (self.0.total_in() - before) as usize;
            rest = &rest[taken..];
            let is_done = match flush {
                Flush::Finish => status == Status::StreamEnd,
                Flush::None | Flush::Sync => rest.is_empty() && written < room,
            };
            if is_done {
                return Ok(());
            }
            if taken == 0 && written == 0 {
                return Err(EncodeError::Library);
            }
        }
    }
}
