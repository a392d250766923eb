//! A pool of reusable encoders.
//!
//! A new encoder costs the pages of its memory; a used one costs a reset. Each worker has its own pool. The memory of idle
//! encoders, and of those in use by responses, is limited ([`memory_bytes_max`]); if the limit is reached, a response is not
//! compressed.
//!
//! | operation | cost |
//! |---|---|
//! | `take`, `give` | O(1); a reset, or a new encoder |
//! | `hold` | O(1) |
//! | memory | `idle_bytes_max` + `taken_bytes_max` + the encoders of whole bodies, one per level in use |

use std::cell::Cell;
use std::rc::Rc;

use crate::coding::{Coding, Level};
use crate::encoder::quick::LEVEL_MAX;
use crate::encoder::whole::WholeGzip;
use crate::encoder::{EncodeError, Encoder, Flush, memory_bytes_max};

/// Maximum size of a body for [`Pool::encode_whole`]. At level 5 a body of this size takes about 0.8 ms; see
/// [`crate::whole_bytes_max`].
pub const WHOLE_BYTES_MAX: usize = 128 * 1024;

/// Maximum size in the fast class: longer bodies take less time as streams, shorter ones become smaller as a whole.
const FAST_WHOLE_BYTES_MAX: usize = 16 * 1024;

/// Maximum memory of a pool for encoding whole bodies with gzip at all levels.
pub const WHOLE_MEMORY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Limits of the memory of encoders, as calculated by [`memory_bytes_max`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolLimits {
    /// The memory of unused encoders.
    pub idle_bytes_max: usize,
    /// The memory of encoders in use by responses, and of bodies that are collected.
    pub taken_bytes_max: usize,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self { idle_bytes_max: 16 * 1024 * 1024, taken_bytes_max: 256 * 1024 * 1024 }
    }
}

/// Bytes that count as memory of encoders in use, until this is dropped.
pub struct HeldBytes {
    bytes: usize,
    taken_bytes: Rc<Cell<usize>>,
}

impl HeldBytes {
    /// The number of bytes.
    pub fn count(&self) -> usize {
        self.bytes
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.taken_bytes.set(self.taken_bytes.get().saturating_sub(self.bytes));
    }
}

/// A worker's encoders.
#[derive(Default)]
pub struct Pool {
    limits: PoolLimits,
    /// Idle encoders after a reset, by coding and level.
    idle: [[Vec<Encoder>; Level::COUNT]; Coding::COUNT],
    idle_bytes: usize,
    taken_bytes: Rc<Cell<usize>>,
    whole_gzip: WholeGzip,
}

impl Pool {
    /// An empty pool.
    pub fn new(limits: PoolLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// An encoder at the start of content; `None`: encoders in use have reached their memory limit, or no encoder can be
    /// created. The caller must give it back.
    pub fn take(&mut self, coding: Coding, level: Level) -> Option<Encoder> {
        let bytes = memory_bytes_max(coding, level);
        if self.taken_bytes.get() + bytes > self.limits.taken_bytes_max {
            return None;
        }
        let encoder = self.obtain(coding, level)?;
        self.taken_bytes.set(self.taken_bytes.get() + bytes);
        Some(encoder)
    }

    /// Takes an encoder back, in any state.
    pub fn give(&mut self, encoder: Encoder) {
        let bytes = memory_bytes_max(encoder.coding(), encoder.level());
        self.taken_bytes.set(self.taken_bytes.get().saturating_sub(bytes));
        self.keep(encoder);
    }

    /// Counts the bytes of a body that is collected to be encoded as a whole: they count towards the limit of encoders in
    /// use. `None`: they do not fit.
    pub fn hold(&mut self, bytes: usize) -> Option<HeldBytes> {
        let taken_bytes = self.taken_bytes.get().saturating_add(bytes);
        if taken_bytes > self.limits.taken_bytes_max {
            return None;
        }
        self.taken_bytes.set(taken_bytes);
        Some(HeldBytes { bytes, taken_bytes: Rc::clone(&self.taken_bytes) })
    }

    /// Encodes a complete body of at most [`WHOLE_BYTES_MAX`] bytes, and appends the result to `out`. With gzip, this is
    /// faster than as a stream, or the output is smaller; not so at levels 1 and 2 above 16 KiB.
    pub fn encode_whole(
        &mut self,
        coding: Coding,
        level: Level,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let length_max = if level > LEVEL_MAX { WHOLE_BYTES_MAX } else { FAST_WHOLE_BYTES_MAX };
        if coding == Coding::Gzip && body.len() <= length_max {
            return self.whole_gzip.encode(level, body, out);
        }
        let mut encoder = self.obtain(coding, level).ok_or(EncodeError::Library)?;
        let result = encoder.encode(body, Flush::Finish, out);
        self.keep(encoder);
        result
    }

    /// The memory of encoders in use, as calculated by [`memory_bytes_max`], and of collected bodies.
    pub fn taken_bytes(&self) -> usize {
        self.taken_bytes.get()
    }

    /// The memory of idle encoders, as calculated by [`memory_bytes_max`].
    pub fn idle_bytes(&self) -> usize {
        self.idle_bytes
    }

    /// After a panic: resets the memory in use to zero, because the worker has dropped all responses.
    pub fn forget_taken(&mut self) {
        self.taken_bytes.set(0);
    }

    /// A used encoder, or a new one.
    fn obtain(&mut self, coding: Coding, level: Level) -> Option<Encoder> {
        match self.idle[coding.index()][level.index()].pop() {
            Some(encoder) => {
                self.idle_bytes -= memory_bytes_max(coding, level);
                Some(encoder)
            }
            None => Encoder::new(coding, level).ok(),
        }
    }

    /// Stores an encoder for reuse, if a reset is cheaper and there is room.
    fn keep(&mut self, mut encoder: Encoder) {
        let (coding, level) = (encoder.coding(), encoder.level());
        let bytes = memory_bytes_max(coding, level);
        if !encoder.is_reusable() || bytes > self.limits.idle_bytes_max {
            return;
        }
        if self.idle_bytes + bytes > self.limits.idle_bytes_max {
            // The pool may be full of encoders of levels that are no longer used.
            self.clear_idle();
        }
        if encoder.reset().is_ok() {
            self.idle[coding.index()][level.index()].push(encoder);
            self.idle_bytes += bytes;
        }
    }

    fn clear_idle(&mut self) {
        for encoders in self.idle.as_flattened_mut() {
            encoders.clear();
        }
        self.idle_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVEL: Level = Level::MIN;

    fn encode(encoder: &mut Encoder, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encoder.encode(text, Flush::Finish, &mut out).unwrap();
        out
    }

    #[test]
    fn a_used_encoder_encodes_like_a_new_one() {
        let text = b"a text, and the text again, and the text".repeat(50);
        for coding in Coding::ALL {
            for level in Level::all() {
                let mut pool = Pool::default();
                let mut encoder = pool.take(coding, level).unwrap();
                let first = encode(&mut encoder, &text);
                pool.give(encoder);
                // An encoder returned in the middle of content leaves nothing behind.
                let mut encoder = pool.take(coding, level).unwrap();
                encoder.encode(&text, Flush::None, &mut Vec::new()).unwrap();
                pool.give(encoder);
                let mut encoder = pool.take(coding, level).unwrap();
                assert_eq!(encode(&mut encoder, &text), first, "{coding:?} {level:?}");
                pool.give(encoder);
                assert_eq!(pool.taken_bytes(), 0);
            }
        }
    }

    #[test]
    fn what_is_in_use_is_bounded() {
        let bytes = memory_bytes_max(Coding::Gzip, LEVEL);
        let mut pool = Pool::new(PoolLimits { idle_bytes_max: bytes, taken_bytes_max: 2 * bytes });
        let first = pool.take(Coding::Gzip, LEVEL).unwrap();
        let second = pool.take(Coding::Gzip, LEVEL).unwrap();
        assert!(pool.take(Coding::Gzip, LEVEL).is_none());
        pool.give(first);
        assert_eq!((pool.taken_bytes(), pool.idle_bytes()), (bytes, bytes));
        let third = pool.take(Coding::Gzip, LEVEL).unwrap();
        assert_eq!((pool.taken_bytes(), pool.idle_bytes()), (2 * bytes, 0));
        drop((second, third));
        pool.forget_taken();
        assert!(pool.take(Coding::Gzip, LEVEL).is_some());
        // Collected content counts towards the limit of encoders.
        let held = pool.hold(bytes).unwrap();
        assert!(held.count() == bytes && pool.hold(1).is_none());
        assert!(pool.take(Coding::Gzip, LEVEL).is_none());
        drop(held);
        assert!(pool.take(Coding::Gzip, LEVEL).is_some());
    }

    #[test]
    fn what_is_idle_is_bounded() {
        let bytes = memory_bytes_max(Coding::Gzip, LEVEL);
        let mut pool =
            Pool::new(PoolLimits { idle_bytes_max: 3 * bytes, taken_bytes_max: usize::MAX });
        for level in Level::all() {
            let encoders: Vec<_> =
                (0..3).map(|_| pool.take(Coding::Gzip, level).unwrap()).collect();
            encoders.into_iter().for_each(|encoder| pool.give(encoder));
            assert!(pool.idle_bytes() <= 3 * bytes);
            assert!(!pool.idle[0][level.index()].is_empty(), "the newest are kept");
        }
        let encoder = pool.take(Coding::Brotli, LEVEL).unwrap();
        let before = pool.idle_bytes();
        pool.give(encoder);
        assert_eq!(pool.idle_bytes(), before, "brotli cannot be used again");
    }

    #[test]
    fn whole_bodies_are_encoded() {
        let mut pool = Pool::default();
        for coding in Coding::ALL {
            for level in Level::all() {
                for bytes in [0, 1, 1_000, WHOLE_BYTES_MAX, WHOLE_BYTES_MAX + 1] {
                    let mut out = b"head".to_vec();
                    pool.encode_whole(coding, level, &vec![b'a'; bytes], &mut out).unwrap();
                    let bound = bytes / 100 + 50;
                    assert!(out.starts_with(b"head") && (5..bound).contains(&out.len()));
                }
            }
        }
        assert_eq!(pool.taken_bytes(), 0);
    }
}
