//! Incremental decoders of all codings, with a common interface.

use brotlic::BrotliDecoder;
use brotlic::decode::DecoderInfo;
use zlib_rs::{Inflate, InflateFlush, Status};
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use super::chunks::Chunks;
use super::step::Step;
use super::{Coding, InflateProblem};

/// The window of deflate: 32 KiB (15 bits).
const WINDOW_BITS: u8 = 15;
/// The value that selects the gzip frame in zlib-rs when it is added to the window bits.
const GZIP_FRAME: u8 = 16;
/// Maximum zstd window in HTTP: 8 MiB (RFC 9659).
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
/// The number of bytes that distinguish a zlib stream from raw deflate.
pub(super) const DEFLATE_START_BYTES: usize = 5;

pub(super) enum Decoder {
    Zlib(Inflate),
    Brotli(BrotliDecoder),
    Zstd(DCtx<'static>),
    AwsChunked(Chunks),
}

impl Decoder {
    /// A decoder for a stream. `start`: the first bytes of the stream, used only for [`Coding::Deflate`].
    pub fn new(coding: Coding, start: &[u8]) -> Result<Self, InflateProblem> {
        Ok(match coding {
            Coding::Gzip => Self::Zlib(Inflate::new(true, WINDOW_BITS + GZIP_FRAME)),
            Coding::Deflate => Self::Zlib(Inflate::new(has_zlib_frame(start)?, WINDOW_BITS)),
            // The decoder rejects larger windows than RFC 7932 permits, because they require the receiver's consent.
            Coding::Brotli => Self::Brotli(BrotliDecoder::new()),
            Coding::AwsChunked => Self::AwsChunked(Chunks::new()),
            Coding::Zstd => {
                let mut context = DCtx::try_create().ok_or(InflateProblem::Malformed)?;
                let window = DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX);
                context.set_parameter(window).map_err(|_| InflateProblem::Malformed)?;
                Self::Zstd(context)
            }
        })
    }

    /// Decodes as much as fits in `out`.
    pub fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Step, InflateProblem> {
        match self {
            Self::Zlib(inflate) => {
                let before = (inflate.total_in(), inflate.total_out());
                let status = inflate.decompress(input, out, InflateFlush::NoFlush);
                let is_end = status.map_err(|_| InflateProblem::Malformed)? == Status::StreamEnd;
                let taken = (inflate.total_in() - before.0) as usize;
                Ok(Step { taken, written: (inflate.total_out() - before.1) as usize, is_end })
            }
            Self::Brotli(decoder) => {
                let result = decoder.decompress(input, out);
                let result = result.map_err(|_| InflateProblem::Malformed)?;
                let is_end = result.info == DecoderInfo::Finished;
                Ok(Step { taken: result.bytes_read, written: result.bytes_written, is_end })
            }
            Self::AwsChunked(chunks) => chunks.step(input, out),
            Self::Zstd(context) => {
                let (mut from, mut to) = (InBuffer::around(input), OutBuffer::around(out));
                let left = context.decompress_stream(&mut to, &mut from);
                let is_end = left.map_err(|_| InflateProblem::Malformed)? == 0;
                Ok(Step { taken: from.pos(), written: to.pos(), is_end })
            }
        }
    }
}

/// Whether a deflate stream has the zlib frame that RFC 1950 section 2.2 requires.
///
/// A raw stream may begin like a zlib frame. It then begins with a stored block, because of the low bits of `CM`, and the
/// length of the block follows twice (RFC 1951 section 3.2.4).
fn has_zlib_frame(start: &[u8]) -> Result<bool, InflateProblem> {
    let &[method, flags, ref rest @ ..] = start else { return Ok(false) };
    let is_zlib = method & 0x0f == 8
        && method >> 4 <= 7
        && (u16::from(method) << 8 | u16::from(flags)) % 31 == 0;
    let is_stored = matches!(*rest, [high, not_low, not_high, ..]
        if flags ^ not_low == 0xff && high ^ not_high == 0xff);
    if is_zlib && is_stored { Err(InflateProblem::Ambiguous) } else { Ok(is_zlib) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_zlib_are_told_apart() {
        for (start, expected) in [
            (&b"\x78\x9c\x03\x00\x00"[..], Ok(true)),
            (b"\x78\x01\x01\x05\x00", Ok(true)),
            (b"\x48\x89\x03\x00\x00", Ok(true)),
            (b"\x78\x9d\x03\x00\x00", Ok(false)),
            (b"\x88\x1c\x03\x00\x00", Ok(false)),
            (b"\x03\x00", Ok(false)),
            (b"\x78\x9c", Ok(true)),
            (b"\x01\x05\x00\xfa\xff", Ok(false)),
            (b"\x78\x01\x00\xfe\xff", Err(InflateProblem::Ambiguous)),
            (b"\x78\x9c\x12\x63\xed", Err(InflateProblem::Ambiguous)),
            (b"", Ok(false)),
        ] {
            assert_eq!(has_zlib_frame(start), expected, "{}", start.escape_ascii());
        }
    }
}
