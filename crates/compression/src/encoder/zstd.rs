//! zstd, by its authors' library.

use zstd_safe::zstd_sys::ZSTD_EndDirective::{self, ZSTD_e_continue, ZSTD_e_end, ZSTD_e_flush};
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, ResetDirective, SafeResult};

use super::{EncodeError, Flush, room_bytes};
use crate::coding::Level;

/// A window of 128 KiB: RFC 9659 permits 8 MiB, but each response would need memory for it.
const WINDOW_LOG: u32 = 17;

/// The sizes of the tables. The defaults suit files of any length, and take up to ten times the memory.
const TABLE_LOGS: [u32; Level::COUNT] = [15, 15, 15, 15, 16, 16, 16, 16, 16];

/// zstd collects a block and then processes it in one call, so a call may take the time of one block. By default a block is
/// as long as the window, which takes 1.7 ms at the upper levels, and twice the memory.
const BLOCK_BYTES: [u32; Level::COUNT] =
    [32_768, 32_768, 32_768, 32_768, 16_384, 16_384, 16_384, 16_384, 16_384];

pub(super) struct Zstd(CCtx<'static>);

impl Zstd {
    pub(super) fn new(level: Level) -> Result<Self, EncodeError> {
        let mut context = CCtx::try_create().ok_or(EncodeError::Library)?;
        let table_log = TABLE_LOGS[level.index()];
        for parameter in [
            CParameter::CompressionLevel(i32::from(level.get())),
            CParameter::WindowLog(WINDOW_LOG),
            CParameter::HashLog(table_log),
            CParameter::ChainLog(table_log),
            CParameter::MaxBlockSize(BLOCK_BYTES[level.index()]),
        ] {
            sound(context.set_parameter(parameter))?;
        }
        Ok(Self(context))
    }

    pub(super) fn reset(&mut self) -> Result<(), EncodeError> {
        sound(self.0.reset(ResetDirective::SessionOnly)).map(drop)
    }

    pub(super) fn encode(
        &mut self,
        input: &[u8],
        flush: Flush,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let directive: ZSTD_EndDirective = match flush {
            Flush::None => ZSTD_e_continue,
            Flush::Sync => ZSTD_e_flush,
            Flush::Finish => ZSTD_e_end,
        };
        let mut input = InBuffer::around(input);
        loop {
            let room = room_bytes(&input.src[input.pos..]);
            out.reserve(room);
            let (taken, written) = (input.pos, out.len());
            let mut output = OutBuffer::around_pos(out, written);
            let left = sound(self.0.compress_stream2(&mut output, &mut input, directive))?;
            let is_taken = input.pos == input.src.len();
            if is_taken && (flush == Flush::None || left == 0) {
                return Ok(());
            }
            if input.pos == taken && out.len() == written {
                return Err(EncodeError::Library);
            }
        }
    }
}

fn sound(result: SafeResult) -> Result<usize, EncodeError> {
    result.map_err(|_| EncodeError::Library)
}
