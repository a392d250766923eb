//! The release of much memory at once: the allocator keeps freed memory until it is asked to return it to the system.

/// The part of the largest amount that must be released.
const RELEASED_PART: u64 = 4;

/// The largest amount of some memory since its last release.
#[derive(Debug, Default)]
pub struct Peak {
    bytes: u64,
}

impl Peak {
    /// Whether the change from `before` to `after` bytes releases most of it. What was never `bytes_min` does not count: the
    /// allocator keeps less anyway.
    #[inline]
    pub fn is_released(&mut self, (before, after): (u64, u64), bytes_min: u64) -> bool {
        self.bytes = self.bytes.max(before);
        let is_released = self.bytes >= bytes_min && after <= self.bytes / RELEASED_PART;
        if is_released {
            self.bytes = after;
        }
        is_released
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rise_has_one_release() {
        let mut peak = Peak::default();
        let mut before = 0;
        for (bytes, expected) in [
            (99, false),
            (0, false),
            (100, false),
            (26, false),
            (25, true),
            (0, false),
            (400, false),
            (101, false),
            (100, true),
            (25, true),
            (0, false),
        ] {
            assert_eq!(peak.is_released((before, bytes), 100), expected, "{bytes}");
            before = bytes;
        }
    }
}
