//! Encoders of streams: a fixed set with one interface.
//!
//! The levels; `docs/decisions/0012-compression-encoders.md` has their measured time and size:
//!
//! | level | gzip, streams: zlib-rs | gzip, whole bodies: libdeflate | zstd | brotli |
//! |---|---|---|---|---|
//! | 1 | `quick`, weir's own | 1, for long bodies `quick` | 1 | 1 |
//! | 2 | `quick`, which searches more | 1, for long bodies `quick` | 2 | 2 |
//! | 3 | 3 | 2 | 3 | 3 |
//! | 4 | 3 | 3 | 4 | 4 |
//! | 5 | 4 | 4 | 5 | 5 |
//! | 6 | 5 | 5 | 6 | 6 |
//! | 7 | 6 | 6 | 7 | 6 |
//! | 8 | 7 | 7 | 8 | 6 |
//! | 9 | 8 | 8 | 9 | 6 |
//!
//! zlib-rs's levels 1 and 2 produce larger output than weir's own encoder, and 2 is also slower. gzip's level 5 is closest
//! to zlib's level 5 in size, and the others are arranged around it. zstd's level 4 equals its level 3 at this window. Above
//! level 6, brotli would take more than 9 MiB per response.
//!
//! **Work per call.** A call processes its whole input. [`slice_bytes_max`] is the input for a call of about
//! [`CALL_TARGET_US`]; the caller serves other requests in between.

mod brotli;
mod gzip;
pub(crate) mod quick;
pub(crate) mod whole;
mod zstd;

use std::fmt;

use crate::coding::{Coding, Level};

/// The treatment of data that an encoder still holds when a call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// Data may be held until more arrives.
    None,
    /// Data is output, and everything so far can be decoded; this costs a few bytes, and some compression.
    Sync,
    /// The content ends.
    Finish,
}

/// The reason why nothing was encoded. No reason depends on the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncodeError {
    /// The content had ended, or an earlier call failed: the caller must first call [`Encoder::reset`].
    Ended,
    /// The encoder could not allocate memory, or is in an invalid state.
    Library,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Ended => "the content had ended before",
            Self::Library => "the encoder is out of memory or broken",
        })
    }
}

impl std::error::Error for EncodeError {}

/// Approximate time of a call with [`slice_bytes_max`], on the machine of the decision record.
pub const CALL_TARGET_US: u64 = 250;

/// The number of content bytes per call that takes about [`CALL_TARGET_US`]. The content changes this by a factor of
/// two in either direction.
pub const fn slice_bytes_max(coding: Coding, level: Level) -> usize {
    const KIB: usize = 1024;
    const GZIP: [usize; Level::COUNT] = [64, 64, 32, 32, 24, 24, 16, 16, 12];
    const ZSTD: [usize; Level::COUNT] = [64, 64, 48, 48, 24, 16, 16, 16, 16];
    const BROTLI: [usize; Level::COUNT] = [48, 32, 24, 24, 16, 16, 16, 16, 16];
    KIB * match coding {
        Coding::Gzip => GZIP[level.index()],
        Coding::Zstd => ZSTD[level.index()],
        Coding::Brotli => BROTLI[level.index()],
    }
}

/// Maximum size of content that is collected for [`crate::Pool::encode_whole`].
///
/// gzip's encoder of whole bodies takes a quarter to a third less time than that of streams, but a call cannot be divided:
/// the limit is a call of about 0.8 ms, three times [`CALL_TARGET_US`]. The other codings have one encoder for both
/// purposes. Content that one call can take is encoded at once, because its length is then known.
pub const fn whole_bytes_max(coding: Coding, level: Level) -> usize {
    const KIB: usize = 1024;
    const GZIP: [usize; Level::COUNT] = [16, 16, 128, 128, 128, 112, 88, 64, 48];
    match coding {
        Coding::Gzip => KIB * GZIP[level.index()],
        Coding::Zstd | Coding::Brotli => slice_bytes_max(coding, level),
    }
}

/// Maximum memory of an encoder for any content, without the caller's output. `tests/memory.rs` measures it.
pub const fn memory_bytes_max(coding: Coding, level: Level) -> usize {
    const KIB: usize = 1024;
    const GZIP: [usize; Level::COUNT] = [160, 160, 384, 384, 384, 384, 384, 384, 384];
    const ZSTD: [usize; Level::COUNT] = [512, 512, 640, 640, 640, 640, 640, 640, 640];
    const BROTLI: [usize; Level::COUNT] = [1280, 1536, 1536, 2560, 3072, 4096, 4096, 4096, 4096];
    KIB * match coding {
        Coding::Gzip => GZIP[level.index()],
        Coding::Zstd => ZSTD[level.index()],
        Coding::Brotli => BROTLI[level.index()],
    }
}

/// Encodes content, piece by piece.
pub struct Encoder {
    state: State,
    coding: Coding,
    level: Level,
    has_ended: bool,
    /// Whether content was begun and not ended.
    is_within: bool,
}

enum State {
    QuickGzip(quick::Quick),
    Gzip(gzip::Gzip),
    Zstd(zstd::Zstd),
    Brotli(brotli::Brotli),
}

impl fmt::Debug for Encoder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Encoder")
            .field("coding", &self.coding)
            .field("level", &self.level)
            .field("has_ended", &self.has_ended)
            .finish_non_exhaustive()
    }
}

impl Encoder {
    /// An encoder at the start of content. [`crate::Pool`] reuses encoders.
    pub fn new(coding: Coding, level: Level) -> Result<Self, EncodeError> {
        let state = match coding {
            Coding::Gzip if level <= quick::LEVEL_MAX => State::QuickGzip(quick::Quick::new(level)),
            Coding::Gzip => State::Gzip(gzip::Gzip::new(level)),
            Coding::Zstd => State::Zstd(zstd::Zstd::new(level)?),
            Coding::Brotli => State::Brotli(brotli::Brotli::new(level)?),
        };
        Ok(Self { state, coding, level, has_ended: false, is_within: false })
    }

    /// The coding.
    pub fn coding(&self) -> Coding {
        self.coding
    }

    /// The level.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Encodes `input`, and appends output to `out`.
    ///
    /// With [`Flush::Sync`] and no input since the last such call, nothing or almost nothing is appended. After
    /// [`Flush::Finish`], or an error, the caller must call [`Self::reset`].
    pub fn encode(
        &mut self,
        input: &[u8],
        flush: Flush,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        if self.has_ended {
            return Err(EncodeError::Ended);
        }
        self.has_ended = true;
        self.is_within = true;
        match &mut self.state {
            State::QuickGzip(quick) => quick.encode(input, flush, out),
            State::Gzip(gzip) => gzip.encode(input, flush, out)?,
            State::Zstd(zstd) => zstd.encode(input, flush, out)?,
            State::Brotli(brotli) => brotli.encode(input, flush, out)?,
        }
        self.has_ended = flush == Flush::Finish;
        self.is_within = !self.has_ended;
        Ok(())
    }

    /// Begins new content. The memory is reused if the last content was complete. Unfinished output of the last content is
    /// lost.
    pub fn reset(&mut self) -> Result<(), EncodeError> {
        self.has_ended = true;
        match &mut self.state {
            State::QuickGzip(quick) => quick.reset(),
            // After truncated content, zlib-rs 0.6.8 does not reset all of its state: at its level 1 it assumes that a block
            // is still open, and its output then cannot be decoded.
            State::Gzip(gzip) if self.is_within => *gzip = gzip::Gzip::new(self.level),
            State::Gzip(gzip) => gzip.reset(),
            State::Zstd(zstd) => zstd.reset()?,
            State::Brotli(brotli) => *brotli = brotli::Brotli::new(self.level)?,
        }
        self.has_ended = false;
        self.is_within = false;
        Ok(())
    }

    /// Whether a reset is cheaper than a new encoder.
    pub(crate) fn is_reusable(&self) -> bool {
        !matches!(self.state, State::Brotli(_))
    }
}

/// Number of bytes by which the output is enlarged at a time: most content shrinks to less than half of it.
fn room_bytes(input: &[u8]) -> usize {
    const ROOM_BYTES_MIN: usize = 512;
    (input.len() / 2).max(ROOM_BYTES_MIN)
}

/// Lets `encode` write to `room` bytes after the end of `out`; it returns the number of written bytes.
fn write_to<T>(
    out: &mut Vec<u8>,
    room: usize,
    encode: impl FnOnce(&mut [u8]) -> (usize, T),
) -> (usize, T) {
    let start = out.len();
    out.resize(start + room, 0);
    let (written, result) = encode(&mut out[start..]);
    out.truncate(start + written);
    (written, result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoder_that_has_ended_says_so() {
        for coding in Coding::ALL {
            let mut encoder = Encoder::new(coding, Level::MIN).unwrap();
            let mut out = Vec::new();
            encoder.encode(b"content", Flush::Finish, &mut out).unwrap();
            let first = out.clone();
            assert_eq!(encoder.encode(b"more", Flush::None, &mut out), Err(EncodeError::Ended));
            assert_eq!(out, first);
            encoder.reset().unwrap();
            out.clear();
            encoder.encode(b"content", Flush::Finish, &mut out).unwrap();
            assert_eq!(out, first, "{coding:?}");
        }
    }

    #[test]
    fn whole_bodies_are_within_bounds() {
        for coding in Coding::ALL {
            for level in Level::all() {
                let bytes = whole_bytes_max(coding, level);
                assert!(bytes <= crate::WHOLE_BYTES_MAX, "{coding:?} {level:?}");
                // Above the fast class, even input passed at once may be collected.
                let is_fast = coding == Coding::Gzip && level <= quick::LEVEL_MAX;
                assert!(is_fast || bytes >= slice_bytes_max(coding, level), "{coding:?} {level:?}");
            }
        }
    }

    #[test]
    fn what_is_appended_goes_behind_what_is_there() {
        for coding in Coding::ALL {
            let mut encoder = Encoder::new(coding, Level::MAX).unwrap();
            let mut out = b"head".to_vec();
            encoder.encode(&[7; 100_000], Flush::Finish, &mut out).unwrap();
            assert!(out.starts_with(b"head") && out.len() < 1_000, "{coding:?}: {}", out.len());
        }
    }

    #[test]
    fn a_flush_with_nothing_new_is_short() {
        for coding in Coding::ALL {
            let mut encoder = Encoder::new(coding, Level::MIN).unwrap();
            let mut out = Vec::new();
            encoder.encode(b"data: 1\n\n", Flush::Sync, &mut out).unwrap();
            let before = out.len();
            for _ in 0..10 {
                encoder.encode(&[], Flush::Sync, &mut out).unwrap();
            }
            assert!(out.len() - before <= 50, "{coding:?}: {}", out.len() - before);
        }
    }
}
