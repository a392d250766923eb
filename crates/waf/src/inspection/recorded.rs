//! The body of a request as it came, kept for those who judge the request again.

/// Bytes of a body that is kept.
const RECORDED_BYTES_MAX: usize = 64 << 10;

/// What is known of a request's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedBody<'a> {
    /// Bodies are not kept.
    Off,
    /// It was too long, or was not shown to the inspection.
    LeftOut,
    /// All that was shown.
    Whole(&'a [u8]),
}

/// A body that is kept.
#[derive(Debug, Default)]
pub(super) struct Recording {
    bytes: Vec<u8>,
    is_left_out: bool,
}

impl Recording {
    /// Takes bytes of the body.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() > RECORDED_BYTES_MAX {
            self.leave_out();
        } else if !self.is_left_out {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// It cannot be kept.
    pub fn leave_out(&mut self) {
        self.is_left_out = true;
        self.bytes = Vec::new();
    }

    /// What there is of it.
    pub fn body(&self) -> RecordedBody<'_> {
        if self.is_left_out { RecordedBody::LeftOut } else { RecordedBody::Whole(&self.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_kept_whole_or_not_at_all() {
        let mut recording = Recording::default();
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
