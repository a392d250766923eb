//! The recorded body of a request, for a later repetition of its inspection.

/// Maximum size of a recorded body, in bytes.
const RECORDED_BYTES_MAX: usize = 64 << 10;

/// The recorded body of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedBody<'a> {
    /// Bodies are not recorded.
    Off,
    /// The body was too long, or the inspection did not receive all of it.
    LeftOut,
    /// The complete body.
    Whole(&'a [u8]),
}

/// A recording in progress.
#[derive(Debug, Default)]
pub(super) struct BodyRecording {
    bytes: Vec<u8>,
    is_left_out: bool,
}

impl BodyRecording {
    /// Adds bytes of the body.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() > RECORDED_BYTES_MAX {
            self.leave_out();
        } else if !self.is_left_out {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Drops the recorded bytes: the body is not recorded.
    pub fn leave_out(&mut self) {
        self.is_left_out = true;
        self.bytes = Vec::new();
    }

    /// The recorded body.
    pub fn body(&self) -> RecordedBody<'_> {
        if self.is_left_out { RecordedBody::LeftOut } else { RecordedBody::Whole(&self.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_kept_whole_or_not_at_all() {
        let mut recording = BodyRecording::default();
        assert_eq!(recording.body(), RecordedBody::Whole(b""));
        recording.push(b"a=");
        recording.push(&vec![b'x'; RECORDED_BYTES_MAX - 2]);
        assert!(
            matches!(recording.body(), RecordedBody::Whole(it) if it.len() == RECORDED_BYTES_MAX)
        );
        recording.push(b"y");
        recording.push(b"z");
        assert_eq!(recording.body(), RecordedBody::LeftOut);
    }
}
