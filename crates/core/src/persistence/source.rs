//! Persistence by the client's address: the entry of a client in a table, in 56 bits.
//!
//! The table itself is elsewhere and is shared by the workers; its words change by compare-and-swap. The expiry of an entry
//! is updated only when a part of the timeout has passed since the last update: other requests only read, so every core
//! keeps the cache line.

/// Number of bits of an entry for the member.
pub const MEMBER_BITS: u32 = 24;

/// Largest member number that an entry can hold.
pub const MEMBER_MAX: u32 = (1 << MEMBER_BITS) - 1;

/// Unit of the stored end of an entry.
const TICK_MS: u64 = 100;

/// Number of bits of an entry for its end: 13 years.
const END_BITS: u32 = 32;

/// Latest end; one less than the bits permit, so that no word is all ones.
const END_TICKS_MAX: u64 = (1 << END_BITS) - 2;

/// An entry is updated when this part of the timeout has passed since its last update.
const TOUCH_PART: u64 = 8;

/// Minimum timeout: for a shorter one, a tick would be too coarse.
pub const TIMEOUT_MS_MIN: u64 = 1_000;

/// Maximum timeout: a year.
pub const TIMEOUT_MS_MAX: u64 = 365 * 24 * 3_600 * 1_000;

/// The time for which a client without requests keeps its member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeout {
    ms: u64,
}

impl Timeout {
    /// A timeout of this length, limited to [`TIMEOUT_MS_MIN`] and [`TIMEOUT_MS_MAX`].
    pub fn new(ms: u64) -> Self {
        Self { ms: ms.clamp(TIMEOUT_MS_MIN, TIMEOUT_MS_MAX) }
    }
}

/// The entry of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceEntry {
    /// The number of the member, at most [`MEMBER_MAX`].
    pub member: u32,
    end_ticks: u64,
}

impl SourceEntry {
    /// A new entry for a client that is sent to this member now.
    ///
    /// The entry expires no earlier than `timeout` after the client's last request, and at most an eighth of the timeout and
    /// a tick later, because not every request updates it.
    pub fn new(member: u32, now_ms: u64, timeout: Timeout) -> Self {
        debug_assert!(member <= MEMBER_MAX);
        let end_ms = now_ms.saturating_add(timeout.ms + timeout.ms / TOUCH_PART);
        let end_ticks = end_ms.div_ceil(TICK_MS).min(END_TICKS_MAX);
        Self { member: member & MEMBER_MAX, end_ticks }
    }

    /// The entry after a request now; `None`: unchanged.
    pub fn touched(self, now_ms: u64, timeout: Timeout) -> Option<Self> {
        let left_ms = self.ends_ms().saturating_sub(now_ms);
        (left_ms <= timeout.ms).then(|| Self::new(self.member, now_ms, timeout))
    }

    /// The entry of the same client after its member got another number (by a reload).
    pub fn with_member(self, member: u32) -> Self {
        debug_assert!(member <= MEMBER_MAX);
        Self { member: member & MEMBER_MAX, ..self }
    }

    /// The expiry of the entry.
    pub fn ends_ms(self) -> u64 {
        self.end_ticks * TICK_MS
    }

    /// The entry as the word that workers share: neither 0 nor 56 ones.
    pub fn to_bits(self) -> u64 {
        self.end_ticks << MEMBER_BITS | u64::from(self.member)
    }

    /// The entry that a shared word holds.
    pub fn from_bits(bits: u64) -> Self {
        Self { member: bits as u32 & MEMBER_MAX, end_ticks: bits >> MEMBER_BITS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_entries() {
        for (member, now_ms) in [(0, 0), (MEMBER_MAX, 0), (7, 1 << 40), (MEMBER_MAX, u64::MAX)] {
            let entry = SourceEntry::new(member, now_ms, Timeout::new(180_000));
            let bits = entry.to_bits();
            assert!(bits > 0 && bits < (1 << 56) - 1, "{bits:x}");
            assert_eq!(SourceEntry::from_bits(bits), entry);
            assert_eq!(entry.member, member);
            assert_eq!(entry.with_member(9).ends_ms(), entry.ends_ms());
        }
    }

    #[test]
    fn an_entry_outlives_its_last_request_by_the_timeout() {
        for timeout_ms in [1_000, 1_234, 180_000, TIMEOUT_MS_MAX] {
            let timeout = Timeout::new(timeout_ms);
            let mut entry = SourceEntry::new(1, 5, timeout);
            let (mut now_ms, mut touches) = (5, 0);
            for _ in 0..1_000 {
                now_ms += timeout_ms / 100;
                if let Some(touched) = entry.touched(now_ms, timeout) {
                    entry = touched;
                    touches += 1;
                }
                let left_ms = entry.ends_ms() - now_ms;
                assert!(left_ms >= timeout_ms, "{left_ms} of {timeout_ms}");
                assert!(left_ms <= timeout_ms + timeout_ms / TOUCH_PART + TICK_MS);
            }
            assert!(touches <= 100, "{touches} touches in ten timeouts");
        }
    }

    #[test]
    fn timeouts_are_bounded() {
        assert_eq!(Timeout::new(0), Timeout::new(TIMEOUT_MS_MIN));
        assert_eq!(Timeout::new(u64::MAX), Timeout::new(TIMEOUT_MS_MAX));
        const { assert!(TIMEOUT_MS_MAX * 2 / TICK_MS < END_TICKS_MAX) };
    }
}
