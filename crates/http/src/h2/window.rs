//! Flow control of received data (RFC 9113 section 5.2), for a stream or for the connection.

use super::frame;

/// The peer's remaining window, and the state of received bytes.
///
/// `open + unreleased + consumed` always equals the window's size. Every received byte is unreleased until the caller has
/// forwarded it, and then consumed until the peer gets the update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReceiveWindow {
    size: i64,
    /// Number of bytes that the peer may send now. Negative after a reduction of the size.
    open: i64,
    /// Number of received bytes that are not forwarded yet.
    unreleased: i64,
    /// Number of forwarded bytes that are not returned to the peer yet.
    consumed: i64,
}

impl ReceiveWindow {
    pub(super) fn new(size: u32) -> Self {
        Self { size: i64::from(size), open: i64::from(size), unreleased: 0, consumed: 0 }
    }

    /// Counts the `bytes` of a received frame. Returns whether the window permitted them.
    pub(super) fn take(&mut self, bytes: u32) -> bool {
        let bytes = i64::from(bytes);
        if bytes > self.open && bytes > 0 {
            return false;
        }
        self.open -= bytes;
        self.unreleased += bytes;
        true
    }

    /// `bytes` were forwarded. Returns the increment for the peer if it is half a window or more.
    pub(super) fn release(&mut self, bytes: u32) -> Option<u32> {
        let bytes = i64::from(bytes).min(self.unreleased);
        self.unreleased -= bytes;
        self.consumed += bytes;
        self.due()
    }

    /// Like [`Self::release`], for a connection's window: appends WINDOW_UPDATE when it is due.
    pub(super) fn release_connection(&mut self, bytes: u32, out: &mut Vec<u8>) {
        if let Some(increment) = self.release(bytes) {
            frame::write_window_update(0, increment, out);
        }
    }

    /// Sets the size of the window, which the peer knows. Returns the increment that is now due, if any.
    pub(super) fn resize(&mut self, size: u32) -> Option<u32> {
        self.open += i64::from(size) - self.size;
        self.size = i64::from(size);
        self.due()
    }

    fn due(&mut self) -> Option<u32> {
        if self.consumed == 0 || self.consumed < self.size / 2 {
            return None;
        }
        let increment = std::mem::take(&mut self.consumed);
        self.open += increment;
        Some(increment as u32)
    }

    /// Number of bytes that the peer may send now.
    pub(super) fn open(&self) -> u64 {
        self.open.max(0) as u64
    }

    /// Number of bytes that the peer could send if the window had this size.
    pub(super) fn open_with(&self, size: u32) -> u64 {
        (self.open + i64::from(size) - self.size).max(0) as u64
    }

    /// Number of received bytes that are not forwarded yet.
    pub(super) fn unreleased(&self) -> u64 {
        self.unreleased as u64
    }

    /// Panics if the state is inconsistent.
    pub(super) fn check_invariants(&self) {
        assert_eq!(self.open + self.unreleased + self.consumed, self.size);
        assert!(self.unreleased >= 0 && self.consumed >= 0);
        assert!(self.consumed == 0 || self.consumed < self.size / 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_window_is_told_at_once() {
        let mut window = ReceiveWindow::new(100);
        assert!(window.take(100) && !window.take(1) && window.take(0));
        assert_eq!(window.release(49), None);
        assert_eq!(window.release(1), Some(50));
        assert!(window.take(50) && !window.take(1));
        assert_eq!(window.release(1000), Some(100), "no more than there is");
        assert_eq!(window.release(1), None);
        window.check_invariants();
    }

    #[test]
    fn a_smaller_window_never_stands_still() {
        let mut window = ReceiveWindow::new(100);
        assert!(window.take(100));
        assert_eq!(window.release(49), None);
        assert_eq!(window.resize(10), Some(49));
        assert!(!window.take(1));
        assert_eq!(window.release(51), Some(51));
        assert!(window.take(10) && !window.take(1));
        window.check_invariants();
        assert_eq!(window.resize(0), None);
        assert_eq!(window.release(10), Some(10));
        assert!(!window.take(1));
        window.check_invariants();
    }
}
