//! Joins the data of small frames within one read. Otherwise each of them would become a separate chunk, frame or call on
//! the other side.
//!
//! The data waits with its stream until the whole read is processed, or until another event of the stream occurs. Long
//! frames are forwarded directly, and so is the last frame of a read.

use weir_exchange::parts::end::End;

use crate::backlog::Backlog;
use crate::body::COALESCE_BYTES;
use crate::wire::Buffers;

/// Maximum size of a frame whose data is joined. For longer frames, copying costs more than it saves, so they are forwarded
/// directly, unless earlier data waits.
const JOINED_FRAME_BYTES_MAX: usize = COALESCE_BYTES;

/// The rest of a read after a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestOfRead {
    /// No data follows, so the frame need not wait.
    Nothing,
    /// More frames follow.
    More,
}

impl RestOfRead {
    /// The rest of the read after data that ends at `end`.
    pub fn of(input: &[u8], end: usize) -> Self {
        if end < input.len() { Self::More } else { Self::Nothing }
    }
}

/// The treatment of data from a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinStep {
    /// Forward the data directly.
    Pass,
    /// The data was stored.
    Wait {
        /// Whether no earlier data waits.
        is_first: bool,
    },
    /// Forward the stored data with the end; it includes this data.
    PassAll,
}

impl JoinStep {
    /// Determines the treatment of `data`. Data that is not forwarded directly is added to `joined`.
    pub fn of(
        buffers: &mut impl Buffers,
        joined: &mut Backlog,
        data: &[u8],
        end: End<'_>,
        behind: RestOfRead,
    ) -> Self {
        let is_short = data.len() <= JOINED_FRAME_BYTES_MAX;
        let waits = is_short && behind == RestOfRead::More && matches!(end, End::No);
        let is_first = joined.is_empty();
        match (is_first, waits) {
            (true, false) => return Self::Pass,
            // An empty frame without an end is forwarded directly.
            (true, true) if data.is_empty() => return Self::Pass,
            (true, true) | (false, _) => {}
        }
        joined.push(buffers, data);
        if waits { Self::Wait { is_first } } else { Self::PassAll }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Buffers that keep nothing.
    struct NoBuffers;

    impl Buffers for NoBuffers {
        fn take(&mut self) -> Vec<u8> {
            Vec::new()
        }

        fn give(&mut self, _: Vec<u8>) {}
    }

    /// The steps of frames of one read, each with its size and whether the message ends with it; the last frame ends the read.
    #[track_caller]
    fn check(frames: &[(usize, bool)], expected: &[JoinStep]) {
        let mut joined = Backlog::default();
        let mut steps = Vec::new();
        for (at, &(bytes, is_end)) in frames.iter().enumerate() {
            let is_last = at + 1 == frames.len();
            let behind = if is_last { RestOfRead::Nothing } else { RestOfRead::More };
            let end = if is_end { End::Data } else { End::No };
            steps.push(JoinStep::of(&mut NoBuffers, &mut joined, &vec![b'a'; bytes], end, behind));
        }
        assert_eq!(steps, expected, "{frames:?}");
    }

    #[test]
    fn small_frames_are_joined_until_the_read_or_the_message_ends() {
        use JoinStep::{Pass, PassAll, Wait};
        const LONG: usize = JOINED_FRAME_BYTES_MAX + 1;
        let (first, later) = (Wait { is_first: true }, Wait { is_first: false });
        check(&[(9, false)], &[Pass]);
        check(&[(9, true), (0, false)], &[Pass, Pass]);
        check(&[(9, false), (9, false)], &[first, PassAll]);
        check(&[(9, false), (0, false), (9, false), (9, true)], &[first, later, later, PassAll]);
        check(&[(0, false), (9, false), (LONG, false)], &[Pass, first, PassAll]);
        check(&[(LONG, false), (9, false)], &[Pass, Pass]);
    }
}
