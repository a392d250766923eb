//! Encoders of streams: a closed set, one way to drive them.
//!
//! The levels; `docs/decisions/0012-compression-encoders.md` has their measured time and size:
//!
//! | level | gzip, streams: zlib-rs | gzip, whole bodies: libdeflate | zstd | brotli |
//! |---|---|---|---|---|
//! | 1 | `quick`, our own | 1, of long ones `quick` | 1 | 1 |
//! | 2 | `quick`, which searches more | 1, of long ones `quick` | 2 | 2 |
//! | 3 | 3 | 2 | 3 | 3 |
//! | 4 | 3 | 3 | 4 | 4 |
//! | 5 | 4 | 4 | 5 | 5 |
//! | 6 | 5 | 5 | 6 | 6 |
//! | 7 | 6 | 6 | 7 | 6 |
//! | 8 | 7 | 7 | 8 | 6 |
//! | 9 | 8 | 8 | 9 | 6 |
//!
//! zlib-rs's levels 1 and 2 produce larger output than our own encoder, and 2 is also slower. gzip's level 5 is closest
//! to zlib's level 5 in size, and the others are arranged around it. zstd's level 4 is its level 3 at this window.
//! Above 6 brotli would take more than 9 MiB per response.
//!
//! **Work per call.** A call processes its whole input. [`slice_bytes_max`] is the input for a call of about
//! [`CALL_TARGET_US`]; the caller serves others in between.

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
    /// It is given out, and everything so far can be decoded; costs a few bytes, and some compression.
    Sync,
    /// The content is at its end.
    Finish,
}

/// The reason why nothing was encoded. Neither depends on the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncodeError {
    /// The content had ended, or an earlier call failed: [`Encoder::reset`] comes first.
    Ended,
    /// The encoder could not get memory, or is broken.
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

/// How long a call with [`slice_bytes_max`] takes, about, on the machine of the decision record.
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

/// The size up to which content is collected, to be encoded by [`crate::Pool::encode_whole`].
///
/// gzip's encoder of whole bodies takes a quarter to a third less time than that of streams, but a call cannot be
/// divided: the limit is a call of about 0.8 ms, three times [`CALL_TARGET_US`]. The others have one encoder for both;
/// content for one call is encoded at once, because its length is then known.
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

/// Turns content into its encoded form, piece by piece.
pub struct Encoder {
    state: State,
    coding: Coding,
    level: Level,
    has_ended: bool,
    /// Content was begun and not brought to its end.
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
    /// An encoder at the start of a content. [`crate::Pool`] has used ones.
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

    /// How hard it tries.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Takes `input`, and appends output to `out`.
    ///
    /// With [`Flush::Sync`] and no new input since the last one nothing is appended, or next to nothing. After
    /// [`Flush::Finish`] only [`Self::reset`] helps; an error ends the content too.
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

    /// Begins another content, and keeps the memory if the last one was complete. Unfinished output of the last one is
    /// lost.
    pub fn reset(&mut self) -> Result<(), EncodeError> {
        self.has_ended = true;
        match &mut self.state {
            State::QuickGzip(quick) => quick.reset(),
            // After truncated content, zlib-rs 0.6.8 does not reset all of its state: at its level 1 it assumes that a
            // block is still open, and its output then cannot be decoded.
            State::Gzip(gzip) if self.is_within => *gzip = gzip::Gzip::new(self.level),
            State::Gzip(gzip) => gzip.reset(),
            State::Zstd(zstd) => zstd.reset()?,
            State::Brotli(brotli) => *brotli = brotli::Brotli::new(self.level)?,
        }
        self.has_ended = false;
        self.is_within = false;
        Ok(())
    }

    /// Whether a reset is cheaper than a new one.
    pub(crate) fn is_reusable(&self) -> bool {
        !matches!(self.state, State::Brotli(_))
    }
}

/// Bytes to make room for at a time: most content shrinks to less than half of it.
fn room_bytes(input: &[u8]) -> usize {
    const ROOM_BYTES_MIN: usize = 512;
    (input.len() / 2).max(ROOM_BYTES_MIN)
}

/// Lets `encode` write to `room` bytes behind the end of `out`; it says how many it wrote.
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
                // Above the fast class, input passed at once may be collected as well.
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
