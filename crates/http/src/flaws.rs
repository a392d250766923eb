//! Flaws of responses that are tolerated from members configured as lenient.
//!
//! Requests are always parsed strictly. Responses are serialised again, so no flaw of a member reaches a client: the
//! end of the body is determined once, here, and sent in weir's own framing.

/// A flaw of a response whose meaning is clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Content-Length with the same number more than once, in several lines or as a list
    /// (RFC 9110 section 8.6).
    RepeatedContentLength,
    /// Content-Length together with Transfer-Encoding. The latter counts, and the connection ends with this response
    /// (RFC 9112 section 6.3).
    BothFramings,
    /// Spaces or tabs after a chunk size.
    ChunkSizeSpace,
    /// LF without CR at the end of a line (RFC 9112 section 2.2). Only in HTTP/1.
    BareLineFeed,
    /// A control character in a value or in the reason phrase; a space replaces it (RFC 9110 section 5.5). Only in
    /// HTTP/1.
    ControlCharacter,
    /// A status from 600 to 999, which is forwarded unchanged and counts as 5xx (RFC 9110 section 15).
    UnknownStatus,
    /// `Transfer-Encoding: chunked` more than once, in several lines or as a list; the body is chunked once
    /// (RFC 9112 section 6.1 forbids to apply it more than once). Only in HTTP/1.
    RepeatedChunked,
}

impl Flaw {
    /// All flaws.
    pub const ALL: [Self; 7] = [
        Self::RepeatedContentLength,
        Self::BothFramings,
        Self::ChunkSizeSpace,
        Self::BareLineFeed,
        Self::ControlCharacter,
        Self::UnknownStatus,
        Self::RepeatedChunked,
    ];

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of flaws: tolerated ones or found ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flaws(u8);

impl Flaws {
    /// No flaws.
    pub const NONE: Self = Self(0);

    /// Flaws that are common among members and do not affect the end of the body.
    pub const USUAL: Self = Self::NONE
        .with(Flaw::RepeatedContentLength)
        .with(Flaw::BothFramings)
        .with(Flaw::ChunkSizeSpace);

    /// All flaws.
    pub const ALL: Self = Self::USUAL
        .with(Flaw::BareLineFeed)
        .with(Flaw::ControlCharacter)
        .with(Flaw::UnknownStatus)
        .with(Flaw::RepeatedChunked);

    /// The set with another flaw.
    #[must_use]
    pub const fn with(self, flaw: Flaw) -> Self {
        Self(self.0 | flaw.bit())
    }

    /// The set without the flaws of another set.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Adds a flaw.
    pub fn add(&mut self, flaw: Flaw) {
        *self = self.with(flaw);
    }

    /// Adds all flaws of another set.
    pub fn add_all(&mut self, others: Self) {
        self.0 |= others.0;
    }

    /// Whether the set contains this flaw.
    pub const fn have(self, flaw: Flaw) -> bool {
        self.0 & flaw.bit() != 0
    }

    /// Whether there are no flaws.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The flaws of the set.
    pub fn iter(self) -> impl Iterator<Item = Flaw> {
        Flaw::ALL.into_iter().filter(move |flaw| self.have(*flaw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_what_was_added() {
        for flaw in Flaw::ALL {
            let one = Flaws::NONE.with(flaw);
            assert_eq!(one.iter().collect::<Vec<_>>(), [flaw]);
            assert!(Flaws::ALL.have(flaw) && !Flaws::ALL.without(one).have(flaw));
            let mut all = Flaws::ALL.without(one);
            assert_ne!(all, Flaws::ALL);
            all.add(flaw);
            assert_eq!(all, Flaws::ALL);
        }
        assert_eq!(Flaws::USUAL.iter().count(), 3);
        assert!(Flaws::NONE.is_empty() && !Flaws::USUAL.is_empty());
    }
}
