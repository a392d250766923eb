//! Content codings, and compression levels.

/// A content coding that weir encodes (RFC 9110 section 8.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// gzip (RFC 1952).
    Gzip,
    /// zstd (RFC 8878, RFC 9659).
    Zstd,
    /// br (RFC 7932).
    Brotli,
}

impl Coding {
    /// The number of codings.
    pub const COUNT: usize = 3;

    /// All codings, by index.
    pub const ALL: [Self; Self::COUNT] = [Self::Gzip, Self::Zstd, Self::Brotli];

    /// The index in [`Self::ALL`], for tables.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name in Content-Encoding.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Brotli => "br",
        }
    }

    /// The coding with this name, in upper or lower case; `x-gzip` is gzip (RFC 9110 section 8.4.1.3).
    pub fn named(name: &[u8]) -> Option<Self> {
        if name.eq_ignore_ascii_case(b"x-gzip") {
            return Some(Self::Gzip);
        }
        Self::ALL.into_iter().find(|coding| name.eq_ignore_ascii_case(coding.name().as_bytes()))
    }
}

/// The effort of an encoder: from 1, the fastest, to 9. [`crate::encoder`] describes the meaning for each coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(u8);

impl Level {
    /// The fastest level.
    pub const MIN: Self = Self(1);
    /// The level with the smallest output.
    pub const MAX: Self = Self(9);
    /// The number of levels.
    pub const COUNT: usize = 9;

    /// A level of 1 to 9.
    pub const fn new(level: u8) -> Option<Self> {
        if matches!(level, 1..=9) { Some(Self(level)) } else { None }
    }

    /// The level, from 1 to 9.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The index in tables, from 0 to 8.
    pub(crate) const fn index(self) -> usize {
        self.0 as usize - 1
    }

    /// All levels, lowest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..=9).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codings_are_told_by_name() {
        for (name, expected) in [
            ("gzip", Some(Coding::Gzip)),
            ("GZip", Some(Coding::Gzip)),
            ("x-gzip", Some(Coding::Gzip)),
            ("X-GZIP", Some(Coding::Gzip)),
            ("zstd", Some(Coding::Zstd)),
            ("br", Some(Coding::Brotli)),
            ("brotli", None),
            ("deflate", None),
            ("identity", None),
            ("", None),
        ] {
            assert_eq!(Coding::named(name.as_bytes()), expected, "{name}");
        }
        for (index, coding) in Coding::ALL.into_iter().enumerate() {
            assert_eq!(coding.index(), index);
        }
    }

    #[test]
    fn levels_are_1_to_9() {
        assert_eq!((Level::new(0), Level::new(10)), (None, None));
        assert_eq!(
            Level::all().map(|level| level.index()).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4, 5, 6, 7, 8]
        );
        assert_eq!((Level::new(1), Level::new(9)), (Some(Level::MIN), Some(Level::MAX)));
    }
}
